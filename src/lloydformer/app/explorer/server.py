"""A server of the page on this computer, for `lloydformer explore`."""

from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES, EADDRINUSE
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from lloydformer.app.explorer.page_files import PAGE, fill_index

HOST = "127.0.0.1"


class PageHandler(SimpleHTTPRequestHandler):
    """Serves the files of the page; the page itself has the state to begin with."""

    # Python asks the system for the type of a file. Some systems call .js text/plain, and a browser
    # refuses a module of that type.
    extensions_map = {  # noqa: RUF012
        ".html": "text/html; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".css": "text/css; charset=utf-8",
        ".json": "application/json",
        "": "application/octet-stream",
    }
    server: "PageServer"

    def do_GET(self) -> None:
        # Another site could let its own name lead to this address, and read the user's points (DNS
        # rebinding): the request must name this computer.
        name = (self.headers.get("Host") or "").rpartition(":")[0]
        if name not in (HOST, "localhost"):
            self.send_error(403, "Open the address that lloydformer explore printed")
        elif self.path.partition("?")[0] in ("/", "/index.html"):
            body = self.server.page.encode()
            self.send_response(200)
            self.send_header("Content-Type", self.extensions_map[".html"])
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        else:
            super().do_GET()

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")  # another run may use the same port
        super().end_headers()

    def list_directory(self, path: Any) -> None:
        """Refuse: only the files of the page are served."""
        self.send_error(404)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


class PageServer(ThreadingHTTPServer):
    """The server; port 0 is any free one."""

    daemon_threads = True  # an open connection of the browser does not keep the command running

    def __init__(self, state: dict[str, Any], port: int = 0, folder: Path = PAGE) -> None:
        self.page = fill_index(state, folder)
        try:
            # Without a directory, the handler would serve the current folder.
            super().__init__((HOST, port), partial(PageHandler, directory=str(folder)))
        except OSError as error:
            if error.errno not in (EADDRINUSE, EACCES):
                raise
            raise ValueError(
                f"--port: found {port}, which cannot be used ({error.strerror}); pass another one, "
                "or none for a free one"
            ) from None

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://{HOST}:{self.server_address[1]}/"


@contextmanager
def serve_page(state: dict[str, Any], port: int = 0, folder: Path = PAGE) -> Iterator[PageServer]:
    """Serve the page in a thread until the `with` block ends."""
    with PageServer(state, port, folder) as server:
        thread = Thread(target=server.serve_forever, name="explorer", daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
