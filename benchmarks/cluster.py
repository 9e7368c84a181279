"""An iteration of k-means on 2 worker processes, in one process with 2 threads, and by dask-ml.

Rows are generated where they are used: n x 16 float32, k 64, the same start. Each measurement runs
in a process of its own, in turns. Results so far are kept, so the script can be stopped and started
again. `python benchmarks/cluster.py [n]`; by default 50 million rows, 2 million for dask-ml. It
also asks both for a fit with weights, and for one with a center that has no points.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from provenance import RESULTS, provenance, save

D, K, ITERATIONS, REPEATS, PIECE = 16, 64, 5, 3, 1_000_000


def middles() -> np.ndarray:
    return np.random.default_rng(0).uniform(size=(K, D)).astype(np.float32)


def piece(number: int, size: int) -> np.ndarray:
    """Some rows of a mixture of K clusters."""
    rng = np.random.default_rng([1, number])
    rows = middles()[rng.integers(K, size=size)]
    return rows + np.float32(0.15) * rng.standard_normal(rows.shape, dtype=np.float32)


def start() -> np.ndarray:
    return piece(0, PIECE)[:K]


def lengths(n: int) -> list[int]:
    return [min(PIECE, n - at) for at in range(0, n, PIECE)]


def collection(n: int) -> Any:
    """The rows as a dask array that workers make."""
    import dask
    import dask.array as da

    made = dask.delayed(piece)
    blocks = [da.from_delayed(made(i, m), (m, D), np.float32) for i, m in enumerate(lengths(n))]
    return da.concatenate(blocks)


def resident() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def time_fit(X: Any) -> dict[str, Any]:
    import lloydformer as lf

    heard = list[Any]()
    began = time.perf_counter()
    model = lf.KMeans(K, init=start(), max_iter=ITERATIONS, tol=0.0, callback=heard.append).fit(X)
    took = time.perf_counter() - began
    seconds = [progress.seconds for progress in heard]
    return {
        "seconds_of_fit": took,
        "seconds_an_iteration": seconds,
        "inertia": model.inertia_,
        "centers": float(model.cluster_centers_.astype(np.float64).sum()),
    }


def native(n: int) -> dict[str, Any]:
    X = np.empty((n, D), np.float32)
    at = 0
    for i, size in enumerate(lengths(n)):
        X[at : at + size] = piece(i, size)
        at += size
    return time_fit(X)


def cluster(n: int) -> dict[str, Any]:
    import dask.array
    from distributed import Client, LocalCluster

    import lloydformer as lf

    lf.KMeans(2).fit(np.eye(3))
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            memory_limit=None,
        ) as workers,
        Client(workers),
    ):
        time_fit(dask.array.from_array(piece(0, 1000), chunks=300))  # imports, also of the workers
        before = resident()
        found = time_fit(collection(n))
    return {**found, "client_bytes_above_import": resident() - before}


def dask_ml(n: int) -> dict[str, Any]:
    from dask_ml.cluster import KMeans
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            memory_limit=None,
        ) as workers,
        Client(workers) as client,
    ):
        X = client.persist(collection(n))
        client.compute(X.sum()).result()
        took = []
        for iterations in (1, 1, 1 + ITERATIONS):
            began = time.perf_counter()
            model = KMeans(K, init=start(), max_iter=iterations, tol=0.0).fit(X)
            took.append(time.perf_counter() - began)
    each = (took[2] - took[1]) / ITERATIONS
    return {
        "seconds_of_fit": took[2],
        "seconds_an_iteration": [each],
        "centers": float(np.asarray(model.cluster_centers_, np.float64).sum()),
    }


# Points of the two cases below; in partitions of two.
FOUR = [[20.0], [21.0], [30.0], [31.0]]
CASES = {
    "weights 1, 3, 1, 1": {"init": [[20.0], [30.0]], "sample_weight": [1.0, 3.0, 1.0, 1.0]},
    "a start without points": {"init": [[20.0], [30.0], [500.0]]},
}


def cases(n: int) -> dict[str, Any]:
    """Return the results of both libraries in the two cases."""
    import dask.array as da
    from dask_ml.cluster import KMeans

    import lloydformer as lf

    found: dict[str, Any] = {}
    for name, case in CASES.items():
        init = np.array(case["init"])
        given = {key: da.from_array(np.array(case[key]), 2) for key in case if key != "init"}
        for library, kind in (("lloydformer", lf.KMeans), ("dask-ml", KMeans)):
            model = kind(len(init), init=init, max_iter=5, tol=0.0)
            try:
                model.fit(da.from_array(np.array(FOUR), 2), **given)
                told = np.asarray(model.cluster_centers_).ravel().tolist()
            except TypeError as error:
                told = str(error)
            found.setdefault(name, {})[library] = told
    return found


WAYS = {"native": native, "cluster": cluster, "dask_ml": dask_ml, "cases": cases}


def alone(way: str, n: int) -> dict[str, Any]:
    """In a process of its own; the last line that it prints is the result."""
    threads = "2" if way == "native" else "1"
    environment = {**os.environ, "OMP_NUM_THREADS": threads, "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, __file__, way, str(n)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main(n: int) -> None:
    path = RESULTS / "cluster.json"
    known = json.loads(path.read_text()) if path.exists() else {"rows": {}}
    if "cases" not in known:
        known["cases"] = alone("cases", 0)
    for number in range(REPEATS):
        for way in ("native", "cluster", "dask_ml"):
            rows = n if way != "dask_ml" else min(n, 2_000_000)
            for size in sorted({rows, min(n, 2_000_000)}):
                name = f"{way}, {size} rows, run {number}"
                if name not in known["rows"]:
                    known["rows"][name] = alone(way, size)
                    known["provenance"] = provenance("dask", "distributed", "dask-ml")
                    known["settings"] = {"d": D, "k": K, "dtype": "float32", "piece": PIECE}
                    print(name, known["rows"][name], flush=True)
                    save("cluster", known)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(WAYS[sys.argv[1]](int(sys.argv[2]))))
    else:
        main(int(sys.argv[1]) if len(sys.argv) == 2 else 50_000_000)
