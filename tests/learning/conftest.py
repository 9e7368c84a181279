"""Small settings, with which training takes a second."""

import pytest

import lloydformer as lf
from lloydformer.learning import Settings, Tasks


@pytest.fixture
def settings():
    return Settings(
        Tasks(n_features=2, n_clusters=3, n_points=30),
        n_steps=60,
        batch_size=3,
        evaluate_every=10,
        n_validation=6,
    )


@pytest.fixture
def runs():
    """Runs that differ in every setting."""
    run = lf.learning.Run
    return [run(0), run(1, 0.3, "gumbel"), run(2, 0.1, "cauchy")]
