/* Changes of any field of any message, by the tables that the decoder uses: what no other change
 * knows by name (external data, bindings, annotations, sparse tensors, device configurations). */
// SPDX-License-Identifier: Apache-2.0
#include "mutate_model.h"

#include <string.h>

/* Lists of messages are laid out as CM_LIST of bytes. */
struct message_list {
    void *items;
    size_t count;
};

/* Some message of this kind, copied; NULL: there is none. */
static void *some_message(struct mutation *m, const struct cm_message_info *info)
{
    const size_t from = chance_draw(m->chance, m->messages.count);

    for (size_t i = 0; i < m->messages.count; i++) {
        const struct message *message = &m->messages.items[(from + i) % m->messages.count];
        if (message->info == info)
            return mutation_copy(m, info, message->msg);
    }
    return CM_NEW_ARRAY(m->arena, char, info->size);
}

static struct cm_str new_text(struct mutation *m, struct cm_str now)
{
    switch (chance_draw(m->chance, 5)) {
    case 0:
        return CM_STR_NONE;
    case 1:
        return mutate_bytes(m->chance, now);
    case 2:
        return chance_word(m->chance);
    case 3:
        return cm_arena_printf(m->arena, "%lld", (long long)chance_number(m->chance));
    default:
        return mutation_name(m);
    }
}

static void change_texts(struct mutation *m, struct cm_strs *list)
{
    list->items = cm_list_extended(m->arena, list->items, list->count, sizeof *list->items);
    if (!list->count || chance_percent(m->chance, 25))
        list->items[list->count++] = new_text(m, CM_STR_NONE);
    else if (chance_percent(m->chance, 25))
        list->count--;
    else {
        const size_t at = chance_draw(m->chance, list->count);
        list->items[at] = new_text(m, list->items[at]);
    }
}

static void change_numbers(struct mutation *m, struct cm_int64s *list)
{
    list->items = cm_list_extended(m->arena, list->items, list->count, sizeof *list->items);
    if (!list->count || chance_percent(m->chance, 25))
        list->items[list->count++] = chance_number(m->chance);
    else if (chance_percent(m->chance, 25))
        list->count--;
    else
        list->items[chance_draw(m->chance, list->count)] = chance_number(m->chance);
}

static bool change_messages(struct mutation *m, struct message_list *list,
                            const struct cm_message_info *info)
{
    const size_t size = info->size;

    if (list->count && chance_percent(m->chance, 30)) {
        const size_t at = chance_draw(m->chance, list->count);
        char *items = cm_list_extended(m->arena, list->items, list->count, size);
        memmove(items + at * size, items + (at + 1) * size, (list->count - at - 1) * size);
        list->items = items;
        list->count--;
        return true;
    }
    const void *message = some_message(m, info);
    if (!message)
        return false;
    list->items = cm_list_extended(m->arena, list->items, list->count, size);
    const size_t at = list->count && chance_percent(m->chance, 50)
                          ? chance_draw(m->chance, list->count)
                          : list->count++;
    memcpy((char *)list->items + at * size, message, size);
    return true;
}

/* Numbers left on the wire: bytes of any kind, whose length mostly fits. */
static void change_packed(struct mutation *m, struct cm_packed *packed, size_t size)
{
    struct sheet made = {.arena = m->arena};
    const size_t count = chance_draw(m->chance, 5);

    for (size_t i = 0; i < count; i++)
        sheet_add_number(&made, (uint64_t)chance_number(m->chance) & 127, size);
    if (chance_percent(m->chance, 10))
        sheet_add_number(&made, 0, 1);
    *packed = (struct cm_packed){(const uint8_t *)sheet_text(&made).data, made.count};
}

static bool change_field(struct mutation *m, const struct message *message, int f)
{
    const struct cm_field_info *field = &message->info->fields[f];
    void *at = (char *)message->msg + field->offset;

    switch (field->kind) {
    case CM_FIELD_INT64:
        *(int64_t *)at = chance_number(m->chance);
        break;
    case CM_FIELD_INT32:
        *(int32_t *)at = (int32_t)chance_number(m->chance);
        break;
    case CM_FIELD_FLOAT:
        *(float *)at = chance_real(m->chance);
        break;
    case CM_FIELD_STR:
        *(struct cm_str *)at = new_text(m, *(struct cm_str *)at);
        break;
    case CM_FIELD_MESSAGE: {
        void *made = some_message(m, field->message);
        if (!made)
            return false;
        memcpy(at, &made, sizeof made);
        break;
    }
    case CM_FIELD_INT64S:
        change_numbers(m, at);
        break;
    case CM_FIELD_STRS:
        change_texts(m, at);
        break;
    case CM_FIELD_MESSAGES:
        if (!change_messages(m, at, field->message))
            return false;
        break;
    case CM_FIELD_PACKED_VARINT:
        change_packed(m, at, 1);
        break;
    case CM_FIELD_PACKED_4:
        change_packed(m, at, 4);
        break;
    case CM_FIELD_PACKED_8:
        change_packed(m, at, 8);
        break;
    case CM_FIELD_FLOATS:
        return false;
    }
    cm_msg_set(message->msg, f);
    return true;
}

bool mutate_field(struct mutation *m)
{
    if (!m->messages.count)
        return false;
    const struct message *message = &m->messages.items[chance_draw(m->chance, m->messages.count)];
    const int f = (int)chance_draw(m->chance, (size_t)message->info->n_fields);

    if (cm_msg_has(message->msg, f) && message->info->fields[f].kind != CM_FIELD_MESSAGES &&
        chance_percent(m->chance, 15)) {
        cm_msg_clear(message->msg, f);
        return true;
    }
    return change_field(m, message, f);
}
