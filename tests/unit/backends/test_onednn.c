/* oneDNN's kernels against the reference kernels, over many shapes; layouts kept between steps. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_case.h"

#include "backends/onednn/dnnl.h"
#include "base/machine.h"
#include "exec/program.h"
#include "rewrite/pass.h"

#include <math.h>
#include <pthread.h>

enum { MOST_INPUTS = 8, MOST_STEPS = 32 };
#define HEAD "<ir_version: 10, opset_import: [\"\" : 28, \"ai.cameo\" : 1]>\n"

/* Without the library all of this runs on the reference kernels, and says why. */
static bool have_onednn(void)
{
    return cm_dnnl_found().version[0] != '\0';
}

/* ---- running a graph both ways ---- */

struct trace {
    const char *kernels[MOST_STEPS], *declined[MOST_STEPS];
    size_t count;
};

static void note(void *arg, const struct cm_step_report *report)
{
    struct trace *trace = arg;
    if (trace->count < MOST_STEPS) {
        trace->kernels[trace->count] = report->kernel;
        trace->declined[trace->count] = report->declined;
    }
    trace->count++;
}

static float next_number(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / 8388608.0f - 1.0f;
}

static void drop_datum(void *what)
{
    cm_datum_drop(what);
}

static void drop_session(void *what)
{
    cm_session_free(what);
}

/* Numbers between -1 and 1, or between 1 and 2 for variances and divisors. */
static struct cm_datum *numbers_for(struct cm_arena *arena, const struct cm_type *type,
                                    uint32_t seed, bool positive)
{
    struct cm_datum *datum = CM_NEW(arena, struct cm_datum);
    struct cm_shape shape;
    struct cm_error err;
    CHECK(cm_type_shape(type, &shape));
    CHECK_OK(cm_tensor_new(type->dtype, &shape, &datum->tensor, &err), &err);
    cm_arena_defer(arena, drop_datum, datum);
    datum->kind = CM_KIND_TENSOR;
    memset(datum->tensor.data, 0, cm_tensor_bytes(&datum->tensor));
    for (int64_t i = 0; type->dtype == CM_FLOAT && i < cm_tensor_count(&datum->tensor); i++) {
        const float x = next_number(&seed);
        ((float *)datum->tensor.data)[i] = positive ? 1.5f + x / 2 : x;
    }
    return datum;
}

/* Input i of the graph, read by nobody any more: what it was fed is a constant. */
static void fix_input(struct cm_graph *graph, size_t i, const struct cm_datum *datum)
{
    struct cm_error err;
    const cm_value value = cm_graph_add_constant(graph, CM_STR_NONE, &datum->tensor);
    cm_value_replace(graph->module, graph->inputs[i], value);
    CHECK_OK(cm_graph_retype(graph, &err), &err);
}

struct way {
    const char *backend;
    int threads;
    bool constants; /* all inputs but the first are constants */
    bool regions;   /* groups of nodes become one */
};

struct outcome {
    struct cm_datum out;
    struct cm_session *session;
    struct trace trace;
};

static struct outcome *run_way(struct cm_arena *arena, const char *text, const struct way *way)
{
    struct outcome *outcome = CM_NEW(arena, struct outcome);
    struct cm_error err;
    char whole[2048];
    snprintf(whole, sizeof whole, "%s%s", HEAD, text);
    struct cm_graph *graph = graph_of(arena, whole, NULL);
    const struct cm_datum *in[MOST_INPUTS];
    const size_t n_in = graph->n_inputs;
    CHECK(n_in <= MOST_INPUTS);
    for (size_t i = 0; i < n_in; i++) {
        const struct cm_value_def *def = cm_value_get(graph->module, graph->inputs[i]);
        in[i] = numbers_for(arena, def->fact.type, (uint32_t)i + 7, cm_str_is(def->name, "v"));
        if (way->constants && i > 0)
            fix_input(graph, i, in[i]);
    }
    if (way->regions)
        CHECK_OK(cm_pass_regions(graph, &(struct cm_pass_options){0}, &err), &err);
    const struct cm_session_options options = {.threads = way->threads, .backend = way->backend};
    CHECK_OK(cm_session_new(graph, &options, &outcome->session, &err), &err);
    cm_arena_defer(arena, drop_session, outcome->session);
    cm_arena_defer(arena, drop_datum, &outcome->out);
    for (int again = 0; again < 2; again++) { /* the second run finds everything prepared */
        outcome->trace.count = 0;
        const struct cm_run_options run = {.step = note, .step_arg = &outcome->trace};
        cm_datum_drop(&outcome->out);
        CHECK_OK(cm_session_run(outcome->session, in, n_in, &outcome->out, 1, &run, &err), &err);
    }
    return outcome;
}

