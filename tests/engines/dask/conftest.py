"""A cluster of real processes on this machine, once for all tests of this folder that need one."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest
from workers import wait_for_two_workers

distributed = pytest.importorskip("distributed", reason="dask is not installed (extra `dask`)")


class OneCluster:
    """A cluster that starts when a test asks for it, and ends with the last test of the folder.

    Until then its processes take a tenth of a core, even if nobody uses them.
    """

    def __init__(self) -> None:
        self._open = ExitStack()

    @cached_property
    def found(self):
        """A scheduler and two worker processes of one thread, which talk over TCP."""
        from dask import config
        from distributed import LocalCluster

        os.environ["OMP_NUM_THREADS"] = "1"
        with config.set({"distributed.worker.profile.enabled": False}):
            made = LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0",
                memory_limit=None, silence_logs="CRITICAL",
            )  # fmt: skip
        return self._open.enter_context(made)

    def close(self) -> None:
        self._open.close()
        vars(self).pop("found", None)


CLUSTER = OneCluster()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    try:
        return (yield)
    finally:
        if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
            CLUSTER.close()


@pytest.fixture
def cluster():
    return CLUSTER.found


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
