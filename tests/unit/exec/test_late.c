/* Steps after an If, a Loop or a Scan, and steps whose shapes only data tells: bound as early as
 * can be, with the kernels others get, and the reason told. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/onednn/dnnl.h"
#include "base/memory.h"
#include "exec/program.h"
#include "exec_case.h"

static size_t late_steps(struct cm_session *session, const struct cm_datum *const *in, size_t n_in)
{
    struct cm_session_memory memory;
    struct cm_error err = {0};
    CHECK_OK(cm_session_measure(session, in, n_in, NULL, &memory, &err), &err);
    return memory.late;
}

/* Runs in both engines; results must agree to a few digits, as kernels add up in their own order.
 */
static void agree(struct cm_arena *arena, const char *text, struct cm_session *session,
                  const struct cm_datum *const *in, size_t n_in)
{
    struct cm_graph *plain = graph_of(arena, text, NULL);
    struct cm_datum out = {0}, expected = {0};
    struct cm_error err = {0};
    CHECK_OK(cm_graph_eval(plain, in, n_in, &expected, NULL, &err), &err);
    CHECK_OK(cm_session_run(session, in, n_in, &out, 1, NULL, &err), &err);
    CHECK(cm_shape_equal(&out.tensor.shape, &expected.tensor.shape));
    for (int64_t i = 0; i < cm_tensor_count(&out.tensor); i++) {
        const double a = cm_tensor_real(&out.tensor, i), b = cm_tensor_real(&expected.tensor, i);
        CHECK(a - b < 1e-3 && b - a < 1e-3);
    }
    cm_datum_drop(&out);
    cm_datum_drop(&expected);
}

static struct cm_datum *numbers(struct cm_arena *arena, int64_t rows, int64_t columns)
{
    struct cm_datum *datum = exec_ramp(arena, &CM_SHAPE(rows, columns), 0);
    float *data = datum->tensor.data;
    for (int64_t i = 0; i < rows * columns; i++)
        data[i] = (float)(i * 37 % 19) / 19.0F - 0.5F;
    return datum;
}

/* ---- foreseen ---- */

static const char branches[] =
    GRAPH_HEAD "main (float[N,8] x, bool c) => (float[N,4] y)\n"
               "<int64[2] flat = {-1, 4}> {\n"
               "  a = If (c) <then_branch = yes () => (float[P,Q] p) { p = Identity(x) },\n"
               "      else_branch = no () => (float[P,Q] q) { q = Neg(x) }>\n"
               "  r = Reshape(a, flat) s = Reshape(r, flat) t = Transpose <perm = [1, 0]> (s)\n"
               "  u = MatMul(s, t) y = MatMul(u, r) }";

static void after_if(struct cm_arena *arena)
{
    struct cm_session *session = exec_of(arena, branches, NULL);
    for (int64_t run = 0; run < 6; run++) {
        const struct cm_datum *in[] = {numbers(arena, 1 + run % 3, 8), graph_bool(arena, run % 2)};
        CHECK_INT(late_steps(session, in, 2), 1); /* the If, and nothing after it */
        agree(arena, branches, session, in, 2);
    }
}

void test_late__steps_after_branches_of_one_shape_are_bound(void)
{
    check_in_arena(after_if);
}

static const char scanned[] =
    GRAPH_HEAD "main (float[T,B,8] x, float[B,8] first, float[8,3] p) => (float[T,B,3] y) {\n"
               "  last, all = Scan (first, x) <num_scan_inputs = 1, body = step\n"
               "      (float[B,8] state, float[B,8] slice) => (float[B,8] next, float[B,8] out) {\n"
               "    next = Add(state, slice) out = Tanh(next) }>\n"
               "  y = MatMul(all, p) }";

static void after_scan(struct cm_arena *arena)
{
    struct cm_session *session = exec_of(arena, scanned, NULL);
    for (int64_t run = 0; run < 6; run++) {
        struct cm_datum x = *numbers(arena, 2 + run % 3, 16);
        x.tensor.shape = CM_SHAPE(2 + run % 3, 2, 8);
        const struct cm_datum *in[] = {&x, numbers(arena, 2, 8), numbers(arena, 8, 3)};
        CHECK_INT(late_steps(session, in, 3), 1); /* the Scan itself */
        agree(arena, scanned, session, in, 3);
    }
}

void test_late__steps_after_a_scan_are_bound(void)
{
    check_in_arena(after_scan);
}

/* The shape of a state changes as the loop goes: nobody can foresee it. */
static const char growing[] =
    GRAPH_HEAD "main (float[N,8] x, int64 n) => (float[M,8] y) {\n"
               "  a = Loop (n, , x) <body = step (int64 i, bool c, float[K,8] v)\n"
               "      => (bool go, float[L,8] w) {\n"
               "    go = Identity(c) w = Concat <axis = 0> (v, x) }>\n"
               "  t = Transpose <perm = [1, 0]> (a) u = MatMul(a, t) y = MatMul(u, a) }";

