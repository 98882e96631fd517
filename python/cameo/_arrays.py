# Arrays between NumPy and the library.
# SPDX-License-Identifier: Apache-2.0
"""What the library cannot see through a buffer: strings, narrow types, sequences, maps, optionals.

The extension calls to_feed for whatever is not an array of the declared type, and from_value for what is not a tensor
of a type that NumPy has.
"""

from __future__ import annotations

import functools
from typing import Any, Union

import numpy
from numpy import ndarray

from . import _cameo

try:
    import ml_dtypes  # type: ignore[import-not-found,import-untyped,unused-ignore]
except ImportError:  # narrow types are then seen as unsigned numbers
    ml_dtypes = None  # type: ignore[assignment,unused-ignore]

Array = ndarray[Any, Any]
DType = numpy.dtype[Any]
Type = Union[tuple[Any, ...], None]  # of parse_type

# By ONNX's number of the element type.
PLAIN = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool",
         10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128"}
NARROW = {16: "bfloat16", 17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz",
          21: "uint4", 22: "int4", 23: "float4_e2m1fn", 24: "float8_e8m0fnu", 25: "uint2", 26: "int2"}
BITS = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2}
STRING = 8
NAMES = ("undefined", "float", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16",
         "double", "uint32", "uint64", "complex64", "complex128", "bfloat16", "float8e4m3fn", "float8e4m3fnuz",
         "float8e5m2", "float8e5m2fnuz", "uint4", "int4", "float4e2m1", "float8e8m0", "uint2", "int2", "float6e2m3",
         "float6e3m2")


def numpy_type(number: int) -> DType | None:
    """The NumPy type of an element type of ONNX; None for strings and what NumPy has no type for."""
    if number in PLAIN:
        return numpy.dtype(PLAIN[number])
    name = NARROW.get(number)
    if name and ml_dtypes and hasattr(ml_dtypes, name):
        narrow: DType = numpy.dtype(getattr(ml_dtypes, name))
        return narrow
    return None


def unsigned_type(number: int) -> DType:
    """Unsigned numbers of the width of a narrow type; of a byte for those of less."""
    return numpy.dtype("uint16" if number == 16 else "uint8")


def _whole_type(number: int) -> DType | None:
    """The NumPy type of elements that take whole bytes; None for others."""
    if number in PLAIN:
        return numpy_type(number)
    if number in NARROW and number not in BITS:
        return numpy_type(number) or unsigned_type(number)
    return None


DTYPES = tuple(_whole_type(number) for number in range(len(NAMES)))
_NARROW_NUMBERS = {numpy_type(number): number for number in NARROW if numpy_type(number) is not None}
_PLAIN_NUMBERS = {numpy.dtype(name): number for number, name in PLAIN.items()}


def number_of(dtype: Any) -> int | None:
    """ONNX's number of a NumPy type; None where it has none."""
    dtype = numpy.dtype(dtype)
    if dtype.kind in "OUST":
        return STRING
    number = _NARROW_NUMBERS.get(dtype)
    return number if number is not None else _PLAIN_NUMBERS.get(dtype.newbyteorder("="))


@functools.lru_cache(maxsize=None)
def parse_type(text: str) -> Type:
    """A type as the library writes it: ("tensor", number), ("seq", type), ("optional", type), ("map", number, type); None
    for what it does not say.

    >>> parse_type("map(int64,float[N])")
    ('map', 7, ('tensor', 1))
    """
    head, bracket, rest = text.partition("(")
    if bracket and head in ("seq", "optional"):
        return head, parse_type(rest[:-1])
    if bracket and head == "map":
        key, _, item = rest[:-1].partition(",")
        return "map", NAMES.index(key) if key in NAMES else 0, parse_type(item.strip())
    name = text.partition("[")[0]
    return ("tensor", NAMES.index(name)) if name in NAMES else None


# ---- narrow types ----

