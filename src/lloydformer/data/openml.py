"""Data sets of OpenML by name, as `openml:NAME`, fetched once and kept in a cache.

The cache has two files for each name: NAME.npz, and NAME.json with the version and the SHA-256 hash
of the former. What is in the cache is read without the network, always in the same version.
"""

import io
import json
from dataclasses import asdict
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

import numpy as np

from lloydformer.data.columns import Table
from lloydformer.data.numpy_files import read_npz
from lloydformer.data.openml_server import OpenmlSet
from lloydformer.data.paths import OPENML_NAME, PREFIX, in_data_folder
from lloydformer.storage.atomic import replacing, write_whole
from lloydformer.storage.bounded_read import read_json
from lloydformer.storage.cache_folder import cache_folder


def read_openml(source: str) -> Table:
    """Read `openml:NAME`, `openml:NAME@VERSION` or `openml:NUMBER`.

    In this order: from the folder LLOYDFORMER_DATA, from the cache, from the network.
    """
    text = source.removeprefix(PREFIX)
    parts = OPENML_NAME.fullmatch(text)
    if parts is None:
        raise ValueError(f"{source}: pass openml:NAME, openml:NAME@VERSION or openml:NUMBER")
    own = in_data_folder(text)
    if own is not None:
        return Table(read_npz(own), None)
    path = cache_folder("openml") / f"{text}.npz"
    if not path.with_suffix(".json").exists():
        version = parts["version"]
        _fetch(source, parts["name"], None if version is None else int(version), path)
    return _cached(path)


def _fetch(source: str, name: str, version: int | None, path: Path) -> None:
    """Download a set to the cache; the card is written last."""
    try:
        found = OpenmlSet.find(name, version)
        table = found.fetch()
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None
    packed = io.BytesIO()
    np.savez(packed, X=table.points)
    with replacing(path) as file:
        file.write(packed.getvalue())
    card = {**asdict(found), "sha256": sha256(packed.getvalue()).hexdigest()}
    write_whole(path.with_suffix(".json"), json.dumps(card, indent=1) + "\n")


def _cached(path: Path) -> Table:
    """Read a set from the cache; raises `ValueError` if its content is not what was fetched."""
    card = path.with_suffix(".json")
    try:
        about: dict[str, Any] = read_json(card)
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
    return Table(points, names)
