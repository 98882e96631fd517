/* Activations, norms and losses as exporters write them. */
// SPDX-License-Identifier: Apache-2.0
#include "pattern_case.h"

#include "rewrite/pass.h"

#include <math.h>

#define X "float[2,3] x"
#define Y "float[2,3] y"

static void becomes_gelu(struct cm_arena *arena, const char *nodes, const char *approximate)
{
    struct cm_graph *graph = patterns_make(arena, X, Y, nodes, "Gelu");
    CHECK_STR(cm_node_str(graph->first, "approximate"), approximate);
    CHECK_STR(cm_value_get(graph->module, graph->first->outputs[0])->name, "y");
}

static void gelu_by_erf(struct cm_arena *arena)
{
    /* PyTorch's older exporter */
    becomes_gelu(arena,
                 "a = Div(x, root2) b = Erf(a) c = Add(b, one) d = Mul(x, c) y = Mul(d, half)",
                 "none");
    /* its newer one */
    becomes_gelu(arena,
                 "a = Div(x, root2) b = Erf(a) c = Add(b, one) d = Mul(half, c) y = Mul(x, d)",
                 "none");
    /* TensorFlow and Keras */
    becomes_gelu(arena,
                 "h = Mul(half, x) a = Mul(x, root_half) b = Erf(a) c = Add(one, b) y = Mul(h, c)",
                 "none");
    /* constants of one element need not be scalars */
    becomes_gelu(arena,
                 "a = Div(x, root2) b = Erf(a) c = Add(b, one1) d = Mul(c, x) y = Mul(half, d)",
                 "none");
}

void test_patterns__gelu_by_the_error_function(void)
{
    check_in_arena(gelu_by_erf);
}

static void gelu_by_tanh(struct cm_arena *arena)
{
    /* PyTorch's older exporter; ALBERT, BigBird, GPT-2 */
    becomes_gelu(arena,
                 "h = Mul(x, half) p = Pow(x, three) q = Mul(p, cubic) r = Add(x, q)"
                 "s = Mul(r, slope) t = Tanh(s) u = Add(t, one) y = Mul(h, u)",
                 "tanh");
    /* PyTorch's newer exporter */
    becomes_gelu(arena,
                 "p = Pow(x, three) q = Mul(cubic, p) r = Add(x, q) s = Mul(slope, r) t = Tanh(s)"
                 "u = Add(t, one) v = Mul(half, u) y = Mul(x, v)",
                 "tanh");
    /* BLOOM */
    becomes_gelu(arena,
                 "h = Mul(x, half) a = Mul(x, slope) b = Mul(x, cubic) c = Mul(b, x)"
                 "d = Add(c, one) e = Mul(a, d) t = Tanh(e) u = Add(t, one) y = Mul(h, u)",
                 "tanh");
    /* the cube as products */
    becomes_gelu(arena,
                 "p = Mul(x, x) c = Mul(p, x) q = Mul(c, cubic) r = Add(q, x) s = Mul(r, slope)"
                 "t = Tanh(s) u = Add(one, t) v = Mul(x, u) y = Mul(v, half)",
                 "tanh");
}

void test_patterns__gelu_by_tanh(void)
{
    check_in_arena(gelu_by_tanh);
}

static void no_gelu(struct cm_arena *arena)
{
    /* another slope */
    patterns_keep(arena, X, Y,
                  "a = Div(x, two) b = Erf(a) c = Add(b, one) d = Mul(x, c) y = Mul(d, half)");
    /* the factor is another value */
    patterns_keep(arena, X ", float[2,3] z", Y,
                  "a = Div(x, root2) b = Erf(a) c = Add(b, one) d = Mul(z, c) y = Mul(d, half)");
    /* a value on the way is an output too, or read by others */
    patterns_keep(arena, X, Y ", float[2,3] c",
                  "a = Div(x, root2) b = Erf(a) c = Add(b, one) d = Mul(x, c) y = Mul(d, half)");
    patterns_keep(arena, X, Y ", float[2,3] z",
                  "a = Div(x, root2) b = Erf(a) c = Add(b, one) d = Mul(x, c) y = Mul(d, half)"
                  "z = Neg(b)");
    /* a constant with an axis more than x */
    patterns_keep(arena, "float x", "float[1] y",
                  "a = Div(x, root2) b = Erf(a) c = Add(b, one1) d = Mul(x, c) y = Mul(d, half)");
}

void test_patterns__what_is_nearly_gelu_stays(void)
{
    check_in_arena(no_gelu);
}

