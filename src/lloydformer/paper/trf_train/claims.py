"""The claims of fig:trf-train, panel by panel."""

from collections.abc import Sequence

from lloydformer.paper.artefact import Claim, Record
from lloydformer.paper.paper_numbers import numbers
from lloydformer.paper.trf_train.settings import LABEL, SIZES_ROW

ABOUT = 0.05
"""Tolerance of a number that the text gives with a tilde."""
SIGNIFICANT = 3
"""A difference is significant above this many standard errors."""


def claims(result: Record) -> Sequence[Claim]:
    """All claims, in the order of the panels."""
    return [*_base(result), *_ablation(result), *_plusplus(result), *_sizes(result["rows"])]


def _base(result: Record) -> list[Claim]:
    rows = result["rows"]
    row = rows["random init"]
    return [
        _near(result, "random init", "lloyd", "(a) Lloyd's algorithm reaches 5.25"),
        _near(result, "random init", "transformer", "(a) The trained transformer reaches about 5"),
        Claim(
            "(a) The trained transformer significantly outperforms Lloyd's algorithm.",
            "transformer below Lloyd's",
            _order(row),
            row["lloyd"] - row["transformer"] > SIGNIFICANT * row["error"],
            f"It is below on {100 * row['won']:.0f} % of {row['n_tasks']} tasks.",
        ),
    ]


def _ablation(result: Record) -> list[Claim]:
    rows = result["rows"]
    name = "random init, d_emb=d"
    row = rows[name]
    return [
        _near(result, name, "transformer", "(b) Without the k dimensions it reaches about 5.35"),
        Claim(
            "(b) With d_emb = d the transformer is unable to match Lloyd's algorithm.",
            "transformer above Lloyd's",
            _order(row),
            row["transformer"] > row["lloyd"],
        ),
    ]


def _plusplus(result: Record) -> list[Claim]:
    rows = result["rows"]
    base, plain = rows["random init"], rows["k-means++ init"]
    greedy = rows["greedy k-means++ init"]
    held = "it still outperforms Lloyd's algorithm"
    return [
        Claim(
            "(c) From k-means++ Lloyd's algorithm reaches less than 5.0.",
            "just under 5.0", plain["lloyd"], plain["lloyd"] < 5.0 < base["lloyd"],
            f"Plain k-means++, one candidate a draw. {_error(result, 'k-means++ init', 'lloyd')}",
        ),
        _near(result, "k-means++ init", "transformer", "(c) The transformer reaches about 4.85"),
        Claim(
            "(c) It uses improved initial centers though it was trained with random ones.",
            "4.85 from 5.0", f"{plain['transformer']:.3f} from {base['transformer']:.3f}",
            plain["transformer"] < base["transformer"],
        ),
        Claim(
            f"(c) From plain k-means++ {held}.", "transformer below Lloyd's", _order(plain),
            plain["transformer"] < plain["lloyd"],
            f"It is below on {100 * plain['won']:.0f} % of {plain['n_tasks']} tasks.",
        ),
        Claim(
            f"(c) From greedy k-means++ (scikit-learn's) {held}.",
            "not measured", _order(greedy), greedy["transformer"] < greedy["lloyd"],
            "Greedy k-means++ reverses the order: from its starts Lloyd's algorithm ends lower. "
            f"The best of 20 of these starts reaches {greedy['best_of_20']:.3f}."
            if greedy["transformer"] >= greedy["lloyd"] else "",
        ),
    ]  # fmt: skip


def _sizes(rows: Record) -> list[Claim]:
    sizes = rows[SIZES_ROW]
    return [
        Claim(
            f"(d) With n = {n} points the transformer, trained with 512, outperforms Lloyd's.",
            "transformer below Lloyd's",
            _order(row),
            row["transformer"] < row["lloyd"],
            f"Over {row['n_tasks']} tasks.",
        )
        for n, row in sizes.items()
    ]


def _near(result: Record, name: str, who: str, says: str) -> Claim:
    """A number of the text, to within ABOUT."""
    paper: float = numbers(LABEL)["rows"][name][who]
    ours: float = result["rows"][name][who]
    return Claim(
        f"{says} (mean log objective).", paper, ours, abs(ours - paper) <= ABOUT,
        _error(result, name, who),
    )  # fmt: skip


def _error(result: Record, name: str, who: str) -> str:
    n_tasks, error = result["rows"][name]["n_tasks"], result["curves"][name][who]["error"][-1]
    return f"Standard error of {n_tasks} tasks: {error:.3f}."


def _order(row: Record) -> str:
    """Both means, and their difference with its standard error."""
    difference = row["transformer"] - row["lloyd"]
    both = f"{row['transformer']:.3f} against {row['lloyd']:.3f}"
    return f"{both} ({difference:+.3f} ± {row['error']:.3f})"
