"""What the tests of ranks run in each of several processes, which are started once.

python rank_program.py FOLDER forks the ranks, after the imports. Rank r writes FOLDER/r.pickle: for
each number of ranks and each case what it found.
"""

import os
import pickle
import sys
import time
import traceback
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

import lloydformer as lf
from lloydformer.engines.ranks import join_ranks
from lloydformer.solving.rules import Rules

SIZES = (3, 2, 1)
LIMIT = timedelta(seconds=30)
N, D, K = 20_000, 6, 40
"""Three leaves, and more than what one call of a kernel solves."""


def points(n=N, d=D, dtype=np.float32):
    rng = np.random.default_rng(1)
    middles = rng.uniform(-4, 4, size=(12, d))
    return (rng.normal(size=(n, d)) + middles[rng.integers(12, size=n)]).astype(dtype)


def weights(n=N):
    return np.random.default_rng(2).integers(0, 4, size=n) / 3


def ends(n, size):
    """Where shards end: uneven, not at leaves, and of three the second is empty."""
    return {1: [0, n], 2: [0, n // 8, n], 3: [0, 6 * n // 10, 6 * n // 10, n]}[size]


ROWS = {"init": "random", "n_init": 1}
"""k-means++ takes an exchange for each seed, and is tried once."""
FITS = {
    "kmeans": lambda: lf.KMeans(K, max_iter=6),
    "kmeans, weights": lambda: lf.KMeans(K, init="random", n_init=2, max_iter=4),
    "kmeans, oversampling": lambda: lf.KMeans(K, init="k-means||", max_iter=4),
    "kmeans, small": lambda: lf.KMeans(9, max_iter=6),
    "kmeans, batches, weights": lambda: lf.KMeans(K, batch_size=500, max_iter=2),
    "kmeans, float64": lambda: lf.KMeans(K, max_iter=3, **ROWS),
    "soft": lambda: lf.SoftKMeans(K, inverse_temperature=2.0, max_iter=3, **ROWS),
    "spherical": lambda: lf.SphericalKMeans(K, max_iter=4, **ROWS),
    "spherical, weights": lambda: lf.SphericalKMeans(K, max_iter=3, zero_rows="ignore", **ROWS),
    "trimmed": lambda: lf.TrimmedKMeans(K, keep=0.9, max_iter=3, **ROWS),
    "constrained": lambda: lf.ConstrainedKMeans(K, size_max=2 / K, max_iter=2, **ROWS),
    "robust": lambda: lf.RobustKMeans(K, inverse_temperature=0.05, max_iter=2, **ROWS),
    "medoids": lambda: lf.KMedoids(K, effort="low", max_iter=8, **ROWS),
    "medoids, weights": lambda: lf.KMedoids(K, metric="manhattan", max_iter=4, **ROWS),
    "medoids, paper": lambda: lf.KMedoids(K, method="paper", max_iter=3, **ROWS),
    "relocating": lambda: lf.RelocatingKMeans(K, max_iter=30, tol=0.03, **ROWS),
    "learned": lambda: lf.LearnedKMeans(K, n_steps=2, max_iter=2, **ROWS),
    "circuit": lambda: lf.CircuitClusterer(K, recipe=lf.recipes.lloyd(), max_iter=3, **ROWS),
}


def data_of(name):
    """Points and weights of a case."""
    X = points(500 if "small" in name else N, dtype=np.float64 if "64" in name else np.float32)
    if name == "spherical, weights":
        X[[5, 15_000]] = 0
    return X, weights(len(X)) if "weights" in name else None


def shard_of(X, rank, size):
    end = ends(len(X), size)
    return slice(end[rank], end[rank + 1])


def fitted(name, rank, size):
    """The case on this rank: centers, labels, inertia, history."""
    X, weight = data_of(name)
    mine = shard_of(X, rank, size)
    model = FITS[name]().set_params(random_state=3)
    model.fit(lf.Shard(X[mine]), sample_weight=None if weight is None else weight[mine])
    return attributes(model)


def attributes(model):
    return {"centers": model.cluster_centers_, "labels": model.labels_,
            "inertia": model.inertia_, "history": model.objective_history_,
            "rows": getattr(model, "medoid_indices_", None)}  # fmt: skip


def with_nan(X, rank, size):
    X = X.copy()
    X[-1] = np.nan if rank == size - 1 else X[-1]
    return lf.KMeans(3), lf.Shard(X), None


def other_width(X, rank, size):
    return lf.KMeans(3), lf.Shard(X[:, : 2 if rank == size - 1 else D]), None


def other_clusters(X, rank, size):
    return lf.KMeans(3 if rank < size - 1 else 4), lf.Shard(X), None


def wrong_clusters(X, rank, size):
    return lf.KMeans(3 if rank < size - 1 else -1), lf.Shard(X), None


def other_start(X, rank, size):
    return lf.KMeans(3, init=X[rank : rank + 3]), lf.Shard(X), None


def one_weight(X, rank, size):
    return lf.KMeans(3), lf.Shard(X), np.ones(len(X)) if rank == 0 else None


def no_weight(X, rank, size):
    return lf.KMeans(3), lf.Shard(X), np.zeros(len(X))


def no_rows(X, rank, size):
    return lf.KMeans(3), lf.Shard(X[:0]), None


def few_rows(X, rank, size):
    return lf.KMeans(3), lf.Shard(X[: 2 if rank == 0 else 0]), None


def zeros(X, rank, size):
    X = X.copy()
    X[7] = 0 if rank == size - 1 else X[7]
    return lf.SphericalKMeans(3), lf.Shard(X), None


def function_as_start(X, rank, size):
    return lf.KMeans(3, init=lambda X, k, random_state: X[:k]), lf.Shard(X), None


ERRORS = {
    one.__name__: one
    for one in (with_nan, other_width, other_clusters, wrong_clusters, other_start, one_weight,
                no_weight, no_rows, few_rows, zeros, function_as_start)
}  # fmt: skip


def error_of(name, rank, size):
    model, X, weight = ERRORS[name](points(60), rank, size)
    try:
        model.fit(X, sample_weight=weight)
    except ValueError as error:
        return str(error)
    return None


def trained(rank, size, folder):
    settings = lf.learning.Settings(
        lf.learning.Tasks(2, 3, 20), n_steps=4, evaluate_every=2, n_validation=4, batch_size=2
    )
    runs = [lf.learning.Run(seed) for seed in range(3)]
    found = lf.learning.train(
        settings, runs, device="cpu", folder=folder, together=1, ranks=join_ranks()
    )
    return found.weights, found.history


def different_seeds(rank, size):
    """Another random state on each rank: they must agree on one all the same."""
    model = lf.KMeans(K, init="random", n_init=1, max_iter=2, random_state=rank)
    return model.fit(lf.Shard(points()[rank::size])).cluster_centers_


def raising_callback(rank, size):
    """The callback of the last rank raises."""

    def stop(progress):
        if progress.iteration == 2 and rank == size - 1:
            raise ZeroDivisionError("in the callback")

    return lf.KMeans(K, max_iter=5, random_state=3, callback=stop, **ROWS)


def own_warm_start(rank, size):
    """The last rank was fitted before, alone."""
    model = lf.KMeans(K, max_iter=5, random_state=3, warm_start=True, **ROWS)
    return model.fit(points(200)) if rank == size - 1 else model


def another_course(rank, size):
    """The last rank runs another loop than its parameters say."""
    model = lf.KMeans(K, max_iter=5, random_state=3, **ROWS)
    if rank == size - 1:
        model._rules = lambda: Rules(2)
    return model


def interrupted(rank, size):
    """Ctrl-C reaches the last rank only."""

    def stop(progress):
        if progress.iteration == 2 and rank == size - 1:
            raise KeyboardInterrupt

    return lf.KMeans(K, max_iter=5, random_state=3, callback=stop, **ROWS)


ALONE = {
    one.__name__: one for one in (raising_callback, own_warm_start, another_course, interrupted)
}


def alone(name, rank, size):
    """The error if one rank does not do what the others do, and the time until it is raised."""
    X, began = points(), time.monotonic()
    try:
        ALONE[name](rank, size).fit(lf.Shard(X[shard_of(X, rank, size)]))
    except BaseException as error:
        return repr(error), time.monotonic() - began
    return None, time.monotonic() - began


def resumed(rank, size, path):
    """A fit that every rank breaks off after its fourth iteration, and one that goes on."""
    X, model = points(), lf.KMeans(K, max_iter=9, random_state=3, checkpoint=path, **ROWS)
    shard, heard = lf.Shard(X[shard_of(X, rank, size)]), []

    def stop(progress):
        if progress.iteration == 3:
            raise ZeroDivisionError

    try:
        model.set_params(callback=stop).fit(shard)
    except ZeroDivisionError:
        model.set_params(callback=heard.append).fit(shard)
    return attributes(model), heard[0].iteration, path.exists()


def vanished(folder, rank):
    """A rank is gone: the error that another one gets, and after how many seconds."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/vanished", rank=rank,
                            world_size=3, timeout=LIMIT)  # fmt: skip
    if rank == 2:
        return None
    began = time.monotonic()
    try:
        lf.KMeans(3).fit(lf.Shard(points(100)))
    except RuntimeError as error:
        return str(error), time.monotonic() - began
    return None


def run_rank(folder, rank):
    found = {}
    for size in SIZES:
        if rank >= size:
            continue
        dist.init_process_group("gloo", init_method=f"file://{folder}/store-{size}", rank=rank,
                                world_size=size, timeout=LIMIT)  # fmt: skip
        found[size] = {
            "fits": {name: fitted(name, rank, size) for name in FITS},
            "errors": {name: error_of(name, rank, size) for name in ERRORS},
            "alone": {name: alone(name, rank, size) for name in ALONE},
            "trained": trained(rank, size, folder / f"trained-{size}"),
            "seeds": different_seeds(rank, size),
            "resumed": resumed(rank, size, folder / f"fit-{size}"),
        }
        dist.destroy_process_group()
    found["vanished"] = vanished(folder, rank)
    (folder / f"{rank}.pickle").write_bytes(pickle.dumps(found))


def main(folder):
    """Fork the ranks, and end with an error if one of them does."""
    torch.set_num_threads(1)
    for make in FITS.values():
        make()  # imports
    children = []
    for rank in range(max(SIZES)):
        child = os.fork()
        if child == 0:
            try:
                run_rank(folder, rank)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        children.append(child)
    ended = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    sys.exit(max(ended))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
