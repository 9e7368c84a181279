"""The chaos suite: concurrent writers, kills, full disks, missing memory, random kernel problems.

`make test` runs a short form of it, `make chaos` the full one.
"""

from collections.abc import Callable

import pytest


@pytest.fixture
def amount(request: pytest.FixtureRequest) -> Callable[[int, int], int]:
    """amount(short, full): how many repetitions or seconds, in `make test` and in `make chaos`."""
    full = request.config.getoption("--chaos")
    return lambda short, long: long if full else short
