"""Settings of training: those that runs trained together share, and those of a single run."""

import math
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, cast

from lloydformer.circuits import recipes
from lloydformer.circuits.activations import Sparsemax
from lloydformer.circuits.projections import Dense
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.scores import Scaled
from lloydformer.circuits.serialise import deserialise, serialise
from lloydformer.circuits.stages import AnyRecipe, Staged
from lloydformer.circuits.subspaces import ASSIGNMENT
from lloydformer.learning.families import FAMILIES
from lloydformer.learning.objective import SMOOTHINGS
from lloydformer.learning.stacked_layer import (
    CircuitLayer,
    FlatLayer,
    StackedLayer,
    is_dot_product,
)
from lloydformer.learning.tasks import Tasks, ends_of
from lloydformer.numerics.checks import require

CODES = ("onehot", "binary", None)
DECODERS = ("euclidean", "dot")
ACTIVATIONS = ("softmax", "sparsemax")
SCHEDULES = ("plateau", "cosine", "constant")
STARTS = ("random", "constructed")

# Fields that cards of earlier versions do not have, with the values that they had then.
_LATER: dict[str, Any] = {
    "base": None,
    "start": "random",
    "start_noise": 0.0,
    "decoder": "euclidean",
}

# Sizes beyond any memory are refused before tasks or layers are made: a layer has the square of
# d + k weights, 1 GiB each in float32 at 2^14; a batch of 2^40 numbers is 4 TiB.
_WIDEST = 1 << 14
_NUMBERS = 1 << 40


@dataclass(frozen=True)
class Run:
    """Set up one training run.

    Runs that are trained together share a `Settings`.

    Parameters
    ----------
    seed : int, default=0
        Seed of the initial weights, the tasks and the dropout, not negative.
    loss_temperature : float, default=0.1
        The paper's lambda, the temperature of the smoothed objective.
    family : str, default="normal"
        Family of the tasks: "normal", "cauchy", "gumbel", "laplace" or "lognormal".

    Raises
    ------
    ValueError
        If an argument is out of range.

    See Also
    --------
    Settings : What runs trained together share.
    train : Train runs.

    Examples
    --------
    >>> import lloydformer as lf
    >>> lf.learning.Run(seed=1, family="laplace")
    Run(seed=1, loss_temperature=0.1, family='laplace')
    """

    seed: int = 0
    loss_temperature: float = 0.1
    family: str = "normal"

    def __post_init__(self) -> None:
        seed, temperature, family = self.seed, self.loss_temperature, self.family
        in_range = type(seed) is int and 0 <= seed < 2**63
        require(in_range, "seed", seed, "pass an integer from 0 to 2^63 - 1")
        positive = 0 < temperature < math.inf
        require(positive, "loss_temperature", temperature, "pass a positive finite number")
        require(family in FAMILIES, "family", family, f"pass one of {', '.join(FAMILIES)}")


