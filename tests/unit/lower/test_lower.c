/* The list of passes: names, leaving out, and what no pass may change. */
// SPDX-License-Identifier: Apache-2.0
#include "lower/lower.h"

#include "exec/exec_case.h"

/* ---- names ---- */

static enum cm_status check_names(const struct cm_lower_options *options, const char *says)
{
    struct cm_error err = {0};
    const enum cm_status status = cm_lower_check(options, &err);
    if (says)
        CHECK(strstr(err.text, says) != NULL);
    return status;
}

void test_lower__names_of_passes_are_checked(void)
{
    CHECK_INT(check_names(NULL, NULL), CM_OK);
    CHECK_INT(check_names(&(struct cm_lower_options){.passes = {.without = "fold, regions"}}, NULL),
              CM_OK);
    CHECK_INT(check_names(&(struct cm_lower_options){.passes = {.only = ""}}, NULL), CM_OK);
    CHECK_INT(check_names(&(struct cm_lower_options){.passes = {.with = "recompute"}}, NULL),
              CM_OK);
    CHECK_INT(check_names(&(struct cm_lower_options){.passes = {.without = "fold,flod"}},
                          "there is no pass 'flod'; the passes are upgrade, simplify"),
              CM_BAD_ARGUMENT);
    CHECK_INT(check_names(&(struct cm_lower_options){.passes = {.only = "Fold"}}, "no pass 'Fold'"),
              CM_BAD_ARGUMENT);
    CHECK_INT(check_names(&(struct cm_lower_options){.passes = {.without = "gradients"}},
                          "pass 'gradients' cannot be left out"),
              CM_BAD_ARGUMENT);
}

struct seen {
    char names[400];
    size_t used;
};

static enum cm_status note_pass(void *arg, const struct cm_lower_report *report,
                                struct cm_graph *graph, struct cm_error *err)
{
    struct seen *seen = arg;
    (void)err;
    CHECK_INT(report->nodes_after, cm_graph_count(graph));
    if (report->skipped)
        CHECK_INT(report->nodes_before, report->nodes_after);
    else
        seen->used += (size_t)snprintf(seen->names + seen->used, sizeof seen->names - seen->used,
                                       "%s ", report->pass);
    return CM_OK;
}

static void order(struct cm_arena *arena)
{
    static const struct {
        struct cm_pass_choice passes;
        const char *ran;
    } rows[] = {
        {{.only = NULL},
         "upgrade simplify patterns gradients quantized fold merge simplify inference transposes "
         "regions "},
        {{.only = ""}, "upgrade gradients "},
        {{.only = "fold"}, "upgrade gradients fold "},
        {{.only = "recompute"}, "upgrade gradients recompute "},
        {{.without = "simplify,regions"},
         "upgrade patterns gradients quantized fold merge inference transposes "},
        {{.until = "fold"}, "upgrade simplify patterns gradients quantized fold "},
        {{.until = "simplify", .without = "fold"},
         "upgrade simplify patterns gradients quantized merge simplify "},
        {{.with = "recompute", .without = "fold"},
         "upgrade simplify patterns gradients quantized merge simplify inference transposes "
         "regions "
         "recompute "},
    };
    for (size_t i = 0; i < CM_COUNT(rows); i++) {
        struct cm_graph *graph = graph_of(
            arena, GRAPH_HEAD "main (float[N] x) => (float[N] y) { a = Identity(x) y = Neg(a) }",
            NULL);
        struct cm_lower_options options = {.passes = rows[i].passes};
        struct seen seen = {.used = 0};
        struct cm_error err = {0};
        options.after = note_pass;
        options.after_arg = &seen;
        CHECK_OK(cm_lower_graph(graph, &options, &err), &err);
        CHECK_STRING(seen.names, rows[i].ran);
    }
}

void test_lower__passes_run_in_order_unless_left_out(void)
{
    check_in_arena(order);
}

/* ---- what is always done ---- */

