"""Notes in words on the scaling of the columns of a fit."""

from collections.abc import Sequence

from lloydformer.data.scale_choice import Choice
from lloydformer.profiles.words import join_words

_WORDS = {
    "log": "logarithms of",
    "rank": "ranks of",
    "clip": "outliers moved to limits near the other values",
    "standard": "standardised",
    "robust": "divided by the distance of their quartiles",
    "binary": "two values as -0.71 and 0.71",
    "words": "words weighed as one column",
    "constant": "constant",
}


def describe_scales(method: str, columns: Sequence[str], choices: Sequence[Choice]) -> str:
    """Return how columns were scaled: "auto (logarithms of income; standardised: age)"."""
    if method != "auto" or not choices:
        return method
    if choices[0].method == "none":
        return f"auto (none: {choices[0].reason})"
    parts = []
    for name, words in _WORDS.items():
        chosen = [c for c, choice in zip(columns, choices, strict=True) if choice.method == name]
        if chosen:
            sign = "" if words.endswith(" of") else ":"
            parts.append(f"{words}{sign} {join_words(chosen)}")
    return f"auto ({'; '.join(parts)})"


def note_scales(method: str, columns: Sequence[str], choices: Sequence[Choice]) -> list[str]:
    """Return a note on what `--scale auto` chose; none if columns are left as they are."""
    if method != "auto" or not choices or choices[0].method == "none":
        return []
    words = describe_scales(method, columns, choices).removeprefix("auto (").removesuffix(")")
    return [f"scaled: {words}; --scale none leaves columns as they are"]
