"""The server of the page: on this computer only, its files only."""

import socket
from http.client import HTTPConnection
from urllib.request import urlopen

import pytest
from small_page import make_small_page

from lloydformer.app.explorer.server import HOST, serve_page


@pytest.fixture
def small_page(tmp_path):
    return make_small_page(tmp_path / "page")


@pytest.fixture
def server(small_page):
    with serve_page({"points": [[1.0, 2.0]]}, folder=small_page) as running:
        yield running


def get(server, path, host=None):
    connection = HTTPConnection(HOST, server.server_address[1], timeout=10)
    connection.request("GET", path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    return answer.status, answer.getheader("Content-Type"), answer.read().decode()


def test_the_page_has_the_state_and_its_files_their_types(server):
    with urlopen(server.address, timeout=10) as answer:
        assert '{"points": [[1.0, 2.0]]}' in answer.read().decode()
    assert get(server, "/?a=b")[:2] == (200, "text/html; charset=utf-8")
    status, kind, text = get(server, "/interpreter/index.js")
    assert (status, kind) == (200, "text/javascript; charset=utf-8")
    assert "export" in text
    assert get(server, "/small.css")[1] == "text/css; charset=utf-8"


@pytest.mark.parametrize("path", ["/../secret.py", "/interpreter/", "/nothing.js", "//etc/passwd"])
def test_nothing_else_is_served(server, path):
    assert get(server, path)[0] == 404


def test_another_name_for_this_computer_is_refused(server):
    port = server.server_address[1]
    assert get(server, "/", f"localhost:{port}")[0] == 200
    assert get(server, "/", f"evil.example:{port}")[0] == 403


def test_a_port_in_use_is_named(small_page):
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=f"--port: found {port}, which cannot be used"):
            serve_page({}, port, small_page).__enter__()
