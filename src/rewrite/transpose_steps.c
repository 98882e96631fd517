/* What is done to a Transpose without choosing between places for it. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/transpose_steps.h"

#include "rewrite/pass.h"

enum cm_status cm_transpose_emit(struct cm_transpose_steps *t, struct cm_node *before, cm_value x,
                                 const struct cm_perm *p, cm_value *out)
{
    struct cm_builder build = {.graph = before->graph, .before = before, .err = t->err};

    *out = cm_perm_build(&build, x, p);
    CM_TRY(build.status);
    cm_value_get(t->module, *out)->node->phase = before->phase;
    return CM_OK;
}

/* A constant transposed; *out is 0 where it cannot be. */
enum cm_status cm_transpose_constant(struct cm_transpose_steps *t, struct cm_graph *graph,
                                     const struct cm_tensor *from, const struct cm_perm *p,
                                     cm_value *out)
{
    const size_t bytes = cm_tensor_bytes(from);
    struct cm_tensor tensor;

    *out = 0;
    if (bytes > t->bytes || from->type == CM_STRING || from->shape.rank > p->rank)
        return CM_OK;
    CM_TRY(cm_perm_apply(p, from, &tensor, t->err));
    t->bytes -= bytes;
    *out = cm_graph_add_constant(graph, CM_STR_NONE, &tensor);
    cm_tensor_drop(&tensor);
    return CM_OK;
}

/* Puts value in the place of what node gives; where value cannot have the name of that output of
 * the graph, a copy of it. */
static enum cm_status give_instead(struct cm_transpose_steps *t, struct cm_node *node,
                                   cm_value value)
{
    if (!cm_replace_value(node->graph, node->outputs[0], value)) {
        struct cm_builder build = {.graph = node->graph, .before = node, .err = t->err};
        const cm_value copy =
            cm_build(&build, &(struct cm_emission){.op = "Identity", CM_INPUTS(value)});
        CM_TRY(build.status);
        (void)cm_replace_value(node->graph, node->outputs[0], copy); /* it has just been made */
    }
    cm_graph_remove_node(node);
    return CM_OK;
}

/* A Transpose that moves nothing, of a constant, or of a Transpose. */
static enum cm_status merge_transpose(struct cm_transpose_steps *t, struct cm_node *node)
{
    const struct cm_tensor *constant = NULL;
    struct cm_perm p, first;
    cm_value merged;

    if (!cm_perm_of_node(node, &p))
        return CM_OK;
    const cm_value x = node->inputs[0].value;
    const struct cm_value_def *def = cm_value_get(t->module, x);
    if (cm_perm_is_identity(&p))
        return give_instead(t, node, x);
    CM_TRY(cm_value_constant(t->module, x, &constant, t->err));
    if (constant && !cm_is_output(node->graph, node->outputs[0])) {
        CM_TRY(cm_transpose_constant(t, node->graph, constant, &p, &merged));
        if (merged && cm_replace_value(node->graph, node->outputs[0], merged))
            cm_graph_remove_node(node);
        return CM_OK;
    }
    if (!def->node || def->graph != node->graph || !cm_perm_of_node(def->node, &first) ||
        first.rank != p.rank)
        return CM_OK;
    struct cm_node *before = def->node;
    const struct cm_perm both = cm_perm_compose(&first, &p);
    merged = before->inputs[0].value;
    if (!cm_perm_is_identity(&both))
        CM_TRY(cm_transpose_emit(t, node, merged, &both, &merged));
    CM_TRY(give_instead(t, node, merged));
    if (!cm_value_get(t->module, before->outputs[0])->n_uses)
        cm_graph_remove_node(before);
    return CM_OK;
}

enum cm_status cm_transpose_merge(struct cm_transpose_steps *t, struct cm_graph *graph)
{
    for (struct cm_node *node = graph->first, *next; node; node = next) {
        next = node->next;
        CM_TRY(merge_transpose(t, node));
    }
    return cm_graph_retype(graph, t->err);
}

/* The operand of a Transpose of matrices that computes value; 0 when there is none. */
static cm_value turned_matrix(const struct cm_transpose_steps *t, cm_value value)
{
    const struct cm_node *node = cm_value_get(t->module, value)->node;
    struct cm_perm p;
    return node && cm_perm_of_node(node, &p) && p.rank == 2 && p.axes[0] == 1
               ? node->inputs[0].value
               : 0;
}

/* A product of two matrices: Gemm, or a MatMul that could be one. */
bool cm_is_matrix_product(const struct cm_node *node)
{
    return cm_node_is(node, "Gemm") ||
           (cm_node_is(node, "MatMul") &&
            cm_value_type(node->module, node->inputs[0].value)->rank == 2 &&
            cm_value_type(node->module, node->inputs[1].value)->rank == 2);
}

static const char *const turned_names[] = {"transA", "transB", NULL};

static bool reads_turned(const struct cm_node *product, int i)
{
    return cm_node_is(product, "Gemm") && cm_node_int(product, turned_names[i]);
}

