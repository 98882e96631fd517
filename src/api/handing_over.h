/* Models as code of other frameworks. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_API_HANDING_OVER_H
#define CM_API_HANDING_OVER_H

#include "api/api.h"
#include "convert/code/code.h"

/* exporting.c: what was written, in arena. */
const struct cameo_exported *cm_api_exported(struct cm_arena *arena, const struct cm_saved *saved,
                                             const struct cm_saved_texts *from);
/* cameo_model_export for a format that is code. */
enum cameo_status cm_api_export_code(const struct cameo_model *model, const char *path,
                                     const struct cameo_export_options *options,
                                     const struct cameo_exported **report, struct cameo_error *err);

#endif
