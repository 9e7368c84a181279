"""Draws docs/pictures/explorer*.{gif,png}: `python docs/pictures/explorer.py`.

Needs Chromium, playwright and Pillow (the extras `test` and `plots`).
"""

import io
import sys
from pathlib import Path
from typing import Any

from PIL import Image

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parents[1] / "tests" / "support"))

from explorer_page import Explorer, chromium, served  # noqa: E402

WIDE = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
SOFT = "Soft-max"
# Colours of rails, boxes and clusters (theme.css).
LINES = (
    "#0b6b4b",
    "#77378f",
    "#a55400",
    "#1a5fa8",
    "#0b5f94",
    "#b24a00",
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#e4f4ed",
    "#f2e9f7",
    "#fdf1e2",
    "#e9f1fb",
)


def picture(page: Explorer) -> Image.Image:
    page.page.wait_for_timeout(900)  # until nothing glides any more
    return Image.open(io.BytesIO(page.page.screenshot())).convert("RGB")


def sandbox(browser: Any, address: str, fragment: str, **settings: Any) -> Explorer:
    return Explorer(browser, address + fragment, reduced_motion="no-preference", **settings)


def frames(page: Explorer) -> list[tuple[Image.Image, int]]:
    """Lloyd gets stuck; with another activation in one head it escapes. Milliseconds for each."""
    found = [(picture(page), 1200)]
    for _ in range(3):
        page.step()
        found.append((picture(page), 700))
    found.append((picture(page), 1200))
    page.go(0)
    page.page.select_option('[aria-label="Encoder cross-attention: swap a part"]', label=SOFT)
    found.append((picture(page), 1600))
    for _ in range(6):
        page.step()
        found.append((picture(page), 600))
    found.append((picture(page), 2600))
    return found


def write_gif(path: Path, shown: list[tuple[Image.Image, int]], width: int = 960) -> None:
    """Write pictures with one palette, so that what does not change costs nothing."""
    small = [
        one.resize((width, one.height * width // one.width), Image.Resampling.LANCZOS)
        for one, _ in shown
    ]
    palette = with_swatches(small[-1]).quantize(128, method=Image.Quantize.MEDIANCUT)
    plain = [one.quantize(palette=palette, dither=Image.Dither.NONE) for one in small]
    times = [time for _, time in shown]
    plain[0].save(
        path, save_all=True, append_images=plain[1:], duration=times, loop=0, optimize=True
    )


def with_swatches(shown: Image.Image) -> Image.Image:
    """The picture with its lines' colours below it, which few of its pixels have."""
    tall = Image.new("RGB", (shown.width, shown.height + 24 * len(LINES)))
    tall.paste(shown)
    for i, colour in enumerate(LINES):
        tall.paste(colour, (0, shown.height + 24 * i, shown.width, shown.height + 24 * (i + 1)))
    return tall


def write_png(path: Path, shown: Image.Image) -> None:
    shown.quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)


def story(browser: Any, address: str) -> Image.Image:
    page = sandbox(browser, address, "", viewport=WIDE)
    page.page.evaluate("document.getElementById('point-asks').scrollIntoView()")
    return picture(page)


def main() -> None:
    with served() as address, chromium() as browser:
        page = sandbox(browser, address, "#recipe=lloyd&data=trapped&layer=0", viewport=WIDE)
        write_gif(FOLDER / "explorer.gif", frames(page))
        page = sandbox(browser, address, "#recipe=lloyd&data=three&layer=3", viewport=WIDE)
        page.page.hover('#sandbox [data-center="0"]')
        write_png(FOLDER / "explorer.png", picture(page))
        fragment = "#recipe=trimmed&data=outliers&layer=8&head=decoder_cross"
        dark = {"viewport": PHONE, "color_scheme": "dark", "device_scale_factor": 2}
        page = sandbox(browser, address, fragment, **dark)
        page.page.evaluate("document.querySelector('.points-panel').scrollIntoView()")
        page.page.evaluate("scrollBy(0, -60)")
        write_png(FOLDER / "explorer-phone.png", picture(page))
        write_png(FOLDER / "explorer-story.png", story(browser, address))


if __name__ == "__main__":
    main()
