/* Cases the way models run: lowered by passes, compiled, run by the executor, on the reference
 * kernels and on every backend, against what the plain interpreter makes of the same graph. */
// SPDX-License-Identifier: Apache-2.0
#include "op_check.h"

#include "exec/session.h"
#include "graph/clone.h"
#include "lower/lower.h"
#include "op_compare.h"
#include "op_gradient.h"
#include "op_setting.h"

/* The most passes that there may be. */
enum { PASSES = 32 };
/* For cases that were written in double: sums of a few hundred terms, in another order. */
static const double FLOAT_TOLERANCE = 2e-5;

static const struct op_setting settings[] = {
    {"alone", TELL_SHAPES, AROUND_NOTHING},
    {"alone, only ranks known", TELL_RANKS, AROUND_NOTHING},
    {"alone, contents known", TELL_CONTENTS, AROUND_NOTHING},
    {"in a chain", TELL_SHAPES, AROUND_CHAIN},
    {"in a chain, shapes symbolic", TELL_SYMBOLS, AROUND_CHAIN},
    {"between transposes", TELL_SHAPES, AROUND_TRANSPOSES},
    {"before a residual", TELL_WEIGHTS, AROUND_RESIDUAL},
    {"with its gradient", TELL_SHAPES, AROUND_GRADIENT},
};

/* Passes that only move, remove, join or compute by reference kernels: results keep their bits. */
static bool is_exact(const char *pass)
{
    static const char *const names[] = {"upgrade", "gradients", "simplify",   "fold",
                                        "merge",   "regions",   "transposes", "recompute"};

    for (size_t i = 0; i < CM_COUNT(names); i++)
        if (strcmp(pass, names[i]) == 0)
            return true;
    return false;
}

/* Backends whose kernels ran. */
struct used_backends {
    const char *names[8];
    size_t count;
    bool round; /* one of the kernels may round in another way than the reference does */
};

/* Elementwise regions promise the bits of their bodies. */
static bool keeps_bits(const struct cm_step_report *report)
{
    return strcmp(report->kernel, "cpu") == 0 &&
           cm_str_is(report->node->op_type, "ElementwiseRegion");
}

static void note_backend(void *arg, const struct cm_step_report *report)
{
    struct used_backends *used = arg;

    if (strcmp(report->kernel, "reference") == 0 || strcmp(report->kernel, "function") == 0)
        return;
    used->round = used->round || !keeps_bits(report);
    for (size_t i = 0; i < used->count; i++)
        if (strcmp(used->names[i], report->kernel) == 0)
            return;
    if (used->count < CM_COUNT(used->names))
        used->names[used->count++] = report->kernel;
}

/* One way to run a graph. */
struct way {
    const char *only, *with, *without; /* of the passes */
    const char *backend;               /* NULL: all */
    bool apart;                        /* regions node by node */
};

struct executor_check {
    const struct op_case *what;
    const struct op_setting *setting;
    const struct cm_datum *alone; /* results of the case alone; NULL: it is refused */
    const struct cm_datum *want;  /* by the interpreter; NULL: it refuses */
    double tol;                   /* where results are rounded another way */
    struct used_backends *used;   /* of the last way */
    struct cm_arena *arena;
    struct cm_error *err;
};

/* ---- which passes changed something ---- */

struct changes {
    uint64_t mark;        /* of the graph as it was */
    bool touched[PASSES]; /* by number of the pass */
    size_t at;
};

static uint64_t mix(uint64_t mark, uint64_t with)
{
    return (mark ^ with) * 0x100000001b3ull;
}

static uint64_t mark_of(const struct cm_graph *graph)
{
    uint64_t mark = 0xcbf29ce484222325ull;

    for (const struct cm_node *node = graph->first; node; node = node->next) {
        for (size_t i = 0; i < node->op_type.size; i++)
            mark = mix(mark, (unsigned char)node->op_type.data[i]);
        for (int i = 0; i < node->n_inputs; i++)
            mark = mix(mark, node->inputs[i].value);
        for (int o = 0; o < node->n_outputs; o++)
            mark = mix(mark, node->outputs[o]);
        mark = mix(mark, (uint64_t)(uintptr_t)node->attributes);
        for (size_t b = 0; b < node->n_bodies; b++)
            if (node->bodies[b].graph)
                mark = mix(mark, mark_of(node->bodies[b].graph));
    }
    for (size_t o = 0; o < graph->n_outputs; o++)
        mark = mix(mark, graph->outputs[o].value);
    return mark;
}

