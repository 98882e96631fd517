/* Every element type that an operator's schema allows has a kernel or a body: asked by running one
 * node on operands of that type, in the shapes that some operator takes. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_case.h"
#include "graph/registry.h"

enum { INPUTS_MAX = 8 };

static const struct cm_shape shapes[] = {
    {.rank = 2, .dims = {2, 2}},       {.rank = 1, .dims = {2}}, {.rank = 0},
    {.rank = 4, .dims = {1, 1, 3, 3}}, {.rank = 1, .dims = {1}}, {.rank = 3, .dims = {1, 2, 2}},
};

/* What a node is made of: which type variable is given which type. */
struct trial {
    const struct cm_schema *schema;
    size_t variable;
    enum cm_dtype type;
};

static uint64_t tensors_of(const struct cm_type_set *set)
{
    for (size_t r = 0; r < set->row_count; r++)
        if (set->rows[r].form == CM_FORM_TENSOR)
            return set->rows[r].elements;
    return 0;
}

static enum cm_dtype type_of(const struct trial *trial, const struct cm_schema_param *param)
{
    static const enum cm_dtype liked[] = {CM_FLOAT, CM_INT64, CM_BOOL, CM_UINT8};
    const uint64_t allowed = tensors_of(cm_schema_types_of(trial->schema, param));

    if ((size_t)param->type == trial->variable)
        return trial->type;
    for (size_t i = 0; i < CM_COUNT(liked); i++)
        if (allowed & CM_TYPE_BIT(liked[i]))
            return liked[i];
    for (int type = 1; type < CM_DTYPE_COUNT; type++)
        if (allowed & CM_TYPE_BIT(type))
            return (enum cm_dtype)type;
    return CM_UNDEFINED;
}

static enum cm_status run(struct cm_arena *arena, const struct trial *trial,
                          const struct cm_shape *shape, struct cm_error *err)
{
    const struct cm_schema *schema = trial->schema;
    const size_t n_in = (size_t)schema->min_inputs;
    struct cm_graph *graph = graph_new(arena);
    struct cm_builder build = {.graph = graph, .err = err};
    cm_value inputs[INPUTS_MAX];
    const struct cm_datum *in[INPUTS_MAX];
    struct cm_dim dims[CM_MAX_RANK];

    for (int i = 0; i < shape->rank; i++)
        dims[i] = CM_DIM(shape->dims[i]);
    for (size_t i = 0; i < n_in; i++) {
        const size_t last = (size_t)schema->input_count - 1, p = i < last ? i : last;
        const enum cm_dtype type = type_of(trial, &schema->inputs[p]);
        struct cm_datum *datum = CM_NEW(arena, struct cm_datum);
        if (type == CM_UNDEFINED)
            return cm_fail(err, CM_BAD_MODEL, "it takes no tensor");
        CM_TRY(cm_tensor_new(type, shape, &datum->tensor, err));
        memset(datum->tensor.data, 0, cm_tensor_bytes(&datum->tensor));
        datum->kind = CM_KIND_TENSOR;
        in[i] = datum;
        inputs[i] =
            cm_graph_add_input(graph, CM_STR_NONE, cm_type_tensor(arena, type, shape->rank, dims));
    }
    const cm_value y = cm_build(
        &build, &(struct cm_emission){.op = schema->name, .inputs = inputs, .n_inputs = n_in});
    struct cm_datum out = {0};
    enum cm_status status = build.status;
    if (!status) {
        cm_graph_set_outputs(graph, &y, 1);
        status = cm_graph_eval(graph, in, n_in, &out, NULL, err);
        cm_datum_drop(&out);
    }
    for (size_t i = 0; i < n_in; i++)
        cm_datum_drop((struct cm_datum *)(uintptr_t)in[i]);
    return status;
}

struct counts {
    size_t ran, refused, lacking;
};

static void try_type(struct cm_arena *arena, const struct trial *trial, struct counts *counts)
{
    struct cm_error err = {0};

    for (size_t s = 0; s < CM_COUNT(shapes); s++) {
        const enum cm_status status = run(arena, trial, &shapes[s], &err);
        if (status == CM_UNSUPPORTED) {
            print_message("%s of %s: %s\n", trial->schema->name, cm_dtype_name(trial->type),
                          err.text);
            counts->lacking++;
            return;
        }
        if (!status) {
            counts->ran++;
            return;
        }
    }
    counts->refused++;
}

static bool can_be_tried(const struct cm_schema *schema)
{
    const struct cm_op *op =
        cm_registry_op(cm_registry_builtin(), cm_str(schema->domain), cm_str(schema->name));

    if (schema->deprecated || schema->min_inputs < 1 || schema->min_inputs > INPUTS_MAX || !op ||
        op->effects & CM_REPLACED)
        return false;
    for (size_t a = 0; a < schema->attr_count; a++)
        if (schema->attrs[a].required)
            return false;
    return true;
}

static void try_schema(struct cm_arena *arena, const struct cm_schema *schema,
                       struct counts *counts)
{
    for (size_t v = 0; v < schema->type_count; v++) {
        const uint64_t types = tensors_of(&schema->types[v].set);
        bool is_operand = false;
        for (size_t p = 0; p < schema->input_count && (int)p < schema->min_inputs; p++)
            is_operand = is_operand || (size_t)schema->inputs[p].type == v;
        for (int type = 1; type < CM_DTYPE_COUNT && is_operand; type++) {
            const struct trial trial = {schema, v, (enum cm_dtype)type};
            if (types & CM_TYPE_BIT(type))
                try_type(arena, &trial, counts);
        }
    }
}

static void sweep(struct cm_arena *arena)
{
    struct counts counts = {0};

    for (size_t i = 0; i < cm_schema_count(); i++) {
        const struct cm_schema *schema = cm_schema_at(i);
        const struct cm_str domain = cm_str(schema->domain), name = cm_str(schema->name);
        if (domain.size == 0 && schema == cm_schema_newest(domain, name) && can_be_tried(schema))
            try_schema(arena, schema, &counts);
    }
    print_message("%zu ran, %zu fit none of the shapes\n", counts.ran, counts.refused);
    CHECK_INT(counts.lacking, 0);
    CHECK(counts.ran > 800);
    CHECK(counts.ran > 4 * counts.refused);
}

void test_type_sweep__every_type_of_a_schema_runs(void)
{
    check_in_arena(sweep);
}