@dataclass(frozen=True)
class Settings:
    """Set up training, for all runs that are trained together.

    The defaults are the paper's protocol (asec:trf-train).

    Parameters
    ----------
    tasks : Tasks, default=Tasks()
        Distribution of the tasks.
    codes : {"onehot", "binary", None}, default="onehot"
        How tokens name their cluster; None for tokens without names, which serve any number of
        clusters.
    bias : bool, default=True
        Whether the projections have a bias.
    scaled : bool, default=True
        Whether scores are divided by the root of the token dimension.
    activation : {"softmax", "sparsemax"}, default="softmax"
        Activation of the heads.
    dropout : float, default=0.01
        Probability that an attention weight is dropped in a training step.
    smoothing : {"softmax", "sparsemax", "exact"}, default="softmax"
        Smoothing of the objective that is the loss.
    n_unrolled : int, default=1
        Number of layers that are applied before the loss.
    n_steps : int, default=10000
        Number of training steps.
    batch_size : int, default=32
        Tasks of each run in a step.
    learning_rate : float, default=0.01
        Initial learning rate.
    schedule : {"plateau", "cosine", "constant"}, default="plateau"
        Learning rate schedule. "plateau" halves the rate of a run when its validation has not
        improved for `patience` evaluations.
    patience : int, default=5
        Evaluations without improvement that "plateau" waits for.
    clip : float or None, default=None
        Upper bound of the norm of a run's gradient; None for no bound.
    evaluate_every : int, default=50
        Steps between evaluations.
    n_validation : int, default=320
        Validation tasks of each run.
    base : Recipe or None, default=None
        A recipe with constructed weights, which are trained, or with free ones that are not those
        of a learned layer. None trains the learned layer that `codes`, `bias`, `scaled`,
        `activation`, `dropout` and `decoder` describe.
    start : {"random", "constructed"}, default="random"
        Weights before the first step. "constructed" are those of `base`, or for the learned layer
        weights with which it does nearly a step of Lloyd's algorithm.
    start_noise : float, default=0.0
        Standard deviation of normal noise that is added to constructed weights, by the seed of
        each run.
    decoder : {"euclidean", "dot"}, default="euclidean"
        Scores of the decoder's heads. The text's eq:l2-trf-updates has "dot", with `bias=False`.

    Raises
    ------
    ValueError
        If an argument is out of range, if `codes` name clusters whose number is a range, or if
        there is no such start.

    See Also
    --------
    Run : What each run has alone.
    train : Train runs with these settings.

    Examples
    --------
    >>> import lloydformer as lf
    >>> tasks = lf.learning.Tasks(n_features=2, n_clusters=3, n_points=64)
    >>> settings = lf.learning.Settings(tasks=tasks, n_steps=100)
    >>> settings.name, settings.learning_rate
    ('d2-k3', 0.01)
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
    base: Recipe | None = None
    start: str = "random"
    start_noise: float = 0.0
    decoder: str = "euclidean"

    def __post_init__(self) -> None:
        steps = ("n_steps", "n_unrolled", "evaluate_every", "patience")
        for name in (*steps, "batch_size", "n_validation"):
            value = getattr(self, name)
            require(type(value) is int and value >= 1, name, value, "pass a positive integer")
        for name in ("learning_rate", "clip"):
            value = getattr(self, name)
            positive = value is None or 0 < value < math.inf
            require(positive, name, value, "pass a positive finite number")
        choices: dict[str, tuple[str | None, ...]] = {
            "codes": CODES,
            "activation": ACTIVATIONS,
            "smoothing": SMOOTHINGS,
            "schedule": SCHEDULES,
            "start": STARTS,
            "decoder": DECODERS,
        }
        for name, known in choices.items():
            value = getattr(self, name)
            require(value in known, name, value, f"pass one of {', '.join(map(str, known))}")
        if self.n_features + self.n_clusters > _WIDEST:
            raise ValueError(
                f"tasks: found {self.n_features} features and {self.n_clusters} clusters; pass at "
                f"most {_WIDEST} together, as a layer has the square of that many weights"
            )
        for name in ("batch_size", "n_validation"):
            numbers = getattr(self, name) * self.tasks.n_numbers
            if numbers > _NUMBERS:
                raise ValueError(
                    f"{name}: found {getattr(self, name)} tasks of {self.tasks.n_numbers} "
                    "numbers; pass fewer or smaller tasks"
                )
        has_names = ASSIGNMENT in self.recipe.tokens.subspaces
        if has_names and not isinstance(self.tasks.n_clusters, int):
            raise ValueError(
                "codes: a circuit that names its clusters has a fixed number of them; pass "
                "n_clusters as one number, or codes=None"
            )
        _ = self.layer  # raises ValueError for a recipe that cannot be trained
        self._check_start(has_names)

    def _check_start(self, has_names: bool) -> None:
        in_range = 0 <= self.start_noise < math.inf
        require(in_range, "start_noise", self.start_noise, "pass 0 or a positive finite number")
        is_free = self.base is not None and self.base.free
        if self.start == "random" and self.base is not None and not is_free:
            raise ValueError(
                f"start: found 'random' for the recipe {self.base.name!r}, whose weights are "
                "constructed; pass start='constructed'"
            )
        if self.start == "constructed" and is_free:
            raise ValueError(
                f"start: found 'constructed' for the recipe {self.recipe.name!r}, for whose free "
                "weights no construction is known; pass start='random', or lf.recipes.learned(...)"
            )
        if self.start == "random" and self.start_noise:
            raise ValueError("start_noise: is for start='constructed'; random weights have noise")
        if self.start == "constructed" and not has_names:
            raise ValueError(
                "start: there is no construction with codes=None, where points cannot hold their "
                "assignment; pass codes='onehot' or 'binary', or start='random'"
            )

    @property
    def recipe(self) -> Recipe:
        """Build the recipe of the layer that is trained.

        See Also
        --------
        lloydformer.recipes.learned : The recipe of trainable layers.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.learning.Settings().recipe.name
        'learned'
        """
        if self.base is not None:
            return self.base
        codes, activation = cast(Any, self.codes), cast(Any, self.activation)  # were checked
        options = (codes, self.bias, self.scaled, activation, self.dropout)
        return recipes.learned(*options, cast(Any, self.decoder))

    @property
    def layer(self) -> FlatLayer:
        """Build the layer that is trained: a function of weights, points and centers.

        See Also
        --------
        compare : Compare a layer with Lloyd's algorithm.

        Examples
        --------
        >>> import lloydformer as lf
        >>> sum(shape.numel() for shape in lf.learning.Settings().layer.shapes.values())
        21672
        """
        kind = StackedLayer if self.base is None else CircuitLayer
        return kind(self.recipe, self.n_features, self.n_clusters)

    def with_recipe(self, recipe: AnyRecipe, start: str | None = None) -> "Settings":
        """Return these settings for another recipe.

        Parameters
        ----------
        recipe : Recipe
            `lf.recipes.learned(...)`, a recipe with constructed weights, or any other with free
            weights.
        start : {"random", "constructed"} or None, default=None
            Weights before the first step; None for that of these settings.

        Returns
        -------
        Settings
            The settings.

        Raises
        ------
        ValueError
            If the recipe cannot be trained.

        See Also
        --------
        lloydformer.recipes.straight_through : Makes hard choices trainable.

        Examples
        --------
        >>> import lloydformer as lf
        >>> settings = lf.learning.Settings(n_steps=7)
        >>> settings.with_recipe(lf.recipes.learned("binary", dropout=0.0)).codes
        'binary'
        >>> settings.with_recipe(lf.recipes.soft(30.0), start="constructed").recipe.name
        'soft'
        """
        if isinstance(recipe, Staged):
            raise ValueError(
                f"recipe: found {recipe.name!r}, which has several sub-layers; pass a recipe of "
                "one layer"
            )
        start = start or self.start
        if not recipe.free:
            return replace(self, start=start, base=recipe)
        head = recipe.encoder_cross
        codes = {recipes.learned(cast(Any, codes)).tokens: codes for codes in CODES}
        options: dict[str, Any] = {
            "codes": codes.get(recipe.tokens),
            "bias": isinstance(head.query, Dense) and head.query.bias,
            "scaled": isinstance(head.score, Scaled),
            "activation": "sparsemax" if isinstance(head.activation, Sparsemax) else "softmax",
            "dropout": head.dropout,
            "decoder": "dot" if is_dot_product(recipe.decoder_cross.score) else "euclidean",
        }
        # Only two heads were looked at. A recipe that these options do not make is trained as a
        # circuit, which is slower than the learned layers.
        if recipe.tokens not in codes or recipes.learned(**options) != recipe:
            return replace(self, start=start, base=recipe)
        return replace(self, start=start, base=None, **options)

    @property
    def n_features(self) -> int:
        """Return the number of features of the layer, the largest of the tasks.

        See Also
        --------
        Tasks : Has the range of the tasks.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.learning.Settings(lf.learning.Tasks(n_features=(2, 8))).n_features
        8
        """
        return ends_of(self.tasks.n_features)[1]

    @property
    def n_clusters(self) -> int:
        """Return the number of clusters of the layer, the largest of the tasks.

        See Also
        --------
        Tasks : Has the range of the tasks.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.learning.Settings().n_clusters
        10
        """
        return ends_of(self.tasks.n_clusters)[1]

    @property
    def name(self) -> str:
        """Return the name of trained weights, by their number of features and of clusters.

        See Also
        --------
        available : Names of the weights in the package.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.learning.Settings().name
        'd32-k10'
        """
        return f"d{self.n_features}-k{self.n_clusters}"

    def written(self) -> dict[str, Any]:
        """Serialise the settings as JSON values, for cards and checkpoints.

        Returns
        -------
        dict
            The fields by name.

        See Also
        --------
        Settings.read : The inverse.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.learning.Settings().written()["batch_size"]
        32
        """
        base = None if self.base is None else serialise(self.base)
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**plain, "tasks": asdict(self.tasks), "base": base}

    @classmethod
    def read(cls, found: dict[str, Any]) -> "Settings":
        """Build settings from what `written` returned.

        Parameters
        ----------
        found : dict
            The fields by name, all of them; cards of earlier versions lack those of the start.

        Returns
        -------
        Settings
            The settings.

        Raises
        ------
        ValueError
            If a field is missing, unknown or out of range.

        See Also
        --------
        Settings.written : The inverse.

        Examples
        --------
        >>> import lloydformer as lf
        >>> settings = lf.learning.Settings(n_steps=7)
        >>> lf.learning.Settings.read(settings.written()) == settings
        True
        """
        known = {f.name for f in fields(cls)}
        if not isinstance(found, dict) or (_LATER | found).keys() != known:
            raise ValueError(f"settings: found {sorted(found)}; pass {sorted(known)}")
        tasks: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in found["tasks"].items()
        }
        base = None if found.get("base") is None else deserialise(found["base"])
        return cls(**{**found, "tasks": Tasks(**tasks), "base": base})
