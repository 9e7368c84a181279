"""Writes the tables of docs/speed.md anew from the results in this folder."""

from pathlib import Path

from lloydformer.jobs.bench.page import filled
from lloydformer.storage.atomic import write_whole

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "speed.md"

if __name__ == "__main__":
    write_whole(PAGE, filled(PAGE.read_text(encoding="utf-8"), HERE / "results"))
