"""Print a digest of the results of every estimator, engine, dtype and circuit, as JSON.

A refactoring must not change one bit of a result. Run this before and after, on the same machine
(the last bits depend on its instruction set), and compare:

    python tools/fit_hashes.py > before.json
    python tools/fit_hashes.py --compare before.json

Digests cover labels, centers, inertia, the number of iterations, the history, what callbacks get,
and what predict, transform and score return. Fits are also resumed from a checkpoint, and run on a
Dask cluster of two workers.
"""

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse

import lloydformer as lf

# Rows, columns, clusters. By their products n d k, "small" fits run in one call of the native
# engine and "large" ones iteration by iteration.
SIZES = {"small": (400, 5, 7), "large": (30_000, 12, 16)}
FITTED = (
    "cluster_centers_",
    "labels_",
    "inertia_",
    "n_iter_",
    "objective_history_",
    "outliers_",
    "medoid_indices_",
    "best_objective_history_",
    "n_steps_",
    "inverse_temperature_",
)
SPARSE = ("kmeans", "soft", "spherical", "relocating", "learned")
RECIPES = (
    "lloyd",
    "lloyd_dot",
    "lloyd_binary",
    "spherical",
    "soft",
    "soft_dot",
    "trimmed",
    "robust",
    "robust_lifted",
    "medoids",
    "medoids_swap",
    "relocating",
    "recombining",
)
Digests = Iterator[tuple[str, str]]


def digest(*values: Any) -> str:
    """Return 16 hexadecimal digits of the bits of arrays, tensors and numbers."""
    found = hashlib.sha256()
    for value in values:
        if isinstance(value, torch.Tensor):
            value = value.detach().cpu().numpy()
        array = np.ascontiguousarray(np.asarray(value))
        found.update(f"{array.dtype} {array.shape}".encode())
        found.update(array.tobytes() if array.dtype != object else repr(array.tolist()).encode())
    return found.hexdigest()[:16]


