"""Kernels in Triton, for every CUDA GPU since Ampere. Nothing outside of here imports Triton."""
