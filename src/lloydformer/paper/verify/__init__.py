"""Every statement of the paper, measured on random problems, and `lloydformer.check`.

`statements.py` has the theorems, definitions, lemmas and remarks, `worked_example.py` the paper's
example, `errata/` the items of docs/errata.md; each statement returns a `finding.Finding`.
`compare.py` compares a circuit with its plain algorithm, `rounding.py` says which decisions
rounding can change, `checking/` compares a user's recipe with a user's algorithm.

May import every room but `app`. Begin with `finding.py` and `statements.py`.
"""
