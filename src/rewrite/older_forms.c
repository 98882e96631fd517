/* The forms, one row per operator and version that changed it. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/older_forms.h"

#include "graph/builder.h"
#include "graph/registry.h"

/* The numbers of constant operand i; false where it is not constant or not a short list. */
static bool constant_ints(const struct cm_node *node, int i, struct cm_arena *arena,
                          struct cm_int64s *out)
{
    const struct cm_tensor *tensor = NULL;
    struct cm_error ignored = {0};
    const cm_value value = cm_node_input(node, i);

    if (!value || cm_value_constant(node->module, value, &tensor, &ignored) != CM_OK || !tensor ||
        tensor->shape.rank > 1 || cm_tensor_count(tensor) > CM_MAX_RANK)
        return false;
    out->count = (size_t)cm_tensor_count(tensor);
    out->items = CM_NEW_ARRAY(arena, int64_t, out->count);
    for (size_t k = 0; k < out->count; k++)
        out->items[k] = cm_tensor_int(tensor, (int64_t)k);
    return true;
}

/* The form's attributes without one and, unless NULL, with another. */
static void change_attributes(struct cm_arena *arena, struct cm_node_form *form,
                              const char *without, const struct cm_attribute_proto *with)
{
    struct cm_attribute_proto *list =
        CM_NEW_ARRAY(arena, struct cm_attribute_proto, form->n_attributes + 1);
    size_t count = 0;

    for (size_t i = 0; i < form->n_attributes; i++)
        if (!cm_str_is(form->attributes[i].name, without))
            list[count++] = form->attributes[i];
    if (with)
        list[count++] = *with;
    form->attributes = list;
    form->n_attributes = count;
}

/* Axes were an attribute; none meant all. */
static bool reduce_17(const struct cm_node *node, struct cm_arena *arena, struct cm_node_form *form)
{
    struct cm_int64s axes = {NULL, 0};

    if (cm_node_input(node, 1) && !constant_ints(node, 1, arena, &axes))
        return false;
    if (!axes.count && cm_node_int(node, "noop_with_empty_axes"))
        return false;
    change_attributes(arena, form, "noop_with_empty_axes", NULL);
    if (axes.count) {
        const struct cm_attribute_proto attr = cm_attr_ints(arena, "axes", axes.count, axes.items);
        change_attributes(arena, form, "axes", &attr);
    }
    form->n_inputs = 1;
    return true;
}

/* Equal parts went without saying; a shorter last one was not possible. */
static bool split_17(const struct cm_node *node, struct cm_arena *arena, struct cm_node_form *form)
{
    const struct cm_type *type = cm_value_get(node->module, cm_node_input(node, 0))->fact.type;
    const int64_t parts = node->n_outputs, given = cm_node_int(node, "axis");

    if (cm_node_input(node, 1) || type->rank == CM_RANK_UNKNOWN)
        return false;
    const int64_t axis = given < 0 ? given + type->rank : given;
    if (axis < 0 || axis >= type->rank || !cm_dim_known(type->dims[axis]) ||
        type->dims[axis].value % parts != 0)
        return false;
    change_attributes(arena, form, "num_outputs", NULL);
    return true;
}

/* The axis was an attribute. */
static bool dft_17(const struct cm_node *node, struct cm_arena *arena, struct cm_node_form *form)
{
    struct cm_int64s axis;
    int64_t number = -2; /* what it is without */

    if (cm_node_input(node, 2)) {
        if (!constant_ints(node, 2, arena, &axis) || axis.count != 1)
            return false;
        number = axis.items[0];
    }
    const struct cm_attribute_proto attr = cm_attr_int(arena, "axis", number);
    change_attributes(arena, form, "axis", &attr);
    form->n_inputs = cm_node_input(node, 1) ? 2 : 1;
    return true;
}

/* Modes were named for images. */
static bool gridsample_16(const struct cm_node *node, struct cm_arena *arena,
                          struct cm_node_form *form)
{
    static const char *const words[][2] = {{"bilinear", "linear"}, {"bicubic", "cubic"}};
    const struct cm_type *type = cm_value_get(node->module, cm_node_input(node, 0))->fact.type;
    const struct cm_str mode = cm_node_str(node, "mode");

    if (type->rank != 4)
        return false;
    for (size_t i = 0; i < CM_COUNT(words); i++)
        if (cm_str_is(mode, words[i][1])) {
            const struct cm_attribute_proto attr = cm_attr_str(arena, "mode", cm_str(words[i][0]));
            change_attributes(arena, form, "mode", &attr);
        }
    return true;
}

typedef bool older_fn(const struct cm_node *node, struct cm_arena *arena,
                      struct cm_node_form *form);

/* The form that an operator had from a version up to, not including, another. */
static const struct {
    const char *op;
    int from, below;
    older_fn *change;
} forms[] = {
    {"DFT", 17, 20, dft_17},
    {"GridSample", 16, 20, gridsample_16},
    {"ReduceL1", 13, 18, reduce_17},
    {"ReduceL2", 13, 18, reduce_17},
    {"ReduceLogSum", 13, 18, reduce_17},
    {"ReduceLogSumExp", 13, 18, reduce_17},
    {"ReduceMax", 13, 18, reduce_17},
    {"ReduceMean", 13, 18, reduce_17},
    {"ReduceMin", 13, 18, reduce_17},
    {"ReduceProd", 13, 18, reduce_17},
    {"ReduceSumSquare", 13, 18, reduce_17},
    {"Split", 13, 18, split_17},
};

/* Would a node of that form be legal, types included? */
static bool is_legal(const struct cm_node *node, const struct cm_node_form *form, int64_t opset)
{
    const struct cm_schema *schema =
        cm_registry_schema(cm_module_registry(node->module), node->domain, node->op_type, opset);
    struct cm_node as_if = *node;

    as_if.attributes = (struct cm_attribute_proto *)(uintptr_t)form->attributes; /* only read */
    as_if.n_attributes = form->n_attributes;
    as_if.n_inputs = (int)form->n_inputs;
    return schema && cm_node_fits(&as_if, schema);
}

bool cm_older_form(const struct cm_node *node, int64_t opset, struct cm_arena *arena,
                   struct cm_node_form *form)
{
    struct cm_node_form changed = *form;

    if (node->domain.size)
        return false;
    for (size_t i = 0; i < CM_COUNT(forms); i++) {
        if (!cm_str_is(node->op_type, forms[i].op) || opset < forms[i].from ||
            opset >= forms[i].below)
            continue;
        if (!forms[i].change(node, arena, &changed) || !is_legal(node, &changed, opset))
            return false;
        *form = changed;
        return true;
    }
    return false;
}
