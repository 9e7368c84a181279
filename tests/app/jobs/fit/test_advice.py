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
INCOME = RNG.normal(size=N) * 1e4
SKEWED = pd.DataFrame(np.exp(2 * RNG.normal(size=(N, 2))), columns=["income", "spend"])
TWICE = pd.concat([CLEAR, CLEAR.head(150)], ignore_index=True)
WORDS = RNG.choice(list("ABCDEFGHIJ"), size=N)
# Continuous columns, rounded: 9 of 10 rows are copies, but not in the column that is left out.
VISITS = pd.DataFrame(RNG.integers(5, size=(30, 6)), columns=list("abcdef")).iloc[np.arange(N) % 30]
VISITS = VISITS.assign(f=VISITS["f"] / 10, when=RNG.normal(size=N))
CONSTANT = CLEAR.assign(c=3.0)
# Distances of 8.5 in 60 columns: rows of a cluster are 11 apart, those of two clusters 14.
WIDE = pd.DataFrame(6 * np.eye(3, 60)[np.arange(N) % 3] + RNG.normal(size=(N, 60))).add_prefix("x")

# Each piece of advice where it is right, and next to that, data where it must be silent.
CASES = {
    "nothing": (CLEAR, {}, []),
    "nothing, unscaled": (CLEAR, {"scale": "none"}, []),
    "one column carries all": (
        CLEAR.assign(income=INCOME), {"scale": "none"},
        ["column income carries more than 99.9% of the variance, so the others hardly matter; "
         "--scale auto"],
    ),
    "the same, standardised": (CLEAR.assign(income=CLEAR["a"] ** 3), {"scale": "standard"}, []),
    "the same, by default": (CLEAR.assign(income=CLEAR["a"] ** 3), {}, []),
    "a long tail": (
        SKEWED, {"scale": "standard", "k": "2:4"},
        ["columns income and spend: a long tail, so that a few large values decide the clusters; "
         "--scale auto takes logarithms"],
    ),
    "a long tail, by default": (np.exp(CLEAR), {}, []),
    "outliers": (
        CLEAR.assign(a=np.where(np.arange(N) < 2, 1e4, CLEAR["a"])), {"scale": "robust"},
        ["column a: values up to "],
    ),
    "outliers, by default": (CLEAR.assign(a=np.where(np.arange(N) < 2, 1e4, CLEAR["a"])), {}, []),
    "a small cluster is no outlier": (
        CLEAR.assign(a=np.where(np.arange(N) < 9, 90, CLEAR["a"])), {"scale": "standard"}, [],
    ),
    "words hide numbers": (
        CLEAR.assign(city=WORDS), {"scale": "standard", "one_hot": "city"},
        ["the 10 columns of 0 and 1 carry 83.3% of the variance, and may hide the numbers; "
         "--scale auto"],
    ),
    "words, by default": (CLEAR.assign(city=WORDS), {"one_hot": "city"}, []),
    "words beside large numbers": (
        CLEAR.assign(city=WORDS), {"scale": "none", "one_hot": "city"}, [],
    ),
    "row numbers": (CLEAR.assign(n=np.arange(N) / 1.0), {},
                    ["column n: a different integer in every row, as numbers of rows and customers "
                     "are; --id-column n leaves it out"]),
    "an id first, and then the scale": (
        CLEAR.assign(customer_id=SHUFFLED * 1e6), {"scale": "none"},
        ["column customer_id: a different integer"],
    ),
    "a second id": (
        CLEAR.assign(key=SHUFFLED, row_id=np.arange(N)), {"id_column": "key"},
        ["column row_id: a different integer in every row, as numbers of rows and customers are; "
         "--exclude row_id"],
    ),
    "other integers": (CLEAR.assign(income=SHUFFLED), {"scale": "standard"}, []),
    "a constant column": (CONSTANT, {}, ["the same value in every row: c; --exclude c"]),
    "a constant column, left out": (CONSTANT, {"exclude": "c"}, []),
    "a nearly constant column": (
        CLEAR.assign(c=np.eye(N)[5]), {}, ["nearly the same value in every row: c (99.7%)"],
    ),
    "a rare value": (CLEAR.assign(c=1.0 * (np.arange(N) < 9)), {}, []),
    "the same column twice": (
        CLEAR.assign(feet=CLEAR["a"] / 0.3048), {"scale": "standard"},
        ["columns a and feet say the same (correlation 1.00), so it counts twice; --exclude feet"],
    ),
    "columns that are alike": (CLEAR.assign(c=CLEAR["a"] + 0.5 * INCOME / 1e4), {}, []),
    "copies": (
        TWICE, {}, ["150 of 450 rows are copies of other rows, in all columns; remove them"],
    ),
    "copies in the columns that are used": (VISITS, {"exclude": "when"}, []),
    "copies in all columns": (
        VISITS.drop(columns="when"), {}, ["270 of 300 rows are copies of other rows, in all"],
    ),
    "ratings repeat by chance": (RATINGS, {}, []),
    "more clusters than different rows": (
        RATINGS, {"k": "12"}, ["k 12 is more than the 9 different rows; -k 9 is the most"],
    ),
    "as many clusters as different rows": (RATINGS, {"k": "9"}, []),
    "no clusters": (NOISE, {}, ["the silhouette is 0.0"]),
    "clear clusters in many columns": (WIDE, {}, []),
    "an outlier": (
        FAR, {"scale": "minmax", "k": "2"},
        ["columns a and b: values up to 78 deviations from the median, which weigh more than all "
         "others; --scale auto moves outliers to limits or takes ranks, and --algorithm trimmed"],
    ),
    "a row alone": (
        CLEAR.assign(a=np.where(np.arange(N) == 7, 60, CLEAR["a"])), {"k": "4", "scale": "none"},
        ["has 1 row alone, perhaps an outlier; --algorithm trimmed"],
    ),
    "an outlier that is left out": (FAR, {"algorithm": "trimmed", "k": "3"}, []),
    "few rows for each cluster": (CLEAR.head(24), {"k": "12"}, []),
    "few rows": (RATINGS.head(15), {}, []),
    "the largest k is the best": (CLEAR, {"k": "1:3"}, ["k 3 is the largest that was tried"]),
    "a smaller k is the best": (CLEAR, {"k": "2:5"}, []),
}  # fmt: skip


