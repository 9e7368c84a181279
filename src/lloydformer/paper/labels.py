"""All labels of the paper; each is a folder of this package, imported when it is asked for."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lloydformer.paper.artefact import Artefact

LABELS = (
    "numerical-validation", "trf-train", "lrn-weights", "lrn-attn-map", "parameter-sweep",
    "tr-cvg-lambda", "tr-cvg-vary", "mix-res", "openml-trf", "comp-alg", "rob-res", "med-res",
)  # fmt: skip
"""In the order of the paper; the folder of trf-train is trf_train."""


def artefact(label: str) -> "Artefact":
    """The artefact of a label; raises ValueError if there is no folder for it."""
    if label not in LABELS:
        raise ValueError(f"label: found {label!r}; pass one of {', '.join(LABELS)}, or all")
    found: Artefact = import_module(f"lloydformer.paper.{label.replace('-', '_')}").ARTEFACT
    return found
