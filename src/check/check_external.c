/* Tensors whose data is in another file: where, how much, and whether that file has it. */
// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "base/number.h"
#include "check/checker.h"
#include "onnx/external.h"
#include "tensor/dtype.h"

static void examine_location(struct cm_checker *c, const struct cm_model_place *place,
                             struct cm_str name)
{
    struct cm_error err = {0};

    if (!name.size)
        cm_report(c, CM_RULE_CK51, place, "its location is empty");
    else if (cm_file_name_is_inside(name, &err) != CM_OK)
        cm_report(c, CM_RULE_CK51, place, "its location is refused: %s", err.text);
}

/* What type and shape call for; false when they make no sense. */
static bool needed_bytes(const struct cm_tensor_proto *tensor, size_t *need)
{
    int64_t count = 1;

    for (size_t i = 0; i < tensor->dims.count; i++) {
        if (tensor->dims.items[i] < 0 || !cm_dim_mul(count, tensor->dims.items[i], &count))
            return false;
    }
    return cm_dtype_is_valid(tensor->data_type) && tensor->data_type != CM_STRING &&
           cm_dtype_bytes((enum cm_dtype)tensor->data_type, count, need);
}

/* A file that cannot be had is reported once, however many tensors it should hold. */
static void examine_file(struct cm_checker *c, const struct cm_model_place *place,
                         const struct cm_tensor_proto *tensor)
{
    struct cm_external_place where;
    struct cm_external_file file;
    struct cm_error err = {0};
    struct cm_str bytes;
    size_t need = 0;
    bool added;

    if (!c->files || cm_external_place(tensor, &where, NULL) != CM_OK ||
        cm_file_name_is_inside(where.location, NULL) != CM_OK ||
        cm_map_find(&c->unopened, where.location))
        return;
    if (cm_external_file(c->files, where.location, &file, &err) != CM_OK) {
        cm_map_insert(&c->unopened, c->scratch, where.location, &added);
        cm_report(c, CM_RULE_CK57, place, "%s", err.text);
        return;
    }
    if (needed_bytes(tensor, &need) &&
        cm_external_range(c->files, &where, need, &bytes, &err) != CM_OK)
        cm_report(c, CM_RULE_CK57, place, "%s", err.text);
}

static void examine_length(struct cm_checker *c, const struct cm_model_place *place,
                           const struct cm_tensor_proto *tensor, int64_t length)
{
    size_t need;

    if (needed_bytes(tensor, &need) && (uint64_t)length != need)
        cm_report(c, CM_RULE_ST16, place, "its length is %lld, type and shape need %zu",
                  (long long)length, need);
}

static void examine_entry(struct cm_checker *c, const struct cm_model_place *place,
                          const struct cm_tensor_proto *tensor, const struct cm_entry_proto *entry)
{
    const bool is_length = cm_str_is(entry->key, "length");
    int64_t number;

    if (is_length || cm_str_is(entry->key, "offset")) {
        if (!cm_str_to_int64(entry->value, &number) || number < 0)
            cm_report(c, CM_RULE_ST16, place, "its %.*s '%.*s' is not a plain number",
                      CM_STR_FMT(entry->key), CM_STR_FMT(entry->value));
        else if (is_length)
            examine_length(c, place, tensor, number);
    } else if (!cm_str_is(entry->key, "location") && !cm_str_is(entry->key, "checksum") &&
               !cm_str_is(entry->key, "basepath")) {
        cm_report(c, CM_RULE_ST16, place, "external_data has the unknown key '%.*s'",
                  CM_STR_FMT(entry->key));
    }
}

void cm_examine_external(struct cm_checker *c, const struct cm_model_place *place,
                         const struct cm_tensor_proto *tensor)
{
    bool located = false;

    if (tensor->data_type == CM_STRING)
        cm_report(c, CM_RULE_ST15, place, "strings cannot be external");
    else if (!cm_dtype_is_valid(tensor->data_type))
        cm_report(c, CM_RULE_ST15, place, "its type is %d, which is not known",
                  (int)tensor->data_type);
    cm_report_repeated_keys(c, CM_RULE_ST16, place, &tensor->external_data);
    for (size_t i = 0; i < tensor->external_data.count; i++) {
        const struct cm_entry_proto *entry = &tensor->external_data.items[i];

        examine_entry(c, place, tensor, entry);
        if (!cm_str_is(entry->key, "location") || !cm_msg_has(&entry->msg, CM_ENTRY_VALUE))
            continue;
        located = true;
        examine_location(c, place, entry->value);
    }
    if (!located)
        cm_report(c, CM_RULE_CK51, place, "its data is external, but it has no location");
    else
        examine_file(c, place, tensor);
}
