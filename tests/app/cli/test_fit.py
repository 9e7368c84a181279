"""The files and output of `fit` and `predict` agree with the estimators."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics
import torch

import lloydformer as lf
from lloydformer.app.cli.fit import describe_stop, report_interrupt
from lloydformer.app.jobs.fit.result import FitRun
from lloydformer.app.jobs.text_values import parse_clusters
from lloydformer.estimators import ALGORITHMS
from lloydformer.profiles.sample import draw_sample, silhouettes
from lloydformer.solving.driver import Interrupted, Result
from lloydformer.solving.run import Outcome

RNG = np.random.default_rng(0)
MIDDLES = np.array([[0, 0, 0], [9, 0, 9], [0, 9, 5.0]])
X = (MIDDLES[np.arange(300) % 3] + RNG.normal(size=(300, 3))) * [1, 10, 100] + 50
FRAME = pd.DataFrame(X, columns=["a", "b", "size, of"])


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder to work in, with points.csv."""
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("points.csv", index=False)
    return tmp_path


def test_the_files_have_the_results_of_the_estimator(command, here):
    status, out, err = command("fit", "points.csv", "-k", "3", "--scale", "minmax", "--seed", "4")
    blocks = lf.data.open_dataset("points.csv", scale="minmax")
    model = lf.RelocatingKMeans(3, random_state=4).fit(blocks)
    assert (status, err) == (0, "")
    labels = pd.read_csv("points-clusters/labels.csv")
    assert list(labels.columns) == ["row", "cluster", "distance"]
    assert np.array_equal(labels["row"], np.arange(1, 301))
    assert np.array_equal(labels["cluster"], model.labels_)
    assert np.allclose(
        labels["distance"],
        model.transform(lf.data.open_dataset("points.csv")).min(axis=1),
        rtol=1e-5,
    )
    centers = pd.read_csv("points-clusters/centers.csv")
    assert list(centers.columns) == ["cluster", "size", "a", "b", "size, of"]
    assert np.array_equal(centers.to_numpy()[:, 2:], model.cluster_centers_)
    assert np.array_equal(centers["size"], np.bincount(model.labels_))
    summary = json.loads((here / "points-clusters" / "summary.json").read_text())
    assert summary["inertia"] == model.inertia_
    assert summary["history"] == model.objective_history_.tolist()
    assert summary["command"].endswith("fit points.csv -k 3 --scale minmax --seed 4")
    assert f"objective {model.inertia_:.6g}" in out
    assert "in points-clusters: labels.csv, centers.csv, summary.json, model" in out


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_gives_the_results_of_its_estimator(command, here, algorithm):
    status, out, _ = command("fit", "points.csv", "-k", "3", "--algorithm", algorithm,
                             "--scale", "standard", "--max-iter", "20", "--json")  # fmt: skip
    found = json.loads(out)
    blocks = lf.data.open_dataset("points.csv", scale="standard")
    model = ALGORITHMS[algorithm].estimator(3, max_iter=20, random_state=0).fit(blocks)
    assert status == 0
    assert found["inertia"] == model.inertia_
    labels = pd.read_csv("points-clusters/labels.csv")
    nearest = model.transform(blocks)
    assert np.array_equal(labels["cluster"], model.predict(blocks))
    assert np.allclose(labels["distance"], nearest.min(axis=1), atol=1e-6)
    out_of = found["clusters"]["0"].get("left_out")
    assert (out_of is not None) == (algorithm == "trimmed")
    if algorithm == "trimmed":
        assert np.array_equal(np.flatnonzero(labels["outlier"]), model.outliers_)
        assert sum(c["size"] for c in found["clusters"].values()) == 300 - len(model.outliers_)


def test_the_end_of_a_fit_is_told_in_plain_words(command, here):
    fit = ("fit", "points.csv", "-k", "3", "--force", "--scale", "standard")
    assert re.search(r"\n\d+ iterations, \d", command(*fit, "--algorithm", "medoids")[1])
    assert "\n1 iteration, the most allowed, " in command(*fit, "--max-iter", "1")[1]
    assert "iterations, " in command(*fit, "--algorithm", "learned")[1]


def test_an_old_word_is_a_line_that_says_the_new_one(here):
    arguments = ("fit", "points.csv", "-k", "3", "--algorithm", "medoids", "--effort", "quick")
    done = subprocess.run(
        [sys.executable, "-m", "lloydformer", *arguments], capture_output=True, text=True
    )
    assert done.returncode == 0
    [line] = [line for line in done.stderr.splitlines() if "is now" in line]
    assert line == (
        'lloydformer: KMedoids: effort="quick" is now "low"; the old name works until version 2.0'
    )


