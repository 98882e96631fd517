# Bytes of ONNX files, as far as a checkpoint needs them.
# SPDX-License-Identifier: Apache-2.0
"""Fields of a serialized model: initializers in place of inputs, entries of metadata."""

from __future__ import annotations

import typing

import numpy

from .. import _cameo
from .._arrays import number_of

_MODEL_GRAPH, _MODEL_TRAINING, _TRAINING_ALGORITHM = 7, 20, 2
_GRAPH_INITIALIZER, _GRAPH_INPUT, _GRAPH_METADATA = 5, 11, 16


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at


def _fields(data: bytes) -> typing.Iterator[tuple[int, bytes, bytes]]:
    """The number of each field of a message that the library wrote, all of its bytes, and what is inside."""
    at = 0
    while at < len(data):
        begin = inside = at
        tag, at = _read_varint(data, at)
        if tag & 7 == 0:
            _, at = _read_varint(data, at)
        elif tag & 7 == 2:
            size, inside = _read_varint(data, at)
            at = inside + size
        else:
            at += 8 if tag & 7 == 1 else 4
        yield tag >> 3, data[begin:at], data[inside:at]


def _change(data: bytes, path: typing.Sequence[int], change: typing.Callable[[bytes], bytes]) -> bytes:
    """The message with a change to the first message inside it that path leads to."""
    if not path:
        return change(data)
    out, found = [], False
    for number, whole, inside in _fields(data):
        if number == path[0] and not found:
            whole, found = _field(number, _change(inside, path[1:], change)), True
        out.append(whole)
    if not found:
        raise _cameo.ModelError("the model has no graph, or no training")
    return b"".join(out)


def _tensor(name: str, array: typing.Any) -> bytes:
    dims = b"".join(_varint(1 << 3) + _varint(size) for size in array.shape)
    return (dims + _varint(2 << 3) + _varint(number_of(array.dtype) or 0) + _field(8, name.encode()) +
            _field(9, numpy.ascontiguousarray(array).tobytes()))


def with_initializers(data: bytes, arrays: dict[str, typing.Any]) -> bytes:
    """A model whose graph has these arrays as initializers, and not as inputs."""
    names = {name.encode() for name in arrays}

    def change(graph: bytes) -> bytes:
        kept = [whole for number, whole, inside in _fields(graph)
                if number != _GRAPH_INPUT or next((text for field, _, text in _fields(inside) if field == 1), b"") not in names]
        return b"".join(kept + [_field(_GRAPH_INITIALIZER, _tensor(name, array)) for name, array in arrays.items()])
    return _change(data, [_MODEL_GRAPH], change)


def with_training_metadata(data: bytes, key: str, value: str) -> bytes:
    """A model whose training has this entry of metadata."""
    entry = _field(_GRAPH_METADATA, _field(1, key.encode()) + _field(2, value.encode()))
    return _change(data, [_MODEL_TRAINING, _TRAINING_ALGORITHM], lambda graph: graph + entry)