/* Within 1e-4 of the largest number there is. */
static void check_close(const struct cm_tensor *got, const struct cm_tensor *want)
{
    const float *a = got->data, *b = want->data;
    float largest = 0;
    CHECK(cm_shape_equal(&got->shape, &want->shape));
    for (int64_t i = 0; i < cm_tensor_count(want); i++)
        largest = fmaxf(largest, fabsf(b[i]));
    CHECK(largest > 0);
    for (int64_t i = 0; i < cm_tensor_count(want); i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-4f * largest))
            fail_msg("element %lld is %g, must be %g", (long long)i, (double)a[i], (double)b[i]);
}

/* What the test at hand is about; cmocka's tests take no argument. */
static const char *model;
static size_t onednn_steps; /* of the last run */

static void compare_in(struct cm_arena *arena)
{
    const struct way reference = {"reference", 1, false, false};
    const struct cm_tensor *want = &run_way(arena, model, &reference)->out.tensor;
    for (int threads = 1; threads <= 2; threads++)
        for (int constants = 0; constants < 2; constants++) {
            const struct way way = {"onednn", threads, constants, false};
            const struct outcome *got = run_way(arena, model, &way);
            check_close(&got->out.tensor, want);
            onednn_steps = 0;
            for (size_t i = 0; i < got->trace.count; i++)
                onednn_steps += strcmp(got->trace.kernels[i], "onednn") == 0;
        }
}

/* Both ways agree, and oneDNN takes this many of the steps. */
static void check_model(const char *text, size_t taken)
{
    model = text;
    check_in_arena(compare_in);
    taken = have_onednn() ? taken : 0;
    if (onednn_steps != taken)
        fail_msg("oneDNN took %zu steps, not %zu, of: %s", onednn_steps, taken, text);
}

static const char *wanted_reason;

static void declines_in(struct cm_arena *arena)
{
    const struct way way = {"onednn", 1, false, false};
    const struct outcome *got = run_way(arena, model, &way);
    CHECK_INT(got->trace.count, 1);
    CHECK_STRING(got->trace.kernels[0], "reference");
    if (!strstr(got->trace.declined[0], wanted_reason))
        fail_msg("expected '%s', got '%s'", wanted_reason, got->trace.declined[0]);
}

static void check_declines(const char *text, const char *reason)
{
    model = text;
    wanted_reason = reason;
    check_in_arena(declines_in);
}

void test_library__is_found_or_the_reason_is_told(void)
{
    const struct cm_dnnl_found found = cm_dnnl_found();
    if (have_onednn()) {
        CHECK(found.path[0] == '/' && !found.why[0]);
        return;
    }
    CHECK(found.why[0]);
    check_declines("g (float[1,16,9,9] x, float[16,16,3,3] w) => (y) { y = Conv(x, w) }",
                   found.why);
}

/* ---- convolution ---- */

struct conv_case {
    const char *op, *x, *w;
    int64_t out_channels;
    const char *attributes;
};

static void check_conv(const struct conv_case *c)
{
    char text[1024];
    snprintf(text, sizeof text,
             "g (float[%s] x, float[%s] w, float[%lld] b) => (y) { y = %s<%s>(x, w, b) }", c->x,
             c->w, (long long)c->out_channels, c->op, c->attributes);
    check_model(text, 1);
    snprintf(text, sizeof text, "g (float[%s] x, float[%s] w) => (y) { y = %s<%s>(x, w) }", c->x,
             c->w, c->op, c->attributes);
    check_model(text, 1);
}

#define CHECK_CONVS(cases)                                                                         \
    for (size_t i = 0; i < sizeof(cases) / sizeof((cases)[0]); i++)                                \
    check_conv(&(cases)[i])

void test_conv__agrees_with_the_reference_on_images(void)
{
    static const struct conv_case cases[] = {
        {"Conv", "1,16,9,9", "16,16,3,3", 16, "group = 1"},
        {"Conv", "2,3,17,15", "17,3,3,3", 17, "pads = [1, 1, 1, 1]"},
        {"Conv", "1,17,8,8", "5,17,1,1", 5, "group = 1"},
        {"Conv", "1,1,7,7", "1,1,3,3", 1, "group = 1"},
        {"Conv", "2,32,14,14", "64,32,3,3", 64, "strides = [2, 2], pads = [1, 1, 1, 1]"},
        {"Conv", "1,3,23,23", "64,3,7,7", 64, "strides = [2, 2], pads = [3, 3, 3, 3]"},
        {"Conv", "1,16,10,11", "32,16,3,2", 32, "strides = [1, 3], pads = [0, 1, 2, 0]"},
        {"Conv", "1,16,15,15", "16,16,3,3", 16, "dilations = [2, 3], pads = [2, 3, 2, 3]"},
        {"Conv", "1,20,6,6", "24,20,5,5", 24, "pads = [2, 2, 2, 2]"},
    };
    CHECK_CONVS(cases);
}

