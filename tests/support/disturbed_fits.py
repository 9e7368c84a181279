"""Fits while something else happens at random moments: forks, signals, rows that change.

Arguments: what happens, seconds, seed. Prints one JSON object, {"rounds": number, "wrong": list of
words}. It is run in a process of its own, so that a crash is the end of this process alone.
"""

import faulthandler
import json
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import cycle
from threading import Event, Thread
from typing import Any

import numpy as np
import torch
from forked import difference, in_child
from scipy import sparse

import lloydformer as lf

ESTIMATORS: list[tuple[Any, dict[str, Any]]] = [
    (lf.KMeans, {}),
    (lf.KMeans, {"init": "random"}),
    (lf.KMeans, {"init": "k-means||"}),
    (lf.KMeans, {"batch_size": 64}),
    (lf.SphericalKMeans, {"zero_rows": "ignore"}),
    (lf.SoftKMeans, {"inverse_temperature": 1.0}),
    (lf.TrimmedKMeans, {}),
    (lf.RobustKMeans, {}),
    (lf.KMedoids, {}),
    (lf.RelocatingKMeans, {}),
    (lf.LearnedKMeans, {}),
]
SPARSE = [lf.KMeans, lf.SphericalKMeans, lf.SoftKMeans, lf.LearnedKMeans]


def small_fits() -> list[np.ndarray]:
    """Fits of some kinds of data: in one engine call, in several threads, by tensors, sparse."""
    rows = np.random.default_rng(1).normal(size=(40_000, 8)).astype(np.float32)
    columns = torch.from_numpy(np.ascontiguousarray(rows.T)).T
    found = []
    for X in (rows[:500], rows, columns, sparse.csr_matrix(np.where(rows > 1, rows, 0))):
        model = lf.KMeans(4, random_state=0, max_iter=3).fit(X)
        found += [model.cluster_centers_, np.asarray(model.labels_)]
    return found


@contextmanager
def in_background(work: Callable[[], Any]) -> Iterator[None]:
    """Repeat some work in another thread until the end of this block."""
    ended = Event()

    def repeat() -> None:
        while not ended.is_set():
            work()

    thread = Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def fork_at_random(rng: random.Random, end: float) -> Iterator[str]:
    """Fork while another thread fits; the child gives the bits of this process, in time."""
    draw = np.random.default_rng(0)
    large = draw.normal(size=(20, 300_000)).astype(np.float32)
    others: list[Any] = [
        large.T.copy(),
        torch.from_numpy(large).T,
        large[:, :2000].T.copy(),
        sparse.random(100_000, 200, 0.02, format="csr", random_state=0, dtype=np.float32),
    ]
    expected = small_fits()
    for X in cycle(others):
        with in_background(lambda X=X: lf.KMeans(8, random_state=0, max_iter=3).fit(X)):
            for _ in range(5):
                time.sleep(rng.random() / 5)
                found = in_child(small_fits)
                outcome = found if isinstance(found, str) else difference(expected, found)
                yield "" if outcome == "same" else outcome
                if outcome == "no answer" or time.monotonic() > end:
                    return


def interrupt_at_random(rng: random.Random, end: float) -> Iterator[str]:
    """Ctrl-C at any moment of a fit: KeyboardInterrupt, and the next fit is as ever."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    expected = small_fits()
    while time.monotonic() < end:
        with suppress(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-4, 0.2))
            small_fits()
            # Not signal.pause(), which waits for ever if the signal came just before it, or where
            # Python ignores an exception (in __del__ or a callback of the garbage collector).
            time.sleep(0.3)
        yield "" if difference(expected, small_fits()) == "same" else "other bits"


def change_rows(rng: random.Random, end: float) -> Iterator[str]:
    """Another thread writes into the rows of a fit. The result may be anything, or an error."""
    draw = np.random.default_rng(rng.randrange(2**32))
    numbers = [np.nan, np.inf, -np.inf, 1e300, -1e300, 1e-310, 0.0, 1.0]
    while time.monotonic() < end:
        kind, settings = rng.choice(ESTIMATORS)
        dtype = rng.choice([np.float32, np.float64])
        n, d, k = rng.choice([(60, 3, 4), (3000, 5, 40), (20_000, 10, 8)])
        X = draw.normal(size=(n, d)).astype(dtype)
        given: Any = X
        if kind in SPARSE and settings.get("batch_size") is None and rng.random() < 0.5:
            given = sparse.random(n, 50, 0.1, format="csr", random_state=0, dtype=dtype)
            X = given.data[None]

        def scribble(X: np.ndarray = X) -> None:
            with np.errstate(over="ignore"):
                few = draw.random(X.shape) < draw.choice([1e-4, 0.01, 1.0])
                X[few] = draw.choice(numbers) if draw.random() < 0.7 else draw.normal()
                time.sleep(draw.random() / 1000)
                if draw.random() < 0.5:
                    X[...] = draw.normal(size=X.shape)

        if "VERBOSE" in os.environ:
            print(kind.__name__, settings, dtype.__name__, n, d, k, file=sys.stderr, flush=True)
        faulthandler.dump_traceback_later(120, exit=True)
        with in_background(scribble), suppress(Exception):
            limit = {} if kind is lf.LearnedKMeans else {"max_iter": 20}
            model = kind(k, random_state=rng.randrange(1000), **limit, **settings).fit(given)
            model.predict(given)
        yield ""


HAPPENS = {"forks": fork_at_random, "signals": interrupt_at_random, "changes": change_rows}

if __name__ == "__main__":
    faulthandler.enable()
    warnings.simplefilter("ignore")
    torch.set_num_threads(2)
    what, seconds, seed = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    outcomes = list(HAPPENS[what](random.Random(seed), time.monotonic() + seconds))
    print(json.dumps({"rounds": len(outcomes), "wrong": [word for word in outcomes if word]}))
    sys.stdout.flush()
    os._exit(0)  # a thread that still fits does not matter