/* A Gemm as the product is but for its operands, in the place of a node. */
static enum cm_status put_gemm(struct cm_transpose_steps *t, const struct cm_node *product,
                               const cm_value *operands, const bool *turned, struct cm_node *node)
{
    struct cm_arena *arena = cm_module_arena(t->module);
    cm_value *inputs;
    struct cm_node_spec spec = cm_spec_like(product, turned_names, 2, 3, &inputs);

    if (!cm_node_is(product, "Gemm")) {
        spec.op_type = CM_STR("Gemm");
        spec.version = spec.original_version = 0;
    }
    spec.phase = node->phase;
    memcpy(inputs, operands, 3 * sizeof *inputs);
    for (int i = 0; i < 2; i++)
        if (turned[i])
            spec.attributes[spec.n_attributes++] = cm_attr_int(arena, turned_names[i], 1);
    struct cm_node *made;
    CM_TRY(cm_graph_add_node(node->graph, node, &spec, &made, t->err));
    if (cm_replace_value(node->graph, node->outputs[0], made->outputs[0]))
        cm_graph_remove_node(node);
    return CM_OK;
}

/* Gemm reads either operand transposed at no cost. */
enum cm_status cm_transpose_into_product(struct cm_transpose_steps *t, struct cm_node *node)
{
    cm_value operands[3] = {cm_node_input(node, 0), cm_node_input(node, 1), cm_node_input(node, 2)};
    bool turned[2], changes = false;

    for (int i = 0; i < 2; i++) {
        const cm_value x = turned_matrix(t, operands[i]);
        turned[i] = reads_turned(node, i) != (x != 0);
        if (x)
            operands[i] = x;
        changes = changes || x;
    }
    return changes ? put_gemm(t, node, operands, turned, node) : CM_OK;
}

/* (A B)^T is B^T A^T: the gradient of weights that a layer reads transposed. */
enum cm_status cm_transpose_of_product(struct cm_transpose_steps *t, struct cm_node *node)
{
    const cm_value value = node->n_outputs ? turned_matrix(t, node->outputs[0]) : 0;
    const struct cm_value_def *def = value ? cm_value_get(t->module, value) : NULL;
    struct cm_node *product = def ? def->node : NULL;

    if (!product || def->n_uses != 1 || product->graph != node->graph ||
        product->phase != node->phase || !cm_is_matrix_product(product) ||
        cm_node_input(product, 2))
        return CM_OK;
    cm_value operands[3] = {cm_node_input(product, 1), cm_node_input(product, 0), 0};
    const bool turned[2] = {!reads_turned(product, 1), !reads_turned(product, 0)};
    CM_TRY(put_gemm(t, product, operands, turned, node));
    if (!cm_value_get(t->module, value)->n_uses)
        cm_graph_remove_node(product);
    return CM_OK;
}

/* A Transpose that leaves the elements in their order becomes a Reshape, which moves none. */
enum cm_status cm_transpose_as_reshape(struct cm_transpose_steps *t, struct cm_node *node)
{
    const struct cm_type *type = cm_value_get(t->module, node->outputs[0])->fact.type;
    int64_t dims[CM_MAX_RANK];
    struct cm_perm p;
    int unknown = 0;

    if (!cm_perm_of_node(node, &p) || type->rank != p.rank || !cm_perm_keeps_order(&p, type))
        return CM_OK;
    for (int a = 0; a < p.rank; a++) {
        if (type->dims[a].value == 0)
            return CM_OK; /* to Reshape that means another thing */
        dims[a] = cm_dim_known(type->dims[a]) ? type->dims[a].value : -1;
        unknown += dims[a] < 0;
    }
    if (unknown > 1)
        return CM_OK;
    struct cm_builder build = {.graph = node->graph, .before = node, .err = t->err};
    const cm_value shape = cm_build_int64s(&build, (size_t)p.rank, dims);
    const cm_value reshaped = cm_build(
        &build, &(struct cm_emission){.op = "Reshape", CM_INPUTS(node->inputs[0].value, shape)});
    CM_TRY(build.status);
    if (cm_replace_value(node->graph, node->outputs[0], reshaped))
        cm_graph_remove_node(node);
    return CM_OK;
}

bool cm_is_shape(const struct cm_node *node)
{
    return cm_node_is(node, "Shape");
}

/* Where only shapes are read of a Transpose, they are read of its operand and put in order. */
enum cm_status cm_transpose_read_shape(struct cm_transpose_steps *t, struct cm_node *node,
                                       const struct cm_perm *p)
{
    const struct cm_value_def *y = cm_value_get(t->module, node->outputs[0]);

    for (const struct cm_use *use = y->uses; use; use = use->next)
        if (!use->node || use->graph != node->graph || !cm_is_shape(use->node))
            return CM_OK;
    while (y->uses) {
        struct cm_node *reader = y->uses->node;
        int64_t axes[CM_MAX_RANK], from = cm_node_int(reader, "start"), to = p->rank;
        size_t count = 0;
        if (cm_node_has_attr(reader, "end"))
            to = cm_node_int(reader, "end");
        from = from < 0 ? from + p->rank : from;
        to = to < 0 ? to + p->rank : to;
        for (int64_t a = from < 0 ? 0 : from; a < to && a < p->rank; a++)
            axes[count++] = p->axes[a];
        struct {
            struct cm_builder build;
        } b = {{.graph = reader->graph, .before = reader, .err = t->err}};
        const cm_value shape = cm_emit(&b, "Shape", node->inputs[0].value);
        const cm_value order = cm_build_int64s(&b.build, count, axes);
        const cm_value sizes = cm_emit(&b, "Gather", shape, order);
        CM_TRY(b.build.status);
        (void)cm_replace_value(reader->graph, reader->outputs[0],
                               sizes); /* it has just been made */
        cm_graph_remove_node(reader);
    }
    return CM_OK;
}
