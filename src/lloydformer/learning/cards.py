"""Model cards: JSON files that describe trained weights and how they were trained."""

from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from lloydformer.storage.bounded_read import read_json

FORMAT = 1
SYMMETRIC = "symmetric"
"""Name of the model for every n, d and k, and `kind` in its card."""


def available() -> list[str]:
    """List the trained weights in the package.

    Returns
    -------
    list of str
        Names: those for one number of features d and of clusters k, as "d32-k10", then
        "symmetric", the weights for every d and k.

    See Also
    --------
    load : Load weights for one d and k.
    load_symmetric : Load the weights for every d and k.

    Examples
    --------
    >>> import lloydformer as lf
    >>> lf.learning.available()[0], lf.learning.available()[-1]
    ('d4-k6', 'symmetric')
    """
    found = [entry.name for entry in shipped().iterdir()]
    names = [name.removesuffix(".json") for name in found if name.endswith(".json")]
    return sorted(names, key=_order)


def located(pretrained: str | Path) -> tuple[Traversable, str]:
    """Find a card by name (`available()`) or by path; return its folder and name."""
    if str(pretrained) in available():
        return shipped(), str(pretrained)
    path = Path(pretrained)
    if path.suffix not in (".json", ".safetensors"):
        raise ValueError(
            f"pretrained: found {str(pretrained)!r}; there are {', '.join(available())}, or pass "
            "the path of a card (.json) that lloydformer train has written"
        )
    return path.parent, path.stem


def read_card(folder: Traversable, name: str) -> dict[str, Any]:
    """Read the card NAME.json of a folder; raises `ValueError` for a file that is no card."""
    try:
        with as_file(folder / f"{name}.json") as path:
            card = read_json(path)
    except (FileNotFoundError, NotADirectoryError):
        raise ValueError(f"{folder}/{name}.json: there is no such file") from None
    if not isinstance(card, dict) or card.get("library") != "lloydformer":
        raise ValueError(f"{folder}/{name}.json: is not a card of lloydformer")
    if card.get("format") != FORMAT:
        found = card.get("format")
        raise ValueError(
            f"{folder}/{name}.json: found format {found!r}; this version reads {FORMAT}"
        )
    return card


def not_a_card(where: str, error: Exception) -> ValueError:
    """Return the error for a JSON file that is not a valid card."""
    return ValueError(f"{where}.json: is not a valid card ({' '.join(str(error).split())})")


def shipped() -> Traversable:
    """Return the folder of the weights in the package."""
    return files("lloydformer.learning") / "weights"


def _order(name: str) -> tuple[bool, list[int]]:
    """Sort by d and k; other names come last."""
    sizes = [part[1:] for part in name.split("-")]
    known = all(size.isdecimal() for size in sizes)
    return not known, [int(size) for size in sizes] if known else []
