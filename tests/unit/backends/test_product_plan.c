/* Our kernels for matrix products and product regions against the reference kernels: on every
 * instruction set, with one thread and with three. */
// SPDX-License-Identifier: Apache-2.0
#include "base/machine.h"
#include "exec/exec_case.h"

#include <math.h>

enum { MOST_INPUTS = 6 };

/* One run: which kernel the last step had, and what it gave. */
struct outcome {
    const char *kernel;
    char declined[256];
    struct cm_datum out;
};

static void note_step(void *arg, const struct cm_step_report *report)
{
    struct outcome *outcome = arg;
    outcome->kernel = report->kernel;
    snprintf(outcome->declined, sizeof outcome->declined, "%s", report->declined);
}

static const struct cm_datum *waves(struct cm_arena *arena, const struct cm_type *type, int number)
{
    struct cm_shape shape;
    cm_type_shape(type, &shape);
    struct cm_datum *datum = exec_ramp(arena, &shape, 0);
    for (int64_t i = 0; i < cm_tensor_count(&datum->tensor); i++)
        ((float *)datum->tensor.data)[i] = (float)sin(0.7 * (double)(i % 1013) + number);
    return datum;
}

/* element: of the first operand, set to `value`; -1: none */
struct edge {
    int64_t element;
    float value;
};

static struct outcome *run(struct cm_arena *arena, const char *text, const char *backend,
                           int threads, struct edge edge)
{
    struct outcome *outcome = CM_NEW(arena, struct outcome);
    struct cm_graph *graph = graph_of(arena, text, NULL);
    const struct cm_datum *in[MOST_INPUTS];
    const size_t n_in = graph->n_inputs;
    struct cm_error err = {0};
    assert_true(n_in <= MOST_INPUTS);
    for (size_t i = 0; i < n_in; i++)
        in[i] = waves(arena, cm_value_get(graph->module, graph->inputs[i])->fact.type, (int)i);
    if (edge.element >= 0)
        ((float *)in[0]->tensor.data)[edge.element] = edge.value;
    struct cm_session *session = exec_open_after(
        arena, graph, NULL, &(struct cm_session_options){.threads = threads, .backend = backend});
    const struct cm_run_options options = {.step = note_step, .step_arg = outcome};
    CHECK_OK(cm_session_run(session, in, n_in, &outcome->out, 1, &options, &err), &err);
    return outcome;
}

static void compare(const char *text, const struct cm_tensor *fast, const struct cm_tensor *slow)
{
    CHECK(cm_shape_equal(&fast->shape, &slow->shape));
    for (int64_t i = 0; i < cm_tensor_count(fast); i++) {
        const double a = cm_tensor_real(fast, i), b = cm_tensor_real(slow, i);
        if (!(fabs(a - b) <= 1e-5 * (1 + fabs(b))) && !(isnan(a) && isnan(b)) && a != b)
            fail_msg("%s: element %lld is %.9g, expected %.9g", text, (long long)i, a, b);
    }
}

/* The text and edge of the case under way: cmocka's functions take no arguments. */
static const char *model;
static struct edge model_edge;

static void agree_in(struct cm_arena *arena)
{
    struct outcome *slow = run(arena, model, "reference", 1, model_edge);
    const enum cm_machine best = cm_this_machine();
    for (int machine = CM_PLAIN; machine <= (int)best; machine++) {
        cm_machine_limit((enum cm_machine)machine);
        struct outcome *alone = run(arena, model, "cpu", 1, model_edge);
        struct outcome *together = run(arena, model, "cpu", 3, model_edge);
        CHECK_STRING(alone->kernel, "cpu");
        compare(model, &alone->out.tensor, &slow->out.tensor);
        CHECK(exec_same(&alone->out, &together->out));
        cm_datum_drop(&alone->out);
        cm_datum_drop(&together->out);
    }
    cm_machine_limit(CM_MACHINES - 1);
    cm_datum_drop(&slow->out);
}

static void agree_with(struct edge edge, const char *text)
{
    model = text;
    model_edge = edge;
    check_in_arena(agree_in);
}

static void agree(const char *text)
{
    agree_with((struct edge){-1, 0}, text);
}

#define G GRAPH_HEAD "main "

void test_product_plan__matmul_of_all_ranks(void)
{
    agree(G "(float[7,9] a, float[9,5] b) => (float[7,5] y) { y = MatMul(a, b) }");
    agree(G "(float[2,3,7,9] a, float[9,16] b) => (float[2,3,7,16] y) { y = MatMul(a, b) }");
    agree(G "(float[2,1,4,5] a, float[3,5,6] b) => (float[2,3,4,6] y) { y = MatMul(a, b) }");
    agree(G "(float[4,5] a, float[3,5,6] b) => (float[3,4,6] y) { y = MatMul(a, b) }");
    agree(G "(float[40,33,35] a, float[40,35,37] b) => (float[40,33,37] y) { y = MatMul(a, b) }");
    agree(G "(float[9] a, float[9,20] b) => (float[20] y) { y = MatMul(a, b) }");
    agree(G "(float[3,9] a, float[9] b) => (float[3] y) { y = MatMul(a, b) }");
    agree(G "(float[2,3,9] a, float[9] b) => (float[2,3] y) { y = MatMul(a, b) }");
    agree(G "(float[9] a, float[2,9,5] b) => (float[2,5] y) { y = MatMul(a, b) }");
    agree(G "(float[9] a, float[9] b) => (float y) { y = MatMul(a, b) }");
    agree(G "(float[200,70] a, float[70,90] b) => (float[200,90] y) { y = MatMul(a, b) }");
}

