"""Workbooks of Excel as the XML of their parts."""

import io
import re
from zipfile import ZIP_DEFLATED, ZipFile

from openpyxl import Workbook

TEXTS = "xl/sharedStrings.xml"
_NAMESPACE = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"


def unpack(content: bytes) -> dict[str, bytes]:
    """Return the parts of a workbook by their names."""
    with ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def pack(parts: dict[str, bytes]) -> bytes:
    """Return a workbook of these parts."""
    found = io.BytesIO()
    with ZipFile(found, "w", ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return found.getvalue()


def save(book: Workbook) -> bytes:
    """Return a workbook as a file that keeps its texts in a list, as Excel does.

    openpyxl writes them into the cells.
    """
    found, texts = io.BytesIO(), []
    book.save(found)
    parts = unpack(found.getvalue())

    def share(match: re.Match[bytes]) -> bytes:
        texts.append(b"<si>" + match[1] + b"</si>")
        return b't="s"><v>%d</v>' % (len(texts) - 1)

    for name in [name for name in parts if "worksheets/" in name]:
        parts[name] = re.sub(rb't="inlineStr"><is>(.*?)</is>', share, parts[name])
    assert texts
    parts[TEXTS] = f'<sst xmlns="{_NAMESPACE}">'.encode() + b"".join(texts) + b"</sst>"
    entry = f'<Override PartName="/{TEXTS}" ContentType="{_KIND}" /></Types>'.encode()
    kinds = parts["[Content_Types].xml"]
    parts["[Content_Types].xml"] = kinds.replace(b"</Types>", entry)
    return pack(parts)
