/* What TrainingInfoProto has no field for, as metadata of the model. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/transfer/hold.h"

#include "convert/saved_item.h"
#include "onnx/tensor_data.h"

/* The first IR version whose graphs and tensors have metadata. */
enum { METADATA_IR = 10, FACT_MAX = 1 << 20 };

/* ---- writing ---- */

void cm_hold_set(struct cm_arena *arena, struct cm_msg *msg, int field, struct cm_entries *entries,
                 const char *key, const struct cm_item *value)
{
    struct cm_entry_proto *entry = NULL;

    for (size_t i = 0; i < entries->count; i++)
        if (cm_str_is(entries->items[i].key, key))
            entry = &entries->items[i];
    if (!entry) {
        struct cm_entry_proto *items =
            CM_NEW_ARRAY(arena, struct cm_entry_proto, entries->count + 1);

        if (entries->count)
            memcpy(items, entries->items, entries->count * sizeof *items);
        entries->items = items;
        entry = &items[entries->count++];
        entry->key = cm_str(key);
        cm_msg_set(&entry->msg, CM_ENTRY_KEY);
        cm_msg_set(msg, field);
    }
    entry->value = cm_item_json(arena, value, 0);
    cm_msg_set(&entry->msg, CM_ENTRY_VALUE);
}

static void set_tensor(struct cm_arena *arena, struct cm_tensor_proto *tensor, const char *key,
                       const struct cm_item *value)
{
    cm_hold_set(arena, &tensor->msg, CM_TENSOR_METADATA_PROPS, &tensor->metadata_props, key, value);
}

void cm_hold_parts(struct cm_arena *arena, struct cm_tensor_proto *tensor,
                   const struct cm_parts *parts)
{
    set_tensor(arena, tensor, CM_HOLD_PREFIX "parts", cm_parts_item(arena, parts));
}

static void put_text(struct cm_arena *arena, struct cm_item *map, const char *key,
                     struct cm_str text)
{
    if (text.size)
        cm_item_put(arena, map, key, cm_item_text(arena, text));
}

void cm_hold_slot(struct cm_arena *arena, struct cm_tensor_proto *tensor, struct cm_str of,
                  struct cm_str slot, const char *meaning)
{
    struct cm_item *item = cm_item_new(arena, CM_ITEM_MAP);

    put_text(arena, item, "of", of);
    put_text(arena, item, "slot", slot);
    put_text(arena, item, "meaning", cm_str(meaning));
    set_tensor(arena, tensor, CM_HOLD_PREFIX "slot", item);
}

static struct cm_item *optimizer_item(struct cm_arena *arena, const struct cm_saved *saved,
                                      const struct cm_hold_group *groups)
{
    struct cm_item *item = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_item *list = cm_item_new(arena, CM_ITEM_LIST);

    put_text(arena, item, "name", saved->optimizer);
    put_text(arena, item, "rule", cm_str(cm_rule_name(saved->rule)));
    put_text(arena, item, "arithmetic", cm_str(cm_arithmetic_name(saved->arithmetic)));
    for (size_t i = 0; i < saved->groups.count; i++) {
        const struct cm_saved_group *group = &saved->groups.items[i];
        struct cm_item *map = cm_group_item(arena, &group->settings);

        cm_item_put(arena, map, "names",
                    cm_item_texts(arena, group->names.items, group->names.count));
        if (groups)
            cm_item_put(arena, map, "initializers",
                        cm_item_texts(arena, groups[i].initializers, groups[i].count));
        if (group->said)
            cm_item_put(arena, map, "said", group->said);
        cm_item_append(arena, list, map);
    }
    cm_item_put(arena, item, "groups", list);
    if (!isnan(saved->clip.limit)) {
        struct cm_item *clip = cm_item_new(arena, CM_ITEM_MAP);

        put_text(arena, clip, "kind", cm_str(cm_clip_name(saved->clip.kind)));
        cm_item_put(arena, clip, "limit", cm_item_real(arena, saved->clip.limit));
        cm_item_put(arena, item, "clip", clip);
    }
    if (saved->accumulate)
        cm_item_put(arena, item, "accumulate", cm_item_int(arena, saved->accumulate));
    if (!isnan(saved->loss_scale))
        cm_item_put(arena, item, "loss_scale", cm_item_real(arena, saved->loss_scale));
    if (saved->ranks)
        cm_item_put(arena, item, "ranks", cm_item_int(arena, saved->ranks));
    return item;
}

