"""A graph of ONNX, written node by node.

A call of the graph adds a node and returns the name of its result:
`total = graph("ReduceSum", values, graph.integers(0))`.
"""

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

# All operators that are used here have their present form since this version of 2022.
OPSET = 18


def import_onnx() -> Any:
    """Return the package onnx; raise ValueError that says how to install it."""
    try:
        import onnx
    except ImportError:
        raise ValueError(
            'path: writing ONNX needs the package onnx: pip install "lloydformer[onnx]"'
        ) from None
    return onnx


class Graph:
    """Nodes and constants; `body` is a graph inside of this one, for a loop.

    Parameters
    ----------
    outer : Graph or None
        The graph that this one is the body of. It may use all its values, and adds its constants
        there.
    """

    def __init__(self, outer: "Graph | None" = None) -> None:
        self.onnx = import_onnx()
        self.nodes: list[Any] = []
        self._constants: dict[tuple[Any, ...], Any] = {} if outer is None else outer._constants
        self._numbers: Iterator[int] = count() if outer is None else outer._numbers

    def __call__(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one result."""
        return self.several(1, operator, *inputs, **attributes)[0]

    def several(self, n_results: int, operator: str, *inputs: str, **attributes: Any) -> list[str]:
        """Add a node with several results."""
        names = [f"v{next(self._numbers)}" for _ in range(n_results)]
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, names, **attributes))
        return names

    def constant(self, values: Any, dtype: Any) -> str:
        """Return the name of a constant; equal ones are stored once."""
        array = np.asarray(values, dtype=dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            name = f"c{next(self._numbers)}"
            self._constants[key] = self.onnx.numpy_helper.from_array(array, name)
        return str(self._constants[key].name)

    def real(self, value: float) -> str:
        """Return a number in float64."""
        return self.constant(value, np.float64)

    def integers(self, *values: int) -> str:
        """Return a list of integers, for axes and shapes."""
        return self.constant(values, np.int64)

    def integer(self, value: int) -> str:
        """Return one integer, without an axis."""
        return self.constant(value, np.int64)

    def to(self, value: str, dtype: Any) -> str:
        """Convert to another dtype of NumPy."""
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self("Cast", value, to=kind)

    def size(self, value: str, axis: int) -> str:
        """Return the size of one axis, as one integer."""
        shape = self("Shape", value, start=axis, end=axis + 1)
        return self("Squeeze", shape)

    def body(self) -> "Graph":
        """Return an empty graph inside of this one."""
        return Graph(self)

    def rename(self, value: str, name: str) -> None:
        """Give a value the name of an output."""
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [name]))

    def value(self, name: str, dtype: Any, *shape: int | str) -> Any:
        """Return the description of an input or output; sizes may be names."""
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.onnx.helper.make_tensor_value_info(name, kind, shape)

    def write(self, path: str | os.PathLike[str], inputs: Any, outputs: Any, about: str) -> None:
        """Check the graph and write it to a file, which is whole at any time."""
        onnx, target = self.onnx, Path(path)
        graph = onnx.helper.make_graph(
            self.nodes, "lloydformer", inputs, outputs, [*self._constants.values()]
        )
        opset = onnx.helper.make_opsetid("", OPSET)
        model = onnx.helper.make_model(graph, opset_imports=[opset], producer_name="lloydformer")
        # that of the first release with this set of operators, so that old runtimes read the file
        model.ir_version, model.doc_string = 8, about
        onnx.checker.check_model(model, full_check=True)
        beside = target.with_name(f".{os.getpid()}-{target.name}")
        try:
            beside.write_bytes(model.SerializeToString())
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
