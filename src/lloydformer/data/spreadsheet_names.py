"""Column names in CSV files that a spreadsheet would run as formulas, such as =cmd().

An apostrophe before such a name makes it text. It is removed when the file is read again.
"""

import re

_SIGNS = "=+\\-@\t\r\n＝＋－＠"
"""Signs with which a formula begins, in full width as well."""
_FORMULA = re.compile(f"'*[{_SIGNS}]")
_GUARDED = re.compile(f"'+[{_SIGNS}]")


def guarded(name: str) -> str:
    """Return the name as it is written to a CSV file.

    >>> guarded("=cmd()"), guarded("'=cmd()"), guarded("a=b")
    ("'=cmd()", "''=cmd()", 'a=b')
    """
    return f"'{name}" if _FORMULA.match(name) else name


def unguarded(name: str) -> str:
    """Return the name that `guarded` was given.

    >>> unguarded("'=cmd()"), unguarded("''=cmd()"), unguarded("'a'")
    ('=cmd()', "'=cmd()", "'a'")
    """
    return name[1:] if _GUARDED.match(name) else name