void test_conv__agrees_with_the_reference_in_groups(void)
{
    static const struct conv_case cases[] = {
        {"Conv", "1,32,9,9", "32,16,3,3", 32, "group = 2, pads = [1, 1, 1, 1]"},
        {"Conv", "1,6,9,9", "9,2,3,3", 9, "group = 3"},
        {"Conv", "2,32,9,9", "32,1,3,3", 32, "group = 32, pads = [1, 1, 1, 1]"},
        {"Conv", "1,17,9,9", "17,1,3,3", 17, "group = 17, strides = [2, 2], pads = [1, 1, 1, 1]"},
        {"Conv", "1,8,9,9", "16,1,3,3", 16, "group = 8"},
        {"Conv", "1,34,7,7", "34,17,1,1", 34, "group = 2"},
    };
    CHECK_CONVS(cases);
}

void test_conv__agrees_with_the_reference_on_other_ranks(void)
{
    static const struct conv_case cases[] = {
        {"Conv", "2,16,20", "24,16,3", 24, "pads = [1, 1]"},
        {"Conv", "1,3,31", "17,3,5", 17, "strides = [2], dilations = [2]"},
        {"Conv", "1,16,5,6,7", "16,16,3,3,3", 16, "pads = [1, 1, 1, 1, 1, 1]"},
        {"Conv", "1,3,5,6,7", "5,3,2,3,2", 5, "strides = [1, 2, 1]"},
        {"Conv", "1,4,5,6,7", "8,2,3,3,3", 8, "group = 2"},
    };
    CHECK_CONVS(cases);
}

void test_conv__computes_automatic_pads(void)
{
    static const struct conv_case cases[] = {
        {"Conv", "1,16,9,8", "16,16,3,4", 16, "auto_pad = \"SAME_UPPER\", strides = [2, 2]"},
        {"Conv", "1,16,9,8", "16,16,3,4", 16, "auto_pad = \"SAME_LOWER\", strides = [2, 2]"},
        {"Conv", "1,16,9,8", "16,16,3,4", 16, "auto_pad = \"SAME_UPPER\""},
        {"Conv", "1,16,9,8", "16,16,3,3", 16, "auto_pad = \"VALID\", strides = [2, 2]"},
    };
    CHECK_CONVS(cases);
}

void test_conv_transpose__agrees_with_the_reference(void)
{
    static const struct conv_case cases[] = {
        {"ConvTranspose", "1,16,9,9", "16,16,3,3", 16, "group = 1"},
        {"ConvTranspose", "2,3,7,5", "3,17,3,3", 17, "pads = [1, 1, 1, 1]"},
        {"ConvTranspose", "2,32,7,7", "32,64,3,3", 64, "strides = [2, 2], pads = [1, 1, 1, 1]"},
        {"ConvTranspose", "1,8,6,7", "8,16,4,2", 16, "strides = [2, 3], pads = [0, 1, 2, 0]"},
        {"ConvTranspose", "1,16,7,7", "16,16,3,3", 16, "dilations = [2, 3]"},
        {"ConvTranspose", "1,16,9,9", "16,8,3,3", 16, "group = 2, strides = [2, 2]"},
        {"ConvTranspose", "1,32,5,5", "32,1,3,3", 32, "group = 32, pads = [1, 1, 1, 1]"},
        {"ConvTranspose", "2,16,11", "16,32,5", 32, "strides = [2], pads = [2, 2]"},
        {"ConvTranspose", "1,16,4,5,6", "16,16,3,3,3", 16, "pads = [1, 1, 1, 1, 1, 1]"},
        {"ConvTranspose", "1,16,6,6", "16,16,3,3", 16,
         "strides = [2, 2], output_padding = [1, 1], pads = [1, 1, 1, 1]"},
    };
    CHECK_CONVS(cases);
    check_declines("g (float[1,4,5,5] x, float[4,4,3,3] w) => (y)"
                   " { y = ConvTranspose<auto_pad = \"SAME_UPPER\", strides = [2, 2]>(x, w) }",
                   "padding follows from the size of the result");
}

