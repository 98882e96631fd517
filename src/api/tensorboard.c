/* TensorBoard's event files, for callers. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api.h"
#include "io/events.h"

/* The public handle is the writer itself. */
static struct cm_events *inside(struct cameo_events *events)
{
    return (struct cm_events *)events;
}

enum cameo_status cameo_events_new(const char *folder, struct cameo_events **out,
                                   struct cameo_error *err)
{
    struct cm_error reason = {0};
    struct cm_events *made;

    CM_API_NEED(folder, err);
    CM_API_NEED(out, err);
    const enum cm_status status = cm_events_new(folder, &made, &reason);
    *out = (struct cameo_events *)made;
    return cm_api_done(status, &reason, err);
}

void cameo_events_free(struct cameo_events *events)
{
    cm_events_free(inside(events));
}

const char *cameo_events_path(const struct cameo_events *events)
{
    return cm_events_path((const struct cm_events *)events);
}

enum cameo_status cameo_events_resume(struct cameo_events *events, int64_t step, double time,
                                      struct cameo_error *err)
{
    struct cm_error reason = {0};

    CM_API_NEED(events, err);
    return cm_api_done(cm_events_restart(inside(events), step, time, &reason), &reason, err);
}

enum cameo_status cameo_events_add_scalar(struct cameo_events *events, const char *tag,
                                          int64_t step, double time, double value,
                                          struct cameo_error *err)
{
    struct cm_error reason = {0};

    CM_API_NEED(events, err);
    CM_API_NEED(tag, err);
    const struct cm_event_place place = {cm_str(tag), step, time};
    return cm_api_done(cm_events_scalar(inside(events), &place, value, &reason), &reason, err);
}

enum cameo_status cameo_events_add_text(struct cameo_events *events, const char *tag, int64_t step,
                                        double time, const char *text, struct cameo_error *err)
{
    struct cm_error reason = {0};

    CM_API_NEED(events, err);
    CM_API_NEED(tag, err);
    CM_API_NEED(text, err);
    const struct cm_event_place place = {cm_str(tag), step, time};
    return cm_api_done(cm_events_text(inside(events), &place, cm_str(text), &reason), &reason, err);
}

enum cameo_status cameo_events_finish(struct cameo_events *events, struct cameo_error *err)
{
    CM_API_NEED(events, err);
    struct cm_error reason = {0};

    return cm_api_done(cm_events_finish(inside(events), &reason), &reason, err);
}
