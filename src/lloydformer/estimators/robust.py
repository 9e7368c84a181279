"""Robust k-means."""

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from lloydformer import algorithms
from lloydformer.circuits import recipes
from lloydformer.circuits.activations import TopK
from lloydformer.circuits.recipe import Recipe
from lloydformer.estimators.base import Clusterer
from lloydformer.estimators.registry import RegisteredAlgorithm, register


class RobustKMeans(Clusterer):
    r"""Robust k-means (alg:rob-kmeans): a cluster's points weigh less the farther they are.

    A center is the mean of its own points with weights given by `activation` ("sparsemax",
    "softmax" or `TopK(m)`) of $-\gamma \lVert x_i - c_j \rVert^2$, $\gamma$ =
    `inverse_temperature`. Sparsemax gives points beyond a threshold no weight at all.

    Weights of samples: the threshold solves $\sum_i w_i (z_i - \tau)_+ = 1$, as if a point of
    weight 2 were there twice. So the scale of the weights matters, as replication does: twice
    the weights is a narrower cluster, not the same one.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Clusterer._parameter_constraints,
        "inverse_temperature": [Interval(Real, 0, None, closed="neither")],
        "activation": [StrOptions({"sparsemax", "softmax"}), TopK],
    }

    def __init__(
        self,
        n_clusters: int | Any = 8,
        *,
        inverse_temperature: float | Any = 0.01,
        activation: Any = "sparsemax",
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
        self.inverse_temperature = inverse_temperature
        self.activation = activation
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
        return recipes.robust(float(self.inverse_temperature), self.activation)


register(
    RegisteredAlgorithm(
        name="robust",
        estimator=RobustKMeans,
        recipe=recipes.robust,
        oracle=algorithms.Robust,
        summary="far points, which weigh less and less",
    )
)
