"""The CUDA engine, for tests that run on every engine."""

import pytest

from lloydformer.engines.cuda.engine import Cuda


class CudaOrSkip(Cuda):
    """Skips tests that open data of their own on the CPU."""

    def open(self, blocks):
        if not self.reads(blocks):
            pytest.skip("opens data on the CPU")
        return super().open(blocks)
