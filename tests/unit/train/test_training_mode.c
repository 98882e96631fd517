/* Copies of the user's nodes in the training step: which there are, and that they leave as the file
 * has them, whatever the working copy made of them. */
// SPDX-License-Identifier: Apache-2.0
#include "train_case.h"

#include "onnx/syntax.h"
#include "train/prepare/prepare.h"

enum { TEXT_MAX = 16000 };

static enum cm_status append(void *to, const void *bytes, size_t size, struct cm_error *err)
{
    char *text = to;
    const size_t used = strlen(text);

    (void)err;
    CHECK(used + size < TEXT_MAX);
    memcpy(text + used, bytes, size);
    text[used + size] = 0;
    return CM_OK;
}

/* The prepared model as text; it trains. */
static const char *prepared(struct cm_arena *arena, const char *text, const char *loss)
{
    struct cm_prepare_options options = CM_PREPARE_OPTIONS;
    struct cm_prepare_report report;
    struct cm_error err = {0};
    char *out = cm_arena_alloc(arena, TEXT_MAX);

    options.loss = loss;
    options.optimizer = "sgd";
    struct cm_model_file *file = train_model(arena, text);
    CHECK_OK(cm_prepare(arena, file, &options, &report, &err), &err);
    train_open(arena, file);
    out[0] = 0;
    CHECK_OK(cm_syntax_print_model(&file->model, NULL, append, out, &err), &err);
    return out;
}

static void check_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in:\n%s", part, text);
}

/* Axes and equal parts are said in other ways since opset 18, and so they are in the working copy.
 */
static void older_forms(struct cm_arena *arena)
{
    const char *text = prepared(
        arena,
        "<ir_version: 8, opset_import: [\"\" : 17]>\n"
        "m (float[N,3,4] x) => (float[N,3] y) <float[4,4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3,"
        " 4, 5, 6, 7}, float half = {0.5}>\n"
        "{ h = MatMul (x, w) [drop] d = Dropout (h, half)\n"
        "  [mean] m = ReduceMean <axes = [2], keepdims = 1> (d) s = Sub (d, m)\n"
        "  a, b = Split <axis = 2> (s) c = Add (a, b)\n"
        "  y = ReduceMax <axes = [-1], keepdims = 0> (c) }",
        "mse");

    check_has(text,
              "[\"drop.training\"] \"d.training\" = Dropout (h, half, \"training.mode.bool\")");
    check_has(text, "[\"mean.training\"] \"m.training\" = ReduceMean <axes: ints = [2], keepdims: "
                    "int = 1> (\"d.training\")");
    check_has(text, "\"a.training\", \"b.training\" = Split <axis: int = 2> (\"s.training\")");
    check_has(text, "\"y.training\" = ReduceMax <axes: ints = [-1], keepdims: int = 0> "
                    "(\"c.training\")");
    check_has(text, "\"\" : 17");
}

void test_training_mode__copies_have_the_form_that_the_file_has(void)
{
    check_in_arena(older_forms);
}

/* One per channel since opset 21, one per group before: seven nodes stand for it. */
static void groups(struct cm_arena *arena)
{
    const char *text =
        prepared(arena,
                 "<ir_version: 8, opset_import: [\"\" : 18]>\n"
                 "m (float[N,4,2] x) => (float[N,4,2] y)\n"
                 "<float[2] s = {1, 2}, float[2] b = {0, 1}, float half = {0.5}>\n"
                 "{ d = Dropout (x, half) e = GroupNormalization <num_groups = 2> (d, s, b)\n"
                 "  y = GroupNormalization <num_groups = 2> (e, s, b) }",
                 "mse");

    check_has(text, "\"e.training\" = GroupNormalization <num_groups: int = 2> (\"d.training\", s, "
                    "b)\n");
    check_has(text, "\"y.training\" = GroupNormalization <num_groups: int = 2> (\"e.training\", s, "
                    "b)\n");
}

void test_training_mode__what_became_several_nodes_is_copied_as_one(void)
{
    check_in_arena(groups);
}

static const char nested[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"
    "m (bool c, float[N,2] x) => (float[N,2] y) <float[2,2] w = {1, 2, 3, 4}, float half = {0.5}>\n"
    "{ h = MatMul (x, w) d = Dropout (h, half)\n"
    "  y = If (c) <then_branch = a () => (float[N,2] t)\n"
    "         { k = Constant <value = float[2] {3, 4}> () u = Add (d, k)\n"
    "           t = Dropout (u, half) },\n"
    "       else_branch = o () => (float[N,2] e) { e = Identity (h) }> }";

static void bodies(struct cm_arena *arena)
{
    const char *text = prepared(arena, nested, "mse");

    check_has(text, "\"y.training\" = If (c)");
    check_has(text, "u = Add (\"d.training\", k)");
    check_has(text, "t = Dropout (u, half, \"training.mode.bool\")");
    check_has(text, "e = Identity (h)");
    check_has(text, "t = Dropout (u, half)\n"); /* inference stays */
}

void test_training_mode__bodies_are_copied_with_their_names(void)
{
    check_in_arena(bodies);
}

/* A model of an older opset is written again; what a node was stays where it means the same. */
static void raised(struct cm_arena *arena)
{
    const char *text =
        prepared(arena,
                 "<ir_version: 7, opset_import: [\"\" : 13]>\n"
                 "m (float[N,3] x) => (float[N] y) <float[3,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}>\n"
                 "{ h = MatMul (x, w) y = ReduceMean <axes = [1], keepdims = 0> (h) }",
                 "mse");

    check_has(text, "opset_import: [\"\" : 17");
    check_has(text, "y = ReduceMean <axes: ints = [1], keepdims: int = 0> (h)");
}

void test_training_mode__an_older_opset_is_raised_no_further_than_needed(void)
{
    check_in_arena(raised);
}

/* What stands between the prediction and its Softmax is done again behind the scores. */
static void replayed(struct cm_arena *arena)
{
    const char *text =
        prepared(arena,
                 "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                 "m (float[N,3] x) => (float[N,3] y) <float[3,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}>\n"
                 "{ h = MatMul (x, w) p = Softmax <axis = 1> (h) [wide] q = Cast <to = 11> (p)\n"
                 "  y = Cast <to = 1> (q) }",
                 "cross-entropy");

    check_has(text, "[\"wide.scores\"] \"q.scores\" = Cast <to: int = 11> (h)");
    check_has(text, "\"y.scores\" = Cast <to: int = 1> (\"q.scores\")");
    check_has(text, "loss = SoftmaxCrossEntropyLoss <reduction: string = \"mean\", "
                    "ignore_index: int = -100> (\"y.scores\", target)");
}

void test_training_mode__casts_behind_a_softmax_are_done_without_it(void)
{
    check_in_arena(replayed);
}
