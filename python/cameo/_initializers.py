# The values of initializers.
# SPDX-License-Identifier: Apache-2.0
"""Model.initializers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from . import _cameo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy

    from ._model import Model


class Initializers(Mapping[str, "numpy.ndarray[Any, Any]"]):
    """Names to arrays: views of the model's memory or its files, to be read only. Assigning replaces the values.

    >>> import cameo, numpy
    >>> model = cameo.load('''<ir_version: 8, opset_import: ["" : 17]>
    ... line (float[N] x) => (float[N] y) <float[1] w = {2}> { y = Mul(x, w) }''')
    >>> model.initializers["w"]
    array([2.], dtype=float32)
    >>> model.initializers["w"] = [3]
    >>> model.run(x=numpy.float32([1]))["y"]
    array([3.], dtype=float32)
    """

    def __init__(self, model: Model) -> None:
        self._model = model

    def _rows(self) -> dict[str, tuple[Any, ...]]:
        """By name, the first of each: its number, then what describes it."""
        def rows() -> dict[str, tuple[Any, ...]]:
            found: dict[str, tuple[Any, ...]] = {}
            for number, row in enumerate(_cameo.initializers(self._model._inside)):
                found.setdefault(row[0], (number, *row))
            return found
        return self._model._once("initializers", rows)

    def _row(self, name: str) -> tuple[Any, ...]:
        rows = self._rows()
        if name not in rows:
            import difflib
            near = difflib.get_close_matches(str(name), rows, 1)
            raise NotFoundError(f"the model has no initializer '{name}'" + (f"; there is '{near[0]}'" if near else ""))
        return rows[name]

    def __getitem__(self, name: str) -> numpy.ndarray[Any, Any]:
        from ._arrays import from_value
        array: numpy.ndarray[Any, Any] = from_value(_cameo.view_initializer(self._model._inside, self._row(name)[0]))
        array.flags.writeable = False  # strings, and what is unpacked, are copies: writing to them would be in vain
        return array

    def __setitem__(self, name: str, values: Any) -> None:
        number, _, dtype, shape = self._row(name)[:4]
        data = _bytes(name, values, dtype, shape)
        # A session that only the model keeps would be a user of what is changed.
        self._model._session = None
        inside = _cameo.set_initializer(self._model._inside, number, data)
        if inside is not self._model._inside:
            self._model._become(inside)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows())

    def __len__(self) -> int:
        return len(self._rows())

    def __contains__(self, name: object) -> bool:
        return name in self._rows()

    def __repr__(self) -> str:
        names = list(self._rows())
        return f"<{len(names)} initializers: {', '.join(names[:8])}{', ..' if len(names) > 8 else ''}>"


def _bytes(name: str, values: Any, number: int, shape: tuple[int, ...]) -> numpy.ndarray[Any, Any]:
    """What replaces the values of an initializer, as the file holds them; type and shape must fit."""
    import numpy

    from ._arrays import BITS, STRING, _pack, from_value, numpy_type, unsigned_type
    wanted = numpy_type(number) or unsigned_type(number)  # the latter where nobody has a name for a narrow type
    if number == STRING:
        raise _cameo.UnsupportedError(f"initializer '{name}' holds strings, which cannot be replaced")
    if values is None:
        raise _cameo.ArgumentError(f"initializer '{name}' cannot be None")
    try:
        if hasattr(type(values), "__dlpack__") and not isinstance(values, (numpy.ndarray, numpy.generic)):
            values = from_value(_cameo.from_dlpack(values))
        array = numpy.asarray(values) if hasattr(values, "dtype") else numpy.asarray(values, wanted)
    except (TypeError, ValueError, OverflowError, RuntimeError, BufferError) as problem:
        raise _cameo.ArgumentError(f"initializer '{name}': {problem}") from None
    if array.dtype.newbyteorder("=") != wanted or array.shape != tuple(shape):
        raise _cameo.ArgumentError(f"initializer '{name}' is {wanted} of shape {tuple(shape)}, not {array.dtype} of "
                                   f"shape {array.shape}")
    array = numpy.ascontiguousarray(array, wanted)
    return _pack(array, BITS[number]) if number in BITS else array.reshape(-1).view(numpy.uint8)


class NotFoundError(_cameo.NotFoundError, KeyError):
    """Also what mappings raise."""

    __module__ = "cameo"

    def __str__(self) -> str:
        return str(self.args[0])
