"""Patches: replace an intermediate in the layers that a pattern names."""

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from torch import Tensor

Replacement = Tensor | Callable[[Tensor], Tensor]
"""The new value of an intermediate, or a function of the old one."""


@dataclass(frozen=True, eq=False)
class Patch:
    """Replaces the intermediates whose names match a shell pattern."""

    pattern: str
    replacement: Replacement

    def matches(self, name: str) -> bool:
        return fnmatchcase(name, self.pattern)

    def __call__(self, name: str, value: Tensor) -> Tensor:
        """Return the new value, with the shape, dtype and device of the old one."""
        new = self.replacement(value) if callable(self.replacement) else self.replacement
        if not isinstance(new, Tensor) or new.shape != value.shape:
            found = f"shape {tuple(new.shape)}" if isinstance(new, Tensor) else repr(new)
            raise ValueError(
                f"patch {name!r}: found {found}; pass a tensor of shape {tuple(value.shape)}, or a "
                "function that returns one"
            )
        return new.to(value)
