"""Keyboard, screen readers, motion, small screens, colours and speed."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from explorer_page import STEP

pytestmark = pytest.mark.long

OUTLINED = """() => {
    const one = document.activeElement, style = getComputedStyle(one);
    const ring = one.closest(".center")?.querySelector("circle");
    return [one.outerHTML.slice(0, 120), style.opacity !== "0" && (
        (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2)
        || Boolean(ring && parseFloat(getComputedStyle(ring).strokeWidth) >= 3))];
}"""


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_axe_finds_nothing_serious(explore, width, scheme):
    if find_spec("axe_playwright_python") is None:
        pytest.skip("the Python package axe-playwright-python is not installed")
    import axe_playwright_python

    page = explore(viewport={"width": width, "height": 844}, color_scheme=scheme)
    page.step(2)
    page.page.click('[data-head="decoder_self"]')
    page.page.click('[data-break="off"]')
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    page.page.add_script_tag(path=Path(axe_playwright_python.__file__).parent / "axe.min.js")
    found = page.page.evaluate("axe.run().then(found => found.violations)")
    serious = [
        (one["id"], [node["html"][:120] for node in one["nodes"]])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_every_stop_of_the_tab_key_is_seen(explore):
    page = explore("#recipe=lloyd&data=three&layer=1")
    page.page.focus("#sandbox")
    seen = []
    for _ in range(40):
        page.page.keyboard.press("Tab")
        seen.append(page.page.evaluate(OUTLINED))
    assert [html for html, outlined in seen if not outlined] == []
    assert len({html for html, _ in seen}) > 30


def test_keys_step_move_a_center_and_keep_the_focus(explore):
    page = explore("#recipe=lloyd&data=three&layer=0")
    page.page.focus(STEP)
    for _ in range(11):
        page.page.keyboard.press("Enter")
    assert page.page.locator("#sandbox .layer-words").text_content() == "after layer 10 of 10"
    assert page.page.evaluate("document.activeElement.textContent") == "Step"
    page.go(0)
    before = page.centers()
    page.page.focus('#sandbox [data-center="1"]')
    page.page.keyboard.press("ArrowRight")
    after = page.centers()
    assert after[1][0] > before[1][0]
    assert (after[0], after[2]) == (before[0], before[2])
    page.page.focus('[data-break="off"]')
    page.page.keyboard.press("Space")
    assert page.page.evaluate("document.activeElement.dataset.break") == "off"


@pytest.mark.parametrize("how", ["system", "button"])
def test_motion_can_be_turned_off(explore, how):
    page = explore(reduced_motion="reduce" if how == "system" else "no-preference")
    moving = "() => getComputedStyle(document.querySelector('#sandbox .center')).transitionDuration"
    page.step()
    if how == "button":
        assert page.page.evaluate(moving) == "0.55s"
        page.page.click(".preferences >> text=Motion")
    assert page.page.evaluate(moving) == "0s"


@pytest.mark.long
def test_a_step_with_500_points_is_quick(explore):
    page = explore()
    points = [f"{(i * 37) % 101 / 25:.3f},{(i * 53) % 97 / 25:.3f}" for i in range(500)]
    page.page.click("text=Paste or upload")
    page.page.fill('textarea[aria-label="Points, one per line"]', "\n".join(points))
    page.page.click("text=Use these points")
    times = page.page.evaluate(
        """step => Array.from({length: 9}, () => {
            const start = performance.now();
            document.querySelector(step).click();
            return performance.now() - start;
        })""",
        STEP,
    )
    assert min(times) < 50
    paint = page.page.evaluate(
        "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    )
    assert paint < 1000
