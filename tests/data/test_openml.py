"""`openml:NAME`: the network only when asked, with limits, a pinned version and a checked cache.

The server of these tests is on this machine; any other connection fails.
"""

import json
import socket
import threading
import time
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

import lloydformer as lf
from lloydformer.data import openml

ARFF = b"""@relation flowers
@attribute number integer
@attribute length real
@attribute colour {red,blue}
@attribute class {a,b}
@data
1,0.5,blue,a
2,1.5,red,b
3,2.5,red,a
"""
FEATURES = [
    {"name": "number", "is_row_identifier": "true"}, {"name": "length"},
    {"name": "colour", "is_target": "false"}, {"name": "class", "is_target": "true"},
]  # fmt: skip
POINTS = [[0.5, 1], [1.5, 0], [2.5, 0]]


class FakeOpenml(ThreadingHTTPServer):
    """Answers requests from a table; a function as answer writes to the connection itself."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = []
        about = {"name": "flowers", "version": "2", "md5_checksum": md5(ARFF).hexdigest(),
                 "url": f"{self.url}/data/v1/download/7/flowers.arff"}  # fmt: skip
        base = "/api/v1/json/data"
        self.answers = {
            f"{base}/list/data_name/flowers/limit/2/status/active": {
                "data": {"dataset": [{"did": 7}, {"did": 9}]}
            },
            f"{base}/list/data_name/flowers/limit/2/data_version/2": {
                "data": {"dataset": [{"did": 7}]}
            },
            f"{base}/7": {"data_set_description": about},
            f"{base}/features/7": {"data_features": {"feature": FEATURES}},
            "/data/v1/download/7/flowers.arff": ARFF,
        }

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def change(self, part, answer):
        (path,) = [path for path in self.answers if path.endswith(part)]
        self.answers[path] = answer

    def about(self):
        (path,) = [path for path in self.answers if path.endswith("data/7")]
        return self.answers[path]["data_set_description"]


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        answer = self.server.answers.get(self.path)
        if callable(answer):
            return answer(self)
        if answer is None:
            return self.send_error(412)
        return self.reply(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

    def reply(self, content, length=None):
        self.send_response(200)
        self.send_header("Content-Length", str(length or len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *words):
        pass


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LLOYDFORMER_DATA", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache" / "lloydformer" / "openml"


@pytest.fixture
def server(cache, monkeypatch):
    server = FakeOpenml()
    monkeypatch.setattr(openml, "SERVER", server.url)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def offline(monkeypatch):
    """Every connection fails the test."""

    def connect(*arguments):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", connect)


@pytest.mark.parametrize("source", ["openml:flowers", "openml:flowers@2", "openml:7"])
def test_a_set_is_fetched_once_and_then_read_from_the_cache(server, cache, source):
    for _ in range(2):
        found = lf.data.open_dataset(source)
        assert found.points.tolist() == POINTS
        assert found.names == ("length", "colour")
    assert server.asked.count("/data/v1/download/7/flowers.arff") == 1
    assert len(server.asked) <= 4
    card = json.loads((cache / f"{source.removeprefix('openml:')}.json").read_text())
    assert (card["number"], card["version"], card["md5"]) == (7, 2, md5(ARFF).hexdigest())
    assert sorted(path.suffix for path in cache.iterdir()) == [".json", ".npz"]


def test_a_cached_set_keeps_its_version(server, cache):
    lf.data.open_dataset("openml:flowers")
    server.change("status/active", {"data": {"dataset": [{"did": 9}]}})
    assert lf.data.open_dataset("openml:flowers").points.tolist() == POINTS


def test_columns_are_chosen_by_name(server):
    assert lf.data.open_dataset("openml:flowers", columns=["colour"]).points.tolist() == [
        [1],
        [0],
        [0],
    ]
    with pytest.raises(ValueError, match="openml:flowers: columns: found 'x'; there are length"):
        lf.data.open_dataset("openml:flowers", columns=["x"])


def test_the_folder_of_data_stands_in_for_openml(cache, offline, tmp_path, monkeypatch):
    np.savez(tmp_path / "flowers@3.npz", X=np.ones((2, 1)))
    monkeypatch.setenv("LLOYDFORMER_DATA", str(tmp_path))
    assert lf.data.open_dataset("openml:flowers@3").points.tolist() == [[1], [1]]


@pytest.mark.parametrize("damage", ["npz", "json", "columns", "no npz"])
def test_a_damaged_cache_is_refused(server, cache, damage):
    lf.data.open_dataset("openml:flowers")
    points, card = cache / "flowers.npz", cache / "flowers.json"
    if damage == "npz":
        np.savez(points, X=np.zeros((3, 2)))
    elif damage == "json":
        card.write_text("[]")
    elif damage == "columns":
        card.write_text(card.read_text().replace('"length"', '"length", "width"'))
    else:
        points.unlink()
    words = r"flowers.npz: is damaged .*; remove it and flowers.json to fetch the set again"
    with pytest.raises(ValueError, match=words):
        lf.data.open_dataset("openml:flowers")


# ---- names without the prefix


def test_a_name_that_is_no_file_does_not_ask_the_network(cache, offline, tmp_path):
    with pytest.raises(ValueError, match=r"^iris: no such file or folder; pass openml:iris to"):
        lf.data.open_dataset("iris")
    (tmp_path / "points.csv").write_text("1,2\n3,4\n")
    words = r"^pionts: no such file or folder; did you mean points.csv\? Or pass openml:pionts to"
    with pytest.raises(ValueError, match=words):
        lf.data.open_dataset("pionts")
    with pytest.raises(ValueError, match=r"^pionts.csv: no .*; did you mean points.csv\?$"):
        lf.data.open_dataset("pionts.csv")
    with pytest.raises(ValueError, match=r"^other.csv: no such file or folder; check the path$"):
        lf.data.open_dataset("other.csv")


@pytest.mark.parametrize("text", ["", "../x", "a/b", "a@b", "a@", ".x", "a\0", "a:b", "a@-1"])
def test_names_that_are_paths_are_refused(cache, offline, text):
    with pytest.raises(ValueError, match="pass openml:NAME, openml:NAME@VERSION or openml:NUMBER"):
        lf.data.open_dataset(f"openml:{text}")


# ---- what a server may do wrong


def refused(words, source="openml:flowers"):
    with pytest.raises(ValueError, match=rf"^{source}: {words}") as error:
        lf.data.open_dataset(source)
    assert "\n" not in str(error.value)


def test_an_unknown_set_is_looked_up_once(server):
    refused("OpenML has no such data set; look it up", "openml:trees")
    assert len(server.asked) == 1


def test_a_server_that_cannot_be_reached(cache, monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setattr(openml, "SERVER", f"http://127.0.0.1:{free.getsockname()[1]}")
        refused(r"OpenML cannot be reached \(.*refused.*\); check the network, or set LLOYD")
    assert not cache.exists()


def test_a_set_that_is_too_large(server, cache, monkeypatch):
    monkeypatch.setattr(openml, "_LARGEST", 50)
    refused("found more than 50 bytes; download the set yourself")
    monkeypatch.setattr(openml, "_LARGEST", 1 << 20)
    server.change("flowers.arff", endless)
    refused("found more than 1,048,576 bytes")
    assert not cache.exists()


def endless(handler):
    """Bytes without a length and without an end."""
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(bytes(1 << 16))
    except OSError:
        pass


def silent(handler):
    time.sleep(1)


def slow(handler):
    handler.send_response(200)
    handler.end_headers()
    try:
        for _ in range(200):
            handler.wfile.write(b"%")
            time.sleep(0.02)
    except OSError:
        pass


@pytest.mark.parametrize("part", ["status/active", "data/7", "features/7", "flowers.arff"])
def test_a_server_that_is_silent(server, cache, monkeypatch, part):
    monkeypatch.setattr(openml, "_TIMEOUT", 0.2)
    server.change(part, silent)
    refused(r"OpenML cannot be reached \(timed out")
    assert not cache.exists()


def test_a_download_without_end(server, cache, monkeypatch):
    monkeypatch.setattr(openml, "_DEADLINE", 0.2)
    server.change("flowers.arff", slow)
    refused(r"OpenML cannot be reached \(no end after")


BAD = {
    "another file": ("flowers.arff", ARFF.replace(b"0.5", b"0.6"), "the file differs from the ch"),
    "half of a file": ("flowers.arff", lambda h: h.reply(ARFF[:9], 999), "OpenML cannot be reach"),
    "no JSON": ("data/7", b"<html>", "its answer: is not JSON"),
    "deep JSON": ("data/7", b"[" * 100_000, "its answer: is not JSON that can be read"),
    "other JSON": ("data/7", [1], "its answer lacks data_set_description"),
    "columns that are words": (
        "features/7", {"data_features": {"feature": ["length"]}}, "its answer lacks name"
    ),
    "a number of columns": (
        "features/7", {"data_features": {"feature": 2}}, "its answer lacks name"
    ),
    "no sets": ("status/active", {"data": {"dataset": []}}, "its answer lacks data.dataset.0.did"),
    "an error": ("features/7", lambda h: h.send_error(503), "OpenML answered with the status 503"),
}  # fmt: skip


@pytest.mark.parametrize("fault", BAD)
def test_wrong_answers_are_refused_and_not_kept(server, cache, fault):
    part, answer, words = BAD[fault]
    server.change(part, answer)
    refused(words)
    assert not cache.exists()


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://127.0.0.1:1/x", "https://a.org/x",
                                 "https://openml.org.evil.org/x"])  # fmt: skip
def test_data_at_another_address_are_refused(server, url):
    server.about()["url"] = url
    refused(f"its data are at {url}, which is not OpenML")
