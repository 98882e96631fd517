/* Is what a model holds of its training what docs/training-information.md says? */
// SPDX-License-Identifier: Apache-2.0
#include "convert/transfer/hold.h"

struct checking {
    struct cm_arena *arena;
    const struct cm_model_file *file;
    const struct cm_graph_proto *algorithm;
    const struct cm_training_proto *training;
    struct cm_map known; /* initializers of the graph and of the algorithm */
    struct cm_findings *findings;
};

/* Keys that begin as ours do. */
static void check_keys(const struct checking *c, const void *subject,
                       const struct cm_entries *entries, const char *const *keys, size_t count)
{
    for (size_t i = 0; i < entries->count; i++) {
        const struct cm_str key = entries->items[i].key;
        bool known = !cm_str_starts(key, CM_HOLD_PREFIX);

        for (size_t k = 0; !known && k < count; k++)
            known = cm_str_is(cm_str_from(key, strlen(CM_HOLD_PREFIX)), keys[k]);
        if (!known)
            cm_findings_judge(c->findings, "TR20", subject, "metadata '%.*s' is not known here",
                              CM_STR_FMT(key));
    }
}

static bool knows(const struct checking *c, struct cm_str name)
{
    return cm_map_find(&c->known, name) != NULL;
}

static void check_groups(const struct checking *c, const struct cm_item *optimizer)
{
    const struct cm_item *groups = cm_item_get(optimizer, "groups");

    for (size_t i = 0; i < cm_item_count(groups); i++) {
        const struct cm_item *names = cm_item_get(cm_item_at(groups, i), "initializers");
        struct cm_str name = CM_STR("");

        for (size_t k = 0; k < cm_item_count(names); k++)
            if (!cm_item_is_text(cm_item_at(names, k), &name) || !knows(c, name))
                cm_findings_judge(c->findings, "TR20", c->algorithm,
                                  CM_HOLD_PREFIX "optimizer: group %zu names '%.*s', which is "
                                                 "not an initializer",
                                  i, CM_STR_FMT(name));
    }
}

static void check_position(const struct checking *c, const struct cm_item *position)
{
    struct cm_str step;
    bool bound = false;

    if (!cm_item_is_text(cm_item_get(position, "step"), &step))
        return;
    for (size_t i = 0; i < c->training->update_binding.count; i++)
        bound = bound || cm_str_equal(c->training->update_binding.items[i].key, step);
    if (!knows(c, step) || !bound)
        cm_findings_judge(c->findings, "TR20", c->algorithm,
                          CM_HOLD_PREFIX "position: the step is said to be in '%.*s', which is %s",
                          CM_STR_FMT(step),
                          knows(c, step) ? "never updated" : "not an initializer");
}

static const struct cm_item *parsed(const struct checking *c, const char *key)
{
    const struct cm_str text = cm_entries_find(&c->algorithm->metadata_props, key);
    struct cm_item *item;

    return text.size && cm_item_parse_json(c->arena, text, &item, NULL) == CM_OK ? item : NULL;
}

static void check_tensor(const struct checking *c, const struct cm_tensor_proto *tensor)
{
    static const char *const keys[] = {"parts", "slot"};
    struct cm_held_slot slot;
    struct cm_parts parts;
    struct cm_error err;

    if (!tensor->metadata_props.count)
        return;
    check_keys(c, tensor, &tensor->metadata_props, keys, CM_COUNT(keys));
    if (cm_hold_read_slot(c->arena, tensor, &slot, &err))
        cm_findings_judge(c->findings, "TR20", tensor, "%s", err.text);
    else if (slot.of.size && !knows(c, slot.of))
        cm_findings_judge(c->findings, "TR20", tensor,
                          CM_HOLD_PREFIX "slot: it is said to belong to '%.*s', which is not an "
                                         "initializer",
                          CM_STR_FMT(slot.of));
    if (cm_hold_read_parts(c->arena, tensor, &parts, &err)) {
        cm_findings_judge(c->findings, "TR20", tensor, "%s", err.text);
        return;
    }
    for (size_t i = 0; i < parts.count; i++)
        for (int d = 0; d < parts.items[i].rank; d++) {
            const int axis = parts.items[i].axes[d];
            const int64_t size = axis < 0 ? 1 : parts.items[i].size[axis];

            if (parts.items[i].at[d] < 0 || parts.items[i].at[d] > tensor->dims.items[d] ||
                size > tensor->dims.items[d] - parts.items[i].at[d])
                cm_findings_judge(c->findings, "TR20", tensor,
                                  CM_HOLD_PREFIX "parts: part %zu reaches beyond axis %d", i, d);
        }
}

static void check_graph(struct checking *c, const struct cm_graph_proto *graph)
{
    for (size_t i = 0; i < graph->initializer.count; i++)
        *cm_map_insert(&c->known, c->arena, graph->initializer.items[i].name, NULL) = 1;
}

void cm_hold_check(struct cm_arena *arena, const struct cm_model_file *file,
                   struct cm_findings *findings)
{
    static const char *const keys[] = {"source",   "optimizer", "schedule",
                                       "position", "facts",     "kept"};
    const struct cm_graph_proto *graph = file->model.graph;

    for (size_t i = 0; graph && i < file->model.training_info.count; i++) {
        const struct cm_training_proto *training = &file->model.training_info.items[i];
        struct checking c = {.arena = arena,
                             .file = file,
                             .training = training,
                             .algorithm = training->algorithm,
                             .findings = findings};
        struct cm_held_tensor *kept;
        struct cm_saved *saved;
        struct cm_error err;
        size_t count;

        if (!c.algorithm)
            continue;
        check_graph(&c, graph);
        check_graph(&c, c.algorithm);
        check_keys(&c, c.algorithm, &c.algorithm->metadata_props, keys, CM_COUNT(keys));
        if (cm_hold_read(arena, file, i, &saved, &err) ||
            cm_hold_read_kept(arena, file, i, &kept, &count, &err))
            cm_findings_judge(c.findings, "TR20", c.algorithm, "%s", err.text);
        check_groups(&c, parsed(&c, CM_HOLD_PREFIX "optimizer"));
        check_position(&c, parsed(&c, CM_HOLD_PREFIX "position"));
        for (size_t k = 0; k < graph->initializer.count; k++)
            check_tensor(&c, &graph->initializer.items[k]);
        for (size_t k = 0; k < c.algorithm->initializer.count; k++)
            check_tensor(&c, &c.algorithm->initializer.items[k]);
    }
}
