"""Random files of numbers as several countries write them: read right, or asked about, or noted.

No value is wrong without a word, and the option that a question or a note names reads it right.
"""

import csv
import io
import re
from collections import Counter

import numpy as np
import pytest

import lloydformer as lf

# Decimal point and mark between thousands; plain ones have none.
STYLES = {
    "american": (".", ","),
    "german": (",", "."),
    "swiss": (".", "'"),
    "french": (",", "\u202f"),
    "plain": (".", ""),
    "plain with commas": (",", ""),
}
NAMES_OF_MARKS = {",": "comma", ".": "point", "'": "apostrophe", "\u202f": "space"}
FILES = 60


def write_number(value, places, point, mark):
    text = f"{value:,.{places}f}"
    return text.replace(".", "#").replace(",", mark).replace("#", point)


def draw_column(rng, n, style):
    """The texts of a column and the numbers that they mean."""
    kind = rng.choice(["small", "whole", "decimals", "money", "percent", "truth"])
    if kind == "truth":
        found = rng.random(n) < 0.5
        return ["yes" if v else "no" for v in found], found.astype(float)
    places = {"small": 0, "whole": 0, "money": 2, "percent": 1}.get(kind, int(rng.integers(1, 4)))
    largest = {"small": 2, "percent": 2}.get(kind, rng.uniform(1, 6.5))
    least = rng.uniform(0, largest)
    values = (10 ** rng.uniform(least, largest, size=n)).round(places)
    if rng.random() < 0.3:
        values *= rng.choice([-1, 1], size=n)
    units = {"money": "{} EUR", "percent": "{}%"}
    texts = [units.get(kind, "{}").format(write_number(v, places, *style)) for v in values]
    return texts, values


def draw_file(rng, style):
    # With one column alone, a decimal comma could separate two.
    n, d = int(rng.integers(5, 40)), int(rng.integers(2, 5))
    columns = [draw_column(rng, n, style) for _ in range(d)]
    seps = ";\t|" if style[0] == "," else ",;\t|"
    sep = seps[rng.integers(len(seps))] if rng.random() < 0.9 else ","
    text = io.StringIO()
    writer = csv.writer(text, delimiter=sep, lineterminator="\n")
    writer.writerow([f"c{i}" for i in range(d)])
    writer.writerows(zip(*(texts for texts, _ in columns), strict=True))
    return text.getvalue(), np.column_stack([values for _, values in columns])


def is_read(path, wanted, **options):
    points = lf.data.open_dataset(path, **options).points.numpy()
    return points.shape == wanted.shape and np.allclose(points, wanted, rtol=1e-12, atol=0)


def open_or_ask(path):
    """The data, or None and the question."""
    try:
        return lf.data.open_dataset(path), ""
    except ValueError as error:
        return None, str(error)


@pytest.mark.parametrize("name", STYLES)
def test_no_number_is_wrong_without_a_word(tmp_path, name):
    point, mark = style = STYLES[name]
    path, outcomes = tmp_path / "p.csv", Counter()
    for seed in range(FILES):
        text, wanted = draw_file(np.random.default_rng([seed, *map(ord, name)]), style)
        path.write_text(text, encoding="utf-8")
        # What a user answers who knows how the file was written.
        answer = {"thousands": NAMES_OF_MARKS[mark]} if mark else {"decimal": point}
        opened, question = open_or_ask(path)
        if opened is None:
            assert re.search("decimal=|thousands=", question), (seed, question, text)
            assert is_read(path, wanted, **answer), (seed, question, text)
            outcomes["asked"] += 1
            continue
        if is_read(path, wanted):
            outcomes["right"] += 1
            continue
        assert any("is read as" in note for note in opened.notes), (seed, opened.notes, text)
        assert is_read(path, wanted, **answer), (seed, text)
        outcomes["noted"] += 1
    assert outcomes["right"] > 0.5 * FILES, outcomes
    if not mark:  # a file that a program wrote is seldom asked about
        assert outcomes["right"] > 0.8 * FILES, outcomes


def test_whole_numbers_with_points_are_asked_about_or_noted(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("a,b\n-455.302,7\n12.455,8\n", encoding="utf-8")
    opened = lf.data.open_dataset(path)
    assert opened.points[0].tolist() == [-455.302, 7]
    (note,) = opened.notes
    assert "-455.302 is read as -455.302, pass thousands='.' if it is -455302" in note
    assert lf.data.open_dataset(path, thousands=".").points[0].tolist() == [-455302, 7]
    assert lf.data.open_dataset(path, decimal=".").notes == ()
    # Three decimals that are there in some values only are no decimals.
    path.write_text("a,b\n-455.302,7.5\n571,8.5\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"found '-455.302', which may be .* or -455302; pass "):
        lf.data.open_dataset(path)
    path.write_text("a,b\n-455.302,7.25\n12.455,8\n", encoding="utf-8")
    assert lf.data.open_dataset(path).notes == ()  # 7.25 is a decimal point
