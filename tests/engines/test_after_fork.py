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


def run_alone(program: str) -> str:
    """Run a program in a process of its own, which ends in minutes at the latest."""
    done = subprocess.run(
        [sys.executable, "-c", "import faulthandler, os, threading, time\n" + program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


IN_A_CHILD = """
child = os.fork()
if child == 0:
    faulthandler.dump_traceback_later(150, exit=True)
    work()
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_cached_property_that_another_thread_computes():
    """The lock of `functools.cached_property` in Python 3.11 belongs to the class."""
    program = """
import torch
from lloydformer.data import blocks

started, plain = threading.Event(), blocks.column_min_max
def slow(points):
    if threading.current_thread() is not threading.main_thread():
        started.set()
        time.sleep(100)
    return plain(points)
blocks.column_min_max = slow
others = blocks.TensorBlocks(torch.zeros(3, 2))
threading.Thread(target=lambda: others.ends, daemon=True).start()
started.wait()
def work():
    assert blocks.TensorBlocks(torch.ones(3, 2)).ends.tolist() == [[1, 1], [1, 1]]
"""
    assert run_alone(program + IN_A_CHILD + "os._exit(0)") == "0\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_module_that_another_thread_imports():
    """The first fit imports torch and scikit-learn: its thread holds the locks of their modules."""
    program = """
import lloydformer as lf

def work():
    lf.KMeans(2, random_state=0).fit([[0.0], [0.1], [5.0], [5.1]])
threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
"""
    assert run_alone(program + IN_A_CHILD) == "0\n"
