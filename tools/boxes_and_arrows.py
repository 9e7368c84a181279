"""Boxes and arrows as SVG, in colours for light and dark pages."""

from dataclasses import dataclass

Points = list[tuple[int, int]]

STYLE = """
text { font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif }
.page { fill: #ffffff } .room { fill: #f4f5f7; stroke: #9aa1ab }
.name { font-size: 17px; font-weight: 600; fill: #1b1f24 } .note { font-size: 13px; fill: #57606a }
.imports { stroke: #8b929c; fill: none; stroke-width: 1.5 } .imports-tip { fill: #8b929c }
.literal { stroke: #0b62c4; fill: none; stroke-width: 2.5 } .literal-tip { fill: #0b62c4 }
.fast { stroke: #c2500a; fill: none; stroke-width: 2.5 } .fast-tip { fill: #c2500a }
.step { fill: #ffffff; stroke-width: 1.5 } .literal-step { stroke: #0b62c4 }
.fast-step { stroke: #c2500a } .word { font-size: 14px; fill: #1b1f24 }
.literal-word { font-size: 14px; fill: #0b62c4 } .fast-word { font-size: 14px; fill: #c2500a }
@media (prefers-color-scheme: dark) {
.page { fill: #0d1117 } .room { fill: #1a2029; stroke: #566070 }
.name { fill: #f0f3f6 } .note { fill: #a9b3c0 } .word { fill: #f0f3f6 } .step { fill: #0d1117 }
.imports { stroke: #8b96a5 } .imports-tip { fill: #8b96a5 }
.literal { stroke: #6cb0ff } .literal-tip { fill: #6cb0ff } .literal-step { stroke: #6cb0ff }
.literal-word { fill: #6cb0ff } .fast { stroke: #ff9c57 } .fast-tip { fill: #ff9c57 }
.fast-step { stroke: #ff9c57 } .fast-word { fill: #ff9c57 }
}
"""


@dataclass(frozen=True)
class Box:
    """A rectangle: where it begins, and its size."""

    x: int
    y: int
    width: int
    height: int = 46

    @property
    def right(self) -> int:
        return self.x + self.width

    @property
    def bottom(self) -> int:
        return self.y + self.height

    @property
    def middle(self) -> tuple[int, int]:
        return self.x + self.width // 2, self.y + self.height // 2


def tip(kind: str) -> str:
    return (
        f'<marker id="{kind}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="11" '
        f'markerHeight="11" markerUnits="userSpaceOnUse" orient="auto">'
        f'<path class="{kind}-tip" d="M 0 0 L 10 5 L 0 10 z"/></marker>'
    )


def rectangle(box: Box, style: str, radius: int) -> str:
    place = f'x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}"'
    return f'<rect class="{style}" {place} rx="{radius}"/>'


def arrow(kind: str, points: Points) -> str:
    path = " L ".join(f"{x} {y}" for x, y in points)
    return f'<path class="{kind}" d="M {path}" marker-end="url(#{kind})"/>'


def facing(first: Box, last: Box) -> Points:
    """A line from one box to another: vertical or horizontal where they face each other."""
    left, right = max(first.x, last.x), min(first.right, last.right)
    if left < right:
        return vertical(first, last, left + (right - left) // 4)
    return horizontal(first, last) if first.y == last.y else [first.middle, last.middle]


def vertical(first: Box, last: Box, x: int) -> Points:
    if first.y < last.y:
        return [(x, first.bottom), (x, last.y)]
    return [(x, first.y), (x, last.bottom)]


def horizontal(first: Box, last: Box) -> Points:
    y = first.middle[1]
    if first.x < last.x:
        return [(first.right, y), (last.x, y)]
    return [(first.x, y), (last.right, y)]
