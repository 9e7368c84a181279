"""Profiles of clusters: sizes, silhouettes, and what sets clusters apart, in numbers and words.

It imports `estimators` and the rooms before it; plots and reports draw what it computes. Begin with
`clustering.py` (a fitted model together with rows); `statistics.py` has the numbers of columns,
`profile.py` and `sentences.py` turn them into words, `description.py` is `lf.describe`.
"""
