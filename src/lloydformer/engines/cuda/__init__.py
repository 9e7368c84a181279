"""The CUDA engine: kernels for points in the memory of a GPU."""
