/* A model with its files: opened from a path or memory in binary or text form, changed through the
 * structs, saved so that power may fail at any moment. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_ONNX_MODEL_FILE_H
#define CM_ONNX_MODEL_FILE_H

#include "base/file.h"
#include "onnx/external.h"
#include "onnx/messages.h"
#include "onnx/syntax.h"

enum cm_model_format {
    CM_FORMAT_BY_NAME, /* .onnxtxt and .onnxtext are text, .mlir is MLIR, everything else binary */
    CM_FORMAT_BINARY,
    CM_FORMAT_TEXT,
    CM_FORMAT_MLIR,         /* the ONNX dialect of MLIR, as ONNX-MLIR writes it */
    CM_FORMAT_MLIR_GENERIC, /* the same with every operation in the generic form */
};

struct cm_model_file;

/* Who reads and writes the ONNX dialect: it takes the facts of operators and inference, which are
 * not known here. scratch is free for reuse on return. */
struct cm_mlir_form_hooks {
    enum cm_status (*parse)(struct cm_str text, struct cm_arena *arena, struct cm_model_proto *out,
                            struct cm_error *err);
    enum cm_status (*print)(const struct cm_model_file *file, const struct cm_model_proto *model,
                            bool generic, struct cm_arena *scratch, cm_text_write_fn *write,
                            void *to, struct cm_error *err);
    bool (*is_text)(struct cm_str bytes); /* do they begin as such text does? */
};

struct cm_load_options {
    enum cm_model_format format;
    bool copy;        /* read files into memory instead of mapping them */
    bool allow_links; /* external data may be a symbolic link or have several hard links */
    const struct cm_mlir_form_hooks *mlir; /* NULL: MLIR is refused */
};

struct cm_registry;

struct cm_model_file {
    struct cm_model_proto model;
    struct cm_arena *arena;          /* everything lives here */
    struct cm_mapping mapping;       /* the model file; none when made from memory */
    struct cm_external_files *files; /* for tensors; folder "" when made from memory */
    struct cm_str path;              /* for messages; "" when from memory */
    struct cm_str folder;
    const struct cm_registry *registry; /* what its operators mean; NULL: the built-in ones */
    bool to_ship; /* stripped, prepared, optimized or converted since it was read: a new model that
                   * is to stand alone, see CM_PLACE_AUTO */
};

/* All live in arena, which closes the files at its end. options may be NULL. */
enum cm_status cm_model_open(struct cm_arena *arena, const char *path,
                             const struct cm_load_options *options, struct cm_model_file **out,
                             struct cm_error *err) CM_MUST_CHECK;
/* bytes are borrowed for the life of arena. */
enum cm_status cm_model_parse(struct cm_arena *arena, struct cm_str bytes,
                              const struct cm_load_options *options, struct cm_model_file **out,
                              struct cm_error *err) CM_MUST_CHECK;

/* A model of its own that may be changed: all messages and lists of names are copied; texts, lists
 * of numbers and the contents of tensors are those of from, which must outlive it. */
struct cm_model_file *cm_model_copy(struct cm_arena *arena, const struct cm_model_file *from);

enum cm_save_placement {
    CM_PLACE_KEEP,     /* tensors stay inside or outside, as they are */
    CM_PLACE_EXTERNAL, /* tensors of at least threshold bytes go to external files */
    CM_PLACE_INLINE,   /* everything into the model file */
    /* As CM_PLACE_KEEP, but a model that is to_ship gets data of its own: external data of less
     * than CM_SMALL_EXTERNAL bytes in all goes into the model file, more goes to one new file. More
     * stays where it is if the model is written over the one that was read. */
    CM_PLACE_AUTO,
};

/* External data of less than this many bytes is inlined in a model that is to be shipped. */
#define CM_SMALL_EXTERNAL (UINT64_C(64) << 20)

/* An external file that a saved model needs. */
struct cm_save_file {
    struct cm_str name; /* as the model has it, beside the model */
    uint64_t bytes;     /* UINT64_MAX: unknown, because the model was read from memory */
    bool written;       /* by this save; false: it was there before */
};
typedef void cm_save_file_fn(void *arg, const struct cm_save_file *file);

struct cm_save_options {
    enum cm_model_format format;
    enum cm_save_placement placement;
    const char *external_name; /* file name beside the model; NULL: the model's name with ".data". A
                                * file of that name is never overwritten: "-1", "-2", .. is put
                                * before its last dot */
    bool one_file_per_tensor;  /* names made from external_name and the tensor's number */
    size_t threshold;          /* 0: 1024 */
    size_t alignment;          /* of tensors in external files, a power of two; 0: 4096 */
    uint64_t size_limit; /* of the binary model file; 0: 2 GiB - 1, the most others can read */
    const atomic_bool *cancel; /* set while it is under way, it fails with CM_CANCELLED and leaves
                                * nothing behind; NULL: none */
    const struct cm_mlir_form_hooks *mlir; /* NULL: MLIR is refused */
    cm_save_file_fn *file; /* called once the model is saved, for each external file that it needs;
                            * NULL: not called */
    void *file_arg;
};

struct cm_save_report {
    uint64_t model_bytes, external_bytes;
    size_t moved_out, moved_in; /* tensors */
    bool forced_external; /* the model would have passed 2 GiB - 1, so its tensors were moved out */
    size_t external_files;   /* written */
    char external_name[256]; /* of the first of them, beside the model; cut to fit */
    size_t old_removed;      /* external files of the model that was at path before */
    size_t old_left;    /* no longer used by it, but not named like its own or used by others: left
                           alone */
    char old_name[256]; /* of the first that was left; cut to fit */
};

/* Writes model to path so that power may fail at any moment: new external data under a new name
 * first, then the model renamed over the old one, then the external files only the old one used
 * removed. Those must be named like ours, "<model>*.data" or as external_name says: a hostile model
 * must not have the user's files deleted by naming them. An untouched binary model comes out byte
 * for byte. Kept external files must be there and reach far enough; they are copied beside the
 * new model when its folder differs, under another name when theirs is taken by other bytes.
 * Tensors everywhere are covered: sub-graphs, functions, training info, sparse values and indices,
 * attributes. A tensor that came external and was given new contents counts as external for
 * CM_PLACE_KEEP. The structs are not changed. options and report may be NULL. */
enum cm_status cm_model_save(const struct cm_model_file *file, const char *path,
                             const struct cm_save_options *options, struct cm_save_report *report,
                             struct cm_error *err) CM_MUST_CHECK;

/* Calls visit for every TensorProto of the model, wherever it is. */
typedef enum cm_status cm_visit_tensor_fn(void *arg, struct cm_tensor_proto *tensor);
enum cm_status cm_model_each_tensor(struct cm_model_proto *model, cm_visit_tensor_fn *visit,
                                    void *arg);

#endif
