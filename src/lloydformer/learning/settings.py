"""Settings of training: what runs that are trained together share, and what each has alone."""

import math
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from lloydformer.circuits import recipes
from lloydformer.circuits.recipe import Recipe
from lloydformer.learning.objective import SMOOTHINGS
from lloydformer.learning.tasks import FAMILIES, Tasks

CODES: dict[str | None, Literal["onehot", "binary"] | None] = {
    "onehot": "onehot", "binary": "binary", None: None,
}  # fmt: skip
ACTIVATIONS: dict[str, Literal["softmax", "sparsemax"]] = {
    "softmax": "softmax", "sparsemax": "sparsemax",
}  # fmt: skip
SCHEDULES = ("plateau", "cosine", "constant")


@dataclass(frozen=True)
class Run:
    """What one run has alone: its seed, its loss temperature, the family of its tasks."""

    seed: int = 0
    loss_temperature: float = 0.1
    family: str = "normal"

    def __post_init__(self) -> None:
        if type(self.seed) is not int or not 0 <= self.seed < 2**63:
            raise ValueError(f"seed: found {self.seed!r}; pass a whole number that is not negative")
        if not 0 < self.loss_temperature < math.inf:
            found = self.loss_temperature
            raise ValueError(f"loss_temperature: found {found!r}; pass a positive finite number")
        if self.family not in FAMILIES:
            raise ValueError(f"family: found {self.family!r}; pass one of {', '.join(FAMILIES)}")


@dataclass(frozen=True)
class Settings:
    """How to train; the defaults are the paper's protocol (asec:trf-train).

    smoothing: how the objective is smoothed, or "exact". n_unrolled: steps of the layer in front
    of the loss. schedule: "plateau" halves the learning rate of a run when its validation has not
    improved for `patience` evaluations. clip: the greatest norm of a run's gradient, if any.
    """

    tasks: Tasks = field(default_factory=Tasks)
    codes: str | None = "onehot"
    bias: bool = True
    scaled: bool = True
    activation: str = "softmax"
    dropout: float = 0.01
    smoothing: str = "softmax"
    n_unrolled: int = 1
    n_steps: int = 10_000
    batch_size: int = 32
    learning_rate: float = 0.01
    schedule: str = "plateau"
    patience: int = 5
    clip: float | None = None
    evaluate_every: int = 50
    n_validation: int = 320

    def __post_init__(self) -> None:
        for name in ("n_unrolled", "n_steps", "batch_size", "patience", "evaluate_every",
                     "n_validation"):  # fmt: skip
            if type(getattr(self, name)) is not int or getattr(self, name) < 1:
                raise ValueError(f"{name}: found {getattr(self, name)!r}; pass a number above 0")
        for name in ("learning_rate", "clip"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"{name}: found {value!r}; pass a positive finite number")
        choices: dict[str, Collection[str | None]] = {
            "codes": CODES, "activation": ACTIVATIONS, "smoothing": SMOOTHINGS,
            "schedule": SCHEDULES,
        }  # fmt: skip
        for name, known in choices.items():
            if getattr(self, name) not in known:
                found = getattr(self, name)
                raise ValueError(
                    f"{name}: found {found!r}; pass one of {', '.join(map(str, known))}"
                )
        if self.codes is not None and not isinstance(self.tasks.n_clusters, int):
            raise ValueError(
                "codes: a circuit that names its clusters has a fixed number of them; give "
                "n_clusters as one number, or codes=None"
            )
        _ = self.recipe  # refuses what is no recipe

    @property
    def recipe(self) -> Recipe:
        codes, activation = CODES[self.codes], ACTIVATIONS[self.activation]
        return recipes.learned(codes, self.bias, self.scaled, activation, self.dropout)

    @property
    def n_features(self) -> int:
        d = self.tasks.n_features
        return d if isinstance(d, int) else d[1]

    @property
    def n_clusters(self) -> int:
        k = self.tasks.n_clusters
        return k if isinstance(k, int) else k[1]

    @property
    def name(self) -> str:
        """`d32-k10`: what the trained layer fits."""
        return f"d{self.n_features}-k{self.n_clusters}"

    def written(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @classmethod
    def read(cls, found: dict[str, Any]) -> "Settings":
        """What `written` gave."""
        known = {f.name for f in fields(cls)}
        if not isinstance(found, dict) or found.keys() != known:
            raise ValueError(f"settings: found {sorted(found)}; they are {sorted(known)}")
        tasks: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in found["tasks"].items()
        }
        return cls(**{**found, "tasks": Tasks(**tasks)})
