"""Formulas in LaTeX as MathML."""

import html
import re

from latex2mathml.converter import convert


def as_mathml(marked: str) -> str:
    r"""Convert `\(x\)` (inline) or `\[x\]` (displayed): as arithmatex marks it, escaped."""
    text = html.unescape(marked).strip()
    display = "block" if text.startswith("\\[") else "inline"
    latex = re.sub(r"^\\[(\[]|\\[)\]]$", "", text)
    return convert(latex, display=display)
