/* Headers and notes of the text form, `<key: value, ..>`: read by the rows of onnx/descriptor.h, so
 * every message of plain fields has a form without code of its own. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/syntax_parse.h"

#include "onnx/wire.h"

void *cm_parse_grow(struct cm_lexer *lex, const void *items, size_t *capacity, size_t size)
{
    const size_t wanted = *capacity ? *capacity * 2 : 1;
    void *const grown = cm_arena_alloc_array(lex->arena, wanted, size);

    if (*capacity)
        memcpy(grown, items, *capacity * size);
    *capacity = wanted;
    return grown;
}

/* An item of a list, or a message by itself. Messages of plain fields do not contain themselves, so
 * the descent ends; graphs count their depth. */
static enum cm_status parse_item(struct cm_lexer *lex, const struct cm_message_info *info,
                                 void *item)
{
    if (info == &cm_graph_info)
        return cm_parse_graph(lex, item);
    if (info == &cm_opset_info) {
        struct cm_opset_proto *const opset = item;
        CM_TRY(cm_lex_string(lex, &opset->domain));
        CM_TRY(cm_lex_expect(lex, ':'));
        CM_TRY(cm_lex_int64(lex, &opset->version));
        cm_msg_set(&opset->msg, CM_OPSET_DOMAIN);
        cm_msg_set(&opset->msg, CM_OPSET_VERSION);
        return CM_OK;
    }
    if (info == &cm_entry_info) {
        struct cm_entry_proto *const entry = item;
        CM_TRY(cm_lex_string(lex, &entry->key));
        CM_TRY(cm_lex_expect(lex, ':'));
        CM_TRY(cm_lex_string(lex, &entry->value));
        cm_msg_set(&entry->msg, CM_ENTRY_KEY);
        cm_msg_set(&entry->msg, CM_ENTRY_VALUE);
        return CM_OK;
    }
    CM_TRY(cm_lex_expect(lex, '<'));
    if (cm_lex_take(lex, '>'))
        return CM_OK;
    return cm_parse_fields(lex, info, item, UINT32_MAX, '>');
}

/* Items up to the closing bracket, put behind those that are there already. */
static enum cm_status parse_list(struct cm_lexer *lex, const struct cm_field_info *field, void *at)
{
    struct cm_wire_list list;
    const size_t size = field->kind == CM_FIELD_MESSAGES ? field->message->size
                        : field->kind == CM_FIELD_STRS   ? sizeof(struct cm_str)
                                                         : sizeof(int64_t);

    memcpy(&list, at, sizeof list);
    size_t capacity = list.count;
    CM_TRY(cm_lex_expect(lex, '['));
    if (cm_lex_take(lex, ']'))
        return CM_OK;
    do {
        if (list.count == capacity)
            list.items = cm_parse_grow(lex, list.items, &capacity, size);
        void *const item = (char *)list.items + list.count * size;
        if (field->kind == CM_FIELD_MESSAGES)
            CM_TRY(parse_item(lex, field->message, item));
        else if (field->kind == CM_FIELD_STRS)
            CM_TRY(cm_lex_string(lex, item));
        else
            CM_TRY(cm_lex_int64(lex, item));
        list.count++;
    } while (cm_lex_take(lex, ','));
    memcpy(at, &list, sizeof list);
    return cm_lex_expect(lex, ']');
}

static enum cm_status parse_int32(struct cm_lexer *lex, int32_t *out)
{
    struct cm_number_text number;
    int64_t value;

    CM_TRY(cm_lex_number(lex, &number));
    CM_TRY(cm_number_to_int64(lex, &number, INT32_MIN, INT32_MAX, "int32", &value));
    *out = (int32_t)value;
    return CM_OK;
}

static enum cm_status parse_message(struct cm_lexer *lex, const struct cm_field_info *field,
                                    void *at)
{
    void *const child = cm_arena_alloc(lex->arena, field->message->size);

    CM_TRY(parse_item(lex, field->message, child));
    memcpy(at, &child, sizeof child);
    return CM_OK;
}

/* Sets *present unless the value was an empty list. */
static enum cm_status parse_field(struct cm_lexer *lex, const struct cm_field_info *field,
                                  void *msg, bool *present)
{
    void *const at = cm_field_at(msg, field);

    *present = true;
    switch (field->kind) {
    case CM_FIELD_INT64:
        return cm_lex_int64(lex, at);
    case CM_FIELD_INT32:
        return parse_int32(lex, at);
    case CM_FIELD_STR:
        return cm_lex_string(lex, at);
    case CM_FIELD_MESSAGE:
        return parse_message(lex, field, at);
    case CM_FIELD_INT64S:
    case CM_FIELD_STRS:
    case CM_FIELD_MESSAGES:
        CM_TRY(parse_list(lex, field, at));
        *present = cm_field_list(msg, field).count != 0;
        return CM_OK;
    default:
        return cm_lex_fail_at(lex, lex->at, CM_UNSUPPORTED, "%s cannot be written here",
                              field->name);
    }
}

/* Of two fields that exclude each other the later one stays, as in a file. */
static void clear_rivals(const struct cm_message_info *info, struct cm_msg *msg, int field)
{
    for (int i = 0; i < info->n_fields; i++)
        if (i != field && info->fields[i].oneof && info->fields[field].oneof)
            cm_msg_clear(msg, i);
}

enum cm_status cm_parse_fields(struct cm_lexer *lex, const struct cm_message_info *info, void *msg,
                               uint32_t allowed, char close)
{
    do {
        const struct cm_str key = cm_lex_peek_word(lex);
        if (key.size == 0)
            return cm_lex_expected(lex, "a key");
        const int field = cm_message_field_named(info, key);
        if (field < 0 || !(allowed >> field & 1))
            return cm_lex_fail_at(lex, key.data, CM_BAD_MODEL, "'%.*s' is not a key of this %s",
                                  CM_STR_FMT(key), info->name);
        lex->at += key.size;
        CM_TRY(cm_lex_expect(lex, ':'));
        bool present;
        CM_TRY(parse_field(lex, &info->fields[field], msg, &present));
        if (present) {
            cm_msg_set(msg, field);
            clear_rivals(info, msg, field);
        }
    } while (cm_lex_take(lex, ','));
    return cm_lex_expect(lex, close);
}

enum cm_status cm_parse_notes(struct cm_lexer *lex, const struct cm_message_info *info, void *msg,
                              uint32_t allowed)
{
    return cm_lex_take(lex, '<') ? cm_parse_fields(lex, info, msg, allowed, '>') : CM_OK;
}

enum cm_status cm_parse_entries(struct cm_lexer *lex, struct cm_entries *out)
{
    return parse_list(lex, &cm_tensor_info.fields[CM_TENSOR_EXTERNAL_DATA], out);
}
