# Kernels written in Python, as the library calls them.
# SPDX-License-Identifier: Apache-2.0
"""From a call of the library to a function over NumPy arrays, and its results back."""

from __future__ import annotations

import traceback
from typing import Any, Callable, NamedTuple, Optional, Sequence

import numpy

from ._arrays import BITS, NARROW, PLAIN, STRING, _pack, _unpack, numpy_type

SINGLE, OPTIONAL, VARIADIC = 0, 1, 2
NUMBERS: dict[str, int] = {name: number for number, name in {**PLAIN, **NARROW}.items()}


class TensorType(NamedTuple):
    """What is known of a tensor: dtype of NumPy, and shape, with None for sizes that are not known; shape is None
    where the rank is not known either."""

    dtype: Any
    shape: Optional[tuple[Optional[int], ...]]


class Operand(NamedTuple):
    name: str
    types: int
    kind: int


class Attribute(NamedTuple):
    name: str
    kind: int
    required: bool
    default: Any  # lists too, which the library does not know of


def number_of(dtype: Any) -> int:
    """ONNX's number of an element type that NumPy has."""
    made = numpy.dtype(dtype)
    if made.kind in "OSU":
        return STRING
    if made.name not in NUMBERS:
        raise TypeError(f"ONNX has no tensors of {made}")
    return NUMBERS[made.name]


def _array(row: Any) -> Any:
    """An operand of a call as an array over its memory; texts and elements of less than a byte are copied."""
    if row is None:
        return None
    number, shape, memory = row
    if number == STRING:
        return numpy.array(memory, dtype=object).reshape(shape)
    if number in BITS:
        packed = numpy.frombuffer(memory, numpy.uint8) if 0 not in shape else numpy.zeros(0, numpy.uint8)
        count = int(numpy.prod(shape, dtype=numpy.int64))
        flat = _unpack(packed, count, BITS[number], NARROW[number].startswith("int")).view(numpy.uint8)
        dtype = numpy_type(number)
        return (flat if dtype is None else flat.view(dtype)).reshape(shape)
    return numpy.ndarray(shape, dtype_of(number), buffer=memory)


def dtype_of(number: int) -> Any:
    """As arrays have it: unsigned numbers where NumPy lacks the type."""
    return numpy_type(number) or numpy.dtype(object if number == STRING else "uint16" if number == 16 else "uint8")


def _forget(error: Optional[BaseException]) -> None:
    """Empties the frames that an exception keeps: the arrays in them end with the call."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def _say(dtype: Any, shape: Any) -> str:
    return f"{dtype}[{', '.join('?' if size is None else str(size) for size in shape)}]"


class Kernel:
    """What the library calls for one operator. Nothing of a call is kept when it is over."""

    def __init__(self, title: str, function: Callable[..., Any], outputs: Sequence[Operand],
                 attributes: Sequence[Attribute], dynamic: bool, out: bool) -> None:
        self.title, self.function, self.outputs, self.dynamic, self.out = title, function, outputs, dynamic, out
        self.defaults = {row.name: row.default for row in attributes}

    def __call__(self, call: Any, inputs: list[Any], outputs: list[Any], attributes: dict[str, Any]) -> None:
        arrays = []
        try:
            arrays = [_array(row) for row in inputs]
            for array in arrays:
                if array is not None:
                    array.flags.writeable = False
            settings = {**self.defaults, **attributes}
            if self.out:
                views = [_array(row) for row in outputs]
                settings["out"] = views[0] if len(self.outputs) == 1 else views
                del views
            result = self.function(*arrays, **settings)
            settings.clear()
            if result is not None or not self.out:
                self._give(call, outputs, result)
        except BaseException as error:
            _forget(error)
            raise
        finally:
            array = result = None
            arrays.clear()
            inputs.clear()
            outputs.clear()

    def _name(self, index: int) -> str:
        operand = self.outputs[min(index, len(self.outputs) - 1)]
        return operand.name if operand.kind != VARIADIC else f"{operand.name}_{index - len(self.outputs) + 1}"

    def _give(self, call: Any, outputs: list[Any], result: Any) -> None:
        count = max(len(outputs), 1)
        if isinstance(result, dict):
            names = [self._name(index) for index in range(max(count, len(self.outputs)))]
            unknown = [name for name in result if name not in names]
            if unknown:
                raise ValueError(f"{self.title} has no output '{unknown[0]}'")
            result = [result.get(name) for name in names]
        elif len(self.outputs) == 1 and self.outputs[0].kind != VARIADIC:
            result = [result]
        elif not isinstance(result, (list, tuple)):
            raise TypeError(f"{self.title} has {len(self.outputs)} outputs: its kernel returns a tuple of arrays or a "
                            f"dict, not {type(result).__name__}")
        for index in range(count):
            value = result[index] if index < len(result) else None
            if self.dynamic and value is not None:
                value = numpy.asarray(value)
                outputs[index] = call.allocate(index, number_of(value.dtype), value.shape)
            row = outputs[index] if index < len(outputs) else None
            if row is not None:
                self._write(index, row, value)
            row = value = None

    def _write(self, index: int, row: Any, value: Any) -> None:
        number, shape, memory = row
        if value is None:
            raise ValueError(f"{self.title}: the kernel gave no output '{self._name(index)}'")
        value = numpy.asarray(value)
        dtype = dtype_of(number)
        if value.dtype != dtype or value.shape != shape:
            raise (ValueError if value.dtype == dtype else TypeError)(
                f"{self.title}: the kernel gave output '{self._name(index)}' as {_say(value.dtype, value.shape)}, its "
                f"type is {_say(dtype, shape)}")
        if number in BITS:
            if value.size:
                packed = numpy.ndarray((len(memoryview(memory)),), numpy.uint8, buffer=memory)
                packed[...] = _pack(numpy.ascontiguousarray(value), BITS[number])
        else:
            numpy.ndarray(shape, dtype, buffer=memory)[...] = value