void test_conv_grad__says_why_it_declines(void)
{
    check_declines("g (float[1,4,3,3] dy, float[1,3,5,5] x, float[4,3,3,3] w) => (db)"
                   " { , , db = ai.cameo.ConvGrad(dy, x, w) }",
                   "the gradient of the bias is wanted, not that of W");
    check_declines("g (double[1,4,3,3] dy, double[1,3,5,5] x, double[4,3,3,3] w) => (dx)"
                   " { dx = ai.cameo.ConvGrad(dy, x, w) }",
                   "oneDNN convolution gradient: operand 'dY' is double");
}

void test_conv__says_why_it_declines(void)
{
    check_declines("g (double[1,3,5,5] x, double[4,3,3,3] w) => (y) { y = Conv(x, w) }",
                   "oneDNN convolution: operand 'X' is double");
    check_declines("g (float[1,2,2,2,2,2] x, float[2,2,1,1,1,1] w) => (y) { y = Conv(x, w) }",
                   "oneDNN convolution: the image has 4 spatial axes");
    check_declines("g (float[0,3,5,5] x, float[4,3,3,3] w) => (y) { y = Conv(x, w) }",
                   "oneDNN convolution: operand 'X' is empty");
}

/* ---- products ---- */

void test_matmul__agrees_with_the_reference(void)
{
    static const char *const shapes[][2] = {
        {"5,7", "7,3"},     {"64,65", "65,17"},     {"1,300", "300,40"},  {"2,3,4,5", "5,6"},
        {"6,4,5", "6,5,3"}, {"2,3,4,5", "2,3,5,6"}, {"3,4,5", "1,1,5,2"},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "g (float[%s] a, float[%s] b) => (y) { y = MatMul(a, b) }",
                 shapes[i][0], shapes[i][1]);
        check_model(text, 1);
    }
}

void test_matmul__repeats_matrices_where_batches_broadcast(void)
{
    model = "g (float[2,1,4,5] a, float[3,5,6] b) => (y) { y = MatMul(a, b) }";
    check_in_arena(compare_in); /* by whichever kernel */
}

void test_gemm__agrees_with_the_reference(void)
{
    check_model("g (float[8,20] a, float[20,9] b, float[9] c) => (y) { y = Gemm(a, b, c) }", 1);
    check_model("g (float[8,20] a, float[9,20] b, float[1,9] c) => (y)"
                " { y = Gemm<transB = 1>(a, b, c) }",
                1);
    check_model("g (float[20,8] a, float[20,9] b) => (y) { y = Gemm<transA = 1>(a, b) }", 1);
    check_model("g (float[20,8] a, float[9,20] b) => (y)"
                " { y = Gemm<transA = 1, transB = 1, alpha = 0.5>(a, b) }",
                1);
    check_model("g (float[8,20] a, float[20,9] b, float[9] c) => (y)"
                " { y = Gemm<beta = 0.0>(a, b, c) }",
                1);
}

void test_gemm__says_why_it_declines(void)
{
    check_declines("g (float[8,20] a, float[20,9] b, float[9] c) => (y)"
                   " { y = Gemm<beta = 2.0>(a, b, c) }",
                   "oneDNN product: alpha or beta is not 1");
    check_declines("g (float[8,20] a, float[20,9] b, float[8,9] c) => (y) { y = Gemm(a, b, c) }",
                   "oneDNN product: C is not one row");
}

/* ---- pooling and normalization ---- */

void test_pooling__agrees_with_the_reference(void)
{
    static const char *const nodes[] = {
        "MaxPool<kernel_shape = [3, 3], strides = [2, 2]>(x)",
        "MaxPool<kernel_shape = [3, 2], pads = [1, 0, 1, 1]>(x)",
        "MaxPool<kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1>(x)",
        "MaxPool<kernel_shape = [3, 3], auto_pad = \"SAME_LOWER\", strides = [2, 2]>(x)",
        "AveragePool<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>(x)",
        "AveragePool<kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1>(x)",
        "AveragePool<kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1>(x)",
        "GlobalAveragePool(x)",
        "GlobalMaxPool(x)",
    };
    static const char *const shapes[] = {"1,16,12,12", "2,3,11,12", "1,17,10,9"};
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
            char text[512];
            snprintf(text, sizeof text, "g (float[%s] x) => (y) { y = %s }", shapes[s], nodes[i]);
            model = text;
            check_in_arena(compare_in);
        }
}

static bool same_kind(float a, float b)
{
    return isnan(a) ? isnan(b) : isinf(a) ? a == b : fabsf(a - b) <= 1e-4f * (1 + fabsf(a));
}

