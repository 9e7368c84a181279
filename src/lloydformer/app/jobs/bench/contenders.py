"""The contenders: estimators of this package and of others, with one interface."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from typing import Any

import numpy as np
import sklearn.cluster
import torch
from threadpoolctl import threadpool_limits

import lloydformer as lf
from lloydformer.app.jobs.bench.measure import BenchProblem, Contender, Fitted, Prepare, TimedCall
from lloydformer.app.jobs.torch_threads import torch_threads
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines.native import Native
from lloydformer.estimators import ALGORITHMS
from lloydformer.plans.assign import NearestSums

# Returns an estimator with scikit-learn's interface, from its parameters.
EstimatorMaker = Callable[..., Any]


def estimator_contender(
    name: str, package: str, make: EstimatorMaker, streaming: EstimatorMaker | None = None
) -> Contender:
    """Return an estimator as a contender; `streaming` makes the one for fits in batches."""
    prepare: dict[str, Prepare] = {"fit": partial(prepare_fit, make)}
    for work in ("predict", "transform", "score"):
        prepare[work] = partial(prepare_model_call, make)
    if streaming is not None:
        prepare["partial_fit"] = partial(prepare_partial_fit, streaming)
        prepare["minibatch"] = partial(prepare_minibatch, streaming)
    return Contender(name, package, prepare)


def _build(make: EstimatorMaker, problem: BenchProblem, seed: int) -> Any:
    """Return the estimator with the settings of the problem."""
    init = "k-means++" if problem.start is None else problem.start
    stop = {"max_iter": problem.max_iter, "tol": problem.tol}
    return make(n_clusters=problem.n_clusters, init=init, n_init=1, random_state=seed, **stop)


def prepare_fit(
    make: EstimatorMaker, problem: BenchProblem, finish: Callable[[Any], None] = lambda model: None
) -> TimedCall:
    """Return one whole fit; `finish` is called with the fitted model, as a part of the call."""

    def fit(seed: int) -> Fitted:
        model = _build(make, problem, seed).fit(problem.points)
        finish(model)
        return Fitted(model.cluster_centers_, int(model.n_iter_))

    return fit


def prepare_model_call(make: EstimatorMaker, problem: BenchProblem) -> TimedCall:
    """Return a call of a fitted model whose centers are the start."""
    # One iteration on the rows of the start, each twice, moves no center.
    rows = np.tile(problem.start, (2, 1))
    model = _build(make, replace(problem, max_iter=1), 0).fit(rows)

    def call(seed: int) -> Fitted:
        output = getattr(model, problem.work)(problem.points)
        return Fitted(model.cluster_centers_, 1, None if problem.work == "score" else output)

    return call


def prepare_partial_fit(make: EstimatorMaker, problem: BenchProblem) -> TimedCall:
    """Return partial_fit of all points, batch by batch."""

    def fit(seed: int) -> Fitted:
        model = make(problem.n_clusters, init=problem.start, n_init=1, random_state=seed)
        starts = range(0, len(problem.points), problem.batch)
        for start in starts:
            model.partial_fit(problem.points[start : start + problem.batch])
        return Fitted(model.cluster_centers_, len(starts))

    return fit


def prepare_minibatch(make: EstimatorMaker, problem: BenchProblem) -> TimedCall:
    """Return a fit in batches, which chooses its start itself."""
    return prepare_fit(partial(make, batch_size=problem.batch), replace(problem, start=None))


def check_onedal(model: Any) -> None:
    """Raise ValueError if scikit-learn-intelex fell back to scikit-learn."""
    if not hasattr(model, "_onedal_estimator"):
        raise ValueError(
            "scikit-learn-intelex: it used scikit-learn in place of oneDAL; leave "
            "it out with --without scikit-learn-intelex"
        )


def prepare_faiss_fit(problem: BenchProblem) -> TimedCall:
    """Return faiss.Kmeans. It has no `tol`, and stops early only if nothing changes."""
    n, d = problem.points.shape
    # By default faiss takes 256 points for each center; the others use all points.
    every = {"min_points_per_centroid": 1, "max_points_per_centroid": n}
    how = {"niter": problem.max_iter, "nredo": 1, "spherical": False, "verbose": False, **every}

    def fit(seed: int) -> Fitted:
        model = import_module("faiss").Kmeans(d, problem.n_clusters, seed=seed, **how)
        model.train(problem.points, init_centroids=problem.start)
        return Fitted(np.asarray(model.centroids), len(model.obj))

    return fit


def prepare_faiss_search(problem: BenchProblem) -> TimedCall:
    """Return a search of all points in an index of the centers."""
    index = import_module("faiss").IndexFlatL2(problem.points.shape[1])
    index.add(problem.start)
    return lambda seed: Fitted(problem.start, 1, index.search(problem.points, 1)[1][:, 0])


def prepare_pass(problem: BenchProblem) -> TimedCall:
    """Return one pass of the native engine: labels, sums and masses, without bounds."""
    # With their own origin, as in a fit: seen from far away, bounds of rounding rule out little.
    blocks = TensorBlocks(torch.from_numpy(problem.points))
    centers = blocks.layout.to_row_units(torch.from_numpy(problem.start)).to(blocks.dtype)
    opened = ExitStack()
    session = opened.enter_context(Native(bounded=False).open(blocks))

    def run(seed: int, opened: ExitStack = opened) -> Fitted:  # the session closes with this call
        session.forget()
        session.fold(NearestSums(centers))
        return Fitted(problem.start, 1, session.labels().numpy())

    return run


def prepare_product(
    product: Callable[..., Any], array: Callable[[np.ndarray], Any], problem: BenchProblem
) -> TimedCall:
    """Return the matrix product of points and centers alone, which every pass contains."""
    points, centers = array(problem.points), array(problem.start)
    out = product(points, centers.T)  # allocated before, as the pass has its memory

    def multiply(seed: int) -> Fitted:
        product(points, centers.T, out=out)
        return Fitted(problem.start, 1)

    return multiply


OURS = estimator_contender("lloydformer", "lloydformer", lf.KMeans, lf.KMeans)
CHUNKED = estimator_contender(
    "lloydformer, chunked", "lloydformer", partial(lf.KMeans, engine="chunked")
)
LLOYD = estimator_contender(
    "scikit-learn", "scikit-learn", sklearn.cluster.KMeans, sklearn.cluster.MiniBatchKMeans
)
ELKAN = estimator_contender(
    "scikit-learn, elkan", "scikit-learn", partial(sklearn.cluster.KMeans, algorithm="elkan")
)


PASS = Contender("lloydformer", "lloydformer", {"pass": prepare_pass})
PRODUCTS = (
    Contender("sgemm of NumPy", "numpy", {"pass": partial(prepare_product, np.matmul, np.asarray)}),
    Contender(
        "sgemm of torch", "torch", {"pass": partial(prepare_product, torch.mm, torch.from_numpy)}
    ),
)


def our_algorithms() -> list[Contender]:
    """Return the algorithms whose fit is a sequence of equal iterations; k-means is the first."""
    contenders = []
    for known in sorted(ALGORITHMS.values(), key=lambda known: known.name != "kmeans"):
        # A parameter `patience` marks algorithms that try moves, and keep those that help.
        if "patience" in known.estimator().get_params():
            continue
        # The recipe's inverse temperature: to find one from the data is not part of an iteration.
        usual = signature(known.recipe).parameters.get("inverse_temperature")
        default = getattr(usual, "default", None)
        settings = {} if default is None else {"inverse_temperature": default}
        make = partial(known.estimator, **settings)
        contenders.append(estimator_contender(known.estimator.__name__, "lloydformer", make))
    return contenders


# Optional peers by package, and the module to look for.
OPTIONAL = {"scikit-learn-intelex": "sklearnex", "faiss-cpu": "faiss"}


def missing_packages() -> list[str]:
    """Return the optional packages that are not installed."""
    return [package for package, module in OPTIONAL.items() if find_spec(module) is None]


def optional_contenders(with_tol: bool = False) -> list[Contender]:
    """Return the optional contenders that are installed; `with_tol`: only those that have a tol."""
    contenders, missing = [], missing_packages()
    if (name := "scikit-learn-intelex") not in missing:
        make = import_module("sklearnex.cluster").KMeans
        # Other works of its estimator are scikit-learn's own.
        fit = partial(prepare_fit, make, finish=check_onedal)
        predict = partial(prepare_model_call, make)
        contenders.append(Contender(name, name, {"fit": fit, "predict": predict}))
    if (name := "faiss-cpu") not in missing and not with_tol:
        prepare = {"fit": prepare_faiss_fit, "predict": prepare_faiss_search}
        contenders.append(Contender(name, name, prepare))
    return contenders


@contextmanager
def limit_threads(n_threads: int) -> Iterator[None]:
    """Limit OpenMP, BLAS, torch, faiss and oneDAL (which uses TBB) to `n_threads` threads."""
    # threadpoolctl finds libraries that are loaded, and neither TBB nor what is imported later.
    if find_spec("faiss") is not None:
        import_module("faiss").omp_set_num_threads(n_threads)
    if find_spec("daal4py") is not None:
        import_module("daal4py").daalinit(n_threads)
    with torch_threads(n_threads), threadpool_limits(n_threads):
        yield
