/* Control flow as MLIR: which loops it becomes, and what is said of bodies that cannot be compiled;
 * and which nodes kernels take with them.
 * Needs no library of others: the text is judged. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "cameo.h"
#include "check.h"

#include <stdio.h>
#include <stdlib.h>

static int write_text(void *to, const void *bytes, size_t size)
{
    return fwrite(bytes, 1, size, to) == size ? 0 : 1;
}

/* The model, "NAME (..) => (..) {..}", as linalg; free it. NULL: it is refused, err says why. */
static char *linalg_of(const char *graph, struct cameo_error *err)
{
    struct cameo_compile_options options = CAMEO_COMPILE_OPTIONS_INIT;
    struct cameo_load_options load = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model = NULL;
    char *source = NULL, *text = NULL;
    size_t size = 0;

    if (asprintf(&source, "<ir_version: 10, opset_import: [\"\" : 21]>\n%s", graph) < 0)
        fail_msg("no memory");
    load.format = CAMEO_FORMAT_TEXT;
    if (cameo_model_load_memory(source, strlen(source), &load, &model, err) != CAMEO_OK)
        fail_msg("%s", err->message);
    free(source);
    FILE *to = open_memstream(&text, &size);
    options.emit = CAMEO_EMIT_LINALG;
    options.write = write_text;
    options.write_to = to;
    const enum cameo_status status = cameo_model_compile(model, &options, NULL, err);
    fclose(to);
    cameo_model_free(model);
    if (status == CAMEO_OK)
        return text;
    free(text);
    return NULL;
}

static void check_holds(const char *graph, const char *wanted, const char *unwanted)
{
    struct cameo_error err;
    char *text = linalg_of(graph, &err);

    if (!text)
        fail_msg("%s", err.message);
    if (!strstr(text, wanted) || strstr(text, unwanted))
        fail_msg("'%s' is missing, or '%s' is there:\n%s", wanted, unwanted, text);
    free(text);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    for (const char *at = text; (at = strstr(at, part)); at++)
        count++;
    return count;
}

void test_bodies__a_condition_that_never_changes_makes_a_counted_loop(void)
{
    check_holds("g (int64 m, float[3] a) => (float[3] y) {\n"
                "go = Constant<value: tensor = bool {1}>()\n"
                "y = Loop(m, go, a) <body = b (int64 i, bool c, float[3] s) => (bool d, float[3] t)"
                " { d = Identity(c) t = Add(s, s) }> }",
                "scf.for", "scf.while");
}

void test_bodies__a_condition_that_is_computed_makes_a_conditional_loop(void)
{
    check_holds("g (float[1] limit, float[1] a) => (float[1] y) {\n"
                "y = Loop( , , a) <body = b (int64 i, bool c, float[1] s) => (bool d, float[1] t)"
                " { t = Add(s, s) d = Less(t, limit) }> }",
                "scf.while", "scf.for");
}

void test_bodies__states_that_keep_their_size_stay_in_place(void)
{
    static const char form[] =
        "g (int64 m, float[N] a) => (float[%s] y) {\n"
        "y = Loop(m, , a) <body = b (int64 i, bool c, float[%s] s) => (bool d, float[%s] t)"
        " { d = Identity(c) t = %s }> }";
    char graph[600];

    snprintf(graph, sizeof graph, form, "N", "N", "N", "Add(s, s)");
    check_holds(graph, "materialize_in_destination", "scf.while");
    snprintf(graph, sizeof graph, form, "M", "K", "L", "Concat<axis = 0>(s, s)");
    check_holds(graph, "scf.for", "materialize_in_destination");
}

void test_bodies__sizes_of_scan_outputs_are_those_of_operands(void)
{
    /* Room for all slices is there before the loop: nothing is decided inside it. */
    check_holds("g (float[B] h, float[T,B] x) => (float[B] l, float[T,B] y) {\n"
                "l, y = Scan<num_scan_inputs = 1, body = b (float[B] s, float[B] e) => (float[B] t,"
                " float[B] o) { t = Add(s, e) o = Add(t, e) }>(h, x) }",
                "tensor.insert_slice", "scf.if");
}

void test_bodies__a_node_inside_is_named_with_the_reason(void)
{
    struct cameo_error err;
    char *text =
        linalg_of("g (bool c, uint8[N] x) => (uint8[H,W,3] y) {\n"
                  "y = If(c) <then_branch = t () => (uint8[H,W,3] p) {\n"
                  "[inner] p = ImageDecoder(x) }, else_branch = e () => (uint8[A,B,3] q) {\n"
                  "[other] q = ImageDecoder(x) }> }",
                  &err);

    CHECK(!text);
    CHECK(strstr(err.message, "node 'inner' (ImageDecoder): compressed images"));
    CHECK_INT(count_of(err.message, "compressed images"), 1);
}

void test_bodies__roots_of_a_known_length_are_a_constant(void)
{
    check_holds("g (float[4,128,1] x) => (float[4,128,2] y) { y = DFT(x) }", "memref.view %weights",
                "math.cos");
    check_holds("g (float[4,N,1] x) => (float[4,N,2] y) { y = DFT(x) }", "math.cos",
                "memref.view %weights");
}

/* ---- what follows a convolution ---- */

#define CONV_OF                                                                                    \
    "f (float[1,4,9,9] x, float[4,4,3,3] w) => (float[1,4,9,9] y) {\n"                             \
    "  c = Conv<pads = [1, 1, 1, 1]>(x, w)\n"

void test_lowering_bodies__a_convolution_takes_what_follows_it(void)
{
    check_holds(CONV_OF "  y = Relu(c)\n}", "func.constant @cm_finish_0", "linalg.generic");
    check_holds(CONV_OF "  s = Add(x, c)\n  y = Relu(s)\n}", "%other_element", "linalg.generic");
    check_holds(CONV_OF "  g = Sigmoid(c)\n  y = Mul(c, g)\n}", "@cm_finish_0", "linalg.generic");
    check_holds(CONV_OF "  g = Sigmoid(c)\n  m = Mul(c, g)\n  n = Neg(m)\n  y = Sub(n, m)\n}",
                "@cm_finish_0", "linalg.generic");
}

void test_lowering_bodies__equal_functions_behind_convolutions_are_one(void)
{
    check_holds(CONV_OF "  r = Relu(c)\n  d = Conv<pads = [1, 1, 1, 1]>(r, w)\n  y = Relu(d)\n}",
                "@cm_finish_0", "@cm_finish_1");
}

void test_lowering_bodies__a_convolution_does_not_wait_for_others(void)
{
    /* The other tensor is computed behind it; its result is read twice; shapes differ. */
    check_holds(CONV_OF "  late = MatMul(x, x)\n  y = Sub(c, late)\n}", "linalg.generic",
                "@cm_finish");
    check_holds(CONV_OF "  r = Relu(c)\n  m = MatMul(c, r)\n  y = MatMul(m, m)\n}",
                "linalg.generic", "@cm_finish");
    check_holds("f (float[1,4,9,9] x, float[4,4,3,3] w, float[2,4,9,9] z) => (float[2,4,9,9] y) {\n"
                "  c = Conv<pads = [1, 1, 1, 1]>(x, w)\n  y = Sub(c, z)\n}",
                "linalg.generic", "@cm_finish");
}
