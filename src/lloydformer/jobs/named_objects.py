"""Load a user's Python objects by name: `file.py:name` or `package.module:name`."""

import sys
from difflib import get_close_matches
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import resolve_name
from traceback import extract_tb
from types import ModuleType


def load_object(argument: str, text: str) -> object:
    """Return the object; raise ValueError, which begins with `argument`, if there is none."""
    where, _, name = text.rpartition(":")
    if not where or not name.isidentifier():
        raise ValueError(f"{argument}: found {text!r}; pass file.py:name or package.module:name")
    find = _from_file if where.endswith(".py") else _by_name
    module = find(argument, where)
    if not hasattr(module, name):
        names = [n for n in dir(module) if not n.startswith("_")]
        near = get_close_matches(name, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{argument}: {where} has no {name!r}{hint}")
    found: object = getattr(module, name)
    return found


def _from_file(argument: str, where: str) -> ModuleType:
    """Run a file as a module; modules beside it can be imported."""
    path = Path(where).resolve()
    if not path.is_file():
        raise ValueError(f"{argument}: there is no file {where!r}")
    name = f"_checked_{path.stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{argument}: {where!r} is not a Python file")
    module = sys.modules[name] = module_from_spec(spec)  # dataclasses look for their module there
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{argument}: {where} {_raised(error, path)}") from error
    finally:
        sys.path.remove(str(path.parent))
    return module


def _raised(error: BaseException, path: Path) -> str:
    """Return the error and the line of the file in which it was raised."""
    lines = [f.lineno for f in extract_tb(error.__traceback__) if f.filename == str(path)]
    if isinstance(error, SyntaxError):
        lines = [error.lineno]
    where = f" in line {lines[-1]}" if lines else ""
    return f"raised {type(error).__name__}{where}: {error}"


def _by_name(argument: str, where: str) -> object:
    """Import a module, or an object in one; modules of the current folder are found first."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        return resolve_name(where)
    except Exception as error:
        raise ValueError(f"{argument}: {where} raised {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(Path.cwd()))
