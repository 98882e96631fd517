/* Graphs in double precision. */
// SPDX-License-Identifier: Apache-2.0
#include "train/widen.h"

#include "graph/clone.h"
#include "graph/op.h"
#include "onnx/tensor_data.h"

static bool is_float(int64_t code)
{
    return code != CM_DOUBLE && cm_dtype_is_float(code);
}

static const struct cm_type *wide_type(void *arg, const struct cm_type *type)
{
    struct cm_module *module = arg;
    struct cm_type *wide = CM_NEW(cm_module_arena(module), struct cm_type);

    *wide = *type;
    if (type->kind == CM_KIND_TENSOR && is_float(type->dtype))
        wide->dtype = CM_DOUBLE;
    if (type->elem) /* nesting is limited where types are read */
        wide->elem = wide_type(module, type->elem);
    return wide;
}

enum cm_status cm_tensor_widen(const struct cm_tensor *narrow, struct cm_tensor *out,
                               struct cm_error *err)
{
    CM_TRY(cm_tensor_new(CM_DOUBLE, &narrow->shape, out, err));
    double *to = out->data;
    for (int64_t i = 0, n = cm_tensor_count(narrow); i < n; i++)
        to[i] = cm_tensor_real(narrow, i);
    return CM_OK;
}

/* ---- attributes ---- */

static enum cm_status set_tensor(struct cm_module *module, struct cm_attribute_proto *attribute,
                                 const char *name, const struct cm_tensor *narrow,
                                 struct cm_error *err)
{
    struct cm_tensor wide;

    CM_TRY(cm_tensor_widen(narrow, &wide, err));
    *attribute = cm_attr_tensor(cm_module_arena(module), name, &wide);
    cm_tensor_drop(&wide);
    return CM_OK;
}

/* Numbers that an attribute holds become a tensor, in an attribute of this name. */
static enum cm_status set_floats(struct cm_module *module, struct cm_attribute_proto *attribute,
                                 const char *name, struct cm_error *err)
{
    const bool single = attribute->type == CM_ATTR_FLOAT;
    const struct cm_shape shape = single ? CM_SCALAR : CM_SHAPE((int64_t)attribute->floats.count);
    const struct cm_tensor narrow =
        cm_tensor_borrow(CM_FLOAT, &shape, single ? &attribute->f : attribute->floats.items);

    return set_tensor(module, attribute, name, &narrow, err);
}

static enum cm_status widen_attribute(const struct cm_node *node, struct cm_attribute_proto *attr,
                                      struct cm_error *err)
{
    static const char *const types[] = {"to", "dtype", "output_datatype"};
    struct cm_module *module = node->module;
    struct cm_arena *arena = cm_module_arena(module);

    if (attr->t && is_float(attr->t->data_type)) {
        const char *name = cm_arena_str(arena, attr->name).data;
        struct cm_tensor narrow;

        CM_TRY(cm_node_tensor(node, name, &narrow, err));
        const enum cm_status status = set_tensor(module, attr, name, &narrow, err);
        cm_tensor_drop(&narrow);
        return status;
    }
    if (attr->tp) {
        const struct cm_type *type;

        CM_TRY(cm_type_from_proto(arena, cm_module_symbols(module), attr->tp, &type, err));
        attr->tp = CM_NEW(arena, struct cm_type_proto);
        cm_type_to_proto(arena, cm_module_symbols(module), wide_type(module, type), attr->tp);
    }
    if (node->op && node->op->values.is_constant &&
        (attr->type == CM_ATTR_FLOAT || attr->type == CM_ATTR_FLOATS))
        return set_floats(module, attr, "value", err);
    for (size_t i = 0; i < CM_COUNT(types); i++)
        if (cm_str_is(attr->name, types[i]) && is_float(attr->i))
            attr->i = CM_DOUBLE;
    return CM_OK;
}

static enum cm_status widen_node(void *arg, const struct cm_node *node, struct cm_node_spec *spec,
                                 struct cm_error *err)
{
    struct cm_arena *arena = cm_module_arena(node->module);
    const char *zero = node->op ? node->op->values.zero_attribute : NULL;
    const struct cm_attribute_proto *from = spec->attributes;
    const float nothing = 0;

    (void)arg;
    spec->attributes = CM_NEW_ARRAY(arena, struct cm_attribute_proto, spec->n_attributes + 1);
    for (size_t i = 0; i < spec->n_attributes; i++) {
        spec->attributes[i] = from[i];
        CM_TRY(widen_attribute(node, &spec->attributes[i], err));
    }
    if (!zero || spec->n_attributes)
        return CM_OK;
    /* What makes floats unless it is told otherwise is told. */
    struct cm_attribute_proto *told = &spec->attributes[spec->n_attributes++];
    *told = cm_attr_floats(arena, zero, 1, &nothing);
    return set_floats(node->module, told, zero, err);
}

/* ---- values ---- */

static bool is_within(const struct cm_graph *inner, const struct cm_graph *graph)
{
    while (inner && inner != graph)
        inner = inner->parent;
    return inner != NULL;
}

/* Constants of bodies too: their copies see those of the graph around. */
static enum cm_status widen_constants(struct cm_clone *clone, const struct cm_graph *from,
                                      struct cm_graph *to, struct cm_error *err)
{
    struct cm_module *module = from->module;
    const size_t count = cm_module_value_count(module);

    for (cm_value v = 1; v < count; v++) {
        const struct cm_value_def *def = cm_value_get(module, v);
        const struct cm_tensor *narrow;
        struct cm_tensor wide;

        if (def->role != CM_ROLE_INITIALIZER || !def->uses || !is_float(def->fact.type->dtype) ||
            !is_within(def->graph, from))
            continue;
        CM_TRY(cm_value_constant(module, v, &narrow, err));
        CM_TRY(cm_tensor_widen(narrow, &wide, err));
        cm_clone_map(clone, v, cm_graph_add_constant(to, CM_STR_NONE, &wide));
        cm_tensor_drop(&wide);
    }
    return CM_OK;
}

enum cm_status cm_graph_widen(const struct cm_graph *graph, struct cm_graph **out,
                              struct cm_error *err)
{
    struct cm_module *module = graph->module;
    struct cm_graph *to = cm_graph_new(module, NULL, graph->name);
    struct cm_builder build = {.graph = to, .err = err};
    const struct cm_clone_changes changes = {.node = widen_node, .type = wide_type, .arg = module};
    struct cm_clone clone;

    cm_clone_init(&clone, module);
    clone.alike = true;
    clone.changes = &changes;
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const struct cm_value_def *def = cm_value_get(module, graph->inputs[i]);
        const cm_value input = cm_graph_add_input(to, def->name, wide_type(module, def->fact.type));

        cm_value_get(module, input)->initializer = def->initializer;
        cm_clone_map(&clone, graph->inputs[i], input);
    }
    CM_TRY(widen_constants(&clone, graph, to, err));
    CM_TRY(cm_clone_graph(&clone, &build, graph));
    cm_value *outputs = CM_NEW_ARRAY(cm_module_arena(module), cm_value, graph->n_outputs);
    for (size_t o = 0; o < graph->n_outputs; o++)
        outputs[o] = cm_clone_operand(&clone, to, graph, graph->outputs[o].value);
    cm_graph_set_outputs(to, outputs, graph->n_outputs);
    *out = to;
    return CM_OK;
}
