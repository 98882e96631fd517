/* Gradient: the derivative of a value by others, named in attributes. It has no kernel: autodiff/
 * puts nodes in its place.
 *
 * The importer appends what the attributes name to the operands, so that they are read like any
 * other value: first the points of evaluation, one for each name of xs and zs; then y; then the
 * values named xs and zs themselves. */
// SPDX-License-Identifier: Apache-2.0
#include "base/map.h"
#include "graph/op.h"

static bool has_derivative(const struct cm_type *type)
{
    return type->kind == CM_KIND_TENSOR && cm_dtype_info(type->dtype)->kind == CM_CLASS_FLOAT;
}

static enum cm_status gradient_infer(struct cm_infer *in)
{
    const struct cm_strs xs = cm_node_strs(in->node, "xs"), zs = cm_node_strs(in->node, "zs");
    const size_t n_xs = xs.count, n = n_xs + zs.count;
    struct cm_map names = {0};

    if (n_xs == 0)
        return cm_infer_fail(in, "attribute 'xs' is empty");
    if ((size_t)in->n_in != 2 * n + 1)
        return cm_infer_fail(in, "it needs one input for each of the %zu names in xs and zs", n);
    if ((size_t)in->n_out > n_xs)
        return cm_infer_fail(in, "it has %d outputs for %zu names in xs", in->n_out, n_xs);
    const struct cm_type *y = cm_infer_type(in, (int)n);
    if (!has_derivative(y))
        return cm_infer_fail(in, "a value of type %s has no derivative",
                             cm_type_print(in->arena, in->symbols, y).data);
    for (size_t i = 0; i < n; i++) {
        const struct cm_type *fed = cm_infer_type(in, (int)i);
        const struct cm_str name = i < n_xs ? xs.items[i] : zs.items[i - n_xs];
        bool is_new;
        cm_map_insert(&names, in->arena, name, &is_new);
        if (!is_new)
            return cm_infer_fail(in, "'%.*s' is named twice in xs and zs", CM_STR_FMT(name));
        const struct cm_type *named = cm_infer_type(in, (int)(n + 1 + i));
        if (!cm_type_meet(in->arena, fed, named))
            return cm_infer_fail(in, "input %zu is %s, but the value it stands for is %s", i,
                                 cm_type_print(in->arena, in->symbols, fed).data,
                                 cm_type_print(in->arena, in->symbols, named).data);
        if (i >= n_xs)
            continue;
        if (!has_derivative(named))
            return cm_infer_fail(in, "a derivative by a value of type %s does not exist",
                                 cm_type_print(in->arena, in->symbols, named).data);
        CM_TRY(cm_infer_set(in, (int)i, fed));
    }
    return CM_OK;
}

CM_OP_IN(training, "ai.onnx.preview.training", Gradient, .infer = gradient_infer,
         .effects = CM_REPLACED);
