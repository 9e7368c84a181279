"""A learned layer for every n, d and k, which commutes with the symmetries of k-means.

It uses `circuits.symmetric`, `plans.symmetric` and `learning`. Begin with `layer.py` (the
equation and the numbers in it), then `model.py` (trained weights as a card, a circuit and a plan)
and `training.py`. docs/symmetric.md explains what was learned.
"""
