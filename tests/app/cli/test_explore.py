"""`lloydformer explore`: options in, a page or a server out."""

import json
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pytest

from lloydformer.app.jobs.explore import MOST_POINTS, data_state
from lloydformer.app.jobs.explore_settings import ExploreSettings

ROOT = Path(__file__).parents[3]


def state_of(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="initial-state">(.*?)</script>', text, re.S)[1])


@pytest.fixture
def points(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("a,b\n" + "\n".join(f"{i},{i * i}" for i in range(20)), encoding="utf-8")
    return path


def test_a_page_with_points_and_a_recipe(command, points, tmp_path):
    page = tmp_path / "page.html"
    status, out, err = command("explore", "--data", str(points), "-k", "4", "--recipe", "soft",
                               "--output", str(page))  # fmt: skip
    assert (status, out) == (0, "")
    assert "page.html" in err
    state = state_of(page)
    assert state["points"] == [[i, i * i] for i in range(20)]
    assert len(state["centers"]) == 4
    assert all(center in state["points"] for center in state["centers"])
    assert state["recipe"]["name"] == "soft"


def test_columns_and_scale_are_those_of_fit(command, tmp_path):
    """The points on the page are those that a fit with these options compares."""
    data, page = tmp_path / "mixed.csv", tmp_path / "page.html"
    data.write_text("who,a,b,city\n1,0,10,Rome\n2,5,30,Oslo\n3,10,50,Rome\n", encoding="utf-8")
    command("explore", "--data", str(data), "--columns", "b,a", "--scale", "minmax",
            "-o", str(page))  # fmt: skip
    assert state_of(page)["points"] == [[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]]
    options = ["--exclude", "who", "--one-hot", "city", "--force"]
    command("explore", "--data", str(data), *options, "-o", str(page))
    # Two words are one column: 1 is Rome, 0 is Oslo.
    assert state_of(page)["points"] == [[0, 10, 1], [5, 30, 0], [10, 50, 1]]
    _, _, err = command(
        "explore", "--data", str(data), "--numeric-only", "--force", "-o", str(page)
    )
    assert "note: " in err
    assert "city" in err


def test_an_existing_page_needs_force(command, tmp_path):
    page = tmp_path / "page.html"
    page.write_text("mine", encoding="utf-8")
    status, _, err = command("explore", "-o", str(page))
    assert (status, page.read_text(encoding="utf-8")) == (2, "mine")
    assert "pass --force to replace it" in err
    status, out, err = command("explore", "-o", str(page), "--force", "--json")
    assert (status, json.loads(out), err) == (0, {"page": str(page)}, "")
    assert state_of(page) == {}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--recipe", "relocating"], "--recipe: found 'relocating'; pass one of lloyd,"),
        (["--data", "nowhere.csv"], "nowhere.csv"),
        (["-k", "3"], "--clusters: found no --data"),
        (["--columns", "a"], "--columns: found no --data"),
        (["--scale", "standard"], "--scale: found no --data"),
        (["--data", "{points}", "--scale", "x"], "--scale: found 'x'; pass "),
        (["--data", "{points}", "--columns", "c"], "found 'c'; there are a, b"),
        (["--data", "{words}"], "use --columns a or --numeric-only"),
        (["--port", "70000"], "70000"),
    ],
)
def test_bad_input_is_one_line(command, points, tmp_path, arguments, words):
    (tmp_path / "words.csv").write_text("a,b\n1,x\n2,y\n3,z\n", encoding="utf-8")
    names = {"points": points, "words": tmp_path / "words.csv"}
    status, out, err = command("explore", *(each.format(**names) for each in arguments))
    assert (status, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1


def test_of_many_rows_some_are_drawn_and_centers_are_distinct(tmp_path):
    rows = np.repeat(np.arange(1000.0), 2)[:, None]
    np.save(tmp_path / "many.npy", rows)
    many = ExploreSettings(data=str(tmp_path / "many.npy"), clusters=300)
    state, table = data_state(many)
    assert (len(table.points), len(state["points"])) == (2000, MOST_POINTS)
    assert len({tuple(row) for row in state["centers"]}) == 300
    assert data_state(many)[0] == state
    with pytest.raises(ValueError, match="--clusters: found 501 for 500 rows"):
        data_state(replace(many, clusters=501))


SERVED = """
import signal, sys
from lloydformer.app.cli import app
sys.argv = ["lloydformer", "explore", "--no-browser"]
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it
app.main()
"""


def test_it_serves_until_ctrl_c():
    command = [sys.executable, "-c", SERVED]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        try:
            address = re.search(r"http://\S+", running.stderr.readline())[0]
            with urlopen(address, timeout=10) as answer:
                assert "initial-state" in answer.read().decode()
            running.send_signal(signal.SIGINT)
            assert running.stderr.read().endswith("closed\n")
            assert running.wait(timeout=10) == 0
        finally:
            running.kill()


def test_the_browser_is_asked_to_open_the_address(command, monkeypatch):
    opened = []

    def stop(address):
        opened.append(address)
        raise KeyboardInterrupt

    monkeypatch.setattr("webbrowser.open", stop)
    status, _, err = command("explore")
    assert status == 0
    assert opened == re.findall(r"http://\S+/", err)


def test_commands_of_the_page_run(command, points, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people = "age,income,city\n" + "".join(f"{i},{i * i},Rome\n" for i in range(9))
    (tmp_path / "people.csv").write_text(people, encoding="utf-8")
    shown = [
        line
        for page in ("docs/explorer.md", "docs/commands.md")
        for line in (ROOT / page).read_text(encoding="utf-8").splitlines()
        if line.startswith("lloydformer explore")
    ]
    assert len(shown) > 4
    for number, line in enumerate(shown):
        words = line.partition("#")[0].split()[1:]
        assert (
            command(*words, *([] if "--output" in words else ["-o", f"{number}.html"]), "--force")[
                0
            ]
            == 0
        )
