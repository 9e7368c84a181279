"""The verdicts on fig:parameter_sweep, by the authors' published runs and by ours."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from math import hypot, inf, sqrt

import numpy as np

from lloydformer.paper.artefact import Record
from lloydformer.paper.parameter_sweep.experiment import AXES, GAMMAS
from lloydformer.paper.verdict import Answer, Verdict, beyond, claim, find_tolerance, judge, number

# Fewer runs than this, a tenth of the authors', refute nothing.
ENOUGH = 3000
# A claim must hold for both: the authors' runs are the figure, ours are independent of them.
WHOSE = ("authors", "ours")


def verdicts(result: Record) -> list[Verdict]:
    """Return verdicts on asec:num-val, on the means of the figure, and on the agreement."""
    return [*_claims(result), *_means(result), *_findings(result)]


def _claims(result: Record) -> list[Verdict]:
    apart = result["apart"]
    return [
        judge_gammas(result),
        judge_trend(result, {"Dimensions": -1}, "parameter-sweep.dimensions"),
        claim(
            "parameter-sweep.distances",
            f"it grows from {apart[0]:.2f} in 1 to {apart[-1]:.2f} in {len(apart)} dimensions",
            judge(all(a < b for a, b in pairwise(apart))),
        ),
        judge_trend(result, {"Points": 1, "Clusters": 1}, "parameter-sweep.points-and-clusters"),
        judge_compensation(result),
        judge_trend(result, {"Scale": -1}, "parameter-sweep.scale"),
    ]


def _judge_both(result: Record, holds: Mapping[str, bool]) -> tuple[Answer, str]:
    """Return the answer and words, from whether it holds for the authors' runs and for ours."""
    # a claim that the authors' own runs refute fails, however few ours are
    enough = not holds["authors"] or result["counts"]["ours"] >= ENOUGH
    shows = "show" if holds["authors"] else "fail to show"
    return judge(all(holds.values()), enough), f"The authors' published runs also {shows} it."


def judge_gammas(result: Record) -> Verdict:
    """Judge that the mean falls with every larger gamma, at each level of each parameter."""
    counts = {}
    for whose in WHOSE:
        means = [row for found in result["by_level"][whose].values() for row in found["mean"]]
        falling = sum(all(a > b for a, b in pairwise(row)) for row in means)
        counts[whose] = (falling, len(means))
    answer, authors = _judge_both(result, {w: held == of for w, (held, of) in counts.items()})
    held, of = counts["ours"]
    return claim(
        "parameter-sweep.gamma",
        f"at {held} of {of} levels of the four parameters",
        answer,
        f"Means over all else. {authors}",
    )


def judge_trend(result: Record, signs: Mapping[str, int], claimed: str) -> Verdict:
    """Judge that the slopes of the means have these signs for each gamma."""
    holds = dict.fromkeys(WHOSE, True)
    words = []
    for name, sign in signs.items():
        for whose in WHOSE:
            means = np.array(result["by_level"][whose][name]["mean"])
            slopes = np.polyfit(range(len(means)), means, 1)[0]  # one for each gamma
            holds[whose] &= bool((sign * slopes > 0).all())
        first, last = (result["by_level"]["ours"][name]["mean"][end] for end in (0, -1))
        ends = ", ".join(f"{a:.3f} to {b:.3f}" for a, b in zip(first, last, strict=True))
        ends = ends.replace("-0.000", "0.000")  # a Loss may be a little below 0 by chance
        words.append(f"{ends} from {AXES[name][0]} to {AXES[name][-1]} ({name.lower()})")
    answer, authors = _judge_both(result, holds)
    here = f"Loss {'; '.join(words)}, for γ = 1, 10, 100"
    return claim(claimed, here, answer, authors + _name_changes_by_chance(result, signs))


def _name_changes_by_chance(result: Record, names: Iterable[str]) -> str:
    """Return the changes from the first to the last level that are within two standard errors."""
    words = ""
    for name in names:
        found = result["by_level"]["ours"][name]
        for place, gamma in enumerate(GAMMAS):
            first, last = (found["mean"][end][place] for end in (0, -1))
            deviations = (found["deviation"][end][place] for end in (0, -1))
            # an upper bound: the deviation is over all other parameters, not by chance alone
            error = hypot(*deviations) / sqrt(_runs_per_level(result))
            if abs(last - first) <= 2 * error:
                words += (
                    f" Here the change with {name.lower()} at γ = {gamma}, {last - first:+.3f} ± "
                    f"{error:.3f}, is within chance."
                )
    return words


