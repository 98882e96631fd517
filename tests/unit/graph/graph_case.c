/* Graphs for tests. */
// SPDX-License-Identifier: Apache-2.0
#include "graph_case.h"

#include "onnx/syntax.h"

static enum cm_status import_text(struct cm_arena *arena, const char *text,
                                  const struct cm_module_options *options, struct cm_graph **out,
                                  struct cm_error *err)
{
    struct cm_model_proto *model = CM_NEW(arena, struct cm_model_proto);
    CHECK_OK(cm_syntax_parse_model(cm_str(text), arena, model, err), err);
    return cm_module_import(cm_module_new(arena, options), model, NULL, out, err);
}

struct cm_graph *graph_of(struct cm_arena *arena, const char *text,
                          const struct cm_module_options *options)
{
    struct cm_graph *graph = NULL;
    struct cm_error err = {0};
    CHECK_OK(import_text(arena, text, options, &graph, &err), &err);
    return graph;
}

enum cm_status graph_try(struct cm_arena *arena, const char *text,
                         const struct cm_module_options *options, struct cm_error *err)
{
    struct cm_graph *graph;
    return import_text(arena, text, options, &graph, err);
}

struct cm_graph *graph_new(struct cm_arena *arena)
{
    return cm_graph_new(cm_module_new(arena, NULL), NULL, CM_STR("main"));
}

const struct cm_type *graph_float_type(struct cm_arena *arena, int64_t size)
{
    return cm_type_tensor(arena, CM_FLOAT, 1, &CM_DIM(size));
}

cm_value graph_add(struct cm_graph *graph, struct cm_node *before, const char *op,
                   const cm_value *inputs, size_t count)
{
    const struct cm_node_spec spec = {
        .op_type = cm_str(op), .inputs = inputs, .n_inputs = count, .n_outputs = 1};
    struct cm_node *node = NULL;
    struct cm_error err = {0};
    CHECK_OK(cm_graph_add_node(graph, before, &spec, &node, &err), &err);
    return node->outputs[0];
}

static void drop_datum(void *what)
{
    cm_datum_drop(what);
}

static struct cm_datum *new_datum(struct cm_arena *arena, enum cm_dtype type,
                                  const struct cm_shape *shape, const void *bytes)
{
    struct cm_datum *datum = CM_NEW(arena, struct cm_datum);
    struct cm_error err = {0};
    CHECK_OK(cm_tensor_new(type, shape, &datum->tensor, &err), &err);
    datum->kind = CM_KIND_TENSOR;
    memcpy(datum->tensor.data, bytes, cm_tensor_bytes(&datum->tensor));
    cm_arena_defer(arena, drop_datum, datum);
    return datum;
}

struct cm_datum *graph_floats(struct cm_arena *arena, size_t count, const float *values)
{
    return new_datum(arena, CM_FLOAT, &CM_SHAPE((int64_t)count), values);
}

struct cm_datum *graph_bool(struct cm_arena *arena, bool value)
{
    return new_datum(arena, CM_BOOL, &CM_SCALAR, &value);
}

struct cm_datum *graph_int(struct cm_arena *arena, int64_t value)
{
    return new_datum(arena, CM_INT64, &CM_SCALAR, &value);
}

void graph_check(struct cm_arena *arena, struct cm_graph *graph, const struct cm_datum *const *in,
                 const struct cm_eval_options *options, const float *expected, size_t count)
{
    struct cm_datum *out = CM_NEW_ARRAY(arena, struct cm_datum, graph->n_outputs);
    struct cm_error err = {0};
    CHECK_OK(cm_graph_eval(graph, in, graph->n_inputs, out, options, &err), &err);
    CHECK_INT(out[0].kind, CM_KIND_TENSOR);
    CHECK_INT(cm_tensor_count(&out[0].tensor), count);
    for (size_t i = 0; i < count; i++)
        if (cm_tensor_real(&out[0].tensor, (int64_t)i) != (double)expected[i])
            fail_msg("element %zu is %g, expected %g", i,
                     cm_tensor_real(&out[0].tensor, (int64_t)i), (double)expected[i]);
    for (size_t o = 0; o < graph->n_outputs; o++)
        cm_datum_drop(&out[o]);
}