static void odd_numbers_in(struct cm_arena *arena)
{
    const struct cm_tensor *want =
        &run_way(arena, model, &(struct way){"reference", 1, false, false})->out.tensor;
    const struct outcome *got = run_way(arena, model, &(struct way){"onednn", 2, false, false});
    size_t odd = 0;
    for (int64_t i = 0; i < cm_tensor_count(want); i++) {
        const float a = ((const float *)got->out.tensor.data)[i],
                    b = ((const float *)want->data)[i];
        odd += isnan(b) || isinf(b);
        if (!same_kind(a, b))
            fail_msg("element %lld is %g, must be %g", (long long)i, (double)a, (double)b);
    }
    CHECK(odd > 0);
    CHECK_STRING(got->trace.kernels[got->trace.count - 1], have_onednn() ? "onednn" : "reference");
}

/* Logarithms of what a convolution gives, in its layout: NaN where it is below 0; of what Relu
 * leaves: -inf; and of the input, row by row. */
void test_pooling__the_largest_of_nan_is_nan_and_of_minus_infinity_that(void)
{
    static const char *const nodes[] = {
        "MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(l)",
        "MaxPool<kernel_shape = [2, 3], pads = [1, 1, 0, 1]>(l)",
        "MaxPool<kernel_shape = [2, 2], pads = [1, 1, 1, 1]>(l)",
        "MaxPool<kernel_shape = [3, 3], pads = [2, 1, 2, 2], strides = [1, 2]>(l)",
        "GlobalMaxPool(l)",
    };
    static const char *const before[] = {"l = Log(c)", "r = Relu(c) l = Log(r)", "l = Log(x)"};
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++)
        for (size_t b = 0; b < 3; b++) {
            char text[512];
            snprintf(text, sizeof text,
                     "g (float[1,3,6,6] x, float[16,3,%s] w) => (y) { c = Conv(x, w) %s y = %s }",
                     b ? "3,3" : "1,1", before[b], nodes[i]);
            model = text;
            if (b != 1 || i < 4) /* not all that is left is 0 */
                check_in_arena(odd_numbers_in);
        }
    model = "g (float[2,3,5,4,6] x) => (y) { l = Log(x) y = MaxPool<kernel_shape = [2, 2, 3],"
            " pads = [1, 0, 2, 0, 1, 1], strides = [2, 1, 1]>(l) }";
    check_in_arena(odd_numbers_in);
    model = "g (float[2,3,9] x) => (y) { l = Log(x) y = MaxPool<kernel_shape = [3],"
            " pads = [2, 1], strides = [2]>(l) }";
    check_in_arena(odd_numbers_in);
}

void test_pooling__says_why_it_declines(void)
{
    check_declines("g (float[1,3,9,9] x) => (y)"
                   " { y = AveragePool<kernel_shape = [3, 3], dilations = [2, 2]>(x) }",
                   "oneDNN pooling: the window has holes");
}

void test_batch_normalization__agrees_with_the_reference(void)
{
    static const char *const shapes[] = {"2,16,5,5", "1,17,5,6", "3,5", "2,3,7", "1,4,3,4,5"};
    static const int channels[] = {16, 17, 5, 3, 4};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "g (float[%s] x, float[%d] s, float[%d] b, float[%d] m, float[%d] v) => (y)"
                 " { y = BatchNormalization<epsilon = 0.01>(x, s, b, m, v) }",
                 shapes[i], channels[i], channels[i], channels[i], channels[i]);
        model = text;
        check_in_arena(compare_in);
    }
}

void test_lrn__agrees_with_the_reference(void)
{
    model = "g (float[2,17,6,5] x) => (y) { y = LRN<size = 5, alpha = 0.1, bias = 2.0>(x) }";
    check_in_arena(compare_in);
    model = "g (float[1,32,6,5] x) => (y) { y = LRN<size = 3, alpha = 0.1, beta = 0.5>(x) }";
    check_in_arena(compare_in);
    check_declines("g (float[1,8,6,5] x) => (y) { y = LRN<size = 4>(x) }",
                   "oneDNN normalization: the size is even");
}

/* ---- layouts ---- */

static size_t wanted_reorders;

static void count_in(struct cm_arena *arena)
{
    const struct way way = {"onednn", 2, true, false}, reference = {"reference", 1, true, false};
    const struct outcome *got = run_way(arena, model, &way);
    const struct cm_context *context = got->session->free_contexts;
    const struct cm_binding *binding = context->blocks[0].bindings;
    size_t reorders = 0;
    for (size_t i = 0; i < binding->steps.count; i++)
        reorders += !binding->steps.items[i]->step;
    CHECK_INT(reorders, have_onednn() ? wanted_reorders : 0);
    check_close(&got->out.tensor, &run_way(arena, model, &reference)->out.tensor);
}

