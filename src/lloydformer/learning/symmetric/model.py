"""Trained symmetric layers: saved and loaded as a JSON card, and run as a circuit or a plan."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.symmetric import symmetric
from lloydformer.data.storage.atomic_files import atomic_write_text
from lloydformer.learning.pretrained import (
    FORMAT,
    SYMMETRIC,
    ModelCard,
    Pretrained,
    load_from_card,
    read_card,
)
from lloydformer.learning.symmetric.circuit import LearnedModulation
from lloydformer.learning.symmetric.layer import (
    INVARIANTS,
    InvariantInputs,
    NumberLayout,
    SymmetricLayer,
    invariants_of_means,
)
from lloydformer.learning.symmetric.settings import SymmetricRun, SymmetricSettings
from lloydformer.plans.symmetric import Heads, Invariants, SymmetricPlan


@dataclass(frozen=True)
class SymmetricModel:
    """Hold a trained symmetric layer, which serves every n, d and k.

    Parameters
    ----------
    name : str
        Name of the card.
    numbers : NumberLayout
        The kinds of numbers that a step uses, and their order.
    weights : Tensor of shape (1, p)
        All weights in one row.
    settings : SymmetricSettings
        Settings of the training.
    runs : tuple of SymmetricRun
        The runs that were trained together.
    chosen : int
        Index of the run that these weights are from.
    card : dict
        The card: how the weights were trained, their scores and the log of training.

    See Also
    --------
    load_pretrained : Load trained weights.
    lloydformer.LearnedKMeans : The estimator, which uses one by default.

    Examples
    --------
    >>> import lloydformer as lf
    >>> model = lf.learning.load_pretrained()
    >>> model.name, model.numbers.n_heads, model.weights.shape
    ('symmetric', 4, torch.Size([1, 396]))
    """

    name: str
    numbers: NumberLayout
    weights: Float[Tensor, "1 p"]
    settings: SymmetricSettings
    runs: tuple[SymmetricRun, ...]
    chosen: int
    card: dict[str, Any]

    @property
    def layer(self) -> SymmetricLayer:
        """Return the layer: a function of weights, points and centers.

        See Also
        --------
        SymmetricModel.circuit : The same as a circuit.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.learning.load_pretrained().layer.n_weights
        396
        """
        return SymmetricLayer(self.numbers, by_differences=True)

    @property
    def theta(self) -> Float[Tensor, "p f"]:
        """Return the weights as a matrix: a row for each number, a column for each invariant.

        See Also
        --------
        SymmetricModel.circuit : A circuit with these weights.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.learning.load_pretrained().theta.shape
        torch.Size([44, 9])
        """
        return self.weights.view(self.numbers.count, len(INVARIANTS))

    def circuit(self, n_features: int, n_clusters: int) -> Circuit:
        """Build a literal circuit with these weights, whose intermediate values can be read.

        Parameters
        ----------
        n_features : int
            Number of features.
        n_clusters : int
            Number of clusters.

        Returns
        -------
        Circuit
            The circuit.

        See Also
        --------
        lloydformer.Circuit : Runs the layers and keeps a trace.

        Examples
        --------
        >>> import torch
        >>> import lloydformer as lf
        >>> circuit = lf.learning.load_pretrained().circuit(n_features=2, n_clusters=3)
        >>> points = torch.rand(40, 2)
        >>> circuit(points, points[:3], n_layers=5).centers.shape
        torch.Size([6, 3, 2])
        """
        weights = tuple(self.weights.flatten().tolist())
        return Circuit(symmetric(LearnedModulation(weights, self.numbers)), n_features, n_clusters)


@overload
def load_pretrained(pretrained: Literal["symmetric"] = "symmetric") -> SymmetricModel: ...


@overload
def load_pretrained(pretrained: str | Path) -> SymmetricModel | Pretrained: ...


def load_pretrained(pretrained: str | Path = SYMMETRIC) -> SymmetricModel | Pretrained:
    """Load trained weights, by the names that `LearnedKMeans(pretrained=...)` knows.

    Parameters
    ----------
    pretrained : str or Path, default="symmetric"
        A name of `available()`, or the path of a card (.json) or of its weights (.safetensors).
        "symmetric" is the layer for every n, d and k.

    Returns
    -------
    SymmetricModel or Pretrained
        The weights and their card: a `SymmetricModel` for every n, d and k, or a `Pretrained` for
        one number of features and of clusters.

    Raises
    ------
    ValueError
        If there are no such weights, or if a file is damaged.

    See Also
    --------
    available : Names of the weights in the package.
    lloydformer.LearnedKMeans : The estimator that uses them.

    Examples
    --------
    >>> import lloydformer as lf
    >>> model = lf.learning.load_pretrained()
    >>> sorted(model.card["scores"]["mean_log_objective"])
    ['cauchy', 'gumbel', 'laplace', 'lognormal', 'normal']
    >>> lf.learning.load_pretrained("d4-k6").settings.n_clusters
    6
    """
    card = read_card(pretrained)
    return symmetric_from_card(card) if card.is_symmetric else load_from_card(card)


def load_symmetric(pretrained: str | Path = SYMMETRIC) -> SymmetricModel:
    """Load a trained symmetric layer; raises `ValueError` for a card of another kind."""
    return symmetric_from_card(read_card(pretrained))


def symmetric_from_card(card: ModelCard) -> SymmetricModel:
    """Build the model of a card that was read; raises `ValueError` if the card is not valid."""
    entries = card.entries
    try:
        if not card.is_symmetric:
            raise ValueError(f"its kind is {entries.get('kind')!r}, not {SYMMETRIC!r}")
        numbers = NumberLayout(entries["n_heads"], entries["n_apart"])
        settings = SymmetricSettings.read(entries["settings"])
        runs = tuple(SymmetricRun(**run) for run in entries["runs"])
        chosen = int(entries["chosen"])
        if not 0 <= chosen < len(runs):
            raise ValueError(f"it has {len(runs)} runs, and run {chosen} is chosen")
        sizes = {name: len(rows) for name, rows in entries["numbers"].items()}
        if sizes != numbers.sizes or list(sizes) != list(numbers.sizes):
            raise ValueError(f"it has numbers {sizes}, and its layer {numbers.sizes}")
        rows = [row for part in entries["numbers"].values() for row in part]
        if any(set(row) != set(INVARIANTS) for row in rows):
            raise ValueError(f"its invariants are not {', '.join(INVARIANTS)}")
        theta = torch.tensor([[float(row[name]) for name in INVARIANTS] for row in rows])
        if not torch.isfinite(theta).all():
            raise ValueError("found weights that are not finite")
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise card.invalid(error) from None
    return SymmetricModel(card.name, numbers, theta.view(1, -1), settings, runs, chosen, entries)


def save_symmetric(
    path: Path,
    numbers: NumberLayout,
    weights: Float[Tensor, " p"],
    settings: SymmetricSettings,
    runs: tuple[SymmetricRun, ...],
    chosen: int = 0,
    notes: Mapping[str, Any] | None = None,
) -> Path:
    """Write the card PATH.json with every weight by name; return its path.

    `notes`: more entries of the card: scores, log, machine.
    """
    theta = weights.float().view(numbers.count, len(INVARIANTS)).cpu().numpy()
    # str of a float32 has the fewest digits that restore it: the card is exact and can be read
    by_name = {
        name: [
            {which: float(str(np.float32(w))) for which, w in zip(INVARIANTS, row, strict=True)}
            for row in theta[numbers.rows(name)]
        ]
        for name in numbers.sizes
    }
    card = {
        "library": "lloydformer",
        "format": FORMAT,
        "kind": SYMMETRIC,
        "name": path.name,
        "n_heads": numbers.n_heads,
        "n_apart": numbers.n_apart,
        "numbers": by_name,
        "settings": asdict(settings),
        "runs": [asdict(run) for run in runs],
        "chosen": chosen,
        **(notes or {}),
    }
    target = path.with_name(f"{path.name}.json")
    atomic_write_text(target, json.dumps(card, indent=1) + "\n")
    return target


@dataclass(frozen=True)
class LearnedNumbers:
    """The numbers of a step, in float64, from the invariants of its state."""

    model: SymmetricModel

    def __call__(self, found: Invariants) -> Heads:
        nearest, second, gap, tail = found.members.new_tensor(
            [found.nearest, found.second, found.second - found.nearest, found.tail]
        ).view(4, 1, 1)
        members, costs = found.members[None, None], found.costs[None, None] * len(found.costs)
        inputs = InvariantInputs(nearest, second, gap, members, costs, tail[0])
        z = invariants_of_means(inputs, found.time)
        numbers, theta = self.model.numbers, self.model.theta.double()[None].to(z)
        heads = {name: part[0, 0] for name, part in numbers.evaluate(theta, z).items()}
        heads["belonging"] = heads["belonging"].view(-1, numbers.n_heads, numbers.n_heads)
        return Heads(**heads)


def plan_of(model: SymmetricModel, n_steps: int) -> SymmetricPlan:
    """Return the plan that runs `n_steps` steps of a model on any engine."""
    return SymmetricPlan(LearnedNumbers(model), max(1, n_steps))
