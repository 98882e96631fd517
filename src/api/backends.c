/* Which backends the library was built with, and their versions as they are loaded. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api.h"

#ifdef CAMEO_HAS_ONEDNN
#include "backends/onednn/dnnl.h"
#endif

bool cameo_backend(size_t index, struct cameo_backend *out)
{
    struct cameo_backend backend = CAMEO_BACKEND_INIT;
    struct cm_error unused;
    bool found = false;

    if (!out || cm_api_check_out(out, &unused))
        return false;
#ifdef CAMEO_HAS_ONEDNN
    found = index == 0;
    if (found) {
        snprintf(backend.name, sizeof backend.name, "onednn");
        snprintf(backend.version, sizeof backend.version, "%s", cm_dnnl_version().text);
    }
#endif
    (void)index;
    cm_api_give(out, &backend, sizeof backend);
    return found;
}