void test_product_plan__sums_of_nothing_are_zero(void)
{
    agree(G "(float[3,0] a, float[0,5] b) => (float[3,5] y) { y = MatMul(a, b) }");
    agree(G "(float[3,0] a, float[0,5] b, float[5] c) => (float[3,5] y) { y = Gemm(a, b, c) }");
}

void test_product_plan__constant_weights_are_packed(void)
{
    agree(G "(float[3,4] a) => (float[3,2] y) <float[4,2] b = {1,2,3,4,5,6,7,8}>"
            "{ y = MatMul(a, b) }");
    agree(G "(float[3,4] a) => (float[3,2] y) <float[2,4] b = {1,2,3,4,5,6,7,8}>"
            "{ y = Gemm<transB = 1>(a, b) }");
    agree(G "(float[2,4] a) => (float[2] y) <float[4] b = {1,2,3,4}> { y = MatMul(a, b) }");
}

void test_product_plan__gemm_transposed_and_with_addends(void)
{
    static const char *const attributes[] = {"", "<transA = 1>", "<transB = 1>",
                                             "<transA = 1, transB = 1, alpha = 0.5>"};
    static const char *const addends[] = {"", ", float[33] c", ", float[1,33] c",
                                          ", float[20,33] c"};
    char text[512];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            snprintf(text, sizeof text,
                     G "(float[%s] a, float[%s] b%s) => (float[20,33] y) { y = Gemm%s(a, b%s) }",
                     i == 1 || i == 3 ? "150,20" : "20,150", i >= 2 ? "33,150" : "150,33",
                     addends[j], attributes[i], j ? ", c" : "");
            agree(text);
        }
    agree(
        G
        "(float[70,150] a, float[200,150] b) => (float[70,200] y) { y = Gemm<transB = 1>(a, b) }");
    agree(G "(float[2,3] a, float[3,4] b, float[4] c) => (float[2,4] y) { y = Gemm<beta = 0.0>(a, "
            "b, c) }");
}

void test_product_plan__what_follows_is_done_block_by_block(void)
{
    static const char *const nodes[] = {
        "y = Add(c, s)",
        "y = Add(r, c)",
        "y = Relu(c)",
        "y = Mul(c, low)",
        "y = Clip(c, low, high)",
        "a = Add(c, s) y = Gelu(a)",
        "a = Add(c, s) y = Add(r, a)",
        "a = Add(c, r) y = Add(a, s)",
        "a = Add(c, n) y = Tanh(a)",
        "t = Sigmoid(c) y = Mul(t, c)",
        "a = Add(c, s) t = Sigmoid(a) b1 = Mul(a, t) y = Add(b1, r)",
        "a = Relu(c) y = Add(a, r)",
    };
    char text[1024];
    for (size_t i = 0; i < CM_COUNT(nodes); i++) {
        snprintf(text, sizeof text,
                 G "(float[7,9] x, float[9,50] w, float[1,50] s, float[7,50] r, float n)"
                   " => (float[7,50] y) <float low = {-0.2}, float high = {0.6}>"
                   "{ c = MatMul(x, w) %s }",
                 nodes[i]);
        agree(text);
        snprintf(text, sizeof text,
                 G "(float[2,3,7,500] x, float[2,3,500,16] w, float[16] s, float[2,3,7,16] r,"
                   " float n) => (float[2,3,7,16] y) <float low = {-0.2}, float high = {0.6}>"
                   "{ c = MatMul(x, w) %s }",
                 nodes[i]);
        agree(text);
        snprintf(text, sizeof text,
                 G "(float[1,1] x, float[1,1] w, float[1,1] s, float[1,1] r, float n)"
                   " => (float[1,1] y) <float low = {-0.2}, float high = {0.6}>"
                   "{ c = Gemm(x, w) %s }",
                 nodes[i]);
        agree(text);
    }
}

void test_product_plan__nan_and_infinity_come_through(void)
{
    static const float values[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < CM_COUNT(values); i++) {
        const struct edge edge = {12, values[i]};
        agree_with(edge, G "(float[5,9] x, float[9,20] w) => (float[5,20] y) { y = MatMul(x, w) }");
        agree_with(edge, G "(float[5,9] x, float[9,20] w, float[20] s) => (float[5,20] y)"
                           "{ c = MatMul(x, w) a = Add(c, s) y = Relu(a) }");
    }
}

static void declines_in(struct cm_arena *arena)
{
    const struct edge none = {-1, 0};
    struct outcome *got = run(arena,
                              G "(float[2,3] a, float[3,4] b, float[4] c) => (float[2,4] y)"
                                "{ y = Gemm<beta = 2.0>(a, b, c) }",
                              "cpu", 1, none);
    CHECK_STRING(got->kernel, "reference");
    CHECK(strstr(got->declined, "beta is not 1"));
    cm_datum_drop(&got->out);
    got =
        run(arena,
            G "(float[2,3] a, float[3,4] b, float[2,1] c) => (float[2,4] y) { y = Gemm(a, b, c) }",
            "cpu", 1, none);
    CHECK_STRING(got->kernel, "reference");
    CHECK(strstr(got->declined, "C is neither a row nor as large as the result"));
    cm_datum_drop(&got->out);
    /* what it leaves to a faster kernel it takes when there is none */
    got =
        run(arena, G "(float[400,30] a, float[30,40] b) => (float[400,40] y) { y = MatMul(a, b) }",
            "cpu", 1, none);
    CHECK_STRING(got->kernel, "cpu");
    CHECK(strstr(got->declined, "the left operand has 160 rows or more"));
    cm_datum_drop(&got->out);
}

void test_product_plan__says_why_it_declines(void)
{
    check_in_arena(declines_in);
}
