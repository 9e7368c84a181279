"""Random fits at the ends of the range of floats: a finite result, or an error that names the data.

A failure names the seed: tests/support/extreme_fits.py 1 SEED repeats it.
"""

import os
import random
import subprocess
import sys
from pathlib import Path

SUPPORT = Path(__file__).parent.parent / "support"


def test_fits_of_extreme_numbers(amount):
    """In a process of its own: tiny weights once ended it."""
    seconds, seed = amount(5, 600), random.randrange(10**6)
    paths = os.pathsep.join([str(SUPPORT), *(path for path in sys.path if path)])
    done = subprocess.run(
        [sys.executable, str(SUPPORT / "extreme_fits.py"), str(seconds), str(seed)],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True, text=True, timeout=seconds + 240, check=False,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"{lines[-1:]}: {done.stderr[-3000:]}"
    assert [line for line in lines if not line.endswith(": ")] == []
    assert len(lines) > 20
    print(f"{len(lines)} problems")
