"""torch on one core in worker threads only: callbacks, circuits and other fits keep their cores."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Thread

import numpy as np
import pytest
import torch

import lloydformer as lf
from lloydformer.engines.thread_pool import single_core_pool

X = np.random.default_rng(0).normal(size=(30_000, 4))


@pytest.fixture(autouse=True)
def three_cores():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def cores_of_a_new_thread() -> int:
    found = []
    thread = Thread(target=lambda: found.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    return found[0]


def test_threads_of_the_pool_have_one_core_and_others_keep_theirs():
    with single_core_pool(2) as pool:
        assert {pool.submit(torch.get_num_threads).result() for _ in range(4)} == {1}
        assert torch.get_num_threads() == 3
        assert cores_of_a_new_thread() == 3
    assert torch.get_num_threads() == 3


@pytest.mark.parametrize("kind", [lf.KMeans, lf.SoftKMeans, lf.KMedoids, lf.RelocatingKMeans])
def test_callbacks_keep_their_cores(kind, engine):
    if engine == "remote" and kind is not lf.KMeans:
        pytest.skip("the worker is another process; one case shows it")
    heard = []
    model = kind(3, engine=engine, max_iter=12, random_state=0,
                 callback=lambda progress: heard.append(torch.get_num_threads()))  # fmt: skip
    model.fit(X[:3000])
    assert set(heard) == {3}


def test_literal_circuits_keep_their_cores(monkeypatch):
    heard, plain = [], lf.Circuit.forward
    monkeypatch.setattr(
        lf.Circuit, "forward",
        lambda self, *a, **k: heard.append(torch.get_num_threads()) or plain(self, *a, **k),
    )  # fmt: skip
    recipe = lf.recipes.lloyd(ties="average")
    lf.CircuitClusterer(3, recipe=recipe, max_iter=2, random_state=0).fit(X[:60])
    assert heard == [3]


def test_concurrent_fits_leave_the_number_of_threads_alone():
    """Two fits that overlap, as in joblib's threading backend."""
    barrier = Barrier(2)

    def fit(seed):
        def meet(progress):
            if progress.iteration == 0:
                barrier.wait()

        how = {"engine": "chunked", "max_iter": 4, "random_state": seed}
        return lf.KMeans(5, callback=meet, **how).fit(X).inertia_

    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(fit, range(2)))
    assert cores_of_a_new_thread() == 3
    assert torch.get_num_threads() == 3
    alone = [lf.KMeans(5, engine="chunked", max_iter=4, random_state=s).fit(X).inertia_
             for s in range(2)]  # fmt: skip
    assert together == alone


def test_batches_leave_the_number_of_threads_alone():
    lf.fit_batch(X[:400].reshape(4, 100, 4), 3, recipe=lf.recipes.soft(0.5), max_iter=3)
    assert torch.get_num_threads() == 3
    assert cores_of_a_new_thread() == 3
