/* What two models are made of, side by side: graphs by the names of values. */
// SPDX-License-Identifier: Apache-2.0
#include "compare/comparison.h"

#include "onnx/type_text.h"

enum { DEPTH_MAX = 30, LISTED_MAX = 8 };

struct comparing {
    struct cm_comparison *found;
    const struct cm_compared *a, *b;
    struct cm_arena *arena; /* of texts that rows copy */
};

static void add(const struct comparing *c, enum cm_compare_kind kind, struct cm_str name)
{
    cm_compare_add(c->found, CM_COMPARE_STRUCTURE, kind, name, NULL, NULL);
}

#define CHANGED(c, name, ...)                                                                      \
    cm_compare_add((c)->found, CM_COMPARE_STRUCTURE, CM_COMPARE_CHANGED, name, NULL, __VA_ARGS__)

static void changed(const struct comparing *c, struct cm_str what, struct cm_str was,
                    struct cm_str is)
{
    if (!cm_str_equal(was, is))
        CHANGED(c, what, "'%.*s' became '%.*s'", CM_STR_FMT(was), CM_STR_FMT(is));
}

/* ---- attributes ---- */

static void compare_graphs(const struct comparing *c, struct cm_str place,
                           const struct cm_outline *a, const struct cm_outline *b, int depth);

static bool same_bytes(const void *a, size_t n, const void *b, size_t m, size_t size)
{
    return n == m && (!n || memcmp(a, b, n * size) == 0);
}

static bool same_texts(const struct cm_strs *a, const struct cm_strs *b)
{
    bool same = a->count == b->count;

    for (size_t i = 0; same && i < a->count; i++)
        same = cm_str_equal(a->items[i], b->items[i]);
    return same;
}

static bool same_types(const struct comparing *c, const struct cm_attribute_proto *a,
                       const struct cm_attribute_proto *b)
{
    bool same = a->type_protos.count == b->type_protos.count && !a->tp == !b->tp &&
                (!a->tp || cm_str_equal(cm_type_text(c->arena, a->tp, ","),
                                        cm_type_text(c->arena, b->tp, ",")));

    for (size_t i = 0; same && i < a->type_protos.count; i++)
        same = cm_str_equal(cm_type_text(c->arena, &a->type_protos.items[i], ","),
                            cm_type_text(c->arena, &b->type_protos.items[i], ","));
    return same;
}

/* Bit for bit: a tensor that cannot be loaded is the same as none. */
static bool same_tensor(const struct comparing *c, const struct cm_tensor_proto *a,
                        const struct cm_tensor_proto *b)
{
    struct cm_tensor x = {0}, y = {0};
    struct cm_difference difference;

    const bool same =
        c->a->load(c->a->arg, a, &x, NULL) == CM_OK &&
        c->b->load(c->b->arg, b, &y, NULL) == CM_OK &&
        cm_tensor_difference(&y, &x, (struct cm_tolerance){0}, &difference, NULL) == CM_OK &&
        !difference.differing;
    cm_tensor_drop(&x);
    cm_tensor_drop(&y);
    return same;
}

static bool same_tensors(const struct comparing *c, const struct cm_attribute_proto *a,
                         const struct cm_attribute_proto *b)
{
    bool same = !a->t == !b->t && a->tensors.count == b->tensors.count;

    if (same && a->t)
        same = same_tensor(c, a->t, b->t);
    for (size_t i = 0; same && i < a->tensors.count; i++)
        same = same_tensor(c, &a->tensors.items[i], &b->tensors.items[i]);
    return same;
}

static size_t graph_count(const struct cm_attribute_proto *a)
{
    return (a->g != NULL) + a->graphs.count;
}

static bool same_attribute(const struct comparing *c, const struct cm_attribute_proto *a,
                           const struct cm_attribute_proto *b)
{
    return a->type == b->type && cm_str_equal(a->ref_attr_name, b->ref_attr_name) && a->i == b->i &&
           memcmp(&a->f, &b->f, sizeof a->f) == 0 && cm_str_equal(a->s, b->s) &&
           same_bytes(a->floats.items, a->floats.count, b->floats.items, b->floats.count,
                      sizeof *a->floats.items) &&
           same_bytes(a->ints.items, a->ints.count, b->ints.items, b->ints.count,
                      sizeof *a->ints.items) &&
           same_texts(&a->strings, &b->strings) && same_types(c, a, b) &&
           graph_count(a) == graph_count(b) && same_tensors(c, a, b);
}

