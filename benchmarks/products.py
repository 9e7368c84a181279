"""Times one pass beside matrix products in float32 and in int8, which compute nothing else.

    python benchmarks/products.py

All take turns, as in `lloydformer bench --question large_k`. The result is results/products.json.
"""

import sys
from functools import partial

import numpy as np
import torch
from provenance import provenance, save

from lloydformer.app.jobs.bench.cases import large_k
from lloydformer.app.jobs.bench.contenders import PASS, PRODUCTS, limit_threads, prepare_product
from lloydformer.app.jobs.bench.measure import Contender, measure

THREADS, REPEATS = 2, 7


def round_to_int8(array: np.ndarray) -> torch.Tensor:
    """Return numbers scaled to [-127, 127] and rounded."""
    return torch.from_numpy(np.rint(array * (127 / np.abs(array).max())).astype(np.int8))


# The only product of int8 on a CPU that torch has: by oneDNN, with the processor's instructions.
INT8 = Contender(
    "int8 product of torch",
    "torch",
    {"pass": partial(prepare_product, torch._int_mm, round_to_int8)},
)


def main() -> None:
    """Measure all passes and write the result."""
    cases = [case for case in large_k(0) if case.work == "pass"]
    tell = partial(print, file=sys.stderr)
    with limit_threads(THREADS):
        rows = {
            case.name: measure(case, [PASS, *PRODUCTS, INT8], "call", REPEATS, tell)
            for case in cases
        }
    settings = {"threads": THREADS, "repeats": REPEATS, "seed": 0}
    about = {"question": "products", "settings": settings, "provenance": provenance("torch")}
    save("products", {**about, "rows": rows})


if __name__ == "__main__":
    main()
