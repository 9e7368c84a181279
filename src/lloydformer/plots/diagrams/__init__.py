"""Diagrams of recipes, drawn as SVG in plain Python."""

from lloydformer.plots.diagrams.diagram import diagram

__all__ = ["diagram"]
