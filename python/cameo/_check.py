# What arguments may be.
# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments, and the sentences that refuse them. It imports no NumPy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index

from . import _cameo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class NotFoundError(_cameo.NotFoundError, KeyError):
    """Also what mappings raise."""

    __module__ = "cameo"

    def __str__(self) -> str:
        return str(self.args[0])


def not_found(sentence: str, name: object, names: Iterable[str]) -> NotFoundError:
    """The exception for a name that a mapping has not, with the nearest one that it has."""
    import difflib
    near = difflib.get_close_matches(str(name), list(names), 1)
    return NotFoundError(f"{sentence} '{name}'" + (f"; there is '{near[0]}'" if near else ""))


def whole(name: str, value: Any, least: int = 0) -> int:
    """A whole number, NumPy's too."""
    try:
        number = index(value)
    except TypeError:
        number = None
    if number is None or not least <= number < 2**63:
        raise _cameo.ArgumentError(f"{name} is {value!r}, expected a whole number of {least} or more")
    return number


def mapping(name: str, value: Any) -> Mapping[Any, Any]:
    """Something like a dict."""
    if not isinstance(value, Mapping):
        raise _cameo.ArgumentError(f"{name} is a {type(value).__name__}, expected a dict")
    return value


def one_of(name: str, value: Any, choices: Iterable[Any]) -> None:
    """One of a few values; 1 is not True here."""
    known = list(choices)
    if not any(type(value) is type(choice) and value == choice for choice in known):
        raise _cameo.ArgumentError(f"{name} is {value!r}, expected one of {', '.join(map(repr, known))}")