def _pack(array: Array, bits: int) -> Array:
    """Elements of less than a byte, the first in the low bits."""
    per_byte = 8 // bits
    flat = array.reshape(-1).view(numpy.uint8) & ((1 << bits) - 1)
    flat = numpy.concatenate([flat, numpy.zeros(-len(flat) % per_byte, numpy.uint8)]).reshape(-1, per_byte)
    out = numpy.zeros(len(flat), numpy.uint8)
    for i in range(per_byte):
        out |= flat[:, i] << (bits * i)
    return out


def _unpack(data: Array, count: int, bits: int, signed: bool) -> Array:
    per_byte = 8 // bits
    flat = numpy.stack([data >> (bits * i) & ((1 << bits) - 1) for i in range(per_byte)], axis=1).reshape(-1)[:count]
    if signed:
        flat = (flat.astype(numpy.int8) ^ (1 << (bits - 1))) - (1 << (bits - 1))
    return flat


# ---- feeding ----

def to_feed(value: Any, row: tuple[Any, ...]) -> Any:
    """What the extension can lend to the library for an input that the model declares so: row is of Session.inputs().

    What it refuses is told with the input's name; what is only of another type, the library refuses by itself.
    """
    declared = parse_type(row[1])
    if declared is None:
        return to_value(value)
    try:
        if declared[0] == "tensor":
            return _tensor(value, declared[1], view=True)
        return _declared(value, declared)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, _cameo.Error):
            raise _cameo.ArgumentError(f"input '{row[0]}' {error}") from None
        raise _cameo.ArgumentError(f"input '{row[0]}' ({row[1]}): {error}") from error


def _declared(value: Any, declared: Type) -> Any:
    """The same as a Value, by the declared type alone."""
    if isinstance(value, _cameo.Value):
        return value
    if declared is None:
        return as_value(to_value(value))
    kind = declared[0]
    if kind == "optional":
        if value is None or (isinstance(value, ndarray) and value.dtype == object and value.shape == ()
                             and value.item() is None):
            return _cameo.optional(None)
        return _declared(value, declared[1])
    if value is None:
        raise _cameo.ArgumentError("is None, and not an optional")
    if kind == "seq":
        if isinstance(value, (str, bytes, dict)) or not hasattr(value, "__iter__"):
            raise _cameo.ArgumentError(f"is a {type(value).__name__}, needs a list of values")
        return _cameo.sequence([_declared(item, declared[1]) for item in value])
    if kind == "map":
        if not isinstance(value, dict):
            raise _cameo.ArgumentError(f"is a {type(value).__name__}, needs a dict")
        keys = as_value(_tensor(list(value), declared[1]))
        return _cameo.map(keys, [_declared(item, declared[2]) for item in value.values()])
    return as_value(_tensor(value, declared[1]))


def _tensor(value: Any, number: int, view: bool = False) -> Any:
    """An array or Value of a tensor whose element type is declared. view: narrow types may be unsigned numbers that
    lie where the array does, for who knows what they mean."""
    if isinstance(value, _cameo.Value):
        return value
    if value is None:
        raise _cameo.ArgumentError(f"is None, needs {NAMES[number]}")
    if not isinstance(value, ndarray):
        if number != STRING and hasattr(type(value), "__dlpack__"):
            return value
        value = _array(value, number)
    kind = value.dtype.kind
    if number == STRING:
        return _strings(value) if kind in "OUST" else value
    if kind in "OUST":
        raise _cameo.ArgumentError(f"is an array of {'objects' if kind == 'O' else 'texts'}, needs {NAMES[number]}")
    if number_of(value.dtype) is None:
        raise _cameo.ArgumentError(f"has elements of {value.dtype}, which ONNX does not have")
    narrow = _NARROW_NUMBERS.get(value.dtype)
    if narrow is not None and narrow != number:
        raise _cameo.ArgumentError(f"is of type {NAMES[narrow]}, needs {NAMES[number]}")
    if number in NARROW and (narrow is not None or value.dtype == unsigned_type(number) or
                             (number in BITS and value.dtype == numpy.int8)):
        if number in BITS:
            return _cameo.value(number, value.shape, _pack(numpy.ascontiguousarray(value), BITS[number]))
        value = value.view(unsigned_type(number))
        return value if view and _can_lend(value) else _copied(value, number)
    return value if _can_lend(value) else numpy.array(value, dtype=value.dtype.newbyteorder("="), order="C")


