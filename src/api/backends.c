/* Which backends there are, and the libraries they run on as they were found. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api.h"

#include "backends/onednn/dnnl.h"
#include "io/array_formats.h"

bool cameo_backend(size_t index, struct cameo_backend *out)
{
    struct cameo_backend backend = CAMEO_BACKEND_INIT;
    struct cm_error unused;

    if (!out || cm_api_check_out(out, &unused))
        return false;
    const struct cm_dnnl_found found = cm_dnnl_found();
    const bool is_there = index == 0 && found.version[0];
    if (is_there) {
        snprintf(backend.name, sizeof backend.name, "onednn");
        snprintf(backend.version, sizeof backend.version, "%s", found.version);
    }
    cm_api_give(out, &backend, sizeof backend);
    return is_there;
}

bool cameo_library(size_t index, struct cameo_library *out)
{
    struct cameo_library library = CAMEO_LIBRARY_INIT;
    struct cm_error unused;

    if (!out || cm_api_check_out(out, &unused) || index > 1)
        return false;
    if (index == 0) {
        const struct cm_dnnl_found found = cm_dnnl_found();
        snprintf(library.name, sizeof library.name, "oneDNN");
        snprintf(library.version, sizeof library.version, "%s", found.version);
        snprintf(library.path, sizeof library.path, "%s", found.path);
        snprintf(library.reason, sizeof library.reason, "%s", found.why);
    } else {
        const struct cm_zlib_found found = cm_zlib_found();
        snprintf(library.name, sizeof library.name, "zlib");
        snprintf(library.version, sizeof library.version, "%s", found.version);
        snprintf(library.path, sizeof library.path, "%s", found.path);
        snprintf(library.reason, sizeof library.reason, "%s", found.why);
    }
    cm_api_give(out, &library, sizeof library);
    return true;
}
