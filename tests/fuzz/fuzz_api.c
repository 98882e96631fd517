/* Everything cameo.h offers on one hostile model: loading, describing, reading, checking, writing.
 */
// SPDX-License-Identifier: Apache-2.0
#include "cameo.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct copy {
    uint8_t *data;
    size_t size, room;
};

static int keep(void *to, const void *bytes, size_t size)
{
    struct copy *copy = to;

    if (size > copy->room - copy->size)
        return 1;
    memcpy(copy->data + copy->size, bytes, size);
    copy->size += size;
    return 0;
}

static void set_values(struct cameo_model *model, size_t index, size_t size)
{
    uint8_t *values = malloc(size + 1);

    if (values && cameo_model_read_initializer(model, index, values, size, NULL) == CAMEO_OK &&
        cameo_model_set_initializer(model, index, values, size, NULL) != CAMEO_OK)
        abort();
    free(values);
}

/* An untouched model must come out as it went in. */
static void use_model(struct cameo_model *model, const uint8_t *data, size_t size)
{
    struct cameo_findings *findings;
    struct copy copy = {malloc(size + 1), 0, size};

    if (copy.data && (cameo_model_write(model, NULL, keep, &copy, NULL) != CAMEO_OK ||
                      copy.size != size || memcmp(copy.data, data, size) != 0))
        abort();
    free(copy.data);
    if (cameo_model_check(model, NULL, &findings, NULL) == CAMEO_OK)
        cameo_findings_free(findings);
    for (size_t i = 0; i < cameo_model_summary(model)->initializer_count; i++) {
        const struct cameo_initializer *tensor = cameo_model_initializer(model, i);

        if (tensor->bytes <= size)
            set_values(model, i, (size_t)tensor->bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model;

    options.borrow_bytes = true;
    options.memory_limit = (size_t)256 << 20;
    if (cameo_model_load_memory(data, size, &options, &model, NULL) == CAMEO_OK)
        use_model(model, data, size);
    cameo_model_free(model);
    return 0;
}
