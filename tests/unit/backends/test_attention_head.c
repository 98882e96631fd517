/* The kernel for attention with heads on an axis of their own, against the reference kernel. */
// SPDX-License-Identifier: Apache-2.0
#include "exec/exec_case.h"

#include <math.h>

static void note_kernel(void *arg, const struct cm_step_report *report)
{
    *(const char **)arg = report->kernel;
}

/* Of the operands; there are two batches and four heads of queries. */
struct sizes {
    int64_t kv_heads, queries, keys, size, value_size;
};

static struct cm_datum *waves(struct cm_arena *arena, const struct cm_shape *shape, double phase)
{
    struct cm_datum *datum = exec_ramp(arena, shape, 0);
    for (int64_t i = 0; i < cm_tensor_count(&datum->tensor); i++)
        ((float *)datum->tensor.data)[i] = (float)(sin(0.7 * (double)(i % 1013) + phase));
    return datum;
}

static void run(struct cm_arena *arena, const char *text, const char *backend,
                const struct cm_datum *const *in, size_t n_in, const char *kernel,
                struct cm_datum *out)
{
    struct cm_session *session =
        exec_of(arena, text, &(struct cm_session_options){.threads = 2, .backend = backend});
    struct cm_error err = {0};
    const char *ran = NULL;
    const struct cm_run_options options = {.step = note_kernel, .step_arg = &ran};
    CHECK_OK(cm_session_run(session, in, n_in, out, 1, &options, &err), &err);
    CHECK_STRING(ran, kernel);
}

/* mask: its type and shape, or NULL. */
static void agree(struct cm_arena *arena, struct sizes s, const char *attributes,
                  const char *mask_type, const struct cm_datum *mask, const char *kernel)
{
    const struct cm_str text = cm_arena_printf(
        arena,
        GRAPH_HEAD "main (float[2,4,Q,D] q, float[2,H,K,D] k, float[2,H,K,E] v%s%s) => "
                   "(float[2,4,Q,E] y) {y = Attention%s(q, k, v%s)}",
        mask ? ", " : "", mask ? mask_type : "", attributes, mask ? ", m" : "");
    const struct cm_datum *in[] = {
        waves(arena, &CM_SHAPE(2, 4, s.queries, s.size), 0.1),
        waves(arena, &CM_SHAPE(2, s.kv_heads, s.keys, s.size), 0.2),
        waves(arena, &CM_SHAPE(2, s.kv_heads, s.keys, s.value_size), 0.3), mask};
    struct cm_datum fast = {0}, slow = {0};
    run(arena, text.data, NULL, in, mask ? 4 : 3, kernel, &fast);
    run(arena, text.data, "reference", in, mask ? 4 : 3, "reference", &slow);
    CHECK(cm_shape_equal(&fast.tensor.shape, &slow.tensor.shape));
    for (int64_t i = 0; i < cm_tensor_count(&fast.tensor); i++) {
        const double a = cm_tensor_real(&fast.tensor, i), b = cm_tensor_real(&slow.tensor, i);
        if (!(fabs(a - b) <= 4e-6))
            fail_msg("element %lld is %.9g, expected %.9g", (long long)i, a, b);
    }
    cm_datum_drop(&fast);
    cm_datum_drop(&slow);
}

static void sizes(struct cm_arena *arena)
{
    static const struct sizes some[] = {{4, 1, 1, 1, 1},   {4, 4, 16, 16, 16}, {4, 7, 33, 5, 9},
                                        {2, 5, 17, 8, 20}, {1, 3, 64, 12, 16}, {4, 9, 130, 64, 64}};
    for (size_t i = 0; i < CM_COUNT(some); i++) {
        agree(arena, some[i], "", NULL, NULL, "cpu");
        agree(arena, some[i], "<scale = 0.75>", NULL, NULL, "cpu");
        agree(arena, some[i], "<is_causal = 1>", NULL, NULL, "cpu");
    }
}

void test_attention_head__sizes_that_fill_no_vector(void)
{
    check_in_arena(sizes);
}

static void masks(struct cm_arena *arena)
{
    const struct sizes s = {4, 5, 19, 8, 8};
    struct cm_datum *each = waves(arena, &CM_SHAPE(2, 4, 5, 19), 1.1);
    struct cm_datum *shared = waves(arena, &CM_SHAPE(2, 1, 1, 19), 1.1);
    agree(arena, s, "", "float[2,4,Q,K] m", each, "cpu");
    agree(arena, s, "", "float[2,1,1,K] m", shared, "cpu");
    agree(arena, s, "<is_causal = 1>", "float[Q,K] m", waves(arena, &CM_SHAPE(5, 19), 0.5), "cpu");
    /* the last queries of the first head may see nothing: their results are 0 */
    for (int64_t i = 3 * 19; i < 5 * 19; i++)
        ((float *)each->tensor.data)[i] = -INFINITY;
    agree(arena, s, "", "float[2,4,Q,K] m", each, "cpu");
    /* so low that it counts as nothing, for all keys */
    for (int64_t i = 0; i < 19; i++)
        ((float *)shared->tensor.data)[i] = -3.4028235e38f;
    agree(arena, s, "", "float[2,1,1,K] m", shared, "cpu");
}

void test_attention_head__masks(void)
{
    check_in_arena(masks);
}

static void declined(struct cm_arena *arena)
{
    const struct sizes s = {4, 3, 6, 4, 4};
    agree(arena, s, "<softcap = 2.0>", NULL, NULL, "reference");
    agree(arena, s, "<left_window_size = 2>", NULL, NULL, "reference");
    agree(arena, s, "", "float[Q,J] m", waves(arena, &CM_SHAPE(3, 5), 0.5), "reference");
}

void test_attention_head__what_it_leaves_to_the_reference(void)
{
    check_in_arena(declined);
}
