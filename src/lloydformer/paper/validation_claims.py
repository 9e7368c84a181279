"""What the paper says of fig:numerical_validation, and what was found."""

from lloydformer.paper.artefact import Claim, Found

_TO_THE_EYE = 1e-2
"""A hundredth of the picture's side."""


def claims(result: Found) -> list[Claim]:
    """Panel by panel; then many draws, the paper's own remedy, and gamma in every head."""
    run, printed = result["run"], result["printed"]
    return [
        Claim("A, D: each layer's objective is Lloyd's, over 10 layers", "the same",
              f"off by {(off := _objectives(run)):.1e} at most, relatively", off < 1e-3,
              "The same curve to the eye, not to the last digit."),
        Claim("B, E: centers take the same ways", "identically",
              f"off by {run['centers']:.1e} of the side of the picture",
              run["centers"] < _TO_THE_EYE, "The same to the eye. In the limit it is exact."),
        Claim("C, F: final assignments are identical", "identical",
              f"{run['labels'][-1]} of {run['of']:,} differ", run["labels"][-1] == 0,
              _near_a_border(run)),
        *(_draws(result, scale) for scale in ("1", "10")),
        Claim("γ = 10⁴ in every head, as the text reads, matches Lloyd's", "matches",
              f"off by {printed['centers']:.2f} after {len(printed['labels'])} layers",
              printed["centers"] < _TO_THE_EYE,
              f"A point's median weight on itself is {printed['itself']:.2g}, so self-attention "
              "is not the identity. It holds with γ in the encoder's cross-attention alone, linear "
              "attention in the decoder's, and self-attention in the limit: what is run above."),
    ]  # fmt: skip


def _objectives(run: Found) -> float:
    """The largest relative difference over the layers."""
    pairs = zip(run["lloyd"]["objective"], run["transformer"]["objective"], strict=True)
    return max(abs(a - b) / a for a, b in pairs)


def _near_a_border(run: Found) -> str:
    if not any(run["labels"]):
        return ""
    return (
        "A point that lies nearly between two centers is shared by them, which moves the centers "
        f"by {run['centers']:.0e} and other such points to another side."
    )


def _draws(result: Found, scale: str) -> Claim:
    found = result["draws"][scale]
    same = sum(draw["labels"][-1] == 0 for draw in found)
    turned = sum(draw["labels"][-1] for draw in found)
    of = sum(draw["of"] for draw in found)
    says = (
        "final assignments are identical: for other draws of the data, too"
        if scale == "1"
        else "final assignments are identical: with data scaled by 10, as asec:num-val proposes"
    )
    return Claim(
        says, f"{len(found)} of {len(found)} draws", f"{same} of {len(found)}",
        same == len(found), f"{turned} of {of:,} labels differ in all.",
    )  # fmt: skip
