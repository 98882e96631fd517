/* An import under way. Not for other folders. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_IMPORT_PARTS_H
#define CM_CONVERT_IMPORT_PARTS_H

#include "convert/match/match.h"

struct cm_importing {
    struct cm_arena *arena;
    struct cm_model_file *file;
    struct cm_saved *saved;
    const struct cm_saved_import_options *options;
    struct cm_matching *matching;
    struct cm_findings findings;
    struct cm_map groups; /* names of weights to the number of their group + 1 */
    struct cm_plan_weight *weights;
    size_t n_weights;
    bool *is_filled; /* by entry of saved: a state variable holds it */
};

void cm_import_note(struct cm_importing *in, const char *format, ...) CM_PRINTF(2, 3);
void cm_import_block(struct cm_importing *in, const char *format, ...) CM_PRINTF(2, 3);

/* import_settings.c: what flags and --set say, put into in->saved; what is still missing is
 * blocked. */
void cm_import_settings(struct cm_importing *in);
/* import_groups.c: keys of --set that are neither listed nor settings of a group are blocked; the
 * settings of one group; all of "groups". given: by group, set where lr is given. */
void cm_import_check_keys(struct cm_importing *in, const struct cm_item *map,
                          const char *const *keys, size_t count);
void cm_import_set_group(struct cm_importing *in, const struct cm_item *from,
                         struct cm_plan_group *group);
void cm_import_groups(struct cm_importing *in, const struct cm_item *groups, bool *given);
/* import_schedule.c: the part of that about rates. set: the map of --set, or NULL; given: by
 * group, was lr given? */
void cm_import_schedule(struct cm_importing *in, const struct cm_item *set, const bool *given);

/* import_fill.c: weights; the optimizer's state; and everything that a graph has no place for. */
enum cm_status cm_import_weights(struct cm_importing *in, struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_import_states(struct cm_importing *in, const struct cm_prepare_report *prepared,
                                struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_import_keep(struct cm_importing *in, const struct cm_prepare_report *prepared,
                              struct cm_error *err) CM_MUST_CHECK;

#endif
