"""The terms of a recipe's equation, in plain text and in LaTeX."""

from lloydformer.circuits.heads import Head
from lloydformer.circuits.scores import Euclidean, Scaled, Score

SIDES = {
    "encoder_cross": ("X", "C"),
    "encoder_self": ("X", "X"),
    "affinity": ("X", "C"),
    "decoder_cross": ("C", "X"),
    "decoder_self": ("C", "C"),
}
"""For each slot, the tokens of the queries and those of the keys."""


def plain_term(slot: str, head: Head) -> str:
    """Return, for example, `A₂[∞](X, C; I[x], I[x], I[y])`: score, activation; Q, K, V."""
    return term(*SIDES[slot], head)


def term(queries: str, keys: str, head: Head) -> str:
    """Return the term of a head for any two sets of tokens."""
    kind = "₂" if _euclidean(head.score) else "⟨⟩"
    maps = ", ".join(str(p) for p in head.projections.values())
    return f"A{kind}[{_activation(head)}]({queries}, {keys}; {maps})"


def latex_term(slot: str, head: Head) -> str:
    r"""Return, for example, `\mathcal{A}_2^{\infty}(X, \tilde C; I_{x}, I_{x}, I_{y})`."""
    queries, keys = (side.replace("C", r"\tilde C") for side in SIDES[slot])
    kind = "2" if _euclidean(head.score) else r"{\langle,\rangle}"
    symbol = _latex(_activation(head))
    maps = ", ".join(_latex(str(p)) for p in head.projections.values())
    return rf"\mathcal{{A}}_{kind}^{{{symbol}}}({queries}, {keys}; {maps})"


def _activation(head: Head) -> str:
    return head.activation.symbol + (f" · {head.sharpness}" if head.sharpness else "")


def _euclidean(score: Score) -> bool:
    return isinstance(score.score if isinstance(score, Scaled) else score, Euclidean)


def _latex(text: str) -> str:
    signs = {"∞": r"\infty", "√δ": r"\sqrt{\delta}", "δ": r"\delta", "π": r"\pi", "−": "-",
             "ŷ": r"\hat y", "←": r"\leftarrow ", "lin": r"\mathrm{lin}",
             "sparsemax": r"\mathrm{sparsemax}\ ", "top-": r"\mathrm{top}\text{-}",
             "·": r"\cdot", "NM": r"\mathrm{NM}", "GSM": r"\mathrm{GSM}",
             "[": "_{", "]": "}"}  # fmt: skip
    for plain, latex in signs.items():
        text = text.replace(plain, latex)
    return text
