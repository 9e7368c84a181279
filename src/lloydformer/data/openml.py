"""Data sets of OpenML by name, as `openml:NAME`, fetched once and kept in a cache.

The cache has two files for each name: NAME.npz, and NAME.json with the version and the SHA-256 hash
of the former. What is in the cache is read without the network, always in the same version.

scikit-learn's `fetch_openml` has neither a timeout nor a limit on the size, which are promised here
(docs/guarantees.md); SciPy's reader of ARFF files refuses those with texts in any column.
"""

import io
import json
import re
import time
from collections.abc import Callable, Sequence
from hashlib import file_digest, md5, sha256
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import urlopen

import numpy as np

from lloydformer.data.numpy_files import read_npz
from lloydformer.data.paths import OPENML_NAME, PREFIX, find_in_data_folder
from lloydformer.data.storage.atomic_files import atomic_write, atomic_write_text, cache_folder
from lloydformer.data.storage.bounded_read import JSON_LIMIT, parse_json, read_json
from lloydformer.data.table_options import TableOptions
from lloydformer.data.typed_tables import ArrayTable

SERVER = "https://www.openml.org"
# Seconds without a response, and of a whole download: a server that sends a byte now and then never
# exceeds the first.
_TIMEOUT = 30.0
_DEADLINE = 900.0
# Bytes of the largest data set; its text takes several times as much memory while it is parsed.
_LARGEST = 1 << 29
# HTTP status of OpenML for a data set that it does not have.
_UNKNOWN = 412
# Columns of OpenML that are no coordinates of a point.
_NOT_POINTS = ("target", "ignore", "row_identifier")

