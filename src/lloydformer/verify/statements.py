"""All statements, in the paper's order, and the errors of its text."""

from lloydformer.verify.errata import ERRATA
from lloydformer.verify.finding import Statement
from lloydformer.verify.lemmas import LEMMAS
from lloydformer.verify.remarks import REMARKS
from lloydformer.verify.theorems import THEOREMS

STATEMENTS: tuple[Statement, ...] = (*THEOREMS, *LEMMAS, *REMARKS, *ERRATA)
