"""What tab:openml-trf says, and how it looks."""

from collections.abc import Mapping, Sequence

import numpy as np

from lloydformer.paper.artefact import Claim, Found, Table
from lloydformer.paper.beside import cell, farthest, names, paper_row

LABEL = "openml-trf"
N_STEPS, N_CLUSTERS = 10, 10
MOST_COLUMNS = 32
"""As many as the trained layer takes."""
NEAR, AGREE = 0.15, 13
COLUMNS = {"initial": "Initial objective", "lloyd": "Lloyd's", "transformer": "k-means transformer"}
BEYOND = {
    "polished": f"transformer, then {N_STEPS} Lloyd steps",
    "lloyd_longer": f"Lloyd's, {2 * N_STEPS} steps",
    "greedy": "Lloyd's from greedy k-means++",
    "ten_random": "Lloyd's, best of ten random starts",
    "ten_greedy": "Lloyd's, best of ten greedy k-means++",
}


def claims(result: Found) -> Sequence[Claim]:
    """The sentences of text and caption, the numbers, and what other starts add."""
    rows, sets = result["rows"], names(LABEL)
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
            f"{_times(rows):.0f}% higher on average.",
        ),
        Claim(
            "All 15 sets have 32 columns or more.", "32 or more", f"{narrowest} or more",
            narrowest >= MOST_COLUMNS,
        ),
        *_numbers(result), *_starts(rows),
    ]  # fmt: skip


def _times(rows: Found) -> float:
    """By how much percent the transformer's objective is above Lloyd's: logs are differences."""
    apart = [row["transformer"] - row["lloyd"] for row in rows.values()]
    return 100 * float(np.expm1(np.mean(apart)))


def _numbers(result: Found) -> list[Claim]:
    rows, sets = result["rows"], names(LABEL)
    both, where = farthest(LABEL, rows, ("initial", "lloyd"), sets)
    trained, at = farthest(LABEL, rows, ("transformer",), sets)
    signs = sum(_sign(rows[name]) == _sign(paper_row(LABEL, name)) for name in sets)
    over = f"over {result['n_trials']} trials"
    return [
        Claim(
            f"Initial and Lloyd columns come out within {NEAR} on all 15 sets.", NEAR, both,
            both <= NEAR, f"The largest difference, {over}: {where}.",
        ),
        Claim(
            f"So does the transformer's column, from weights trained anew, within {NEAR}.", NEAR,
            trained, trained <= NEAR, f"The largest difference, {over}: {at}.",
        ),
        Claim(
            f"The sign of transformer minus Lloyd is the paper's on at least {AGREE} of 15 sets.",
            f"{AGREE} of 15", f"{signs} of 15", signs >= AGREE,
        ),
    ]  # fmt: skip


def _sign(row: Mapping[str, float]) -> bool:
    return row["transformer"] > row["lloyd"]


def _starts(rows: Found) -> list[Claim]:
    polished = sum(row["polished"] < row["lloyd_longer"] for row in rows.values())
    greedy = sum(row["greedy"] < row["lloyd"] for row in rows.values())
    return [
        Claim(
            "Beyond the paper: as a start for Lloyd's, ten steps of the transformer are worth ten "
            "Lloyd steps.",
            "not compared", f"lower on {polished} of {len(rows)} sets", 2 * polished >= len(rows),
            f"Each followed by {N_STEPS} Lloyd steps.",
        ),
        Claim(
            "Beyond the paper: greedy k-means++ makes Lloyd's better than random points do.",
            "not compared", f"on {greedy} of {len(rows)} sets", 2 * greedy > len(rows),
        ),
    ]  # fmt: skip


def tables(result: Found) -> Sequence[Table]:
    """The paper's, with its numbers in brackets; then other starts and steps."""
    rows, over = result["rows"], f"{result['n_trials']} trials, {N_STEPS} steps"
    return [
        Table(
            f"Mean and standard deviation of the log objective, {over} (in brackets the paper's)",
            ["Dataset", *COLUMNS.values(), "relative difference"],
            [[name, *_shown(name, rows[name])] for name in names(LABEL)],
        ),
        Table(
            f"Beyond the paper's comparison: mean log objective, {over}",
            ["Dataset", "Lloyd's", "transformer", *BEYOND.values()],
            [
                [name, *(f"{rows[name][c]:.2f}" for c in ("lloyd", "transformer", *BEYOND))]
                for name in names(LABEL)
            ],
        ),
    ]


def _shown(name: str, row: Found) -> list[str]:
    paper = paper_row(LABEL, name)
    cells = [
        f"{row[c]:.2f} ± {row[f'{c}_std']:.2f} ({paper[c]:.2f} ± {paper[f'{c}_std']:.2f})"
        for c in COLUMNS
    ]
    relative = "relative_diff_percent"
    return [*cells, f"{cell(row[relative], paper[relative], 2)} %"]
