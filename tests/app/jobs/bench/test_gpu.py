"""The question "gpu": what it compares, checked on the CPU; the times need a GPU."""

import numpy as np
import pytest
import torch

import lloydformer as lf
from lloydformer.app.jobs.bench.gpu import contenders, label_agreement
from lloydformer.app.jobs.bench.measure import (
    BenchCase,
    BenchProblem,
    Fitted,
    measure,
    objective,
)
from lloydformer.app.jobs.bench.questions import QUESTIONS


def points_and_model(rng):
    x = torch.from_numpy(rng.normal(size=(300, 3)).astype(np.float32))
    return x, lf.KMeans(4, random_state=0).fit(x)


def test_objective_and_agreement_are_those_of_the_centers(rng):
    x, model = points_and_model(rng)
    centers = model.cluster_centers_.numpy()
    assert objective(x, Fitted(centers, 1)) == pytest.approx(model.inertia_, rel=1e-5)
    both = objective(torch.stack([x, x]), Fitted(np.stack([centers, centers]), 1))
    assert both == pytest.approx(2 * model.inertia_, rel=1e-5)
    assert label_agreement(x, model.cluster_centers_, model.labels_) == 1
    wrong = model.labels_.clone()
    wrong[:30] = (wrong[:30] + 1) % 4
    assert label_agreement(x, model.cluster_centers_, wrong) == pytest.approx(0.9)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_it_says_so():
    with pytest.raises(ValueError, match="without an NVIDIA GPU"):
        contenders()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_a_row_has_the_agreement_of_labels():
    names = [case.name for case in QUESTIONS["gpu"].cases(0)]
    assert len(set(names)) == len(names)
    x = torch.randn(2000, 8, device="cuda")
    case = BenchCase("small", lambda: BenchProblem(x, 20, x[:20].clone(), 5, 0.0))
    row = measure(case, contenders(), "fit", 2)["contenders"]
    assert row["lloydformer"]["agreement"] == 1
    assert row["lloydformer"]["objective"] == pytest.approx(
        row["lloydformer, chunked"]["objective"]
    )
