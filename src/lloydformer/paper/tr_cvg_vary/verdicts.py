"""The verdicts on fig:tr-cvg-vary, sentence by sentence."""

from collections.abc import Sequence
from statistics import median

from lloydformer.paper.artefact import Record
from lloydformer.paper.tr_cvg_vary.settings import ALL, BY_CLUSTERS, BY_FEATURES
from lloydformer.paper.training_curves import TrainingSetting
from lloydformer.paper.training_curves_verdicts import (
    AHEAD,
    by_trials,
    ends,
    medians,
    trials,
    unable,
)
from lloydformer.paper.verdict import Answer, Verdict, claim, judged

_TEXT = "asec:trf-train"


def verdicts(result: Record) -> Sequence[Verdict]:
    """The sentences of the text in their order."""
    return [
        _clusters(result), _failed_trials(result), _gap(result), _features(result),
        _ablation(result),
    ]  # fmt: skip


def _clusters(result: Record) -> Verdict:
    names = [f"k = {one.n_clusters}" for one in BY_CLUSTERS]
    return claim(
        "The results show that, for all values of k, with a smoothed loss temperature λ = 0.1, the "
        "learned single-layer transformer significantly outperforms the single-step Lloyd's "
        "algorithm.",
        _TEXT, medians(result, BY_CLUSTERS, names), _ahead(result, BY_CLUSTERS),
        f"{trials(result)} A median below {AHEAD:g} counts as significant.",
    )  # fmt: skip


def _features(result: Record) -> Verdict:
    names = [f"d = {one.n_features}" for one in BY_FEATURES]
    return claim(
        "In fig:tr-cvg-ndims, we study the effect of varying the data dimensionality d from 4 to "
        "32 (for a fixed k and λ), and see that, for all values of d, the learned single-layer "
        "transformer continues to outperform the single-step Lloyd's algorithm by a significant "
        "margin.",
        _TEXT, medians(result, BY_FEATURES, names), _ahead(result, BY_FEATURES),
    )  # fmt: skip


def _ahead(result: Record, settings: Sequence[TrainingSetting]) -> Answer:
    return by_trials(result, all(median(ends(result, one)) < AHEAD for one in settings))


def _failed_trials(result: Record) -> Verdict:
    """Trials above 1 exist for k = 25 and for no other setting."""
    above = {s: [end for end in ends(result, s) if end > 1] for s in ALL}
    last = above.pop(BY_CLUSTERS[-1])
    others = sum(map(len, above.values()))
    words = f" ({', '.join(f'{end:.2f}' for end in last)})" if last else ""
    return claim(
        "This performance improvement is quite stable, though for the largest value of k = 25, "
        "there are a couple of trials (as seen with the inter-quartile range) where the training "
        "was unable to learn useful weights.",
        _TEXT,
        f"{len(last)} of {result['n_trials']} trials with k = 25 is above 1{words}, and {others} "
        "of those with any other k or d",
        judged(bool(last) and not others, enough=bool(others)),
    )  # fmt: skip


def _gap(result: Record) -> Verdict:
    gaps = [result["gaps"][s.name] for s in BY_CLUSTERS]
    return claim(
        "This has to do with the fact that, in general, for a fixed temperature λ, the gap between "
        "the exact non-differentiable k-means objective L(X, C) in eq:ex-kmeans and the smoothed "
        "L̃_λ(X, C) in eq:sm-kmeans grows with k as the softmax spreads more weight away from the "
        "argmax to the remaining k-1 values.",
        _TEXT, f"{', '.join(f'{100 * gap:.1f} %' for gap in gaps)} for k = 6, 10, 16, 25",
        judged(gaps == sorted(gaps)),
        "At d = 32, of the objective after one Lloyd step. That the gap grows is measured; that it "
        "is the reason why trials fail is not.",
    )  # fmt: skip


def _ablation(result: Record) -> Verdict:
    words, answer = unable(result, ALL)
    names = [f"d = {one.n_features}, k = {one.n_clusters}" for one in ALL]
    return claim(
        "In both fig:tr-cvg-nclusters and fig:tr-cvg-ndims, we see that the ablation with the "
        "transformer with d_emb = d continues to be unable to match the Lloyd's algorithm, "
        "indicating that the additional k dimensions provide a crucial boost in expressivity.",
        _TEXT, words, answer, f"Medians: {medians(result, ALL, names, 'ablation')}.",
    )  # fmt: skip
