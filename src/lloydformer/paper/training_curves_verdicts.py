"""What the verdicts on fig:tr-cvg-lambda and fig:tr-cvg-vary share."""

from collections.abc import Sequence
from statistics import median

from lloydformer.paper.artefact import Record
from lloydformer.paper.training_curves import TrainingSetting
from lloydformer.paper.verdict import Answer, judged

AHEAD = 0.95
"""A setting outperforms a Lloyd step significantly if its median is below this."""
_ENOUGH = 5
"""Fewer trials of a setting than half the paper's refute nothing."""


def ends(result: Record, setting: TrainingSetting, which: str = "proposed") -> list[float]:
    """The final relative validation loss of each trial; infinity if a trial has no number."""
    each = result["curves"][setting.name][which]["last"]["each"]
    return [float("inf") if end is None else end for end in each]


def medians(
    result: Record, settings: Sequence[TrainingSetting], names: Sequence[str],
    which: str = "proposed",
) -> str:  # fmt: skip
    """The median of each setting, with the range of its trials."""
    found = [ends(result, setting, which) for setting in settings]
    return ", ".join(
        f"{median(each):.3f} ({min(each):.3f} to {max(each):.3f}) for {name}"
        for each, name in zip(found, names, strict=True)
    )


def by_trials(result: Record, holds: bool) -> Answer:
    """The answer of these trials."""
    return judged(holds, enough=result["n_trials"] >= _ENOUGH)


def unable(result: Record, settings: Sequence[TrainingSetting]) -> tuple[str, Answer]:
    """Whether no trial without the scratch dimensions matches a Lloyd step."""
    each = [end for setting in settings for end in ends(result, setting, "ablation")]
    above = sum(end > 1 for end in each)
    words = f"above 1 in {above} of {len(each)} trials, the least {min(each):.3f}"
    return words, by_trials(result, above == len(each))


def trials(result: Record) -> str:
    """How many trials the answers are from."""
    return f"{result['n_trials']} trials of each setting, of the paper's 10."