static const char calls[] = GRAPH_HEAD
    "main (float[N] x) => (float[N] y) { dead = Exp(x) y = local.twice(x) }\n" GRAPH_LOCAL
    "twice (a) => (b) { b = Add(a, a) }";

static void always(struct cm_arena *arena)
{
    static const char *const only[] = {NULL, ""};
    for (size_t i = 0; i < 2; i++) {
        struct cm_graph *graph = graph_of(arena, calls, NULL);
        struct cm_error err = {0};
        CHECK_OK(
            cm_lower_graph(graph, &(struct cm_lower_options){.passes = {.only = only[i]}}, &err),
            &err);
        CHECK_INT(graph->n_nodes, 1);
        CHECK(cm_str_is(graph->first->op_type, "Add"));
    }
}

void test_lower__functions_are_inlined_and_dead_nodes_removed_whatever_runs(void)
{
    check_in_arena(always);
}

/* Attention, in part spelled as ONNX Runtime's optimizer spells it. */
static void shorthands(struct cm_arena *arena)
{
    static const char text[] =
        "<ir_version: 10, opset_import: [\"\" : 28, \"com.microsoft\" : 1]>\n"
        "main (float[1,2,3,4] q, float[1,2,3,4] k, float[1,2,3,4] v) => (float[1,2,3,4] y) {\n"
        "  s = com.microsoft.FusedMatMul <transB = 1, alpha = 0.5> (q, k)\n"
        "  p = Softmax <axis = -1> (s) y = MatMul(p, v) }";
    struct cm_graph *graph = graph_of(arena, text, NULL);
    struct cm_error err = {0};
    CHECK_OK(cm_lower_graph(graph, &(struct cm_lower_options){.keep_operators = true}, &err), &err);
    CHECK(cm_str_is(graph->first->op_type, "FusedMatMul"));
    CHECK_OK(cm_lower_graph(graph, NULL, &err), &err);
    CHECK_INT(graph->n_nodes, 1);
    CHECK(cm_str_is(graph->first->op_type, "Attention"));
}

void test_lower__patterns_are_found_behind_operators_that_are_only_their_body(void)
{
    check_in_arena(shorthands);
}

/* Only the branch that is not taken refuses the shape that folding finds. */
static void untaken(struct cm_arena *arena)
{
    static const char text[] =
        GRAPH_HEAD "main (float[2,3] x, bool c) => (float y)\n"
                   "<float[1] half = {0.5}> {\n"
                   "  y = If(c) <then_branch = g () => (float t) {\n"
                   "    f = Floor(half) axis = Cast <to = 7> (f) z = Squeeze(x, axis)\n"
                   "    t = ReduceSum <keepdims = 0> (z) },\n"
                   "  else_branch = h () => (float e) { e = ReduceSum <keepdims = 0> (x) }> }";
    struct cm_graph *graph = graph_of(arena, text, NULL);
    struct cm_session *session = exec_open_after(arena, graph, NULL, NULL);
    const struct cm_datum *x = exec_ramp(arena, &CM_SHAPE(2, 3), 0);
    const struct cm_datum *no = graph_bool(arena, false);
    CHECK_RUNS(session, INPUTS(x, no), 1, 3.75);
}

void test_lower__a_branch_that_is_not_taken_may_be_wrong(void)
{
    check_in_arena(untaken);
}

/* ---- random numbers ---- */

/* Two Dropouts with much around them that passes change, one of them in a function. */
static const char dropouts[] = GRAPH_HEAD
    "main (float[4,64] x) => (float[4,64] y, bool[4,64] m1, bool[4,64] m2, float[4,64] n)\n"
    "<float r = {0.5}, bool on = {1}, float one = {1}, float two = {2}> {\n"
    "  k = Mul(two, two) s = Mul(x, one) i = Identity(s) unread = RandomNormalLike(x)\n"
    "  a, m1 = Dropout(i, r, on) b = Mul(a, k) c = Mul(a, k) d = Add(b, c)\n"
    "  e, m2 = local.drop(d, r, on) y = Relu(e) n = RandomNormalLike(y) }\n" GRAPH_LOCAL
    "drop (v, ratio, mode) => (w, mask) { w, mask = Dropout(v, ratio, mode) }";

