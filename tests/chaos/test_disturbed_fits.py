"""Forks, Ctrl-C and rows that another thread changes, at random moments of fits.

A failure names the seed: tests/support/disturbed_fits.py WHAT SECONDS SEED repeats it.
"""

import json
import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parent.parent / "support"
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")


@pytest.mark.parametrize("what", ["forks", "signals", "changes"])
def test_fits_end(what, amount, request):
    """Every fit ends, with a result or an error, and this process with it."""
    if what == "signals" and not request.config.getoption("--chaos"):
        # One run of many did not end within 244 s, for an unknown reason.
        pytest.skip("Ctrl-C at random moments: in `make chaos` only, as it may wait for minutes")
    seconds, seed = amount(4, 600), random.randrange(10**6)
    paths = os.pathsep.join([str(SUPPORT), *(path for path in sys.path if path)])
    process = subprocess.Popen(
        [sys.executable, str(SUPPORT / "disturbed_fits.py"), what, str(seconds), str(seed)],
        env={**os.environ, "OMP_NUM_THREADS": "2", "PYTHONPATH": paths},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        said, error = process.communicate(timeout=seconds + 240)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, f"seed {seed}, status {process.returncode}: {error[-3000:]}"
    found = json.loads(said)
    assert found["rounds"] > 0
    assert found["wrong"] == [], f"seed {seed}"
    print(f"{found['rounds']} {what}")
