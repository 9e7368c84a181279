"""`lloydformer.check`: a user's recipe against a user's plain algorithm.

`check.py` draws the problems, `differences.py` finds the first difference on one of them,
`shrink.py` looks for a small problem with such a difference, `report.py` puts it into words.
Begin with `check.py`.
"""
