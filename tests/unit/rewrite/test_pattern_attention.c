/* Attention as exporters write it. */
// SPDX-License-Identifier: Apache-2.0
#include "pattern_case.h"

#include "rewrite/pass.h"

#include <math.h>

#define QKV    "float[2,3,4,8] q, float[2,3,5,8] k, float[2,3,5,6] v"
#define RESULT "float[2,3,4,6] y"

static void becomes(struct cm_arena *arena, const char *inputs, const char *nodes,
                    const char *operators, float scale)
{
    struct cm_graph *graph = patterns_make(arena, inputs, RESULT, nodes, operators);
    CHECK(fabsf(cm_node_float(graph->last, "scale") - scale) <= 1e-6f);
}

static void scales(struct cm_arena *arena)
{
    /* on the scores, as Transformers has it */
    becomes(arena, QKV,
            "t = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, t) u = Mul(s, quarter)"
            "p = Softmax(u) y = MatMul(p, v)",
            "Attention", 0.25f);
    becomes(arena, QKV,
            "t = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, t) u = Div(s, four)"
            "p = Softmax<axis = 3>(u) y = MatMul(p, v)",
            "Attention", 0.25f);
    /* on the queries, as swin has it */
    becomes(arena, QKV,
            "a = Mul(q, quarter) t = Transpose<perm = [0,1,3,2]>(k) s = MatMul(a, t)"
            "p = Softmax(s) y = MatMul(p, v)",
            "Attention", 0.25f);
    /* its root on both, as PyTorch's exporters write scaled_dot_product_attention */
    becomes(arena, QKV,
            "a = Mul(q, half) t = Transpose<perm = [0,1,3,2]>(k) b = Mul(t, half)"
            "s = MatMul(a, b) p = Softmax(s) y = MatMul(p, v)",
            "Attention", 0.25f);
    /* by arithmetic */
    becomes(arena, QKV,
            "r = Sqrt(four) f = Div(one, r) t = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, t)"
            "u = Mul(s, f) p = Softmax(u) y = MatMul(p, v)",
            "Sqrt Div Attention", 0.5f);
    becomes(arena, QKV,
            "t = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, t) p = Softmax(s) y = MatMul(p, v)",
            "Attention", 1);
}

void test_pattern_attention__scales(void)
{
    check_in_arena(scales);
}

static void transposes(struct cm_arena *arena)
{
    /* heads and keys turned at once: the heads remain to be turned */
    becomes(arena, "float[2,3,4,8] q, float[2,5,3,8] k, float[2,3,5,6] v",
            "t = Transpose<perm = [0,2,3,1]>(k) s = MatMul(q, t) p = Softmax(s) y = MatMul(p, v)",
            "Transpose Attention", 1);
    /* PyTorch's newer exporter flattens batch and heads around the transpose */
    becomes(arena, QKV,
            "f = Constant<value_ints = [-1,5,8]>() g = Constant<value_ints = [2,3,8,5]>()"
            "a = Reshape(k, f) b = Transpose<perm = [0,2,1]>(a) c = Reshape(b, g) d = Mul(c, half)"
            "s = MatMul(q, d) p = Softmax(s) y = MatMul(p, v)",
            "Constant Constant Attention", 0.5f);
    /* the same where the keys were flat to begin with */
    becomes(arena, "float[2,3,4,8] q, float[6,5,8] k, float[2,3,5,6] v",
            "g = Constant<value_ints = [2,3,8,5]>() b = Transpose<perm = [0,2,1]>(k)"
            "c = Reshape(b, g) s = MatMul(q, c) p = Softmax(s) y = MatMul(p, v)",
            "Constant Reshape Attention", 1);
}

void test_pattern_attention__keys_are_turned_in_several_ways(void)
{
    check_in_arena(transposes);
}