static void swish(struct cm_arena *arena)
{
    struct cm_graph *graph = patterns_make(arena, X, Y, "s = Sigmoid(x) y = Mul(x, s)", "Swish");
    CHECK(cm_node_float(graph->first, "alpha") == 1.0f);
    patterns_make(arena, X, Y, "n = Neg(x) e = Exp(n) d = Add(e, one) y = Div(x, d)", "Swish");
    graph = patterns_make(arena, X, Y, "a = Mul(x, quick) s = Sigmoid(a) y = Mul(x, s)", "Swish");
    CHECK(cm_node_float(graph->first, "alpha") == 1.702f);
    patterns_make(arena, X, Y, "p = Softplus(x) t = Tanh(p) y = Mul(x, t)", "Mish");
    patterns_keep(arena, X ", float[2,3] z", Y, "s = Sigmoid(z) y = Mul(x, s)");
    patterns_keep(arena, X, Y ", float[2,3] s", "s = Sigmoid(x) y = Mul(x, s)");
}

void test_patterns__silu_and_mish(void)
{
    check_in_arena(swish);
}

static void in_bodies(struct cm_arena *arena)
{
    struct cm_graph *graph = patterns_make(
        arena, "bool c, " X, Y,
        "y = If(c)<then_branch = t () => (float[2,3] r) {s = Sigmoid(x) r = Mul(x, s)},"
        " else_branch = e () => (float[2,3] q) {q = Neg(x)}>",
        "If");
    CHECK_STR(cm_node_body(graph->first, "then_branch")->first->op_type, "Swish");
}

void test_patterns__bodies_are_worked_on_too(void)
{
    check_in_arena(in_bodies);
}

static void captured(struct cm_arena *arena)
{
    patterns_keep(arena, "bool c, " X, Y ", float[2,3] z",
                  "s = Sigmoid(x) y = Mul(x, s)"
                  "z = If(c)<then_branch = t () => (float[2,3] r) {r = Neg(s)},"
                  " else_branch = e () => (float[2,3] q) {q = Neg(x)}>");
}

void test_patterns__a_value_that_a_body_reads_stays(void)
{
    check_in_arena(captured);
}

#define X3 "float[2,3,4] x"
#define Y3 "float[2,3,4] y"

static void becomes_norm(struct cm_arena *arena, const char *nodes, const char *op, float epsilon)
{
    struct cm_graph *graph = patterns_make(arena, X3, Y3, nodes, op);
    CHECK(cm_node_float(graph->first, "epsilon") == epsilon);
    CHECK_INT(cm_node_int(graph->first, "axis"), -1);
}

static void layer_norm(struct cm_arena *arena)
{
    const char *op = "LayerNormalization";
    /* PyTorch's older exporter, before opset 17 */
    becomes_norm(arena,
                 "m = ReduceMean(x, last) d = Sub(x, m) p = Pow(d, two) v = ReduceMean(p, third)"
                 "e = Add(v, eps) r = Sqrt(e) n = Div(d, r) w = Mul(n, scale) y = Add(w, bias)",
                 op, 0.001f);
    /* without a bias, with the inverse root */
    becomes_norm(arena,
                 "m = ReduceMean(x, last) d = Sub(x, m) p = Mul(d, d) v = ReduceMean(p, last)"
                 "e = Add(v, eps) r = Sqrt(e) i = Reciprocal(r) n = Mul(d, i) y = Mul(scale, n)",
                 op, 0.001f);
    becomes_norm(arena,
                 "m = ReduceMean(x, last) d = Sub(x, m) p = Mul(d, d) v = ReduceMean(p, last)"
                 "e = Add(v, eps) i = Pow(e, minus_half) n = Mul(d, i) w = Mul(n, scale)"
                 "y = Add(bias, w)",
                 op, 0.001f);
    /* without scale and bias */
    becomes_norm(arena,
                 "m = ReduceMean(x, last) d = Sub(x, m) p = Mul(d, d) v = ReduceMean(p, last)"
                 "e = Add(v, eps) r = Sqrt(e) y = Div(d, r)",
                 op, 0.001f);
    /* Keras through tf2onnx: the mean over all axes but two is a pool */
    becomes_norm(arena,
                 "m = GlobalAveragePool(x) d = Sub(x, m) p = Mul(d, d) v = GlobalAveragePool(p)"
                 "e = Add(v, eps) r = Sqrt(e) i = Reciprocal(r) f = Mul(i, scale) a = Mul(x, f)"
                 "n = Neg(m) b = Mul(n, f) c = Add(b, bias) y = Add(a, c)",
                 op, 0.001f);
    becomes_norm(arena,
                 "m = ReduceMean(x, last) d = Sub(x, m) p = Mul(d, d) v = ReduceMean(p, last)"
                 "e = Add(v, eps) r = Sqrt(e) i = Reciprocal(r) f = Mul(i, scale) a = Mul(x, f)"
                 "b = Mul(m, f) c = Sub(bias, b) y = Add(a, c)",
                 op, 0.001f);
}

void test_patterns__layer_norm(void)
{
    check_in_arena(layer_norm);
}