static struct cm_session *open_dropouts(struct cm_arena *arena, const char *only,
                                        const char *without)
{
    const struct cm_session_options options = {.seed = 7, .threads = 1};
    const struct cm_lower_options lower = {.passes = {.only = only, .without = without}};
    struct cm_graph *graph = graph_of(arena, dropouts, NULL);
    struct cm_session *session;
    struct cm_error err = {0};
    CHECK_OK(cm_lower_graph(graph, &lower, &err), &err);
    CHECK_OK(cm_session_new(graph, &options, &session, &err), &err);
    return session;
}

enum { RESULTS = 4 };

static void draw(struct cm_arena *arena, const char *only, const char *without,
                 struct cm_datum *out)
{
    struct cm_session *session = open_dropouts(arena, only, without);
    const struct cm_datum *x = exec_ramp(arena, &CM_SHAPE(4, 64), 1);
    struct cm_error err = {0};
    for (int run = 0; run < 2; run++) { /* the second run goes on in the streams */
        for (int o = 0; o < RESULTS; o++)
            cm_datum_drop(&out[o]);
        CHECK_OK(cm_session_run(session, INPUTS(x), 1, out, RESULTS, NULL, &err), &err);
    }
    cm_session_free(session);
}

static void same_masks(struct cm_arena *arena)
{
    struct cm_datum expected[RESULTS] = {0}, got[RESULTS] = {0};
    draw(arena, "", NULL, expected);
    for (size_t i = 0; i <= cm_pass_count; i++) {
        if (i < cm_pass_count && cm_passes[i].row.kind == CM_PASS_REQUIRED)
            continue;
        draw(arena, NULL, i < cm_pass_count ? cm_passes[i].row.name : NULL, got);
        for (int o = 0; o < RESULTS; o++) {
            CHECK(exec_same(&expected[o], &got[o]));
            cm_datum_drop(&got[o]);
        }
    }
    for (int o = 0; o < RESULTS; o++)
        cm_datum_drop(&expected[o]);
}

void test_lower__random_nodes_draw_the_same_with_any_pass_on_or_off(void)
{
    check_in_arena(same_masks);
}

/* Where the random nodes of one session stand, another with other passes can take over. */
static void same_state(struct cm_arena *arena)
{
    struct cm_session *all = open_dropouts(arena, NULL, NULL);
    struct cm_session *none = open_dropouts(arena, "", NULL);
    const struct cm_datum *x = exec_ramp(arena, &CM_SHAPE(4, 64), 1);
    struct cm_datum a[RESULTS] = {0}, b[RESULTS] = {0};
    struct cm_error err = {0};
    struct cm_str state;
    CHECK_OK(cm_session_run(all, INPUTS(x), 1, a, RESULTS, NULL, &err), &err);
    CHECK_OK(cm_session_random(all, arena, &state, &err), &err);
    CHECK_OK(cm_session_set_random(none, state, &err), &err);
    for (int o = 0; o < RESULTS; o++)
        cm_datum_drop(&a[o]);
    CHECK_OK(cm_session_run(all, INPUTS(x), 1, a, RESULTS, NULL, &err), &err);
    CHECK_OK(cm_session_run(none, INPUTS(x), 1, b, RESULTS, NULL, &err), &err);
    for (int o = 0; o < RESULTS; o++) {
        CHECK(exec_same(&a[o], &b[o]));
        cm_datum_drop(&a[o]);
        cm_datum_drop(&b[o]);
    }
    cm_session_free(all);
    cm_session_free(none);
}

void test_lower__saved_random_states_fit_whatever_passes_ran(void)
{
    check_in_arena(same_state);
}