static void one_head(struct cm_arena *arena)
{
    const char *qkv = "float[2,4,8] q, float[2,5,8] k, float[2,5,6] v, bool[4,5] m, bool[2,1,5] n";
    struct cm_graph *graph = patterns_make(arena, qkv, "float[2,4,6] y",
                                           "t = Transpose<perm = [0,2,1]>(k) s = MatMul(q, t)"
                                           "w = Where(m, s, never) p = Softmax(w) y = MatMul(p, v)",
                                           "Where Attention");
    CHECK_INT(cm_node_int(graph->last, "q_num_heads"), 1);
    patterns_make(
        arena, qkv, "float[2,4,6] y",
        "t = Transpose<perm = [0,2,1]>(k) s = MatMul(q, t) u = Div(s, four) p = Softmax(u)"
        "y = MatMul(p, v)",
        "Attention");
    /* the operator would take the mask's batch for heads */
    patterns_keep(arena, qkv, "float[2,4,6] y",
                  "b = Where(n, zero, never) t = Transpose<perm = [0,2,1]>(k) s = MatMul(q, t)"
                  "u = Add(s, b) p = Softmax(u) y = MatMul(p, v)");
}

void test_pattern_attention__one_head_needs_no_axis(void)
{
    check_in_arena(one_head);
}

static void masks(struct cm_arena *arena)
{
    /* a bool mask as numbers to add */
    becomes(arena, QKV ", bool[2,1,1,5] m",
            "b = Where(m, zero, never) t = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, t)"
            "u = Add(s, b) p = Softmax(u) y = MatMul(p, v)",
            "Where Attention", 1);
    /* two masks, as T5 has a bias by position too */
    becomes(arena, QKV ", bool[2,1,4,5] m, int64[1,3,4,5] n",
            "b = Where(m, zero, never) c = Cast<to = 1>(n) t = Transpose<perm = [0,1,3,2]>(k)"
            "s = MatMul(q, t) u = Add(s, c) w = Add(u, b) p = Softmax(w) y = MatMul(p, v)",
            "Where Cast Add Attention", 1);
    /* scores replaced where the mask says so */
    becomes(arena, QKV ", bool[4,5] m",
            "t = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, t) u = Where(m, never, s)"
            "p = Softmax(u) y = MatMul(p, v)",
            "Where Attention", 1);
    becomes(arena, QKV ", bool[4,5] m",
            "t = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, t) u = Where(m, s, never)"
            "p = Softmax(u) y = MatMul(p, v)",
            "Where Attention", 1);
    /* rows of NaN made 0: then any mask will do */
    becomes(arena, QKV ", float[4,5] m",
            "t = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, t) u = Add(s, m) p = Softmax(u)"
            "n = IsNaN(p) w = Where(n, zero, p) y = MatMul(w, v)",
            "Attention", 1);
}

void test_pattern_attention__masks(void)
{
    check_in_arena(masks);
}

#define SELF     "float[2,3,4,8] q, float[2,3,4,8] k, float[2,3,4,6] v"
#define SMALL    "float[1,3,2,8] q, float[1,3,2,8] k, float[1,3,2,6] v"
#define OF_SMALL "float[1,3,2,6] y"
#define WITH_MASK                                                                                  \
    "t = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, t) u = Add(s, m)"                            \
    "p = Softmax(u) y = MatMul(p, v)"
#define CAUSAL(of)                                                                                 \
    "e = Expand(one, " of ") l = Trilu<upper = 0>(e) c = Equal(l, zero)"                           \
    "m = Where(c, infinity, zero)" WITH_MASK

