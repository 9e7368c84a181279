"""All statements: theorems, definitions, lemmas and remarks, then the items of the errata."""

from zlib import crc32

import numpy as np

from lloydformer.verify.definitions import DEFINITIONS
from lloydformer.verify.errata import ERRATA
from lloydformer.verify.finding import Statement
from lloydformer.verify.lemmas import LEMMAS
from lloydformer.verify.remarks import REMARKS
from lloydformer.verify.theorems import THEOREMS
from lloydformer.verify.worked_example import WORKED_EXAMPLE

STATEMENTS: tuple[Statement, ...] = (
    *THEOREMS, *WORKED_EXAMPLE, *DEFINITIONS, *LEMMAS, *REMARKS, *ERRATA,
)  # fmt: skip


def generator(statement: Statement, seed: int) -> np.random.Generator:
    """Return a statement's own generator, independent of its place in the list."""
    return np.random.default_rng([seed, crc32(statement.__name__.encode())])
