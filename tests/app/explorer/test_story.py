"""The story's screens: their figures are live, and what they say is so."""

import re

import pytest
from explorer_page import Explorer

pytestmark = pytest.mark.long

LEAST = 1e-12


@pytest.fixture(scope="module")
def page(browser, address):
    """One page for all screens; it must not complain."""
    one = Explorer(browser, address)
    yield one
    one.close()


def sentence(page, screen):
    return page.page.locator(f"#{screen} .sentence").text_content()


def test_a_point_is_assigned_or_shared(page):
    assert "assigned" in sentence(page, "point-asks")
    page.page.fill('#point-asks [aria-label="Sharpness"]', "20")
    assert "shared" in sentence(page, "point-asks")
    shares = page.page.locator("#point-asks .bar output").all_text_contents()
    assert sum(int(share.split()[0]) for share in shares) in (99, 100, 101)
    page.page.fill('#point-asks [aria-label="Sharpness"]', "60")
    page.page.focus("#point-asks .plot")
    for _ in range(12):
        page.page.keyboard.press("ArrowLeft")
        page.page.keyboard.press("ArrowDown")
    assert "center 1" in sentence(page, "point-asks")


def test_a_center_has_as_many_rays_as_points(page):
    page.page.click("#center-asks >> text=Center 2")
    count = int(re.search(r"has (\d+) points", sentence(page, "center-asks"))[1])
    assert page.page.locator("#center-asks .rays line").count() == count
    page.page.click("text=Move all centers to the answers")
    assert page.page.locator("#center-asks .trail").count() == 3


def test_without_self_attention_old_and_new_are_added(page):
    def cells(line):
        texts = page.page.locator(f"#self-wipes .strip >> nth={line}").locator(".group span")
        return [float(text.replace("−", "-")) for text in texts.all_text_contents()]

    assert cells(4)[:2] == cells(3)[:2]  # the next token is what cross-attention writes
    page.page.click("#self-wipes [role=switch]")
    assert cells(4)[:2] == pytest.approx(
        [old + new for old, new in zip(cells(1), cells(3), strict=True)][:2], abs=0.011
    )
    assert "run away" in sentence(page, "self-wipes")


def test_layers_are_iterations_from_any_start(page):
    for _ in range(4):
        page.page.click("text=Another start")
        apart = re.search(r"centers: (.*)\.$", sentence(page, "stack"))[1]
        assert float(apart.replace("−", "-")) < LEAST


def test_swapped_parts_are_marked_and_open_in_the_sandbox(page):
    page.page.click("#swap >> text=Trimmed")
    assert page.page.locator("#swap .slots .other").count() == 1
    assert page.page.locator("#swap .left-out").count() >= 3
    page.page.click("text=Open it in the sandbox")
    assert "Trimmed" in page.page.locator(".verdict").text_content()


def test_every_experiment_opens(page):
    cards = page.page.locator(".card")
    assert cards.count() == 6
    for i in range(6):
        cards.nth(i).click()
        assert "Refused" not in page.page.locator(".verdict").text_content()
    page.page.click("text=Break a head")
    assert "one thing broken" in page.page.locator(".verdict").text_content()
    assert page.page.locator("#sandbox .lines .fails").count() >= 1


def test_recorded_runs_end_where_they_say(page):
    page.page.click('#learned [aria-label="Back to the start"]')
    start = page.page.locator("#learned .run-words b").all_text_contents()
    page.page.fill('#learned [aria-label="Layer"]', "8")
    end = page.page.locator("#learned .run-words b").all_text_contents()
    assert len(set(start)) == 1  # the same start
    assert all(float(after) < float(before) for before, after in zip(start, end, strict=True))
