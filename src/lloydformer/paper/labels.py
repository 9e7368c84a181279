"""All labels of the paper, found as the folders of this package."""

from importlib import import_module
from pkgutil import iter_modules

import lloydformer.paper
from lloydformer.paper.artefact import Artefact


def _found() -> dict[str, Artefact]:
    """The `ARTEFACT` of every folder by label, in the order of the paper."""
    package = lloydformer.paper
    folders = [module.name for module in iter_modules(package.__path__) if module.ispkg]
    artefacts: list[Artefact] = [
        import_module(f"{package.__name__}.{folder}").ARTEFACT for folder in folders
    ]
    return {one.label: one for one in sorted(artefacts, key=lambda one: one.order)}


_ARTEFACTS = _found()
LABELS = tuple(_ARTEFACTS)
"""In the order of the paper."""


def artefact(label: str) -> Artefact:
    """The artefact of a label; raises ValueError if there is no folder for it."""
    if label not in _ARTEFACTS:
        raise ValueError(f"label: found {label!r}; pass one of {', '.join(LABELS)}, or all")
    return _ARTEFACTS[label]
