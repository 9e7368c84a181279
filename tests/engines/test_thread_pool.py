"""torch on one core in worker threads only: callbacks, circuits and other fits keep their cores."""

import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Thread

import numpy as np
import pytest
import torch

import lloydformer as lf
from lloydformer.engines import Chunked
from lloydformer.engines.thread_pool import (
    allowed_threads,
    callers_cores,
    map_on_single_cores,
    one_core,
    single_core_pool,
    torch_threads,
)

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


def test_one_core_is_undone_for_callers_and_forgotten_by_sessions():
    """Sessions that a fit opens have the threads of the caller, whatever torch may use in it."""
    before = allowed_threads()
    with one_core(), one_core():
        assert torch.get_num_threads() == 1
        assert (torch_threads(), allowed_threads()) == (3, before)
        with callers_cores():
            assert torch.get_num_threads() == 3
            with one_core():
                assert torch.get_num_threads() == 1
            assert torch.get_num_threads() == 3
        assert torch.get_num_threads() == 1
        assert cores_of_a_new_thread() == 3
    with pytest.raises(ZeroDivisionError), one_core():
        raise ZeroDivisionError
    assert torch.get_num_threads() == torch_threads() == 3


def test_leaves_are_mapped_in_order_on_one_core_each():
    found = map_on_single_cores(
        lambda item: (item, torch.get_num_threads()), range(9), torch.device("cpu")
    )
    assert found == [(item, 1) for item in range(9)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_forked_within_stays_on_one_core():
    """OpenMP's threads are not copied: the child would wait for them for ever."""
    for around in (one_core, callers_cores):
        with one_core():
            with around():
                child = os.fork()
            if child == 0:
                with callers_cores():
                    inner = torch.get_num_threads()
        if child == 0:
            os._exit(0 if (inner, torch.get_num_threads()) == (1, 1) else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert torch.get_num_threads() == 3


@pytest.mark.parametrize("name", ["chunked", "native"])
def test_fits_and_assignments_leave_torch_on_one_core(name, monkeypatch):
    """Also where the centers have more numbers than torch processes in one thread."""
    heard, opened = set(), []
    plain, open_session = torch.Tensor.sum, Chunked.open
    monkeypatch.setattr(
        torch.Tensor, "sum",
        lambda self, *a, **k: heard.add(torch.get_num_threads()) or plain(self, *a, **k),
    )  # fmt: skip
    monkeypatch.setattr(
        Chunked, "open", lambda self, blocks: opened.append(torch_threads())
        or open_session(self, blocks),
    )  # fmt: skip
    points = np.random.default_rng(0).normal(size=(400, 200))
    model = lf.SoftKMeans(200, engine=name, max_iter=2, random_state=0, init=points[:200])
    model.fit(points).score(points)
    model.transform(points), lf.GaussianMixture(2, engine=name).fit(X[:99]).predict_proba(X[:99])
    assert heard == {1}
    assert set(opened) <= {3}


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