static void check_reorders(const char *text, size_t reorders)
{
    model = text;
    wanted_reorders = reorders;
    check_in_arena(count_in);
}

void test_layout__is_kept_from_convolution_to_convolution(void)
{
    /* x goes in and y comes out: two changes, whatever lies between. */
    check_reorders("g (float[1,16,12,12] x, float[17,16,3,3] w, float[8,17,3,3] v) => (y)"
                   " { a = Conv(x, w) b = Relu(a) y = Conv(b, v) }",
                   2);
    check_reorders("g (float[1,16,12,12] x, float[24,16,3,3] w, float[24,24,3,3] v) => (y)"
                   " { a = Conv(x, w) b = Relu(a)"
                   "   c = Conv<pads = [1, 1, 1, 1]>(b, v) d = Add(b, c)"
                   "   e = MaxPool<kernel_shape = [2, 2]>(d) y = Conv(e, v) }",
                   2);
}

void test_layout__survives_concatenation_and_values_by_channel(void)
{
    check_reorders("g (float[1,16,8,8] x, float[16,16,1,1] w, float[5,16,1,1] u,"
                   "   float[21,1,1] s, float[9,21,1,1] v) => (y)"
                   " { a = Conv(x, w) b = Conv(x, u) c = Concat<axis = 1>(a, b)"
                   "   d = Mul(c, s) e = Add(s, d) y = Conv(e, v) }",
                   3); /* x twice */
}

void test_layout__goes_with_single_elements(void)
{
    check_reorders("g (float[1,16,8,8] x, float[24,16,1,1] w, float low, float[1,1] high,"
                   "   float[9,24,3,3] v) => (y)"
                   " { a = Conv(x, w) b = Clip(a, low, high) c = Mul(b, high) y = Conv(c, v) }",
                   2);
}

void test_layout__is_undone_for_results_of_another_type(void)
{
    check_reorders("g (float[1,16,8,8] x, float[24,16,1,1] w, float[24,16,1,1] v) => (y)"
                   " { a = Conv(x, w) b = IsNaN(a) c = Conv(x, v) d = Where(b, c, a)"
                   "   y = Relu(d) }",
                   5); /* x and a twice, c */
}

void test_layout__of_one_place_is_plain(void)
{
    check_reorders("g (float[1,16,8,8] x, float[24,16,1,1] w, float[24,10] v) => (y)"
                   " { a = Conv(x, w) b = GlobalAveragePool(a) c = Flatten(b) y = MatMul(c, v) }",
                   1);
}

void test_layout__is_undone_for_steps_that_need_rows(void)
{
    check_reorders("g (float[1,16,8,8] x, float[24,16,1,1] w) => (y)"
                   " { a = Conv(x, w) y = Transpose<perm = [0, 2, 1, 3]>(a) }",
                   2);
    check_reorders("g (float[3,16,8,8] x, float[24,16,1,1] w) => (y)"
                   " { a = Conv(x, w) y = Scan<num_scan_inputs = 1,"
                   "   body = b (float[24,8,8] p) => (float[24,8,8] q) { q = Neg(p) }>(a) }",
                   1); /* Scan undoes the other one by itself */
}

/* ---- products with what follows them ---- */

static void compare_regions_in(struct cm_arena *arena)
{
    const struct way reference = {"reference", 1, false, false};
    const struct cm_tensor *want = &run_way(arena, model, &reference)->out.tensor;
    for (int threads = 1; threads <= 2; threads++)
        for (int constants = 0; constants < 2; constants++) {
            const struct way way = {"onednn", threads, constants, true};
            const struct outcome *got = run_way(arena, model, &way);
            check_close(&got->out.tensor, want);
            if (!have_onednn())
                continue;
            if (got->trace.count != 1 || strcmp(got->trace.kernels[0], "onednn") != 0)
                fail_msg("oneDNN does not take all of it (%s): %s", got->trace.declined[0], model);
        }
}

/* The nodes after the first become part of it, and oneDNN takes them all. */
static void check_region(const char *text)
{
    model = text;
    check_in_arena(compare_regions_in);
}

static const char *const products[] = {
    "c = Conv<pads = [1, 1, 1, 1]>(x, w)",
    "c = Conv<pads = [1, 1, 1, 1]>(x, w, b)",
    "c = ConvTranspose<pads = [1, 1, 1, 1]>(x, w, b)",
    "c = Conv<group = 16, pads = [1, 1, 1, 1]>(x, g, b)",
};

