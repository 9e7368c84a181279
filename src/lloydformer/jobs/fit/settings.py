"""The algorithms by their names on the command line, their options, and numbers of clusters."""

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lloydformer.estimators.registry import ALGORITHMS

if TYPE_CHECKING:
    from lloydformer.estimators.base import Clusterer


_LEARNED = "learned"
CRITERIA = ("silhouette", "calinski-harabasz", "gap", "stability")
"""Criteria by which a number of clusters is chosen."""


@dataclass(frozen=True)
class FitSettings:
    """An algorithm and the values of its parameters.

    `options` has parameters of the estimator by name; None means that the user did not give it.
    The constructor raises ValueError for an unknown algorithm, an option that the algorithm does
    not have, and a value that is not allowed.
    """

    algorithm: str = "kmeans"
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_algorithm(self.algorithm)
        for name in self.given:
            having = [a for a in algorithms() if name in estimator_of(a)().get_params()]
            if self.algorithm not in having:
                raise ValueError(
                    f"{option_of(name)}: {self.algorithm} does not have this option; leave it "
                    f"out, or choose --algorithm {' or '.join(having)}"
                )
        try:
            self.model(1).check_parameters()
        except ValueError as error:
            raise ValueError(_reworded(str(error))) from None

    @property
    def given(self) -> dict[str, Any]:
        """The options that the user gave."""
        return {name: value for name, value in self.options.items() if value is not None}

    @property
    def printable(self) -> dict[str, Any]:
        """The options that the user gave, with the word "centers" in place of an array."""
        plain = (int, float, str)
        return {n: v if isinstance(v, plain) else "centers" for n, v in self.given.items()}

    def model(self, n_clusters: int, **more: Any) -> "Clusterer":
        """A new estimator with these settings."""
        return estimator_of(self.algorithm)(n_clusters, **self.given, **more)

    def few_starts(self, n_clusters: int, n_init: int) -> "Clusterer":
        """A new estimator; its number of starts is `n_init` unless the user gave one."""
        return self.model(n_clusters, **({} if "n_init" in self.given else {"n_init": n_init}))


def check_algorithm(name: str) -> None:
    """Raise ValueError if there is no algorithm of this name."""
    if name not in algorithms():
        raise ValueError(f"--algorithm: found {name!r}; pass one of {', '.join(algorithms())}")


def algorithms() -> tuple[str, ...]:
    """The names of all algorithms: those that are registered, and k-means by a trained layer."""
    return (*ALGORITHMS, _LEARNED)


def estimator_of(algorithm: str) -> "type[Clusterer]":
    """The estimator of an algorithm."""
    if algorithm == _LEARNED and algorithm not in ALGORITHMS:
        from lloydformer.learning.estimator import LearnedKMeans

        return LearnedKMeans
    return ALGORITHMS[algorithm].estimator


def _reworded(error: str) -> str:
    """scikit-learn's message about a parameter, for a user of the command line.

    >>> _reworded("The 'keep' parameter of T must be a float in the range (0.0, 1.0]. Got 3.0 "
    ...           "instead.")
    '--keep: found 3.0; pass a number above 0 and at most 1'
    """
    parts = re.fullmatch(r"The '(\w+)' parameter of \w+ must be (.*)\. Got (.*) instead\.", error)
    if parts is None:
        return error
    wanted, found = parts[2], parts[3]
    words = re.search(r"a str among \{(.*?)\}", wanted)
    span = re.search(r"in the range ([\[(])(\S+), (\S+)([\])])", wanted)
    if span is not None and not found.startswith("'"):
        low = f"{'at least' if span[1] == '[' else 'above'} {float(span[2]):g}"
        most = f" and {'at most' if span[4] == ']' else 'below'} {span[3].removesuffix('.0')}"
        wanted = f"a number {low}{'' if span[3] == 'inf' else most}"
    elif words is not None:
        whole = ["a whole number"] if "an int in the range" in wanted else []
        wanted = " or ".join(sorted(re.findall(r"'(.*?)'", words[1])) + whole)
    return f"{option_of(parts[1])}: found {found}; pass {wanted}"


def check_criterion(name: str) -> None:
    """Raise ValueError if there is no criterion of this name."""
    if name not in CRITERIA:
        raise ValueError(f"--select: found {name!r}; pass one of {', '.join(CRITERIA)}")


def option_of(parameter: str) -> str:
    """The command-line option that sets a parameter of an estimator."""
    return "--seed" if parameter == "random_state" else f"--{parameter.replace('_', '-')}"


def name_or_number(text: str | None) -> str | int | None:
    """An effort: its name, or a number.

    >>> name_or_number("high"), name_or_number("30"), name_or_number(None)
    ('high', 30, None)
    """
    if text is None or not re.fullmatch(r"-?\d{1,19}", text, re.ASCII):
        return text
    return int(text)


def numbers_of_clusters(text: str) -> range:
    """Parse "10", "2:20" or "2:20:3" (first:last:step, both ends included).

    A range takes no memory, so that it can be compared with the number of rows.

    >>> numbers_of_clusters("10"), numbers_of_clusters("2:5"), list(numbers_of_clusters("2:9:3"))
    (range(10, 11), range(2, 6), [2, 5, 8])
    """
    if not re.fullmatch(r"\d+(:\d+){0,2}", text, re.ASCII):
        raise ValueError(f"-k: found {text!r}; pass a number such as 8, or a range such as 2:20")
    parts = text.split(":")
    if any(len(part) > 19 or int(part) >= 2**63 for part in parts):
        raise ValueError(f"-k: found {text!r}; pass numbers below 2^63")
    first, *rest = map(int, parts)
    last, step = rest[0] if rest else first, rest[1] if len(rest) > 1 else 1
    if not (1 <= first <= last and step >= 1):
        raise ValueError(
            f"-k: found {text!r}; pass 1 or more, and ranges from a smaller to a larger number"
        )
    return range(first, last + 1, step)
