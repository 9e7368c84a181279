"""Integers on the command line: too large ones are refused in one line, before any work."""

import re
from importlib import import_module
from typing import get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from time_limit import time_limit

from lloydformer.app.cli import app
from lloydformer.app.jobs.text_values import parse_clusters

HUGE = str(10**30)
ARGUMENTS = {
    "fit": ["good.csv", "-k", "2"], "predict": ["model", "good.csv"], "check": ["lloyd"],
    "reproduce": ["comp-alg"],
}  # fmt: skip
"""Arguments that a command needs."""
COUNTS = {"train": ["--features", "--clusters", "--points", "--components", "--seed"]}
"""Options that are read as text, and hold integers or ranges of them."""


def integer_options():
    """Every option of every command that takes an integer."""
    for name in app.COMMANDS:
        function = getattr(import_module(f"lloydformer.app.cli.{name}"), name)
        for parameter, kind in get_type_hints(function).items():
            if kind in (int, int | None) and parameter != "return":
                yield name, f"--{parameter.replace('_', '-')}"
        for text in COUNTS.get(name, []):
            yield name, text


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savetxt("good.csv", np.random.default_rng(0).normal(size=(40, 2)), delimiter=",")
    return tmp_path


def complaint(found):
    status, out, err = found
    assert (status, out) == (2, "")
    assert err.startswith("lloydformer: ")
    assert err.count("\n") == 1
    return err


def test_there_are_integer_options():
    found = set(integer_options())
    assert {("fit", "--max-iter"), ("fit", "--seed"), ("bench", "--threads")} <= found
    assert len(found) > 20


@pytest.mark.parametrize(("name", "option"), [*integer_options()])
def test_integers_beyond_64_bits_are_refused_by_name(command, here, name, option):
    found = command(name, *ARGUMENTS.get(name, []), option, HUGE)
    assert option.strip("-") in complaint(found)
    assert HUGE in found[2]
    assert [path.name for path in here.iterdir()] == ["good.csv"]


def test_the_largest_integer_of_64_bits_is_allowed(command, here):
    more = ["--algorithm", "medoids", "--max-iter", "3", "--patience", str(2**63 - 1)]
    assert command("fit", "good.csv", "-k", "2", *more)[0] == 0


RANGES = {
    "1:30000000": "-k: found 30000000 clusters for the 40 rows",
    "1:9223372036854775807": "-k: found 9223372036854775807 clusters for the 40 rows",
    "9223372036854775807": "-k: found 9223372036854775807 clusters for the 40 rows",
    "1:30000000:7": "-k: found 29999999 clusters for the 40 rows",
    f"1:{HUGE}": r"-k: found .*; pass numbers below 2\^63",
    f"2:9:{HUGE}": r"-k: found .*; pass numbers below 2\^63",
    "9" * 5000: r"-k: found .*; pass numbers below 2\^63",
}


@pytest.fixture
def alarm():
    """Fail after ten seconds: a loop over a huge range would not end."""
    with time_limit(10, "the range was built, or walked through"):
        yield


@pytest.mark.parametrize("text", RANGES, ids=lambda text: text[:30])
def test_a_range_is_compared_with_the_rows_before_it_is_built(command, here, alarm, text):
    assert re.search(RANGES[text], complaint(command("fit", "good.csv", "-k", text)))


@given(st.integers(1, 60), st.integers(0, 60), st.integers(1, 9))
def test_a_range_holds_both_ends(first, more, step):
    assert list(parse_clusters(f"{first}")) == [first]
    assert list(parse_clusters(f"{first}:{first + more}")) == [*range(first, first + more + 1)]
    wanted = [k for k in range(first, first + more + 1) if (k - first) % step == 0]
    assert list(parse_clusters(f"{first}:{first + more}:{step}")) == wanted


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--features", "tasks: found 999999999999 features and 10 clusters; pass at most 16384"),
        ("--points", "batch_size: found 32 tasks of .* numbers; pass fewer or smaller tasks"),
        ("--batch", "batch_size: found 999999999999 tasks of .* numbers; pass fewer"),
        ("--validation", "n_validation: found 999999999999 tasks of .* numbers; pass fewer"),
        ("--components", "batch_size: found 32 tasks of .* numbers; pass fewer or smaller tasks"),
    ],
)
def test_training_that_no_memory_holds_is_refused_before_it_begins(command, here, option, words):
    assert re.search(words, complaint(command("train", option, "999999999999")))
