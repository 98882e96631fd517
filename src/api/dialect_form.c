/* Models in the form of MLIR: who reads and writes the ONNX dialect for those who open and save. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api.h"

#include "api/running.h"
#include "infer/infer_model.h"
#include "lower/lower.h"
#include "mlir/dialect/dialect.h"

/* The same model with the types of all values, as far as they are known; NULL: inference found
 * something wrong, which is no reason not to print. */
static const struct cm_model_proto *with_types(const struct cm_model_file *file,
                                               struct cm_arena *scratch)
{
    struct cm_model_file *const copy = cm_model_copy(scratch, file);
    const struct cm_infer_model_options options = {
        .import = cm_lower_import_as,
        .registry = cm_api_operators(NULL, file),
    };
    struct cm_infer_report report;
    struct cm_error err;

    copy->arena = scratch;
    if (!copy->model.graph || !options.registry ||
        cm_infer_model(scratch, copy, &options, &report, &err) != CM_OK)
        return NULL;
    return &copy->model;
}

enum cm_status cm_api_write_mlir(const struct cm_model_file *file,
                                 const struct cm_model_proto *model, bool generic, size_t elide,
                                 struct cm_arena *scratch, cm_text_write_fn *write, void *to,
                                 struct cm_error *err)
{
    const struct cm_dialect_options options = {
        .typed = with_types(file, scratch),
        .generic = generic,
        .elide = elide,
    };

    return cm_dialect_print(model, &options, scratch, write, to, err);
}

static enum cm_status print(const struct cm_model_file *file, const struct cm_model_proto *model,
                            bool generic, struct cm_arena *scratch, cm_text_write_fn *write,
                            void *to, struct cm_error *err)
{
    return cm_api_write_mlir(file, model, generic, 0, scratch, write, to, err);
}

const struct cm_mlir_form_hooks cm_api_mlir = {
    .parse = cm_dialect_parse,
    .print = print,
    .is_text = cm_dialect_is_text,
};
