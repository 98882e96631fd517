/* Schedules of learning rates, built as phases (train/plan.h): those that frameworks know by a
 * name, and what phases can do with each other. Rates are absolute, one per group. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_SCHEDULE_H
#define CM_CONVERT_SCHEDULE_H

#include "convert/saved.h"

enum { CM_SCHEDULE_ROWS_MAX = 100000 }; /* of a table that stands for what no phase can say */

/* What schedules are built for: where they are put, and the rates they begin with. */
struct cm_schedule_maker {
    struct cm_arena *arena;
    struct cm_rate_schedule *out;
    const double *base; /* by group */
    size_t groups;
};

/* Adds a phase that goes from base * from to base * to, plus `to_plain` of a rate that does not
 * depend on the group. */
struct cm_phase *cm_schedule_add(const struct cm_schedule_maker *maker, enum cm_phase_shape shape,
                                 int64_t first, double length, double from, double to,
                                 double to_plain);
/* A table of what `rate` says, for positions first .. first + rows - 1; false: too many rows. */
typedef double cm_schedule_rate_fn(const void *arg, size_t group, int64_t position);
bool cm_schedule_add_table(const struct cm_schedule_maker *maker, int64_t first, int64_t rows,
                           cm_schedule_rate_fn *rate, const void *arg);

/* The rate of a group at a position; NAN when there are no phases. */
double cm_schedule_rate(const struct cm_rate_schedule *schedule, size_t groups, size_t group,
                        int64_t position);
/* The product of two schedules, divided by base, where phases can say that. */
bool cm_schedule_multiply(const struct cm_schedule_maker *maker, const struct cm_rate_schedule *a,
                          const struct cm_rate_schedule *b);
/* The same schedule, each position of which lasts for `times` updates; false: it has no end. */
bool cm_schedule_stretch(const struct cm_schedule_maker *maker, const struct cm_rate_schedule *from,
                         int64_t times);
/* Of which `times` positions pass with each update; false: phases begin in between. */
bool cm_schedule_shrink(struct cm_rate_schedule *schedule, int64_t times);

/* A schedule of transformers' get_scheduler, or of NeMo, by its name, with its own settings in
 * `more` (num_cycles, power, min_lr ..; NULL: none). false: the name is not known, or what it does
 * cannot be told ahead. */
bool cm_schedule_transformers(const struct cm_schedule_maker *maker, struct cm_str name,
                              double warmup, double total, const struct cm_item *more);
bool cm_schedule_nemo(const struct cm_schedule_maker *maker, struct cm_str name,
                      const struct cm_item *state);

/* The groups of saved as a maker, with its arena; base is zeros, to be filled in. */
struct cm_schedule_maker cm_schedule_for(struct cm_saved *saved, double **base);
/* Does the schedule give each group the rate that it has now? */
bool cm_schedule_agrees(const struct cm_saved *saved);

#endif
