"""The native engine: kernels in C++ behind the folds that they know."""

from lloydformer.engines.native.engine import Native
from lloydformer.engines.native.installed import instruction_set

__all__ = ["Native", "instruction_set"]
