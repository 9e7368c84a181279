"""The verdicts on fig:parameter_sweep, by the authors' published runs and by ours."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from math import hypot, inf, sqrt

from lloydformer.paper.artefact import Record
from lloydformer.paper.parameter_sweep.settings import AXES, GAMMAS
from lloydformer.paper.parameter_sweep.summary import falls_with_gamma, slopes
from lloydformer.paper.verdict import Answer, Tolerance, Verdict, beyond, claim, judged, number

_TEXT = "asec:num-val"
_ENOUGH = 3000
"""Fewer runs than this, a tenth of the authors', refute nothing."""
_NEAR = Tolerance(
    0.05,
    "Panels A to D; the paper's are computed from the authors' published table of runs, which the "
    "text does not print. Ours are over a part of the settings, between which the Loss varies by 1 "
    "and more.",
    "means",
)
_COMPENSATED = (
    ("many clusters, scale 10", "many clusters, scale 1"),
    ("many clusters, gamma 100", "many clusters, gamma 1"),
    ("many points, scale 10", "many points, scale 1"),
    ("many points, gamma 100", "many points, gamma 1"),
)


def verdicts(result: Record) -> list[Verdict]:
    """The sentences of asec:num-val, the means of the figure, and how far two tables agree."""
    return [
        _gammas(result), _dimensions(result), _apart(result), _more(result), _ameliorated(result),
        _scale(result), *_means(result), *_agreement(result), *_beyond(result),
    ]  # fmt: skip


def _answer(result: Record, holds: Mapping[str, bool]) -> Answer:
    """From whether it holds for the authors' runs and for ours."""
    enough = not holds["authors"] or result["counts"]["ours"] >= _ENOUGH
    return judged(all(holds.values()), enough)


def _authors(holds: Mapping[str, bool]) -> str:
    return f"The authors' published runs {'show' if holds['authors'] else 'do not show'} it, too."


def _of_both(result: Record, name: str) -> dict[str, Record]:
    return {whose: result[name][whose] for whose in ("authors", "ours")}


def _gammas(result: Record) -> Verdict:
    levels = {w: falls_with_gamma(found) for w, found in _of_both(result, "by_level").items()}
    held, of = levels["ours"]
    holds = {whose: held == of for whose, (held, of) in levels.items()}
    return claim(
        "As expected (and consistent with our theoretical results), we find that increasing γ "
        "uniformly improves performance of the k-means transformer (fig:parameter_sweep).",
        _TEXT, f"at {held} of {of} levels of the four parameters",
        _answer(result, holds), f"Means over all else. {_authors(holds)}",
    )  # fmt: skip


def _dimensions(result: Record) -> Verdict:
    return _trend(
        result, {"Dimensions": -1},
        "We also find that as the dimension d of samples increases, the k-means transformer "
        "behaves more closely to Lloyd's algorithm independent of γ (fig:parameter_sweep A,F,G).",
    )  # fmt: skip


def _more(result: Record) -> Verdict:
    return _trend(
        result, {"Points": 1, "Clusters": 1},
        "We also find that as the number of points and clusters increases, divergence between "
        "Lloyd's and k-means transformer increases (fig:parameter_sweep B,C).",
    )  # fmt: skip


def _scale(result: Record) -> Verdict:
    return _trend(
        result, {"Scale": -1},
        "Multiplying by a constant (positive) factor produces behavior similar to increasing the "
        "embedding dimensions of x ∈ X, since scaling all points by a factor > 1 increases the "
        "pairwise squared Euclidean distance between points, improving the sharpness of the "
        "soft-max.",
    )  # fmt: skip


def _trend(result: Record, signs: Mapping[str, int], quote: str) -> Verdict:
    """Whether the slopes of the means have these signs for each gamma."""
    both = _of_both(result, "by_level")
    holds = {
        whose: all(s * slope > 0 for name, s in signs.items() for slope in slopes(found[name]))
        for whose, found in both.items()
    }
    here = "; ".join(_ends(both["ours"], name) for name in signs)
    return claim(quote, _TEXT, f"Loss {here}, for γ = 1, 10, 100", _answer(result, holds),
                 f"{_authors(holds)}{_within_chance(result, signs)}")  # fmt: skip


def _within_chance(result: Record, names: Iterable[str]) -> str:
    """The changes from the first to the last level that are within two standard errors."""
    runs = result["counts"]["ours"] / len(GAMMAS) / 10
    words = []
    for name in names:
        found = result["by_level"]["ours"][name]
        for place, gamma in enumerate(GAMMAS):
            first, last = (found["mean"][end][place] for end in (0, -1))
            error = hypot(*(found["deviation"][end][place] for end in (0, -1))) / sqrt(runs)
            if abs(last - first) <= 2 * error:
                words.append(f" Here the change with {name.lower()} at γ = {gamma}, "
                             f"{last - first:+.3f} ± {error:.3f}, is within chance.")  # fmt: skip
    return "".join(words)


