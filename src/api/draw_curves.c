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
    cm_guarded_fn *fn;
    const char *name, *path, *prefix;
    double step, value;
    struct cameo_curves_options options;
    struct cm_api_writer writer;
    struct cm_error err;
};

static enum cm_status lend(struct cm_guard *guard, void *arg)
{
    struct curves_call *call = arg;

    cm_arena_lend(&call->curves->arena, guard);
    return call->fn(guard, call);
}

static enum cm_status guarded(struct curves_call *call, cm_guarded_fn *fn)
{
    call->fn = fn;
    return cm_guarded(0, &call->err, lend, call);
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

static enum cm_status add_guarded(struct cm_guard *guard, void *arg)
{
    struct curves_call *call = arg;
    struct cm_curves *list = &call->curves->list;

    (void)guard;
    cm_curve_add(list, cm_curves_get(list, cm_str(call->name)), call->step, call->value);
    return CM_OK;
}

enum cameo_status cameo_curves_add(struct cameo_curves *curves, const char *name, double step,
                                   double value, struct cameo_error *err)
{
    CM_API_NEED(curves, err);
    CM_API_NEED(name, err);
    struct curves_call call = {.curves = curves, .name = name, .step = step, .value = value};

    return cm_api_done(guarded(&call, add_guarded), &call.err, err);
}

static enum cm_status read_guarded(struct cm_guard *guard, void *arg)
{
    struct curves_call *call = arg;
    struct cm_arena scratch;

    cm_arena_init(&scratch, guard);
    const enum cm_status status = cm_curves_read(
        &call->curves->list, call->path, call->prefix ? call->prefix : "", &scratch, &call->err);
    cm_arena_release(&scratch);
    return status;
}

enum cameo_status cameo_curves_read(struct cameo_curves *curves, const char *path,
                                    const char *prefix, struct cameo_error *err)
{
    CM_API_NEED(curves, err);
    CM_API_NEED(path, err);
    struct curves_call call = {.curves = curves, .path = path, .prefix = prefix};

    return cm_api_done(guarded(&call, read_guarded), &call.err, err);
}

bool cameo_curves_at(const struct cameo_curves *curves, size_t index, struct cameo_curve *out)
{
    if (!curves || !out || index >= curves->list.count)
        return false;
    const struct cm_curve *curve = &curves->list.items[index];
    *out = (struct cameo_curve){.name = {curve->name.data, curve->name.size},
                                .count = curve->count,
                                .steps = curve->x,
                                .values = curve->y};
    return true;
}

static enum cm_status draw(struct curves_call *call, struct cm_arena *arena,
                           struct cm_arena *scratch)
{
    const struct cameo_curves_options *o = &call->options;
    struct cm_curve_picture picture = {.title = o->title ? o->title : "training curves",
                                       .steps = o->steps ? o->steps : "step",
                                       .window = o->window};
    struct cm_printer to = {.write = cm_api_write, .to = &call->writer, .err = &call->err};

    const bool all = o->only && strcmp(o->only, "*") == 0;

    if (all)
        cm_curves_arrange_each(&call->curves->list, o->log_scale, arena, &picture);
    else
        cm_curves_arrange(&call->curves->list, o->only, o->log_scale, arena, &picture);
    if (!picture.panels.count && !all)
        return cm_fail(&call->err, CM_NOT_FOUND,
                       o->only ? "no curve has one of these names"
                               : "no curve is a loss or an accuracy; choose curves by their names");
    if (o->format == CAMEO_CURVES_SVG)
        cm_curve_write_svg(&to, scratch, &picture);
    else
        cm_curve_write_text(&to, scratch, &picture, o->columns, o->rows,
                            o->format == CAMEO_CURVES_BRAILLE);
    return cm_print_end(&to);
}

static enum cm_status draw_guarded(struct cm_guard *guard, void *arg)
{
    struct cm_arena arena, scratch;

    cm_arena_init(&arena, guard);
    cm_arena_init(&scratch, guard);
    const enum cm_status status = draw(arg, &arena, &scratch);
    cm_arena_release(&scratch);
    cm_arena_release(&arena);
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
        .options = CAMEO_CURVES_OPTIONS_INIT,
        .writer = {write, to},
    };
    enum cm_status status = cm_api_options(&call.options, sizeof call.options, options, &call.err);

    if (status == CM_OK && (unsigned)call.options.format > CAMEO_CURVES_BRAILLE)
        status = cm_fail(&call.err, CM_BAD_ARGUMENT, "curve format %d does not exist",
                         (int)call.options.format);
    if (status == CM_OK && (call.options.columns > 10000 || call.options.rows > 10000))
        status = cm_fail(&call.err, CM_BAD_ARGUMENT, "%d columns and %d rows: expected up to 10000",
                         call.options.columns, call.options.rows);
    if (status == CM_OK)
        status = guarded(&call, draw_guarded);
    return cm_api_done(status, &call.err, err);
}