static void several_axes(struct cm_arena *arena)
{
    struct cm_graph *graph = patterns_make(
        arena, X3 ", float[3,4] w", Y3,
        "m = ReduceMean(x, last_two) d = Sub(x, m) p = Pow(d, two) v = ReduceMean(p, last_two)"
        "e = Add(v, eps) r = Sqrt(e) n = Div(d, r) y = Mul(n, w)",
        "LayerNormalization");
    CHECK_INT(cm_node_int(graph->first, "axis"), -2);
    /* a scale along one of the two axes only is not for all elements of a row: no scale then */
    patterns_make(
        arena, X3, Y3,
        "m = ReduceMean(x, last_two) d = Sub(x, m) p = Pow(d, two) v = ReduceMean(p, last_two)"
        "e = Add(v, eps) r = Sqrt(e) n = Div(d, r) y = Mul(n, scale)",
        "LayerNormalization Mul");
}

void test_patterns__norms_over_several_axes(void)
{
    check_in_arena(several_axes);
}

static void no_norm(struct cm_arena *arena)
{
    /* not the trailing axes */
    patterns_keep(arena, X3, Y3,
                  "m = ReduceMean(x, first) d = Sub(x, m) p = Pow(d, two) v = ReduceMean(p, first)"
                  "e = Add(v, eps) r = Sqrt(e) y = Div(d, r)");
    /* two means over different axes: what is left is the root mean square of the difference */
    patterns_make(arena, X3, Y3,
                  "m = ReduceMean(x, first) d = Sub(x, m) p = Pow(d, two) v = ReduceMean(p, last)"
                  "e = Add(v, eps) r = Sqrt(e) y = Div(d, r)",
                  "ReduceMean Sub RMSNormalization");
    /* an epsilon that is computed */
    patterns_keep(arena, X3 ", float z", Y3,
                  "m = ReduceMean(x, last) d = Sub(x, m) p = Pow(d, two) v = ReduceMean(p, last)"
                  "e = Add(v, z) r = Sqrt(e) y = Div(d, r)");
    /* double is more than the operator promises */
    patterns_keep(arena, "double[2,4] x, double z", "double[2,4] y",
                  "k = Constant<value = double {0.001}>()"
                  "m = ReduceMean(x, last) d = Sub(x, m) p = Mul(d, d) v = ReduceMean(p, last)"
                  "e = Add(v, k) r = Sqrt(e) y = Div(d, r)");
    /* the same where the mean is asked for too */
    patterns_make(arena, X3, Y3 ", float[2,3,1] m",
                  "m = ReduceMean(x, last) d = Sub(x, m) p = Pow(d, two) v = ReduceMean(p, last)"
                  "e = Add(v, eps) r = Sqrt(e) y = Div(d, r)",
                  "ReduceMean Sub RMSNormalization");
}

void test_patterns__what_is_nearly_a_norm_stays(void)
{
    check_in_arena(no_norm);
}

static void rms_norm(struct cm_arena *arena)
{
    const char *op = "RMSNormalization";
    /* T5 and Llama by both PyTorch exporters */
    becomes_norm(arena,
                 "p = Pow(x, two) v = ReduceMean(p, last) e = Add(v, eps) r = Sqrt(e)"
                 "n = Div(x, r) y = Mul(scale, n)",
                 op, 0.001f);
    becomes_norm(arena,
                 "p = Pow(x, two) v = ReduceMean(p, last) e = Add(v, eps) r = Sqrt(e)"
                 "i = Reciprocal(r) n = Mul(x, i) y = Mul(n, scale)",
                 op, 0.001f);
    becomes_norm(arena,
                 "p = Mul(x, x) v = ReduceMean(p, last) e = Add(eps, v) r = Sqrt(e)"
                 "i = Div(one, r) n = Mul(x, i) y = Mul(scale, n)",
                 op, 0.001f);
    becomes_norm(arena,
                 "p = Mul(x, x) v = ReduceMean(p, last) e = Add(v, eps) r = Sqrt(e) y = Div(x, r)",
                 op, 0.001f);
}

void test_patterns__rms_norm(void)
{
    check_in_arena(rms_norm);
}

