/* Folders of Orbax: what the reader and the writer share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_ORBAX_H
#define CM_CONVERT_ORBAX_H

#include "convert/format.h"

/* Kinds of keys in _METADATA. */
enum { CM_ORBAX_SEQUENCE = 1, CM_ORBAX_MAP = 2 };

/* The fact that holds custom_metadata, users' and ours. */
#define CM_ORBAX_CUSTOM "orbax.custom"

/* Settings that optax has no place for, in custom_metadata under a key of ours: what Cameo wrote it
 * can go on from. NULL: there are none, or none that would be found again. */
const struct cm_item *cm_orbax_settings(struct cm_arena *arena, const struct cm_saved *saved);
/* Takes them where they are; what was missing without them is not missing then. */
enum cm_status cm_orbax_take_settings(struct cm_saved *saved, struct cm_error *err) CM_MUST_CHECK;

enum cm_status cm_orbax_write(const struct cm_saved *saved, const char *path,
                              struct cm_error *err) CM_MUST_CHECK;

#endif