/* "3", "0.5", "'mean'", "[1, 2]", or what kind of thing it is. */
static const char *attribute_text(char *text, size_t size, const struct cm_attribute_proto *a)
{
    size_t used = 0;

    switch (a->type) {
    case CM_ATTR_INT:
        snprintf(text, size, "%lld", (long long)a->i);
        break;
    case CM_ATTR_FLOAT:
        cm_format(text, size, "%.9g", (double)a->f);
        break;
    case CM_ATTR_STRING:
        snprintf(text, size, "'%.*s'", a->s.size < 60 ? (int)a->s.size : 60,
                 a->s.data ? a->s.data : "");
        break;
    case CM_ATTR_INTS:
        used = (size_t)snprintf(text, size, "[");
        for (size_t i = 0; i < a->ints.count && i < LISTED_MAX; i++)
            used += (size_t)snprintf(text + used, size - used, "%s%lld", i ? ", " : "",
                                     (long long)a->ints.items[i]);
        snprintf(text + used, size - used, "%s]", a->ints.count > LISTED_MAX ? ", .." : "");
        break;
    default:
        snprintf(text, size, "%s", a->t || a->tensors.count ? "a tensor" : "another value");
    }
    return text;
}

/* The number of the attribute; the count of them: there is none. */
static size_t find_attribute(const struct cm_node_proto *node, struct cm_str name)
{
    size_t i = 0;

    while (i < node->attribute.count && !cm_str_equal(node->attribute.items[i].name, name))
        i++;
    return i;
}

static void compare_bodies_of(const struct comparing *c, struct cm_str place, struct cm_str name,
                              const struct cm_outline_bodies *a, const struct cm_outline_bodies *b,
                              int depth)
{
    for (size_t g = 0; g < a->count && g < b->count; g++)
        compare_graphs(c,
                       cm_arena_printf(c->arena, "%.*s, %.*s", CM_STR_FMT(place), CM_STR_FMT(name)),
                       a->items[g], b->items[g], depth + 1);
}

static void compare_attributes(const struct comparing *c, struct cm_str place,
                               const struct cm_outline_node *a, const struct cm_outline_node *b,
                               int depth)
{
    const struct cm_node_proto *from = a->proto, *to = b->proto;
    char was[260], is[260];

    for (size_t i = 0; i < from->attribute.count; i++) {
        const struct cm_attribute_proto *x = &from->attribute.items[i];
        const size_t k = find_attribute(to, x->name);

        if (k == to->attribute.count) {
            CHANGED(c, place, "attribute '%.*s' is gone, was %s", CM_STR_FMT(x->name),
                    attribute_text(was, sizeof was, x));
            continue;
        }
        const struct cm_attribute_proto *y = &to->attribute.items[k];
        if (!same_attribute(c, x, y))
            CHANGED(c, place, "attribute '%.*s' is %s, was %s", CM_STR_FMT(x->name),
                    attribute_text(is, sizeof is, y), attribute_text(was, sizeof was, x));
        compare_bodies_of(c, place, x->name, &a->bodies[i], &b->bodies[k], depth);
    }
    for (size_t i = 0; i < to->attribute.count; i++) {
        const struct cm_attribute_proto *y = &to->attribute.items[i];

        if (find_attribute(from, y->name) == from->attribute.count)
            CHANGED(c, place, "attribute '%.*s' is new: %s", CM_STR_FMT(y->name),
                    attribute_text(is, sizeof is, y));
    }
}

/* ---- nodes ---- */

static struct cm_str place_of(const struct comparing *c, struct cm_str around,
                              const struct cm_outline_node *node)
{
    const struct cm_str name = cm_compare_node(c->arena, node);

    return around.size
               ? cm_arena_printf(c->arena, "%.*s, %s", CM_STR_FMT(around), cm_str_text(name))
               : name;
}

static void compare_operands(const struct comparing *c, struct cm_str place, const char *what,
                             const struct cm_strs *a, const struct cm_strs *b)
{
    if (a->count != b->count)
        CHANGED(c, place, "has %zu %ss, had %zu", b->count, what, a->count);
    for (size_t i = 0; i < a->count && i < b->count; i++)
        if (!cm_str_equal(a->items[i], b->items[i]))
            CHANGED(c, place, "%s %zu is '%.*s', was '%.*s'", what, i, CM_STR_FMT(b->items[i]),
                    CM_STR_FMT(a->items[i]));
}

