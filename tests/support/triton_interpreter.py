"""Triton's interpreter: kernels run on the CPU, without a GPU and without compiling them.

Importing this module first makes every later import of Triton use the interpreter, if no GPU is
there. With a GPU the same tests run the compiled kernels.
"""

import os
from types import SimpleNamespace
from typing import Any

import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ.setdefault("TRITON_INTERPRET", "1")


def repair() -> None:
    """Make the interpreter of Triton 3.6 work with new versions of NumPy, and faster."""
    from triton import language
    from triton.runtime import interpreter

    patch_tensor, patch_language = interpreter._patch_lang_tensor, interpreter._patch_lang
    everything = SimpleNamespace(__globals__={"tl": language, "core": language.core})

    def patch(tensor: Any, scope: Any) -> None:
        """Scalars are arrays of one element, of which NumPy makes no int since 2.4."""
        patch_tensor(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())

    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        """A function that a kernel calls. The language has been patched for the kernel already."""
        return self.rewrite()(*arguments, **named)

    interpreter._patch_lang_tensor = patch
    interpreter._patch_lang = lambda kernel: patch_language(everything)
    interpreter.InterpretedFunction.__call__ = call
