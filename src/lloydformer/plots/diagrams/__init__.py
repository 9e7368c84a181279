"""Diagrams of recipes, drawn as SVG in plain Python.

May import `circuits`. Begin with `diagram.py`; `layer.py` and `stages.py` turn a recipe into boxes,
`cards.py` and `columns.py` place them, `svg.py` writes them.
"""

from lloydformer.plots.diagrams.diagram import diagram

__all__ = ["diagram"]
