"""Claims that fig:tr-cvg-lambda and fig:tr-cvg-vary share."""

from collections.abc import Sequence

from lloydformer.paper.artefact import Claim, Record
from lloydformer.paper.training_curves import TrainingSetting

ALL_RUNS = 260
"""Ten trials of each of the 26 settings in both figures."""


def ends(result: Record, setting: TrainingSetting, which: str = "proposed") -> list[float]:
    """The final relative validation loss of each trial; infinity if a trial has no number."""
    each = result["curves"][setting.name][which]["last"]["each"]
    return [float("inf") if end is None else end for end in each]


def trials_claim(result: Record) -> Claim:
    """How many trials the curves are made of."""
    n_trials, n_runs = result["n_trials"], result["n_runs"]
    return Claim(
        "Curves and inter-quartile ribbons are over the trials of each setting, each really "
        "trained for 10,000 steps.",
        "10 trials a setting",
        f"{n_trials} trials a setting, {n_runs} runs",
        n_trials >= 5,
        f"Trained on {', '.join(result['trained_on'])}. Both figures together: {26 * n_trials} "
        f"runs of the {ALL_RUNS} of the paper's protocol, which --full trains.",
    )


def ablation_claim(result: Record, settings: Sequence[TrainingSetting], says: str) -> Claim:
    """No trial without the scratch dimensions is as good as a Lloyd step."""
    each = [end for setting in settings for end in ends(result, setting, "ablation")]
    above = sum(end > 1 for end in each)
    return Claim(
        says, "above 1 in every setting",
        f"above 1 in {above} of {len(each)} trials, the least {min(each):.3f}",
        above == len(each),
    )  # fmt: skip
