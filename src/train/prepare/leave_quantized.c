/* Models that are quantized, or that round their weights as a quantized model will. Rounding has no
 * gradient: training would leave most of the network as it is without saying so. */
// SPDX-License-Identifier: Apache-2.0
#include "train/prepare/trainables.h"

#include "graph/graph.h"

enum { DEPTH_MAX = 16 };

struct finding {
    struct cm_preparation *p;
    struct cm_trainables *list;
    struct cm_map by_value;          /* values to index + 1 in list */
    const struct cm_node *node;      /* the first that reads a tensor .. */
    const struct cm_trainable *held; /* .. which is this one */
    size_t count;                    /* of tensors */
};

static struct cm_str key_of(const cm_value *value)
{
    return (struct cm_str){(const char *)value, sizeof *value};
}

/* The tensor that a value is, or that copies and transposes make it of; NULL: it is computed. */
static struct cm_trainable *tensor_of(const struct finding *f, cm_value value)
{
    for (int depth = 0; value && depth < DEPTH_MAX; depth++) {
        const uint64_t i = cm_map_get(&f->by_value, key_of(&value), 0);
        const struct cm_node *node = cm_value_get(f->p->inference->module, value)->node;

        if (i)
            return &f->list->items[i - 1];
        if (!node || !node->n_inputs || !node->op ||
            !(node->op->values.kept || node->op->values.is_copy))
            return NULL;
        value = node->inputs[0].value;
    }
    return NULL;
}

static const char *words(struct cm_arena *arena, const struct cm_node *node, bool is_scale,
                         bool is_float)
{
    const char *how = is_scale   ? "a scale or zero point of"
                      : is_float ? "it is rounded by"
                                 : "it holds quantized values for";

    return cm_arena_printf(arena, "%s %s", how, node->op->name).data;
}

static void look(struct finding *f, const struct cm_node *node, int k)
{
    struct cm_trainable *one = tensor_of(f, node->inputs[k].value);

    if (!one)
        return;
    const bool is_float = cm_dtype_is_float(one->tensor->data_type);
    const bool is_scale = k > 0 && (is_float || one->tensor->dims.count == 0);
    one->trained = false;
    one->reason = words(f->p->arena, node, is_scale, is_float);
    if (is_scale)
        return;
    f->count++;
    if (!f->held) {
        f->held = one;
        f->node = node;
    }
}

static void refuse(const struct finding *f)
{
    const struct cm_str more =
        f->count > 1 ? cm_arena_printf(f->p->arena, " (tensors like this: %zu)", f->count)
                     : CM_STR("");

    cm_preparation_block(
        f->p,
        "the model is quantized: node '%.*s' (%s) reads '%.*s'%s, and rounding has no gradient; "
        "train the model in floats and quantize it afterwards, or name float tensors with --train",
        CM_STR_FMT(f->node->name), f->node->op->name, CM_STR_FMT(f->held->name), cm_str_text(more));
}

void cm_trainables_leave_quantized(struct cm_preparation *p, struct cm_trainables *list)
{
    struct finding f = {.p = p, .list = list};

    for (size_t i = 0; i < list->count; i++)
        *cm_map_insert(&f.by_value, p->arena, key_of(&list->items[i].value), NULL) = i + 1;
    for (const struct cm_node *node = p->inference->first; node; node = node->next) {
        if (!node->op || !node->op->values.is_quantized)
            continue;
        list->is_quantized = true;
        for (int k = 0; k < node->n_inputs; k++)
            look(&f, node, k);
    }
    if (f.count && !p->train && !p->options->plan)
        refuse(&f);
}
