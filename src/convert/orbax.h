/* Folders of Orbax: what the reader and the writer share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_ORBAX_H
#define CM_CONVERT_ORBAX_H

#include "convert/format.h"

/* Kinds of keys in _METADATA. */
enum { CM_ORBAX_SEQUENCE = 1, CM_ORBAX_MAP = 2 };

enum cm_status cm_orbax_write(const struct cm_saved *saved, const char *path,
                              const struct cm_write_options *options,
                              struct cm_error *err) CM_MUST_CHECK;

#endif
