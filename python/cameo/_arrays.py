# Arrays between NumPy and the library.
# SPDX-License-Identifier: Apache-2.0
"""What the library cannot see through a buffer: strings, narrow types, sequences, maps, optionals."""

import numpy

from . import _cameo

try:
    import ml_dtypes
except ImportError:  # narrow types are then seen as unsigned numbers
    ml_dtypes = None

# By ONNX's number of the element type.
PLAIN = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool",
         10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128"}
NARROW = {16: "bfloat16", 17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz",
          21: "uint4", 22: "int4", 23: "float4_e2m1fn", 24: "float8_e8m0fnu", 25: "uint2", 26: "int2"}
BITS = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2}
STRING = 8
KINDS = {"none": 0, "tensor": 1, "sparse": 2, "sequence": 3, "map": 4, "optional": 5}


def numpy_type(number):
    """The NumPy type of an element type of ONNX; None for strings and what NumPy has no type for."""
    if number in PLAIN:
        return numpy.dtype(PLAIN[number])
    name = NARROW.get(number)
    if name and ml_dtypes and hasattr(ml_dtypes, name):
        return numpy.dtype(getattr(ml_dtypes, name))
    return None


def _narrow_number(dtype):
    for number, name in NARROW.items():
        if dtype.name == name:
            return number
    return None


def _pack(array, bits):
    """Elements of less than a byte, the first in the low bits."""
    per_byte = 8 // bits
    flat = array.reshape(-1).view(numpy.uint8) & ((1 << bits) - 1)
    flat = numpy.concatenate([flat, numpy.zeros(-len(flat) % per_byte, numpy.uint8)]).reshape(-1, per_byte)
    out = numpy.zeros(len(flat), numpy.uint8)
    for i in range(per_byte):
        out |= flat[:, i] << (bits * i)
    return out


def _unpack(data, count, bits, signed):
    per_byte = 8 // bits
    flat = numpy.stack([data >> (bits * i) & ((1 << bits) - 1) for i in range(per_byte)], axis=1).reshape(-1)[:count]
    if signed:
        flat = (flat.astype(numpy.int8) ^ (1 << (bits - 1))) - (1 << (bits - 1))
    return flat


def to_value(value, number=None):
    """What a session can be fed: an array, or a Value of what no array can be. number: the element type wanted."""
    if isinstance(value, _cameo.Value):
        return value
    if value is None:
        return _cameo.optional(None)
    if isinstance(value, dict):
        keys = list(value)
        texts = bool(keys) and isinstance(keys[0], str)
        made = to_value(numpy.array(keys, dtype=object if texts else numpy.int64))
        return _cameo.map(as_value(made), [as_value(to_value(numpy.asarray(item))) for item in value.values()])
    if isinstance(value, (list, tuple)) and (not value or not isinstance(value[0], (int, float, complex, str, bytes,
                                                                                    bool, list, tuple))):
        return _cameo.sequence([as_value(to_value(item)) for item in value])
    if not isinstance(value, numpy.ndarray):
        if hasattr(value, "__dlpack__") and not hasattr(value, "__array_interface__"):
            return value
        value = numpy.asarray(value)
    if value.dtype.kind in "OSU":
        return _cameo.value(STRING, value.shape, [_text(item) for item in value.reshape(-1)])
    narrow = _narrow_number(value.dtype)
    if narrow in BITS:
        return _cameo.value(narrow, value.shape, _pack(numpy.ascontiguousarray(value), BITS[narrow]))
    if narrow:
        return _cameo.value(narrow, value.shape, numpy.ascontiguousarray(value).view(numpy.uint8).reshape(-1).data)
    if number in NARROW and number not in BITS and value.dtype in (numpy.uint8, numpy.uint16):
        return _cameo.value(number, value.shape, numpy.ascontiguousarray(value).view(numpy.uint8).reshape(-1).data)
    if any(stride < 0 for stride in value.strides) or value.dtype.byteorder == ">":
        value = value.astype(value.dtype.newbyteorder("="), order="C")
    return value


def as_value(value):
    """The same as a Value, copied where it is an array."""
    if isinstance(value, _cameo.Value):
        return value
    array = numpy.asarray(value, order="C")  # ascontiguousarray would give a scalar an axis
    number = next(key for key, name in PLAIN.items() if numpy.dtype(name) == array.dtype)
    return _cameo.value(number, array.shape, array.reshape(-1).view(numpy.uint8).data)


def _text(item):
    return item if isinstance(item, (str, bytes)) else str(item)


def from_value(value):
    """What a run gave, as NumPy has it: arrays see the library's memory."""
    if isinstance(value, _cameo.Value):
        number = value.number
        if number in PLAIN:
            return numpy.asarray(value)
        dtype = numpy_type(number)
        flat = numpy.asarray(value)
        if number in BITS:
            count = int(numpy.prod(value.shape, dtype=numpy.int64))
            flat = _unpack(flat.reshape(-1), count, BITS[number], NARROW[number].startswith("int"))
            flat = flat.view(numpy.uint8)
            return (flat.view(dtype) if dtype is not None else flat).reshape(value.shape)
        return flat.view(dtype) if dtype is not None else flat
    if isinstance(value, tuple):  # a tensor of strings
        return numpy.array(value[1], dtype=object).reshape(value[0])
    if isinstance(value, list):
        return [from_value(item) for item in value]
    if isinstance(value, dict):
        return {key: from_value(item) for key, item in value.items()}
    return value
