/* A model as a module of the ONNX dialect of MLIR, as text, both ways, without any MLIR library.
 *
 * What ONNX-MLIR writes for a model it has imported is the form; what that drops (names of values,
 * opsets, metadata, training info, ..) is kept in attributes whose names begin with "onnx.", so
 * that a model printed and read again is the same model. docs/mlir-dialect.md has all of it. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MLIR_DIALECT_H
#define CM_MLIR_DIALECT_H

#include "onnx/messages.h"
#include "onnx/syntax.h"

struct cm_dialect_options {
    /* The same model with the types of all its values in value_info (infer/infer_model.h), from
     * which operations get their types; NULL: what the model declares must do. */
    const struct cm_model_proto *typed;
    bool generic; /* every operation in MLIR's generic form, which tools that do not know the
                     dialect read too */
    size_t elide; /* tensors of more elements become dense_resource<__elided__>; 0: print all (such
                     text cannot be read back) */
};

/* What is printed without elide reads back as a model that cm_message_equal finds equal, but for
 * fields that are not known and numbers in a coding of their own. options may be NULL. */
enum cm_status cm_dialect_print(const struct cm_model_proto *model,
                                const struct cm_dialect_options *options, struct cm_arena *scratch,
                                cm_text_write_fn *write, void *to,
                                struct cm_error *err) CM_MUST_CHECK;

/* The whole of text must be one module, or functions without a module around them. Strings of the
 * result are views into text or copies in arena; text must live as long as the structs. Errors
 * begin with "line L, column C: ". */
enum cm_status cm_dialect_parse(struct cm_str text, struct cm_arena *arena,
                                struct cm_model_proto *out, struct cm_error *err) CM_MUST_CHECK;

/* Do these bytes begin as such text does? No model in ONNX's binary form does. */
bool cm_dialect_is_text(struct cm_str bytes);

#endif
