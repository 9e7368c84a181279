"""The settings of `explore`, checked before any work. Imports little."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from lloydformer.app.jobs.fit.settings import FitSettings, TableSettings
from lloydformer.app.options import option
from lloydformer.data.paths import check_source
from lloydformer.data.storage.atomic_files import refuse_to_overwrite

_OF_FIT = {each.name: each for each in fields(FitSettings)}


def _as_in_fit(name: str, **changes: Any) -> Any:
    """Return the option of this name of `lloydformer fit`."""
    return option(_OF_FIT[name].default, **{**_OF_FIT[name].metadata, **changes})


@dataclass(frozen=True, kw_only=True)
class ExploreSettings(TableSettings):
    """The settings of `lloydformer explore`: each field is an option of the command."""

    data: str | None = option(
        None,
        metavar="FILE",
        help="Begin with the points of a file; formats as for fit. Larger files "
        "are reduced to 500 rows, drawn at random.",
    )
    clusters: int | None = option(
        None, flag="-k", minimum=1, help="Centers for --data.  [default: 3]"
    )
    recipe: str | None = option(
        None, metavar="NAME", help="Begin with this recipe: soft, trimmed, ..."
    )
    columns: str | None = _as_in_fit("columns")
    exclude: str | None = _as_in_fit("exclude")
    numeric_only: bool = _as_in_fit("numeric_only")
    one_hot: str | None = _as_in_fit("one_hot")
    missing: str = _as_in_fit("missing")
    dates: str | None = _as_in_fit("dates")
    scale: str | None = _as_in_fit(
        "scale", help="Show scaled columns.  [default: in the units of the data]"
    )
    output: Path | None = option(
        None, flag="-o", help="Write the page as one HTML file, and open nothing."
    )
    port: int = option(
        0, minimum=0, maximum=65535, help="Port on this computer; 0 is any free one."
    )
    no_browser: bool = option(False, help="Print the address, and open no browser.")
    force: bool = option(False, help="Replace the page if it exists.")

    def __post_init__(self) -> None:
        if self.output is not None:
            refuse_to_overwrite(self.output, self.force)
        if self.data is None:
            if self.clusters is not None:
                raise ValueError("--clusters: found no --data; without it, add centers on the page")
            for each in fields(self):
                given = getattr(self, each.name) != each.default
                if given and each.name not in ("recipe", "output", "port", "no_browser", "force"):
                    raise ValueError(
                        f"--{each.name.replace('_', '-')}: found no --data, whose points it is for"
                    )
            return
        self.table_options()
        choices = _OF_FIT["scale"].metadata["choices"]
        if self.scale is not None and self.scale not in choices:
            raise ValueError(f"--scale: found {self.scale!r}; pass {' or '.join(choices)}")
        check_source(self.data)  # a wrong path must not wait for torch
