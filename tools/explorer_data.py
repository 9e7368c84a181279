"""Write the generated files of the explorer's page: parts, recipes and menu.

python tools/explorer_data.py --check    # exit status 1 if a file is out of date
python tools/explorer_data.py --write
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from explorer_catalogue import render_parts_module, render_recipes_module

PAGE = Path(__file__).parents[1] / "src" / "lloydformer" / "app" / "explorer" / "page"
GENERATED: dict[str, Callable[[], str]] = {
    "interpreter/parts.js": render_parts_module,
    "recipes.js": render_recipes_module,
}


def stale() -> list[str]:
    """Return the files that differ from what would be written."""
    return [name for name, make in GENERATED.items() if _read(PAGE / name) != make()]


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--check", action="store_true")
    group.add_argument("--write", action="store_true")
    if parser.parse_args().check:
        for name in (found := stale()):
            print(f"{name} is out of date; run: python tools/explorer_data.py --write")
        return 1 if found else 0
    for name, make in GENERATED.items():
        (PAGE / name).write_text(make(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
