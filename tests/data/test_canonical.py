"""CSR matrices in the form that kernels read."""

import numpy as np
import pytest
from scipy import sparse

from lloydformer.data.canonical import canonical


def matrix(columns, starts=(0, 2, 4), index="int32") -> sparse.csr_matrix:
    """Four entries in two rows of three columns, whatever the arrays say."""
    made = sparse.csr_matrix((np.arange(1.0, 5.0), [0, 1, 0, 1], [0, 2, 4]), shape=(2, 3))
    made.indices, made.indptr = np.array(columns, dtype=index), np.array(starts, dtype=index)
    return made


@pytest.mark.parametrize("index", ["int32", "int64"])
def test_a_canonical_matrix_is_not_copied(index):
    given = matrix([0, 2, 1, 2], index=index)
    assert canonical(given) is given


@pytest.mark.parametrize("columns", [[2, 0, 1, 2], [1, 1, 0, 0], [2, 2, 1, 0]])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_others_are_sorted_and_added_in_a_copy(columns, index):
    given = matrix(columns, index=index)
    made = canonical(given)
    np.testing.assert_array_equal(made.toarray(), given.toarray())
    np.testing.assert_array_equal(given.indices, columns)
    for start, stop in zip(made.indptr, made.indptr[1:], strict=False):
        assert (np.diff(made.indices[start:stop]) > 0).all()


def test_what_scipy_remembers_is_not_believed():
    given = matrix([0, 2, 1, 2])
    assert given.has_canonical_format
    given.indices[:2] = 1
    made = canonical(given)
    assert made.nnz == 3
    assert made[0, 1] == 3


@pytest.mark.parametrize(
    ("columns", "starts", "words"),
    [
        ([0, 1, 0, 3], (0, 2, 4), "column 3 in a CSR matrix of 3 columns"),
        ([0, -1, 0, 1], (0, 2, 4), "column -1"),
        ([0, 1, 0, 1], (0, 2, 5), "indptr"),
        ([0, 1, 0, 1], (0, 3, 2), "indptr"),
        ([0, 1, 0, 1], (1, 2, 4), "indptr"),
    ],
)
def test_arrays_that_are_no_matrix_are_refused(columns, starts, words):
    with pytest.raises(ValueError, match=words):
        canonical(matrix(columns, starts))
