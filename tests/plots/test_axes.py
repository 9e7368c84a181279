"""Matplotlib is an extra: nothing imports it until something is drawn."""

import subprocess
import sys

import pytest

import lloydformer as lf
from lloydformer import plots
from lloydformer.plots.palette import CLUSTERS, cluster_colour

MODULES = "lloydformer, lloydformer.plots, lloydformer.plots.report, lloydformer.app.cli.demo"


def test_imports_do_not_load_matplotlib() -> None:
    code = f"import sys, {MODULES}; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_call_without_matplotlib_says_how_to_get_it(
    trace: lf.Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "lloydformer\[plots\]"$'):
        plots.trajectories(trace)


def test_colours_repeat() -> None:
    assert len(set(CLUSTERS)) == len(CLUSTERS)
    assert cluster_colour(len(CLUSTERS)) == cluster_colour(0)
