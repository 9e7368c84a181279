"""What is shown is run: every script in `examples` ends well, speaks and draws a picture."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
PNG = b"\x89PNG\r\n\x1a\n"


def run(script: Path, folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script), *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_are_examples_to_run():
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_example_says_something_and_draws_a_picture(script, tmp_path):
    picture = tmp_path / "given.png"
    assert run(script, tmp_path, str(picture)).strip()
    assert picture.read_bytes().startswith(PNG)
    assert picture.stat().st_size > 10_000
    assert list(tmp_path.iterdir()) == [picture]  # and nothing else
