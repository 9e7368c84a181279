"""Errors of a fit on a cluster name the data as the user does."""

import pytest

pytest.importorskip("distributed")

from lloydformer.app.jobs.fit.cluster import RowsOnCluster
from lloydformer.engines.dask.transport import ClusterError
from lloydformer.numerics.checks import ArgumentError

LOST = "rows 0 to 9: it was lost with its worker"
ERRORS = {
    "rows": (ClusterError(LOST, "X"), f"points.csv: {LOST}"),
    "a file": (ClusterError("b.csv: workers died"), "b.csv: workers died"),
    "the client": (ClusterError("client: it is closed"), "client: it is closed"),
    "an argument": (ArgumentError("X", "found no rows"), "points.csv: found no rows"),
}


@pytest.mark.parametrize("kind", ERRORS)
def test_errors_name_the_data_not_an_argument(kind):
    error, words = ERRORS[kind]
    with (
        pytest.raises(ValueError, match=f"^{words}$"),
        RowsOnCluster("points.csv", [], [], None).name_data(),
    ):
        raise error
