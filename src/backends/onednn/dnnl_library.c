/* Finds and opens oneDNN, once for the process. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/onednn/dnnl_abi.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "graph/backend.h"

#include <pthread.h>
#include <stdatomic.h>

static struct cm_dnnl the_library;
static struct cm_team_runtime the_runtime;

/* clang-format off */
#define SAME_IN_BOTH(member) {"dnnl_" #member, &the_library.fn.member}
static const struct cm_symbol symbols[] = {
    SAME_IN_BOTH(engine_create),
    SAME_IN_BOTH(stream_create),
    SAME_IN_BOTH(stream_wait),
    SAME_IN_BOTH(stream_destroy),
    SAME_IN_BOTH(memory_create),
    SAME_IN_BOTH(memory_set_data_handle),
    SAME_IN_BOTH(memory_destroy),
    SAME_IN_BOTH(memory_desc_get_size),
    SAME_IN_BOTH(memory_desc_equal),
    SAME_IN_BOTH(primitive_desc_query),
    SAME_IN_BOTH(primitive_desc_query_md),
    SAME_IN_BOTH(primitive_desc_destroy),
    SAME_IN_BOTH(primitive_create),
    SAME_IN_BOTH(primitive_execute),
    SAME_IN_BOTH(primitive_destroy),
    SAME_IN_BOTH(primitive_attr_create),
    SAME_IN_BOTH(primitive_attr_set_scratchpad_mode),
    SAME_IN_BOTH(primitive_attr_set_post_ops),
    SAME_IN_BOTH(primitive_attr_destroy),
    SAME_IN_BOTH(post_ops_create),
    SAME_IN_BOTH(post_ops_append_binary),
    SAME_IN_BOTH(post_ops_destroy),
    SAME_IN_BOTH(reorder_primitive_desc_create),
};

#define OF_RUNTIME(member) {#member, &the_runtime.member}
static const struct cm_symbol runtime_symbols[] = {
    OF_RUNTIME(GOMP_parallel),
    OF_RUNTIME(omp_get_thread_num),
    OF_RUNTIME(omp_get_num_threads),
    OF_RUNTIME(omp_get_max_threads),
    OF_RUNTIME(omp_set_num_threads),
};
/* clang-format on */

enum {
    SYMBOLS = sizeof symbols / sizeof symbols[0],
    RUNTIME_SYMBOLS = sizeof runtime_symbols / sizeof runtime_symbols[0],
};

/* Which of our two ways of talking to it; NULL, with the reason, when neither fits. */
static const struct cm_dnnl_major *choose_major(struct cm_dnnl *dnnl)
{
    static const struct cm_dnnl_major *const majors[] = {&cm_dnnl_v2, &cm_dnnl_v3};
    const struct dnnl_version *(*version)(void) = NULL;
    const struct cm_symbol symbol = {"dnnl_version", &version};

    if (!cm_library_find(&dnnl->library, &symbol, 1))
        return NULL;
    dnnl->version = *version();
    for (size_t i = 0; i < sizeof majors / sizeof majors[0]; i++)
        if (dnnl->version.major == majors[i]->major &&
            dnnl->version.minor >= majors[i]->least_minor)
            return majors[i];
    snprintf(dnnl->library.why, sizeof dnnl->library.why,
             "%.400s is version %d.%d, expected 2.6 or later, or 3.x", dnnl->library.path,
             dnnl->version.major, dnnl->version.minor);
    return NULL;
}

/* Its threads become ours where they are OpenMP's; a runtime we cannot tell how many threads to use
 * is none for us. */
static bool share_threads(struct cm_dnnl *dnnl)
{
    dnnl->teams = "none";
    if (dnnl->version.cpu_runtime == DNNL_RUNTIME_SEQ)
        return true;
    if (dnnl->version.cpu_runtime != DNNL_RUNTIME_OMP) {
        snprintf(dnnl->library.why, sizeof dnnl->library.why,
                 "%.400s is not built for OpenMP threads", dnnl->library.path);
        return false;
    }
    if (!cm_library_find(&dnnl->library, runtime_symbols, RUNTIME_SYMBOLS))
        return false;
    dnnl->teams = "OpenMP";
    cm_team_use_runtime(&the_runtime);
    return true;
}

static void open_library(void)
{
    static const char *const names[] = {"libdnnl.so.2", "libdnnl.so.3", "libdnnl.so", NULL};
    struct cm_dnnl *dnnl = &the_library;

    dnnl->teams = "none";
    if (!cm_library_open("CAMEO_ONEDNN", names, &dnnl->library))
        return;
    dnnl->major = choose_major(dnnl);
    if (!dnnl->major || !cm_library_find(&dnnl->library, symbols, SYMBOLS) ||
        !cm_library_find(&dnnl->library, dnnl->major->symbols, dnnl->major->n_symbols) ||
        !share_threads(dnnl))
        return;
    const int status = cm_memory_is_left(CM_DNNL_RESERVE)
                           ? dnnl->fn.engine_create(&dnnl->engine, DNNL_CPU, 0)
                           : DNNL_OUT_OF_MEMORY;
    if (status == DNNL_OUT_OF_MEMORY) {
        cm_library_note_starved(&dnnl->library);
        snprintf(dnnl->library.why, sizeof dnnl->library.why, "no memory for %.400s",
                 dnnl->library.path);
        return;
    }
    if (status != DNNL_SUCCESS) {
        snprintf(dnnl->library.why, sizeof dnnl->library.why, "%.400s cannot use this processor",
                 dnnl->library.path);
        return;
    }
    snprintf(dnnl->version_text, sizeof dnnl->version_text, "%d.%d.%d", dnnl->version.major,
             dnnl->version.minor, dnnl->version.patch);
    dnnl->usable = true;
}

/* Opened once; where memory was too short for that, it is tried again. */
const struct cm_dnnl *cm_dnnl_get(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static atomic_bool settled;

    if (atomic_load_explicit(&settled, memory_order_acquire))
        return &the_library;
    pthread_mutex_lock(&lock);
    if (!atomic_load_explicit(&settled, memory_order_relaxed))
        open_library();
    atomic_store_explicit(&settled, !the_library.library.no_memory, memory_order_release);
    pthread_mutex_unlock(&lock);
    return &the_library;
}

struct cm_dnnl_found cm_dnnl_found(void)
{
    const struct cm_dnnl *dnnl = cm_dnnl_get();

    return (struct cm_dnnl_found){.version = dnnl->version_text,
                                  .path = dnnl->library.path,
                                  .why = dnnl->library.why,
                                  .teams = dnnl->teams};
}

static const char *version(void)
{
    return cm_dnnl_get()->version_text;
}

CM_BACKEND(onednn, .version = version);
