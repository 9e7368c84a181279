"""The claims of fig:numerical_validation."""

from lloydformer.paper.artefact import Claim, Record

_TO_THE_EYE = 1e-2
"""Centers look the same if they differ by less than a hundredth of the picture's side."""


def claims(result: Record) -> list[Claim]:
    """The panels, many draws, the scaling that the paper proposes, and gamma in every head."""
    run, printed = result["run"], result["printed"]
    return [
        Claim("A, D: each layer's objective is Lloyd's, over 10 layers", "the same",
              f"off by {(off := _objectives(run)):.1e} at most, relatively", off < 1e-3,
              "The same curve to the eye, not to the last digit."),
        Claim("B, E: centers move along the same paths", "identically",
              f"off by {run['centers']:.1e} of the side of the picture",
              run["centers"] < _TO_THE_EYE, "The same to the eye. For infinite γ it is exact."),
        Claim("C, F: final assignments are identical", "identical",
              f"{run['labels'][-1]} of {run['of']:,} differ", run["labels"][-1] == 0,
              _near_a_border(run)),
        *(_draws(result, scale) for scale in ("1", "10")),
        Claim("γ = 10⁴ in every head, as the text reads, matches Lloyd's", "matches",
              f"off by {printed['centers']:.2f} after {len(printed['labels'])} layers",
              printed["centers"] < _TO_THE_EYE,
              f"A point's median weight on itself is {printed['itself']:.2g}, so self-attention "
              "is not the identity. It holds with γ in the encoder's cross-attention alone, linear "
              "attention in the decoder's, and infinite γ in self-attention: that is run above."),
    ]  # fmt: skip


def _objectives(run: Record) -> float:
    """The largest relative difference over the layers."""
    pairs = zip(run["lloyd"]["objective"], run["transformer"]["objective"], strict=True)
    return max(abs(a - b) / a for a, b in pairs)


def _near_a_border(run: Record) -> str:
    """Why some labels differ; empty if none do."""
    if not any(run["labels"]):
        return ""
    return (
        "A point almost midway between two centers is shared by them. This moves the centers by "
        f"{run['centers']:.0e}, and other points near a border change sides."
    )


def _draws(result: Record, scale: str) -> Claim:
    """The final labels of several draws of the data, at this scale."""
    found = result["draws"][scale]
    same = sum(draw["labels"][-1] == 0 for draw in found)
    turned = sum(draw["labels"][-1] for draw in found)
    of = sum(draw["of"] for draw in found)
    says = (
        "final assignments are identical: also for other draws of the data"
        if scale == "1"
        else "final assignments are identical: with data scaled by 10, as asec:num-val proposes"
    )
    return Claim(
        says, f"{len(found)} of {len(found)} draws", f"{same} of {len(found)}",
        same == len(found), f"{turned} of {of:,} labels differ in all.",
    )  # fmt: skip
