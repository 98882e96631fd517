# The values of initializers.
# SPDX-License-Identifier: Apache-2.0
"""Model.initializers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from . import _cameo
from ._check import Fixed, mapping, not_found
from ._graph import Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy

    from ._model import Model


def originals(rows: Iterable[tuple[str, str, str]]) -> dict[str, Report]:
    """Of those that have one: what the framework calls the tensor, and what its exporter made of it."""
    return {name: Report(original=original, folding=folding) for name, original, folding in rows if original}


class Initializers(Fixed, Mapping[str, "numpy.ndarray[Any, Any]"]):
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
            raise not_found("the model has no initializer", name, rows)
        return rows[name]

    def __getitem__(self, name: str) -> numpy.ndarray[Any, Any]:
        from ._arrays import from_value
        array: numpy.ndarray[Any, Any] = from_value(_cameo.view_initializer(self._model._inside, self._row(name)[0]))
        array.flags.writeable = False  # strings, and what is unpacked, are copies: writing to them would be in vain
        return array

    def __setitem__(self, name: str, values: Any) -> None:
        self.update({name: values})

    def update(self, values: Mapping[str, Any]) -> None:
        """Replaces the values of several; where one does not fit, of none."""
        from ._arrays import stored
        rows = [self._row(name) for name in mapping("initializers", values)]
        parts = [(number, stored(f"initializer '{name}'", values[name], dtype, shape))
                 for number, name, dtype, shape, *_ in rows]
        model = self._model
        model._cache.pop("session", None)  # which only the model keeps: it would be a user of what is changed
        for number, data in parts:
            inside = _cameo.set_initializer(model._inside, number, data)
            if inside is not model._inside:
                model._become(inside)

    @property
    def originals(self) -> dict[str, Report]:
        """Initializers that the framework calls otherwise, as far as the file tells: original is its name for the
        tensor, folding what the exporter made of it ("transposed", "unsqueezed", "computed" from it, "": nothing;
        "module": original is the module that reads it)."""
        return originals((name, *row[-2:]) for name, row in self._rows().items())

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows())

    def __len__(self) -> int:
        return len(self._rows())

    def __contains__(self, name: object) -> bool:
        return name in self._rows()

    def __repr__(self) -> str:
        names = list(self._rows())
        return f"<{len(names)} initializers: {', '.join(names[:8])}{', ..' if len(names) > 8 else ''}>"