static struct cm_item *facts_item(struct cm_arena *arena, const struct cm_saved *saved)
{
    struct cm_item *item = cm_item_new(arena, CM_ITEM_MAP);

    for (size_t i = 0; i < saved->facts.count; i++) {
        const struct cm_saved_fact *fact = &saved->facts.items[i];
        const struct cm_str text = cm_item_json(arena, fact->value, FACT_MAX);

        cm_item_set(arena, item, cm_item_text(arena, fact->key),
                    text.size < FACT_MAX ? fact->value : cm_item_text(arena, text));
    }
    return item;
}

static const char *const knowns[] = {"unknown", "none", "known"};

static struct cm_item *schedule_item(struct cm_arena *arena, const struct cm_saved *saved)
{
    struct cm_item *item = cm_schedule_item(arena, &saved->schedule, saved->groups.count);

    put_text(arena, item, "name", saved->schedule_name);
    put_text(arena, item, "known", cm_str(knowns[saved->schedule_known]));
    return item;
}

static enum cm_status algorithm_of(const struct cm_model_file *file, size_t entry,
                                   struct cm_graph_proto **out, struct cm_error *err)
{
    *out = entry < file->model.training_info.count
               ? file->model.training_info.items[entry].algorithm
               : NULL;
    return *out ? CM_OK : cm_fail(err, CM_BAD_ARGUMENT, "the model has no training %zu", entry);
}

enum cm_status cm_hold_training(struct cm_model_file *file, size_t entry,
                                const struct cm_saved *saved, const struct cm_hold_group *groups,
                                struct cm_str step, struct cm_error *err)
{
    struct cm_arena *arena = file->arena;
    struct cm_item *source = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_item *position = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_graph_proto *graph;

    CM_TRY(algorithm_of(file, entry, &graph, err));
    if (file->model.ir_version < METADATA_IR) {
        file->model.ir_version = METADATA_IR;
        cm_msg_set(&file->model.msg, CM_MODEL_IR_VERSION);
    }
    put_text(arena, source, "system", cm_str(saved->system));
    put_text(arena, source, "format", cm_str(saved->format));
    put_text(arena, source, "version", saved->version);
    put_text(arena, position, "step", step);
    if (saved->epoch >= 0)
        cm_item_put(arena, position, "epoch", cm_item_int(arena, saved->epoch));
    const struct {
        const char *key;
        struct cm_item *item;
    } rows[] = {
        {CM_HOLD_PREFIX "source", source},
        {CM_HOLD_PREFIX "optimizer", optimizer_item(arena, saved, groups)},
        {CM_HOLD_PREFIX "schedule", schedule_item(arena, saved)},
        {CM_HOLD_PREFIX "position", position},
        {CM_HOLD_PREFIX "facts", facts_item(arena, saved)},
    };
    for (size_t i = 0; i < CM_COUNT(rows); i++)
        if (rows[i].item->entries.count)
            cm_hold_set(arena, &graph->msg, CM_GRAPH_METADATA_PROPS, &graph->metadata_props,
                        rows[i].key, rows[i].item);
    return CM_OK;
}

/* ---- tensors that no node reads ---- */

static enum cm_status entry_item(struct cm_arena *arena, const struct cm_entries *entries,
                                 const char *key, struct cm_item **out, struct cm_error *err)
{
    const struct cm_str text = cm_entries_find(entries, key);

    *out = NULL;
    if (!text.size)
        return CM_OK;
    return cm_error_context(err, cm_item_parse_json(arena, text, out, err), "%s", key);
}

