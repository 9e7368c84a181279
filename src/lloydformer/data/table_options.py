"""Options of a table: how its text is written, which columns are used, and how."""

import io
import shlex
from dataclasses import dataclass
from typing import Any, Literal, get_args

Missing = Literal["error", "drop", "median"]
MISSING = get_args(Missing)
# Names of separators that are hard to type or to see.
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "bar": "|", "space": " "}


@dataclass(frozen=True)
class TableOptions:
    """Options for reading a table; raises `ValueError` for values that no file can have.

    Attributes
    ----------
    columns, exclude, one_hot : tuple of str
        Columns to use (None for all), to leave out, and to convert to a column of 0 and 1 for each
        of their values.
    numeric_only : bool
        Leave out columns that hold no numbers.
    id_column : str or None
        A column that names the rows; it is not used for clustering.
    missing : {"error", "drop", "median"}
        What to do with rows that have missing values.
    sep, decimal, encoding, header, sheet : str, bool or None
        How the table is written; None to detect it in the file.
    shell : bool
        Messages name options of the command line, not of `lf.data.open`.
    on_workers : bool
        Workers of a cluster read the table; messages name no option that they lack.
    expected : tuple of str
        Columns of a model; a first line with all of them is a header.
    """

    columns: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    one_hot: tuple[str, ...] = ()
    numeric_only: bool = False
    id_column: str | None = None
    missing: str = "error"
    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool | None = None
    sheet: str | None = None
    shell: bool = False
    on_workers: bool = False
    expected: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.sep is not None and len(self.separator or "") != 1:
            known = ", ".join(name for name in SEPARATORS if name.isalpha())
            self._refuse("sep", f"pass one character, or {known}")
        if self.decimal not in (None, ".", ","):
            self._refuse("decimal", "pass . or ,")
        if self.missing not in MISSING:
            self._refuse("missing", f"pass {', '.join(MISSING[:-1])} or {MISSING[-1]}")
        if self.encoding is not None:
            try:  # unlike `codecs.lookup` this refuses base64 and others that give no text
                io.TextIOWrapper(io.BytesIO(), self.encoding)
            except (LookupError, ValueError):
                self._refuse("encoding", "pass a name such as utf-8, cp1252 or utf-16")

    def _refuse(self, name: str, repair: str) -> None:
        raise ValueError(f"{self.spell(name)}: found {getattr(self, name)!r}; {repair}")

    @property
    def separator(self) -> str | None:
        """The character that separates values, if the user named one."""
        return None if self.sep is None else SEPARATORS.get(self.sep, self.sep)

    def spell(self, name: str, value: Any = None) -> str:
        """Return an option as the user writes it.

        >>> TableOptions(shell=True).spell("missing", "drop"), TableOptions().spell("sep", ";")
        ('--missing drop', "sep=';'")
        """
        if not self.shell:
            return name if value is None else f"{name}={value!r}"
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            return option if value else f"--no-{name}"
        if isinstance(value, list | tuple):
            value = shlex.quote(",".join(f'"{part}"' if "," in part else part for part in value))
        return option if value is None else f"{option} {value}"
