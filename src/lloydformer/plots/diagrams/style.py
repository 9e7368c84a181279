"""The colours of diagrams, for light and dark pages."""

_LIGHT = {
    ".page": "fill: #ffffff",
    ".title, .name": "fill: #1b1f24; font-weight: 600",
    ".word": "fill: #1b1f24",
    ".label, .note": "fill: #57606a",
    ".wire": "fill: none; stroke: #57606a; stroke-width: 1.6",
    ".tip": "fill: #57606a",
    ".encoder": "stroke: #0a6b4d",
    ".tip.encoder, .dot.encoder": "fill: #0a6b4d",
    ".decoder": "stroke: #7a3b93",
    ".tip.decoder, .dot.decoder": "fill: #7a3b93",
    ".stream": "stroke-width: 4",
    ".plus": "fill: #ffffff; stroke: #1b1f24; stroke-width: 1.6",
    ".plus-line": "stroke: #1b1f24",
    ".card": "fill: #f4f5f7; stroke: #9aa1ab; stroke-width: 1.4",
    ".card.self": "fill: #eaf1fb; stroke: #1f5fa8",
    ".card.cross": "fill: #fdf1e4; stroke: #a85a10",
    ".card.network, .card.numbers": "fill: #f1f3f0; stroke: #57606a",
    ".card.optional, .chip.optional": "stroke-dasharray: 6 4",
    ".frame": "fill: none; stroke: #9aa1ab; stroke-width: 1.2; stroke-dasharray: 3 3",
    ".chip": "fill: #ffffff; stroke-width: 1.4",
    ".chip.encoder": "fill: #e6f4ee; stroke: #0a6b4d",
    ".chip.decoder": "fill: #f3eaf7; stroke: #7a3b93",
    ".chip.written": "stroke-width: 3.2",
    ".panel": "fill: #fafbfc; stroke: #c5cad1; stroke-width: 1.2",
}
_DARK = {
    ".page": "fill: #0d1117",
    ".title, .name, .word": "fill: #f0f3f6",
    ".label, .note": "fill: #a9b3c0",
    ".wire": "stroke: #a9b3c0",
    ".tip": "fill: #a9b3c0",
    ".encoder": "stroke: #5fd0a8",
    ".tip.encoder, .dot.encoder": "fill: #5fd0a8",
    ".decoder": "stroke: #d19be8",
    ".tip.decoder, .dot.decoder": "fill: #d19be8",
    ".plus": "fill: #0d1117; stroke: #f0f3f6",
    ".plus-line": "stroke: #f0f3f6",
    ".card": "fill: #1a2029; stroke: #566070",
    ".card.self": "fill: #14233a; stroke: #6cb0ff",
    ".card.cross": "fill: #33230f; stroke: #ff9c57",
    ".card.network, .card.numbers": "fill: #1e2320; stroke: #a9b3c0",
    ".frame": "stroke: #566070",
    ".chip.encoder": "fill: #0f2a22; stroke: #5fd0a8",
    ".chip.decoder": "fill: #2a1a33; stroke: #d19be8",
    ".panel": "fill: #12171e; stroke: #343b46",
}
"""What a dark page changes."""

_FONT = 'system-ui, -apple-system, "Segoe UI", Helvetica, Arial, "DejaVu Sans", sans-serif'


def style_sheet(sizes: dict[str, int]) -> str:
    """Return the rules of a diagram, each for elements inside of one only."""
    fonts = {f".{kind}": f"font-size: {size}px" for kind, size in sizes.items()}
    lines = [
        f".lf-diagram text {{ font-family: {_FONT} }}",
        *_rules(fonts),
        *_rules(_LIGHT),
        "@media (prefers-color-scheme: dark) {",
        *_rules(_DARK),
        "}",
    ]
    return "\n".join(("", *lines, ""))


def _rules(rules: dict[str, str]) -> list[str]:
    return [
        ", ".join(f".lf-diagram {one.strip()}" for one in names.split(",")) + f" {{ {values} }}"
        for names, values in rules.items()
    ]
