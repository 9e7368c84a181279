"""Draws docs/pictures/first-example.svg: `python docs/pictures/first-example.py`.

The paper's worked example: nine points seen from above, their scores, and the two attentions.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import torch
from torch import Tensor

from lloydformer.paper.verify.worked_example import MEMBERS, SCORES, locate_points, shares, weights
from lloydformer.plots.diagrams.svg import element, group, picture, text, wire
from lloydformer.plots.palette import WEIGHT, cluster_colour, ink_on

CELL, ROWS = 46, ("c1", "c2", "c3")
# Pixels for a unit of length, and where the origin of the map is.
SCALE, LEFT, BOTTOM = 370, 80, 480


def colour(share: float) -> str:
    """The colour at this fraction of the way through `WEIGHT`."""
    place = share * (len(WEIGHT) - 1)
    index = min(int(place), len(WEIGHT) - 2)
    pairs = zip(*(bytes.fromhex(WEIGHT[i][1:]) for i in (index, index + 1)), strict=True)
    mixed = (round(a + (b - a) * (place - index)) for a, b in pairs)
    return "#" + "".join(f"{part:02x}" for part in mixed)


def heat_map(
    title: str, note: str, values: Tensor, shade: Tensor, words: Callable[[float], str], y: float
) -> Iterator[str]:
    """A row for each center and a column for each point; darker is larger."""
    x = 600
    yield text(title, x, y, "name")
    yield text(note, x, y + 19, "note")
    for i in range(values.shape[1]):
        column = x + 40 + CELL * i
        yield text(f"x{i + 1}", column + CELL / 2, y + 42, "label", text_anchor="middle")
    for j, name in enumerate(ROWS):
        row = y + 50 + 30 * j
        yield element("rect", x=x, y=row + 9, width=10, height=10, fill=cluster_colour(j))
        yield text(name, x + 15, row + 19, "name")
        for i, (value, dark) in enumerate(zip(values[j].tolist(), shade[j].tolist(), strict=True)):
            fill, place = colour(dark), x + 40 + CELL * i
            yield element(
                "rect",
                x=place,
                y=row,
                width=CELL - 2,
                height=28,
                fill=fill,
                stroke="#8b929c",
                stroke_width=0.6,
            )
            yield text(
                words(value),
                place + CELL / 2 - 1,
                row + 19,
                "word",
                text_anchor="middle",
                style=f"fill: {ink_on(fill)}",
            )


def to_pixels(place: Tensor) -> tuple[float, float]:
    return LEFT + SCALE * place[0].item(), BOTTOM - SCALE * place[1].item()


def borders(centers: Tensor) -> Iterator[str]:
    """The lines between the cells of the three centers, from where all three meet."""
    flat = centers[:, :2]
    squares = flat.square().sum(dim=1)
    meeting = torch.linalg.solve(2 * (flat[1:] - flat[0]), squares[1:] - squares[0])
    for a, b, other in ((0, 1, 2), (0, 2, 1), (1, 2, 0)):
        side = flat[b] - flat[a]
        away = torch.stack([-side[1], side[0]]) / side.norm()
        if away @ (flat[other] - meeting) > 0:  # away from the third center
            away = -away
        (x, y), (u, v) = to_pixels(meeting), to_pixels(meeting + 0.44 * away)
        yield element("path", class_="frame", d=f"M {x:.1f} {y:.1f} L {u:.1f} {v:.1f}")


def seen_from_above() -> Iterator[str]:
    """The points by cluster, the centers before and after the layer."""
    points, centers = locate_points()
    means = weights().mT @ points
    yield text("Nine points, seen from above", 30, 100, "name")
    yield text("dashed: equally near to two centers", 30, 119, "note")
    yield from borders(centers)
    for cluster, rows in enumerate(MEMBERS):
        fill = cluster_colour(cluster)
        (x, y), (u, v) = to_pixels(centers[cluster]), to_pixels(means[cluster])
        yield element(
            "path",
            d=f"M {x:.1f} {y:.1f} L {u:.1f} {v:.1f}",
            stroke=fill,
            stroke_width=2.0,
            stroke_dasharray="5 4",
        )
        yield element(
            "rect",
            x=x - 7,
            y=y - 7,
            width=14,
            height=14,
            class_="page",
            stroke=fill,
            stroke_width=3.0,
        )
        yield element("rect", x=u - 8, y=v - 8, width=16, height=16, fill=fill)
        yield text(ROWS[cluster], x - 8, y + 27, "name")
        for row in rows:
            x, y = to_pixels(points[row])
            yield element("circle", cx=x, cy=y, r=11.0, fill=fill)
            yield text(
                str(row + 1),
                x,
                y + 4.5,
                "word",
                text_anchor="middle",
                style=f"fill: {ink_on(fill)}",
            )


def legend() -> Iterator[str]:
    for x, words in ((30, "center before the layer"), (230, "center after it")):
        kind = {"class_": "page", "stroke": "#6B6B6B", "stroke_width": 3.0}
        if x > 30:
            kind = {"fill": "#6B6B6B"}
        yield element("rect", x=x, y=572, width=13, height=13, **kind)
        yield text(words, x + 22, 583, "note")


def as_fraction(value: float) -> str:
    return str(Fraction(value).limit_denominator(9))


def draw() -> str:
    """The picture as SVG."""
    near = (SCORES - SCORES.min()) / (SCORES.max() - SCORES.min())
    maps = (
        (
            "A: scores",
            "minus the squared distance of each point to each center",
            SCORES,
            near,
            "{:.1f}".format,
        ),
        (
            "σ(A): assignment",
            "limiting soft-max of each column: the encoder's cross-attention",
            shares(),
            shares(),
            as_fraction,
        ),
        (
            "σ(B) transposed: weights",
            "limiting soft-max of B = σ(A) transposed: the decoder's cross-attention",
            weights().mT,
            weights().mT,
            as_fraction,
        ),
    )
    lines = [
        text("Nine points and three centers: one layer", 30, 42, "title"),
        group(seen_from_above(), data_part="map"),
        group(legend(), data_part="legend"),
        wire([(560, 90), (560, 590)], "frame", tip=False),
    ]
    for number, one in enumerate(maps):
        lines.append(group(heat_map(*one, y=100 + 170 * number), data_part=f"map_{number}"))
    description = (
        "Points 1, 4, 8 and 9 belong to the first center, 2, 3 and 6 to the second, 5 and 7 to the "
        "third; the new centers are their means."
    )
    return picture(1080, 610, "The paper's worked example", description, lines)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(draw(), encoding="utf-8")
