/* LinearAttention as a Scan over its steps: what its gradient and other runtimes use. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "ops/attention/linear_attention.h"

/* The state, then what is scanned; 0: absent. */
enum { STATE, Q, K, V, DECAY, BETA, N_PARTS };

/* The type of one slice along axis 0. */
static const struct cm_type *slice_type(struct cm_body *b, cm_value x)
{
    const struct cm_type *type = cm_builder_type(&b->build, x);
    return cm_type_tensor(cm_builder_arena(&b->build), type->dtype, type->rank - 1, type->dims + 1);
}

static struct cm_graph *step_graph(struct cm_body *b, const cm_value *parts)
{
    struct cm_graph *graph = cm_graph_new(b->build.graph->module, b->build.graph, CM_STR("step"));
    struct cm_builder step = {.graph = graph, .err = b->build.err};
    cm_value in[N_PARTS] = {0}, out[2];
    in[STATE] = cm_graph_add_input(graph, CM_STR_NONE, cm_builder_type(&b->build, parts[STATE]));
    for (int i = Q; i < N_PARTS; i++)
        if (parts[i])
            in[i] = cm_graph_add_input(graph, CM_STR_NONE, slice_type(b, parts[i]));
    const struct cm_str text = cm_arena_printf(
        cm_builder_arena(&b->build),
        "state, q, k, v, decay, beta: value = Unsqueeze(v, [2]); %s %s"
        "next = state + MatMul(Unsqueeze(k, [3]), value); y = MatMul(q, next) -> next, y",
        parts[DECAY] ? "state = state * Unsqueeze(Exp(decay), [3]);" : "",
        parts[BETA] ? "seen = MatMul(Unsqueeze(k, [2]), state);"
                      "value = (value - seen) * Unsqueeze(beta, [2, 3]);"
                    : "");
    cm_build_formulas(&step, NULL, cm_str_text(text), in, N_PARTS, out, CM_COUNT(out));
    b->build.status = step.status;
    if (!step.status)
        cm_graph_set_outputs(graph, out, CM_COUNT(out));
    return graph;
}

/* (batch, length, heads * size) becomes (length, batch, heads, size); queries get their groups
 * before the size. Without a past the state is zeros of (batch, heads, keys, values). */
static void collect(struct cm_body *b, cm_value *parts)
{
    const struct cm_str text = cm_arena_printf(
        cm_builder_arena(&b->build),
        "query, key, value, past, decay, beta:"
        "cut(t) = Transpose<perm=[1, 0, 2, 3]>(Reshape(float(t), [0, 0, kv_num_heads, -1]));"
        "k = cut(key); v = cut(value);"
        "rows = Reshape(float(query), [0, 0, kv_num_heads, %lld, -1]);"
        "q = Transpose<perm=[1, 0, 2 to 4]>(rows) * %s; state = %s; d = %s; e = %s"
        "-> state, q, k, v, d, e",
        (long long)(cm_node_int(b->node, "q_num_heads") / cm_node_int(b->node, "kv_num_heads")),
        cm_node_float(b->node, "scale") != 0 ? "float(scale)"
                                             : "Reciprocal(Sqrt(float(Shape<start=3, end=4>(k))))",
        cm_body_input(b, CM_LINEAR_PAST) ? "float(past)"
                                         : "Expand(float(0), Concat<axis=0>(Shape<start=1, "
                                           "end=4>(k), Shape<start=3, end=4>(v)))",
        cm_body_input(b, CM_LINEAR_DECAY) ? "cut(decay)" : "decay",
        cm_body_input(b, CM_LINEAR_BETA) ? "Transpose<perm=[1, 0, 2]>(float(beta))" : "beta");
    cm_build_formulas(
        &b->build, b->node, cm_str_text(text),
        (const cm_value[]){cm_body_input(b, CM_LINEAR_QUERY), cm_body_input(b, CM_LINEAR_KEY),
                           cm_body_input(b, CM_LINEAR_VALUE), cm_body_input(b, CM_LINEAR_PAST),
                           cm_body_input(b, CM_LINEAR_DECAY), cm_body_input(b, CM_LINEAR_BETA)},
        6, parts, N_PARTS);
}

enum cm_status cm_linear_attention_body(struct cm_body *b)
{
    const cm_value query = cm_body_input(b, CM_LINEAR_QUERY);
    const cm_value past = cm_body_input(b, CM_LINEAR_PAST);
    cm_value parts[N_PARTS], inputs[N_PARTS], outputs[2];
    size_t n = 0;
    collect(b, parts);
    CM_TRY(b->build.status);
    struct cm_graph *graph = step_graph(b, parts);
    CM_TRY(b->build.status);
    for (int i = 0; i < N_PARTS; i++)
        if (parts[i])
            inputs[n++] = parts[i];
    const struct cm_attribute_proto scanned =
        cm_attr_int(cm_builder_arena(&b->build), "num_scan_inputs", (int64_t)n - 1);
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
    CM_TRY(cm_body_return(b, 0,
                          cm_emit_formula(b,
                                          "y, query: steps = Transpose<perm=[1, 0, 2 to 4]>(y);"
                                          "cast(Reshape(steps, [0, 0, -1]), query)",
                                          outputs[1], query)));
    if (!cm_body_wants(b, 1))
        return CM_OK;
    return cm_body_return(
        b, 1,
        cm_emit_formula(b, "state, held: cast(state, held)", outputs[0], past ? past : query));
}