static const char numbers[] = "<float low = {-0.2}, float high = {0.6}>";

/* After each kind of convolution, and after matrix products of two and of four axes. */
static void check_after_products(const char *nodes)
{
    char text[1024];
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        snprintf(text, sizeof text,
                 "g (float[2,16,6,5] x, float[16,16,3,3] w, float[16,1,3,3] g, float[16] b,"
                 "   float[16,1,1] s, float[2,16,6,5] r, float n) => (y) %s { %s %s }",
                 numbers, products[i], nodes);
        check_region(text);
    }
    snprintf(text, sizeof text,
             "g (float[7,9] x, float[9,16] w, float[16] b, float[1,16] s, float[7,16] r, float n)"
             " => (y) %s { c = Gemm(x, w, b) %s }",
             numbers, nodes);
    check_region(text);
    snprintf(text, sizeof text,
             "g (float[2,3,7,9] x, float[9,16] w, float[1,1,16] s, float[2,3,7,16] r, float n)"
             " => (y) %s { c = MatMul(x, w) %s }",
             numbers, nodes);
    check_region(text);
    snprintf(text, sizeof text,
             "g (float[2,3,7,9] x, float[2,3,9,16] w, float[16] s, float[2,3,7,16] r, float n)"
             " => (y) %s { c = MatMul(x, w) %s }",
             numbers, nodes);
    check_region(text);
}

void test_region__takes_a_bias(void)
{
    check_after_products("y = Add(c, s)");
    check_after_products("a = Add(s, c) y = Relu(a)");
}

void test_region__takes_activations(void)
{
    static const char *const nodes[] = {
        "y = Relu(c)",
        "y = LeakyRelu<alpha = 0.3>(c)",
        "y = Elu<alpha = 2.0>(c)",
        "y = Sigmoid(c)",
        "y = Tanh(c)",
        "y = Gelu(c)",
        "y = Gelu<approximate = \"tanh\">(c)",
        "y = HardSigmoid<alpha = 0.3, beta = 0.4>(c)",
        "y = HardSwish(c)",
        "y = Mish(c)",
        "y = Softplus(c)",
        "y = Swish<alpha = 1.5>(c)",
        "s1 = Sigmoid(c) y = Mul(c, s1)",
        "s1 = Sigmoid(c) y = Mul(s1, c)",
        "y = Clip(c, low, high)",
        "y = Clip(c, low)",
        "y = Mul(c, low)",
        "a = Add(high, c) y = Relu(a)",
        "a = Mul(c, low) b1 = Add(a, high) d = Tanh(b1) y = Relu(d)",
    };
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++)
        check_after_products(nodes[i]);
}

static void agrees_in(struct cm_arena *arena)
{
    const struct way reference = {"reference", 1, true, false}, way = {"onednn", 2, true, true};
    const struct outcome *got = run_way(arena, model, &way);
    check_close(&got->out.tensor, &run_way(arena, model, &reference)->out.tensor);
}

/* oneDNN 2.6 would use the first one's parameters for both. */
void test_region__declines_a_function_that_follows_twice(void)
{
    static const char *const nodes[] = {
        "a = Mul(c, low) t = Tanh(a) y = Mul(t, high)",
        "a = LeakyRelu<alpha = 0.5>(c) t = Tanh(a) y = LeakyRelu<alpha = 0.25>(t)",
        "a = HardSigmoid(c) t = Tanh(a) y = Clip(t, low, high)",
    };
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "g (float[7,9] x, float[9,16] w) => (y) %s { c = MatMul(x, w) %s }", numbers,
                 nodes[i]);
        model = text;
        check_in_arena(agrees_in);
    }
}

void test_region__takes_a_residual(void)
{
    check_after_products("y = Add(c, r)");
    check_after_products("a = Add(r, c) y = Relu(a)");
    check_after_products("a = Sum(c, r) y = Relu(a)");
    if (cm_this_machine() >= CM_AVX512) /* its code for AVX2 adds before it activates */
        check_region("g (float[2,16,6,5] x, float[16,16,1,1] w, float[2,16,6,5] r) => (y)"
                     " { c = Conv(x, w) a = Relu(c) y = Add(a, r) }"); /* 3.x: not by channel */
    check_region(
        "g (float[2,16,6,5] x, float[16,16,1,1] w, float[16,1,1] s, float[2,16,6,5] r)"
        " => (y) { c = Conv(x, w) a = Add(c, s) b = Add(a, r) d = Gelu(b) y = Add(d, s) }");
    check_region("g (float[2,7,9] x, float[9,16] w, float[16] s, float[2,7,16] r) => (y)"
                 " { c = MatMul(x, w) a = Add(c, s) b = Add(a, r) d = Gelu(b) y = Add(d, s) }");
}