def _runs_per_level(result: Record) -> float:
    """Return the number of our runs at each of the ten levels of a parameter, for one gamma."""
    return result["counts"]["ours"] / len(GAMMAS) / 10


def judge_compensation(result: Record) -> Verdict:
    """Judge that a larger scale and a larger gamma lower the Loss with many clusters or points."""
    # the four pairs of `corners` in which one of both remedies is applied
    pairs = [
        (f"{many}, {more}", f"{many}, {less}")
        for many in ("many clusters", "many points")
        for more, less in (("scale 10", "scale 1"), ("gamma 100", "gamma 1"))
    ]
    holds = {
        whose: all(
            _or_inf(result["corners"][whose][lower]) < _or_inf(result["corners"][whose][higher])
            for lower, higher in pairs
        )
        for whose in WHOSE
    }
    answer, authors = _judge_both(result, holds)
    ours = result["corners"]["ours"]
    value = {name: "-" if mean is None else f"{mean:.3f}" for name, mean in ours.items()}
    here = "; ".join(
        f"with {words} {value[f'{many}, scale 1']} at scale 1 and {value[f'{many}, scale 10']} at "
        f"scale 10 (γ = 1), {value[f'{many}, gamma 1']} with γ = 1 and "
        f"{value[f'{many}, gamma 100']} with γ = 100 (mean over scales)"
        for many, words in (("many clusters", "50 clusters"), ("many points", "10^6 points"))
    )
    return claim("parameter-sweep.compensation", f"Loss {here}", answer, authors)


def _or_inf(mean: float | None) -> float:
    """Return the mean; infinity if it is missing, so that no comparison with it holds."""
    return inf if mean is None else mean


def _means(result: Record) -> Iterator[Verdict]:
    """Yield a verdict on every mean of panels A to D."""
    for name, levels in AXES.items():
        ours, theirs = (result["by_level"][whose][name] for whose in ("ours", "authors"))
        for level, value in enumerate(levels):
            for place, gamma in enumerate(GAMMAS):
                yield number(
                    f"{name} {value}, γ = {gamma}",
                    "fig:parameter_sweep",
                    theirs["mean"][level][place],
                    ours["mean"][level][place],
                    find_tolerance("parameter-sweep.near"),
                    ours["deviation"][level][place] / sqrt(_runs_per_level(result)),
                )


def _findings(result: Record) -> list[Verdict]:
    found, chance = result["agreement"], result["by_chance"]
    rankable, whole = found["worth"], found["all"]
    corners, lost, of = result["corners"]["ours"], result["without_loss"], result["counts"]
    return [
        beyond(
            "parameter-sweep.ranks",
            f"rank correlation {rankable['correlation']:.3f} on {rankable['runs']:,} settings",
        ),
        beyond(
            "parameter-sweep.all-ranks",
            f"rank correlation {whole['correlation']:.2f} on {whole['runs']:,} settings, as "
            "between two draws of ours",
            "Where both algorithms end at the same objective, a Loss is noise around 0. On the "
            f"{chance['ours']['runs']:,} settings that were drawn twice, two draws of ours "
            f"correlate to {chance['ours']['correlation']:.2f}, and ours and the authors' to "
            f"{chance['authors']['correlation']:.2f}. The linear correlation of all is "
            f"{found['linear']:.3f}.",
        ),
        beyond(
            "parameter-sweep.scale-or-gamma",
            f"mean Loss {_or_inf(corners['scale 10, gamma 1']):.3f} and "
            f"{_or_inf(corners['scale 1, gamma 100']):.3f}",
        ),
        beyond(
            "parameter-sweep.lost-clusters",
            f"in {lost['ours'] / of['ours']:.2%} of our runs, and in "
            f"{lost['authors'] / of['authors']:.2%} of the authors'",
        ),
    ]
