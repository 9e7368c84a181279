"""A forked child does not wait for the threads of its parent, and gives the same bits.

The parent has two threads and has used them. Without the repair in `engines/thread_pool.py` nearly
every case waits for ever.
"""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FEW = ["native kmeans", "chunked trimmed", "transform", "batch of lloyd", "circuit", "pool"]


def outcomes(*names: str) -> dict[str, str]:
    """Run the cases in a process of their own, which is ended with all its children."""
    paths = [str(HERE.parent / "support"), *(path for path in sys.path if path)]
    variables = {"OMP_NUM_THREADS": "2", "PYTHONPATH": os.pathsep.join(paths)}
    process = subprocess.Popen(
        [sys.executable, str(HERE / "forked_cases.py"), *names],
        env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        said, _ = process.communicate(timeout=240)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return json.loads(said)


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.parametrize("names", [FEW, pytest.param([], marks=pytest.mark.long)], ids=len)
def test_children_end_with_the_bits_of_the_parent(names):
    found = outcomes(*names)
    assert len(found) == (len(names) or 28)
    assert {name: outcome for name, outcome in found.items() if outcome != "same"} == {}