/* Overwritten where nobody reads it afterwards, kept where somebody does, or the product itself. */
void test_region__leaves_a_residual_that_is_read_again(void)
{
    static const char *const nodes[] = {
        "p = Relu(x) q = Conv(p, w) e = Conv(q, w) y = Add(e, q)",
        "p = Conv(x, w) q = Conv(p, w) a = Add(q, p) y = Conv(a, w)",
        "p = Conv(x, w) q = Conv(p, w) a = Add(q, p) b1 = Relu(a) y = Add(b1, p)",
        "p = Conv(x, w) m = Conv(x, w) q = Conv(p, w) a = Add(q, m) z = Neg(m) y = Add(a, z)",
    };
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        char text[512];
        snprintf(text, sizeof text, "g (float[1,16,6,5] x, float[16,16,1,1] w) => (y) { %s }",
                 nodes[i]);
        model = text;
        check_in_arena(agrees_in);
    }
}

static void nan_in_region(struct cm_arena *arena)
{
    const struct cm_tensor *want =
        &run_way(arena, model, &(struct way){"reference", 1, false, false})->out.tensor;
    const struct outcome *got = run_way(arena, model, &(struct way){"onednn", 2, false, true});
    size_t odd = 0;
    for (int64_t i = 0; i < cm_tensor_count(want); i++) {
        const float a = ((const float *)got->out.tensor.data)[i],
                    b = ((const float *)want->data)[i];
        odd += isnan(b) != 0;
        if (!same_kind(a, b))
            fail_msg("element %lld is %g, must be %g", (long long)i, (double)a, (double)b);
    }
    CHECK(odd > 0);
}

void test_region__keeps_nan(void)
{
    static const char *const nodes[] = {
        "y = Relu(c)",     "y = LeakyRelu<alpha = 0.3>(c)", "y = Sigmoid(c)", "y = Elu(c)",
        "y = Softplus(c)", "a = Add(c, r) y = Tanh(a)",
    };
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "g (float[1,16,6,5] x, float[16,16,3,3] w, float[1,16,4,3] r) => (y)"
                 " { l = Sqrt(x) c = Conv(l, w) %s }",
                 nodes[i]);
        model = text;
        check_in_arena(nan_in_region);
    }
}

/* ---- several runs at once ---- */

enum { RUNNERS = 4 };

struct runner {
    struct cm_session *session;
    const struct cm_datum *in;
    struct cm_datum out;
    enum cm_status status;
};

static void *run_alone(void *arg)
{
    struct runner *runner = arg;
    for (int i = 0; i < 20 && !runner->status; i++) {
        cm_datum_drop(&runner->out);
        runner->status =
            cm_session_run(runner->session, &runner->in, 1, &runner->out, 1, NULL, NULL);
    }
    return NULL;
}

static void run_together(struct cm_arena *arena)
{
    struct cm_error err;
    struct cm_session *session;
    struct cm_graph *graph =
        graph_of(arena,
                 GRAPH_HEAD "g (float[1,16,12,12] x) => (y) { a = MaxPool<kernel_shape = [2, 2]>(x)"
                            " b = Relu(a) y = LRN<size = 3, alpha = 0.5>(b) }",
                 NULL);
    const struct cm_type *type = cm_value_get(graph->module, graph->inputs[0])->fact.type;
    CHECK_OK(cm_session_new(graph, &(struct cm_session_options){.threads = 2}, &session, &err),
             &err);
    cm_arena_defer(arena, drop_session, session);
    struct runner runners[RUNNERS] = {0};
    pthread_t threads[RUNNERS];
    const struct cm_datum *in = numbers_for(arena, type, 1, true);
    for (int i = 0; i < RUNNERS; i++) {
        runners[i] = (struct runner){.session = session, .in = in};
        CHECK(pthread_create(&threads[i], NULL, run_alone, &runners[i]) == 0);
    }
    for (int i = 0; i < RUNNERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < RUNNERS; i++) {
        CHECK_INT(runners[i].status, CM_OK);
        check_close(&runners[i].out.tensor, &runners[0].out.tensor);
    }
    for (int i = 0; i < RUNNERS; i++)
        cm_datum_drop(&runners[i].out);
}

void test_session__runs_for_several_threads_at_once(void)
{
    check_in_arena(run_together);
}