def _can_lend(value: Array) -> bool:
    """The library reads memory in the machine's byte order whose axes go forwards, by whole elements."""
    if not value.dtype.isnative:
        return False
    return value.flags.c_contiguous or all(step >= 0 and step % value.itemsize == 0 for step in value.strides)


def _strings(value: Array) -> Any:
    return _cameo.value(STRING, value.shape, [_text(item) for item in value.reshape(-1).tolist()])


def _text(item: Any) -> str | bytes:
    return item if isinstance(item, (str, bytes)) else str(item)


def _array(value: Any, number: int) -> Array:
    """Python's own numbers become the declared type where that loses nothing but precision; others keep theirs."""
    if number == 2 and isinstance(value, (bytes, bytearray)):
        return numpy.frombuffer(value, numpy.uint8)
    array = numpy.asarray(value, dtype=object) if number == STRING and isinstance(value, (list, tuple)) \
        else numpy.asarray(value)
    wanted = numpy_type(number)
    if wanted is None or array.dtype == wanted or array.dtype.kind not in "biufc":
        return array
    if not isinstance(value, (list, tuple, range, int, float, complex)):
        return array
    if array.size == 0:
        return array.astype(wanted)
    if array.dtype.kind in "iu" and wanted.kind in "iu":
        limits = numpy.iinfo(wanted)
        if array.min() < limits.min or array.max() > limits.max:
            raise _cameo.ArgumentError(f"has a number that {NAMES[number]} cannot hold")
        return array.astype(wanted)
    if number in NARROW or numpy.can_cast(array.dtype, wanted, "same_kind"):
        return array.astype(wanted)
    return array


def to_value(value: Any, number: int | None = None) -> Any:
    """What can be fed where only the element type is known, or nothing: an array, or a Value of what no array can be."""
    if isinstance(value, _cameo.Value):
        return value
    if value is None:
        return _cameo.optional(None)
    if isinstance(value, dict):
        texts = any(isinstance(key, (str, bytes)) for key in value)
        keys = as_value(_tensor(list(value), STRING if texts else 7))
        return _cameo.map(keys, [as_value(to_value(item)) for item in value.values()])
    if not number and isinstance(value, (list, tuple)) and (
            not value or not isinstance(value[0], (int, float, complex, str, bytes, bool, list, tuple))):
        return _cameo.sequence([as_value(to_value(item)) for item in value])
    if not number:
        if not isinstance(value, ndarray) and hasattr(type(value), "__dlpack__"):
            return value
        value = numpy.asarray(value)
        number = number_of(value.dtype) or 0
    try:
        return _tensor(value, number)
    except _cameo.ArgumentError as error:
        raise _cameo.ArgumentError(f"an array {error}") from None


def _copied(array: Array, number: int) -> Any:
    return _cameo.value(number, array.shape, numpy.ascontiguousarray(array).reshape(-1).view(numpy.uint8).data)


def as_value(value: Any) -> Any:
    """The same as a Value, copied where it is an array."""
    if isinstance(value, _cameo.Value):
        return value
    if not isinstance(value, ndarray):
        value = numpy.from_dlpack(value)
    number = number_of(value.dtype)
    if number is None:
        raise _cameo.ArgumentError(f"has elements of {value.dtype}, which ONNX does not have")
    return _copied(value.astype(value.dtype.newbyteorder("="), copy=False), number)


# ---- replacing ----

