/* The graph of Python's objects in a TensorFlow checkpoint: which object has which others under
 * which names, and under which key each variable is stored. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/byte_buffer.h"
#include "convert/frameworks/keras/bundle.h"

enum { PATH_MAX_SIZE = 1000 };

/* ---- reading ---- */

bool cm_bundle_read_fields(struct cm_str message, struct cm_bundle_fields *out)
{
    struct cm_wire at = cm_wire_over(message);
    struct cm_wire_field field;

    *out = (struct cm_bundle_fields){0};
    while (at.at < at.end) {
        if (cm_wire_next(&at, &field))
            return false;
        if (field.number < CM_COUNT(out->numbers) && field.type == CM_WIRE_VARINT)
            out->numbers[field.number] = field.value;
        else if (field.number < CM_COUNT(out->texts) && field.type == CM_WIRE_BYTES)
            out->texts[field.number] = cm_bundle_field_text(&field);
    }
    return true;
}

static bool read_node(struct cm_arena *arena, struct cm_str message, size_t count,
                      struct cm_bundle_node *node)
{
    struct cm_wire at = cm_wire_over(message);
    struct cm_wire_field field;
    struct cm_bundle_fields small;

    while (at.at < at.end) {
        if (cm_wire_next(&at, &field))
            return false;
        if (field.type != CM_WIRE_BYTES || field.number < 1 || field.number > 3)
            continue;
        if (!cm_bundle_read_fields(cm_bundle_field_text(&field), &small))
            return false;
        const uint64_t *id = small.numbers;
        if (field.number == 1) {
            if (id[1] >= count)
                return false;
            *CM_PUSH(arena, &node->children) =
                (struct cm_bundle_child){small.texts[2], (size_t)id[1]};
        } else if (field.number == 2 && cm_str_is(small.texts[1], "VARIABLE_VALUE")) {
            node->full_name = small.texts[2];
            node->key = small.texts[3];
        } else if (field.number == 3) {
            if (id[1] >= count || id[3] >= count)
                return false;
            *CM_PUSH(arena, &node->slots) =
                (struct cm_bundle_slot){(size_t)id[1], (size_t)id[3], small.texts[2]};
        }
    }
    return true;
}

static void set_path(struct cm_arena *arena, const struct cm_bundle_node *above,
                     const struct cm_bundle_child *child, struct cm_bundle_node *node)
{
    if (above->path.size == 0)
        node->path = child->name;
    else if (above->path.size + child->name.size < PATH_MAX_SIZE)
        node->path =
            cm_arena_printf(arena, "%.*s/%.*s", CM_STR_ALL(above->path), CM_STR_ALL(child->name));
    else
        node->path = above->path;
}

/* Breadth first, so that each object gets its shortest path. */
static void find_paths(struct cm_arena *arena, struct cm_bundle_graph *graph)
{
    size_t *queue = CM_NEW_ARRAY(arena, size_t, graph->count), done = 0, seen = 1;

    graph->nodes[0].is_reached = true;
    while (done < seen) {
        const struct cm_bundle_node *above = &graph->nodes[queue[done++]];

        for (size_t i = 0; i < above->children.count; i++) {
            const struct cm_bundle_child *child = &above->children.items[i];
            struct cm_bundle_node *node = &graph->nodes[child->node];

            if (node->is_reached)
                continue;
            node->is_reached = true;
            set_path(arena, above, child, node);
            queue[seen++] = child->node;
        }
    }
}

enum cm_status cm_bundle_graph_parse(struct cm_arena *arena, struct cm_str bytes,
                                     struct cm_bundle_graph *out, struct cm_error *err)
{
    struct {
        CM_ARRAY(struct cm_str);
    } nodes = {0};
    struct cm_wire at = cm_wire_over(bytes);
    struct cm_wire_field field;

    while (at.at < at.end) {
        if (cm_wire_next(&at, &field))
            return cm_fail(err, CM_BAD_MODEL, "its graph of objects is broken");
        if (field.number == 1 && field.type == CM_WIRE_BYTES)
            *CM_PUSH(arena, &nodes) = cm_bundle_field_text(&field);
    }
    if (nodes.count == 0)
        return cm_fail(err, CM_BAD_MODEL, "its graph of objects is empty");
    out->count = nodes.count;
    out->nodes = CM_NEW_ARRAY(arena, struct cm_bundle_node, nodes.count);
    for (size_t i = 0; i < nodes.count; i++)
        if (!read_node(arena, nodes.items[i], nodes.count, &out->nodes[i]))
            return cm_fail(err, CM_BAD_MODEL, "object %zu of its graph of objects is broken", i);
    find_paths(arena, out);
    return CM_OK;
}

const struct cm_bundle_node *cm_bundle_child(const struct cm_bundle_graph *graph,
                                             const struct cm_bundle_node *node, const char *name)
{
    for (size_t i = 0; i < node->children.count; i++)
        if (cm_str_is(node->children.items[i].name, name))
            return &graph->nodes[node->children.items[i].node];
    return NULL;
}

/* ---- writing ---- */

static struct cm_str encode_node(struct cm_arena *arena, const struct cm_bundle_node *node)
{
    struct cm_bytes out = {.arena = arena};

