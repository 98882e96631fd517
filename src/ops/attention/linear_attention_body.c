/* LinearAttention as a Scan over its steps: what its gradient and other runtimes use. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/linear_attention.h"

enum { STATE, Q, K, V, DECAY, BETA, N_PARTS };

struct pieces {
    struct cm_body *b;
    struct cm_arena *arena;
    int64_t heads;          /* of keys */
    cm_value part[N_PARTS]; /* the state, then what is scanned; 0: absent */
};

static cm_value cast(const struct pieces *p, cm_value x, enum cm_dtype to)
{
    const struct cm_type *type = cm_builder_type(&p->b->build, x);
    if (!type || type->dtype == to)
        return x;
    return cm_emit_with(p->b, "Cast", CM_ATTRIBUTES(cm_attr_int(p->arena, "to", to)), x);
}

/* (batch, length, heads * size) as (length, batch, heads, size); groups, if any, go in between. */
static cm_value by_step(const struct pieces *p, cm_value x, int64_t groups)
{
    const int64_t four[] = {1, 0, 2, 3}, five[] = {1, 0, 2, 3, 4};
    const bool grouped = groups > 0;
    const cm_value shape = grouped ? cm_emit_int64s(p->b, 0, 0, p->heads, groups, -1)
                                   : cm_emit_int64s(p->b, 0, 0, p->heads, -1);
    return cm_emit_with(
        p->b, "Transpose",
        CM_ATTRIBUTES(cm_attr_ints(p->arena, "perm", grouped ? 5 : 4, grouped ? five : four)),
        cm_emit(p->b, "Reshape", cast(p, x, CM_FLOAT), shape));
}

/* The type of one slice along axis 0. */
static const struct cm_type *slice_type(const struct pieces *p, cm_value x)
{
    const struct cm_type *type = cm_builder_type(&p->b->build, x);
    return cm_type_tensor(p->arena, type->dtype, type->rank - 1, type->dims + 1);
}

static struct cm_graph *step_graph(const struct pieces *p)
{
    struct cm_graph *graph =
        cm_graph_new(p->b->build.graph->module, p->b->build.graph, CM_STR("step"));
    struct {
        struct cm_builder build;
    } step = {.build = {.graph = graph, .err = p->b->build.err}};
    cm_value in[N_PARTS] = {0};
    in[STATE] =
        cm_graph_add_input(graph, CM_STR_NONE, cm_builder_type(&p->b->build, p->part[STATE]));
    for (int i = Q; i < N_PARTS; i++)
        if (p->part[i])
            in[i] = cm_graph_add_input(graph, CM_STR_NONE, slice_type(p, p->part[i]));
    cm_value state = in[STATE];
    cm_value v = cm_emit(&step, "Unsqueeze", in[V], cm_emit_int64s(&step, 2));
    if (in[DECAY])
        state = cm_emit(&step, "Mul", state,
                        cm_emit(&step, "Unsqueeze", cm_emit(&step, "Exp", in[DECAY]),
                                cm_emit_int64s(&step, 3)));
    if (in[BETA]) {
        const cm_value row = cm_emit(&step, "Unsqueeze", in[K], cm_emit_int64s(&step, 2));
        const cm_value seen = cm_emit(&step, "MatMul", row, state);
        v = cm_emit(&step, "Mul", cm_emit(&step, "Sub", v, seen),
                    cm_emit(&step, "Unsqueeze", in[BETA], cm_emit_int64s(&step, 2, 3)));
    }
    const cm_value column = cm_emit(&step, "Unsqueeze", in[K], cm_emit_int64s(&step, 3));
    state = cm_emit(&step, "Add", state, cm_emit(&step, "MatMul", column, v));
    const cm_value outputs[2] = {state, cm_emit(&step, "MatMul", in[Q], state)};
    p->b->build.status = step.build.status;
    if (!step.build.status)
        cm_graph_set_outputs(graph, outputs, 2);
    return graph;
}

static cm_value shape_part(const struct pieces *p, cm_value x, int64_t from, int64_t to)
{
    return cm_emit_with(
        p->b, "Shape",
        CM_ATTRIBUTES(cm_attr_int(p->arena, "start", from), cm_attr_int(p->arena, "end", to)), x);
}