static enum cm_status note_change(void *arg, const struct cm_lower_report *report,
                                  struct cm_graph *graph, struct cm_error *err)
{
    struct changes *changes = arg;
    const uint64_t mark = mark_of(graph);

    (void)err;
    if (changes->at < PASSES)
        changes->touched[changes->at] = !report->skipped && mark != changes->mark;
    changes->at++;
    changes->mark = mark;
    return CM_OK;
}

static bool rounds(const struct changes *changes)
{
    for (size_t i = 0; i < cm_pass_count && i < PASSES; i++)
        if (changes->touched[i] && !is_exact(cm_passes[i].row.name))
            return true;
    return false;
}

static bool has_touched(const struct changes *changes, const char *pass)
{
    for (size_t i = 0; i < cm_pass_count && i < PASSES; i++)
        if (changes->touched[i] && strcmp(cm_passes[i].row.name, pass) == 0)
            return true;
    return false;
}

/* ---- running ---- */

static enum cm_status compare(const struct executor_check *c, const struct cm_graph *graph,
                              const struct cm_datum *got, bool exact)
{
    for (size_t o = 0; o < graph->n_outputs; o++) {
        const enum cm_status status = exact ? value_same(&got[o], &c->want[o], c->err)
                                            : value_compare(&got[o], &c->want[o], c->tol, c->err);
        CM_TRY(cm_error_context(c->err, status, "result %zu", o));
    }
    return CM_OK;
}

/* Of what is fed: nobody may write there. */
static uint64_t mark_of_feeds(const struct op_graph *graph)
{
    uint64_t mark = 0;

    for (size_t i = 0; i < graph->n_feeds; i++) {
        const struct cm_datum *feed = graph->feeds[i];
        const unsigned char *bytes = feed->kind == CM_KIND_TENSOR ? feed->tensor.data : NULL;
        for (size_t b = 0, n = bytes ? cm_tensor_bytes(&feed->tensor) : 0; b < n; b++)
            mark = mix(mark, bytes[b]);
    }
    return mark;
}

/* The second run finds what the first one left behind. */
static enum cm_status run_session(const struct executor_check *c, const struct op_graph *graph,
                                  const struct way *way, bool rounded, struct cm_session *session)
{
    const struct cm_run_options options = {
        .apart = way->apart, .step = note_backend, .step_arg = c->used};
    const bool again = !cm_graph_has_effect(graph->graph, CM_RANDOM);
    const uint64_t fed = mark_of_feeds(graph);

    for (int i = 0; i <= again; i++) {
        struct cm_datum *got = cm_data_new(c->arena, graph->graph->n_outputs);
        CM_TRY(cm_session_run(session, graph->feeds, graph->n_feeds, got, graph->graph->n_outputs,
                              &options, c->err));
        if (!c->want)
            return CM_OK;
        if (mark_of_feeds(graph) != fed)
            return cm_fail(c->err, CM_BAD_ARGUMENT, "a run changed what it was fed");
        CM_TRY(cm_error_context(c->err, compare(c, graph->graph, got, !rounded && !c->used->round),
                                "%s", i ? "second run" : "run"));
    }
    return CM_OK;
}

static bool is_training(const struct executor_check *c)
{
    return c->setting->around == AROUND_GRADIENT;
}

static enum cm_status run_lowered(const struct executor_check *c, const struct way *way,
                                  struct changes *changes)
{
    const struct cm_session_options options = {
        .threads = 1, .backend = way->backend, .seed = c->what->seed};
    const struct cm_lower_options lower = {.passes = {.only = way->only, .without = way->without},
                                           .after = note_change,
                                           .after_arg = changes};
    struct cm_session *session = NULL;
    struct op_graph graph;

    CM_TRY(op_setting_build(c->what, c->setting, c->alone, c->arena, &graph, c->err));
    *c->used = (struct used_backends){0};
    *changes = (struct changes){.mark = mark_of(graph.graph)};
    CM_TRY(cm_lower_graph(graph.graph, &lower, c->err));
    CM_TRY(cm_session_new(graph.graph, &options, &session, c->err));
    const enum cm_status status = run_session(c, &graph, way, rounds(changes), session);
    cm_session_free(session);
    return status;
}

/* What the interpreter refuses must stay refused, and nothing else may be. */
static enum cm_status run_way(const struct executor_check *c, const struct way *way,
                              struct changes *changes)
{
    enum cm_status status = run_lowered(c, way, changes);

