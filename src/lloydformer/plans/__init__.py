"""Plans: recipes lowered to folds over blocks of points.

It imports `circuits`, `data` and `numerics`. Begin with `session.py` (what a fold, a task and a
session are) and `means.py` (a complete plan); `lower.py` derives the plan of a recipe, and each
other file holds the folds of one algorithm.
"""
