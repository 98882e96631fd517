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


def having(handle: Any, registry: Any) -> Any:
    """The same with this registry."""
    wanted = registry._snapshot()
    return handle if _cameo.registry_of(handle) is wanted else _cameo.with_registry(handle, wanted)
