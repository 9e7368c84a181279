"""An algorithm with its options, and one or several numbers of clusters, as users name them."""

import re
from dataclasses import dataclass, field
from typing import Any

from lloydformer.estimators import (
    KMeans,
    KMedoids,
    RelocatingKMeans,
    RobustKMeans,
    SoftKMeans,
    SphericalKMeans,
    TrimmedKMeans,
)
from lloydformer.estimators.base import Clusterer

ALGORITHMS: dict[str, type[Clusterer]] = {
    "kmeans": KMeans,
    "relocating": RelocatingKMeans,
    "soft": SoftKMeans,
    "spherical": SphericalKMeans,
    "trimmed": TrimmedKMeans,
    "robust": RobustKMeans,
    "medoids": KMedoids,
}


@dataclass(frozen=True)
class Settings:
    """An algorithm by its name, and options by the names of its parameters; None: not given."""

    algorithm: str = "kmeans"
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise ValueError(
                f"--algorithm: found {self.algorithm!r}; known are {', '.join(ALGORITHMS)}"
            )
        for name in self.given:
            takers = [a for a, kind in ALGORITHMS.items() if name in kind().get_params()]
            if self.algorithm not in takers:
                raise ValueError(
                    f"{as_option(name)}: {self.algorithm} does not have this option; leave it "
                    f"out, or choose --algorithm {' or '.join(takers)}"
                )
        self.model(1)._validate_params()

    @property
    def given(self) -> dict[str, Any]:
        """The options that were given."""
        return {name: value for name, value in self.options.items() if value is not None}

    @property
    def printable(self) -> dict[str, Any]:
        """The options that were given, with a word for centers."""
        plain = (int, float, str)
        return {n: v if isinstance(v, plain) else "centers" for n, v in self.given.items()}

    def model(self, n_clusters: int, **more: Any) -> Clusterer:
        """An estimator that is not fitted yet."""
        return ALGORITHMS[self.algorithm](n_clusters, **self.given, **more)


def as_option(name: str) -> str:
    """The option of the command line for a parameter."""
    return "--seed" if name == "random_state" else f"--{name.replace('_', '-')}"


def numbers_of_clusters(text: str) -> tuple[int, ...]:
    """The numbers that "10", "2:20" or "2:20:3" stand for, both ends included.

    >>> numbers_of_clusters("10"), numbers_of_clusters("2:5"), numbers_of_clusters("2:9:3")
    ((10,), (2, 3, 4, 5), (2, 5, 8))
    """
    if not re.fullmatch(r"\d+(:\d+){0,2}", text, re.ASCII):
        raise ValueError(f"-k: found {text!r}; pass a number such as 8, or a range such as 2:20")
    first, *rest = map(int, text.split(":"))
    last, step = rest[0] if rest else first, rest[1] if len(rest) > 1 else 1
    if not (1 <= first <= last and step >= 1):
        raise ValueError(
            f"-k: found {text!r}; pass 1 or more, and ranges from a smaller to a larger number"
        )
    return tuple(range(first, last + 1, step))
