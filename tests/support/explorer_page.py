"""The explorer's page in headless Chromium: a server on loopback, a page that may not complain."""

import json
import math
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import lloydformer
from lloydformer.circuits.serialise import deserialise, serialise

FOLDER = Path(lloydformer.__file__).parent / "app" / "explorer" / "page"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = ["--no-sandbox", "--disable-background-networking", "--disable-gpu"]
CENTERS = """() => [...document.querySelectorAll(".center-row")].map((row) =>
    [...row.querySelectorAll("[data-value]")].map((cell) => Number(cell.dataset.value)))"""
STEP = '[aria-label="Step: one layer on"]'


def missing() -> str | None:
    """Why the page cannot be tested here, or None."""
    if CHROMIUM is None:
        return "Chromium is not installed"
    return None if find_spec("playwright") else "the Python package playwright is not installed"


class Quiet(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # one connection for many files

    def log_message(self, *words: Any) -> None:
        pass


@contextmanager
def served(folder: Path = FOLDER) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/index.html"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


class Explorer:
    """A page with words for what a user does, and what the page shows as numbers."""

    def __init__(self, browser: Any, address: str, **settings: Any) -> None:
        self.complaints: list[str] = []
        self.context = browser.new_context(
            **{"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce"} | settings
        )
        self.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.page = self.context.new_page()
        self.page.set_default_timeout(10_000)
        self.page.on("console", lambda message: self.complain(message.type, message.text))
        self.page.on("pageerror", lambda error: self.complain("error", str(error)))
        self.page.on("request", self.check_request)
        self.address = address
        self.page.goto(address)
        self.page.wait_for_selector("#sandbox .layer")

    def complain(self, kind: str, words: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(f"{kind}: {words}")

    def check_request(self, request: Any) -> None:
        if urlsplit(request.url).scheme == "http" and "127.0.0.1" not in request.url:
            self.complaints.append(f"asked for {request.url}")

    def close(self) -> None:
        self.context.close()
        assert self.complaints == [], self.complaints

    def choose(self, label: str, value: str) -> None:
        self.page.select_option(f'#sandbox select[aria-label="{label}"]', value)

    def step(self, layers: int = 1) -> None:
        for _ in range(layers):
            self.page.click(STEP)

    def go(self, layer: int) -> None:
        self.page.fill('[aria-label="Layer"]', str(layer))

    def centers(self) -> list[list[float]]:
        """The centers of the layer that is shown, as the table of numbers has them."""
        return self.page.evaluate(f"({CENTERS})()")

    def all_centers(self, layers: int) -> list[list[list[float]]]:
        """The centers that the page shows at the start and after each press of Step."""
        self.go(0)
        return self.page.evaluate(
            """([layers, read, step]) => {
                const centers = eval(read), shown = [centers()];
                for (let t = 0; t < layers; t += 1) {
                    document.querySelector(step).click();
                    shown.push(centers());
                }
                return shown;
            }""",
            [layers, CENTERS, STEP],
        )

    def number(self, selector: str) -> float:
        value = self.page.get_attribute(selector, "data-value")
        return math.nan if value is None else float(value)

    def state(self) -> dict[str, Any]:
        """What the address of the page holds, after it was written."""
        self.page.wait_for_timeout(350)
        found = {k: v[0] for k, v in parse_qs(urlsplit(self.page.url).fragment).items()}
        rows = {k: [[float(x) for x in row.split(",")] for row in found[k].split(";")]
                for k in ("points", "centers") if k in found}  # fmt: skip
        return found | rows

    def dataset(self, name: str) -> dict[str, Any]:
        return self.page.evaluate(
            "name => import('./datasets.js').then(m => m.dataset(name))", name
        )

    def recipe(self) -> Any:
        """The recipe of the page's state as Python's value."""
        state = self.state()
        maker = getattr(lloydformer.recipes, state["recipe"])
        made = serialise(maker())
        for where, part in json.loads(state.get("sets", "[]")):
            slot, _, field = where.partition(".")
            if field:
                made[slot][field] = part
            else:
                made[slot] = part
        return deserialise(made)

    def lines(self) -> dict[str, bool]:
        """The algorithm's lines, each with whether the page says that it holds."""
        return dict(
            self.page.eval_on_selector_all(
                ".lines li",
                "items => items.map(i => [i.children[1].textContent, i.className === 'holds'])",
            )
        )
