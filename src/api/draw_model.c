/* Pictures of models, for callers. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api.h"

#include "draw/drawing.h"

struct draw_call {
    const struct cameo_model *model;
    const struct cameo_drawing_options *given;
    struct cm_api_writer writer;
    struct cameo_drawing_report report;
};

typedef void write_fn(struct cm_printer *to, const struct cm_drawing *drawing);

static enum cm_status check_draw(const struct cameo_drawing_options *o, struct cm_error *err)
{
    if ((unsigned)o->format > CAMEO_DRAWING_DOT)
        return cm_fail(err, CM_BAD_ARGUMENT, "drawing format %d does not exist", (int)o->format);
    if (o->fold_count && !o->folds)
        return cm_fail(err, CM_BAD_ARGUMENT, "there are %zu folds, but folds is NULL",
                       o->fold_count);
    for (size_t i = 0; i < o->fold_count; i++)
        if (!o->folds[i])
            return cm_fail(err, CM_BAD_ARGUMENT, "fold %zu is NULL", i);
    return CM_OK;
}

static enum cm_status draw(void *arg, struct cm_arena *arena, struct cm_error *err)
{
    static write_fn *const writers[] = {
        [CAMEO_DRAWING_SVG] = cm_draw_write_svg,
        [CAMEO_DRAWING_HTML] = cm_draw_write_html,
        [CAMEO_DRAWING_DOT] = cm_draw_write_dot,
    };
    struct draw_call *call = arg;
    struct cameo_drawing_options o = CAMEO_DRAWING_OPTIONS_INIT;
    struct cm_printer to = {.write = cm_api_write, .to = &call->writer, .err = err};
    struct cm_arena scratch;

    CM_TRY(cm_api_options(&o, sizeof o, call->given, err));
    CM_TRY(check_draw(&o, err));
    const struct cm_draw_folds folds = {o.folds, o.fold_count};
    cm_arena_init(&scratch, arena->guard);
    struct cm_drawing drawing = {
        .arena = arena,
        .scratch = &scratch,
        .model = &call->model->file->model,
        .with_inner = o.format == CAMEO_DRAWING_HTML,
    };
    cm_draw_build(&drawing, &folds);
    writers[o.format](&to, &drawing);
    call->report.boxes = cm_draw_count(&drawing);
    const enum cm_status status = cm_print_end(&to);
    cm_arena_release(&scratch);
    return status;
}

enum cameo_status cameo_model_draw(const struct cameo_model *model,
                                   const struct cameo_drawing_options *options,
                                   cameo_write_fn *write, void *to,
                                   struct cameo_drawing_report *report, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(write, err);
    struct draw_call call = {.model = model, .given = options, .writer = {write, to}};
    struct cm_error why = {0};
    enum cm_status status = cm_api_check_out(report, &why);

    if (status == CM_OK)
        status = cm_api_about(model, cm_api_guarded(NULL, draw, &call, &why), &why);
    if (status == CM_OK && report)
        cm_api_give(report, &call.report, sizeof call.report);
    return cm_api_done(status, &why, err);
}