def _ends(found: Record, name: str) -> str:
    """The means at the first and the last level, for each gamma."""
    first, last = found[name]["mean"][0], found[name]["mean"][-1]
    pairs = zip(first, last, strict=True)
    ends = ", ".join(f"{a:.3f} to {b:.3f}" for a, b in pairs).replace("-0.000", "0.000")
    levels = AXES[name]
    return f"{ends} from {levels[0]} to {levels[-1]} ({name.lower()})"


def _apart(result: Record) -> Verdict:
    apart = result["apart"]
    return claim(
        "This is because the pairwise squared Euclidean distance between points grows with the "
        "number of dimensions (assuming the variance is the same/independent within each "
        "dimension).",
        _TEXT, f"it grows from {apart[0]:.2f} in 1 to {apart[-1]:.2f} in {len(apart)} dimensions",
        judged(all(a < b for a, b in pairwise(apart))),
        "Mean over pairs of points, at scale 1. That it grows is measured; that it is the reason "
        "is not.",
    )  # fmt: skip


def _ameliorated(result: Record) -> Verdict:
    corners = _of_both(result, "corners")
    holds = {
        whose: all(_known(found[less]) < _known(found[more]) for less, more in _COMPENSATED)
        for whose, found in corners.items()
    }
    return claim(
        "However, this can be ameliorated by increasing γ, and/or multiplying all samples x ∈ X by "
        "a fixed positive scalar (fig:parameter_sweep D,E).",
        _TEXT, f"Loss {_corners(corners['ours'])}", _answer(result, holds), _authors(holds),
    )  # fmt: skip


def _known(value: float | None) -> float:
    """A missing mean is infinity, so that no comparison with it holds."""
    return inf if value is None else value


def _corners(found: Record) -> str:
    value = {name: "-" if mean is None else f"{mean:.3f}" for name, mean in found.items()}
    return "; ".join(
        f"with {words} {value[f'{many}, scale 1']} at scale 1 and {value[f'{many}, scale 10']} at "
        f"scale 10 (γ = 1), {value[f'{many}, gamma 1']} with γ = 1 and "
        f"{value[f'{many}, gamma 100']} with γ = 100 (mean over scales)"
        for many, words in (("many clusters", "50 clusters"), ("many points", "10^6 points"))
    )


def _means(result: Record) -> Iterator[Verdict]:
    """Every mean of panels A to D."""
    count = result["counts"]["ours"] / len(GAMMAS) / 10
    for name, levels in AXES.items():
        ours, theirs = (result["by_level"][whose][name] for whose in ("ours", "authors"))
        for place, level in enumerate(levels):
            for gamma, value in zip(GAMMAS, range(len(GAMMAS)), strict=True):
                yield number(
                    f"{name} {level}, γ = {gamma}", "fig:parameter_sweep",
                    theirs["mean"][place][value], ours["mean"][place][value], _NEAR,
                    ours["deviation"][place][value] / sqrt(count),
                )  # fmt: skip


def _agreement(result: Record) -> list[Verdict]:
    found, chance = result["agreement"], result["by_chance"]
    rankable, whole = found["worth"], found["all"]
    return [
        beyond(
            "Do our runs rank the settings as the authors' do, where the Loss is not noise?",
            f"rank correlation {rankable['correlation']:.3f} on {rankable['runs']:,} settings",
            "Settings whose mean Loss over clusters and points, in the authors' table, is above "
            "0.01.",
        ),
        beyond(
            "And all settings?",
            f"rank correlation {whole['correlation']:.2f} on {whole['runs']:,} settings, as "
            "much as between two draws of ours",
            "Where both algorithms end at the same objective, a Loss is noise around 0. On the "
            f"{chance['ours']['runs']:,} settings that were drawn twice, two draws of ours "
            f"correlate to {chance['ours']['correlation']:.2f}, and ours and the authors' to "
            f"{chance['authors']['correlation']:.2f}. The linear correlation of all is "
            f"{found['linear']:.3f}.",
        ),
    ]  # fmt: skip


def _beyond(result: Record) -> list[Verdict]:
    scaled, warmer = (
        result["corners"]["ours"][name] for name in ("scale 10, gamma 1", "scale 1, gamma 100")
    )
    lost, of = result["without_loss"], result["counts"]
    return [
        beyond(
            "Is scaling by 10 the same as 100 times γ?",
            f"mean Loss {_known(scaled):.3f} and {_known(warmer):.3f}",
            "It must be, but for chance: γ |s x - s c|^2 is γ s^2 |x - c|^2.",
        ),
        beyond(
            "How often does Lloyd's algorithm lose a cluster, so that a run has no Loss?",
            f"in {lost['ours'] / of['ours']:.2%} of our runs, and in "
            f"{lost['authors'] / of['authors']:.2%} of the authors'",
        ),
    ]  # fmt: skip