    for (size_t i = 0; i < node->children.count; i++) {
        const struct cm_bundle_child *child = &node->children.items[i];
        struct cm_bytes part = {.arena = arena};

        if (child->node)
            cm_bytes_field(&part, 1, child->node);
        cm_bytes_field_text(&part, 2, child->name);
        cm_bytes_field_text(&out, 1, cm_bytes_str(&part));
    }
    if (node->key.size) {
        struct cm_bytes part = {.arena = arena};

        cm_bytes_field_text(&part, 1, CM_STR("VARIABLE_VALUE"));
        cm_bytes_field_text(&part, 2, node->full_name);
        cm_bytes_field_text(&part, 3, node->key);
        cm_bytes_field_text(&out, 2, cm_bytes_str(&part));
    }
    for (size_t i = 0; i < node->slots.count; i++) {
        const struct cm_bundle_slot *slot = &node->slots.items[i];
        struct cm_bytes part = {.arena = arena};

        cm_bytes_field(&part, 1, slot->weight);
        cm_bytes_field_text(&part, 2, slot->name);
        cm_bytes_field(&part, 3, slot->slot);
        cm_bytes_field_text(&out, 3, cm_bytes_str(&part));
    }
    return cm_bytes_str(&out);
}

struct cm_str cm_bundle_graph_encode(struct cm_arena *arena, const struct cm_bundle_graph *graph)
{
    struct cm_bytes out = {.arena = arena};

    for (size_t i = 0; i < graph->count; i++)
        cm_bytes_field_text(&out, 1, encode_node(arena, &graph->nodes[i]));
    return cm_bytes_str(&out);
}

/* ---- as a fact ---- */

const struct cm_item *cm_bundle_graph_item(struct cm_arena *arena,
                                           const struct cm_bundle_graph *graph)
{
    struct cm_item *list = cm_item_new(arena, CM_ITEM_LIST);

    for (size_t i = 0; i < graph->count; i++) {
        const struct cm_bundle_node *node = &graph->nodes[i];
        struct cm_item *item = cm_item_new(arena, CM_ITEM_MAP);

        if (node->children.count) {
            struct cm_item *children = cm_item_new(arena, CM_ITEM_MAP);
            for (size_t c = 0; c < node->children.count; c++)
                cm_item_set(arena, children, cm_item_text(arena, node->children.items[c].name),
                            cm_item_int(arena, (int64_t)node->children.items[c].node));
            cm_item_put(arena, item, "children", children);
        }
        if (node->key.size) {
            cm_item_put(arena, item, "key", cm_item_text(arena, node->key));
            cm_item_put(arena, item, "full_name", cm_item_text(arena, node->full_name));
        }
        if (node->slots.count) {
            struct cm_item *slots = cm_item_new(arena, CM_ITEM_LIST);
            for (size_t s = 0; s < node->slots.count; s++) {
                struct cm_item *slot = cm_item_new(arena, CM_ITEM_LIST);
                cm_item_append(arena, slot,
                               cm_item_int(arena, (int64_t)node->slots.items[s].weight));
                cm_item_append(arena, slot, cm_item_text(arena, node->slots.items[s].name));
                cm_item_append(arena, slot, cm_item_int(arena, (int64_t)node->slots.items[s].slot));
                cm_item_append(arena, slots, slot);
            }
            cm_item_put(arena, item, "slots", slots);
        }
        cm_item_append(arena, list, item);
    }
    return list;
}

static bool node_number(const struct cm_item *item, size_t count, size_t *out)
{
    int64_t number;

    if (!cm_item_is_int(item, &number) || number < 0 || (uint64_t)number >= count)
        return false;
    *out = (size_t)number;
    return true;
}

static bool node_from_item(struct cm_arena *arena, const struct cm_item *item, size_t count,
                           struct cm_bundle_node *node)
{
    const struct cm_item *children = cm_item_get(item, "children");
    const struct cm_item *slots = cm_item_get(item, "slots");

    node->key = cm_item_get_text(item, "key");
    node->full_name = cm_item_get_text(item, "full_name");
    for (size_t i = 0; i < cm_item_count(children); i++) {
        const struct cm_item_entry *entry = &children->entries.items[i];
        struct cm_bundle_child *child = CM_PUSH(arena, &node->children);

        if (!cm_item_is_text(entry->key, &child->name) ||
            !node_number(entry->value, count, &child->node))
            return false;
    }
    for (size_t i = 0; i < cm_item_count(slots); i++) {
        const struct cm_item *entry = cm_item_at(slots, i);
        struct cm_bundle_slot *slot = CM_PUSH(arena, &node->slots);

        if (!node_number(cm_item_at(entry, 0), count, &slot->weight) ||
            !cm_item_is_text(cm_item_at(entry, 1), &slot->name) ||
            !node_number(cm_item_at(entry, 2), count, &slot->slot))
            return false;
    }
    return true;
}

bool cm_bundle_graph_from_item(struct cm_arena *arena, const struct cm_item *item,
                               struct cm_bundle_graph *out)
{
    if (!item || item->kind != CM_ITEM_LIST || cm_item_count(item) == 0)
        return false;
    out->count = cm_item_count(item);
    out->nodes = CM_NEW_ARRAY(arena, struct cm_bundle_node, out->count);
    for (size_t i = 0; i < out->count; i++)
        if (!node_from_item(arena, cm_item_at(item, i), out->count, &out->nodes[i]))
            return false;
    find_paths(arena, out);
    return true;
}
