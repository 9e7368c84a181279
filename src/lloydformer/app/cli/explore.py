"""`lloydformer explore`: the page on which a transformer clusters, in the browser."""

from pathlib import Path
from time import sleep
from typing import Annotated, Any

import typer

from lloydformer.cli.options import integer
from lloydformer.cli.terminal import print_json, stderr
from lloydformer.data.paths import check_source
from lloydformer.storage.overwrite import refuse_to_overwrite


def explore(
    data: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Begin with the points of a .csv, .tsv, .parquet, .npy or .npz file. Of more than "
            "500 rows, 500 are drawn.",
        ),
    ] = None,
    clusters: Annotated[
        int | None, integer("-k", "--clusters", help="Centers for --data.  [default: 3]")
    ] = None,
    recipe: Annotated[
        str | None, typer.Option(metavar="NAME", help="Begin with this recipe: soft, trimmed, ...")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write the page as one HTML file, and open nothing."),
    ] = None,
    port: Annotated[
        int, integer(least=0, most=65535, help="Port on this computer; 0 is any free one.")
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address, and open no browser.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the page if it exists.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object: the address or the file.")
    ] = False,
) -> None:
    """Open a page on which you see a transformer cluster, and change its parts.

    The page runs the circuits itself, in the browser. It is served on this computer until Ctrl-C.
    With --output it is one file, which needs no server, no Python and no network.
    """
    if output is not None:
        refuse_to_overwrite(output, force)
    if clusters is not None and data is None:
        raise ValueError("--clusters: found no --data; centers are added on the page otherwise")
    state = _state(data, clusters or 3, recipe)
    if output is not None:
        _write(output, state)
        _say(str(output), json)
    else:
        _serve(state, port, no_browser, json)


def _say(page: str, json: bool, more: str = "") -> None:
    """Print where the page is."""
    if json:
        print_json({"page": page})
    else:
        stderr.print(f"page: {page}{more}", markup=False, soft_wrap=True)


def _state(data: str | None, clusters: int, recipe: str | None) -> dict[str, Any]:
    """The state to begin with; imports torch only if something is asked for."""
    state: dict[str, Any] = {}
    if data is not None:
        check_source(data)
    if recipe is not None:
        from lloydformer.jobs.explore import recipe_state

        state |= recipe_state(recipe)
    if data is not None:
        from lloydformer.jobs.explore import data_state

        points, n_rows = data_state(data, clusters)
        state |= points
        if (shown := len(points["points"])) < n_rows:
            stderr.print(f"the page shows {shown} of {n_rows:,} rows, drawn at random")
    return state


def _write(output: Path, state: dict[str, Any]) -> None:
    from lloydformer.explorer.page_files import self_contained
    from lloydformer.storage.atomic import write_whole

    write_whole(output, self_contained(state))


def _serve(state: dict[str, Any], port: int, no_browser: bool, json: bool) -> None:
    """Serve the page until Ctrl-C."""
    import webbrowser

    from lloydformer.explorer.server import serving

    try:
        with serving(state, port) as server:
            _say(server.address, json, " (Ctrl-C ends it)")
            if not no_browser and not webbrowser.open(server.address):
                stderr.print("no browser was found; open the address in one")
            while True:
                sleep(3600)
    except KeyboardInterrupt:
        stderr.print("closed")
