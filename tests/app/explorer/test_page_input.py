"""What people paste, upload and put into the address: one clear sentence, never markup."""

import pytest

MARKUP = '<img src=x onerror="document.title=1">'
TEXT = 'textarea[aria-label="Points, one per line"]'


@pytest.fixture
def page(explore):
    one = explore("#recipe=lloyd&data=three&layer=0")
    one.page.click("text=Paste or upload")
    return one


def said(page, text):
    page.page.fill(TEXT, text)
    page.page.click("text=Use these points")
    return page.page.locator(".csv-words").text_content()


def test_texts_that_are_not_points(page):
    before = page.centers()
    cases = {
        "": "No points were found",
        "a,b\nc,d": "Line 1 is “a,b”: expected numbers",
        "1,2\n3,4\n5": "Line 3 has 1 numbers, but the first point has 2",
        "1,2": "Found one point only",
        "1,2\n3,nan": "Line 2 is “3,nan”",
        ",".join("1" * 70) + "\n" + ",".join("2" * 70): "Found 70 columns",
        f"{MARKUP}\n1,2\n3,x": "Line 3 is “3,x”",
        f"1,2\n{MARKUP}": "Line 2 is “<img src=x onerror=",
    }
    for text, sentence in cases.items():
        assert said(page, text).startswith(sentence), text[:40]
    assert page.page.locator("#sandbox img").count() == 0
    assert page.page.title() != "1"
    page.step()
    page.go(0)
    assert page.centers() == before  # the page goes on


def test_a_file_of_100_000_rows_and_one_of_garbage(page, tmp_path):
    many, garbage = tmp_path / "many.csv", tmp_path / "garbage.csv"
    many.write_text("".join(f"{i},{i % 7}\n" for i in range(100_000)))
    garbage.write_bytes(bytes(range(256)) * 50)
    for path, sentence in (
        (many, "Found 100,000 lines; this page takes at most"),
        (garbage, "Line "),
    ):
        page.page.set_input_files('[aria-label="Upload points as CSV"]', path)
        page.page.wait_for_function(
            "words => document.querySelector('.csv-words').textContent.startsWith(words)",
            arg=sentence,
        )


def test_points_of_one_s_own_in_three_dimensions(page):
    rows = ["a;b;c", "0;0;0", "0;1;0.5", "9;9;9", "8;9;9.5", "-4;7;1"]
    assert said(page, "\n".join(rows)) == "5 points with 3 numbers each."
    assert page.state()["points"] == [[float(x) for x in row.split(";")] for row in rows[1:]]
    page.step(2)
    assert len(page.centers()[0]) == 3


ADDRESSES = (
    "#recipe=nothing&data=nowhere",
    "#sets=[[[]]]&recipe=lloyd",
    '#sets=[["tokens",null]]&recipe=lloyd',
    '#sets=[["__proto__.x",1],["decoder_cross.activation",{"part":"Bang"}]]',
    "#points=1,2;3&centers=,&layers=1e9&seed=-1&layer=x&head=<b>",
    '#breaks=[{"kind":"set","name":"layers.0.encoder_cross.attention","rows":[[1]]}]',
    '#breaks=[{"kind":"bang","name":"*"}]&unit=1',
    "#points=0,0;0,0;0,0&centers=0,0;0,0",
    f"#{MARKUP}={MARKUP}&recipe={MARKUP}",
    "#%%%=%E0%A4%A",
)


@pytest.mark.long
def test_any_address_opens(explore):
    page = explore()
    for fragment in ADDRESSES:
        page.page.goto("about:blank")
        page.page.goto(page.address + fragment)
        page.step(2)
        assert page.page.locator("#sandbox .point").count() >= 2, fragment
        assert page.page.locator("#notice img").count() == 0
        assert page.page.title() != "1"


def test_what_is_not_read_of_an_address_is_said(explore):
    page = explore("#recipe=lloyd&layers=many")
    assert page.page.locator("#notice").text_content() == (
        "Part of the link could not be read and was left out: layers."
    )
