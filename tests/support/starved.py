"""Fits and kernels in a process that gets no threads or no memory.

python starved.py CASE ...: each case prints what it begins, then `result`, or `exception` and its
name. An abort or a wait in a case ends this process or its output; the test that starts it looks
for both. Cases:

threads:ESTIMATOR:ENGINE          no thread can be started
wide:ESTIMATOR:ENGINE             the same for a fit with 120,000 numbers in its centers, and for
                                  `predict`, `transform` and `score` afterwards
memory:MB:ESTIMATOR:ENGINE        the address space may grow by so many MB (RLIMIT_AS)
pool:MB                           kernels with 8 threads under that limit
failure                           a kernel runs out of memory, and the session is used again
iterations:ESTIMATOR              max_iter is 3,000,000,000, with 300 MB more address space
"""

import ctypes
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

import lloydformer as lf
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines import Native
from lloydformer.engines.native.installed import kernels
from lloydformer.plans.assign import NearestDistances, NearestSums

N, D, K = 70_000, 8, 7
"""More numbers than a kernel or torch would process in one thread."""
X = np.random.default_rng(0).normal(size=(N, D)) + 4 * (np.arange(N) % 3)[:, None]


@contextmanager
def memory(extra: int) -> Iterator[None]:
    """The address space may grow by `extra` bytes."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + extra, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@contextmanager
def no_threads() -> Iterator[None]:
    """New threads ask for a stack that is larger than any address space (glibc only)."""
    libc, attributes, before = ctypes.CDLL(None), ctypes.create_string_buffer(64), ctypes.c_size_t()
    libc.pthread_getattr_default_np(attributes)
    libc.pthread_attr_getstacksize(attributes, ctypes.byref(before))
    _set_stack(libc, attributes, 1 << 47)
    try:
        yield
    finally:
        _set_stack(libc, attributes, before.value)


def _set_stack(libc: ctypes.CDLL, attributes: ctypes.Array, size: int) -> None:
    libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(size))
    assert libc.pthread_setattr_default_np(attributes) == 0


def fit(estimator: str, engine: str) -> str:
    how = {"engine": engine, "random_state": 0, "n_init": 2}
    if estimator == "LearnedKMeans":
        how["n_steps"] = 6
    elif estimator == "BernoulliMixture":
        return repr(lf.BernoulliMixture(K, **how, max_iter=6).fit(X > 2).inertia_)
    elif estimator == "PoissonMixture":
        return repr(lf.PoissonMixture(K, **how, max_iter=6).fit(abs(X).round()).inertia_)
    else:
        how["max_iter"] = 6
    return repr(getattr(lf, estimator)(K, **how).fit(X).inertia_)


def threads(estimator: str, engine: str) -> str:
    with no_threads():
        return fit(estimator, engine)


def wide(estimator: str, engine: str) -> str:
    """More numbers in the centers than torch would process in one thread (2^15)."""
    points = np.random.default_rng(0).normal(size=(1500, 200))
    how = {"engine": engine, "random_state": 0, "max_iter": 2}
    if estimator == "KMedoids":
        how["method"] = "paper"  # the other searches have no centers
    model = getattr(lf, estimator)(600, init=points[:600], **how)

    def results() -> tuple[float, ...]:
        model.fit(points)
        found = model.inertia_, model.score(points), model.predict(points).sum()
        return *map(float, found), float(model.transform(points).sum())

    with no_threads():
        found = results()
    assert found == results(), "other results with threads"
    return repr(found)


def limited(extra: str, estimator: str, engine: str) -> str:
    with memory(int(extra) << 20):
        return fit(estimator, engine)


def pool(extra: str) -> str:
    """Moments by 8 threads, or as many as there are stacks for."""
    before, out = len(os.listdir("/proc/self/task")), np.zeros(3 + D)
    with memory(int(extra) << 20):
        session = kernels().Folds(
            X, None, None, None, None, False, 1e3, False, 8, sys.maxsize, 1024
        )  # fmt: skip
        started = len(os.listdir("/proc/self/task")) - before
        session.run("moments", out=out)
    alone = np.zeros(3 + D)
    kernels().Folds(X, None, None, None, None, False, 1e3, False, 1, 0, 1024).run(
        "moments", out=alone
    )
    assert np.array_equal(out, alone)
    return f"{started} threads started"


def failure() -> str:
    """At some step there is no memory for bounds; what follows must be right."""
    data = TensorBlocks(torch.from_numpy(X.repeat(2, axis=0)))
    centers, failed = data.take(torch.arange(0, 128, 2)), 0  # every row is there twice
    with Native(4).open(data) as session:
        for _ in range(6):
            try:
                with memory(1 << 19):
                    session.fold(NearestSums(centers))
            except MemoryError:
                failed += 1
            found, labels = session.fold(NearestSums(centers)), session.labels()
            assert found[2] in (0, len(labels)), "labels are compared with half of an iteration"
            check(data, centers, found, labels)
            session.fold(NearestDistances(centers))
            assert torch.equal(session.labels(), labels)
            assert found[1].min() > 0
            centers = found[0] / found[1][:, None]
    return f"{failed} failures"


def check(data: TensorBlocks, centers: torch.Tensor, found, labels: torch.Tensor) -> None:
    """The sums and labels of a new session."""
    with Native(1).open(data) as session:
        sums, masses, _ = session.fold(NearestSums(centers))
        assert torch.equal(session.labels(), labels)
        assert torch.equal(masses, found[1])
        torch.testing.assert_close(sums, found[0], rtol=1e-12, atol=1e-9)


def iterations(estimator: str) -> str:
    ends = {"patience": 5} if estimator == "KMedoids" else {"tol": 1e-3}
    model = getattr(lf, estimator)(3, random_state=0, n_init=2, max_iter=3_000_000_000, **ends)
    points = X[:300]
    with memory(300 << 20):
        return f"{model.fit(points).n_iter_} iterations"


CASES = {
    "threads": threads, "wide": wide, "memory": limited, "pool": pool, "failure": failure,
    "iterations": iterations,
}  # fmt: skip


def main() -> None:
    lf.TrimmedKMeans(2, engine="chunked").fit(X[:9])  # what is imported at the first fit
    for case in sys.argv[1:]:
        print(case, end=" ", flush=True)
        name, *arguments = case.split(":")
        try:
            print("result", CASES[name](*arguments), flush=True)
        except (MemoryError, RuntimeError, ValueError, OSError) as error:
            print("exception", type(error).__name__, str(error).split("\n")[0][:80], flush=True)


if __name__ == "__main__":
    main()
