/* Event files of TensorBoard: TFRecords of Event messages, appended to a file of one's own in a
 * folder. Every record is written by one call, so that a reader of the growing file and one after a
 * crash see whole records. Nothing is read back. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_IO_EVENTS_H
#define CM_IO_EVENTS_H

#include "base/status.h"
#include "base/text.h"

struct cm_events;

/* Makes the folder, with those above it, where it is not, and in it a file whose name sorts behind
 * those of the event files that are there: readers go through a folder in that order. */
enum cm_status cm_events_new(const char *folder, struct cm_events **out,
                             struct cm_error *err) CM_MUST_CHECK;
void cm_events_free(struct cm_events *events); /* NULL is fine */
const char *cm_events_path(const struct cm_events *events);

/* Where a value belongs. time: seconds since 1970; 0: now. */
struct cm_event_place {
    struct cm_str tag;
    int64_t step;
    double time;
};

/* Readers forget what earlier files of the folder say of this step and later ones. */
enum cm_status cm_events_restart(struct cm_events *events, int64_t step, double time,
                                 struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_events_scalar(struct cm_events *events, const struct cm_event_place *place,
                                double value, struct cm_error *err) CM_MUST_CHECK;
/* Markdown. */
enum cm_status cm_events_text(struct cm_events *events, const struct cm_event_place *place,
                              struct cm_str text, struct cm_error *err) CM_MUST_CHECK;

/* Syncs and closes the file. To be called once, when nobody adds any more. */
enum cm_status cm_events_finish(struct cm_events *events, struct cm_error *err) CM_MUST_CHECK;

#endif
