/* Which backends the library was built with, and their versions as they are loaded. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api.h"

#ifdef CAMEO_HAS_ONEDNN
#include "backends/onednn/dnnl.h"
#endif

bool cameo_backend(size_t index, struct cameo_backend *out)
{
    *out = (struct cameo_backend){.name = ""};
#ifdef CAMEO_HAS_ONEDNN
    if (index == 0) {
        snprintf(out->name, sizeof out->name, "onednn");
        snprintf(out->version, sizeof out->version, "%s", cm_dnnl_version().text);
        return true;
    }
#endif
    (void)index;
    return false;
}
