"""Run the README's first example and `lloydformer fit` with the lloydformer that is installed.

    python tools/try_wheel.py    # in an environment with a wheel, in any folder

It is the test of each wheel (`tool.cibuildwheel` in pyproject.toml). It needs no compiler and no
clone: the example and its output are read from the description in the wheel, which is the
README.
"""

import contextlib
import csv
import io
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib.metadata import metadata
from pathlib import Path

import lloydformer as lf
from lloydformer.engines.native.installed import instruction_set

BLOCK = re.compile(r"```python\n(.*?)```\n+```text\n(.*?)```", re.DOTALL)


def main() -> None:
    """Raise an error unless both work."""
    library = Path(sysconfig.get_path("platlib"))
    if not Path(lf.__file__).is_relative_to(library):
        raise RuntimeError(f"lloydformer: found {lf.__file__}; install the wheel into {library}")
    description = metadata("lloydformer").get_payload()
    found = BLOCK.search(str(description))
    if found is None:
        raise RuntimeError("README: found no example with its output")
    code, expected = found.groups()
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(code, {"__name__": "readme"})
    if said.getvalue() != expected:
        raise RuntimeError(f"README: found {said.getvalue()!r}; expected {expected!r}")
    command = Path(sys.executable).with_name("lloydformer")
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "points.csv"
        rows = [(i % 3 * 10 + i % 7 / 7, i % 3 * -5 + i % 5 / 5) for i in range(90)]
        with table.open("w", newline="") as file:
            csv.writer(file).writerows([("x", "y"), *rows])
        subprocess.run([command, "fit", table, "-k", "3"], check=True, cwd=folder)
        with (Path(folder) / "points-clusters" / "labels.csv").open(newline="") as file:
            labels = [row["cluster"] for row in csv.DictReader(file)]
    if labels != labels[:3] * 30 or len(set(labels)) != 3:
        raise RuntimeError(f"lloydformer fit: found the labels {labels}")
    compiler = shutil.which("c++") or "none"
    print(f"lloydformer {lf.__version__} runs; kernels: {instruction_set()}; compiler: {compiler}")


if __name__ == "__main__":
    main()
