/* Kinks and errors told apart. */
// SPDX-License-Identifier: Apache-2.0
#include "cameo.h"
#include "check.h"

#include <math.h>

struct rows {
    struct cameo_gradcheck items[8];
    size_t count;
};

static void keep(void *arg, const struct cameo_gradcheck *row)
{
    struct rows *rows = arg;
    rows->items[rows->count++] = *row;
}

static struct rows check_text(const char *text)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model;
    struct cameo_error err;
    struct rows rows = {.count = 0};

    options.format = CAMEO_FORMAT_TEXT;
    if (cameo_model_load_memory(text, strlen(text), &options, &model, &err) != CAMEO_OK ||
        cameo_model_gradcheck(model, NULL, NULL, 0, keep, &rows, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    cameo_model_free(model);
    return rows;
}

void test_gradcheck__a_kink_at_the_point_is_counted_apart(void)
{
    const struct rows rows = check_text("<ir_version: 8, opset_import: [\"\" : 18]>\n"
                                        "g () => (float[4] y) <float[4] w = {0, 1, -1, 0}>\n"
                                        "{ y = Relu(w) }");

    CHECK_INT(rows.count, 1);
    CHECK_INT(rows.items[0].kinks, 2);
    CHECK(rows.items[0].worst < 1e-6);
}

/* 3e-6 is nearer than the widest difference reaches, and further than the narrower ones do. */
void test_gradcheck__a_kink_near_the_point_is_stepped_around(void)
{
    const struct rows rows = check_text("<ir_version: 8, opset_import: [\"\" : 18]>\n"
                                        "g () => (double[2] y) <double[2] w = {3e-6, -3e-6}>\n"
                                        "{ y = Abs(w) }");

    CHECK_INT(rows.items[0].kinks, 0);
    CHECK(rows.items[0].worst < 1e-6);
}

void test_gradcheck__a_jump_counts_as_a_kink(void)
{
    const struct rows jump = check_text("<ir_version: 8, opset_import: [\"\" : 18]>\n"
                                        "g () => (float[2] y) <float[2] w = {1, 1.5}>\n"
                                        "{ y = Floor(w) }");
    CHECK_INT(jump.items[0].kinks, 1);
    CHECK(jump.items[0].worst < 1e-6);
}

void test_gradcheck__inputs_are_made_up_to_fit(void)
{
    const struct rows rows =
        check_text("<ir_version: 8, opset_import: [\"\" : 18]>\n"
                   "g (float[N,D] x, int64[N] ids) => (float[N,2] y)\n"
                   "<float[5,2] w = {1,2,3,4,5,6,7,8,9,10}, float[3,2] table = {1,2,3,4,5,6}>\n"
                   "{ a = MatMul(x, w) b = Gather(table, ids) y = Mul(a, b) }");

    CHECK_INT(rows.count, 3);
    CHECK_INT(rows.items[0].elements, 10); /* a batch of 2 */
    for (size_t i = 0; i < rows.count; i++)
        CHECK(rows.items[i].worst < 1e-6 && rows.items[i].kinks == 0);
}

void test_gradcheck__differences_that_do_not_settle_say_nothing(void)
{
    const struct rows rows = check_text("<ir_version: 8, opset_import: [\"\" : 18]>\n"
                                        "g (float x) => (float y) <float k = {5e7}>\n"
                                        "{ s = Mul(x, k) y = Sin(s) }");

    CHECK_INT(rows.items[0].kinks, 1); /* of x, which comes first */
}

/* The square root of 0 has nothing below; the table ends where the index is. */
void test_gradcheck__beside_the_point_there_may_be_nothing(void)
{
    const struct rows rows = check_text(
        "<ir_version: 8, opset_import: [\"\" : 18]>\n"
        "g () => (float y, float z) <float w = {0}, float i = {2}, float[3] t = {1,2,3}>\n"
        "{ y = Sqrt(w) c = Ceil(i) k = Cast<to = 7>(c) z = Gather(t, k) }");

    for (size_t i = 0; i < rows.count; i++)
        CHECK_INT(rows.items[i].kinks, rows.items[i].elements == 1);
}

void test_gradcheck__outputs_that_are_no_numbers_are_refused(void)
{
    static const char text[] = "<ir_version: 8, opset_import: [\"\" : 18]>\n"
                               "g () => (float y) <float w = {-1}> { y = Log(w) }";
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model;
    struct cameo_error err;
    struct rows rows = {.count = 0};

    options.format = CAMEO_FORMAT_TEXT;
    CHECK_INT(cameo_model_load_memory(text, strlen(text), &options, &model, &err), CAMEO_OK);
    CHECK_INT(cameo_model_gradcheck(model, NULL, NULL, 0, keep, &rows, &err), CAMEO_UNSUPPORTED);
    CHECK(strstr(err.message, "not finite"));
    cameo_model_free(model);
}

/* Floats inside optionals and sequences are widened like all others. */
void test_gradcheck__optionals_and_sequences_are_widened(void)
{
    const struct rows rows = check_text(
        "<ir_version: 8, opset_import: [\"\" : 18]>\n"
        "g (float[N] x, bool c) => (float[N] y) {\n"
        "  o = If(c) <then_branch = a () => (optional(float[N]) p) { p = Optional(x) },\n"
        "             else_branch = b () => (optional(float[N]) q)\n"
        "               { q = Optional<type = float[N]>() }>\n"
        "  s = SequenceConstruct(x, x) i = Constant<value_int = 1>()\n"
        "  y = SequenceAt(s, i) }");

    CHECK(rows.items[0].worst < 1e-6);
}