enum cm_status cm_hold_keep(struct cm_model_file *file, size_t entry,
                            const struct cm_saved_entry *what, const struct cm_contents *contents,
                            struct cm_error *err)
{
    struct cm_arena *arena = file->arena;
    struct cm_item *list, *map = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_graph_proto *graph;

    CM_TRY(algorithm_of(file, entry, &graph, err));
    CM_TRY(entry_item(arena, &graph->metadata_props, CM_HOLD_PREFIX "kept", &list, err));
    if (!list)
        list = cm_item_new(arena, CM_ITEM_LIST);
    const struct cm_str name = cm_arena_printf(arena, "training.kept.%zu", list->entries.count);
    struct cm_tensor_proto *tensor = CM_LIST_ADD(arena, &graph->initializer);
    cm_msg_set(&graph->msg, CM_GRAPH_INITIALIZER);
    tensor->name = name;
    cm_msg_set(&tensor->msg, CM_TENSOR_NAME);
    CM_TRY(cm_tensor_proto_store_later(tensor, arena, what->tensor->dtype, &what->tensor->shape,
                                       contents, err));
    put_text(arena, map, "name", what->name);
    put_text(arena, map, "role", cm_str(cm_role_name(what->role)));
    put_text(arena, map, "slot", what->slot);
    put_text(arena, map, "meaning", cm_str(what->meaning));
    put_text(arena, map, "initializer", name);
    cm_item_append(arena, list, map);
    cm_hold_set(arena, &graph->msg, CM_GRAPH_METADATA_PROPS, &graph->metadata_props,
                CM_HOLD_PREFIX "kept", list);
    return CM_OK;
}

enum cm_status cm_hold_read_kept(struct cm_arena *arena, const struct cm_model_file *file,
                                 size_t entry, struct cm_held_tensor **out, size_t *count,
                                 struct cm_error *err)
{
    struct cm_graph_proto *graph;
    struct cm_item *list;

    *count = 0;
    CM_TRY(algorithm_of(file, entry, &graph, err));
    CM_TRY(entry_item(arena, &graph->metadata_props, CM_HOLD_PREFIX "kept", &list, err));
    *out = CM_NEW_ARRAY(arena, struct cm_held_tensor, cm_item_count(list) + 1);
    for (size_t i = 0; i < cm_item_count(list); i++) {
        const struct cm_item *map = cm_item_at(list, i);
        const int role = cm_role_named(cm_item_get_text(map, "role"));
        const struct cm_str name = cm_item_get_text(map, "initializer");
        const struct cm_tensor_proto *tensor = NULL;

        for (size_t k = graph->initializer.count; !tensor && k > 0; k--)
            if (cm_str_equal(graph->initializer.items[k - 1].name, name))
                tensor = &graph->initializer.items[k - 1];
        if (!tensor || role < 0)
            return cm_fail(err, CM_BAD_MODEL,
                           CM_HOLD_PREFIX "kept: entry %zu names the initializer '%.*s', %s", i,
                           CM_STR_FMT(name), tensor ? "and no role" : "which is not there");
        (*out)[(*count)++] = (struct cm_held_tensor){.role = (enum cm_saved_role)role,
                                                     .name = cm_item_get_text(map, "name"),
                                                     .slot = cm_item_get_text(map, "slot"),
                                                     .meaning = cm_item_get_text(map, "meaning"),
                                                     .tensor = tensor};
    }
    return CM_OK;
}

/* ---- reading ---- */

static enum cm_status read_optimizer(struct cm_saved *saved, const struct cm_item *item,
                                     struct cm_error *err)
{
    const struct cm_item *groups = cm_item_get(item, "groups"), *clip = cm_item_get(item, "clip");

