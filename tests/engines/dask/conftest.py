"""A cluster of real processes on this machine, once for all tests that need one."""

import os

import numpy as np
import pytest
from workers import wait_for_two_workers

distributed = pytest.importorskip("distributed", reason="dask is not installed (extra `dask`)")


@pytest.fixture(scope="session")
def cluster():
    """A scheduler and two worker processes of one thread, which talk over TCP."""
    from distributed import LocalCluster

    os.environ["OMP_NUM_THREADS"] = "1"
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0",
        memory_limit=None, silence_logs="CRITICAL",
    ) as cluster:  # fmt: skip
        yield cluster


@pytest.fixture
def client(cluster):
    from distributed import Client

    with Client(cluster, set_as_default=True) as client:
        wait_for_two_workers(client)
        yield client


@pytest.fixture
def rows(rng):
    """More than one part: n d k is above the size that one call of the kernels takes."""
    middles = 3 * rng.normal(size=(6, 5))
    points = middles[rng.integers(6, size=30_000)] + rng.normal(size=(30_000, 5))
    return points.astype(np.float32)
