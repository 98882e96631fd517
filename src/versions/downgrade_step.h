/* What the rules for the way down share. Not for other folders. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_VERSIONS_DOWNGRADE_STEP_H
#define CM_VERSIONS_DOWNGRADE_STEP_H

#include "versions/upgrade_step.h"

enum { LIST_MAX = 4096 }; /* elements of an operand that may become an attribute */

/* The contents of an operand that the older version has as an attribute; NULL: it is absent.
 * Refuses what is not constant. */
enum cm_status cm_downgrade_constant(struct cm_upgrade *down, size_t i, const char *what,
                                     const struct cm_tensor **out) CM_MUST_CHECK;
enum cm_status cm_downgrade_ints(struct cm_upgrade *down, size_t i, const char *what,
                                 struct cm_int64s *out) CM_MUST_CHECK;
/* Constant operand i becomes the attribute, if it is there. */
enum cm_status cm_downgrade_to_attribute(struct cm_upgrade *down, size_t i,
                                         const char *name) CM_MUST_CHECK;
/* Axes in an attribute are counted from the front, of input 0 with `extra` axes more. */
enum cm_status cm_downgrade_axis(struct cm_upgrade *down, const char *name,
                                 int extra) CM_MUST_CHECK;
enum cm_status cm_downgrade_refuse_word(struct cm_upgrade *down, const char *attribute,
                                        const char *word) CM_MUST_CHECK;

/* The same for the attribute axis, and for axes. */
cm_upgrade_step_fn cm_downgrade_one_axis, cm_downgrade_axes;
/* What is legal in the older version means the same there. */
cm_upgrade_step_fn cm_downgrade_nothing;
cm_upgrade_step_fn cm_downgrade_batchnorm_14, cm_downgrade_batchnorm_7, cm_downgrade_scan_9;

#endif
