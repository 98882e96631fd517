/* Elements of less than a byte: packed in files and values, one to a byte in compiled code. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/lowering/glue.h"

size_t cm_mlir_element_bytes(enum cm_dtype type)
{
    const size_t size = cm_dtype_size(type);

    return size ? size : 1;
}

void cm_mlir_unpack(unsigned char *to, const struct cm_tensor *tensor)
{
    const unsigned bits = (unsigned)cm_dtype_info(tensor->type)->bits;
    const bool is_signed = cm_dtype_info(tensor->type)->kind == CM_CLASS_SIGNED;
    const unsigned char *from = tensor->data;

    for (int64_t i = 0; i < cm_tensor_count(tensor); i++) {
        const uint64_t bit = (uint64_t)i * bits;
        unsigned value = (unsigned)from[bit / 8] >> bit % 8;

        if (bit % 8 + bits > 8)
            value |= (unsigned)from[bit / 8 + 1] << (8 - bit % 8);
        value &= (1U << bits) - 1;
        if (is_signed && value >> (bits - 1))
            value |= ~0U << bits;
        to[i] = (unsigned char)value;
    }
}

void cm_mlir_pack(const struct cm_tensor *tensor, const unsigned char *from)
{
    const unsigned bits = (unsigned)cm_dtype_info(tensor->type)->bits;
    unsigned char *to = tensor->data;

    for (size_t i = 0; i < cm_tensor_bytes(tensor); i++)
        to[i] = 0;
    for (int64_t i = 0; i < cm_tensor_count(tensor); i++) {
        const uint64_t bit = (uint64_t)i * bits;
        const unsigned value = from[i] & ((1U << bits) - 1);

        to[bit / 8] |= (unsigned char)(value << bit % 8);
        if (bit % 8 + bits > 8)
            to[bit / 8 + 1] |= (unsigned char)(value >> (8 - bit % 8));
    }
}
