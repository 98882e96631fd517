/* Initializers of two models, side by side. */
// SPDX-License-Identifier: Apache-2.0
#include "compare/comparison.h"

/* An initializer as the comparison sees it; of a sparse one, dims are those of the whole. */
struct weight {
    struct cm_str name;
    int32_t type;
    const struct cm_int64s *dims;
    const struct cm_tensor_proto *proto; /* NULL: it is sparse */
};

struct weights {
    CM_ARRAY(struct weight);
    struct cm_map by_name; /* the first of a name */
};

static void add(struct cm_arena *arena, struct weights *list, const struct weight *weight)
{
    bool added;
    uint64_t *first = cm_map_insert(&list->by_name, arena, weight->name, &added);

    if (added)
        *first = list->count;
    *CM_PUSH(arena, list) = *weight;
}

static void add_graph(struct cm_arena *arena, struct weights *list,
                      const struct cm_graph_proto *graph)
{
    for (size_t i = 0; graph && i < graph->initializer.count; i++) {
        const struct cm_tensor_proto *proto = &graph->initializer.items[i];

        add(arena, list, &(struct weight){proto->name, proto->data_type, &proto->dims, proto});
    }
    for (size_t i = 0; graph && i < graph->sparse_initializer.count; i++) {
        const struct cm_sparse_proto *proto = &graph->sparse_initializer.items[i];
        const struct cm_tensor_proto *values = proto->values;

        add(arena, list,
            &(struct weight){values ? values->name : CM_STR_NONE,
                             values ? values->data_type : CM_UNDEFINED, &proto->dims, NULL});
    }
}

static void list_weights(struct cm_arena *arena, const struct cm_model_proto *model,
                         struct weights *out)
{
    add_graph(arena, out, model->graph);
    for (size_t i = 0; i < model->training_info.count; i++)
        add_graph(arena, out, model->training_info.items[i].algorithm);
}

static const struct weight *find(const struct weights *list, struct cm_str name)
{
    const uint64_t *index = cm_map_find(&list->by_name, name);

    return index ? &list->items[*index] : NULL;
}

static const char *type_text(char *text, size_t size, const struct weight *weight)
{
    const enum cm_dtype type =
        cm_dtype_is_valid(weight->type) ? (enum cm_dtype)weight->type : CM_UNDEFINED;
    size_t used = (size_t)snprintf(text, size, "%s[", cm_dtype_name(type));

    for (size_t i = 0; i < weight->dims->count && used + 24 < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", i ? "," : "",
                                 (long long)weight->dims->items[i]);
    snprintf(text + used, size - used, "]");
    return text;
}

static bool same_type(const struct weight *a, const struct weight *b)
{
    return a->type == b->type && !a->proto == !b->proto && a->dims->count == b->dims->count &&
           (!a->dims->count ||
            memcmp(a->dims->items, b->dims->items, a->dims->count * sizeof *a->dims->items) == 0);
}

/* a is the reference. */
static enum cm_status measure(const struct cm_compared *a, const struct weight *of_a,
                              const struct cm_compared *b, const struct weight *of_b,
                              struct cm_tolerance tolerance, struct cm_difference *out,
                              struct cm_error *err)
{
    struct cm_tensor x = {0}, y = {0};

    if (!of_a->proto)
        return cm_fail(err, CM_UNSUPPORTED, "initializer '%.*s' is sparse", CM_STR_FMT(of_a->name));
    enum cm_status status = b->load(b->arg, of_b->proto, &y, err);
    if (status == CM_OK)
        status = a->load(a->arg, of_a->proto, &x, err);
    if (status == CM_OK)
        status = cm_tensor_difference(&y, &x, tolerance, out, err);
    cm_tensor_drop(&x);
    cm_tensor_drop(&y);
    return status;
}

void cm_compare_weights(struct cm_comparison *c, const struct cm_compared *a,
                        const struct cm_compared *b, struct cm_tolerance tolerance)
{
    const enum cm_compare_part part = CM_COMPARE_WEIGHTS;
    size_t *compared = &c->compared[part], *differing = &c->differing[part];
    struct weights of_a = {0}, of_b = {0};

    list_weights(c->scratch, a->model, &of_a);
    list_weights(c->scratch, b->model, &of_b);
    for (size_t i = 0; i < of_a.count; i++) {
        const struct weight *x = &of_a.items[i], *y = find(&of_b, x->name);
        struct cm_difference difference;
        struct cm_error err = {0};
        char was[200], is[200];

        ++*compared;
        if (!y) {
            ++*differing;
            cm_compare_add(c, part, CM_COMPARE_REMOVED, x->name, NULL, NULL);
        } else if (!same_type(x, y)) {
            ++*differing;
            cm_compare_add(c, part, CM_COMPARE_CHANGED, x->name, NULL, "%s became %s",
                           type_text(was, sizeof was, x), type_text(is, sizeof is, y));
        } else if (measure(a, x, b, y, tolerance, &difference, &err) != CM_OK) {
            cm_compare_add(c, part, CM_COMPARE_NOTE, x->name, NULL, "not compared: %s", err.text);
        } else if (difference.differing) {
            ++*differing;
            cm_compare_add(c, part, CM_COMPARE_CHANGED, x->name, &difference, NULL);
        }
    }
    for (size_t i = 0; i < of_b.count; i++)
        if (!find(&of_a, of_b.items[i].name)) {
            ++*compared;
            ++*differing;
            cm_compare_add(c, part, CM_COMPARE_ADDED, of_b.items[i].name, NULL, NULL);
        }
}