def points(size: str, dtype: type) -> np.ndarray:
    """Return overlapping clusters with some outliers; no row is zero."""
    n, d, k = SIZES[size]
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(2 * k, d)) * 3
    rows = centers[rng.integers(2 * k, size=n)] + rng.normal(size=(n, d))
    rows[:: n // 20] *= 4
    return rows.astype(dtype)


def weights(size: str) -> np.ndarray:
    """Return weights, a quarter of them 0."""
    return np.random.default_rng(1).integers(0, 4, size=SIZES[size][0]) * 0.5


def model_digest(model: Any) -> str:
    """Return the digest of the fitted attributes."""
    return digest(*(getattr(model, name) for name in FITTED if hasattr(model, name)))


def variants() -> dict[str, Callable[..., Any]]:
    """Return every algorithm by name, as a function of (n_clusters, **shared parameters)."""
    return {
        "kmeans": lf.KMeans,
        "kmeans-3-random": lambda k, **p: lf.KMeans(k, init="random", n_init=3, **p),
        "kmeans-3-plusplus": lambda k, **p: lf.KMeans(k, n_init=3, **p),
        "kmeans-parallel": lambda k, **p: lf.KMeans(k, init="k-means||", n_init=2, **p),
        "kmeans-robust": lambda k, **p: lf.KMeans(k, init="robust", **p),
        "kmeans-keep": lambda k, **p: lf.KMeans(k, empty="keep", **p),
        "kmeans-batches": lambda k, **p: lf.KMeans(k, batch_size=256, n_init=2, **p),
        "soft": lf.SoftKMeans,
        "soft-3": lambda k, **p: lf.SoftKMeans(k, inverse_temperature=0.3, n_init=3, **p),
        "spherical": lf.SphericalKMeans,
        "spherical-batches": lambda k, **p: lf.SphericalKMeans(k, batch_size=200, **p),
        "trimmed": lf.TrimmedKMeans,
        "trimmed-2": lambda k, **p: lf.TrimmedKMeans(k, keep=0.8, n_init=2, **p),
        "robust": lf.RobustKMeans,
        "robust-softmax": lambda k, **p: lf.RobustKMeans(k, activation="softmax", **p),
        "medoids": lf.KMedoids,
        "medoids-quick": lambda k, **p: lf.KMedoids(k, effort="low", n_init=2, **p),
        "medoids-paper": lambda k, **p: lf.KMedoids(k, method="paper", max_iter=40, **p),
        "medoids-fasterpam": lambda k, **p: lf.KMedoids(k, method="fasterpam", **p),
        "medoids-manhattan": lambda k, **p: lf.KMedoids(k, metric="manhattan", **p),
        "relocating": lf.RelocatingKMeans,
        "relocating-2": lambda k, **p: lf.RelocatingKMeans(
            k, n_init=2, search_options={"n_iter_between": 2}, patience=2, **p
        ),
        "relocating-medium": lambda k, **p: lf.RelocatingKMeans(k, effort="medium", **p),
        "relocating-6": lambda k, **p: lf.RelocatingKMeans(k, effort=6, n_init=2, **p),
        "learned": lambda k, **p: lf.LearnedKMeans(k, max_iter=10, **p),
        "learned-2": lambda k, **p: lf.LearnedKMeans(k, n_init=2, max_iter=0, **p),
        "circuit": lambda k, **p: lf.CircuitClusterer(k, recipe=lf.recipes.lloyd_dot(), **p),
    }


def is_slow(name: str, size: str) -> bool:
    """Return whether a fit takes too long to be repeated in every section."""
    return size == "large" and (name.startswith("medoids") or name == "relocating-medium")


def fit_digest(model: Any, X: Any, sample_weight: Any) -> str:
    """Fit, predict, transform and score; an error that X raises is a result as well."""
    try:
        model.fit(X, sample_weight=sample_weight)
    except (ValueError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    some = X[: max(50, X.shape[0] // 10)]
    return digest(
        model_digest(model), model.predict(some), model.transform(some), model.score(some)
    )


def fits(engines: list[str], device: str | None) -> Digests:
    """Yield fits of dense rows: algorithm x size x dtype x engine x weights; and sparse ones."""
    for name, make in variants().items():
        for size, (_, _, k) in SIZES.items():
            for dtype in (np.float32, np.float64):
                X = points(size, dtype)
                for engine in engines:
                    if is_slow(name, size) and (engine == "chunked" or dtype is np.float64):
                        continue
                    for weighted in (False, True):
                        case = f"{name}/{size}/{dtype.__name__}/{engine}/{weighted}"
                        model = make(k, random_state=3, engine=engine, device=device)
                        yield case, fit_digest(model, X, weights(size) if weighted else None)
    rows = points("small", np.float64)
    dense = np.where(np.abs(rows) > 2, rows, 0)
    dense[:, 0] += 0.5
    for name in SPARSE:
        for engine in engines:
            model = variants()[name](5, random_state=3, engine=engine, device=device)
            yield f"{name}/sparse/{engine}", fit_digest(model, sparse.csr_matrix(dense), None)


def hash_reported_fits(engine: str, device: str | None) -> Digests:
    """Yield fits with a callback, which run iteration by iteration, and what it gets."""
    for name, make in variants().items():
        for size, (_, _, k) in SIZES.items():
            if is_slow(name, size):
                continue
            progress = list[Any]()
            shared = {"random_state": 3, "engine": engine, "device": device}
            model = make(k, callback=progress.append, **shared)
            found = fit_digest(model, points(size, np.float32), None)
            told = [(p.start, p.iteration, p.objective, p.shift, p.n_points) for p in progress]
            yield f"{name}/{size}/callback/{engine}", digest(found, told)


class KilledError(Exception):
    """Raised by a callback, in the place of a kill."""


def kill_at(number: int) -> Callable[[Any], None]:
    """Return a callback that raises `KilledError` when it is called for that time."""
    calls = list[Any]()

    def callback(progress: Any) -> None:
        calls.append(progress)
        if len(calls) == number:
            raise KilledError

    return callback


def hash_resumed_fits(engine: str) -> Digests:
    """Yield fits that end after some iterations and are resumed from a checkpoint."""
    for name, make in variants().items():
        for size, (_, _, k) in SIZES.items():
            searched = name.startswith("medoids") and name != "medoids-paper"
            if name == "circuit" or searched or is_slow(name, size):
                continue  # circuits and the search for medoids have no checkpoints
            for number in (2, 9):
                with tempfile.TemporaryDirectory() as folder:
                    path, X = Path(folder) / "checkpoint", points(size, np.float32)
                    shared = {"random_state": 3, "engine": engine, "checkpoint": path}
                    try:
                        make(k, callback=kill_at(number), **shared).fit(X)
                    except KilledError:
                        assert path.exists()
                    model = make(k, callback=lambda progress: None, **shared).fit(X)
                yield f"{name}/{size}/resumed-{number}/{engine}", model_digest(model)


def hash_clustered_fits() -> Digests:
    """Yield fits of a Dask array on two workers."""
    import dask.array as da
    from distributed import Client, LocalCluster

    shape = {"n_workers": 2, "threads_per_worker": 1, "processes": False}
    with LocalCluster(**shape, dashboard_address=None) as cluster, Client(cluster):
        for name, make in variants().items():
            if name == "circuit" or (name.startswith("medoids") and name != "medoids-paper"):
                continue
            X = da.from_array(points("large", np.float32), chunks=(7_000, -1))
            model = make(SIZES["large"][2], random_state=3).fit(X)
            for lazy in ("labels_", "outliers_"):
                if hasattr(model, lazy):
                    setattr(model, lazy, np.asarray(getattr(model, lazy)))
            yield f"{name}/large/dask", model_digest(model)


def others(device: str | None) -> Digests:
    """Yield batches of problems, and centers after some calls of partial_fit."""
    rng = np.random.default_rng(5)
    batch = rng.normal(size=(12, 60, 3)) + 4 * rng.integers(3, size=(12, 60, 1))
    for recipe in ("lloyd", "soft", "spherical", "trimmed", "robust", "medoids"):
        for dtype in (np.float32, np.float64):
            rows = torch.as_tensor(batch.astype(dtype), device=device)
            made = lf.fit_batch(
                rows, 4, recipe=getattr(lf.recipes, recipe)(), random_state=0, n_init=2
            )
            found = digest(made.centers, made.labels, made.inertia, made.n_iter)
            yield f"fit_batch/{recipe}/{dtype.__name__}", found
    for make in (lf.KMeans, lf.SphericalKMeans):
        model, X = make(5, random_state=0), points("small", np.float64)
        for start in range(0, 400, 100):
            model.partial_fit(X[start : start + 100])
        yield f"partial_fit/{make.__name__}", digest(model.cluster_centers_, model.predict(X))


def circuits() -> Digests:
    """Yield five layers of every recipe whose weights are set by hand."""
    for name in RECIPES:
        for dtype in (torch.float32, torch.float64):
            rows = torch.from_numpy(points("small", np.float64)[:40, :3]).to(dtype)
            if name == "spherical":
                rows = rows / rows.norm(dim=1, keepdim=True)
            circuit = lf.Circuit(getattr(lf.recipes, name)(), n_features=3, n_clusters=4)
            try:
                trace = circuit(rows, rows[:4].clone(), n_layers=5, names_filter=("*",), seed=0)
            except (ValueError, TypeError) as error:
                found = f"{type(error).__name__}: {error}"
            else:
                found = digest(trace.centers, trace.labels, trace.assignments, trace.objective)
            yield f"circuit/{name}/{dtype}", found


def collect(device: str | None, sections: list[str]) -> dict[str, str]:
    """Return the digest of each case; the cases are printed on standard error as they end."""
    engines = ["native", "chunked"] if device is None else ["cuda"]
    every: dict[str, Callable[[], Digests]] = {
        "fits": lambda: fits(engines, device),
        "reported": lambda: hash_reported_fits(engines[0], device),
        "resumed": lambda: hash_resumed_fits("native"),
        "clustered": hash_clustered_fits,
        "others": lambda: others(device),
        "circuits": circuits,
    }
    found = dict[str, str]()
    for section in sections or every:
        for case, value in every[section]():
            found[case] = value
            print(case, value, file=sys.stderr, flush=True)
    return found


def main() -> None:
    """Print the digests, or compare them with those of a file."""
    parse = argparse.ArgumentParser(description=__doc__)
    parse.add_argument(
        "sections", nargs="*", help="fits, reported, resumed, clustered, others, circuits"
    )
    parse.add_argument("--device", help='for instance "cuda"; the CPU by default')
    parse.add_argument("--compare", type=Path, help="a file of earlier digests; differences exit 1")
    arguments = parse.parse_args()
    found = collect(arguments.device, arguments.sections)
    if arguments.compare is None:
        print(json.dumps(found, indent=1))
        return
    before = json.loads(arguments.compare.read_text())
    changed = [case for case in found if before.get(case) != found[case]]
    missing = [] if arguments.sections else [case for case in before if case not in found]
    for case in changed + missing:
        print(f"{case}: {before.get(case)} before, {found.get(case)} now")
    print(f"{len(found)} digests, {len(changed)} changed, {len(missing)} missing")
    sys.exit(bool(changed or missing))


if __name__ == "__main__":
    main()
