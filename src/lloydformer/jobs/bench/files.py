"""Output files of a benchmark: the result as JSON, or a chart of the times."""

import json
from io import BytesIO
from pathlib import Path

from lloydformer.jobs.bench.result import Result
from lloydformer.plots.axes import require_matplotlib
from lloydformer.storage.atomic import replacing, write_whole
from lloydformer.storage.overwrite import refuse_to_overwrite

PICTURES = (".png", ".svg", ".pdf")


def check_file(path: Path, force: bool) -> None:
    """Raise ValueError if the kind of file is unknown, or the file cannot be written."""
    if path.suffix not in (".json", *PICTURES):
        kinds = ", ".join((".json", *PICTURES))
        raise ValueError(f"--output: found {path}; pass a name that ends with one of {kinds}")
    if path.suffix in PICTURES:
        try:
            require_matplotlib()
        except ImportError as error:
            raise ValueError(f"--output: found {path}, but {error}") from None
    refuse_to_overwrite(path, force)


def write_file(result: Result, path: Path) -> None:
    """Write the result as JSON, or draw it, by the ending of the name."""
    if path.suffix == ".json":
        write_whole(path, json.dumps(result, indent=1, ensure_ascii=False) + "\n")
        return
    from matplotlib.figure import Figure

    from lloydformer.plots.times import times

    size = (8.5, 2.2 + 0.6 * len(result["rows"]))
    figure, picture = Figure(size, layout="constrained"), BytesIO()
    times(result, figure.subplots())
    figure.savefig(picture, format=path.suffix[1:], dpi=150)
    with replacing(path) as file:
        file.write(picture.getvalue())
