"""The claims of fig:parameter_sweep, checked on the authors' runs and on ours."""

from collections.abc import Iterator
from itertools import pairwise
from math import inf

from lloydformer.paper.artefact import Claim, Record
from lloydformer.paper.parameter_sweep.settings import GAMMAS
from lloydformer.paper.parameter_sweep.summary import falls_with_gamma, slopes

_TRENDS = (
    ("Dimensions", -1, "A: more dimensions bring the transformer closer to Lloyd's, for each γ"),
    ("Points", 1, "B: more points take the transformer farther from Lloyd's, for each γ"),
    ("Clusters", 1, "C: more clusters take the transformer farther from Lloyd's, for each γ"),
    ("Scale", -1, "D: a larger scale brings the transformer closer to Lloyd's, for each γ"),
)
_COMPENSATED = (
    ("many clusters, scale 10", "few clusters, scale 1",
     "E: 50 clusters at scale 10 differ less than 5 clusters at scale 1 (γ = 1)"),
    ("many points, scale 10", "few points, scale 1",
     "scale compensates for more points: 10⁶ at scale 10 differ less than 100 at scale 1 (γ = 1)"),
    ("many clusters, gamma 100", "few clusters, scale 1",
     "γ compensates for more clusters: 50 with γ = 100 differ less than 5 with γ = 1 at scale 1"),
    ("many points, gamma 100", "few points, scale 1",
     "γ compensates for more points: 10⁶ with γ = 100 differ less than 100 with γ = 1 at scale 1"),
)  # fmt: skip


def claims(result: Record) -> list[Claim]:
    """The sentences of the caption and of asec:num-val, then the agreement of both tables."""
    return [
        *_gammas(result), *(_trend(result, *trend) for trend in _TRENDS),
        *(_compensated(result, *pair) for pair in _COMPENSATED), _apart(result), _scaling(result),
        *_agreement(result), _without(result),
    ]  # fmt: skip


def _gammas(result: Record) -> Iterator[Claim]:
    (held, of), (ours, count) = (
        falls_with_gamma(result["by_level"][whose]) for whose in ("authors", "ours")
    )
    yield Claim(
        "a larger γ improves correspondence uniformly: at every level of every parameter",
        f"{held} of {of} levels", f"{ours} of {count} levels", held == of and ours == count,
        "Of the mean over all else. Single runs may differ, since the two algorithms can end in "
        "different local optima.",
    )  # fmt: skip


def _trend(result: Record, name: str, sign: int, says: str) -> Claim:
    """Whether the slope of the mean has this sign for each gamma, in both tables."""
    theirs, ours = (result["by_level"][whose][name] for whose in ("authors", "ours"))
    wrong = [
        f"{whose} at γ = {gamma}"
        for whose, found in (("the authors'", theirs), ("ours", ours))
        for gamma, slope in zip(GAMMAS, slopes(found), strict=True)
        if sign * slope <= 0
    ]
    against = f"The slope has the other sign in {', '.join(wrong)}." if wrong else ""
    return Claim(says, _ends(theirs), _ends(ours), not wrong, against)


def _ends(found: Record) -> str:
    """The means at the first and the last level, for each gamma."""
    first, last = found["mean"][0], found["mean"][-1]
    return "; ".join(f"{a:.3f} to {b:.3f}" for a, b in zip(first, last, strict=True))


def _compensated(result: Record, less: str, more: str, says: str) -> Claim:
    (theirs, ours), found = _cells(result, less, more)
    return Claim(says, theirs, ours, all(a < b for a, b in found))


def _cells(result: Record, *names: str) -> tuple[list[str], list[list[float]]]:
    """Means at these corners, the authors' and ours: as words and as numbers.

    A missing mean is infinity, so that no comparison with it holds.
    """
    found = [[result["corners"][whose][name] for name in names] for whose in ("authors", "ours")]
    words = [", ".join("-" if x is None else f"{x:.3f}" for x in pair) for pair in found]
    return words, [[inf if x is None else x for x in pair] for pair in found]


def _apart(result: Record) -> Claim:
    apart = result["apart"]
    return Claim(
        "the squared distance of two points grows with the dimension", "grows",
        f"{apart[0]:.2f} in 1 to {apart[-1]:.2f} in {len(apart)} dimensions",
        all(a < b for a, b in pairwise(apart)),
        "Mean over pairs of points, at scale 1.",
    )  # fmt: skip


def _scaling(result: Record) -> Claim:
    """Scaling by s multiplies gamma by s^2, so both means must be similar."""
    (theirs, ours), found = _cells(result, "scale 10, gamma 1", "scale 1, gamma 100")
    return Claim(
        "scaling is equivalent to γ: scale 10 with γ = 1, and scale 1 with γ = 100", theirs, ours,
        all(abs(a - b) < 0.25 * max(a, b) for a, b in found),
        "k-means does not change under scaling, and γ |s x - s c|² is γ s² |x - c|².",
    )  # fmt: skip


def _agreement(result: Record) -> Iterator[Claim]:
    found, chance = result["agreement"], result["by_chance"]
    worth, whole = found["worth"], found["all"]
    yield Claim(
        "our Loss ranks the settings as the authors' does, where the Loss is not noise",
        "above 0.9", f"{worth['correlation']:.3f} on {worth['runs']:,} settings",
        worth["correlation"] > 0.9,
        "Settings whose mean Loss over clusters and points, in the authors' table, is above 0.01.",
    )  # fmt: skip
    yield Claim(
        "our Loss ranks all settings as the authors' does",
        "above 0.9", f"{whole['correlation']:.3f} on {whole['runs']:,} settings",
        whole["correlation"] > 0.9,
        "Where both algorithms end at the same objective, a Loss is noise around 0 and its rank "
        "is random: two draws of ours also correlate to only "
        f"{chance['ours']['correlation']:.2f} (on settings with up to 16681 points, where the "
        f"authors' and ours correlate to {chance['authors']['correlation']:.2f}). The linear "
        f"correlation is {found['linear']:.3f}.",
    )  # fmt: skip


def _without(result: Record) -> Claim:
    shares = {
        whose: result["without_loss"][whose] / result["counts"][whose]
        for whose in ("authors", "ours")
    }
    return Claim(
        "a run in which Lloyd's algorithm loses a cluster has no Loss: they are few",
        f"{shares['authors']:.2%} of runs", f"{shares['ours']:.2%} of runs",
        max(shares.values()) < 0.02,
    )  # fmt: skip
