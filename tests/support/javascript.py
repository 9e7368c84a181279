"""Run modules of the explorer's page with Node.js."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

NODE = shutil.which("node")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PAGE = Path(__file__).parents[2] / "src" / "lloydformer" / "app" / "explorer" / "page"
needs_node = pytest.mark.skipif(NODE is None, reason="Node.js is not installed: no JavaScript runs")
needs_javascript = pytest.mark.skipif(
    NODE is None and CHROMIUM is None,
    reason="neither Node.js nor Chromium is installed: no JavaScript runs",
)
_FLAGS = ("--headless", "--no-sandbox", "--no-first-run", "--disable-gpu", "--disable-sync",
          "--disable-dev-shm-usage", "--disable-background-networking",
          "--disable-component-update", "--virtual-time-budget=60000", "--dump-dom")  # fmt: skip
_IMPORTS = """
import * as interpreter from "{page}/interpreter/index.js";
import {{ KNOWN, MENU, RECIPES }} from "{page}/recipes.js";
const recipes = Object.fromEntries(RECIPES.map((each) => [each.name, each.recipe]));
const given = {given};
const say = (value) => process.stdout.write(JSON.stringify(value));
"""


def run_node(*arguments: str, timeout: float = 120, **settings: Any) -> str:
    """Return what a run of Node prints; fail with its errors."""
    done = subprocess.run([str(NODE), *arguments], capture_output=True, text=True, timeout=timeout,
                          check=False, **settings)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def dumped(address: str, profile: Path) -> str:
    """Return the document at an address after its scripts have run, in headless Chromium."""
    command = [str(CHROMIUM), *_FLAGS, f"--user-data-dir={profile}", address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def evaluate(code: str, given: Any = None) -> Any:
    """Return what `say(value)` is called with in this code; `given` is passed to it as JSON."""
    imports = _IMPORTS.format(page=PAGE.as_uri(), given=json.dumps(given))
    return json.loads(run_node("--input-type=module", "-", input=imports + code))
