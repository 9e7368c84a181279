"""All labels that are made again, in the order of the paper."""

from importlib import import_module

from lloydformer.paper.artefact import Artefact

LABELS = (
    "numerical-validation", "trf-train", "lrn-weights", "lrn-attn-map", "parameter-sweep",
    "tr-cvg-lambda", "tr-cvg-vary", "mix-res", "openml-trf", "comp-alg", "rob-res", "med-res",
)  # fmt: skip


def artefact(label: str) -> Artefact:
    """The module of the label's name has it as `ARTEFACT`."""
    if label not in LABELS:
        raise ValueError(f"label: found {label!r}; pass one of {', '.join(LABELS)}, or all")
    module = import_module(f"lloydformer.paper.{label.replace('-', '_')}")
    found: Artefact = module.ARTEFACT
    return found
