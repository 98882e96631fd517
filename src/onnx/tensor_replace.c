/* Other values for a TensorProto, in the field that its values are in. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "onnx/tensor_data.h"
#include "onnx/wire.h"

/* The repeated field that holds a tensor's values, or -1 when raw_data does or should. A field that
 * holds nothing counts as absent, as some writers set all of them. */
static int typed_field(struct cm_tensor_proto *proto)
{
    const int field = cm_tensor_values_field((enum cm_dtype)proto->data_type);

    if (field < 0 || field == CM_TENSOR_STRING_DATA ||
        proto->data_location == CM_LOCATION_EXTERNAL || proto->raw_data.size > 0 ||
        cm_tensor_proto_packed(proto, field)->size == 0)
        return -1;
    return field;
}

static bool is_varints(int field)
{
    return field == CM_TENSOR_INT32_DATA || field == CM_TENSOR_INT64_DATA ||
           field == CM_TENSOR_UINT64_DATA;
}

bool cm_tensor_proto_room(struct cm_tensor_proto *proto, const struct cm_tensor *values,
                          size_t *room)
{
    *room = 0;
    return !is_varints(typed_field(proto)) || cm_size_mul(cm_tensor_bytes(values), 10, room);
}

/* Six-bit elements have an entry each, unlike those that fit a whole number of times into a byte.
 */
static size_t put_sixes(uint8_t *to, const uint8_t *from, size_t size, int64_t elements)
{
    for (size_t i = 0; i < (size_t)elements; i++) {
        const size_t byte = i * 6 / 8;
        const unsigned low = from[byte], high = byte + 1 < size ? from[byte + 1] : 0;

        to[i] = (uint8_t)((low | high << 8) >> (i * 6 % 8) & 63);
    }
    return (size_t)elements;
}

/* Elements as varints, signed ones extended to 64 bits as protobuf wants; types of less than a byte
 * go byte by byte. Returns the bytes written, at most ten an element. */
static size_t put_varints(uint8_t *to, const uint8_t *from, size_t size, enum cm_dtype type)
{
    const size_t width = cm_dtype_size(type) ? cm_dtype_size(type) : 1;
    const bool extend = cm_dtype_size(type) && cm_dtype_info(type)->kind == CM_CLASS_SIGNED;
    const uint64_t sign = UINT64_C(1) << (width * 8 - 1);
    size_t written = 0;

    for (size_t i = 0; i + width <= size; i += width) {
        uint64_t value = 0;

        memcpy(&value, from + i, width);
        if (extend)
            value = (value ^ sign) - sign;
        written += cm_varint_put(to + written, value);
    }
    return written;
}

void cm_tensor_proto_replace(struct cm_tensor_proto *proto, const struct cm_tensor *values,
                             uint8_t *room)
{
    proto->later = NULL;
    const int field = typed_field(proto);
    struct cm_packed packed = {values->data, cm_tensor_bytes(values)};

    if (is_varints(field)) {
        packed.size = cm_dtype_info(values->type)->bits == 6
                          ? put_sixes(room, values->data, packed.size, cm_tensor_count(values))
                          : put_varints(room, values->data, packed.size, values->type);
        packed.data = room;
    }
    if (proto->data_location == CM_LOCATION_EXTERNAL)
        cm_tensor_proto_leave_file(proto);
    if (field >= 0)
        *cm_tensor_proto_packed(proto, field) = packed;
    else
        proto->raw_data = (struct cm_str){(const char *)packed.data, packed.size};
    cm_msg_set(&proto->msg, field >= 0 ? field : CM_TENSOR_RAW_DATA);
}
