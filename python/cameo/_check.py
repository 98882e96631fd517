# What arguments may be.
# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments, and the sentences that refuse them. It imports no NumPy."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from operator import index

from . import _cameo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Fixed:
    """A class whose objects have the attributes that __init__ gave them and no others: a name that is spelt wrong, or that
    nothing reads, is refused. A class that users derive from these may have what it likes."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if cls.__module__.partition(".")[0] != __name__.partition(".")[0]:
            return
        make = cls.__init__

        @functools.wraps(make)
        def initialize(self: Any, *arguments: Any, **named: Any) -> None:
            make(self, *arguments, **named)
            if type(self) is cls:
                self.__dict__["_fixed"] = True

        setattr(cls, "__init__", initialize)

    def __setattr__(self, name: str, value: Any) -> None:
        if "_fixed" in self.__dict__ and not name.startswith("_") and name not in self.__dict__:
            if not hasattr(type(self), name):
                known = [known for known in dir(self) if not known.startswith("_")]
                raise AttributeError(f"cameo.{type(self).__name__} has no attribute '{name}'" + similar(name, known))
        super().__setattr__(name, value)


class NotFoundError(_cameo.NotFoundError, KeyError):
    """Also what mappings raise."""

    __module__ = "cameo"

    def __str__(self) -> str:
        return str(self.args[0])


def not_found(sentence: str, name: object, names: Iterable[str]) -> NotFoundError:
    """The exception for a name that a mapping has not, with the nearest one that it has."""
    return NotFoundError(f"{sentence} '{name}'" + similar(name, names))


def similar(name: object, names: Iterable[str]) -> str:
    """The end of a sentence about a name that there is not: the nearest one."""
    import difflib
    near = difflib.get_close_matches(str(name), list(names), 1)
    return f"; there is '{near[0]}'" if near else ""


def whole(name: str, value: Any, least: int = 0, most: int = 2**63 - 1) -> int:
    """A whole number, NumPy's too."""
    try:
        made = index(value)
    except TypeError:
        made = None
    if made is None or not least <= made <= most:
        raise _cameo.ArgumentError(f"{name} is {value!r}, expected a whole number of {least} or more")
    return made


def memory_limit(value: Any) -> int:
    """Bytes that a run may hold; "free": what the machine has left."""
    return _cameo.free_memory() if value == "free" else whole("memory_limit", value)


def seed(value: Any) -> int:
    """The seed of a generator."""
    return whole("seed", value, 0, 2**64 - 1)


def mapping(name: str, value: Any) -> Mapping[Any, Any]:
    """Something like a dict."""
    if not isinstance(value, Mapping):
        raise _cameo.ArgumentError(f"{name} is a {type(value).__name__}, expected a dict")
    return value


def text(name: str, value: Any, what: str = "a text") -> str:
    """A text."""
    if not isinstance(value, str):
        raise _cameo.ArgumentError(f"{name} is a {type(value).__name__}, expected {what}")
    return value


def number(name: str, value: Any) -> float:
    """A number, NumPy's too, of 0 or more."""
    try:
        made = None if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        made = None
    if made is None or not made >= 0:
        raise _cameo.ArgumentError(f"{name} is {value!r}, expected a number of 0 or more")
    return made


def one_of(name: str, value: Any, choices: Iterable[Any]) -> None:
    """One of a few values; 1 is not True here."""
    known = list(choices)
    if not any(type(value) is type(choice) and value == choice for choice in known):
        raise _cameo.ArgumentError(f"{name} is {value!r}, expected one of {', '.join(map(repr, known))}")


def in_python(call: Callable[..., Any], *arguments: Any) -> Any:
    """Calls the library, whose sentences may name options as the command has them: here they are those of Python."""
    try:
        return call(*arguments)
    except _cameo.Error as error:
        import re
        said = str(error)
        told = re.sub(r"--([a-z][a-z-]*)", lambda found: _OPTIONS.get(found[1], found[1].replace("-", "_")) + "=", said)
        if told == said:
            raise
        made = type(error)(told)
        made._rows = error._rows
        raise made from None


_OPTIONS = {"set": "settings"}