@pytest.mark.parametrize("effort", ["medium", "2"])
def test_effort_and_time_limit(command, here, effort):
    more = ("--algorithm", "relocating", "--effort", effort, "--time-limit", "100", "--json")
    status, out, _ = command("fit", "points.csv", "-k", "3", *more)
    assert status == 0
    options = json.loads(out)["options"]
    assert options["time_limit"] == 100
    assert options["effort"] == (2 if effort == "2" else effort)


def test_a_range_of_k_writes_the_best_silhouette(command, here):
    status, out, _ = command("fit", "points.csv", "-k", "1:5", "--scale", "standard", "--json")
    found = json.loads(out)
    assert status == 0
    assert list(found["rows"]) == ["1", "2", "3", "4", "5"]
    assert found["rows"]["1"]["silhouette"] is None
    assert found["k"] == 3
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    labels = pd.read_csv("points-clusters/labels.csv")["cluster"]
    truth = sklearn.metrics.silhouette_score(scaled, labels)
    assert found["rows"]["3"]["silhouette"] == pytest.approx(truth, rel=1e-9)
    assert json.loads((here / "points-clusters" / "summary.json").read_text()) == found
    options = ("--scale", "standard", "--force")
    text = command("fit", "points.csv", "-k", "2:4", "--select", "silhouette", *options)[1]
    assert "k 3 has the best silhouette, and was written." in text
    text = command("fit", "points.csv", "-k", "2:4", *options)[1]
    assert "k 3 was chosen from 2 to 4, and was written." in text


def test_silhouettes_equal_those_of_scikit_learn():
    points = draw_sample(lf.data.open_dataset(X), seed=0, size=200)
    labels = np.arange(200) % 7
    labels[0] = 7  # alone
    ours = silhouettes(points.distances, points.rows.new_tensor(labels), 9)
    rows = X[points.rows.numpy()]
    assert np.allclose(ours.numpy(), sklearn.metrics.silhouette_samples(rows, labels), atol=1e-9)


@pytest.mark.parametrize("text", ["8", "2:4", "2:9:3"])
def test_numbers_of_clusters_are_parsed(text):
    wanted = {"8": (8,), "2:4": (2, 3, 4), "2:9:3": (2, 5, 8)}[text]
    assert tuple(parse_clusters(text)) == wanted


@pytest.mark.parametrize("text", ["0", "4:2", "2:4:0", "a", "-3", "1:2:3:4", "", "2.5", "٣"])
def test_wrong_numbers_of_clusters_are_refused(text):
    with pytest.raises(ValueError, match="-k: found"):
        parse_clusters(text)


def test_predict_finds_columns_by_name_and_scales_as_in_the_fit(command, here):
    assert command("fit", "points.csv", "-k", "3", "--scale", "standard")[0] == 0
    new = FRAME.sample(50, random_state=1)
    new[["size, of", "a", "b"]].assign(name="text").to_csv("new.csv", index=False)
    status, out, err = command("predict", "points-clusters", "new.csv", "-o", "new.parquet")
    assert (status, err) == (0, "")
    fitted = pd.read_csv("points-clusters/labels.csv")
    found = pd.read_parquet("new.parquet")
    assert np.array_equal(found["cluster"], fitted["cluster"][new.index])
    assert np.allclose(found["distance"], fitted["distance"][new.index], rtol=1e-5)
    np.save("new.npy", new.to_numpy())  # no names: columns in the order of the file
    status, out, _ = command("predict", "points-clusters/model", "new.npy", "--json")
    assert status == 0
    assert json.loads(out)["labels"] == "new-labels.csv"
    assert np.array_equal(pd.read_csv("new-labels.csv")["cluster"], found["cluster"])


def test_a_fit_can_start_from_a_model(command, here):
    command("fit", "points.csv", "-k", "3", "-o", "first")
    again = ("--start-from", "first", "--algorithm", "kmeans", "--json")
    status, out, _ = command("fit", "points.csv", *again)
    found = json.loads(out)
    first = json.loads((here / "first" / "summary.json").read_text())
    assert (status, found["k"], found["n_iter"]) == (0, 3, 1)
    assert found["inertia"] == pytest.approx(first["inertia"], rel=1e-9)
    assert found["options"]["init"] == "centers"


def test_files_of_an_earlier_fit_that_are_not_written_again_are_removed(command, here):
    command("fit", "points.csv", "-k", "3", "--report")
    folder = here / "points-clusters"
    (folder / "mine.txt").write_text("stays")
    before = set((folder / "model").iterdir())
    (folder / "model" / "model-card.md").write_text("stays")
    status, _, _ = command("fit", "points.csv", "-k", "2", "--labels", "parquet", "--force")
    names = {path.name for path in folder.iterdir()}
    assert status == 0
    assert names == {"labels.parquet", "centers.csv", "summary.json", "model", "mine.txt"}
    assert len(list((folder / "model").iterdir())) == len(before) + 1 == 3
    assert (folder / "model" / "model-card.md").read_text() == "stays"
    model = lf.RelocatingKMeans.from_pretrained(folder / "model")
    assert np.array_equal(pd.read_parquet(folder / "labels.parquet")["cluster"], model.labels_)