static void causal(struct cm_arena *arena)
{
    /* as PyTorch's exporter writes it: the mask is no longer read */
    struct cm_graph *graph =
        patterns_make(arena, SELF, RESULT, CAUSAL("square"), "Expand Trilu Equal Where Attention");
    CHECK_INT(cm_node_int(graph->last, "is_causal"), 1);
    CHECK_INT(graph->last->n_inputs, 3);
    /* the same as a constant */
    graph = patterns_make(arena, SMALL, OF_SMALL,
                          "t = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, t) u = Add(s, lower)"
                          "p = Softmax(u) y = MatMul(p, v)",
                          "Attention");
    CHECK_INT(cm_node_int(graph->last, "is_causal"), 1);
    /* a constant that leaves something of each row */
    graph = patterns_make(arena, SMALL, OF_SMALL,
                          "t = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, t) u = Add(s, partly)"
                          "p = Softmax(u) y = MatMul(p, v)",
                          "Attention");
    CHECK_INT(cm_node_int(graph->last, "is_causal"), 0);
    CHECK_INT(graph->last->n_inputs, 4);
    /* one that does not, and two that together do not */
    patterns_keep(arena, SMALL, OF_SMALL,
                  "t = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, t) u = Add(s, whole)"
                  "p = Softmax(u) y = MatMul(p, v)");
    patterns_keep(arena, SMALL, OF_SMALL,
                  "t = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, t) u = Add(s, lower)"
                  "w = Add(u, partly) p = Softmax(w) y = MatMul(p, v)");
    /* as many keys as queries, or the diagonal is another */
    patterns_keep(arena, QKV, RESULT, CAUSAL("oblong"));
}

void test_pattern_attention__causal_masks(void)
{
    check_in_arena(causal);
}

static void kept(struct cm_arena *arena)
{
    const char *plain =
        "t = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, t) p = Softmax(s) y = MatMul(p, v)";
    /* a mask that may hold -inf: a row of it is NaN as written, and 0 by the operator */
    patterns_keep(arena, QKV ", float[4,5] m", RESULT,
                  "t = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, t) u = Add(s, m)"
                  "p = Softmax(u) y = MatMul(p, v)");
    /* another axis */
    patterns_keep(arena, QKV, RESULT,
                  "t = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, t) p = Softmax<axis = 2>(s)"
                  "y = MatMul(p, v)");
    /* the weights are asked for too */
    patterns_keep(arena, QKV, RESULT ", float[2,3,4,5] p", plain);
    /* keys of one batch for all */
    patterns_keep(arena, "float[2,3,4,8] q, float[1,3,5,8] k, float[2,3,5,6] v", RESULT, plain);
    /* a mask of one number per query */
    patterns_keep(arena, QKV ", bool[2,1,4,1] m", RESULT,
                  "b = Where(m, zero, never) t = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, t)"
                  "u = Add(s, b) p = Softmax(u) y = MatMul(p, v)");
    /* scores replaced by a number that still counts */
    patterns_keep(arena, QKV ", bool[4,5] m", RESULT,
                  "t = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, t) u = Where(m, minus_half, s)"
                  "p = Softmax(u) y = MatMul(p, v)");
    /* double: the operator's scale is a float */
    patterns_keep(arena, "double[2,3,4,8] q, double[2,3,5,8] k, double[2,3,5,6] v",
                  "double[2,3,4,6] y", plain);
    /* nothing is known of the batches */
    patterns_keep(arena, "float[A,3,4,8] q, float[B,3,5,8] k, float[C,3,5,6] v", "float[D,3,4,6] y",
                  plain);
}

void test_pattern_attention__what_is_nearly_attention_stays(void)
{
    check_in_arena(kept);
}

static void training(struct cm_arena *arena)
{
    struct cm_graph *graph =
        graph_of(arena,
                 GRAPH_HEAD "main (" QKV ") => (" RESULT ") {t = Transpose<perm = [0,1,3,2]>(k)"
                            "s = MatMul(q, t) p = Softmax(s) y = MatMul(p, v)}",
                 NULL);
    struct cm_error err = {0};
    CHECK_OK(cm_pass_patterns(graph, &(struct cm_pass_options){.training = true}, &err), &err);
    CHECK_INT(graph->n_nodes, 1);
    CHECK(graph->first->op->grad_fits(graph->first));
}

void test_pattern_attention__in_training_its_gradient_is_one_operator(void)
{
    check_in_arena(training);
}
