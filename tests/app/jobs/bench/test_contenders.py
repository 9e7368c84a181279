"""Contenders of the benchmark do what their names say."""

import pytest
import sklearn.cluster
import torch

from lloydformer.app.jobs.bench.cases import draw_mixture, draw_rows
from lloydformer.app.jobs.bench.contenders import (
    CHUNKED,
    ELKAN,
    LLOYD,
    OURS,
    PASS,
    PRODUCTS,
    limit_threads,
    our_algorithms,
)
from lloydformer.app.jobs.bench.measure import BenchProblem, Fitted, objective
from lloydformer.engines.thread_pool import allowed_threads


def problem(n=200, d=3, k=4, **settings):
    points = draw_mixture(n, d, k, seed=0)
    return BenchProblem(
        points, k, draw_rows(points, k, seed=1), **{"max_iter": 20, "tol": 0.0, **settings}
    )


@pytest.mark.parametrize("contender", [OURS, CHUNKED, LLOYD, ELKAN], ids=lambda c: c.name)
def test_contenders_reach_the_same_result_from_the_same_start(contender):
    given = problem(n=2000)
    truth = sklearn.cluster.KMeans(4, init=given.start, n_init=1, max_iter=20, tol=0).fit(
        given.points
    )
    found = contender.prepare["fit"](given)(0)
    assert found.n_iter == truth.n_iter_
    assert objective(given.points, found) == pytest.approx(truth.inertia_, rel=1e-5)


WORKS = [
    *(
        (c, work)
        for c in (OURS, LLOYD)
        for work in ("predict", "transform", "score", "partial_fit")
    ),
    *((c, "pass") for c in (PASS, *PRODUCTS)),
]


@pytest.mark.parametrize(
    ("contender", "work"), WORKS, ids=lambda value: getattr(value, "name", value)
)
def test_contenders_do_the_work_of_a_case(contender, work):
    given = problem(n=2000, work=work, batch=500)
    found = contender.prepare[work](given)(0)
    assert found.n_iter == (4 if work == "partial_fit" else 1)
    if found.output is not None:
        nearest = objective(given.points, Fitted(found.centers, 1))
        assert objective(given.points, found) == pytest.approx(nearest, rel=1e-5)


def test_every_algorithm_stops_at_max_iter():
    names = [contender.name for contender in our_algorithms()]
    assert names[0] == "KMeans"
    assert {"SphericalKMeans", "SoftKMeans", "TrimmedKMeans", "RobustKMeans"} <= set(names)
    for contender in our_algorithms():
        assert 1 <= contender.prepare["fit"](problem(n=500, max_iter=3))(0).n_iter <= 3


def test_thread_limits_hold_for_torch_and_openmp_and_are_undone():
    before = torch.get_num_threads()
    with limit_threads(1):
        assert (torch.get_num_threads(), allowed_threads()) == (1, 1)
    assert torch.get_num_threads() == before