    saved->has_optimizer = true;
    saved->optimizer = cm_item_get_text(item, "name");
    const int rule = cm_rule_named(cm_item_get_text(item, "rule"));
    const int arithmetic = cm_arithmetic_named(cm_item_get_text(item, "arithmetic"));
    if (rule < 0 || arithmetic < 0)
        return cm_fail(err, CM_BAD_MODEL,
                       CM_HOLD_PREFIX "optimizer: there is no rule '%.*s' of '%.*s'",
                       CM_STR_FMT(cm_item_get_text(item, "rule")),
                       CM_STR_FMT(cm_item_get_text(item, "arithmetic")));
    saved->rule = (enum cm_update_rule)rule;
    saved->arithmetic = (enum cm_arithmetic)arithmetic;
    for (size_t i = 0; i < cm_item_count(groups); i++) {
        const struct cm_item *map = cm_item_at(groups, i), *names = cm_item_get(map, "names");
        struct cm_saved_group *group = cm_saved_add_group(saved);
        struct cm_str name;

        CM_TRY(cm_error_context(err, cm_group_from_item(map, &group->settings, err),
                                CM_HOLD_PREFIX "optimizer: group %zu", i));
        group->said = cm_item_get(map, "said");
        for (size_t k = 0; k < cm_item_count(names); k++)
            if (cm_item_is_text(cm_item_at(names, k), &name))
                *CM_PUSH(saved->arena, &group->names) = name;
    }
    if (clip) {
        const int kind = cm_clip_named(cm_item_get_text(clip, "kind"));

        if (kind < 0 || !cm_item_is_real(cm_item_get(clip, "limit"), &saved->clip.limit))
            return cm_fail(err, CM_BAD_MODEL, CM_HOLD_PREFIX "optimizer: clip is not understood");
        saved->clip.kind = (enum cm_clip_kind)kind;
    }
    (void)cm_item_is_int(cm_item_get(item, "accumulate"), &saved->accumulate);
    (void)cm_item_is_int(cm_item_get(item, "ranks"), &saved->ranks);
    saved->loss_scale = cm_item_get_real(item, "loss_scale", NAN);
    return CM_OK;
}

static enum cm_status read_schedule(struct cm_saved *saved, const struct cm_item *item,
                                    struct cm_error *err)
{
    const struct cm_str known = cm_item_get_text(item, "known");

    saved->schedule_name = cm_item_get_text(item, "name");
    const int place = cm_str_place(known, knowns, CM_COUNT(knowns));
    if (place >= 0)
        saved->schedule_known = (enum cm_schedule_known)place;
    return cm_error_context(
        err, cm_schedule_from_item(saved->arena, item, saved->groups.count, &saved->schedule, err),
        CM_HOLD_PREFIX "schedule");
}

/* The number that a state variable of the algorithm, or of the graph, holds. */
static bool state_number(const struct cm_model_file *file, const struct cm_graph_proto *graph,
                         struct cm_str name, int64_t *out)
{
    for (size_t i = 0; i < graph->initializer.count; i++) {
        const struct cm_tensor_proto *proto = &graph->initializer.items[i];
        struct cm_tensor tensor;

        if (!cm_str_equal(proto->name, name) ||
            cm_tensor_proto_load(proto, file->files, &tensor, NULL))
            continue;
        const bool fits =
            cm_tensor_count(&tensor) == 1 && cm_dtype_info(tensor.type)->kind == CM_CLASS_SIGNED;
        if (fits)
            *out = cm_tensor_int(&tensor, 0);
        cm_tensor_drop(&tensor);
        return fits;
    }
    return false;
}

enum cm_status cm_hold_read(struct cm_arena *arena, const struct cm_model_file *file, size_t entry,
                            struct cm_saved **out, struct cm_error *err)
{
    struct cm_saved *saved = *out = cm_saved_new(arena, file->path);
    struct cm_graph_proto *graph;
    struct cm_item *item;

