"""SVG as text: elements, words and their width, wires, and the frame of a picture."""

from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from math import copysign
from xml.sax.saxutils import escape, quoteattr

Length = int | float
Point = tuple[Length, Length]

# Font sizes in pixels by the class of a text. They are written into the style sheet of a picture,
# because boxes are planned with them; all other rules are in style.css.
FONT_SIZES = {"title": 19, "name": 14, "word": 13, "label": 12, "note": 12}
_BOLD = ("title", "name")
_FONT = 'system-ui, -apple-system, "Segoe UI", Helvetica, Arial, "DejaVu Sans", sans-serif'

# Widths of letters in DejaVu Sans, in units of the font size; the rest counts as 1. Words must fit
# into their boxes with the font of every reader, and DejaVu Sans is wider than most fonts of
# browsers (test_diagram.py measures all words in Chromium).
_LETTERS = {
    0.3: "ijlIJ'",
    0.35: " .,:;|·/",
    0.4: "ft()[]-⟨⟩",
    0.45: "rℓ²₂",
    0.5: "_*",
    0.55: "csz",
    0.6: "kvxyFLγλ",
    0.65: "abdeghnopquEPSTY0123456789√δσ",
    0.7: "ABCKRVXZ",
    0.75: "NU",
    0.8: "DGHOQ",
    0.85: "w−+⇄→←∞×=⊕",
    0.9: "M",
}
_WIDTHS = {letter: width for width, letters in _LETTERS.items() for letter in letters}

# A space at which no line ends.
NO_BREAK = "\u00a0"


@cache
def text_width(words: str, kind: str) -> float:
    """Return an upper bound of the width of a text, in pixels."""
    ems = sum(_WIDTHS.get(letter, 1.0) for letter in words)
    return ems * FONT_SIZES[kind] * (1.12 if kind in _BOLD else 1.0)


def wrap_text(words: str, kind: str, width: float) -> list[str]:
    """Return the words in lines of at most this width; a longer word has a line of its own."""
    lines = [""]
    for word in words.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer, kind) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return [line.replace(NO_BREAK, " ") for line in lines]


def element(name: str, *children: str, **attributes: object) -> str:
    """Return an element; `class_` is written class, `data_part` data-part.

    Attributes that are None or empty are left out.
    """
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}={quoteattr(_format(value))}"
        for key, value in attributes.items()
        if value not in (None, "")
    )
    if not children:
        return f"<{name}{written}/>"
    return f"<{name}{written}>{''.join(children)}</{name}>"


def _format(value: object) -> str:
    # A tenth of a pixel cannot be seen, and the files of the docs stay small.
    return f"{round(value, 1):g}" if isinstance(value, float) else str(value)


def group(lines: Iterable[str], **attributes: object) -> str:
    """Return elements that belong together, one on each line."""
    inside = "\n".join(lines)
    return element("g", f"\n{inside}\n", **attributes)


def text(words: str, x: Length, y: Length, kind: str, **attributes: object) -> str:
    """Return a text whose baseline begins at (x, y)."""
    return element("text", escape(words), class_=kind, x=x, y=y, **attributes)


def rectangle(
    x: Length, y: Length, width: Length, height: Length, kind: str, radius: Length = 8
) -> str:
    """Return a rectangle with round corners."""
    return element("rect", class_=kind, x=x, y=y, width=width, height=height, rx=radius)


def wire(points: Sequence[Point], kind: str, tip: bool = True) -> str:
    """Return a line of horizontal and vertical parts, with an arrow's tip at its end."""
    path = " L ".join(f"{_format(float(x))} {_format(float(y))}" for x, y in points)
    line = element("path", class_=f"wire {kind}", d=f"M {path}")
    return line + (arrow_tip(points[-2], points[-1], kind) if tip else "")


def arrow_tip(start: Point, end: Point, kind: str) -> str:
    """Return a triangle that points from `start` to `end`.

    SVG's own arrow heads are markers that are referred to by id, and ids of several diagrams on one
    page would clash.
    """
    (x, y), along, down = end, end[0] - start[0], end[1] - start[1]
    # Wires are horizontal or vertical, so the tip points along one axis.
    back = (copysign(9, along), 0) if abs(along) > abs(down) else (0, copysign(9, down))
    half = (0, 5) if back[0] else (5, 0)
    left, top = x - back[0], y - back[1]
    corners = [end, (left - half[0], top - half[1]), (left + half[0], top + half[1])]
    points = " ".join(f"{_format(float(a))},{_format(float(b))}" for a, b in corners)
    return element("polygon", class_=f"tip {kind}", points=points)


def dot(x: Length, y: Length, kind: str) -> str:
    """Return the dot where a wire leaves a stream."""
    return element("circle", class_=f"dot {kind}", cx=x, cy=y, r=4.5)


def plus(x: Length, y: Length, part: str) -> str:
    """Return the sign ⊕ of a residual addition."""
    lines = [
        element("circle", class_="plus", cx=x, cy=y, r=10),
        wire([(x - 6, y), (x + 6, y)], "plus-line", tip=False),
        wire([(x, y - 6), (x, y + 6)], "plus-line", tip=False),
    ]
    return group(lines, data_part=part)


@cache
def style_sheet() -> str:
    """Return the rules of a diagram, each for elements inside of one only."""
    sizes = (f".lf-diagram .{kind} {{ font-size: {size}px }}" for kind, size in FONT_SIZES.items())
    lines = (f".lf-diagram text {{ font-family: {_FONT} }}", *sizes)
    rules = files("lloydformer.plots.diagrams").joinpath("style.css").read_text(encoding="utf-8")
    return "\n".join(("", *lines, rules))


def picture(
    width: Length, height: Length, title: str, description: str, lines: Iterable[str]
) -> str:
    """Return the whole SVG. Its rules hold inside of it only, even if a page contains it."""
    size = {"width": round(width), "height": round(height)}
    inside = (
        element("title", escape(title)),
        element("desc", escape(description)),
        element("style", escape(style_sheet())),
        rectangle(0, 0, size["width"], size["height"], "page", 0),
        *lines,
    )
    frame = {
        "xmlns": "http://www.w3.org/2000/svg",
        "viewBox": f"0 0 {size['width']} {size['height']}",
        **size,
        "role": "img",
        "class_": "lf-diagram",
    }
    svg = element("svg", "\n", "\n".join(inside), "\n", **frame)
    return f"{svg}\n"
