/* A model that never touches a file: from text to binary in memory, and loaded from there. */
// SPDX-License-Identifier: Apache-2.0
#include <cameo.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                           "line (float[N] x) => (float[N] y)\n"
                           "<float slope = {2}, float offset = {1}>\n"
                           "{\n"
                           "    scaled = Mul(x, slope)\n"
                           "    y = Add(scaled, offset)\n"
                           "}\n";

struct buffer {
    char *data;
    size_t size;
};

static int append(void *to, const void *bytes, size_t size)
{
    struct buffer *buffer = to;
    char *grown = realloc(buffer->data, buffer->size + size);

    if (!grown)
        return 1; /* the write then fails with CAMEO_IO */
    memcpy(grown + buffer->size, bytes, size);
    buffer->data = grown;
    buffer->size += size;
    return 0;
}

/* The binary form of a model in text form. */
static enum cameo_status to_binary(const char *model_text, struct buffer *out,
                                   struct cameo_error *err)
{
    struct cameo_load_options load = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_write_options write = CAMEO_WRITE_OPTIONS_INIT;
    struct cameo_model *model;

    load.format = CAMEO_FORMAT_TEXT;
    load.borrow_bytes = true; /* the text outlives the model, so it need not be copied */
    write.format = CAMEO_FORMAT_BINARY;
    enum cameo_status status =
        cameo_model_load_memory(model_text, strlen(model_text), &load, &model, err);
    if (status != CAMEO_OK)
        return status;
    status = cameo_model_write(model, &write, append, out, err);
    cameo_model_free(model);
    return status;
}

int main(void)
{
    struct buffer binary = {NULL, 0};
    struct cameo_model *model = NULL;
    struct cameo_error err;
    int code = 1;

    if (to_binary(text, &binary, &err) == CAMEO_OK &&
        cameo_model_load_memory(binary.data, binary.size, NULL, &model, &err) == CAMEO_OK) {
        printf("%zu bytes of text became %zu bytes: graph '%s' maps %s to %s\n", strlen(text),
               binary.size, cameo_model_summary(model)->graph_name.data,
               cameo_model_input(model, 0)->type.data, cameo_model_output(model, 0)->type.data);
        code = 0;
    } else {
        fprintf(stderr, "%s\n", err.message);
    }
    cameo_model_free(model);
    free(binary.data);
    return code;
}
