/* What the framework calls tensors that were taken apart or tied, and how that is shown. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/originals.h"

bool cm_original_has_name(const struct cm_original *original, struct cm_str name)
{
    for (size_t i = 0; i < original->names.count; i++)
        if (cm_str_equal(original->names.items[i], name))
            return true;
    return false;
}

void cm_originals_record(struct cm_arena *arena, struct cm_tensor_proto *tensor, struct cm_str from)
{
    struct cm_entry_proto *entry = CM_NEW(arena, struct cm_entry_proto);

    entry->key = cm_str(cm_folded_key);
    entry->value = cm_arena_printf(arena, "['%.*s']", CM_STR_FMT(from));
    cm_msg_set(&entry->msg, CM_ENTRY_KEY);
    cm_msg_set(&entry->msg, CM_ENTRY_VALUE);
    tensor->metadata_props = (struct cm_entries){entry, 1};
    cm_msg_set(&tensor->msg, CM_TENSOR_METADATA_PROPS);
}

void cm_originals_part(struct cm_originals *originals, struct cm_arena *arena, struct cm_str from,
                       struct cm_str meant, struct cm_str name)
{
    const uint64_t i = cm_map_get(&originals->by_name, from, 0);
    size_t kept = 0;

    if (!i)
        return;
    struct cm_original *whole = &originals->items[i - 1];
    const struct cm_original part = {.folding = whole->folding,
                                     .is_parameter = whole->is_parameter};
    for (size_t k = 0; k < whole->names.count; k++)
        if (!cm_str_equal(whole->names.items[k], meant))
            whole->names.items[kept++] = whole->names.items[k];
    whole->names.count = kept;
    if (cm_map_find(&originals->by_name, name))
        return; /* a copy, which is known by its name */
    struct cm_original *added = CM_PUSH(arena, originals);
    *added = part;
    *CM_PUSH(arena, &added->names) = meant;
    *cm_map_insert(&originals->by_name, arena, name, NULL) = originals->count;
}

void cm_originals_join(struct cm_originals *originals, struct cm_arena *arena, struct cm_str name,
                       struct cm_str to)
{
    const uint64_t i = cm_map_get(&originals->by_name, name, 0);
    const uint64_t k = cm_map_get(&originals->by_name, to, 0);

    if (!i || !k)
        return;
    struct cm_original *joined = &originals->items[k - 1];
    const struct cm_original *gone = &originals->items[i - 1];
    if (gone->names.count && !joined->names.count)
        *CM_PUSH(arena, &joined->names) = to;
    for (size_t n = 0; n < gone->names.count; n++)
        if (!cm_original_has_name(joined, gone->names.items[n]))
            *CM_PUSH(arena, &joined->names) = gone->names.items[n];
    for (size_t n = 0; n < originals->n_recorded; n++)
        if (originals->recorded[n].holder == i)
            originals->recorded[n].holder = k;
    (void)cm_map_remove(&originals->by_name, name);
}

const struct cm_original *cm_originals_find(const struct cm_originals *originals,
                                            struct cm_str name)
{
    const uint64_t i = cm_map_get(&originals->by_name, name, 0);
    const struct cm_original *original = i ? &originals->items[i - 1] : NULL;

    return original && (original->names.count || original->module.size) ? original : NULL;
}

static struct cm_str join_names(struct cm_arena *arena, const struct cm_str_list *names)
{
    size_t size = 0, used = 0;

    for (size_t i = 0; i < names->count; i++)
        size += names->items[i].size + 2;
    char *text = cm_arena_alloc(arena, size + 1);
    for (size_t i = 0; i < names->count; i++) {
        memcpy(text + used, ", ", i ? 2 : 0);
        used += i ? 2 : 0;
        memcpy(text + used, names->items[i].data, names->items[i].size);
        used += names->items[i].size;
    }
    return (struct cm_str){text, used};
}

struct cm_original_texts cm_originals_texts(const struct cm_originals *originals,
                                            struct cm_arena *arena, struct cm_str name)
{
    static const char *const words[] = {[CM_FOLDED_NOT] = "",
                                        [CM_FOLDED_TRANSPOSED] = "transposed",
                                        [CM_FOLDED_UNSQUEEZED] = "unsqueezed",
                                        [CM_FOLDED_GATES] = "gates",
                                        [CM_FOLDED_ROWS] = "rows",
                                        [CM_FOLDED_COMPUTED] = "computed"};
    const struct cm_original *original = cm_originals_find(originals, name);
    const size_t count = original ? original->names.count : 0;

    if (!original || (count == 1 && cm_str_equal(original->names.items[0], name)))
        return (struct cm_original_texts){CM_STR_NONE, CM_STR_NONE};
    if (!count)
        return (struct cm_original_texts){original->module, CM_STR("module")};
    return (struct cm_original_texts){join_names(arena, &original->names),
                                      cm_str(words[original->folding])};
}