/* Zeros for (batch, heads, keys, values), unless there is a past. */
static cm_value first_state(const struct pieces *p)
{
    const cm_value past = cm_body_input(p->b, CM_LINEAR_PAST);
    if (past)
        return cast(p, past, CM_FLOAT);
    const cm_value shape =
        cm_emit_with(p->b, "Concat", CM_ATTRIBUTES(cm_attr_int(p->arena, "axis", 0)),
                     shape_part(p, p->part[K], 1, 4), shape_part(p, p->part[V], 3, 4));
    return cm_emit(p->b, "Expand", cm_emit_scalar(p->b, CM_FLOAT, 0), shape);
}

static cm_value scale(const struct pieces *p)
{
    const double given = (double)cm_node_float(p->b->node, "scale");
    if (given != 0)
        return cm_emit_scalar(p->b, CM_FLOAT, given);
    const cm_value size = cast(p, shape_part(p, p->part[K], 3, 4), CM_FLOAT);
    return cm_emit(p->b, "Reciprocal", cm_emit(p->b, "Sqrt", size));
}

static void collect(struct pieces *p, int64_t groups)
{
    const cm_value decay = cm_body_input(p->b, CM_LINEAR_DECAY);
    const cm_value beta = cm_body_input(p->b, CM_LINEAR_BETA);
    p->part[K] = by_step(p, cm_body_input(p->b, CM_LINEAR_KEY), 0);
    p->part[V] = by_step(p, cm_body_input(p->b, CM_LINEAR_VALUE), 0);
    p->part[Q] =
        cm_emit(p->b, "Mul", by_step(p, cm_body_input(p->b, CM_LINEAR_QUERY), groups), scale(p));
    p->part[STATE] = first_state(p);
    if (decay)
        p->part[DECAY] = by_step(p, decay, 0);
    if (beta) {
        const int64_t swap[] = {1, 0, 2};
        p->part[BETA] =
            cm_emit_with(p->b, "Transpose", CM_ATTRIBUTES(cm_attr_ints(p->arena, "perm", 3, swap)),
                         cast(p, beta, CM_FLOAT));
    }
}

enum cm_status cm_linear_attention_body(struct cm_body *b)
{
    const struct cm_type *q = cm_builder_type(&b->build, cm_body_input(b, CM_LINEAR_QUERY));
    const cm_value past = cm_body_input(b, CM_LINEAR_PAST);
    struct pieces p = {.b = b, .arena = cm_builder_arena(&b->build)};
    p.heads = cm_node_int(b->node, "kv_num_heads");
    collect(&p, cm_node_int(b->node, "q_num_heads") / p.heads);
    CM_TRY(b->build.status);
    struct cm_graph *graph = step_graph(&p);
    CM_TRY(b->build.status);

    cm_value inputs[N_PARTS], outputs[2];
    size_t n = 0;
    for (int i = 0; i < N_PARTS; i++)
        if (p.part[i])
            inputs[n++] = p.part[i];
    const struct cm_attribute_proto scanned =
        cm_attr_int(p.arena, "num_scan_inputs", (int64_t)n - 1);
    cm_build(&b->build, &(struct cm_emission){.op = "Scan",
                                              .inputs = inputs,
                                              .n_inputs = n,
                                              .attributes = &scanned,
                                              .n_attributes = 1,
                                              .body_graphs = &graph,
                                              .body_names = (const char *const[]){"body"},
                                              .n_bodies = 1,
                                              .n_outputs = 2,
                                              .outputs = outputs});
    CM_TRY(b->build.status);
    const int64_t back[] = {1, 0, 2, 3, 4};
    const cm_value y =
        cm_emit(b, "Reshape",
                cm_emit_with(b, "Transpose", CM_ATTRIBUTES(cm_attr_ints(p.arena, "perm", 5, back)),
                             outputs[1]),
                cm_emit_int64s(b, 0, 0, -1));
    const enum cm_dtype held = past ? cm_builder_type(&b->build, past)->dtype : q->dtype;
    CM_TRY(cm_body_return(b, 0, cast(&p, y, q->dtype)));
    return cm_body_wants(b, 1) ? cm_body_return(b, 1, cast(&p, outputs[0], held)) : CM_OK;
}
