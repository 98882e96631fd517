# Which operators a model knows beside the built-in ones.
# SPDX-License-Identifier: Apache-2.0
"""The meeting point of models and cameo.operators; it imports neither NumPy nor the operators."""

from __future__ import annotations

from . import _cameo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

default: Any = None  # cameo.operators puts its registry here


def current(handle: Any) -> Any:
    """A model of the library's that knows the newest state of its registry, or of the default one."""
    known = _cameo.registry_of(handle)
    if known is not None:
        return having(handle, known.owner)
    return having(handle, default) if default else handle


def united(first: Any, second: Any) -> tuple[Any, Any]:
    """Two models with one registry, which has the operators of both."""
    owners = [known.owner for known in map(_cameo.registry_of, (first, second)) if known is not None]
    if not owners:
        return first, second
    both = owners[0]
    if owners[-1] is not both:
        both = type(both)()
        for op in (op for owner in owners for op in owner):
            if both._operators.get((op.domain, op.name, op.version), op) is not op:
                raise _cameo.ArgumentError(f"the registries of the two models differ in {op.domain}.{op.name}: load both "
                                           "with one registry")
            both.add(op)
    return having(first, both), having(second, both)


def having(handle: Any, registry: Any) -> Any:
    """The same with this registry."""
    wanted = registry._snapshot()
    return handle if _cameo.registry_of(handle) is wanted else _cameo.with_registry(handle, wanted)
