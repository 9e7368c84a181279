"""Paths of Lloyd's algorithm: the steps one by one, and the same by the kernel of a GPU."""

from functools import partial

import pytest
import torch
from cuda_on_cpu import lloyd_paths_on_cpu, need_compiler, need_gpu

from lloydformer.engines.cuda.batch import run_lloyd_paths
from lloydformer.learning import Run, Settings, Tasks, load_pretrained
from lloydformer.learning.evaluation import compare_on, draw_unseen
from lloydformer.learning.lloyd import has_kernel, lloyd_path, lloyd_step
from lloydformer.learning.objective import smoothed_objective
from lloydformer.learning.random_numbers import stream_keys
from lloydformer.learning.tasks import Batch
from lloydformer.learning.trainer import Trainer
from lloydformer.paper.lloyd_comparison import run_lloyd_steps

SEEDS = torch.tensor([3, 8])
SMALL = Tasks(4, 6, 40)
RUNS = [Run(0), Run(1, family="laplace")]
exact = partial(smoothed_objective, smoothing="exact")


def with_empty(batch: Batch) -> Batch:
    """Two centers are far away: their clusters are empty, and so are some later on."""
    centers = batch.centers.clone()
    centers[:, :, :2] += 10
    return batch._replace(centers=centers)


def drawn_tasks(device="cpu", tasks=SMALL) -> Batch:
    seeds = SEEDS.to(device)
    return with_empty(tasks.draw(("normal", "gumbel"), seeds, torch.zeros_like(seeds[0]), 5))


def one_by_one(points, centers, seeds, n_steps):
    path = [centers]
    for number in range(n_steps):
        path.append(lloyd_step(points, path[-1], seeds, torch.tensor(number)))
    return path


def same(path, other):
    return all(torch.equal(a, b) for a, b in zip(path, other, strict=True))


@pytest.mark.parametrize("n_steps", [0, 1, 7])
def test_on_a_cpu_each_step_is_the_same_to_the_bit(n_steps):
    points, centers = drawn_tasks()
    path = lloyd_path(points, centers, SEEDS, n_steps)
    assert len(path) == n_steps + 1
    assert same(path, one_by_one(points, centers, SEEDS, n_steps))


def test_runs_may_share_their_points():
    points, centers = drawn_tasks()
    path = lloyd_path(points[:1], centers, SEEDS, 3)
    assert same(path, one_by_one(points[:1].expand_as(points), centers, SEEDS, 3))


def log_objectives():
    """What training and the paper's tables take from Lloyd's algorithm, on small tasks."""
    layer, batch = load_pretrained("d4-k6"), with_empty(draw_unseen(SMALL, n_tasks=4))
    found = compare_on(batch, layer.layer, layer.weights, n_steps=5)
    trainer = Trainer(Settings(SMALL, n_unrolled=2, n_validation=3), RUNS, "cpu")
    return {
        "comparison": found.by_lloyd,
        "validation": trainer.validation[2].log(),
        "shared points": run_lloyd_steps(
            Batch(batch.points, batch.centers.repeat(3, 1, 1, 1)), 4, 0
        ),
    }


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    need_compiler()
    return partial(lloyd_paths_on_cpu, tmp_path_factory.mktemp("kernels"))


@pytest.fixture
def launches(kernels, monkeypatch):
    """`lloyd_path` as on a GPU that has the kernel; what comes back of each launch."""
    found = []

    def launch(*given):
        found.append(kernels(*given))
        return found[-1]

    monkeypatch.setattr("lloydformer.learning.lloyd.has_kernel", lambda *given: True)
    monkeypatch.setattr("lloydformer.engines.cuda.batch.run_lloyd_paths", launch)
    return found


def test_baselines_are_the_same_by_the_kernel(launches, monkeypatch):
    by_kernel = log_objectives()
    assert len(launches) == 3
    monkeypatch.undo()
    by_torch = log_objectives()
    assert len(launches) == 3
    for name, found in by_kernel.items():
        torch.testing.assert_close(found, by_torch[name], rtol=0, atol=3e-6, msg=name)


def test_runs_have_their_own_draws_in_the_kernel(launches):
    points, centers = drawn_tasks()
    path = lloyd_path(points, centers, SEEDS, 4)
    assert len(launches) == 1
    for found, true in zip(path, one_by_one(points, centers, SEEDS, 4), strict=True):
        torch.testing.assert_close(found, true, rtol=0, atol=1e-6)


def test_values_that_the_kernel_declines_are_left_to_torch(launches):
    points, centers = drawn_tasks()
    points[1, 2] *= 1e25
    path = lloyd_path(points, centers, SEEDS, 2)
    assert (launches[0].n_iter < 0).tolist() == [i == 7 for i in range(10)]
    assert same(path, one_by_one(points, centers, SEEDS, 2))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
class TestOnGpu:
    """On a GPU the kernel is used, and gives what the CPU gives."""

    @pytest.fixture
    def launches(self, monkeypatch):
        need_gpu()
        found = []

        def launch(*given):
            found.append(run_lloyd_paths(*given))
            return found[-1]

        monkeypatch.setattr("lloydformer.engines.cuda.batch.run_lloyd_paths", launch)
        return found

    @pytest.mark.parametrize("family", ["normal", "cauchy", "lognormal"])
    def test_unseen_tasks(self, launches, family):
        batch = with_empty(draw_unseen(Tasks(), family, 64, device="cuda"))
        seeds = torch.zeros(1, dtype=torch.int64, device="cuda")
        path, again = (lloyd_path(*batch, seeds, 20) for _ in range(2))
        assert len(launches) == 2
        assert same(path, again)
        points, centers = (part.cpu().double() for part in batch)
        true = lloyd_path(points, centers, seeds.cpu(), 20)
        for found, wanted in zip(path, true, strict=True):
            logs = [exact(points, ends.cpu().double()).log() for ends in (found, wanted)]
            torch.testing.assert_close(*logs, rtol=0, atol=1e-5)

    def test_validation_of_training(self, launches):
        trainer = Trainer(Settings(n_unrolled=3, n_validation=320), RUNS, "cuda")
        assert len(launches) == 1
        points, centers, found = (part.cpu().double() for part in trainer.validation)
        seeds = stream_keys(trainer.seeds.cpu(), "validation", torch.tensor(0))
        true = exact(points, lloyd_path(points, centers, seeds, 3)[-1])
        torch.testing.assert_close(found, true, rtol=1e-5, atol=0)

    @pytest.mark.parametrize("sizes", [(32, 17, 512), (65, 10, 512), (64, 10, 1024)])
    def test_other_sizes_are_left_to_torch(self, launches, sizes):
        batch = draw_unseen(Tasks(*sizes), n_tasks=8, device="cuda")
        assert not has_kernel(batch.points, sizes[1])
        lloyd_path(*batch, torch.zeros(1, dtype=torch.int64, device="cuda"), 2)
        assert launches == []