@pytest.fixture
def fitted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(frame, scale=None, clusters="3", **more):
        frame.to_csv("p.csv", index=False)
        job = FitJob(FitSettings(data="p.csv", clusters=clusters, scale=scale, **more))
        return job.fit(*job.read())

    return run


@pytest.mark.parametrize("case", CASES)
def test_advice(fitted, case):
    frame, options, wanted = CASES[case]
    options = {"n_init": 5, "clusters": options.get("k", "3"), **options}
    options.pop("k", None)
    found = fitted(frame, **options).advice
    assert len(found) == len(wanted), found
    assert all(words in line for words, line in zip(wanted, found, strict=True)), found


def test_the_row_of_an_outlier_is_that_of_the_file(fitted):
    frame = CLEAR.copy()
    frame.loc[3, "a"] = np.nan
    frame.loc[250, "a"] = 60.0
    assert "(row 251)" in fitted(frame, "none", "4", missing="drop", n_init=5).advice[0]


def test_the_row_of_a_small_cluster_is_one_that_was_kept(fitted):
    # Row 0 is trimmed and nearest to the center at row 1, which is alone in its cluster.
    result = fitted(CLEAR)
    clusters = torch.zeros(N, dtype=torch.int64)
    clusters[:2] = 1
    left_out = torch.arange(N) == 0
    assignment = Assignment(clusters, torch.zeros(N), left_out)
    found = give_advice(replace(result, assignment=assignment))
    assert any("cluster 1 (row 2) has 1 row alone" in line for line in found), found


def test_a_range_speaks_of_the_best(fitted):
    assert "the best silhouette is" in fitted(NOISE, None, "2:4").advice[0]
