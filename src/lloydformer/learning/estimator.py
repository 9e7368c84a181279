"""K-means by a trained layer."""

from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from lloydformer.estimators.base import Clusterer
from lloydformer.learning.cards import SYMMETRIC, available, located, read_card
from lloydformer.learning.courses import Learned, Rough, dense_steps, symmetric_steps
from lloydformer.learning.pretrained import Pretrained, load
from lloydformer.learning.symmetric.model import load_symmetric
from lloydformer.plans.contract import Plan
from lloydformer.plans.means import MeansPlan
from lloydformer.plans.session import Session
from lloydformer.solving.rules import Rules
from lloydformer.solving.solve import Course


class LearnedKMeans(Clusterer):
    """K-means by a layer that was trained for it, n_steps times, then Lloyd's algorithm.

    pretrained: "symmetric" is one layer for every n, d and k, whose weights commute with
    rotations, shifts, scale and the clusters' numbers. Others are the paper's layers
    (sec:results:train), for one d and k: the name of one (`lf.learning.available()`), or "auto"
    for that of the data's d and k. Or the path of a card that `lloydformer train` has written.

    polish: at most so many iterations of Lloyd's algorithm from where the layer ends.
    beside_lloyd: also run n_steps + polish iterations of Lloyd's algorithm from the same start,
    and keep what is better; so it is never worse than `KMeans` with as many iterations.

    A symmetric step takes up to ten times as long as an iteration of Lloyd's algorithm, and runs
    wherever that runs, with weights of points. The paper's layers scale columns to [0, 1] and
    back, take time that grows with n^2, and know no weights. See docs/learning.md for what to
    expect.
    """

    _accepts_sparse = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{k: v for k, v in Clusterer._parameter_constraints.items() if k != "max_iter"},
        "pretrained": [str, Path],
        "n_steps": [Interval(Integral, 0, None, closed="left")],
        "polish": [Interval(Integral, 0, None, closed="left")],
        "beside_lloyd": ["boolean"],
    }

    def __init__(
        self,
        n_clusters: int | Any = 8,
        *,
        init: Any = "k-means++",
        n_init: Any = "auto",
        n_steps: int | Any = 10,
        polish: int | Any = 10,
        beside_lloyd: bool | Any = True,
        pretrained: str | Path | Any = SYMMETRIC,
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
        self.init = init
        self.n_init = n_init
        self.n_steps = n_steps
        self.polish = polish
        self.beside_lloyd = beside_lloyd
        self.pretrained = pretrained
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.empty = empty
        self.engine = engine
        self.device = device
        self.callback = callback
        self.warm_start = warm_start

    def _plan(self, rng: Any = None) -> Plan:
        """Lloyd's plan: labels by the nearest center, and the polish."""
        return MeansPlan()

    def _rules(self) -> Rules:
        return Rules(int(self.polish), float(self.tol), self.empty)

    def _course(self, session: Session, rng: Any) -> Course:
        return Learned(
            self._rough(session), int(self.n_steps), int(self.polish), bool(self.beside_lloyd)
        )

    def _rough(self, session: Session) -> Rough:
        pretrained, n_steps = self.pretrained, int(self.n_steps)
        if pretrained != "auto" and read_card(*located(pretrained)).get("kind") == SYMMETRIC:
            return symmetric_steps(load_symmetric(pretrained), n_steps)
        if session.layout.weighted:
            raise ValueError(
                "sample_weight: a trained layer for one d and k has none; pass None, or "
                f'pretrained="{SYMMETRIC}"'
            )
        trained = _fitting(pretrained, session.layout.n_features, int(self.n_clusters))
        return dense_steps(trained, session, n_steps)


def _fitting(pretrained: str | Path, n_features: int, n_clusters: int) -> Pretrained:
    """Load the weights; raises `ValueError` if they are for another d or k."""
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