# ARFF: a text between quotes; a line that declares a column, its name and its type; a value.
_QUOTED = r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\""""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|\S+?)\s*(\{{.*\}}|\s\w+.*)", re.IGNORECASE)
_VALUE = re.compile(rf"\s*({_QUOTED}|[^,]*?)\s*(?:,|$)")


def read_openml(source: str, options: TableOptions) -> ArrayTable:
    """Read `openml:NAME`, `openml:NAME@VERSION` or `openml:NUMBER`.

    In this order: from the folder LLOYDFORMER_DATA, from the cache, from the network.
    """
    text = source.removeprefix(PREFIX)
    parts = OPENML_NAME.fullmatch(text)
    if parts is None:
        raise ValueError(f"{source}: pass openml:NAME, openml:NAME@VERSION or openml:NUMBER")
    if (local := find_in_data_folder(text)) is not None:
        return ArrayTable(source, read_npz(local), options)
    path = cache_folder("openml") / f"{text}.npz"
    card = path.with_suffix(".json")
    if not card.exists():
        try:
            about, points = _fetch_set(parts["name"], parts["version"])
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from None
        packed = io.BytesIO()
        np.savez(packed, X=points)
        with atomic_write(path) as file:
            file.write(packed.getvalue())
        # The card comes last: without it the points do not count.
        about["sha256"] = sha256(packed.getvalue()).hexdigest()
        atomic_write_text(card, json.dumps(about, indent=1) + "\n")
    # Also after a download: what is returned is what the next call will read.
    try:
        about = read_json(card)
        with path.open("rb") as file:
            if file_digest(file, "sha256").hexdigest() != about["sha256"]:
                raise ValueError("its hash differs from the one in its card")
        points, names = read_npz(path), tuple(map(str, about["columns"]))
        if points.shape[1] != len(names):
            raise ValueError("its columns differ from those in its card")
    except (OSError, LookupError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path}: is damaged ({error}); remove it and {card.name} to fetch the set again"
        ) from None
    return ArrayTable(source, points, options, names)


def _fetch_set(name: str, version: str | None) -> tuple[dict[str, Any], np.ndarray]:
    """Download a set by name (the oldest active version unless one is given) or by number.

    Returns its card and its points. The number on OpenML identifies one version, which never
    changes. Raises `ValueError` if there is no such set, if it is too large or damaged, or if
    OpenML cannot be reached.
    """
    if name.isdecimal() and version is None:
        number = int(name)
    else:
        which = "status/active" if version is None else f"data_version/{int(version)}"
        sets = _request(f"list/data_name/{quote(name, safe='')}/limit/2/{which}")
        number = int(_at(sets, "data", "dataset", 0, "did"))
    about = _at(_request(str(number)), "data_set_description")
    features = _at(_request(f"features/{number}"), "data_features", "feature")
    columns = []
    for feature in features if isinstance(features, list) else [features]:
        label = str(_at(feature, "name"))
        if not any(feature.get(f"is_{kind}") == "true" for kind in _NOT_POINTS):
            columns.append(label)
    card: dict[str, Any] = {
        "number": number,
        "name": str(_at(about, "name")),
        "version": int(_at(about, "version")),
        "url": str(_at(about, "url")),
        "md5": about.get("md5_checksum"),
        "columns": columns,
    }
    data = _download(card["url"], _LARGEST)
    if card["md5"] not in (None, md5(data, usedforsecurity=False).hexdigest()):
        raise ValueError("the file differs from the check sum that OpenML has of it; try again")
    return card, read_arff(data.decode("utf-8", errors="replace"), columns)


def _request(path: str) -> Any:
    return parse_json(_download(f"{SERVER}/api/v1/json/data/{path}", JSON_LIMIT), "its answer")


def _at(value: Any, *keys: str | int) -> Any:
    """Return the value below these keys of a response."""
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
        with urlopen(url, timeout=_TIMEOUT) as response:
            deadline = time.monotonic() + _DEADLINE
            size, content = int(response.headers.get("Content-Length") or 0), bytearray()
            # A server may send less or more than it declares, or never end.
            while max(size, len(content)) <= limit and (part := response.read1(1 << 16)):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"no end after {_DEADLINE:.0f} seconds")
                content += part
            if max(size, len(content)) > limit:
                raise ValueError(
                    f"found more than {limit:,} bytes; download the set yourself, and pass it as a "
                    "file"
                )
            if len(content) < size:
                raise OSError(f"{len(content):,} of {size:,} bytes came")
            return bytes(content)
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


def read_arff(text: str, names: Sequence[str]) -> np.ndarray:
    """Return some columns of an ARFF file as float64; listed words become their number from 0.

    Missing values become NaN. Raises `ValueError` for a file that cannot be read.
    """
    lines, kinds = iter(text.splitlines()), dict[str, str]()
    for line in lines:
        if line.strip().lower() == "@data":
            break
        if (parts := _ATTRIBUTE.match(line.strip())) is not None:
            kinds[_unquote(parts[1])] = parts[2].strip()
    else:
        raise ValueError("not a readable ARFF file (it has no line @data)")
    if missing := [name for name in names if name not in kinds]:
        raise ValueError(f"not a readable ARFF file (it has no column {missing[0]})")
    rows = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("%"):
            continue
        if line.startswith("{"):
            raise ValueError("not a readable ARFF file (its rows are sparse)")
        rows.append(_split_values(line))
        if len(rows[-1]) != len(kinds):
            raise ValueError(
                f"not a readable ARFF file (line {number} of the data has {len(rows[-1])} values "
                f"for {len(kinds)} columns)"
            )
    places = {name: i for i, name in enumerate(kinds)}
    points = np.empty((len(rows), len(names)))
    for column, name in enumerate(names):
        kind: str = kinds[name]
        parse: Callable[[str], float] = float
        if kind.startswith("{"):
            codes = {word: float(i) for i, word in enumerate(_split_values(kind[1:-1]))}
            parse = codes.__getitem__
        elif kind.lower() not in ("numeric", "real", "integer"):
            word = kind.split()[0]
            raise ValueError(f"column {name} holds no numbers ({word}); choose another set")
        values = (row[places[name]] for row in rows)
        try:
            points[:, column] = [np.nan if value == "?" else parse(value) for value in values]
        except (ValueError, KeyError) as error:
            raise ValueError(f"not a readable ARFF file (column {name}: {error})") from None
    return points


def _split_values(line: str) -> list[str]:
    """Return the values between commas."""
    if "'" not in line and '"' not in line:
        return [value.strip() for value in line.split(",")]
    found = list(_VALUE.finditer(line))
    if found and not found[-1][0] and not line.rstrip().endswith(","):
        found.pop()  # the empty match at the end of the line
    return [_unquote(value[1]) for value in found]


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text[:1] in ("'", '"') else text
