# Bytes that no official writer would put down so, though every reader must take them.
# SPDX-License-Identifier: Apache-2.0
from google.protobuf.descriptor import FieldDescriptor as Field

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def varint(number, padding=0):
    """number as a varint, made longer than it need be by padding bytes."""
    number &= 2**64 - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    for _ in range(padding):
        out[-1] |= 0x80
        out.append(0)
    return bytes(out)


def field(number, data):
    return varint(number << 3 | BYTES) + varint(len(data)) + data


def read_varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, at


def split(data):
    """The fields of an encoded message: (number, wire type, contents)."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        start = at
        if tag & 7 == VARINT:
            _, at = read_varint(data, at)
        elif tag & 7 == BYTES:
            size, start = read_varint(data, at)
            at = start + size
        else:
            at += 8 if tag & 7 == FIXED64 else 4
        yield tag >> 3, tag & 7, data[start:at]


def rewritten(data, descriptor, write):
    """Applies write(fields, descriptor) -> bytes to a message, innermost first."""
    fields = []
    for number, kind, contents in split(data):
        known = descriptor.fields_by_number.get(number)
        if known is not None and known.type == Field.TYPE_MESSAGE:
            contents = rewritten(contents, known.message_type, write)
        fields.append((number, kind, contents))
    return write(fields, descriptor)


def write_foreign(fields, descriptor):
    """The last field numbers first, tags and lengths too long, an unknown field of each wire type before and after."""
    out = bytearray(varint(999 << 3 | BYTES, 2) + varint(4, 1) + b"here")
    for number, kind, contents in sorted(fields, key=lambda f: -f[0]):
        out += varint(number << 3 | kind, 1)
        out += varint(len(contents), 2) + contents if kind == BYTES else contents
    out += varint(1000 << 3 | VARINT) + varint(-1)
    out += varint(1001 << 3 | FIXED32) + b"four" + varint(1002 << 3 | FIXED64) + b"and four"
    return bytes(out)


def write_unpacked(fields, descriptor):
    """Packed numbers one by one, numbers that stand alone packed; the tensor's contents split in odd places."""
    out = bytearray()
    for number, kind, contents in fields:
        known = descriptor.fields_by_number.get(number)
        is_number = known is not None and known.is_repeated and known.type not in (
            Field.TYPE_STRING, Field.TYPE_BYTES, Field.TYPE_MESSAGE)
        if not is_number:
            out += varint(number << 3 | kind)
            out += varint(len(contents)) + contents if kind == BYTES else contents
        elif kind != BYTES:
            out += field(number, contents)
        else:
            out += write_singly(number, known, contents)
    return bytes(out)


def write_singly(number, known, contents):
    out = bytearray()
    width = {Field.TYPE_FLOAT: 4, Field.TYPE_DOUBLE: 8}.get(known.type)
    at = k = 0
    while at < len(contents):
        end = at + width if width else read_varint(contents, at)[1]
        item = contents[at:end]
        kind = {4: FIXED32, 8: FIXED64}.get(width, VARINT)
        # Every third one as a packed field of its own.
        out += field(number, item) if k % 3 == 2 else varint(number << 3 | kind) + item
        at, k = end, k + 1
    return bytes(out)


def foreign(message):
    return rewritten(message.SerializeToString(), message.DESCRIPTOR, write_foreign)


def unpacked(message):
    return rewritten(message.SerializeToString(), message.DESCRIPTOR, write_unpacked)
