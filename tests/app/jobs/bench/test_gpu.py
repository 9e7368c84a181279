"""The question "gpu": what it compares, checked on the CPU; the times need a GPU."""

import numpy as np
import pytest
import torch

import lloydformer as lf
from lloydformer.jobs.bench.gpu import agreement, contenders, device_objective
from lloydformer.jobs.bench.measure import measure
from lloydformer.jobs.bench.problem import BenchCase, BenchProblem
from lloydformer.jobs.bench.questions import QUESTIONS


def points_and_model(rng):
    x = torch.from_numpy(rng.normal(size=(300, 3)).astype(np.float32))
    return x, lf.KMeans(4, random_state=0).fit(x)


def test_objective_and_agreement_are_those_of_the_centers(rng):
    x, model = points_and_model(rng)
    centers = model.cluster_centers_.numpy()
    assert device_objective(x, centers) == pytest.approx(model.inertia_, rel=1e-5)
    both = device_objective(torch.stack([x, x]), np.stack([centers, centers]))
    assert both == pytest.approx(2 * model.inertia_, rel=1e-5)
    assert agreement(x, model.cluster_centers_, model.labels_) == 1
    wrong = model.labels_.clone()
    wrong[:30] = (wrong[:30] + 1) % 4
    assert agreement(x, model.cluster_centers_, wrong) == pytest.approx(0.9)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_it_says_so():
    with pytest.raises(ValueError, match="without an NVIDIA GPU"):
        contenders()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_a_row_has_the_agreement_of_labels():
    names = [case.name for case in QUESTIONS["gpu"].cases(None, 0)]
    assert len(set(names)) == len(names)
    x = torch.randn(2000, 8, device="cuda")
    case = BenchCase("small", lambda: BenchProblem(x, 20, x[:20].clone(), 5, 0.0))
    row = measure(case, contenders(), "fit", 2)["contenders"]
    assert row["lloydformer"]["agreement"] == 1
    assert row["lloydformer"]["objective"] == pytest.approx(
        row["lloydformer, chunked"]["objective"]
    )
