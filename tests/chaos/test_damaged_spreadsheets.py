"""Mutated workbooks: each is read, or refused by a ValueError of one line, within seconds.

A failure names the seed of its file. To repeat it: FUZZ_SEED=SEED pytest THIS_FILE.
"""

import io
import os
import random
import time
from datetime import datetime, timedelta
from zipfile import ZipFile

import openpyxl
import pytest
from time_limit import time_limit
from workbooks import pack, save, unpack

from lloydformer.data.sources import convert, open_file
from lloydformer.data.table_options import TableOptions

FIRST = 30_000
"""Seed of the first file."""
# One file takes 10 ms, and the largest that is not refused some seconds.
SECONDS = 30
PIECES = (
    b"", b"<c/>", b"9" * 25, b"-1", b"\xff" * 8, b"1e999", b"\0\0", b'"', b"<", b">", b"&", b"&x;",
    b"nan", b"XFD1048576", b"A1:XFD1048576", b'<row r="99999999"/>', b'r="99999999"',
    b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>',
)  # fmt: skip


def workbook() -> bytes:
    """Two sheets: numbers and words with merged cells, dates with a formula."""
    book, rng = openpyxl.Workbook(), random.Random(0)
    first, second = book.active, book.create_sheet("dates")
    first.append(["a", "b", "name"])
    for i in range(40):
        first.append([rng.random(), rng.randrange(9), f"w{i % 3}"])
    first.merge_cells("E1:F2")
    second.append(["day", "x", "y"])
    for i in range(20):
        second.append([datetime(2024, 1, 1) + timedelta(days=i), i / 7, f"=B{i + 2}*2"])
    return save(book)


WHOLE = workbook()


def change(data: bytes, rng: random.Random) -> bytes:
    """Replace, remove, repeat or insert some bytes."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        start = rng.randrange(len(changed) + 1)
        stop = min(len(changed), start + rng.choice([0, 1, 1, 2, 8, 100]))
        repeated = bytes(changed[start:stop]) * 2
        changed[start:stop] = rng.choice([*PIECES, *3 * [rng.randbytes(stop - start)], repeated])
    return bytes(changed)


def change_bytes(rng: random.Random) -> bytes:
    """Damage the zip file."""
    return change(WHOLE, rng)


def cut(rng: random.Random) -> bytes:
    return WHOLE[: rng.randrange(len(WHOLE))]


def break_stream(rng: random.Random) -> bytes:
    """Flip one bit of a compressed part."""
    with ZipFile(io.BytesIO(WHOLE)) as archive:
        part = rng.choice(archive.infolist())
    place = part.header_offset + 30 + len(part.filename) + rng.randrange(part.compress_size)
    broken = bytearray(WHOLE)
    broken[place] ^= 1 << rng.randrange(8)
    return bytes(broken)


def change_part(rng: random.Random) -> bytes:
    """Damage the content of a part, remove it, or exchange it for another; all sums are right."""
    parts = unpack(WHOLE)
    name, other, kind = rng.choice(list(parts)), rng.choice(list(parts)), rng.randrange(8)
    if kind == 0:
        del parts[name]
    elif kind == 1:
        parts[name], parts[other] = parts[other], parts[name]
    elif kind == 2:  # one tag a million times: a bomb, or merely long
        tag = rng.choice([b"<c/>", b"<row/>", b"<si/>", b"<a>"])
        at = rng.randrange(len(parts[name]) + 1)
        many = tag * rng.choice([1000, 100_000, 4_000_000])
        parts[name] = parts[name][:at] + many + parts[name][at:]
    else:
        parts[name] = change(parts[name], rng)
    return pack(parts)


def check(seed: int, path) -> bool:
    """Read a mutated workbook; returns whether it was refused."""
    rng = random.Random(seed)
    path.write_bytes(rng.choice([change_bytes, cut, break_stream, *3 * [change_part]])(rng))
    sheet = rng.choice([None, None, "dates"])
    options = TableOptions(numeric_only=True, missing="drop", sheet=sheet)
    try:
        with time_limit(SECONDS, f"not read in {SECONDS} seconds"):
            convert(open_file(path, options))
    except ValueError as error:
        words = str(error)
        assert words.startswith(f"{path}: "), f"FUZZ_SEED={seed}: {words}"
        assert "\n" not in words, f"FUZZ_SEED={seed}: {words}"
        return True
    except Exception as error:
        pytest.fail(f"FUZZ_SEED={seed}: {type(error).__name__}: {error}"[:3000])
    return False


def test_damaged_spreadsheets_are_read_or_refused(tmp_path, amount):
    path = tmp_path / "p.xlsx"
    if "FUZZ_SEED" in os.environ:
        check(int(os.environ["FUZZ_SEED"]), path)
        return
    end, seed, refused = time.monotonic() + amount(3, 600), FIRST, []
    while time.monotonic() < end or seed < FIRST + 60:
        refused.append(check(seed, path))
        seed += 1
    assert True in refused
    assert False in refused
    print(f"{len(refused)} files, {sum(refused)} refused")
