"""Sums about the first row, moved to another origin."""

import numpy as np
import pytest

from lloydformer.data.extent import Survey


@pytest.mark.parametrize("far", [0.0, 1e4, -3e6])
def test_moments_of_the_rows_less_an_origin(far, rng):
    rows = rng.normal(size=(500, 3)) + far
    away = rows - rows[0]
    ends = np.array([rows.min(axis=0), rows.max(axis=0)])
    squares = float(np.square(away).sum())
    survey = Survey(ends, rows[0], away.sum(axis=0), squares, len(rows), ends, 0)
    origin = np.round(rows.mean(axis=0))
    squares, sums = survey.seen_from(origin)
    np.testing.assert_allclose(sums, (rows - origin).sum(axis=0), atol=1e-6)
    assert squares == pytest.approx(np.square(rows - origin).sum(), rel=1e-10)
