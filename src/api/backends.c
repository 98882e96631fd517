/* Which backends there are, and the libraries they run on as they were found. */
// SPDX-License-Identifier: Apache-2.0
#include "api/running.h"
#include "base/free_memory.h"
#include "base/library.h"

#include "backends/onednn/dnnl.h"
#include "base/parallel.h"
#include "base/peak.h"
#include "bytes/inflate.h"
#include "codec/image.h"
#include "graph/backend.h"
#include "mlir/toolchain/open.h"

bool cameo_backend(size_t index, struct cameo_backend *out)
{
    struct cameo_backend backend = CAMEO_BACKEND_INIT;
    struct cm_error unused;

    if (!out || cm_api_check_out(out, &unused))
        return false;
    for (size_t i = 0; i < cm_backend_count && !backend.name[0]; i++) {
        const char *version = cm_backends[i]->version ? cm_backends[i]->version() : "";
        if (!version[0] || index-- > 0)
            continue;
        snprintf(backend.name, sizeof backend.name, "%s", cm_backends[i]->name);
        snprintf(backend.version, sizeof backend.version, "%s", version);
    }
    cm_api_give(out, &backend, sizeof backend);
    return backend.name[0] != '\0';
}

const char *cm_api_backend_versions(struct cm_arena *arena, const char *only)
{
    const struct cm_backend *named = only ? cm_backend_find(only) : NULL;
    const char *text = "";

    for (size_t i = cm_backend_count; i-- > 0;) {
        const struct cm_backend *backend = cm_backends[i];
        const char *version = backend->version ? backend->version() : NULL;
        if ((only && backend != named) || (version && !version[0]))
            continue;
        text = cm_arena_printf(arena, "%s%s%s%s%s", text, *text ? ", " : "", backend->name,
                               version ? " " : "", version ? version : "")
                   .data;
    }
    return *text ? text : only;
}

static void fill_library(struct cameo_library *out, const char *name, const char *version,
                         const char *path, const char *reason)
{
    snprintf(out->name, sizeof out->name, "%s", name);
    snprintf(out->version, sizeof out->version, "%s", version);
    snprintf(out->path, sizeof out->path, "%s", path);
    snprintf(out->reason, sizeof out->reason, "%s", reason);
    out->no_memory = !version[0] && cm_library_any_starved();
}

bool cameo_library(size_t index, struct cameo_library *out)
{
    struct cameo_library library = CAMEO_LIBRARY_INIT;
    struct cm_error unused;
    struct cm_codec_found codec;
    size_t n_codecs = 0;

    if (!out || cm_api_check_out(out, &unused))
        return false;
    if (index == 0) {
        const struct cm_dnnl_found found = cm_dnnl_found();
        fill_library(&library, "oneDNN", found.version, found.path, found.why);
    } else if (index == 1) {
        const struct cm_zlib_found found = cm_zlib_found();
        fill_library(&library, "zlib", found.version, found.path, found.why);
    } else if (cm_codec_found(index - 2, &codec)) {
        fill_library(&library, codec.library, codec.version, codec.path, codec.reason);
    } else {
        while (cm_codec_found(n_codecs, &codec))
            n_codecs++;
        if (index != 2 + n_codecs)
            return false;
        const struct cm_mlir_found found = cm_mlir_found();
        fill_library(&library, "MLIR", found.version, found.path, found.reason);
    }
    cm_api_give(out, &library, sizeof library);
    return true;
}

size_t cameo_free_memory(bool with_swap)
{
    return cm_free_memory(with_swap);
}

double cameo_machine_peak(int threads)
{
    struct cm_team *team = cm_team_new(threads > 0 && threads <= 4096 ? threads : 0);
    double peak = 0;

    if (team) {
        struct cm_team *before = cm_team_enter(team);

        peak = cm_measure_peak(cm_team_threads(team));
        cm_team_enter(before);
    }
    cm_team_free(team);
    return peak;
}
