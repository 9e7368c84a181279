"""Old names, which work until version 2.0 with a `FutureWarning` that says the new one.

An estimator lists its own in `_renamed_parameters` and `_renamed_values` (`RenamedParameters`), a
function in the decorator `renamed_arguments`, a package in the argument `renamed` of `lazy_names`.
docs/migration.md has all of them, and a test compares it with these lists.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ClassVar, TypeVar

from lloydformer.user_warnings import warn_user

LAST = "2.0"  # the version without the old names

F = TypeVar("F", bound=Callable[..., Any])
Words = Mapping[str, Mapping[str, str]]


def warn_renamed(where: str, old: str, new: str) -> None:
    """Warn of an old name, for the line of the user that has it."""
    warn_user(
        f"{where}: {old} is now {new}; the old name works until version {LAST}", FutureWarning
    )


def to_new_names(
    where: str,
    given: Mapping[str, Any],
    parameters: Mapping[str, str],
    words: Words,
    *,
    current: Mapping[str, Any] | None = None,
    warns: bool = True,
) -> dict[str, Any]:
    """Return arguments by their new names, and with new words as their values.

    Parameters
    ----------
    where : str
        Name of the class or function, for the warning.
    given : mapping
        The arguments, by old or new names.
    parameters : mapping of str to str
        The new name of each old one. "options.name" is the entry "name" of the dictionary that is
        the value of the parameter "options"; an entry that is None is left out.
    words : mapping of str to a mapping of str to str
        By the new name of a parameter: the new word for each old one.
    current : mapping, optional
        The present values, to whose dictionaries entries are added.
    warns : bool, default=True
        Whether to warn. Files that earlier versions wrote are read without a warning.

    Returns
    -------
    dict
        The arguments.

    Raises
    ------
    ValueError
        If an argument has both names.
    """
    found = {name: value for name, value in given.items() if name not in parameters}
    for old, value in given.items():
        if old not in parameters:
            continue
        name, _, entry = parameters[old].partition(".")
        if warns:
            warn_renamed(where, old, f'{name}={{"{entry}": ...}}' if entry else name)
        if entry:
            if value is not None:
                before = found.get(name, (current or {}).get(name))
                found[name] = {**(before or {}), entry: value}
        elif name in found:
            raise ValueError(
                f"{where}: found both {old} and {name}, its new name; pass {name} only"
            )
        else:
            found[name] = value
    for name, new in words.items():
        value = found.get(name)
        if isinstance(value, str) and value in new:
            if warns:
                warn_renamed(where, f'{name}="{value}"', f'"{new[value]}"')
            found[name] = new[value]
    return found


def renamed_arguments(**parameters: str) -> Callable[[F], F]:
    """Return a decorator for functions whose parameters had other names: `old="new"`."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        where = function.__qualname__.removesuffix(".__init__").removesuffix(".forward")

        @wraps(function)
        def run(*args: Any, **named: Any) -> Any:
            if not parameters.keys().isdisjoint(named):
                named = to_new_names(where, named, parameters, {})
            return function(*args, **named)

        run._renamed_parameters = parameters  # type: ignore[attr-defined]
        return run

    return decorate  # type: ignore[return-value]


class RenamedParameters:
    """Base class of estimators: constructors, `set_params` and attributes know old names."""

    # The new name of each old one; what a subclass adds contains those of its base class.
    _renamed_parameters: ClassVar[dict[str, str]] = {}
    # By the (new) name of a parameter, the new word for each old one.
    _renamed_values: ClassVar[dict[str, dict[str, str]]] = {}
    _old_names: ClassVar[tuple[Mapping[str, str], Words]]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for old, new in cls._renamed_parameters.items():
            if not hasattr(cls, old):
                setattr(cls, old, _RenamedAttribute(old, new))
        if "__init__" in vars(cls):
            cls.__init__ = _with_old_names(cls.__init__)  # type: ignore[method-assign]

    def set_params(self, **params: Any) -> Any:
        """Set parameters, as scikit-learn does; old names are known.

        Parameters
        ----------
        **params : dict
            Parameters of the estimator by name, and of parts of it as ``part__name``.

        Returns
        -------
        estimator
            The estimator itself.

        See Also
        --------
        sklearn.base.BaseEstimator.set_params : The method of scikit-learn.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.KMeans(3).set_params(tol=0)
        KMeans(n_clusters=3, tol=0)
        """
        current = self.get_params(deep=False)  # type: ignore[attr-defined]
        named = to_new_names(type(self).__name__, params, *old_names(type(self)), current=current)
        return super().set_params(**named)  # type: ignore[misc]


def old_names(kind: type[Any]) -> tuple[Mapping[str, str], Words]:
    """Return the old names of a class that are not parameters, and the old words of all.

    A class of another package may still have an old name as a parameter of its own.
    """
    # scikit-learn reads the signature, which takes longer than the rest of a constructor
    if "_old_names" not in vars(kind):
        own = kind._get_param_names()
        parameters = {old: new for old, new in kind._renamed_parameters.items() if old not in own}
        kind._old_names = parameters, kind._renamed_values
    return kind._old_names


def _with_old_names(init: Callable[..., None]) -> Callable[..., None]:
    """Return a constructor that also knows the old names of its class."""

    @wraps(init)
    def run(self: Any, *args: Any, **named: Any) -> None:
        if named:
            named = to_new_names(type(self).__name__, named, *old_names(type(self)))
        init(self, *args, **named)

    return run


class _RenamedAttribute:
    """A parameter by its old name, as an attribute that can be read and set."""

    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new

    def __get__(self, model: Any, kind: type[Any]) -> Any:
        if model is None:
            return self
        warn_renamed(kind.__name__, self.old, self.new)
        name, _, entry = self.new.partition(".")
        value = getattr(model, name)
        return (value or {}).get(entry) if entry else value

    def __set__(self, model: Any, value: Any) -> None:
        warn_renamed(type(model).__name__, self.old, self.new)
        name, _, entry = self.new.partition(".")
        if entry:
            value = {**(getattr(model, name) or {}), entry: value}
        setattr(model, name, value)
