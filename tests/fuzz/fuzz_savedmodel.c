/* A hostile model that is made into a SavedModel, without writing files: names, texts and sizes of
 * the model go through rows and come out as nodes. */
// SPDX-License-Identifier: Apache-2.0
#include "cameo.h"
#include "target.h"

enum { MOST_NODES = 60 };

static void run_input(const uint8_t *data, size_t size)
{
    struct cameo_export_options options = CAMEO_EXPORT_OPTIONS_INIT;
    struct cameo_load_options load = CAMEO_LOAD_OPTIONS_INIT;
    const struct cameo_exported *report;
    struct cameo_error err = {0};
    struct cameo_model *model = NULL;

    load.format = CAMEO_FORMAT_BINARY;
    load.borrow_bytes = true;
    load.memory_limit = (size_t)256 << 20;
    options.to = "savedmodel";
    if (cameo_model_load_memory(data, size, &load, &model, &err) == CAMEO_OK &&
        cameo_model_summary(model)->node_count <= MOST_NODES)
        fuzz_require(cameo_model_export(model, NULL, &options, &report, &err) == CAMEO_OK ||
                     err.message[0]);
    cameo_model_free(model);
}

const struct fuzz_target fuzz_target = {
    .run = run_input,
    .mutate = mutate_model,
    .memory_base = 32 * FUZZ_MIB,
    .memory_per_byte = 8192,
};
