"""The words of a LaTeX file, by the label under which they stand."""

import re

_SYMBOLS = {
    "gamma": "γ", "lambda": "λ", "delta": "δ", "mu": "μ", "alpha": "α", "beta": "β", "tau": "τ",
    "sigma": "σ", "ell": "ℓ", "in": "∈", "sim": "∼", "times": "×", "top": "⊤", "infty": "∞",
    "demb": "d_emb", "lin": "lin", "cdot": "·", "geq": "≥", "leq": "≤", "to": "→", "lnorm": "LN",
    "DistPairs": "DP", "ldots": "…",
}  # fmt: skip
_DROPPED = re.compile(r"~?\\(?:citep|citet|label|vskip|textcolor\{[^}]*\})(?:\{[^}]*\})?")
_ENVIRONMENT = re.compile(
    r"\\begin\{(figure\*?|table\*?|theorem|corollary|remark|lemma|definition)\}(.*?)\\end\{\1\}",
    re.DOTALL,
)
_SECTION = re.compile(r"\\(?:sub)*section\*?\{.*\}\s*\\label\{([^}]*)\}")
_LABEL = re.compile(r"\\label\{([^}]*)\}")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def plain_words(text: str) -> str:
    """A quotation without white space and braces."""
    return re.sub(r"[{}\s]", "", text)


def words(text: str) -> str:
    """LaTeX without commands, dollars, braces and white space: equal to its `plain_words`.

    Symbols become letters, and references the labels that they name.
    """
    text = re.sub(r"(?<!\\)%.*", "", text)
    text = _DROPPED.sub("", text)
    text = re.sub(r"\\(?:[cC]ref|ref|eqref)\{([^}]*)\}", r"\1", text)
    text = re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"\1/\2", text)
    text = re.sub(r"\\tilde\{(\w)\}", "\\1\u0303", text)
    text = text.replace(r"\|", "‖").replace("``", "“").replace("''", "”").replace("’", "'")
    text = re.sub(r"\\([a-zA-Z]+)", lambda m: _SYMBOLS.get(m[1], ""), text)
    text = re.sub(r"\\([%{}_&$#])", r"\1", text)
    return plain_words(re.sub(r"\\[!,; ]|\\\\|[$~]", "", text))


def passages(tex: str) -> dict[str, list[str]]:
    """The paragraphs under each label, as LaTeX.

    The label of a figure, table, theorem or remark is that of its environment; all other text
    stands under the label of its section.
    """
    body = tex[tex.index(r"\begin{document}") :]
    found: dict[str, list[str]] = {}
    for match in _ENVIRONMENT.finditer(body):
        if labels := _LABEL.findall(match[2]):
            whole = labels[0] if match[1] in ("theorem", "corollary", "remark") else labels[-1]
            found.setdefault(whole, []).append(match[2])
    pieces = _SECTION.split(_ENVIRONMENT.sub("", body))
    for label, text in zip(pieces[1::2], pieces[2::2], strict=True):
        found.setdefault(label, []).extend(re.split(r"\n\s*\n", text))
    return found


def quotes(paragraph: str, quote: str) -> bool:
    """Whether a paragraph holds a quotation; `[...]` stands for words that are left out."""
    text, place = words(paragraph), 0
    for part in quote.split("[...]"):
        part = plain_words(part)
        place = text.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return True


def numbers_in(text: str) -> set[float]:
    """All numbers in a text."""
    return {float(found) for found in _NUMBER.findall(text)}


def labels_in(tex: str) -> list[str]:
    """All labels of a LaTeX file, in order."""
    return _LABEL.findall(re.sub(r"(?<!\\)%.*", "", tex))
