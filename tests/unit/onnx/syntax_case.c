/* What tests of the text form share. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/syntax_case.h"
#include "base/array.h"

#include "onnx/tensor_data.h"
#include "onnx/wire.h"

const struct syntax_kind syntax_kinds[SYNTAX_KINDS] = {
    {"model", &cm_model_info},
    {"graph", &cm_graph_info},
    {"function", &cm_function_info},
    {"node", &cm_node_info},
};

void *syntax_parse(struct cm_arena *arena, const struct syntax_kind *kind, struct cm_str text,
                   struct cm_error *err)
{
    void *const out = cm_arena_alloc(arena, kind->info->size);
    enum cm_status status;

    if (kind->info == &cm_model_info)
        status = cm_syntax_parse_model(text, arena, out, err);
    else if (kind->info == &cm_graph_info)
        status = cm_syntax_parse_graph(text, arena, out, err);
    else if (kind->info == &cm_function_info)
        status = cm_syntax_parse_function(text, arena, out, err);
    else
        status = cm_syntax_parse_node(text, arena, out, err);
    return status == CM_OK ? out : NULL;
}

struct sheet {
    struct cm_arena *arena;
    CM_ARRAY(char);
};

static enum cm_status write_sheet(void *to, const void *bytes, size_t size, struct cm_error *err)
{
    struct sheet *const sheet = to;

    (void)err;
    while (sheet->capacity - sheet->count < size + 1)
        sheet->items = cm_arena_grow(sheet->arena, sheet->items, &sheet->capacity, 1);
    memcpy(sheet->items + sheet->count, bytes, size);
    sheet->count += size;
    sheet->items[sheet->count] = 0;
    return CM_OK;
}

struct cm_str syntax_print(struct cm_arena *arena, const struct syntax_kind *kind, const void *msg,
                           const struct cm_syntax_options *options, struct cm_error *err)
{
    struct sheet sheet = {.arena = arena};
    enum cm_status status;

    if (kind->info == &cm_model_info)
        status = cm_syntax_print_model(msg, options, write_sheet, &sheet, err);
    else if (kind->info == &cm_graph_info)
        status = cm_syntax_print_graph(msg, options, write_sheet, &sheet, err);
    else if (kind->info == &cm_function_info)
        status = cm_syntax_print_function(msg, options, write_sheet, &sheet, err);
    else
        status = cm_syntax_print_node(msg, options, write_sheet, &sheet, err);
    return status == CM_OK ? (struct cm_str){sheet.items, sheet.count} : CM_STR_NONE;
}

static void level_tensor(struct cm_arena *arena, struct cm_tensor_proto *proto)
{
    static const int typed[] = {CM_TENSOR_FLOAT_DATA, CM_TENSOR_INT32_DATA, CM_TENSOR_INT64_DATA,
                                CM_TENSOR_DOUBLE_DATA, CM_TENSOR_UINT64_DATA};
    struct cm_error err = {0};
    struct cm_tensor tensor = {0};

    if (proto->data_location == CM_LOCATION_EXTERNAL || proto->data_type == CM_STRING ||
        proto->data_type == CM_UNDEFINED || cm_msg_has(&proto->msg, CM_TENSOR_RAW_DATA))
        return;
    /* Values that do not fill their shape are no tensor; they stay as they are. */
    if (cm_tensor_proto_load(proto, NULL, &tensor, &err) != CM_OK)
        return;
    const size_t size = cm_tensor_bytes(&tensor);
    proto->raw_data = cm_arena_str(arena, (struct cm_str){size ? tensor.data : "", size});
    cm_tensor_drop(&tensor);
    for (size_t i = 0; i < CM_COUNT(typed); i++)
        cm_msg_clear(&proto->msg, typed[i]);
    cm_msg_set(&proto->msg, CM_TENSOR_RAW_DATA);
}

static bool is_empty(const struct cm_field_info *field, const void *msg)
{
    const void *const at = cm_field_of(msg, field);

    switch (field->kind) {
    case CM_FIELD_INT64:
        return *(const int64_t *)at == 0;
    case CM_FIELD_INT32:
        return *(const int32_t *)at == 0;
    case CM_FIELD_STR:
        return ((const struct cm_str *)at)->size == 0;
    default:
        return false;
    }
}

static enum cm_status level(void *arg, const struct cm_message_info *info, struct cm_msg *msg)
{
    const uint32_t keep = UINT32_C(1) << CM_ATTRIBUTE_I | UINT32_C(1) << CM_ATTRIBUTE_S;

    if (info == &cm_tensor_info)
        level_tensor(arg, (struct cm_tensor_proto *)msg);
    for (int i = 0; i < info->n_fields; i++) {
        if (info == &cm_attribute_info && keep >> i & 1)
            continue;
        if (info == &cm_tensor_info && i == CM_TENSOR_RAW_DATA)
            continue;
        if (!info->fields[i].oneof && cm_msg_has(msg, i) && is_empty(&info->fields[i], msg))
            cm_msg_clear(msg, i);
    }
    return CM_OK;
}

void syntax_level(struct cm_arena *arena, const struct syntax_kind *kind, void *msg)
{
    CHECK(cm_message_walk(kind->info, msg, level, arena) == CM_OK);
}

struct cm_str syntax_check_round(struct cm_arena *arena, const struct syntax_kind *kind, void *msg)
{
    struct cm_error err = {0};
    struct cm_str where;
    const struct cm_str text = syntax_print(arena, kind, msg, NULL, &err);

    if (!text.data)
        fail_msg("printing failed: %s", err.text);
    void *const again = syntax_parse(arena, kind, text, &err);
    if (!again)
        fail_msg("reading what was printed failed: %s in\n%s", err.text, text.data);
    syntax_level(arena, kind, msg);
    syntax_level(arena, kind, again);
    if (!cm_message_equal(kind->info, msg, again, arena, &where))
        fail_msg("%.*s differs in\n%s", CM_STR_FMT(where), text.data);
    return text;
}
