"""`lloydformer explore`: the page on which a transformer clusters, in the browser."""

from pathlib import Path
from time import sleep
from typing import Annotated, Any

import typer

from lloydformer.app.cli.terminal import print_json, stderr
from lloydformer.app.options import force_option, integer
from lloydformer.data.paths import check_source
from lloydformer.data.storage.atomic_files import atomic_write_text, refuse_to_overwrite


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
        int, integer(minimum=0, maximum=65535, help="Port on this computer; 0 is any free one.")
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address, and open no browser.")
    ] = False,
    force: Annotated[bool, force_option(help="Replace the page if it exists.")] = False,
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
    state: dict[str, Any] = {}  # torch is imported only for a recipe or for data
    if data is not None:
        check_source(data)  # a wrong path must not wait for torch
    if recipe is not None:
        from lloydformer.app.jobs.explore import recipe_state

        state |= recipe_state(recipe)
    if data is not None:
        from lloydformer.app.jobs.explore import data_state

        points, n_rows = data_state(data, clusters or 3)
        state |= points
        if (shown := len(points["points"])) < n_rows:
            stderr.print(f"the page shows {shown} of {n_rows:,} rows, drawn at random")
    if output is not None:
        from lloydformer.app.explorer.page_files import build_single_file

        atomic_write_text(output, build_single_file(state))
        return _print_place(str(output), json)
    import webbrowser

    from lloydformer.app.explorer.server import serve_page

    try:
        with serve_page(state, port) as server:
            _print_place(server.address, json, " (Ctrl-C ends it)")
            if not no_browser and not webbrowser.open(server.address):
                stderr.print("no browser was found; open the address in one")
            # The server has a thread of its own; Python delivers Ctrl-C to this one.
            while True:
                sleep(3600)
    except KeyboardInterrupt:
        stderr.print("closed")


def _print_place(page: str, json: bool, more: str = "") -> None:
    """Print the file or the address of the page."""
    if json:
        print_json({"page": page})
    else:
        stderr.print(f"page: {page}{more}", soft_wrap=True)
