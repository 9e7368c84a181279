"""Models for TransformerLens: every intermediate passes a `HookPoint` of its name."""

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

if TYPE_CHECKING:
    from transformer_lens.HookedRootModule import HookedRootModule


def hooked(model: nn.Module) -> "HookedRootModule":
    """Return a copy of a model as a `HookedRootModule` of TransformerLens.

    It has `run_with_cache` and `run_with_hooks`. Names are those of the modules, as
    "blocks.0.attention.pattern", and so differ from the names of TransformerLens' own models.

    Parameters
    ----------
    model : torch.nn.Module
        A model whose intermediates pass through modules of their own: that of
        `compile_transformer(...).model()`, or a disguised one.

    Returns
    -------
    HookedRootModule
        The copy; it is called as the model is.

    Raises
    ------
    ValueError
        If TransformerLens is not installed, or the model has no such points.

    See Also
    --------
    lloydformer.compile_transformer : Makes a model.

    Examples
    --------
    >>> import lloydformer as lf
    >>> from importlib.util import find_spec
    >>> model = lf.compile_transformer(lf.recipes.lloyd(), 2, 3, n_layers=1).model()
    >>> if find_spec("transformer_lens"):
    ...     assert "blocks.0.attention.pattern" in lf.interp.hooked(model).hook_dict
    """
    try:
        from transformer_lens.hook_points import HookPoint
        from transformer_lens.HookedRootModule import HookedRootModule
    except ImportError:
        raise ValueError(
            'model: TransformerLens is not installed: pip install "lloydformer[interp]"; ordinary '
            "forward hooks on the modules need nothing"
        ) from None
    copied = deepcopy(model)
    names = [name for name, module in copied.named_modules() if type(module) is nn.Identity]
    if not names:
        raise ValueError(f"model: found {type(model).__name__}, which has no points for hooks")
    for name in names:
        place, _, last = name.rpartition(".")
        setattr(copied.get_submodule(place), last, HookPoint())

    class Hooked(HookedRootModule):  # type: ignore[misc]
        """The model, with the names of its own modules."""

        def __init__(self) -> None:
            super().__init__()
            for name, module in copied.named_children():
                self.add_module(name, module)
            self.setup()

        def forward(self, *inputs: Tensor, **given: Any) -> Any:
            return copied(*inputs, **given)

    return Hooked()
