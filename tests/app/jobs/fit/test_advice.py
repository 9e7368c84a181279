"""Each piece of advice is given where it belongs, and nowhere else."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from lloydformer.app.jobs.fit.advice import give_advice
from lloydformer.app.jobs.fit.job import FitJob
from lloydformer.app.jobs.fit.settings import FitSettings
from lloydformer.profiles.assignment import Assignment

RNG = np.random.default_rng(0)
N = 300
MIDDLES = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
CLEAR = pd.DataFrame(MIDDLES[np.arange(N) % 3] + RNG.normal(size=(N, 2)), columns=["a", "b"])
RATINGS = pd.DataFrame(RNG.integers(3, size=(N, 2)), columns=["a", "b"])
NOISE = pd.DataFrame(RNG.normal(size=(N, 12))).add_prefix("x")
FAR = pd.concat([CLEAR, pd.DataFrame({"a": [500.0], "b": [500.0]})], ignore_index=True)
SHUFFLED = RNG.permutation(N) + 7.0

CASES = {
    "nothing": (CLEAR, None, []),
    "one column carries all": (
        CLEAR.assign(income=RNG.normal(size=N) * 1e4), None,
        ["column income carries more than 99.9% of the variance, so the others hardly matter; "
         "--scale standard"],
    ),
    "the same, scaled": (CLEAR.assign(income=CLEAR["a"] * 1e4), "standard", []),
    "row numbers": (CLEAR.assign(n=np.arange(N) / 1.0), "standard", ["column n: a different int"]),
    "numbers of customers": (
        CLEAR.assign(customer_id=SHUFFLED), "standard", ["column customer_id: a different integer"],
    ),
    "other integers": (CLEAR.assign(income=SHUFFLED), "standard", []),
    "a constant column": (
        CLEAR.assign(c=3.0), None, ["the same value in every row: c; --exclude c"],
    ),
    "a nearly constant column": (
        CLEAR.assign(c=np.eye(N)[5]), None, ["nearly the same value in every row: c (99.7%)"],
    ),
    "copies": (RATINGS, None, ["291 of 300 rows are copies of other rows"]),
    "no clusters": (NOISE, None, ["the silhouette is 0.0", ]),
    "an outlier": (FAR, None, ["has 1 row alone, perhaps an outlier; --algorithm trimmed"]),
    "few rows": (RATINGS.head(15), None, []),
}  # fmt: skip


@pytest.fixture
def fitted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(frame, scale, clusters="3"):
        frame.to_csv("p.csv", index=False)
        job = FitJob(FitSettings(data="p.csv", clusters=clusters, scale=scale))
        return job.fit(*job.read())

    return run


@pytest.mark.parametrize("case", CASES)
def test_advice(fitted, case):
    frame, scale, wanted = CASES[case]
    found = fitted(frame, scale).advice
    assert len(found) == len(wanted), found
    assert all(words in line for words, line in zip(wanted, found, strict=True)), found


def test_the_row_of_an_outlier_is_that_of_the_file(fitted):
    frame = FAR.copy()
    frame.loc[3, "a"] = np.nan
    frame.to_csv("p.csv", index=False)
    assert "(row 301)" in fitted(FAR, None).advice[0]


def test_the_row_of_a_small_cluster_is_one_that_was_kept(fitted):
    # Row 0 is trimmed and nearest to the center at row 1, which is alone in its cluster.
    result = fitted(CLEAR, None)
    clusters = torch.zeros(N, dtype=torch.int64)
    clusters[:2] = 1
    left_out = torch.arange(N) == 0
    assignment = Assignment(clusters, torch.zeros(N), left_out)
    found = give_advice(replace(result, assignment=assignment))
    assert any("cluster 1 (row 2) has 1 row alone" in line for line in found), found


def test_a_range_speaks_of_the_best(fitted):
    assert "the best silhouette is" in fitted(NOISE, None, "2:4").advice[0]
