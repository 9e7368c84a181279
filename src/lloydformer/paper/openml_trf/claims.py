"""The claims of tab:openml-trf."""

from collections.abc import Mapping, Sequence

import numpy as np

from lloydformer.paper.artefact import Claim, Record
from lloydformer.paper.compare_to_paper import largest_difference
from lloydformer.paper.openml_trf.settings import LABEL, MOST_COLUMNS, N_STEPS
from lloydformer.paper.paper_numbers import paper_row, row_names

NEAR, AGREE = 0.15, 13
"""Tolerance of a column, and the number of sets on which the sign must agree."""


def claims(result: Record) -> Sequence[Claim]:
    """The sentences of text and caption, the numbers, and comparisons beyond the paper."""
    rows, sets = result["rows"], row_names(LABEL)
    better = sum(row["transformer"] < row["initial"] for row in rows.values())
    relative = [row["relative_diff_percent"] for row in rows.values()]
    narrowest = min(width for _, width in result["sizes"].values())
    return [
        Claim(
            "In all cases, the trained model improves the objective from the initial centers.",
            "15 of 15", f"{better} of {len(rows)}", better == len(sets),
        ),
        Claim(
            "It underperforms Lloyd's by 1-7%.",
            "0.93% to 7.07%", f"{min(relative):.2f}% to {max(relative):.2f}%",
            min(relative) >= 0.5 and max(relative) < 7.5,
            "Of the log objective, in whole percent; the objective itself is "
            f"{_percent_above(rows):.0f}% higher on average.",
        ),
        Claim(
            "All 15 sets have 32 columns or more.", "32 or more", f"{narrowest} or more",
            narrowest >= MOST_COLUMNS,
        ),
        *_numbers(result), *_starts(rows),
    ]  # fmt: skip


def _percent_above(rows: Record) -> float:
    """How much higher the transformer's objective is, in percent; the rows hold logarithms."""
    differences = [row["transformer"] - row["lloyd"] for row in rows.values()]
    return 100 * float(np.expm1(np.mean(differences)))


def _numbers(result: Record) -> list[Claim]:
    rows, sets = result["rows"], row_names(LABEL)
    both, where = largest_difference(LABEL, rows, ("initial", "lloyd"), sets)
    trained, at = largest_difference(LABEL, rows, ("transformer",), sets)
    signs = sum(_sign(rows[name]) == _sign(paper_row(LABEL, name)) for name in sets)
    over = f"over {result['n_trials']} trials"
    return [
        Claim(
            f"Initial and Lloyd columns agree within {NEAR} on all 15 sets.", NEAR, both,
            both <= NEAR, f"The largest difference, {over}: {where}.",
        ),
        Claim(
            f"So does the transformer's column, with newly trained weights, within {NEAR}.", NEAR,
            trained, trained <= NEAR, f"The largest difference, {over}: {at}.",
        ),
        Claim(
            f"The sign of transformer minus Lloyd is the paper's on at least {AGREE} of 15 sets.",
            f"{AGREE} of 15", f"{signs} of 15", signs >= AGREE,
        ),
    ]  # fmt: skip


def _sign(row: Mapping[str, float]) -> bool:
    """Whether the transformer is above Lloyd's."""
    return row["transformer"] > row["lloyd"]


def _starts(rows: Record) -> list[Claim]:
    polished = sum(row["polished"] < row["lloyd_longer"] for row in rows.values())
    greedy = sum(row["greedy"] < row["lloyd"] for row in rows.values())
    return [
        Claim(
            "Beyond the paper: ten steps of the transformer are as useful as ten Lloyd steps as "
            "a start for Lloyd's.",
            "not compared", f"lower on {polished} of {len(rows)} sets", 2 * polished >= len(rows),
            f"Each followed by {N_STEPS} Lloyd steps.",
        ),
        Claim(
            "Beyond the paper: greedy k-means++ makes Lloyd's better than random points do.",
            "not compared", f"on {greedy} of {len(rows)} sets", 2 * greedy > len(rows),
        ),
    ]  # fmt: skip