static void after_loop(struct cm_arena *arena)
{
    struct cm_session *session = exec_of(arena, growing, NULL);
    for (int64_t run = 0; run < 40; run++) {
        const struct cm_datum *in[] = {numbers(arena, 2, 8), graph_int(arena, run * 7 % 12)};
        CHECK(late_steps(session, in, 2) >= 4);
        agree(arena, growing, session, in, 2);
    }
}

void test_late__steps_of_unforeseen_shapes_give_the_same(void)
{
    check_in_arena(after_loop);
}

/* ---- kernels ---- */

struct seen {
    bool fast, reason;
};

static void note(void *arg, const struct cm_step_report *report)
{
    struct seen *seen = arg;
    if (!cm_str_is(report->node->op_type, "MatMul") && !cm_str_is(report->node->op_type, "Conv"))
        return;
    seen->fast = strcmp(report->kernel, "reference") != 0;
    seen->reason = strstr(report->declined, "prepared at run time: the shape of") != NULL;
}

static bool have_onednn(void)
{
    return cm_dnnl_found().version[0] != '\0';
}

static struct seen look(struct cm_session *session, const struct cm_datum *const *in, size_t n_in)
{
    struct seen seen = {0};
    const struct cm_run_options options = {.step = note, .step_arg = &seen};
    struct cm_datum out = {0};
    struct cm_error err = {0};
    CHECK_OK(cm_session_run(session, in, n_in, &out, 1, &options, &err), &err);
    cm_datum_drop(&out);
    return seen;
}

static void kernels(struct cm_arena *arena)
{
    const struct cm_datum *in[] = {numbers(arena, 16, 8), graph_bool(arena, true)};
    const struct seen early = look(exec_of(arena, branches, NULL), in, 2);
    CHECK(!early.reason && early.fast);
    in[1] = graph_int(arena, 3);
    const struct seen late = look(exec_of(arena, growing, NULL), in, 2);
    CHECK(late.reason && late.fast);
}

void test_late__such_steps_get_the_kernels_others_get_and_say_why_they_wait(void)
{
    check_in_arena(kernels);
}

/* Weights in a layout of the kernel's, an image whose height only data tells. */
static const char convolving[] = GRAPH_HEAD
    "main (float[N,8] x, bool c) => (float[1,16,H,8] y)\n"
    "<int64[4] image = {1, 1, -1, 8}, int64[1] n = {144}, int64[4] wide = {16,1,3,3}, int64 zero = "
    "{0}> {\n"
    "  a = If (c) <then_branch = yes () => (float[P,8] p) { p = Identity(x) },\n"
    "      else_branch = no () => (float[P,8] q) { q = Concat <axis = 0> (x, x) }>\n"
    "  i = Reshape(a, image) o = ConstantOfShape <value = float[1] {0.5}> (n) r = CumSum(o, zero)\n"
    "  e = Sin(r) w = Reshape(e, wide)\n"
    "  h = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (i, w)\n"
    "  y = Relu(h) }";

static void convolution(struct cm_arena *arena)
{
    struct cm_session *session = exec_of(arena, convolving, NULL);
    for (int64_t run = 0; run < 8; run++) {
        const struct cm_datum *in[] = {numbers(arena, 4 + run % 3, 8), graph_bool(arena, run % 2)};
        agree(arena, convolving, session, in, 2);
        CHECK(look(session, in, 2).fast == have_onednn());
    }
}

void test_late__kernels_with_layouts_of_their_own_get_them(void)
{
    check_in_arena(convolution);
}

static uint64_t allocations(struct cm_session *session, const struct cm_datum *const *in)
{
    struct cm_datum out = {0};
    struct cm_error err = {0};
    const uint64_t before = cm_memory_count();
    CHECK_OK(cm_session_run(session, in, 2, &out, 1, NULL, &err), &err);
    const uint64_t made = cm_memory_count() - before;
    cm_datum_drop(&out);
    return made;
}

/* Branches of different shapes, so that what follows waits, and nothing else allocates. */
static const char unequal[] =
    GRAPH_HEAD "main (float[N,8] x, bool c) => (float[M,4] y)\n"
               "<float[8,4] w = {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8,\n"
               "                 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}> {\n"
               "  a = If (c) <then_branch = yes () => (float[P,8] p) { p = Identity(x) },\n"
               "      else_branch = no () => (float[P,8] q) { q = Concat <axis = 0> (x, x) }>\n"
               "  y = MatMul(a, w) }";

static void kept(struct cm_arena *arena)
{
    struct cm_session *session = exec_of(arena, unequal, NULL);
    const struct cm_datum *in[2][2] = {{numbers(arena, 3, 8), graph_bool(arena, true)},
                                       {numbers(arena, 3, 8), graph_bool(arena, false)}};
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < 2; i++) {
            const uint64_t made = allocations(session, in[i]);
            CHECK(round < 2 || made == 0);
            agree(arena, unequal, session, in[i], 2);
        }
}

void test_late__what_was_prepared_for_recent_shapes_is_kept(void)
{
    check_in_arena(kept);
}
