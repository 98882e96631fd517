/* What is inside tensors, beyond being long enough: exact lengths, values in range, canonical
 * forms. */
// SPDX-License-Identifier: Apache-2.0
#include "check/checker.h"
#include "onnx/decode.h"
#include "tensor/dtype.h"

/* Values of int32_data that an element of this type may have. Bit patterns may be written with or
 * without a sign. */
static void int32_range(const struct cm_dtype_info *info, int64_t *low, int64_t *high)
{
    const int bits = info->bits < 8 && 8 % info->bits == 0 ? 8 : info->bits; /* packed bytes */
    const int64_t span = INT64_C(1) << bits;

    *low = info->kind == CM_CLASS_UNSIGNED || info->kind == CM_CLASS_BOOL ? 0 : -(span / 2);
    *high = info->kind == CM_CLASS_SIGNED && info->bits >= 8 ? span / 2 - 1 : span - 1;
    if (info->kind == CM_CLASS_BOOL)
        *high = 1;
}

/* range: the rule that values outside low to high break */
static void examine_varints(struct cm_checker *c, enum cm_rule range,
                            const struct cm_model_place *place, struct cm_packed packed,
                            int64_t low, int64_t high, uint64_t exact)
{
    uint64_t value;
    uint64_t count = 0;
    bool broken = false;
    bool in_range = true;

    while (cm_varint_next(&packed, &value, &broken)) {
        const int64_t number = (int64_t)value;

        count++;
        if (in_range && (number < low || number > high)) {
            cm_report(c, range, place, "value %llu is %lld, not between %lld and %lld",
                      (unsigned long long)(count - 1), (long long)number, (long long)low,
                      (long long)high);
            in_range = false;
        }
    }
    if (broken)
        cm_report(c, CM_RULE_CK56, place, "its values are not well-formed numbers");
    else if (count != exact)
        cm_report(c, CM_RULE_ST15, place, "has %llu values, type and shape need exactly %llu",
                  (unsigned long long)count, (unsigned long long)exact);
}

static void examine_strings(struct cm_checker *c, const struct cm_model_place *place,
                            const struct cm_strs *strings)
{
    for (size_t i = 0; i < strings->count; i++) {
        if (!cm_str_is_utf8(strings->items[i])) {
            cm_report(c, CM_RULE_ST15, place, "string %zu is not UTF-8", i);
            return;
        }
    }
}

static void examine_count(struct cm_checker *c, const struct cm_model_place *place, size_t count,
                          uint64_t exact)
{
    if (count != exact)
        cm_report(c, CM_RULE_ST15, place, "has %zu values, type and shape need exactly %llu", count,
                  (unsigned long long)exact);
}

/* Set bits after the last element. ONNX's checker refuses them in types of six bits only. */
static void examine_padding(struct cm_checker *c, const struct cm_model_place *place,
                            const struct cm_dtype_info *info, struct cm_str raw, int64_t count)
{
    const uint64_t bits = (uint64_t)info->bits;
    const uint64_t whole = (uint64_t)count / 8 * bits;
    const unsigned over = (unsigned)((uint64_t)count % 8 * bits);
    const enum cm_rule rule = info->bits == 6 ? CM_RULE_CK55 : CM_RULE_ST15;

    if (over % 8 && (unsigned char)raw.data[whole + over / 8] >> over % 8)
        cm_report(c, rule, place, "bits after the last element are not zero");
}

/* Bytes of raw data that are there for every reader to trip over: booleans that are not 0 or 1, set
 * bits after the last element. */
static void examine_bytes(struct cm_checker *c, const struct cm_model_place *place,
                          const struct cm_tensor_proto *tensor, int64_t count)
{
    const struct cm_dtype_info *info = cm_dtype_info((enum cm_dtype)tensor->data_type);
    const struct cm_str raw = tensor->raw_data;

    if (info->kind == CM_CLASS_BOOL) {
        for (size_t i = 0; i < raw.size; i++) {
            if ((unsigned char)raw.data[i] > 1) {
                cm_report(c, CM_RULE_ST15, place, "boolean %zu is %d, expected 0 or 1", i,
                          (int)(unsigned char)raw.data[i]);
                return;
            }
        }
    }
    if (info->bits > 0 && info->bits < 8)
        examine_padding(c, place, info, raw, count);
}

void cm_examine_contents(struct cm_checker *c, const struct cm_model_place *place,
                         const struct cm_tensor_proto *tensor, int64_t count)
{
    const struct cm_dtype_info *info = cm_dtype_info((enum cm_dtype)tensor->data_type);
    const uint64_t n = (uint64_t)count;
    const uint64_t parts = info->kind == CM_CLASS_COMPLEX ? 2 * n : n;
    int64_t low, high;

    if (tensor->later) /* of a file that was looked at when it was read */
        return;
    if (tensor->raw_data.size) {
        examine_bytes(c, place, tensor, count);
        return;
    }
    switch (info->field) {
    case CM_TYPED_INT32:
        int32_range(info, &low, &high);
        if (info->bits < 8 && 8 % info->bits == 0) {
            const uint64_t per_byte = 8 / (uint64_t)info->bits;
            examine_varints(c, CM_RULE_ST15, place, tensor->int32_data, low, high,
                            n / per_byte + (n % per_byte != 0));
        } else if (info->bits < 8) {
            examine_varints(c, CM_RULE_CK56, place, tensor->int32_data, 0, (1 << info->bits) - 1,
                            n);
        } else {
            examine_varints(c, CM_RULE_ST15, place, tensor->int32_data, low, high, n);
        }
        break;
    case CM_TYPED_INT64:
        examine_varints(c, CM_RULE_ST15, place, tensor->int64_data, INT64_MIN, INT64_MAX, n);
        break;
    case CM_TYPED_UINT64:
        if (info->bits == 32)
            examine_varints(c, CM_RULE_ST15, place, tensor->uint64_data, 0, UINT32_MAX, n);
        else
            examine_varints(c, CM_RULE_ST15, place, tensor->uint64_data, INT64_MIN, INT64_MAX, n);
        break;
    case CM_TYPED_FLOAT:
        examine_count(c, place, tensor->float_data.size / 4, parts);
        break;
    case CM_TYPED_DOUBLE:
        examine_count(c, place, tensor->double_data.size / 8, parts);
        break;
    case CM_TYPED_STRING:
        examine_count(c, place, tensor->string_data.count, n);
        examine_strings(c, place, &tensor->string_data);
        break;
    case CM_TYPED_NONE:
        break;
    }
}
