"""K-means by a trained layer."""

from collections.abc import Iterator
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar

import torch
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from torch import Tensor

from lloydformer.circuits.recipe import Recipe
from lloydformer.data.blocks import Blocks
from lloydformer.data.scaling import Scaling, scaling_of
from lloydformer.engines import choose
from lloydformer.engines.contract import State
from lloydformer.estimators.base import Clusterer
from lloydformer.estimators.starts import Starts
from lloydformer.estimators.warm import warmed
from lloydformer.learning.cards import available
from lloydformer.learning.objective import smoothed_objective
from lloydformer.learning.pretrained import Pretrained, load
from lloydformer.plans.contract import Plan, Run
from lloydformer.plans.means import Means
from lloydformer.solve import Progress, Result, Rules, solve


class LearnedKMeans(Clusterer):
    """K-means by the layer that was trained for it (sec:results:train), n_steps times.

    pretrained: the name of weights in the package (`lf.learning.available()`), the path of a
    card that `lloydformer train` has written, or "auto" for those of the data's d and k. polish:
    at most so many iterations of Lloyd's algorithm from where the layer ends.

    Columns are scaled to [0, 1], as in training, and back. A step takes time that grows with n^2
    and memory that does not. What it has learned is the kind of data it was trained on; see
    docs/learning.md for what not to expect.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Clusterer._parameter_constraints,
        "pretrained": [str, Path],
        "n_steps": [Interval(Integral, 0, None, closed="left")],
        "polish": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters: int | Any = 10,
        *,
        pretrained: str | Path | Any = "auto",
        n_steps: int | Any = 10,
        polish: int | Any = 0,
        init: Any = "k-means++",
        n_init: Any = "auto",
        max_iter: int | Any = 300,
        tol: float | Any = 1e-4,
        verbose: int | Any = 0,
        random_state: Any = None,
        empty: str | Any = "farthest",
        engine: str | Any = "auto",
        device: Any = None,
        callback: Any = None,
        warm_start: bool | Any = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.pretrained = pretrained
        self.n_steps = n_steps
        self.polish = polish
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.empty = empty
        self.engine = engine
        self.device = device
        self.callback = callback
        self.warm_start = warm_start

    def _recipe(self) -> Recipe:
        return load(self.pretrained).settings.recipe

    def _plan(self, rng: Any = None) -> Plan:
        """Points are labelled by their nearest center."""
        return Means()

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "LearnedKMeans":
        """Cluster the rows of X."""
        if sample_weight is not None:
            raise ValueError("sample_weight: a trained layer has none; pass None, or use KMeans")
        source = self._read(X, reset=True)
        blocks = source.blocks
        self._check_size(blocks)
        trained = _fitting(self.pretrained, blocks.n_features, int(self.n_clusters))
        starts = Starts(warmed(self), X, blocks, check_random_state(self.random_state))
        self._n_init = starts.n_starts
        self._keep(self._best(trained, starts, blocks), source)
        return self

    def _best(self, trained: Pretrained, starts: Starts, blocks: Blocks) -> Result:
        points = blocks.take(torch.arange(blocks.n_rows, device=blocks.device))
        scaling = scaling_of(points.cpu(), "minmax")
        state, tried = State.of(blocks), []
        with choose(self.engine).over(blocks, state) as run:
            for number, centers in enumerate(starts(run, state)):
                path = _steps(trained, scaling, points, centers, int(self.n_steps))
                self._tell(number, path)
                tried.append(self._finished(run, state, blocks, path))
        best = min(tried, key=lambda result: result.inertia)
        return self._polished(best, blocks) if self.polish else best

    def _tell(self, number: int, path: list[tuple[Tensor, float]]) -> None:
        """Report each step, as the loop of the other estimators does."""
        if (report := self._report()) is None:
            return
        for step, ((before, objective), (after, _)) in enumerate(pairwise(path)):
            shift = (after - before).square().sum().item()
            report(Progress(number, step, objective, shift))

    def _finished(
        self, run: Run, state: State, blocks: Blocks, path: list[tuple[Tensor, float]]
    ) -> Result:
        state.clear()
        last = blocks.place(blocks.returned(path[-1][0]))
        final = self._plan().finish(run, last.to(blocks.dtype))
        history = (*(objective for _, objective in path[:-1]), final.objective)
        return Result(last, state.labels.clone(), final.inertia, history)

    def _polished(self, rough: Result, blocks: Blocks) -> Result:
        """Lloyd's algorithm from where the layer ends."""

        def start(run: Run, state: State) -> Iterator[Tensor]:
            yield rough.centers

        rules = Rules(int(self.polish), float(self.tol), self.empty)
        fine = solve(self._plan(), blocks, start, rules, choose(self.engine), self._report())
        history = (*rough.history[:-1], *fine.history)
        return Result(fine.centers, fine.labels, fine.inertia, history)


@torch.no_grad()
def _steps(
    trained: Pretrained, scaling: Scaling, points: Tensor, centers: Tensor, n_steps: int
) -> list[tuple[Tensor, float]]:
    """The centers before each step and after the last, with their objective in the data's units."""
    weights = trained.weights.to(points)
    scaled = scaling.apply(points)[None, None]
    path = [centers.double()]
    now = scaling.apply(centers.to(points))[None, None]
    for _ in range(n_steps):
        now = trained.layer(weights, scaled, now)
        path.append(scaling.undo(now[0, 0].double()))
    return [(c, float(smoothed_objective(points, c.to(points), smoothing="exact"))) for c in path]


def _fitting(pretrained: str | Path, n_features: int, n_clusters: int) -> Pretrained:
    """The weights, if they are for so many features and clusters."""
    name = f"d{n_features}-k{n_clusters}"
    missing = (
        f"the package has {', '.join(available())}; train the missing one with "
        f"'lloydformer train -d {n_features} -k {n_clusters} --output {name}' and pass "
        f"pretrained='{name}/{name}.json'"
    )
    if pretrained == "auto":
        if name not in available():
            raise ValueError(
                f"pretrained: found no weights for {n_features} features and {n_clusters} "
                f"clusters; {missing}"
            )
        return load(name)
    found = load(pretrained)
    s = found.settings
    if s.n_features != n_features or (s.codes is not None and s.n_clusters != n_clusters):
        raise ValueError(
            f"pretrained: {found.name} is for {s.n_features} features and {s.n_clusters} clusters, "
            f"and found {n_features} and {n_clusters}; {missing}"
        )
    return found
