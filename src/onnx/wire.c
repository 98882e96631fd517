/* Reading and writing the elements of the protobuf wire format. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/wire.h"

struct cm_wire cm_wire_over(struct cm_str bytes)
{
    const uint8_t *const at = (const uint8_t *)(bytes.data ? bytes.data : "");

    return (struct cm_wire){at, at + (bytes.data ? bytes.size : 0)};
}

enum cm_wire_fault cm_wire_varint(struct cm_wire *wire, uint64_t *value)
{
    switch (cm_varint_get(&wire->at, wire->end, value)) {
    case CM_VARINT_OK:
        return CM_WIRE_OK;
    case CM_VARINT_CUT:
        return CM_WIRE_CUT;
    default:
        return CM_WIRE_LONG;
    }
}

static enum cm_wire_fault take(struct cm_wire *wire, struct cm_wire_field *out, size_t size)
{
    if ((size_t)(wire->end - wire->at) < size)
        return CM_WIRE_CUT;
    out->data = wire->at;
    out->size = size;
    wire->at += size;
    return CM_WIRE_OK;
}

enum cm_wire_fault cm_wire_next(struct cm_wire *wire, struct cm_wire_field *out)
{
    uint64_t tag = 0;

    out->start = wire->at;
    out->value = 0;
    enum cm_wire_fault fault = cm_wire_varint(wire, &tag);
    if (fault)
        return fault;
    if (tag >> 3 == 0 || tag > UINT32_MAX)
        return CM_WIRE_BAD_NUMBER;
    out->number = (uint32_t)(tag >> 3);
    out->type = (unsigned)(tag & 7);
    switch (out->type) {
    case CM_WIRE_VARINT:
        out->data = wire->at;
        fault = cm_wire_varint(wire, &out->value);
        out->size = (size_t)(wire->at - out->data);
        return fault;
    case CM_WIRE_FIXED64:
        return take(wire, out, 8);
    case CM_WIRE_FIXED32:
        return take(wire, out, 4);
    case CM_WIRE_BYTES:
        fault = cm_wire_varint(wire, &out->value);
        if (fault)
            return fault;
        if (out->value > (uint64_t)(wire->end - wire->at))
            return CM_WIRE_PAST_END;
        return take(wire, out, (size_t)out->value);
    default:
        return CM_WIRE_BAD_TYPE;
    }
}

const struct cm_wire_kind *cm_wire_kind(enum cm_field_kind kind)
{
    static const struct cm_wire_kind kinds[] = {
        [CM_FIELD_INT64] = {CM_WIRE_VARINT, 0, false, true, sizeof(int64_t)},
        [CM_FIELD_INT32] = {CM_WIRE_VARINT, 0, false, true, sizeof(int32_t)},
        [CM_FIELD_FLOAT] = {CM_WIRE_FIXED32, 4, false, true, sizeof(float)},
        [CM_FIELD_STR] = {CM_WIRE_BYTES, 0, false, false, sizeof(struct cm_str)},
        [CM_FIELD_MESSAGE] = {CM_WIRE_BYTES, 0, false, false, 0},
        [CM_FIELD_INT64S] = {CM_WIRE_VARINT, 0, true, true, sizeof(int64_t)},
        [CM_FIELD_FLOATS] = {CM_WIRE_FIXED32, 4, true, true, sizeof(float)},
        [CM_FIELD_STRS] = {CM_WIRE_BYTES, 0, true, false, sizeof(struct cm_str)},
        [CM_FIELD_MESSAGES] = {CM_WIRE_BYTES, 0, true, false, 0},
        [CM_FIELD_PACKED_VARINT] = {CM_WIRE_VARINT, 0, true, true, 1},
        [CM_FIELD_PACKED_4] = {CM_WIRE_FIXED32, 4, true, true, 1},
        [CM_FIELD_PACKED_8] = {CM_WIRE_FIXED64, 8, true, true, 1},
    };

    return &kinds[kind];
}

/* Puts text before what out already holds at its end; false when there is no room left. */
static bool prepend(char *out, size_t *at, const char *text)
{
    const size_t size = strlen(text);

    if (size + 3 > *at)
        return false;
    *at -= size;
    memcpy(out + *at, text, size);
    return true;
}

void cm_wire_place_text(const struct cm_wire_place *place, const char *last, char *out, size_t size)
{
    size_t at = size - 1;
    bool fits = true;

    out[at] = '\0';
    if (last)
        fits = prepend(out, &at, last);
    for (; fits && place && place->up; place = place->up) {
        char step[96];

        if (cm_wire_kind(place->field->kind)->list)
            snprintf(step, sizeof step, "%s[%zu]%s", place->field->name, place->index,
                     out[at] ? "." : "");
        else
            snprintf(step, sizeof step, "%s%s", place->field->name, out[at] ? "." : "");
        fits = prepend(out, &at, step);
    }
    if (!fits) {
        at -= 3;
        memcpy(out + at, "...", 3);
    }
    memmove(out, out + at, size - at);
}
