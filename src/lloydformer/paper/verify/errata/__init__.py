"""The items of docs/errata.md, measured.

A function's name begins with the number of its item. `constructions.py` has what the text prints
in matrices, networks and formulas, `edge_cases.py` inputs that it does not speak of,
`open_choices.py` what it leaves open. Item 11, which needs ten thousand points, is a remark in
`statements.py`.
"""

from lloydformer.paper.verify.errata.constructions import CONSTRUCTIONS
from lloydformer.paper.verify.errata.edge_cases import EDGE_CASES
from lloydformer.paper.verify.errata.open_choices import OPEN_CHOICES

# In the order of docs/errata.md; both parts of item 2 keep their order.
ERRATA = tuple(
    sorted((*CONSTRUCTIONS, *EDGE_CASES, *OPEN_CHOICES), key=lambda item: int(item.__name__[2:4]))
)
