/* Models in the form of MLIR through the public functions. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "cameo.h"

#include "check.h"

#include <stdlib.h>
#include <unistd.h>

static const char net[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                          "net (float[N, 2] x) => (float[N, 1] y) <float[2, 1] w = {1, -0.5}>\n"
                          "{ h = MatMul(x, w) y = Relu(h) }";

struct sheet {
    char text[4096];
    size_t size;
};

static int write_sheet(void *to, const void *bytes, size_t size)
{
    struct sheet *const sheet = to;

    if (size >= sizeof sheet->text - sheet->size)
        return 1;
    memcpy(sheet->text + sheet->size, bytes, size);
    sheet->size += size;
    sheet->text[sheet->size] = 0;
    return 0;
}

static struct cameo_model *load_text(const char *text, enum cameo_format format)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model;
    struct cameo_error err;

    options.format = format;
    CHECK_INT(cameo_model_load_memory(text, strlen(text), &options, &model, &err), CAMEO_OK);
    return model;
}

static void print(const struct cameo_model *model, enum cameo_format format, struct sheet *out)
{
    struct cameo_write_options options = CAMEO_WRITE_OPTIONS_INIT;
    struct cameo_error err;

    out->size = 0;
    options.format = format;
    CHECK_INT(cameo_model_write(model, &options, write_sheet, out, &err), CAMEO_OK);
}

void test_dialect_form__has_inferred_types_and_is_known_by_its_beginning(void)
{
    struct cameo_model *const model = load_text(net, CAMEO_FORMAT_TEXT), *again;
    struct sheet mlir, before, after;

    print(model, CAMEO_FORMAT_MLIR, &mlir);
    CHECK(strstr(mlir.text, "(tensor<?x2xf32>, tensor<2x1xf32>) -> tensor<?x1xf32>"));
    again = load_text(mlir.text, CAMEO_FORMAT_BY_NAME);
    print(model, CAMEO_FORMAT_TEXT, &before);
    print(again, CAMEO_FORMAT_TEXT, &after);
    CHECK_STRING(after.text, before.text);
    cameo_model_free(again);

    print(model, CAMEO_FORMAT_MLIR_GENERIC, &mlir);
    CHECK(strstr(mlir.text, "\"onnx.Return\"(%2) : (tensor<?x1xf32>) -> ()"));
    again = load_text(mlir.text, CAMEO_FORMAT_MLIR);
    print(again, CAMEO_FORMAT_TEXT, &after);
    CHECK_STRING(after.text, before.text);
    cameo_model_free(again);
    cameo_model_free(model);
}

void test_dialect_form__is_that_of_files_named_mlir(void)
{
    char folder[] = "/tmp/cameo_dialect_XXXXXX", path[64], other[64];
    struct cameo_model *const model = load_text(net, CAMEO_FORMAT_TEXT);
    struct cameo_model *again;
    struct sheet before, after;
    struct cameo_error err;

    CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/net.mlir", folder);
    snprintf(other, sizeof other, "%s/net.onnx", folder);
    CHECK_INT(cameo_model_save(model, path, NULL, NULL, &err), CAMEO_OK);
    CHECK_INT(cameo_model_load(path, NULL, &again, &err), CAMEO_OK);
    print(model, CAMEO_FORMAT_TEXT, &before);
    print(again, CAMEO_FORMAT_TEXT, &after);
    CHECK_STRING(after.text, before.text);
    cameo_model_free(again);

    /* Under another name it is told what it is. */
    CHECK_INT(rename(path, other), 0);
    CHECK_INT(cameo_model_load(other, NULL, &again, &err), CAMEO_BAD_MODEL);
    CHECK(strstr(err.message, "a module of MLIR: give it a name that ends in .mlir"));
    CHECK_INT(unlink(other), 0);
    CHECK_INT(rmdir(folder), 0);
    cameo_model_free(model);
}
