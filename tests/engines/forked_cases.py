"""Fits, predictions, circuits and training in forked children; run by test_after_fork.py.

Arguments: the names of the cases, or none for all. Prints one JSON object: for each case "same" if
the child gave the same bits as this process.
"""

import json
import sys
import warnings
from functools import partial
from multiprocessing import get_context
from threading import Thread
from typing import Any

import numpy as np
import torch
from forked import Case, compared, difference
from joblib import parallel_backend
from sklearn.model_selection import GridSearchCV

import lloydformer as lf
from lloydformer.estimators import ALGORITHMS

Arrays = list[np.ndarray]
ROWS = np.random.default_rng(0).normal(size=(40_000, 8)).astype(np.float32)
PROBLEMS = ROWS.reshape(40, 1000, 8)


def fit(kind: Any, **settings: Any) -> Arrays:
    model = kind(4, random_state=0, **settings).fit(ROWS)
    return [model.cluster_centers_, model.labels_, model.objective_history_]


def use(method: str) -> Arrays:
    model = lf.KMeans(4, random_state=0, max_iter=3).fit(ROWS)
    return [np.asarray(getattr(model, method)(ROWS))]


def batch(recipe: lf.Recipe) -> Arrays:
    found = lf.fit_batch(PROBLEMS, 4, recipe=recipe, max_iter=3, random_state=0)
    return [found.centers, found.labels, found.inertia]


def literal() -> Arrays:
    circuit = lf.Circuit(lf.recipes.lloyd(), n_features=8, n_clusters=4)
    trace = circuit(ROWS[:500], ROWS[:4], n_layers=2)
    return [trace.centers.numpy(), trace.labels.numpy()]


def scaled() -> Arrays:
    scaling = lf.data.open_dataset(ROWS, scale="standard").scaling
    assert scaling is not None
    return [scaling.shift.numpy(), scaling.scale.numpy()]


def trained() -> Arrays:
    """The last bits of training depend on the number of threads, in a fork as elsewhere."""
    tasks = lf.learning.Tasks(n_features=8, n_clusters=8, n_points=200)
    settings = lf.learning.Settings(tasks, n_steps=2, evaluate_every=2, n_validation=64)
    return [lf.learning.train(settings, device="cpu").weights.isfinite().all().numpy()]


def in_two_threads() -> Arrays:
    """First in a new thread, then in the main thread, which has inherited the pool."""
    found: Arrays = []
    thread = Thread(target=lambda: found.extend(use("predict")))
    thread.start()
    thread.join()
    return [*found, *use("predict")]


def searched(backend: str) -> Arrays:
    search = GridSearchCV(lf.KMeans(random_state=0, max_iter=3), {"n_clusters": [2, 3]}, cv=2)
    with parallel_backend(backend, n_jobs=2):
        search.fit(ROWS)
    return [search.cv_results_["mean_test_score"], search.best_estimator_.cluster_centers_]


def pooled() -> Arrays:
    with get_context("fork").Pool(2) as pool:
        return [array for (array,) in pool.map(use, ["predict", "transform"])]


def forked() -> dict[str, Case]:
    """Run in this process, then in a child."""
    found: dict[str, Case] = {}
    for engine in ("native", "chunked"):
        for name, known in ALGORITHMS.items():
            found[f"{engine} {name}"] = partial(fit, known.estimator, engine=engine, max_iter=3)
    found["learned"] = partial(fit, lf.LearnedKMeans)
    for method in ("predict", "transform", "score", "distances_to_centers"):
        found[method] = partial(use, method)
    for recipe in (lf.recipes.lloyd(), lf.recipes.soft(1.0)):
        found[f"batch of {recipe.name}"] = partial(batch, recipe)
    others = {
        "circuit": literal,
        "data.open_dataset": scaled,
        "train": trained,
        "threads": in_two_threads,
    }
    return {**found, **others}


def by_libraries() -> dict[str, tuple[Case, Case]]:
    """Pools of processes that fork, and the same without them."""
    one = partial(searched, "sequential")
    return {
        "joblib multiprocessing": (partial(searched, "multiprocessing"), one),
        "joblib loky": (partial(searched, "loky"), one),
        "pool": (pooled, lambda: [*use("predict"), *use("transform")]),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # three iterations are not enough
    assert torch.get_num_threads() > 1, "one thread never waits for another"
    use("transform")  # starts the threads of torch
    wanted = sys.argv[1:] or [*forked(), *by_libraries()]
    results = {name: compared(case) for name, case in forked().items() if name in wanted}
    for name, (many, one) in by_libraries().items():
        if name in wanted:
            results[name] = difference(one(), many())
    print(json.dumps(results))