def _rank(number: int) -> int:
    """Types by what they hold: each rank can be made any later one with nothing but precision lost."""
    if number == 9:
        return 0
    if number in (2, 3, 4, 5, 6, 7, 12, 13, 21, 22, 25, 26):
        return 1
    return 3 if number in (14, 15) else 2


def fitting(what: str, value: Any, number: int) -> Array:
    """An array of this element type for what is to be replaced or fed, which is named where it is refused. Values are
    converted where only precision is lost."""
    if numpy_type(number) is None:  # nobody has a name for this narrow type
        number = _PLAIN_NUMBERS[unsigned_type(number)]
    wanted = numpy.dtype(numpy_type(number))
    try:
        if hasattr(type(value), "__dlpack__") and not isinstance(value, (ndarray, numpy.generic)):
            value = from_value(_cameo.from_dlpack(value))
        array = numpy.asarray(value)
    except (TypeError, ValueError, OverflowError, RuntimeError, BufferError) as problem:
        raise _cameo.ArgumentError(f"{what}: {problem}") from None
    if array.dtype.newbyteorder("=") == wanted or array.size == 0:
        return array.astype(wanted, "C", copy=False)
    given = number_of(array.dtype)
    if given is None or given == STRING or _rank(given) > _rank(number):
        kind = {"O": "an array of objects" if array.shape else type(array.item()).__name__, "U": "a text",
                "S": "bytes"}.get(array.dtype.kind, str(array.dtype))
        raise _cameo.ArgumentError(f"{what} is of type {wanted}, and {kind} is not converted to it")
    if _rank(number) == 1 and _rank(given) == 1:
        bits, signed = BITS.get(number, 8 * wanted.itemsize), not NAMES[number].startswith("u")
        numbers = array.astype(numpy.int64) if given in NARROW else array
        if int(numbers.min()) < (-(1 << (bits - 1)) if signed else 0) or int(numbers.max()) >> (bits - signed) > 0:
            raise _cameo.ArgumentError(f"{what} is of type {wanted}, which cannot hold all of these numbers")
    try:
        with numpy.errstate(over="raise" if number in PLAIN else "ignore"):
            return array.astype(wanted, "C")
    except FloatingPointError:
        raise _cameo.ArgumentError(f"{what} is of type {wanted}, which cannot hold all of these numbers") from None


def stored(what: str, value: Any, number: int, shape: tuple[int, ...]) -> Array:
    """What replaces values of this type and shape, as the library holds them: bytes."""
    if number == STRING:
        raise _cameo.UnsupportedError(f"{what} holds strings, which cannot be replaced")
    array = fitting(what, value, number)
    if array.shape != tuple(shape):
        raise _cameo.ArgumentError(f"{what} has shape {tuple(shape)}, not {array.shape}")
    array = numpy.ascontiguousarray(array)
    return _pack(array, BITS[number]) if number in BITS else array.reshape(-1).view(numpy.uint8)


# ---- fetching ----

def from_value(value: Any) -> Any:
    """What the extension gave, as NumPy has it: arrays see the library's memory."""
    if isinstance(value, _cameo.Value):
        number, shape = value.number, value.shape
        if DTYPES[number] is not None:
            return ndarray(shape, DTYPES[number], value)  # type: ignore[arg-type]
        flat = numpy.asarray(value)
        if number not in BITS:
            return flat
        count = int(numpy.prod(shape, dtype=numpy.int64))
        flat = _unpack(flat.reshape(-1), count, BITS[number], NARROW[number].startswith("int")).view(numpy.uint8)
        return flat.view(numpy_type(number) or numpy.uint8).reshape(shape)
    if isinstance(value, tuple):  # a tensor of strings
        out = numpy.empty(len(value[1]), dtype=object)
        out[:] = value[1]
        return out.reshape(value[0])
    if isinstance(value, list):
        return [from_value(item) for item in value]
    if isinstance(value, dict):
        return {key: from_value(item) for key, item in value.items()}
    return value
