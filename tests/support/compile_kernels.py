"""Compile the portable kernels for a GPU that need not be there.

`python compile_kernels.py 86 each` prints, as JSON, the bytes of shared memory of each kernel, in
one specialisation. "assign" in place of "each" is that kernel alone; "all", all tiles of the table.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from lloydformer.engines.cuda.portable.labels import (
    assign,
    copy_centers,
    decide_few,
    decide_many,
    prepare,
)
from lloydformer.engines.cuda.portable.sums import (
    add_parts,
    collect,
    finish,
    measure,
    move,
    move_centers,
    move_small,
)
from lloydformer.engines.cuda.portable.tiles import (
    ASSIGN,
    Tile,
    can_keep_centers,
    choose_tiles,
    pad_features,
)

TYPES = {
    "*fp16": "half center_half",
    "*fp32": "norms residuals lowered center_errors",
    "*fp64": "units weights centers parts tolerance record total",
    "*i32": "labels others queue queued assigned status",
    "*i64": "sums masses changed",
    "fp32": "ratio",
    "i32": "n k d padded n_tiles count",
    "row": "rows origin rounded distances",
}
TYPE_OF = {name: kind for kind, names in TYPES.items() for name in names.split()}
Sizes = dict[str, Any]


def kernels(target: int, d: int, k: int) -> Iterator[tuple[Any, Tile, Sizes]]:
    """Every kernel with its tile and its constants for d features and k centers."""
    tiles = choose_tiles(d, k)
    yield assign, tiles.assign, assign_sizes(target, tiles.assign, d, k)
    yield prepare, tiles.prepare, sizes(tiles.prepare)
    yield copy_centers, tiles.centers, {**sizes(tiles.centers), "CODES": tiles.assign.centers}
    yield decide_few, tiles.few, {**sizes(tiles.few), "CENTERS": tiles.assign.centers}
    yield decide_many, tiles.many, {**sizes(tiles.many), "CENTERS": tiles.many.centers}
    yield collect, tiles.collect, {"TILE": tiles.collect.rows}
    yield move, tiles.move, sizes(tiles.move)
    if tile := tiles.move_small:
        registers = {"CENTERS": tile.centers, "WIDTH": tile.features}
        yield move_small, tile, {"TILE": tile.rows, **registers}
    yield move_centers, tiles.update, {**sizes(tiles.update), "DIRECTIONS": k % 2 == 0}
    yield finish, Tile(1024), {"TILE": 1024, "RECORDS": 64}
    yield measure, tiles.measure, sizes(tiles.measure)
    yield add_parts, Tile(1024), {"TILE": 1024}


def sizes(tile: Tile) -> Sizes:
    return {"TILE": tile.rows, "CHUNK": tile.features}


def assign_sizes(target: int, tile: Tile, d: int, k: int) -> Sizes:
    one = can_keep_centers(tile, k, target)
    fits = {"WHOLE": pad_features(d) <= tile.features, "ONE": one}
    return {**sizes(tile), "CENTERS": tile.centers, **fits}


def every_kernel(target: int) -> Iterator[tuple[Any, Tile, Sizes]]:
    """All tiles of the table, each with one tile of centers and with several."""
    for padded, up_to, tile in ASSIGN["any"]:
        d = min(padded, 1024)
        for k in {min(up_to, tile.centers), min(up_to, 4096)}:
            yield assign, tile, assign_sizes(target, tile, d, k)
    for d, k in ((1, 1), (2, 5), (32, 10), (40, 33), (128, 1000), (1024, 4096)):
        known = {"d": 1} if d == 1 else {}  # an argument of 1 becomes a constant
        yield from ((kernel, tile, fixed | known) for kernel, tile, fixed in kernels(target, d, k))


def shared_memory(kernel: Any, target: int, tile: Tile, constants: Sizes, row: str) -> int:
    """Compile for sm_<target>, with weights if rows are in float64."""
    signature, fixed, attributes = {}, {}, {}
    for place, parameter in enumerate(kernel.params):
        kind = TYPE_OF.get(parameter.name, "constexpr").replace("row", row)
        if parameter.name == "weights" and row == "*fp32":
            constants = {**constants, "weights": None}
        if parameter.name in constants:
            kind = "constexpr"
        signature[parameter.name] = kind
        if kind == "constexpr":
            fixed[(place,)] = constants[parameter.name]
        elif kind.startswith("*") or parameter.name == "padded":
            attributes[(place,)] = [["tt.divisibility", 16]]
    compiled = triton.compile(
        ASTSource(kernel, signature, fixed, attributes),
        target=GPUTarget("cuda", target, 32),
        options={"num_warps": tile.warps, "num_stages": tile.stages},
    )
    return compiled.metadata.shared


def main(target: int, which: str) -> None:
    chosen = every_kernel(target) if which == "all" else kernels(target, 8, 10)
    rows = ("*fp32", "*fp64") if which == "all" else ("*fp32",)
    found = []
    for kernel, tile, constants in chosen:
        if which not in ("all", "each", kernel.__name__):
            continue
        for row in rows if "rows" in kernel.arg_names else rows[:1]:
            shared = shared_memory(kernel, target, tile, constants, row)
            found.append([kernel.__name__, str(constants), row, shared])
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