    CM_TRY(algorithm_of(file, entry, &graph, err));
    const struct cm_entries *entries = &graph->metadata_props;
    CM_TRY(entry_item(arena, entries, CM_HOLD_PREFIX "source", &item, err));
    if (item) {
        saved->system = cm_arena_str(arena, cm_item_get_text(item, "system")).data;
        saved->format = cm_arena_str(arena, cm_item_get_text(item, "format")).data;
        saved->version = cm_item_get_text(item, "version");
    }
    CM_TRY(entry_item(arena, entries, CM_HOLD_PREFIX "optimizer", &item, err));
    if (item)
        CM_TRY(read_optimizer(saved, item, err));
    CM_TRY(entry_item(arena, entries, CM_HOLD_PREFIX "schedule", &item, err));
    if (item)
        CM_TRY(read_schedule(saved, item, err));
    CM_TRY(entry_item(arena, entries, CM_HOLD_PREFIX "position", &item, err));
    if (item) {
        (void)cm_item_is_int(cm_item_get(item, "epoch"), &saved->epoch);
        (void)state_number(file, graph, cm_item_get_text(item, "step"), &saved->step);
    }
    CM_TRY(entry_item(arena, entries, CM_HOLD_PREFIX "facts", &item, err));
    for (size_t i = 0; item && i < cm_item_count(item); i++)
        if (item->entries.items[i].key)
            *CM_PUSH(arena, &saved->facts) = (struct cm_saved_fact){
                item->entries.items[i].key->text, item->entries.items[i].value};
    return CM_OK;
}

enum cm_status cm_hold_read_parts(struct cm_arena *arena, const struct cm_tensor_proto *tensor,
                                  struct cm_parts *out, struct cm_error *err)
{
    const int rank = (int)tensor->dims.count;
    struct cm_item *item;

    *out = (struct cm_parts){0};
    CM_TRY(entry_item(arena, &tensor->metadata_props, CM_HOLD_PREFIX "parts", &item, err));
    if (!item) {
        (void)cm_part_add(arena, out, tensor->name, rank, rank);
        return CM_OK;
    }
    return cm_error_context(err, cm_parts_from_item(arena, item, rank, out, err),
                            "'%.*s': " CM_HOLD_PREFIX "parts", CM_STR_FMT(tensor->name));
}

enum cm_status cm_hold_read_slot(struct cm_arena *arena, const struct cm_tensor_proto *tensor,
                                 struct cm_held_slot *out, struct cm_error *err)
{
    struct cm_item *item;

    *out = (struct cm_held_slot){0};
    CM_TRY(entry_item(arena, &tensor->metadata_props, CM_HOLD_PREFIX "slot", &item, err));
    if (item)
        *out = (struct cm_held_slot){cm_item_get_text(item, "of"), cm_item_get_text(item, "slot"),
                                     cm_item_get_text(item, "meaning")};
    return CM_OK;
}

/* ---- inside other formats ---- */

struct cm_item *cm_hold_item(struct cm_arena *arena, const struct cm_saved *saved)
{
    struct cm_item *item = cm_item_new(arena, CM_ITEM_MAP);

    if (saved->has_optimizer) {
        cm_item_put(arena, item, "optimizer", optimizer_item(arena, saved, NULL));
        cm_item_put(arena, item, "schedule", schedule_item(arena, saved));
    }
    return item;
}

enum cm_status cm_hold_recall(struct cm_saved *saved, const struct cm_item *item,
                              struct cm_error *err)
{
    const struct cm_item *optimizer = cm_item_get(item, "optimizer");
    const struct cm_item *schedule = cm_item_get(item, "schedule");

    for (size_t i = 0; i < saved->facts.count; i++) /* it is no news */
        if (cm_str_is(saved->facts.items[i].key, "cameo"))
            saved->facts.items[i] = saved->facts.items[--saved->facts.count];
    if (!optimizer)
        return CM_OK;
    saved->groups.count = 0;
    saved->missing.count = 0;
    CM_TRY(read_optimizer(saved, optimizer, err));
    return schedule ? read_schedule(saved, schedule, err) : CM_OK;
}

struct cm_item *cm_hold_text(struct cm_arena *arena, const struct cm_saved *saved)
{
    return cm_item_text(arena, cm_item_json(arena, cm_hold_item(arena, saved), 0));
}

enum cm_status cm_hold_recall_text(struct cm_saved *saved, const struct cm_item *text,
                                   struct cm_error *err)
{
    struct cm_item *item;
    struct cm_str json;

    if (!cm_item_is_text(text, &json) || cm_item_parse_json(saved->arena, json, &item, NULL))
        return CM_OK;
    return cm_hold_recall(saved, item, err);
}
