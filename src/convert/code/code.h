/* A model as source code of another framework: `cameo export --to pytorch-code` and its kin.
 *
 *     file -> graph in the newest opset -> operators without a row give way to their bodies
 *          -> tensors get their names -> rows make lines of each node -> lines are tidied
 *          -> a folder: the model, its tensors, a check, a few words
 *
 * A row is a template (template/template.h) under data/frameworks/NAME/, called after its operator;
 * docs/handover.md describes rows. No text of the model becomes code: names become identifiers and
 * strings become literals in escape.c, and nowhere else. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_CODE_H
#define CM_CONVERT_CODE_H

#include "convert/framework_texts.h"
#include "convert/saved.h"
#include "graph/originals.h"
#include "onnx/model_file.h"
#include "template/template.h"

struct cm_code;
struct cm_findings;
struct cm_folder_save;

/* What a model computed here, for the check of the other framework. */
struct cm_code_sample {
    struct cm_str *names; /* of inputs */
    struct cm_datum *inputs;
    size_t n_inputs;
    struct cm_datum *outputs; /* by output of the graph */
    size_t n_outputs;
};

/* A framework that code is written for. */
struct cm_code_framework {
    const char *name;   /* for --to: "pytorch-code" */
    const char *folder; /* of its rows under data/frameworks/: "torch" */
    const char *system; /* "PyTorch" */
    const char *what;   /* is written, for people */
    /* Names that no attribute of a module and no variable may have, in addition to Python's
     * keywords; ends
     * with NULL. */
    const char *const *taken;
    /* By enum cm_dtype: the framework's type that holds such elements ("torch.float32"), and which
     * type of ours that is; a wider one where the framework has none such. NULL: not held. */
    const struct cm_code_type {
        const char *text;
        enum cm_dtype held;
    } * types;
    /* How code reads axis i of a value: "%s.shape[%d]"; how it reads a tensor of the model whose
     * axes an exporter exchanged; NULL: the framework has the tensor as the file has it. */
    const char *size_format, *turned_format;
    /* Where code reads the tensor number i of the model; the text lives in the code's arena. */
    struct cm_str (*tensor)(const struct cm_code *code, size_t i);
    /* The same of a layer by its path, "encoder.fc1"; NULL: the framework has no layers. */
    struct cm_str (*layer)(const struct cm_code *code, struct cm_str path);
    /* The text of the file that holds the model. */
    struct cm_str (*model)(struct cm_code *code);
    /* Writes the files of the folder. */
    enum cm_status (*write)(struct cm_code *code, struct cm_folder_save *folder,
                            struct cm_error *err);
};

extern const struct cm_code_framework *const cm_code_frameworks[];
extern const size_t cm_code_framework_count;
/* NULL: there is none of this name. */
const struct cm_code_framework *cm_code_framework_find(const char *name);

struct cm_code_options {
    const struct cm_code_framework *to;
    const struct cm_registry *registry;  /* what operators mean; NULL: the built-in ones */
    const struct cm_code_sample *sample; /* NULL: no check is written */
    const char *unchecked;        /* why the model gave no sample; NULL: it did, or nobody asked */
    struct cm_findings *findings; /* receives all that cannot be written, before anything is */
    const atomic_bool *cancel;    /* NULL: none */
    size_t node_budget;           /* of the graph; 0: that of the module */
};

/* The model alone, as text. */
enum cm_status cm_code_text(struct cm_arena *arena, const struct cm_model_file *file,
                            const struct cm_code_options *options, struct cm_str *out,
                            struct cm_error *err) CM_MUST_CHECK;

struct cm_code_report {
    struct cm_saved *saved;      /* the tensors that are written */
    struct cm_saved_texts notes; /* sentences: what the receiver must know */
};

/* Writes the folder at path, whole or not at all; path NULL: only tells what would be written. */
enum cm_status cm_code_export(struct cm_arena *arena, const struct cm_model_file *file,
                              const char *path, const struct cm_code_options *options,
                              struct cm_code_report *report, struct cm_error *err) CM_MUST_CHECK;

#endif