static void compare_nodes(const struct comparing *c, struct cm_str place,
                          const struct cm_outline_node *a, const struct cm_outline_node *b,
                          int depth)
{
    const struct cm_node_proto *from = a->proto, *to = b->proto;
    const size_t before = c->found->count;

    if (!cm_str_equal(from->op_type, to->op_type) || !cm_str_equal(from->domain, to->domain))
        CHANGED(c, place, "operator is %.*s, was %.*s", CM_STR_FMT(to->op_type),
                CM_STR_FMT(from->op_type));
    if (!cm_str_equal(from->name, to->name))
        CHANGED(c, place, "name is '%.*s'", CM_STR_FMT(to->name));
    compare_operands(c, place, "input", &from->input, &to->input);
    compare_operands(c, place, "output", &from->output, &to->output);
    compare_attributes(c, place, a, b, depth);
    c->found->differing[CM_COMPARE_STRUCTURE] += c->found->count > before;
}

/* The node of graph that makes the first result of node. */
static const struct cm_outline_node *counterpart(const struct cm_outline *graph,
                                                 const struct cm_outline_node *node)
{
    const struct cm_strs *outputs = &node->proto->output;

    for (size_t i = 0; i < outputs->count; i++) {
        const struct cm_outline_value *value =
            outputs->items[i].size ? cm_outline_find(graph, outputs->items[i]) : NULL;
        if (value && value->maker && value->maker->graph == graph)
            return value->maker;
    }
    return NULL;
}

static void compare_graphs(const struct comparing *c, struct cm_str place,
                           const struct cm_outline *a, const struct cm_outline *b, int depth)
{
    size_t *compared = &c->found->compared[CM_COMPARE_STRUCTURE];
    size_t *differing = &c->found->differing[CM_COMPARE_STRUCTURE];

    if (depth > DEPTH_MAX)
        return;
    bool *met = CM_NEW_ARRAY(c->arena, bool, b->node_count);
    for (size_t i = 0; i < a->node_count; i++) {
        const struct cm_outline_node *node = &a->nodes[i], *other = counterpart(b, node);
        const struct cm_str at = place_of(c, place, node);

        ++*compared;
        if (other && !met[other->index]) {
            met[other->index] = true;
            compare_nodes(c, at, node, other, depth);
        } else {
            ++*differing;
            add(c, CM_COMPARE_REMOVED, at);
        }
    }
    for (size_t i = 0; i < b->node_count; i++)
        if (!met[i]) {
            ++*compared;
            ++*differing;
            add(c, CM_COMPARE_ADDED, place_of(c, place, &b->nodes[i]));
        }
}

/* ---- the model around them ---- */

static void compare_ends(const struct comparing *c, const char *what,
                         const struct cm_value_infos *a, const struct cm_value_infos *b)
{
    for (size_t i = 0; i < a->count; i++) {
        const struct cm_value_info_proto *value = &a->items[i];
        const struct cm_value_info_proto *other = cm_value_infos_find(b, value->name);
        const struct cm_str place =
            cm_arena_printf(c->arena, "%s '%.*s'", what, CM_STR_FMT(value->name));

        if (other)
            changed(c, place, cm_type_text(c->arena, value->type, ","),
                    cm_type_text(c->arena, other->type, ","));
        else
            add(c, CM_COMPARE_REMOVED, place);
    }
    for (size_t i = 0; i < b->count; i++) {
        const struct cm_value_info_proto *value = &b->items[i];

        if (!cm_value_infos_find(a, value->name))
            cm_compare_add(c->found, CM_COMPARE_STRUCTURE, CM_COMPARE_ADDED,
                           cm_arena_printf(c->arena, "%s '%.*s'", what, CM_STR_FMT(value->name)),
                           NULL, "%.*s", CM_STR_FMT(cm_type_text(c->arena, value->type, ",")));
    }
}

static int64_t opset_of(const struct cm_model_proto *model, struct cm_str domain)
{
    for (size_t i = 0; i < model->opset_import.count; i++)
        if (cm_str_equal(model->opset_import.items[i].domain, domain))
            return model->opset_import.items[i].version;
    return 0;
}

