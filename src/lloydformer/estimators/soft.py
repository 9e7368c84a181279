"""Soft k-means."""

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from lloydformer import algorithms
from lloydformer.circuits import recipes
from lloydformer.circuits.recipe import Recipe
from lloydformer.estimators.base import Clusterer
from lloydformer.estimators.registry import RegisteredAlgorithm, register
from lloydformer.solving.rules import Rules


class SoftKMeans(Clusterer):
    r"""Soft k-means (alg:soft-kmeans): every point belongs to every cluster, near ones more.

    Shares are $p_{ij} \propto \exp(-\gamma \lVert x_i - c_j \rVert^2)$ with
    $\gamma$ = `inverse_temperature`, and centers are means weighted by shares. It descends the
    free energy $-\frac1\gamma \sum_i w_i \log \sum_j \exp(-\gamma \lVert x_i - c_j \rVert^2)$,
    which `objective_history_` follows; `inertia_` is the k-means objective of the final centers.
    A cluster whose weights vanish keeps its center.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{k: v for k, v in Clusterer._parameter_constraints.items() if k != "empty"},
        "inverse_temperature": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        n_clusters: int | Any = 8,
        *,
        inverse_temperature: float | Any = 1.0,
        init: Any = "k-means++",
        n_init: Any = "auto",
        max_iter: int | Any = 300,
        tol: float | Any = 1e-4,
        verbose: int | Any = 0,
        random_state: Any = None,
        engine: str | Any = "auto",
        device: Any = None,
        callback: Any = None,
        warm_start: bool | Any = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.inverse_temperature = inverse_temperature
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.engine = engine
        self.device = device
        self.callback = callback
        self.warm_start = warm_start

    def _rules(self) -> Rules:
        return Rules(int(self.max_iter), float(self.tol), empty="keep")

    def _recipe(self) -> Recipe:
        return recipes.soft(float(self.inverse_temperature))

    def predict_proba(self, X: Any) -> Any:
        """The shares of each row in each cluster, (n, k)."""
        gamma = float(self.inverse_temperature)
        return self._by_leaf(X, lambda rows, centers: (-gamma * rows.scores(centers)).softmax(1))


register(
    RegisteredAlgorithm(
        name="soft",
        estimator=SoftKMeans,
        recipe=recipes.soft,
        oracle=algorithms.Soft,
        summary="clusters that overlap; `predict_proba` gives shares",
    )
)
