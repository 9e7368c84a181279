"""A sample label with two pieces."""

from collections.abc import Mapping

import pytest
from matplotlib.figure import Figure

from lloydformer.paper.artefact import Artefact, Picture, Piece, Record, Scope, TextTable
from lloydformer.paper.verdict import Kind, Tolerance, Verdict, judge, number

# The pieces that were really run, in order.
RUNS: list[str] = []


def pieces(scope: Scope) -> Mapping[str, Piece]:
    def piece(name: str) -> Piece:
        def run() -> Record:
            RUNS.append(name)
            return {"value": (3.0 if name == "one" else 4.0) + scope.seed}

        return run

    return {"one": piece("one"), "two": piece("two")}


def combine(outputs: Mapping[str, Record]) -> Record:
    return {"rows": {name: [piece["value"]] for name, piece in outputs.items()}}


def verdicts(result: Record) -> list[Verdict]:
    one, two = (result["rows"][name][0] for name in ("one", "two"))
    return [
        number("one", "tab:sample", 3.0, one, Tolerance(0.5, "A round number.")),
        Verdict(
            Kind.CLAIM,
            f"{two:g}",
            judge(two < one),
            "two | is below one",
            "sec:sample",
            note="It is not.",
        ),
        Verdict(Kind.BEYOND, "not asked", None, about="And three?"),
    ]


def tables(result: Record) -> list[TextTable]:
    return [
        TextTable(
            "Values", ["name", "value"], [[n, f"{v[0]:g}"] for n, v in result["rows"].items()]
        )
    ]


def pictures(result: Record) -> list[Picture]:
    figure = Figure((2, 2))
    figure.subplots().plot([v[0] for v in result["rows"].values()])
    return [Picture("sample", figure, "A line.")]


SAMPLE = Artefact(
    "sample",
    ("tab:sample",),
    "A sample",
    "Two numbers.",
    pieces,
    combine,
    verdicts,
    tables,
    pictures,
)


@pytest.fixture
def sample() -> Artefact:
    return SAMPLE


@pytest.fixture
def ran() -> list[str]:
    """The pieces that were run in this test."""
    RUNS.clear()
    return RUNS
