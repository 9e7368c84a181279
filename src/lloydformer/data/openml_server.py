"""Requests to OpenML: with a timeout, a size limit and the check sum that it publishes."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import md5
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import urlopen

from lloydformer.data.arff import read_arff
from lloydformer.data.columns import Table
from lloydformer.storage.bounded_read import JSON_LIMIT, parse_json

SERVER = "https://www.openml.org"
_TIMEOUT = 30.0
"""Seconds without an answer."""
_DEADLINE = 900.0
"""Seconds of a whole download."""
_LARGEST = 1 << 29
"""Bytes of the largest data set."""
_UNKNOWN = 412
"""Status with which OpenML says that it has no such data set."""


@dataclass(frozen=True)
class OpenmlSet:
    """A data set on OpenML: its number there stands for one version, which never changes."""

    number: int
    name: str
    version: int
    url: str
    md5: str | None
    columns: tuple[str, ...]

    @classmethod
    def find(cls, name: str, version: int | None) -> "OpenmlSet":
        """Ask for a set by name (the oldest active version unless one is given) or by number.

        Raises `ValueError` if there is none, or if OpenML cannot be reached.
        """
        if name.isdecimal() and version is None:
            number = int(name)
        else:
            which = "status/active" if version is None else f"data_version/{version}"
            found = _ask(f"list/data_name/{quote(name, safe='')}/limit/2/{which}")
            number = int(_at(found, "data", "dataset", 0, "did"))
        about = _at(_ask(str(number)), "data_set_description")
        features = _at(_ask(f"features/{number}"), "data_features", "feature")
        return cls(
            number, str(_at(about, "name")), int(_at(about, "version")), str(_at(about, "url")),
            about.get("md5_checksum"), _columns(features),
        )  # fmt: skip

    def fetch(self) -> Table:
        """Download the points; raises `ValueError` if they are too large or damaged."""
        data = _download(self.url, _LARGEST)
        if self.md5 is not None and md5(data, usedforsecurity=False).hexdigest() != self.md5:
            raise ValueError("the file differs from the check sum that OpenML has of it; try again")
        return read_arff(data.decode("utf-8", errors="replace"), self.columns)


def _columns(features: Any) -> tuple[str, ...]:
    """The names of the columns of points: no target, no row number."""
    named = [
        (str(_at(f, "name")), f) for f in (features if isinstance(features, list) else [features])
    ]
    left_out = ("is_target", "is_ignore", "is_row_identifier")
    return tuple(name for name, f in named if all(f.get(which) != "true" for which in left_out))


def _ask(what: str) -> Any:
    return parse_json(_download(f"{SERVER}/api/v1/json/data/{what}", JSON_LIMIT), "its answer")


def _at(value: Any, *keys: str | int) -> Any:
    """The value below these keys of an answer."""
    try:
        for key in keys:
            value = value[key]
    except (LookupError, TypeError):
        raise ValueError(f"its answer lacks {'.'.join(map(str, keys))}") from None
    return value


def _download(url: str, limit: int) -> bytes:
    """Fetch an address of OpenML, of at most `limit` bytes."""
    place = urlsplit(url)
    if not url.startswith(f"{SERVER}/") and not (
        place.scheme == "https" and (place.hostname or "").endswith(".openml.org")
    ):
        raise ValueError(f"its data are at {url}, which is not OpenML")
    try:
        with urlopen(url, timeout=_TIMEOUT) as answer:
            return b"".join(_parts(answer, limit))
    except HTTPError as error:
        error.close()
        if error.code == _UNKNOWN:
            raise ValueError("OpenML has no such data set; look it up at openml.org") from None
        raise ValueError(f"OpenML answered with the status {error.code}; try again later") from None
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise ValueError(
            f"OpenML cannot be reached ({reason}); check the network, or set LLOYDFORMER_DATA to a "
            "folder of .npz files"
        ) from None


def _parts(answer: Any, limit: int) -> Iterator[bytes]:
    began, size = time.monotonic(), int(answer.headers.get("Content-Length") or 0)
    received = 0
    while max(size, received) <= limit and (part := answer.read1(1 << 16)):
        if time.monotonic() - began > _DEADLINE:
            raise TimeoutError(f"no end after {_DEADLINE:.0f} seconds")
        received += len(part)
        yield part
    if max(size, received) > limit:
        raise ValueError(
            f"found more than {limit:,} bytes; download the set yourself, and pass it as a file"
        )
    if received < size:
        raise OSError(f"{received:,} of {size:,} bytes came")
