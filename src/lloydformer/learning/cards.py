"""Cards: JSON files that say what a model is and how it was made, in the package and outside."""

import json
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

FORMAT = 1
SYMMETRIC = "symmetric"
"""The model for every n, d and k: its name, and the kind of its card."""


def available() -> list[str]:
    """The names of the weights in the package: those for one d and k, and the symmetric ones."""
    found = [entry.name for entry in shipped().iterdir()]
    names = [name.removesuffix(".json") for name in found if name.endswith(".json")]
    return sorted(names, key=_order)


def located(pretrained: str | Path) -> tuple[Traversable, str]:
    """The folder and name of a card: by name (`available()`), or by path."""
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
    try:
        card = json.loads((folder / f"{name}.json").read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise ValueError(f"{folder}/{name}.json: there is no such file") from None
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{folder}/{name}.json: is not JSON ({error})") from None
    if not isinstance(card, dict) or card.get("library") != "lloydformer":
        raise ValueError(f"{folder}/{name}.json: is not a card of lloydformer")
    if card.get("format") != FORMAT:
        raise ValueError(f"{folder}/{name}.json: found format {card.get('format')!r}, not {FORMAT}")
    return card


def not_a_card(where: str, error: Exception) -> ValueError:
    """What is wrong with a card that is JSON."""
    return ValueError(f"{where}.json: is not a card ({' '.join(str(error).split())})")


def shipped() -> Traversable:
    return files("lloydformer.learning") / "weights"


def _order(name: str) -> tuple[bool, list[int]]:
    sizes = [part[1:] for part in name.split("-")]
    known = all(size.isdecimal() for size in sizes)
    return not known, [int(size) for size in sizes] if known else []
