/* Tensors: type, dimensions, and data in the right place and of the right length. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "check/checker.h"
#include "tensor/dtype.h"

static size_t varint_count(const struct cm_packed *packed)
{
    size_t count = 0;

    for (size_t i = 0; i < packed->size; i++)
        count += packed->data[i] < 0x80;
    return count;
}

/* The value fields, in the order of enum cm_typed_field, raw_data in the place of CM_TYPED_NONE. */
static const char *const field_names[] = {"raw_data",   "float_data",  "int32_data", "string_data",
                                          "int64_data", "double_data", "uint64_data"};
enum { FIELDS = CM_COUNT(field_names) };

static void count_entries(const struct cm_tensor_proto *tensor, size_t counts[FIELDS])
{
    counts[CM_TYPED_NONE] = tensor->raw_data.size;
    counts[CM_TYPED_FLOAT] = tensor->float_data.size / 4;
    counts[CM_TYPED_INT32] = varint_count(&tensor->int32_data);
    counts[CM_TYPED_STRING] = tensor->string_data.count;
    counts[CM_TYPED_INT64] = varint_count(&tensor->int64_data);
    counts[CM_TYPED_DOUBLE] = tensor->double_data.size / 8;
    counts[CM_TYPED_UINT64] = varint_count(&tensor->uint64_data);
}

/* False if there is no count: a negative dimension, or a product past 63 bits. */
static bool element_count(struct cm_checker *c, enum cm_rule rule,
                          const struct cm_model_place *place, const struct cm_tensor_proto *tensor,
                          int64_t *count)
{
    *count = 1;
    for (size_t i = 0; i < tensor->dims.count; i++) {
        const int64_t dim = tensor->dims.items[i];

        if (dim < 0) {
            cm_report(c, rule, place, "dimension %zu is %lld", i, (long long)dim);
            return false;
        }
        if (!cm_dim_mul(*count, dim, count)) {
            cm_report(c, rule, place, "has more elements than 63 bits can count");
            return false;
        }
    }
    return true;
}

/* Entries that a typed field needs. Of types below a byte ONNX's checker wants only as many as
 * would do if each entry were filled to 32 bits; ST15 asks for what everybody writes. */
static uint64_t entries_needed(enum cm_dtype type, int64_t count)
{
    const struct cm_dtype_info *info = cm_dtype_info(type);
    const uint64_t n = (uint64_t)count;

    if (info->kind == CM_CLASS_COMPLEX)
        return 2 * n;
    if (info->bits == 4)
        return n / 8 + (n % 8 != 0);
    if (info->bits == 2)
        return n / 16 + (n % 16 != 0);
    return n;
}

static void examine_raw(struct cm_checker *c, const struct cm_model_place *place,
                        const struct cm_tensor_proto *tensor, int64_t count)
{
    size_t need;

    if (tensor->data_type == CM_STRING)
        cm_report(c, CM_RULE_CK54, place, "strings cannot be in raw_data");
    else if (!cm_dtype_is_valid(tensor->data_type))
        cm_report(c, CM_RULE_ST15, place, "its type is %d, which is not known",
                  (int)tensor->data_type);
    else if (!cm_dtype_bytes((enum cm_dtype)tensor->data_type, count, &need))
        cm_report(c, CM_RULE_CK55, place, "type and shape need more bytes than there can be");
    else if (tensor->raw_data.size < need)
        cm_report(c, CM_RULE_CK55, place, "raw_data has %zu bytes, type and shape need %zu",
                  tensor->raw_data.size, need);
    else {
        if (tensor->raw_data.size > need)
            cm_report(c, CM_RULE_ST15, place,
                      "raw_data has %zu bytes, type and shape need only %zu", tensor->raw_data.size,
                      need);
        cm_examine_contents(c, place, tensor, count);
    }
}

static void examine_typed(struct cm_checker *c, const struct cm_model_place *place,
                          const struct cm_tensor_proto *tensor, int64_t count,
                          const size_t counts[FIELDS])
{
    if (!cm_dtype_is_valid(tensor->data_type)) {
        cm_report(c, CM_RULE_CK56, place, "its type is %d, which is not known",
                  (int)tensor->data_type);
        return;
    }
    const enum cm_dtype type = (enum cm_dtype)tensor->data_type;
    const enum cm_typed_field field = cm_dtype_info(type)->field;
    const uint64_t need = entries_needed(type, count);
    if (!counts[field])
        cm_report(c, CM_RULE_CK56, place, "values of type %s belong in %s", cm_dtype_name(type),
                  field_names[field]);
    else if (counts[field] < need)
        cm_report(c, CM_RULE_CK56, place, "%s has %zu values, type and shape need %llu",
                  field_names[field], counts[field], (unsigned long long)need);
    else
        cm_examine_contents(c, place, tensor, count);
}

static void examine_inline(struct cm_checker *c, const struct cm_model_place *place,
                           const struct cm_tensor_proto *tensor, const size_t counts[FIELDS],
                           int used)
{
    int64_t count;

    if (tensor->external_data.count)
        cm_report(c, CM_RULE_ST15, place, "has external_data, but its data is not external");
    if (!element_count(c, CM_RULE_CK52, place, tensor, &count))
        return;
    if (count == 0 && used)
        cm_report(c, CM_RULE_CK53, place, "has no elements but holds data");
    else if (count != 0 && used != 1)
        cm_report(c, CM_RULE_CK53, place, "holds values in %d fields, must be one", used);
    else if (counts[CM_TYPED_NONE])
        examine_raw(c, place, tensor, count);
    else if (count != 0)
        examine_typed(c, place, tensor, count, counts);
    else if (!cm_dtype_is_valid(tensor->data_type))
        cm_report(c, CM_RULE_CK56, place, "its type is %d, which is not known",
                  (int)tensor->data_type);
}

void cm_examine_tensor(struct cm_checker *c, const struct cm_model_place *place,
                       const struct cm_tensor_proto *tensor)
{
    size_t counts[FIELDS];
    int64_t count;
    int used = 0;

    cm_report_repeated_keys(c, CM_RULE_ST5, place, &tensor->metadata_props);
    if (tensor->metadata_props.count)
        cm_report_newer(c, place, 10, "metadata of parts of a model");
    cm_report_newer_dtype(c, place, tensor->data_type);
    if (tensor->segment)
        cm_report(c, CM_RULE_ST15, place,
                  "is a segment of a larger tensor, which no runtime reads");
    if (tensor->data_type == CM_UNDEFINED) {
        cm_report(c, CM_RULE_CK50, place, "has no element type");
        return;
    }
    count_entries(tensor, counts);
    for (int i = 0; i < FIELDS; i++)
        used += counts[i] > 0;
    if (tensor->data_location != CM_LOCATION_EXTERNAL) {
        examine_inline(c, place, tensor, counts, used);
        return;
    }
    if (used)
        cm_report(c, CM_RULE_CK51, place, "its data is external, but it holds values too");
    cm_examine_external(c, place, tensor);
    element_count(c, CM_RULE_ST15, place, tensor, &count);
}
