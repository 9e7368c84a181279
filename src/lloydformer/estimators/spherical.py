"""Spherical k-means."""

from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions
from torch import Tensor

from lloydformer import algorithms
from lloydformer.circuits import recipes
from lloydformer.circuits.recipe import Recipe
from lloydformer.estimators.registry import RegisteredAlgorithm, register
from lloydformer.estimators.streaming import Streaming


class SphericalKMeans(Streaming):
    r"""Spherical k-means (alg:lloyds-sphere): rows are compared by their direction alone.

    Minimises $\sum_i w_i (1 - \cos(x_i, c_{a_i}))$ with centers of length 1. Rows need not be
    unit vectors. A row of zeros has no direction: `zero_rows="error"` refuses it, "ignore" lets it
    count for nothing. A cluster whose directions sum to zero keeps its center. `transform` gives
    cosine distances. CSR matrices stay sparse.
    """

    _accepts_sparse = True
    _directions = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Streaming._parameter_constraints,
        "zero_rows": [StrOptions({"error", "ignore"})],
    }

    def __init__(
        self,
        n_clusters: int | Any = 8,
        *,
        zero_rows: str | Any = "error",
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
        self.zero_rows = zero_rows
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
        return recipes.spherical()

    def _distance(self, squares: Tensor) -> Tensor:
        return squares / 2  # |x - c|^2 = 2 - 2 cos


register(
    RegisteredAlgorithm(
        name="spherical",
        estimator=SphericalKMeans,
        recipe=recipes.spherical,
        oracle=algorithms.Spherical,
        summary="only the direction of a row counts: text, embeddings",
    )
)
