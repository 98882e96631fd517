/* Curves of trainings, for callers. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api.h"

#include "base/memory.h"
#include "draw/curve.h"

struct cameo_curves {
    struct cm_arena arena;
    struct cm_curves list; /* in arena */
};

struct curves_call {
    struct cameo_curves *curves;
    cm_api_fn *fn;
    const char *name, *path, *prefix;
    double step, value;
    const struct cameo_curves_options *given;
    struct cm_api_writer writer;
    struct cm_error err;
};

static enum cm_status lend(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    const struct curves_call *call = arg;

    cm_arena_lend(&call->curves->arena, scratch->guard);
    return call->fn(arg, scratch, err);
}

static enum cameo_status run(struct curves_call *call, cm_api_fn *fn, struct cameo_error *err)
{
    call->fn = fn;
    return cm_api_call(NULL, lend, call, err);
}

static enum cm_status new_guarded(struct cm_guard *guard, void *arg)
{
    struct curves_call *call = arg;

    cm_arena_init(&call->curves->arena, guard);
    call->curves->list.arena = &call->curves->arena;
    return CM_OK;
}

enum cameo_status cameo_curves_new(struct cameo_curves **out, struct cameo_error *err)
{
    CM_API_NEED(out, err);
    struct curves_call call = {.curves = cm_calloc(1, sizeof *call.curves)};
    const enum cm_status status = call.curves
                                      ? cm_guarded(0, &call.err, new_guarded, &call)
                                      : cm_fail(&call.err, CM_NO_MEMORY, "no memory for curves");

    *out = NULL;
    if (status)
        cm_free(call.curves);
    else
        *out = call.curves;
    return cm_api_done(status, &call.err, err);
}

void cameo_curves_free(struct cameo_curves *curves)
{
    if (!curves)
        return;
    cm_arena_release(&curves->arena);
    cm_free(curves);
}

static enum cm_status add(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    const struct curves_call *call = arg;
    struct cm_curves *list = &call->curves->list;

    (void)scratch;
    (void)err;
    cm_curve_add(list, cm_curves_get(list, cm_str(call->name)), call->step, call->value);
    return CM_OK;
}

enum cameo_status cameo_curves_add(struct cameo_curves *curves, const char *name, double step,
                                   double value, struct cameo_error *err)
{
    CM_API_NEED(curves, err);
    CM_API_NEED(name, err);
    struct curves_call call = {.curves = curves, .name = name, .step = step, .value = value};

    return run(&call, add, err);
}

static enum cm_status read_log(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    const struct curves_call *call = arg;

    return cm_curves_read(&call->curves->list, call->path, call->prefix ? call->prefix : "",
                          scratch, err);
}

enum cameo_status cameo_curves_read(struct cameo_curves *curves, const char *path,
                                    const char *prefix, struct cameo_error *err)
{
    CM_API_NEED(curves, err);
    CM_API_NEED(path, err);
    struct curves_call call = {.curves = curves, .path = path, .prefix = prefix};

    return run(&call, read_log, err);
}

bool cameo_curves_at(const struct cameo_curves *curves, size_t index, struct cameo_curve *out)
{
    if (!curves || !out || index >= curves->list.count)
        return false;
    const struct cm_curve *curve = &curves->list.items[index];
    *out = (struct cameo_curve){.name = {curve->name.data, curve->name.size},
                                .count = curve->x.count,
                                .steps = curve->x.items,
                                .values = curve->y.items};
    return true;
}

static enum cm_status check_options(const struct cameo_curves_options *o, struct cm_error *err)
{
    if ((unsigned)o->format > CAMEO_CURVES_BRAILLE)
        return cm_fail(err, CM_BAD_ARGUMENT, "curve format %d does not exist", (int)o->format);
    if (o->columns > 10000 || o->rows > 10000)
        return cm_fail(err, CM_BAD_ARGUMENT, "%d columns and %d rows: expected up to 10000",
                       o->columns, o->rows);
    return CM_OK;
}

static enum cm_status draw(void *arg, struct cm_arena *arena, struct cm_error *err)
{
    struct curves_call *call = arg;
    struct cameo_curves_options o = CAMEO_CURVES_OPTIONS_INIT;
    struct cm_printer to = {.write = cm_api_write, .to = &call->writer, .err = err};
    struct cm_arena scratch;

    CM_TRY(cm_api_options(&o, sizeof o, call->given, err));
    CM_TRY(check_options(&o, err));
    struct cm_curve_picture picture = {.title = o.title ? o.title : "training curves",
                                       .steps = o.steps ? o.steps : "step",
                                       .window = o.window};
    const bool all = o.only && strcmp(o.only, "*") == 0;
    if (all)
        cm_curves_arrange_each(&call->curves->list, o.log_scale, arena, &picture);
    else
        cm_curves_arrange(&call->curves->list, o.only, o.log_scale, arena, &picture);
    if (!picture.panels.count && !all)
        return cm_fail(err, CM_NOT_FOUND,
                       o.only ? "no curve has one of these names"
                              : "no curve is a loss or an accuracy; choose curves by their names");
    cm_arena_init(&scratch, arena->guard);
    if (o.format == CAMEO_CURVES_SVG)
        cm_curve_write_svg(&to, &scratch, &picture);
    else
        cm_curve_write_text(&to, &scratch, &picture, o.columns, o.rows,
                            o.format == CAMEO_CURVES_BRAILLE);
    const enum cm_status status = cm_print_end(&to);
    cm_arena_release(&scratch);
    return status;
}

enum cameo_status cameo_curves_draw(const struct cameo_curves *curves,
                                    const struct cameo_curves_options *options,
                                    cameo_write_fn *write, void *to, struct cameo_error *err)
{
    CM_API_NEED(curves, err);
    CM_API_NEED(write, err);
    struct curves_call call = {
        /* Handles come from cm_calloc; drawing notes only which curves are sparse. */
        .curves = (struct cameo_curves *)(uintptr_t)curves,
        .given = options,
        .writer = {write, to},
    };

    return run(&call, draw, err);
}
