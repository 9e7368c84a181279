"""The demo's page in a browser: no errors, and the stepper changes the layer shown."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

from lloydformer.app.jobs.demo import load_images, make_cases, make_plane, run_circuits
from lloydformer.app.jobs.demo_page import demo_page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--no-first-run",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--virtual-time-budget=20000",
)

WATCH = """<script>
window.found = { errors: [] };
for (const kind of ["error", "unhandledrejection", "securitypolicyviolation"]) {
  window.addEventListener(kind, (event) => found.errors.push(event.message || kind), true);
}
</script>"""

PROBE = """<script>
const button = document.querySelector(".stepper button");
const slider = document.querySelector(".stepper input");
const card = document.querySelector('[data-widget="circuit"]');
const shown = () => [card.dataset.layer, card.querySelector(".objective").textContent,
  card.querySelectorAll("svg g.center").length, button.textContent];
found.opened = shown();
slider.value = 0;
slider.dispatchEvent(new Event("input"));
found.moved = shown();
const map = card.querySelector('[data-head="encoder_self"]');
slider.value = 1;
slider.dispatchEvent(new Event("input"));
const { x, y } = map.getBoundingClientRect();
map.dispatchEvent(new PointerEvent("pointermove", { clientX: x + 1, clientY: y + 1 }));
found.readout = card.querySelector(".readout").textContent;
slider.value = slider.max;
button.click();
found.playing = shown();
setTimeout(() => {
  found.played = shown();
  const note = document.body.appendChild(document.createElement("pre"));
  note.id = "found";
  note.textContent = JSON.stringify(found);
}, 5000);
</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine to open the page with")
def test_the_stepper_changes_the_layer_and_nothing_goes_wrong(tmp_path: Path) -> None:
    small = [make_plane(0, n_points=40), load_images(0, n_points=60)]
    runs = run_circuits([case for p in small for case in make_cases(p, seed=0)], n_layers=3)
    objective = [float(f"{value:.5g}") for value in runs[0].trace.objective.tolist()]
    found = _opened(demo_page(runs, seed=0), tmp_path)
    assert found["errors"] == []
    assert found["opened"] == ["2", f"{objective[2]:g}", 5, "Play"]
    assert found["moved"] == ["0", f"{objective[0]:g}", 5, "Play"]
    assert found["readout"] == "point 0 → point 0: 1.0"
    assert found["playing"] == ["0", f"{objective[0]:g}", 5, "Pause"]
    assert found["played"] == ["3", f"{objective[3]:g}", 5, "Play"]


def _opened(page: str, folder: Path) -> dict[str, list[object]]:
    """What the probe finds in the page, opened at layer 2."""
    file = folder / "page.html"
    watched = page.replace("<head>", f"<head>{WATCH}").replace("</body>", f"{PROBE}</body>")
    file.write_text(watched, encoding="utf-8")
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={folder / 'profile'}", "--dump-dom"]
    dump = subprocess.run(
        [*command, f"{file.as_uri()}#layer=2"], capture_output=True, text=True, timeout=120
    )
    note = re.search(r'<pre id="found">(.*?)</pre>', dump.stdout, flags=re.DOTALL)
    assert note, f"the probe did not report: {dump.stderr[-500:]}"
    return json.loads(unescape(note[1]))
