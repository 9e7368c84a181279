"""The verdicts on tab:comp-alg: that each row is the algorithm that it names."""

from collections.abc import Mapping, Sequence

from lloydformer.paper.artefact import Record
from lloydformer.paper.comp_alg.settings import BEYOND, paper_table
from lloydformer.paper.verdict import Answer, Verdict, beyond, claim, judged
from lloydformer.verify.finding import TOLERANCE

LIFTED = (
    "Holds with one change: V_5 = -I^{:d+2} for the printed -I^{:d+1}, or no bias in the network "
    "(errata.md)."
)
CLAIMS: Sequence[tuple[str, str, str, str]] = (
    (
        "lloyd",
        "the output of the T^th transformer layer exactly matches the output of Lloyd's algorithm "
        "(fig:overview A) after T iterations.", "thm:l2-clus-eu",
        "Tied points go to the first center, or are shared, on both sides alike (errata.md).",
    ),
    (
        "lloyd_dot",
        "such that the output of the T-th transformer layer exactly matches the output of Lloyd's "
        "algorithm (alg:lloyds) with the same input after T iterations.", "thm:l2-clus ip",
        "With quadratic activations, as the theorem says; for the rectified ones of the main text "
        "see the next row.",
    ),
    (
        "informal",
        "there exists a T layer transformer with shared attention parameters {(Q_μ, K_μ, V_μ), "
        "μ = 1, …, 4} and FFN parameters (W_1, W_2) using the updates in eq:l2-trf-ip-updates such "
        "that the output of the T^th transformer layer exactly matches the output of Lloyd's "
        "algorithm with the same input after T iterations.", "thm:l2-clus-ip-informal",
        "With d rectified units and weights for the given data: the code rows of W_1 add a shift "
        "that makes every coordinate positive, V_3 and V_4 take off what it adds to the norms.",
    ),
    (
        "spherical_layer",
        "such that the output of the T-th transformer layer exactly matches the output of "
        "spherical Lloyd's algorithm (alg:lloyds-sphere) with the same input after T iterations.",
        "thm:sp-clus ip", "With V_4 = -V_3, as the proof uses it (errata.md).",
    ),
    (
        "spherical",
        "the root-mean-square or RMS normalization defined as (z/‖z‖·γ + β) which one can use in "
        "place of the layer normalization defined in def:lnorm to remove the zero-sum coordinates "
        "assumption in thm:sp-clus ip.", "rem:lnorm-rmsnorm", "",
    ),
    (
        "soft",
        "by (i) swapping the limiting soft-max attention with a standard soft-max attention in the "
        "encoder cross-attention update, and (ii) changing the limiting soft-max attention with a "
        "linear attention in the decoder cross-attention update, we recover the standard soft "
        "k-means clustering algorithm (alg:soft-kmeans in sec:methods:icll).",
        "sec:results:general", "Compared with alg:soft-kmeans.",
    ),
    (
        "soft_dot",
        "By using γ<∞ and σ_lin as in Theorem thm:l2-clus eu, we can also obtain a version that "
        "implements soft k-means using inner product attention.", "sec:methods:icll:dp", "",
    ),
    (
        "trimmed",
        "The norm α-negative entropy regularized arg-max produces the “norm-max” attention, and "
        "results in the classical trimmed k-means algorithm (alg:trim-kmeans in "
        "sec:methods:robust).", "sec:results:general",
        "With a γ for each cluster, chosen from the data. The appendix asks for 'an appropriately "
        "selected γ' and does not say whether it may differ by column; a single γ does not keep "
        "the same share of every cluster (errata.md).",
    ),
    (
        "robust",
        "Different configurations of the transformer architecture result in different clustering "
        "algorithms.", "tab:comp-alg",
        "The row of robust k-means, with Euclidean scores, compared with alg:rob-kmeans.",
    ),
    (
        "robust_lifted",
        "such that the output of the T-th transformer layer exactly matches the behavior described "
        "above.", "sec:methods:new:robust", LIFTED,
    ),
    (
        "robust_lifted",
        "This transformer architecture can be also be expressed as an algorithm as shown in "
        "alg:rob-kmeans.", "sec:methods:new:robust", "The same circuit and the same runs.",
    ),
    (
        "medoids",
        "This transformer architecture is thus equivalent to a novel randomized k-medoids "
        "algorithm presented in alg:rnd-kmeds.", "sec:methods:new:kmeds",
        "Draw for draw, with the same noise on both sides.",
    ),
)  # fmt: skip
"""Recipe, sentence, its label, and a note."""
OPEN = ("trimmed",)
"""Exact with a choice that the text leaves open."""


def verdicts(result: Record) -> Sequence[Verdict]:
    """A sentence for each circuit, then what the paper does not have."""
    return [
        *(_exact(result, *words) for words in CLAIMS),
        _cells(result["rows"]), _binary(result["compared"]["lloyd_binary"]),
    ]  # fmt: skip


def _exact(result: Record, name: str, quote: str, label: str, note: str) -> Verdict:
    found = result["compared"][name]
    parts = (found["layers"], found["free"])
    holds = all(p["deviation"] <= TOLERANCE and p["decisions"] == 0 for p in parts)
    answer = Answer.OPEN if holds and name in OPEN else judged(holds)
    return claim(quote, label, f"{name}: {_measured(found)}", answer, note)


def _measured(found: Record) -> str:
    """The largest deviation of the centers, in spreads, and the number of problems."""
    parts = (found["layers"], found["free"])
    worst, turned = max(p["deviation"] for p in parts), sum(p["decisions"] for p in parts)
    count = sum(p["problems"] for p in parts)
    return f"off by {worst:.0e} on {count} problems, {turned} decisions differ"


def _cells(rows: Mapping[str, list[str]]) -> Verdict:
    wrong = differences(rows)
    cells = sum(map(len, paper_table()["rows"].values()))
    return beyond(
        "Do the recipes of this package print the table, cell by cell?",
        f"{cells - len(wrong)} of {cells} cells", "; ".join(wrong),
    )  # fmt: skip


def _binary(found: Record) -> Verdict:
    algorithm, how = BEYOND["lloyd_binary"]
    question = f"Is it still {algorithm} with {how}?"
    return beyond(question, _measured(found))


def differences(rows: Mapping[str, list[str]]) -> list[str]:
    """Every cell that differs from the paper's, in words."""
    theirs = paper_table()
    return [
        f"{name}, {column}: {mine} and not {printed}"
        for name, row in theirs["rows"].items()
        for column, printed, mine in zip(
            theirs["columns"], row, rows.get(name, [""] * len(row)), strict=True
        )
        if mine != printed
    ]
