"""Small dask collections, which are one part: the same results, and what is refused."""

import numpy as np
import pytest

import lloydformer as lf
from lloydformer.engines import instruction_set
from lloydformer.estimators import ALGORITHMS

da = pytest.importorskip("dask.array", reason="dask is not installed (extra `dask`)")
pytestmark = [
    pytest.mark.skipif(instruction_set() is None, reason="the kernels were not built here"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


@pytest.fixture
def few(rng):
    return rng.normal(size=(300, 3))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_on_one_part(name, few):
    make = ALGORITHMS[name].estimator
    alone = make(3, random_state=0).fit(few)
    found = make(3, random_state=0).fit(da.from_array(few, chunks=100))
    np.testing.assert_array_equal(alone.cluster_centers_, found.cluster_centers_)
    np.testing.assert_array_equal(alone.labels_, found.labels_.compute())


def test_another_device_is_refused(few):
    with pytest.raises(ValueError, match="device: found 'cuda' for a dask collection"):
        lf.KMeans(3, device="cuda").fit(da.from_array(few))