def test_fewer_clusters_than_requested_prints_a_note_and_no_warning(command, here):
    pd.DataFrame({"a": [1.0, 1.0, 2.0], "b": [1.0, 1.0, 2.0]}).to_csv("same.csv", index=False)
    status, _, err = command("fit", "same.csv", "-k", "3")
    assert status == 0
    assert err.startswith("note: k 3: Number of distinct clusters (2)")
    assert "Warning" not in err


PAGES = Path(__file__).parents[3]
SHOWN = [
    line
    for page in ("README.md", "docs/commands.md")
    for line in (PAGES / page).read_text(encoding="utf-8").splitlines()
    if line.startswith(("lloydformer fit ", "lloydformer predict "))
]


def test_commands_on_the_pages_run(command, here):
    frame = FRAME.rename(columns={"a": "height", "b": "weight"})
    (here / "folder-of-files").mkdir()
    frame.to_csv("folder-of-files/1.csv", index=False)
    frame.to_csv("new.csv", index=False)
    frame.to_csv("points.csv", index=False)
    frame.to_parquet("points.parquet")
    # Columns of one scale: where one column owns the variance, a note may say that tol ended a fit.
    np.save("points.npy", X / [1, 10, 100])
    assert len(SHOWN) >= 7
    for line in SHOWN:
        if "predict" in line:  # needs the model in points-clusters with these columns
            command("fit", "points.csv", "-k", "3", "--force")
        status, _, err = command(*line.split()[1:], "--force")
        assert status == 0, line
        # mixtures of up to ten components have some of few rows here: a note names their number
        said = ("note: scaled: ", "note: k ")
        others = [found for found in err.splitlines() if not found.startswith(said)]
        assert others == [], line


def test_help_and_documentation_name_every_algorithm(command):
    help_text = " ".join(command("fit", "--help")[1].split())
    page = (PAGES / "docs" / "commands.md").read_text(encoding="utf-8")
    assert f"One of {', '.join(ALGORITHMS)}, learned, mixture." in help_text
    others = ("learned", "mixture")
    assert [name for name in (*ALGORITHMS, *others) if f"`{name}`" not in page] == []


STOPPED = """
import os, signal, sys, threading
from lloydformer.app.cli import app
from lloydformer.app.jobs.fit.job import FitJob
def fit(self, *arguments, inner=FitJob.fit):
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    return inner(self, *arguments)
FitJob.fit = fit
sys.argv = ["lloydformer", *sys.argv[1:]]
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it
app.main()
"""


@pytest.mark.parametrize("k", [pytest.param("40", marks=pytest.mark.long), "2:40"])
def test_ctrl_c_prints_what_is_done_and_writes_nothing(here, k):
    np.save("large.npy", RNG.normal(size=(100_000, 16)).astype(np.float32))
    endless = ["fit", "large.npy", "-k", k, "--algorithm", "medoids", "--max-iter", "1000000"]
    found = subprocess.run([sys.executable, "-c", STOPPED, *endless], capture_output=True,
                           text=True, check=False)  # fmt: skip
    assert (found.returncode, found.stdout) == (130, "")
    assert re.fullmatch(r"stopped: (.*); no file was written\n", found.stderr), found.stderr
    assert [path.name for path in here.iterdir() if "large-" in path.name] == []


@pytest.mark.parametrize(
    ("done", "words"),
    [
        ([], "stopped: objective 7 after 1 iteration (--max-iter 1 gives this result); no file"),
        ([FitRun(2, 9.0, 0.25, 4, 0.1)], "stopped: k 2 is done, with silhouette 0.250; no file"),
        (
            [
                FitRun(2, 9.0, 0.25, 4, 0.1),
                FitRun(3, 8.0, 0.5, 4, 0.1),
                FitRun(4, 7.0, 0.4, 4, 0.1),
            ],
            "stopped: k 2 to 4 are done, the best silhouette is 0.500 with k 3; no file",
        ),
    ],
    ids=["one fit", "first of a range", "range"],
)
def test_the_line_printed_on_ctrl_c(capsys, done, words):
    result = Result(Outcome(torch.zeros(1, 1), 7.0, (8.0, 7.0)), torch.zeros(1))
    with pytest.raises(Interrupted), report_interrupt(lambda stop: describe_stop(done, stop)):
        raise Interrupted(result)
    assert capsys.readouterr().err.startswith(words)
