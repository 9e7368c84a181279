"""Engines: they run the folds of a plan over blocks of points."""