static void compare_opsets(const struct comparing *c, const struct cm_model_proto *a,
                           const struct cm_model_proto *b, bool other_way)
{
    for (size_t i = 0; i < a->opset_import.count; i++) {
        const struct cm_str domain = a->opset_import.items[i].domain;
        const int64_t was = a->opset_import.items[i].version, is = opset_of(b, domain);
        const struct cm_str place = cm_arena_printf(
            c->arena, "opset %.*s", CM_STR_FMT(domain.size ? domain : CM_STR("ai.onnx")));

        if (!is)
            add(c, other_way ? CM_COMPARE_ADDED : CM_COMPARE_REMOVED, place);
        else if (!other_way && is != was)
            CHANGED(c, place, "%lld became %lld", (long long)was, (long long)is);
    }
}

static void compare_metadata(const struct comparing *c, const struct cm_entries *a,
                             const struct cm_entries *b)
{
    for (size_t i = 0; i < a->count; i++) {
        const struct cm_entry_proto *other = cm_entries_get(b, a->items[i].key);
        const struct cm_str place =
            cm_arena_printf(c->arena, "metadata '%.*s'", CM_STR_FMT(a->items[i].key));

        if (other)
            changed(c, place, a->items[i].value, other->value);
        else
            add(c, CM_COMPARE_REMOVED, place);
    }
    for (size_t i = 0; i < b->count; i++)
        if (!cm_entries_get(a, b->items[i].key))
            cm_compare_add(
                c->found, CM_COMPARE_STRUCTURE, CM_COMPARE_ADDED,
                cm_arena_printf(c->arena, "metadata '%.*s'", CM_STR_FMT(b->items[i].key)), NULL,
                "'%.*s'", CM_STR_FMT(b->items[i].value));
}

/* Bodies by their number: functions and entries of training info keep their order. */
static void compare_bodies(const struct comparing *c, const char *what, struct cm_outline *const *a,
                           size_t n, struct cm_outline *const *b, size_t m)
{
    if (n != m)
        CHANGED(c, cm_str(what), "there are %zu, were %zu", m, n);
    for (size_t i = 0; i < n && i < m; i++) {
        const struct cm_str place = cm_arena_printf(c->arena, "%s %zu", what, i);

        if (a[i] && b[i])
            compare_graphs(c, place, a[i], b[i], 0);
        else if (a[i] || b[i])
            add(c, a[i] ? CM_COMPARE_REMOVED : CM_COMPARE_ADDED, place);
    }
}

void cm_compare_structure(struct cm_comparison *found, const struct cm_compared *a,
                          const struct cm_compared *b)
{
    static const struct cm_value_infos none = {0};
    const struct comparing c = {found, a, b, found->scratch};
    const struct cm_model_proto *x = a->model, *y = b->model;
    const struct cm_graph_proto *of_x = x->graph, *of_y = y->graph;

    if (x->ir_version != y->ir_version)
        CHANGED(&c, CM_STR("IR version"), "%lld became %lld", (long long)x->ir_version,
                (long long)y->ir_version);
    changed(&c, CM_STR("producer"), x->producer_name, y->producer_name);
    changed(&c, CM_STR("producer version"), x->producer_version, y->producer_version);
    changed(&c, CM_STR("graph name"), of_x ? of_x->name : CM_STR_NONE,
            of_y ? of_y->name : CM_STR_NONE);
    compare_opsets(&c, x, y, false);
    compare_opsets(&c, y, x, true);
    compare_ends(&c, "input", of_x ? &of_x->input : &none, of_y ? &of_y->input : &none);
    compare_ends(&c, "output", of_x ? &of_x->output : &none, of_y ? &of_y->output : &none);
    if (a->outlines->main && b->outlines->main)
        compare_graphs(&c, CM_STR_NONE, a->outlines->main, b->outlines->main, 0);
    compare_bodies(&c, "function", a->outlines->functions, x->functions.count,
                   b->outlines->functions, y->functions.count);
    compare_bodies(&c, "initialization of training info", a->outlines->initializations,
                   x->training_info.count, b->outlines->initializations, y->training_info.count);
    compare_bodies(&c, "algorithm of training info", a->outlines->algorithms,
                   x->training_info.count, b->outlines->algorithms, y->training_info.count);
    compare_metadata(&c, &x->metadata_props, &y->metadata_props);
}
