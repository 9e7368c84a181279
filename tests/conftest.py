"""The same numbers in every run: no deadline, no database, no random search, one thread each."""

import os

import numpy as np
import pytest
import torch
from hypothesis import settings
from remote_engine import RemoteEngine

from lloydformer.engines import ENGINES, instruction_set

ENGINES["remote"] = RemoteEngine
if torch.cuda.is_available():
    from gpu_engine import CudaOrSkip

    ENGINES["cuda"] = CudaOrSkip

REPEATABLE = settings(derandomize=True, deadline=None, database=None, max_examples=50)
settings.register_profile("repeatable", REPEATABLE)
settings.register_profile("ordinary", REPEATABLE, max_examples=20)
settings.load_profile("repeatable")


def pytest_configure(config: pytest.Config) -> None:
    """Fewer examples of each property where tests marked `long` are left out."""
    if "not long" in config.getoption("markexpr"):
        settings.load_profile("ordinary")


if "PYTEST_XDIST_WORKER" in os.environ:  # each worker has one core
    torch.set_num_threads(1)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240607)


@pytest.fixture(
    params=[pytest.param(name, marks=[pytest.mark.gpu] * (name == "cuda")) for name in ENGINES]
)
def engine(request: pytest.FixtureRequest) -> str:
    """The name of each engine: the built-in ones, and one that lives in another process."""
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU here")
    if request.param == "native" and instruction_set() is None:
        pytest.skip("the kernels of the native engine were not built here")
    return str(request.param)
