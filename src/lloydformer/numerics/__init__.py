"""Numerical functions that know nothing of algorithms or engines; other rooms build on them.

It imports no other room. Begin with `clusters` (distances, objective, means); `noise` has the
random numbers of every algorithm, `tree` the order of sums that any split of the rows shares,
`scaling` and `checks` what is done to data before it is used, and `search_constants` the
numbers that define searches.
"""
