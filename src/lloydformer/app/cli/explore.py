"""`lloydformer explore`: an interactive page that shows a transformer clustering points."""

from time import sleep
from typing import Annotated, Any

import typer

from lloydformer.app.cli.fit import print_notes
from lloydformer.app.cli.terminal import print_json, stderr
from lloydformer.app.jobs.explore_settings import ExploreSettings
from lloydformer.app.options import command_of
from lloydformer.data.storage.atomic_files import atomic_write_text


@command_of(ExploreSettings)
def explore(
    settings: ExploreSettings,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object: the address or the file.")
    ] = False,
) -> None:
    """Open an interactive page that shows a transformer clustering points.

    The page runs the circuits itself, in the browser. It is served on this computer until Ctrl-C.
    With --output it is one file, which needs no server, no Python and no network.
    """
    state: dict[str, Any] = {}  # torch is imported only for a recipe or for data
    if settings.recipe is not None:
        from lloydformer.app.jobs.explore import recipe_state

        state |= recipe_state(settings.recipe)
    if settings.data is not None:
        from lloydformer.app.jobs.explore import data_state

        points, table = data_state(settings)
        state |= points
        print_notes(table.notes)
        if (shown := len(points["points"])) < len(table.points):
            stderr.print(f"the page shows {shown} of {len(table.points):,} rows, drawn at random")
    if settings.output is not None:
        from lloydformer.app.explorer.page_files import build_single_file

        atomic_write_text(settings.output, build_single_file(state))
        return _print_place(str(settings.output), json)
    import webbrowser

    from lloydformer.app.explorer.server import serve_page

    try:
        with serve_page(state, settings.port) as server:
            _print_place(server.address, json, " (Ctrl-C ends it)")
            if not settings.no_browser and not webbrowser.open(server.address):
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
