"""Lloyd's algorithm in Triton, for every NVIDIA GPU since Ampere.

It may import from the files of `engines.cuda` that know no kernels in CUDA C++ (`lloyd_state`,
`points`). Nothing outside of here imports Triton, which is optional. Begin with `lloyd.py`, which
launches the kernels of an iteration in their order; `labels.py` and `sums.py` have the kernels.
"""
