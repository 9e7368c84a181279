"""The claims of fig:tr-cvg-vary, sentence by sentence."""

from collections.abc import Sequence
from statistics import median

from lloydformer.paper.artefact import Claim, Record
from lloydformer.paper.tr_cvg_vary.settings import ALL, BY_CLUSTERS, BY_FEATURES
from lloydformer.paper.training_curves import TrainingSetting
from lloydformer.paper.training_curves_claims import ablation_claim, ends, trials_claim


def claims(result: Record) -> Sequence[Claim]:
    """The sentences of the text in their order."""
    return [
        *(_ahead(result, setting) for setting in BY_CLUSTERS),
        _failed_trials(result),
        _grows(result["gaps"]),
        _explains(result),
        *(_ahead(result, setting) for setting in BY_FEATURES),
        ablation_claim(
            result, ALL,
            "With d_emb = d the transformer is unable to match Lloyd's algorithm, for all k and d.",
        ),
        trials_claim(result),
    ]  # fmt: skip


def _ahead(result: Record, setting: TrainingSetting) -> Claim:
    each = ends(result, setting)
    below = sum(end < 1 for end in each)
    return Claim(
        f"d = {setting.n_features}, k = {setting.n_clusters}: the trained layer outperforms a "
        "Lloyd step by a significant margin.",
        "below 1", round(median(each), 4), median(each) < 0.95,
        f"{below} of {len(each)} trials below 1, from {min(each):.3f} to {max(each):.3f}.",
    )  # fmt: skip


def _failed_trials(result: Record) -> Claim:
    """Trials above 1 exist for k = 25 and for no other setting."""
    above = {s: [end for end in ends(result, s) if end > 1] for s in ALL}
    last = above[BY_CLUSTERS[-1]]
    others = sum(len(found) for s, found in above.items() if s != BY_CLUSTERS[-1])
    words = ", ".join(f"{end:.2f}" for end in last) or "none"
    return Claim(
        "This is quite stable, though with k = 25 a couple of trials were unable to learn useful "
        "weights.",
        "a couple of 10 trials, with k = 25 only",
        f"{len(last)} of {result['n_trials']} trials with k = 25 above 1 ({words}), {others} with "
        "any other k or d",
        bool(last) and not others,
    )  # fmt: skip


def _grows(found: Record) -> Claim:
    values = [found[s.name] for s in BY_CLUSTERS]
    return Claim(
        "With lambda fixed, the gap between smoothed and exact objective grows with k.",
        "grows", ", ".join(f"{100 * value:.1f} %" for value in values),
        values == sorted(values), "For k = 6, 10, 16, 25 at d = 32, of the objective after one "
        "Lloyd step.",
    )  # fmt: skip


def _explains(result: Record) -> Claim:
    """If the gap made trials fail at k = 25, more would fail where the gap is larger."""
    few, many = TrainingSetting(4, 6), BY_CLUSTERS[-1]
    gap, larger = result["gaps"][many.name], result["gaps"][few.name]
    lost = [sum(end > 1 for end in ends(result, setting)) for setting in (many, few)]
    fits = (gap < larger) == (lost[0] < lost[1])
    return Claim(
        "That gap is why trials with k = 25 fail.",
        "the reason",
        f"gap {100 * gap:.1f} % and {lost[0]} lost at d = 32, k = 25; gap {100 * larger:.0f} % and "
        f"{lost[1]} lost at d = 4, k = 6",
        fits,
        "" if fits else "Where the gap is far larger, no trial fails: it does not explain this.",
    )