    if (!c->want)
        status = status ? CM_OK : cm_fail(c->err, CM_BAD_ARGUMENT, "it was not refused");
    return cm_error_context(c->err, status, "%s, %s%s, %s kernels%s", c->setting->name,
                            way->only      ? "no pass"
                            : way->without ? "without "
                            : way->with    ? "all passes and "
                                           : "all passes",
                            way->without ? way->without
                            : way->with  ? way->with
                                         : "",
                            way->backend ? way->backend : "fastest",
                            way->apart ? ", regions apart" : "");
}

/* ---- a case in a setting ---- */

static enum cm_status run_ways(const struct executor_check *c)
{
    static const struct way plain = {.only = "", .backend = "reference"};
    static const struct way reference = {.backend = "reference"};
    static const struct way fastest = {.backend = NULL};
    static const struct way apart = {.backend = NULL, .apart = true};
    struct changes changes, ignored;

    if (c->setting->around == AROUND_NOTHING) /* elsewhere it would show nothing new */
        CM_TRY(run_way(c, &plain, &ignored));
    CM_TRY(run_way(c, &reference, &changes));
    CM_TRY(run_way(c, &fastest, &ignored));
    const struct used_backends used = *c->used;
    for (size_t i = 0; i < used.count; i++) {
        const struct way alone = {.backend = used.names[i]};
        if (used.count > 1)
            CM_TRY(run_way(c, &alone, &ignored));
    }
    if (has_touched(&changes, "regions"))
        CM_TRY(run_way(c, &apart, &ignored));
    for (size_t i = 0; i < cm_pass_count && i < PASSES; i++) {
        const struct way without = {.without = cm_passes[i].row.name, .backend = "reference"};
        const struct way with = {.with = cm_passes[i].row.name, .backend = "reference"};
        if (changes.touched[i] && cm_passes[i].row.kind == CM_PASS_USUAL)
            CM_TRY(run_way(c, &without, &ignored));
        if (cm_passes[i].row.kind == CM_PASS_ON_REQUEST && is_training(c))
            CM_TRY(run_way(c, &with, &ignored));
    }
    return CM_OK;
}

static enum cm_status check_setting(struct executor_check *c, bool in_float)
{
    static const struct way fastest = {.backend = NULL};
    struct changes ignored;
    struct op_graph graph;
    struct cm_datum *want;

    c->want = NULL;
    enum cm_status status =
        op_setting_build(c->what, c->setting, c->alone, c->arena, &graph, c->err);
    if (status && (c->what->refusals.count || in_float || is_training(c)))
        return CM_OK; /* refused before there is anything to run, or without a gradient */
    CM_TRY(status);
    cm_graph_number_random(graph.graph); /* as lowering does */
    status = op_graph_run(&graph, false, c->arena, &want, c->err);
    if (status && in_float)
        return CM_OK;
    if (status && !c->what->refusals.count)
        return status;
    c->want = status ? NULL : want;
    return in_float ? run_way(c, &fastest, &ignored) : run_ways(c);
}

static enum cm_status check_settings(const struct op_case *what, bool in_float,
                                     struct cm_arena *arena, struct cm_error *err)
{
    struct used_backends used;
    struct executor_check c = {.what = what,
                               .used = &used,
                               .tol = in_float ? FLOAT_TOLERANCE : case_body_tolerance(what),
                               .arena = arena,
                               .err = err};

    for (size_t i = 0; i < CM_COUNT(settings); i++) {
        c.setting = &settings[i];
        if (!op_setting_fits(what, c.setting, c.alone))
            continue;
        CM_TRY(check_setting(&c, in_float));
        if (i == 0)
            c.alone = c.want;
    }
    return CM_OK;
}

static bool has_double(const struct op_case *what)
{
    for (size_t i = 0; i < what->inputs.count; i++)
        if (what->inputs.items[i].datum.kind == CM_KIND_TENSOR &&
            what->inputs.items[i].datum.tensor.type == CM_DOUBLE)
            return true;
    return false;
}

/* Backends are made for float: what a case says in double they are asked in float too. */
enum cm_status check_executor(const struct op_case *what, struct cm_arena *arena, bool *ran,
                              struct cm_error *err)
{
    struct op_case in_float;

    *ran = true;
    CM_TRY(check_settings(what, false, arena, err));
    if (what->refusals.count || what->own_types || !has_double(what))
        return CM_OK;
    CM_TRY(case_in(CM_FLOAT, what, arena, &in_float, err));
    return cm_error_context(err, check_settings(&in_float, true, arena, err), "in float");
}
