"""The items of docs/errata.md, measured.

A function's name begins with the number of its item. `constructions.py` has what the text prints
in matrices, networks and formulas, `edge_cases.py` inputs that it does not speak of,
`open_choices.py` what it leaves open. Item 11, which needs ten thousand points, is a remark in
`statements.py`.
"""

from lloydformer.paper.verify.errata import constructions, edge_cases, open_choices
from lloydformer.paper.verify.finding import Statement

_ITEMS: list[Statement] = [
    item
    for module in (constructions, edge_cases, open_choices)
    for name, item in vars(module).items()
    if name.startswith("e_")
]
# In the order of docs/errata.md; both parts of item 2 keep their order.
ERRATA = tuple(sorted(_ITEMS, key=lambda item: int(item.__name__[2:4])))
