"""Engines: they open data and run the folds of a plan over them.

It imports `plans` and the rooms before it. Begin with `contract.py` (what an engine is) and
`chunked.py` (the smallest one). `native/` calls kernels in C++, `cuda/` those of a GPU;
`partitioned/` runs folds where the partitions of the data are, and `dask/` and `ranks/` are the
ways there. `choose` picks an engine.
"""

from collections.abc import Callable

from lloydformer.data.blocks import Blocks
from lloydformer.data.sparse_blocks import SparseOnGpu
from lloydformer.data.streamed_blocks import StreamedBlocks
from lloydformer.engines.chunked import Chunked
from lloydformer.engines.contract import Engine
from lloydformer.engines.cuda import load_cuda_engine
from lloydformer.engines.native import Native, instruction_set
from lloydformer.engines.partitioned import PartitionedBlocks, PartitionedEngine

# Engines by the name that `engine=` takes.
ENGINES: dict[str, Callable[[], Engine]] = {
    "native": Native,
    "chunked": Chunked,
    "cuda": load_cuda_engine,
}


def default_engine() -> str:
    """Return the name of the engine that "auto" is for data on the CPU."""
    return "chunked" if instruction_set() is None else "native"


def choose(name: str, blocks: Blocks) -> Engine:
    """Return the engine for these data.

    Parameters
    ----------
    name : str
        "auto" or a key of `ENGINES`. "auto" is the CUDA engine for data on an NVIDIA GPU, else
        the native engine if it was built. Data that the native engine cannot read go to the
        chunked one whether the name is "auto" or "native", and so do sparse matrices and streamed
        rows on a GPU.
    blocks : Blocks
        The data.

    Raises
    ------
    ValueError
        If there is no engine of this name, or "native" was not built.
    """
    if name not in ("auto", *ENGINES):
        raise ValueError(f'engine: found {name!r}; pass "auto" or one of {", ".join(ENGINES)}')
    if isinstance(blocks, PartitionedBlocks):
        return PartitionedEngine()
    if name == "auto" and blocks.layout.device.type == "cuda":
        name = "cuda"
    if isinstance(blocks, StreamedBlocks | SparseOnGpu):
        return Chunked()
    engine = ENGINES[default_engine() if name == "auto" else name]()
    return Chunked() if isinstance(engine, Native) and not engine.reads(blocks) else engine