static void narrow(struct cm_arena *arena)
{
    /* Llama in float16: computed in float, cast back before the scale */
    struct cm_graph *graph = patterns_make(
        arena, X3, "float16[2,3,4] y",
        "h = Cast<to = 10>(x) s = Cast<to = 10>(scale) f = Cast<to = 1>(h) p = Pow(f, two)"
        "v = ReduceMean(p, last) e = Add(v, eps) r = Sqrt(e) i = Reciprocal(r) n = Mul(f, i)"
        "b = Cast<to = 10>(n) y = Mul(s, b)",
        "Cast Cast Cast RMSNormalization");
    CHECK_INT(graph->last->inputs[0].value, graph->first->outputs[0]);
    patterns_make(arena, X3, "float16[2,3,4] y",
                  "h = Cast<to = 10>(x) s = Cast<to = 10>(scale) a = Cast<to = 10>(bias)"
                  "f = Cast<to = 1>(h) m = ReduceMean(f, last) d = Sub(f, m) p = Mul(d, d)"
                  "v = ReduceMean(p, last) e = Add(v, eps) r = Sqrt(e) n = Div(d, r)"
                  "b = Cast<to = 10>(n) w = Mul(b, s) y = Add(w, a)",
                  "Cast Cast Cast Cast LayerNormalization");
    /* computed in float16: the operators do it in float */
    patterns_keep(arena, X3, "float16[2,3,4] y",
                  "t = Cast<to = 10>(two) k = Cast<to = 10>(eps) h = Cast<to = 10>(x) p = Pow(h, "
                  "t) v = ReduceMean(p, last) e = Add(v, k)"
                  "r = Sqrt(e) y = Div(h, r)");
}

void test_patterns__norms_of_narrow_types_are_cast_as_the_operators_cast(void)
{
    check_in_arena(narrow);
}

#define SCORES "float[4,3] x, int64[4] t, float[3] w"

static void cross_entropy(struct cm_arena *arena)
{
    struct cm_graph *graph = patterns_make(
        arena, SCORES, "float l",
        "p = LogSoftmax<axis = 1>(x)"
        "l = NegativeLogLikelihoodLoss<reduction = \"sum\", ignore_index = 1>(p, t, w)",
        "SoftmaxCrossEntropyLoss");
    CHECK_STR(cm_node_str(graph->first, "reduction"), "sum");
    CHECK_INT(cm_node_int(graph->first, "ignore_index"), 1);
    patterns_make(arena, SCORES, "float l", "p = LogSoftmax(x) l = NegativeLogLikelihoodLoss(p, t)",
                  "SoftmaxCrossEntropyLoss");
    patterns_make(arena, SCORES, "float l",
                  "s = Softmax(x) p = Log(s) l = NegativeLogLikelihoodLoss(p, t)",
                  "SoftmaxCrossEntropyLoss");
    /* the probabilities are read by others */
    patterns_make(arena, SCORES, "float l, float[4,3] s",
                  "s = Softmax(x) p = Log(s) l = NegativeLogLikelihoodLoss(p, t)",
                  "Softmax SoftmaxCrossEntropyLoss");
    /* so are the logarithms: the loss gives them */
    graph = patterns_make(arena, SCORES, "float l, float[4,3] p",
                          "p = LogSoftmax(x) l = NegativeLogLikelihoodLoss(p, t)",
                          "SoftmaxCrossEntropyLoss");
    CHECK_STR(cm_value_get(graph->module, graph->outputs[1].value)->name, "p");
    patterns_make(arena, SCORES, "float l, float[4,3] n",
                  "p = LogSoftmax(x) l = NegativeLogLikelihoodLoss(p, t) n = Neg(p)",
                  "SoftmaxCrossEntropyLoss Neg");
}

void test_patterns__cross_entropy(void)
{
    check_in_arena(cross_entropy);
}

static void no_cross_entropy(struct cm_arena *arena)
{
    patterns_keep(arena, "float[3,3] x, int64[3] t", "float l",
                  "p = LogSoftmax<axis = 0>(x) l = NegativeLogLikelihoodLoss(p, t)");
    /* somebody reads the logarithms before there is a loss */
    patterns_keep(arena, SCORES, "float l, float[4,3] n",
                  "p = LogSoftmax(x) n = Neg(p) l = NegativeLogLikelihoodLoss(p, t)");
}

void test_patterns__what_is_nearly_a_cross_entropy_stays(void)
{
    check_in_arena(no_cross_entropy);
}

static void unknown_shapes(struct cm_arena *arena)
{
    patterns_make(arena, "float[N,M] x", "float[N,M] y", "s = Sigmoid(x) y = Mul(x, s)", "Swish");
    patterns_make(arena, "float[N,4] x", "float[N,4] y",
                  "m = ReduceMean(x, last) d = Sub(x, m) p = Pow(d, two) v = ReduceMean(p, last)"
                  "e = Add(v, eps) r = Sqrt(e) n = Div(d, r) y = Mul(n, scale)",
                  "LayerNormalization");
    /* whether the scale adds elements is not known, nor how many ones there would be */
    patterns_keep(arena, "float[N,M] x, float[M2] s", "float[N,M3] y",
                  "m = ReduceMean(x, last) d = Sub(x, m) p = Pow(d, two) v = ReduceMean(p, last)"
                  "e = Add(v, eps) r = Sqrt(e) n = Div(d, r) y = Mul(n, s)");
}

void test_patterns__unknown_shapes(void)
{
    check_in_arena(unknown_shapes);
}
