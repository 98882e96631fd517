/* libcameo: reads ONNX models, describes them, checks them, runs them, changes them and writes them
 * back.
 *
 * Conventions, true of every function here:
 *
 * - What can fail returns enum cameo_status, CAMEO_OK being 0, and puts a sentence for people into
 * *err. err is the caller's and may be NULL. After a failure out-parameters hold NULL or what they
 * held.
 * - A model is loaded into a handle and freed with cameo_model_free. Whatever a function returns by
 *   const pointer belongs to the handle it was asked of, and lives as long as the handle. It is
 * never to be freed. Structs returned so may get more members at their end in later versions, and
 *   lists of them are lists of pointers.
 * - Structs that the caller makes begin with struct_size and are made with their _INIT macro, so
 *   that a program compiled today works with a library of tomorrow, and the other way round. In an
 *   array of them the first one's struct_size says how far apart they are; NULL and 0 are the same
 *   as leaving a member out.
 * - A few small structs never change and so need no size: cameo_error, cameo_text, cameo_entry,
 *   cameo_dim and cameo_weights.
 * - A value is data of a run, a value info describes an input or output, an initializer is a tensor
 *   that the model holds, a tensor is plain memory with a type and a shape.
 * - Several threads may use one handle at once through all functions that take it const: a model
 *   is described, read, checked, saved and written so, and sessions of it are made. Functions that
 *   take a handle without const need it alone, cameo_model_set_initializer and cameo_model_free
 *   among them, unless they say otherwise: any number of threads may run one session, make
 *   trainers of one model, cancel, and add to curves. One thread at a time may use a trainer,
 *   through any function. Different handles are independent. No handle belongs to the thread that
 *   made it. Nothing here keeps global state, prints, or ends the process.
 * - Whatever the bytes of a file say, nothing is read outside the model's own folder, unless links
 * in it are allowed to lead there. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CAMEO_H
#define CAMEO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CAMEO_API __attribute__((visibility("default")))
#else
#define CAMEO_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. */
#define CAMEO_VERSION_MAJOR 0
#define CAMEO_VERSION_MINOR 1
#define CAMEO_VERSION_PATCH 0
#define CAMEO_VERSION_NUMBER                                                                       \
    (CAMEO_VERSION_MAJOR * 1000000 + CAMEO_VERSION_MINOR * 1000 + CAMEO_VERSION_PATCH)

/* The version of the library in use: "0.1.0", and as CAMEO_VERSION_NUMBER. */
CAMEO_API const char *cameo_version_string(void);
CAMEO_API int cameo_version_number(void);

/* A backend that can be used: "onednn", and its version as it is loaded, "2.6.3". Results may
 * differ in their last bits between versions. False past the end. */
struct cameo_backend {
    size_t struct_size;
    char name[32], version[32];
};

#define CAMEO_BACKEND_INIT                                                                         \
    {                                                                                              \
        sizeof(struct cameo_backend), {0},                                                         \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

CAMEO_API bool cameo_backend(size_t index, struct cameo_backend *out);

/* The most multiplications and additions of floats in a second that this machine reaches on so many
 * threads (0: as many as there are cores), measured, in about a tenth of a second. 0 when there is
 * no memory. */
CAMEO_API double cameo_machine_peak(int threads);

/* Bytes for a memory_limit: what the machine has left, or the control group or `ulimit -v` where
 * that is less, without a reserve that keeps the machine usable. The command limits its runs so.
 * with_swap counts what may be swapped out too. 0: the system does not say. */
CAMEO_API size_t cameo_free_memory(bool with_swap);

/* A library of others that is opened when it is there, and otherwise done without: "oneDNN",
 * "zlib", and those of image codecs, whose path is that of the module that links them. False past
 * the end. */
struct cameo_library {
    size_t struct_size;
    char name[32], version[32]; /* version "": it is not used */
    char path[1024];            /* of the file; "" when none was opened */
    char reason[512];           /* why it is not used; "" when it is */
    bool no_memory;             /* it is not used because memory was too short to open it */
};

#define CAMEO_LIBRARY_INIT                                                                         \
    {                                                                                              \
        sizeof(struct cameo_library), {0}, {0}, {0}, {0}, false                                    \
    }

CAMEO_API bool cameo_library(size_t index, struct cameo_library *out);

/* ---- failures ---- */

/* Numbers are only ever added. */
enum cameo_status {
    CAMEO_OK = 0,
    CAMEO_BAD_MODEL = 1,    /* the file, or data in it, breaks a rule */
    CAMEO_BAD_ARGUMENT = 2, /* the caller asked for something that makes no sense */
    CAMEO_NOT_FOUND = 3,    /* a file or a name that is not there */
    CAMEO_UNSUPPORTED = 4,  /* legal, but not something this version can do */
    CAMEO_LIMIT = 5,        /* a budget against hostile or oversized input was exceeded */
    CAMEO_NO_MEMORY = 6,
    CAMEO_IO = 7, /* the operating system, or the caller's writer, refused a read or a write */
    CAMEO_CANCELLED = 8,
    CAMEO_DIVERGED = 9 /* training left the finite numbers: a loss, a gradient or a new value */
};

/* Set by every call that is given one: after success status is CAMEO_OK and message is empty. */
struct cameo_error {
    enum cameo_status status;
    char message[1024]; /* lower case, no full stop, names the place and the fact */
};

/* "bad model", "not found", ..; never NULL. */
CAMEO_API const char *cameo_status_name(enum cameo_status status);

/* ---- words that recur ---- */

/* Text from a model. data is never NULL and ends with a NUL that is not counted; the standard wants
 * UTF-8, but a file can hold any bytes, NUL included, so size is the truth. */
struct cameo_text {
    const char *data;
    size_t size;
};

/* Bytes of the first character of a text that is not empty, if a terminal would act on it or not
 * show it: control characters, those that turn the direction of writing, those without width, bytes
 * that are no UTF-8. 0: it shows as it is. Messages of errors hold none, but for ends of lines. */
CAMEO_API size_t cameo_text_unprintable(struct cameo_text text);

/* A key with its value: metadata, bindings. */
struct cameo_entry {
    struct cameo_text key, value;
};

/* The same from the caller. */
struct cameo_note {
    size_t struct_size;
    struct cameo_text key, value;
};

#define CAMEO_NOTE_INIT                                                                            \
    {                                                                                              \
        sizeof(struct cameo_note), {0, 0},                                                         \
        {                                                                                          \
            0, 0                                                                                   \
        }                                                                                          \
    }

/* Element types, numbered as in ONNX files. */
enum cameo_dtype {
    CAMEO_UNDEFINED = 0,
    CAMEO_FLOAT = 1,
    CAMEO_UINT8 = 2,
    CAMEO_INT8 = 3,
    CAMEO_UINT16 = 4,
    CAMEO_INT16 = 5,
    CAMEO_INT32 = 6,
    CAMEO_INT64 = 7,
    CAMEO_STRING = 8,
    CAMEO_BOOL = 9,
    CAMEO_FLOAT16 = 10,
    CAMEO_DOUBLE = 11,
    CAMEO_UINT32 = 12,
    CAMEO_UINT64 = 13,
    CAMEO_COMPLEX64 = 14,
    CAMEO_COMPLEX128 = 15,
    CAMEO_BFLOAT16 = 16,
    CAMEO_FLOAT8E4M3FN = 17,
    CAMEO_FLOAT8E4M3FNUZ = 18,
    CAMEO_FLOAT8E5M2 = 19,
    CAMEO_FLOAT8E5M2FNUZ = 20,
    CAMEO_UINT4 = 21,
    CAMEO_INT4 = 22,
    CAMEO_FLOAT4E2M1 = 23,
    CAMEO_FLOAT8E8M0 = 24,
    CAMEO_UINT2 = 25,
    CAMEO_INT2 = 26,
    CAMEO_FLOAT6E2M3 = 27,
    CAMEO_FLOAT6E3M2 = 28
};

/* "float", "int64", ..; "undefined" for a number that is no type. */
CAMEO_API const char *cameo_dtype_name(enum cameo_dtype type);

/* Where memory is. Nothing but CAMEO_DEVICE_CPU is taken today. */
enum cameo_device {
    CAMEO_DEVICE_CPU = 0,
    CAMEO_DEVICE_CUDA = 1,
    CAMEO_DEVICE_ROCM = 2,
    CAMEO_DEVICE_METAL = 3,
    CAMEO_DEVICE_VULKAN = 4,
    CAMEO_DEVICE_ONEAPI = 5
};

/* Lets go of memory that the library was given: called once, by whichever thread uses it last. */
typedef void cameo_deleter_fn(void *arg);

/* A tensor as plain memory. What the library reads through one, it never writes to. */
struct cameo_tensor {
    size_t struct_size;
    enum cameo_dtype dtype;
    int rank;
    const int64_t *dims;
    /* How many elements lie from one to the next along each axis; NULL: row-major and dense. */
    const int64_t *strides;
    /* The first element. Types of less than a byte are packed as in ONNX files, the first element
     * in the low bits; strings are struct cameo_text. It need not be aligned. */
    void *data;
    size_t bytes; /* of data; with strides, at least as many as they reach */
    enum cameo_device device;
    int device_id;
    /* NULL: data is lent, for as long as the function that is given it says. Otherwise a call that
     * succeeds takes it over, and deleter(deleter_arg) is called when it is needed no more; after a
     * failure it is the caller's as before. */
    cameo_deleter_fn *deleter;
    void *deleter_arg;
};

#define CAMEO_TENSOR_INIT                                                                          \
    {                                                                                              \
        sizeof(struct cameo_tensor), CAMEO_UNDEFINED, 0, 0, 0, 0, 0, CAMEO_DEVICE_CPU, 0, 0, 0     \
    }

/* Dense memory of the caller's as a tensor; dims are not copied. */
static inline struct cameo_tensor cameo_tensor_of(enum cameo_dtype dtype, int rank,
                                                  const int64_t *dims, const void *data,
                                                  size_t bytes)
{
    struct cameo_tensor tensor = CAMEO_TENSOR_INIT;

    tensor.dtype = dtype;
    tensor.rank = rank;
    tensor.dims = dims;
    tensor.data = (void *)data;
    tensor.bytes = bytes;
    return tensor;
}

/* How many elements; -1 when the shape makes no sense. */
CAMEO_API int64_t cameo_tensor_count(const struct cameo_tensor *tensor);

/* ---- loading ---- */

struct cameo_model;

enum cameo_format {
    CAMEO_FORMAT_BY_NAME = 0, /* .onnxtxt and .onnxtext are text, .mlir is MLIR; all else is binary;
                               * of memory, what begins as MLIR does is MLIR */
    CAMEO_FORMAT_BINARY = 1,
    CAMEO_FORMAT_TEXT = 2,
    CAMEO_FORMAT_MLIR = 3,        /* the ONNX dialect of MLIR, as ONNX-MLIR writes it */
    CAMEO_FORMAT_MLIR_GENERIC = 4 /* the same with all operations in MLIR's generic form, which
                                   * tools that do not know the dialect read too */
};

struct cameo_load_options {
    size_t struct_size;
    enum cameo_format format;
    bool copy_files;   /* read files into memory rather than map them: others may cut them short */
    bool allow_links;  /* external data may be a symbolic link, to anywhere, or have hard links */
    bool borrow_bytes; /* from memory: use the caller's bytes, which must outlive the model */
    size_t memory_limit; /* bytes that the description may take, beside files; 0: no limit */
};

#define CAMEO_LOAD_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(struct cameo_load_options), CAMEO_FORMAT_BY_NAME, false, false, false, 0            \
    }

/* Opens the model at path. Files are mapped: the time and memory this takes do not depend on the
 * size of the weights. A mapped file must not be cut short by others while the model lives; one
 * replaced by a rename is no trouble. options may be NULL. *out is the caller's to free. */
CAMEO_API enum cameo_status cameo_model_load(const char *path,
                                             const struct cameo_load_options *options,
                                             struct cameo_model **out, struct cameo_error *err);

/* The same for a model in memory. The bytes are copied unless borrow_bytes says otherwise. Such a
 * model has no folder, so values in external files cannot be read. */
CAMEO_API enum cameo_status cameo_model_load_memory(const void *bytes, size_t size,
                                                    const struct cameo_load_options *options,
                                                    struct cameo_model **out,
                                                    struct cameo_error *err);

/* Being told what is worth knowing and no failure: a backend library that was not found and why,
 * what a model does that ONNX does not allow, what was changed to make it trainable, who computes a
 * node and why not somebody faster, files that were written. */
enum cameo_log_level { CAMEO_LOG_DEBUG = 0, CAMEO_LOG_INFO = 1, CAMEO_LOG_WARNING = 2 };

/* A sentence, as in struct cameo_error, good for the call. Called on the thread whose call it is
 * about, with nothing locked. */
typedef void cameo_log_fn(void *arg, enum cameo_log_level level, const char *message);

/* From now on log is told about the model, about what is derived from it, and about sessions and
 * trainers of both. NULL: nobody is, as at first. Needs the model alone, as no session runs. */
CAMEO_API void cameo_model_set_log(struct cameo_model *model, cameo_log_fn *log, void *arg);

/* A model of its own, to be changed: its description is copied, values stay where they are. model
 * must outlive it, unchanged. *out is the caller's to free. */
CAMEO_API enum cameo_status cameo_model_copy(const struct cameo_model *model,
                                             struct cameo_model **out, struct cameo_error *err);

/* Ends the model and everything that was borrowed from it. NULL is fine. */
CAMEO_API void cameo_model_free(struct cameo_model *model);

/* ---- describing ----
 *
 * Everything here was gathered while loading: these calls cannot fail and cost nothing. Asking for
 * an index past the count gives NULL. */

/* Numbers that a model holds, and where they are counted together. */
struct cameo_weights {
    size_t tensor_count; /* or lists */
    uint64_t count, bytes;
};

struct cameo_summary {
    int64_t ir_version, model_version;
    struct cameo_text producer_name, producer_version, domain, doc_string;
    struct cameo_text graph_name, graph_doc_string;

    /* How far the index of each function below goes. */
    size_t opset_count, metadata_count;
    size_t input_count, output_count, initializer_count;
    size_t operator_count, function_count, training_count, external_file_count;

    size_t node_count;          /* of the graph itself */
    size_t nested_node_count;   /* in graphs inside its nodes: branches, loop bodies */
    size_t function_node_count; /* in the bodies of functions, graphs inside them included */
    size_t training_node_count; /* in training graphs, graphs inside them included */

    /* Elements of the graph's initializers, of sparse ones those stored; and of the initializers of
     * training algorithms. */
    uint64_t parameter_count, parameter_bytes;
    uint64_t training_parameter_count, training_parameter_bytes;

    /* The same of what is no initializer of the graph, graphs inside its nodes and functions
     * included: in Constant nodes; the floats in attributes of ai.onnx.ml operators (thresholds and
     * leaves of trees, coefficients, support vectors); initializers of graphs inside nodes. */
    struct cameo_weights constant_weights, attribute_weights, nested_weights;
};

struct cameo_opset {
    struct cameo_text domain; /* as in the file: "" and "ai.onnx" mean the same */
    int64_t version;
};

struct cameo_dim {
    int64_t size;             /* -1 when it is not fixed */
    struct cameo_text symbol; /* "batch"; empty when it has none */
};

/* What a value is. */
enum cameo_kind {
    CAMEO_KIND_NONE = 0, /* an optional without content */
    CAMEO_KIND_TENSOR = 1,
    CAMEO_KIND_SPARSE = 2,
    CAMEO_KIND_SEQUENCE = 3,
    CAMEO_KIND_MAP = 4,
    CAMEO_KIND_OPTIONAL = 5, /* in types only: an optional with content is that content */
    CAMEO_KIND_OPAQUE = 6
};

/* An input or output. */
struct cameo_value_info {
    struct cameo_text name;
    /* "float[N,3,224,224]"; "float" is a scalar, "float[]" any rank, "?" any size */
    struct cameo_text type;
    enum cameo_dtype dtype; /* CAMEO_UNDEFINED for sequences, optionals, maps and unknown types */
    int rank;               /* -1: unknown, or no tensor */
    const struct cameo_dim *dims;
    struct cameo_text doc_string;
    /* An input whose value an initializer supplies unless the caller does. */
    bool has_default;
    enum cameo_kind kind; /* CAMEO_KIND_NONE: unknown */
};

/* An initializer of the graph or of a training algorithm. */
struct cameo_initializer {
    struct cameo_text name;
    enum cameo_dtype dtype;
    size_t rank;
    const int64_t *dims;
    int64_t elements;           /* -1 when the dims make no sense */
    uint64_t bytes;             /* as they are read below; of strings, their lengths */
    bool sparse;                /* bytes and elements count what is stored */
    bool is_external;           /* its values are in another file */
    struct cameo_text location; /* that file, relative to the model's folder */
    bool is_state;              /* some training binding writes it */
    int training;               /* the entry whose algorithm holds it; -1: the graph */
    struct cameo_text doc_string;
    /* What the framework that exported the model calls the tensor, as far as the file tells:
     * "a.weight", or "a.weight, b.weight" for one that stands for several; empty: no name but its
     * own. folding says what the exporter made of it: "transposed", "unsqueezed" (axes of size 1
     * added), "gates" of a recurrent layer, "rows" of a table, "computed" from those tensors;
     * "module": original is the module that reads it, and no more is known; empty: nothing. */
    struct cameo_text original, folding;
};

/* How often an operator is used. */
struct cameo_operator {
    struct cameo_text domain; /* "" is ONNX's own */
    struct cameo_text name;
    size_t count; /* in all; rows come in falling order of it */
    size_t in_graph, in_nested, in_functions, in_training; /* as the node counts of the summary */
    bool is_random; /* a built-in operator that draws its results whenever it runs */
};

struct cameo_function {
    struct cameo_text domain, name, overload, doc_string;
    size_t input_count, output_count, attribute_count;
    size_t node_count; /* graphs inside its nodes included */
};

/* One entry of training_info. */
struct cameo_training {
    size_t initialization_node_count, algorithm_node_count; /* graphs inside nodes included */
    size_t initialization_binding_count, update_binding_count;
    /* key: variable, value: where it comes from */
    const struct cameo_entry *initialization_bindings, *update_bindings;
    size_t input_count; /* what a step must be fed beside the inputs of the graph */
    const struct cameo_value_info *const *inputs;
    size_t output_count; /* of the algorithm */
    const struct cameo_value_info *const *outputs;
    size_t state_count; /* variables that this entry's bindings write */
    const struct cameo_text *states;
};

/* A file beside the model that holds values. */
struct cameo_external_file {
    struct cameo_text location;
    size_t tensor_count; /* of the whole model, attributes and training graphs included */
    uint64_t bytes;      /* of their values */
};

CAMEO_API const struct cameo_summary *cameo_model_summary(const struct cameo_model *model);
/* The newest opset of a domain ("" is ai.onnx) that this library knows; 0: it does not know the
 * domain. Operators of a model that imports a newer one are read as of this one. */
CAMEO_API int64_t cameo_newest_opset(const char *domain);
CAMEO_API const struct cameo_opset *cameo_model_opset(const struct cameo_model *model,
                                                      size_t index);
CAMEO_API const struct cameo_entry *cameo_model_metadata(const struct cameo_model *model,
                                                         size_t index);
CAMEO_API const struct cameo_value_info *cameo_model_input(const struct cameo_model *model,
                                                           size_t index);
CAMEO_API const struct cameo_value_info *cameo_model_output(const struct cameo_model *model,
                                                            size_t index);
CAMEO_API const struct cameo_initializer *cameo_model_initializer(const struct cameo_model *model,
                                                                  size_t index);
CAMEO_API const struct cameo_operator *cameo_model_operator(const struct cameo_model *model,
                                                            size_t index);
CAMEO_API const struct cameo_function *cameo_model_function(const struct cameo_model *model,
                                                            size_t index);
CAMEO_API const struct cameo_training *cameo_model_training(const struct cameo_model *model,
                                                            size_t index);
CAMEO_API const struct cameo_external_file *
cameo_model_external_file(const struct cameo_model *model, size_t index);
/* Sentences on what the model does that ONNX does not allow and that is run all the same, because
 * its meaning is clear: nodes that are out of order. Found when first asked for. NULL past the
 * last. */
CAMEO_API const struct cameo_text *cameo_model_note(const struct cameo_model *model, size_t index);

/* The initializer of this name; where a broken model has several, the first. Gives false, and
 * leaves *index alone, when there is none. */
CAMEO_API bool cameo_model_find_initializer(const struct cameo_model *model, const char *name,
                                            size_t *index);

/* ---- nodes and edges ----
 *
 * The graph as the file has it, to be gone through: every node with its attributes, every edge with
 * who makes it and who reads it. Gathered when first asked for; all of it lives as long as the
 * model, and describes it as it was then: ask again after it was prepared or stripped. */

struct cameo_graph;

enum cameo_graph_kind {
    CAMEO_GRAPH_MAIN = 0,
    CAMEO_GRAPH_FUNCTION = 1,       /* the body of a function, by its number */
    CAMEO_GRAPH_INITIALIZATION = 2, /* of an entry of training_info, by its number */
    CAMEO_GRAPH_ALGORITHM = 3
};

/* Numbered as in ONNX files. */
enum cameo_attribute_kind {
    CAMEO_ATTRIBUTE_NONE = 0, /* the file does not say */
    CAMEO_ATTRIBUTE_FLOAT = 1,
    CAMEO_ATTRIBUTE_INT = 2,
    CAMEO_ATTRIBUTE_STRING = 3,
    CAMEO_ATTRIBUTE_TENSOR = 4,
    CAMEO_ATTRIBUTE_GRAPH = 5,
    CAMEO_ATTRIBUTE_FLOATS = 6,
    CAMEO_ATTRIBUTE_INTS = 7,
    CAMEO_ATTRIBUTE_STRINGS = 8,
    CAMEO_ATTRIBUTE_TENSORS = 9,
    CAMEO_ATTRIBUTE_GRAPHS = 10,
    CAMEO_ATTRIBUTE_SPARSE_TENSOR = 11,
    CAMEO_ATTRIBUTE_SPARSE_TENSORS = 12,
    CAMEO_ATTRIBUTE_TYPE = 13,
    CAMEO_ATTRIBUTE_TYPES = 14
};

/* An attribute of a node. The members of its kind count; graphs has the one or all, and so have
 * types. */
struct cameo_node_attribute {
    struct cameo_text name;
    enum cameo_attribute_kind kind;
    struct cameo_text refers_to; /* in a function: the attribute of the call that it takes; or "" */
    float f;
    int64_t i;
    struct cameo_text s;
    size_t float_count, int_count, string_count;
    const float *floats;
    const int64_t *ints;
    const struct cameo_text *strings;
    size_t tensor_count; /* see cameo_attribute_tensor; sparse ones are not counted */
    size_t graph_count;
    const struct cameo_graph *const *graphs;
    size_t type_count;
    const struct cameo_text *types; /* "float[N,3]" */
};

struct cameo_node {
    const struct cameo_graph *graph; /* that it is in, at this index */
    size_t index;
    struct cameo_text name, domain, op_type, overload, doc_string;
    size_t input_count, output_count, attribute_count;
    const struct cameo_text *inputs, *outputs; /* names of edges; "": left out */
    const struct cameo_node_attribute *const *attributes;
};

enum cameo_edge_origin {
    CAMEO_EDGE_UNDEFINED = 0, /* nothing makes it: the model is broken */
    CAMEO_EDGE_NODE = 1,
    CAMEO_EDGE_INPUT = 2, /* of the graph, with or without a default */
    CAMEO_EDGE_INITIALIZER = 3,
    CAMEO_EDGE_OUTER = 4 /* it is an edge of a graph around this one */
};

/* What ONNX has names for: from what makes it to all that read it. */
struct cameo_edge {
    struct cameo_text name;
    enum cameo_edge_origin origin;
    const struct cameo_node *maker; /* a node, of whose outputs it is this; or NULL */
    size_t maker_output;
    /* Nodes that read it, nodes of graphs inside this one's included, and as which input. */
    size_t reader_count;
    const struct cameo_node *const *readers;
    const size_t *reader_inputs;
    bool is_output;                      /* of the graph */
    const struct cameo_value_info *info; /* its type, if the file says it; or NULL */
    const struct cameo_edge *outer;      /* CAMEO_EDGE_OUTER: that edge */
};

/* CAMEO_NOT_FOUND when there is none. */
CAMEO_API enum cameo_status cameo_model_graph(const struct cameo_model *model,
                                              enum cameo_graph_kind kind, size_t index,
                                              const struct cameo_graph **out,
                                              struct cameo_error *err);
CAMEO_API struct cameo_text cameo_graph_name(const struct cameo_graph *graph);
/* The node that a graph is an attribute of; NULL: it is in none. */
CAMEO_API const struct cameo_node *cameo_graph_owner(const struct cameo_graph *graph);
/* In the order of the file. NULL past the end. */
CAMEO_API size_t cameo_graph_node_count(const struct cameo_graph *graph);
CAMEO_API const struct cameo_node *cameo_graph_node(const struct cameo_graph *graph, size_t index);
/* Inputs, initializers and outputs of nodes first. NULL past the end, and where there is no such.
 */
CAMEO_API size_t cameo_graph_edge_count(const struct cameo_graph *graph);
CAMEO_API const struct cameo_edge *cameo_graph_edge(const struct cameo_graph *graph, size_t index);
CAMEO_API const struct cameo_edge *cameo_graph_find_edge(const struct cameo_graph *graph,
                                                         const char *name);
/* Inputs and outputs in the order of the file, those without a name left out. NULL past the end. */
CAMEO_API const struct cameo_edge *cameo_graph_input(const struct cameo_graph *graph, size_t index);
CAMEO_API const struct cameo_edge *cameo_graph_output(const struct cameo_graph *graph,
                                                      size_t index);
/* A tensor of an attribute as a value, the caller's to free. */
struct cameo_value;
CAMEO_API enum cameo_status cameo_attribute_tensor(const struct cameo_model *model,
                                                   const struct cameo_node_attribute *attribute,
                                                   size_t index, struct cameo_value **out,
                                                   struct cameo_error *err);

/* ---- the values of initializers ----
 *
 * Values are row-major and little-endian; types of less than a byte are packed as in ONNX files,
 * the first element in the low bits. size must be the initializer's bytes. Strings and sparse
 * tensors are refused with CAMEO_UNSUPPORTED. */

CAMEO_API enum cameo_status cameo_model_read_initializer(const struct cameo_model *model,
                                                         size_t index, void *values, size_t size,
                                                         struct cameo_error *err);

/* The same without a copy where the values lie aligned in the model or its files: a value, strings
 * too, that is only to be read. *out is the caller's to free; it, and what is made of it, must not
 * outlive the model, whose initializer must stay as it is. */
CAMEO_API enum cameo_status cameo_model_view_initializer(const struct cameo_model *model,
                                                         size_t index, struct cameo_value **out,
                                                         struct cameo_error *err);

/* Replaces the values; type and shape stay. They are copied. When the model is saved, the bytes of
 * these values differ and nothing else does: they stay in the field that held them. Values that
 * were in another file are in memory from now on; a save that keeps them outside writes them to a
 * new file, beside the one that other tensors may go on using. */
CAMEO_API enum cameo_status cameo_model_set_initializer(struct cameo_model *model, size_t index,
                                                        const void *values, size_t size,
                                                        struct cameo_error *err);

/* ---- saving ---- */

struct cameo_cancel; /* see cameo_cancel_new */

enum cameo_placement {
    CAMEO_PLACE_KEEP = 0,     /* values stay inside or outside the model, as they are */
    CAMEO_PLACE_EXTERNAL = 1, /* tensors of at least threshold bytes go to external files */
    CAMEO_PLACE_INLINE = 2,   /* everything into the model file */
    /* The default. Values stay as they are, unless the model was stripped, prepared, optimized or
     * converted since it was loaded: such a model is to be shipped and gets data of its own. If its
     * external data is smaller than 64 MiB in all, it goes into the model file; otherwise into one
     * new file beside it. A model saved over the file that it was loaded from keeps 64 MiB and more
     * where they are. */
    CAMEO_PLACE_AUTO = 3
};

/* An external file that a saved model needs. */
struct cameo_data_file {
    size_t struct_size;
    struct cameo_text name; /* as the model has it: a path from the model's folder */
    uint64_t bytes; /* UINT64_MAX: unknown, the model was loaded from memory and has no folder */
    bool written;   /* by this save; false: the file was there before */
};
typedef void cameo_data_file_fn(void *arg, const struct cameo_data_file *file);

struct cameo_save_options {
    size_t struct_size;
    enum cameo_format format;
    enum cameo_placement placement;
    /* A file beside the model, not the model itself; NULL: the model's name with ".data". If it is
     * there, a number is added. */
    const char *external_name;
    bool one_file_per_tensor; /* names made from external_name and a number */
    size_t threshold;         /* bytes; 0: 1024 */
    size_t alignment;         /* of tensors in external files, a power of two; 0: 4096 */
    /* Set while the save is under way, that fails with CAMEO_CANCELLED and leaves nothing behind.
     * NULL: none. */
    struct cameo_cancel *cancel;
    /* Called for every external file that the saved model needs, once it is saved. NULL: none. */
    cameo_data_file_fn *file;
    void *file_arg;
};

#define CAMEO_SAVE_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(struct cameo_save_options), CAMEO_FORMAT_BY_NAME, CAMEO_PLACE_AUTO, 0, false, 0, 0, \
            0, 0, 0                                                                                \
    }

/* What a save did. */
struct cameo_save_report {
    size_t struct_size;
    uint64_t model_bytes, external_bytes; /* written */
    size_t moved_out, moved_in; /* tensors that went to external files, or came from them */
    bool forced_external;       /* past 2 GiB - 1 a binary file must move its values out */
    size_t external_files;      /* written */
    char external_name[256];    /* of the first of them: a file in the way is never overwritten */
    size_t old_removed;         /* external files that the model formerly at path alone used */
    size_t old_left;            /* files it no longer uses, but which may not be its own */
    char old_name[256];         /* of the first of those */
};

#define CAMEO_SAVE_REPORT_INIT                                                                     \
    {                                                                                              \
        sizeof(struct cameo_save_report), 0, 0, 0, 0, false, 0, {0}, 0, 0,                         \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

/* Writes the model to path. The file comes into being whole or not at all, an old one stays until
 * the new one is safe on disk, and path may be where the model was loaded from. What was not
 * changed is written byte for byte as it was read. Values that stay in external files must be
 * there. options and report may be NULL. */
CAMEO_API enum cameo_status cameo_model_save(const struct cameo_model *model, const char *path,
                                             const struct cameo_save_options *options,
                                             struct cameo_save_report *report,
                                             struct cameo_error *err);

/* Takes consecutive pieces; anything but 0 stops the writing, which then fails with CAMEO_IO. Must
 * not call functions on the same model. */
typedef int cameo_write_fn(void *to, const void *bytes, size_t size);

struct cameo_write_options {
    size_t struct_size;
    enum cameo_format format; /* CAMEO_FORMAT_BY_NAME means binary */
    bool upstream;            /* text: only what ONNX's own parser reads, dropping the rest */
    size_t elide;             /* text: tensors of more elements are shortened; 0: none */
};

#define CAMEO_WRITE_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(struct cameo_write_options), CAMEO_FORMAT_BY_NAME, false, 0                         \
    }

/* Writes the model through the caller's function. Values in external files stay there and are
 * referred to. options may be NULL. */
CAMEO_API enum cameo_status cameo_model_write(const struct cameo_model *model,
                                              const struct cameo_write_options *options,
                                              cameo_write_fn *write, void *to,
                                              struct cameo_error *err);

/* ---- findings ----
 *
 * What is wrong with a model, or stands in the way of what it was to be used for: one list for all
 * functions that check models or refuse them. */

enum cameo_severity {
    CAMEO_WARNING = 0,
    CAMEO_VIOLATION = 1,
    CAMEO_NOTE = 2 /* nothing is wrong: what was changed or assumed, or what a tool accepts */
};

struct cameo_finding {
    /* "CK15": docs/check-rules.md explains each, and ids are never reused. Where no rule of ONNX is
     * broken, who refuses: run, train, prepare, import, edit, infer, expand, convert, compile; data
     * where a data set does not fit, untrained where a preparation finds nothing to train. */
    struct cameo_text rule;
    enum cameo_severity severity;
    struct cameo_text place;         /* "graph 'main', node 'conv1' (Conv)" */
    struct cameo_text reason;        /* "reads 'x', which nothing before it defines" */
    struct cameo_text help;          /* what to do about it; may be "" */
    struct cameo_text node, op_type; /* the innermost node of the place; "" where there is none */
    struct cameo_text value; /* the input, output or initializer that it is about; "": none */
};

/* At most 10,000 findings; those past them are counted. A list that a report has belongs to the
 * report; any other is the caller's to free. */
struct cameo_findings;
CAMEO_API void cameo_findings_free(struct cameo_findings *findings); /* NULL is fine */
CAMEO_API size_t cameo_findings_count(const struct cameo_findings *findings);
CAMEO_API size_t cameo_findings_violations(const struct cameo_findings *findings);
/* Those that are listed. */
CAMEO_API size_t cameo_findings_warnings(const struct cameo_findings *findings);
/* There were more than are listed. */
CAMEO_API bool cameo_findings_cut(const struct cameo_findings *findings);
/* NULL past the count. */
CAMEO_API const struct cameo_finding *cameo_findings_at(const struct cameo_findings *findings,
                                                        size_t index);
/* What the violations prevent, and how many there are: "net.onnx: the model cannot run, for 3
 * reasons". */
CAMEO_API struct cameo_text cameo_findings_headline(const struct cameo_findings *findings);
/* ---- drawing ----
 *
 * Pictures as text, handed to the caller's function piece by piece. */

enum cameo_drawing_format {
    CAMEO_DRAWING_SVG = 0,
    CAMEO_DRAWING_HTML = 1, /* a page that needs no other files; what is folded opens on a click */
    CAMEO_DRAWING_DOT = 2   /* for Graphviz */
};

struct cameo_drawing_options {
    size_t struct_size;
    enum cameo_drawing_format format;
    /* Prefixes of names of nodes: those that begin alike are one box. Or a single "auto" (the same,
     * in models of more than 150 nodes, by scopes), "functions" or "none". Without any: "auto". */
    size_t fold_count;
    const char *const *folds;
};

#define CAMEO_DRAWING_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(struct cameo_drawing_options), CAMEO_DRAWING_SVG, 0, NULL                           \
    }

struct cameo_drawing_report {
    size_t struct_size;
    size_t boxes; /* drawn at once: nodes, groups of nodes, inputs and outputs */
};

#define CAMEO_DRAWING_REPORT_INIT                                                                  \
    {                                                                                              \
        sizeof(struct cameo_drawing_report), 0                                                     \
    }

/* Draws the nodes of a model in the order in which values flow, with the shapes that the file says:
 * cameo_model_infer fills in the others. Training info is a part of its own. options and report may
 * be NULL. */
CAMEO_API enum cameo_status cameo_model_draw(const struct cameo_model *model,
                                             const struct cameo_drawing_options *options,
                                             cameo_write_fn *write, void *to,
                                             struct cameo_drawing_report *report,
                                             struct cameo_error *err);

/* ---- curves ----
 *
 * Numbers over the steps of a training, to be drawn as SVG or as text for a terminal. One thread at
 * a time. */

struct cameo_curves;

CAMEO_API enum cameo_status cameo_curves_new(struct cameo_curves **out, struct cameo_error *err);
CAMEO_API void cameo_curves_free(struct cameo_curves *curves);
/* Adds a point to the curve of this name, which is made if it is not there. A number that is not
 * finite makes the curve, but no point. */
CAMEO_API enum cameo_status cameo_curves_add(struct cameo_curves *curves, const char *name,
                                             double step, double value, struct cameo_error *err);
/* Adds the numbers of a log that `cameo train --log` or a trainer wrote, an object of JSON to a
 * line: one curve for each name, with prefix before it (NULL: none). "run:" as prefix tells curves
 * of several logs apart. A last line that was cut is left out. After a failure curves holds what
 * stood before the line that is wrong. */
CAMEO_API enum cameo_status cameo_curves_read(struct cameo_curves *curves, const char *path,
                                              const char *prefix, struct cameo_error *err);

/* Good until something is added. */
struct cameo_curve {
    struct cameo_text name;
    size_t count;
    const double *steps, *values;
};
/* In the order in which they were first seen; false past the end. */
CAMEO_API bool cameo_curves_at(const struct cameo_curves *curves, size_t index,
                               struct cameo_curve *out);

enum cameo_curves_format {
    CAMEO_CURVES_SVG = 0,
    CAMEO_CURVES_PLAIN = 1,  /* text of ASCII characters */
    CAMEO_CURVES_BRAILLE = 2 /* text in UTF-8, with the finer dots of braille characters */
};

struct cameo_curves_options {
    size_t struct_size;
    enum cameo_curves_format format;
    const char *title; /* of the picture; NULL: "training curves" */
    const char *steps; /* what is counted from left to right; NULL: "step" */
    /* Names to draw, separated by commas, what stands before a colon left out. NULL: losses,
     * accuracies and their kin, and the learning rate where it changes. "*": all, each with its
     * validation in a panel of its own. */
    const char *only;
    double window;  /* average over about so many steps; 0: by the number of points; below 0: not */
    bool log_scale; /* losses on a logarithmic scale */
    int columns, rows; /* of text, for each curve; at least 30 and 6 are used */
};

#define CAMEO_CURVES_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(struct cameo_curves_options), CAMEO_CURVES_SVG, NULL, NULL, NULL, 0.0, false, 78,   \
            14                                                                                     \
    }

/* CAMEO_NOT_FOUND: no curve is to be drawn ("*" of no curves is an empty picture). options may be
 * NULL. */
CAMEO_API enum cameo_status cameo_curves_draw(const struct cameo_curves *curves,
                                              const struct cameo_curves_options *options,
                                              cameo_write_fn *write, void *to,
                                              struct cameo_error *err);

/* ---- editing ----
 *
 * Edits change a loaded model in its own messages: whatever they are not about keeps its bytes when
 * the model is saved. All that stands in the way of an edit is listed, and then nothing is changed;
 * only after CAMEO_NO_MEMORY a model is good for nothing but to be freed. Edits need the model
 * alone. */

/* Belongs to the model. */
struct cameo_edit {
    const struct cameo_text *changes; /* sentences: what was done beside what was asked for */
    size_t change_count;
    const struct cameo_findings *findings; /* all that stands in the way; the changes, as notes */
};

/* Leaves of the graph what leads from inputs to outputs, with the initializers, types and functions
 * that are used. Inputs may be any values; none: those of the model that are needed. No outputs:
 * all of the model. Types come from the file, or are inferred. Entries of training info stay if all
 * that they read does. report may be NULL. */
CAMEO_API enum cameo_status cameo_model_extract(struct cameo_model *model,
                                                const char *const *inputs, size_t input_count,
                                                const char *const *outputs, size_t output_count,
                                                const struct cameo_edit **report,
                                                struct cameo_error *err);

/* Makes values of the graph outputs as well, behind those it has; no names: all that nodes compute.
 * A session of the model then gives intermediate values. */
CAMEO_API enum cameo_status cameo_model_expose(struct cameo_model *model, const char *const *names,
                                               size_t name_count, const struct cameo_edit **report,
                                               struct cameo_error *err);

/* An output of the first model and the input of the second that it feeds. */
struct cameo_merge_pair {
    size_t struct_size;
    const char *output, *input; /* without prefix */
};

#define CAMEO_MERGE_PAIR_INIT                                                                      \
    {                                                                                              \
        sizeof(struct cameo_merge_pair), 0, 0                                                      \
    }

struct cameo_merge_options {
    size_t struct_size;
    const struct cameo_merge_pair *pairs;
    size_t pair_count;
    /* Put before the names of all values, nodes and functions of a model; NULL: nothing. */
    const char *prefix1, *prefix2;
};

#define CAMEO_MERGE_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(struct cameo_merge_options), 0, 0, 0, 0                                             \
    }

/* Joins second to model. Inputs and outputs that are not connected stay. second must outlive model,
 * and may then only be freed. */
CAMEO_API enum cameo_status cameo_model_merge(struct cameo_model *model, struct cameo_model *second,
                                              const struct cameo_merge_options *options,
                                              const struct cameo_edit **report,
                                              struct cameo_error *err);

enum cameo_renaming_kind {
    CAMEO_RENAME_VALUE = 0, /* inputs, outputs, initializers, what is between */
    CAMEO_RENAME_NODE = 1,
    CAMEO_RENAME_DIM = 2
};

struct cameo_renaming {
    size_t struct_size;
    enum cameo_renaming_kind kind;
    /* A '*' in from stands for any text, and in to for the same text. The first renaming that a
     * name fits counts. */
    const char *from, *to;
};

#define CAMEO_RENAMING_INIT                                                                        \
    {                                                                                              \
        sizeof(struct cameo_renaming), CAMEO_RENAME_VALUE, 0, 0                                    \
    }

/* Renames everywhere: graphs inside nodes, value_info, annotations, training info with its bindings
 * and what Gradient nodes name. Names inside functions are their own. Two things that would get one
 * name are refused. */
CAMEO_API enum cameo_status cameo_model_rename(struct cameo_model *model,
                                               const struct cameo_renaming *renamings, size_t count,
                                               const struct cameo_edit **report,
                                               struct cameo_error *err);

struct cameo_reshaping {
    size_t struct_size;
    const char *name; /* of an input, or else of a dimension wherever it stands */
    const char *dims; /* "1,3,H,?": numbers, names, "?" for any size; of a dimension: one of them */
};

#define CAMEO_RESHAPING_INIT                                                                       \
    {                                                                                              \
        sizeof(struct cameo_reshaping), 0, 0                                                       \
    }

/* Changes shapes of inputs. Outputs and value_info that depend on them are inferred again; what
 * cannot be is dropped. Nodes that the new shapes do not fit are the problems. */
CAMEO_API enum cameo_status cameo_model_set_shapes(struct cameo_model *model,
                                                   const struct cameo_reshaping *shapes,
                                                   size_t count, const struct cameo_edit **report,
                                                   struct cameo_error *err);

/* ---- checking ---- */

struct cameo_check_options {
    size_t struct_size;
    bool strict;         /* what is usually a warning is a violation */
    bool structure_only; /* types and shapes are not inferred: no TY rules */
    /* "ort": what ONNX forbids and ONNX Runtime accepts is a note; NULL: it is a violation or a
     * warning whose reason says so. */
    const char *tool;
};

#define CAMEO_CHECK_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(struct cameo_check_options), false, false, 0                                        \
    }

/* A rule that models are checked by. */
struct cameo_check_rule {
    struct cameo_text id;                          /* "CK15" */
    enum cameo_severity severity, strict_severity; /* usually, and with the option strict */
    struct cameo_text text;                        /* what is wrong when it is broken */
    struct cameo_text help;                        /* what to do then */
};
CAMEO_API size_t cameo_check_rule_count(void);
/* NULL past the end. */
CAMEO_API const struct cameo_check_rule *cameo_check_rule_at(size_t index);

/* Lists what is wrong with a model: its structure and names, and the types and shapes that are
 * inferred, in sub-graphs, functions and training info too. Weights are not read. CAMEO_OK says
 * that the check ran: whether the model is legal ONNX is cameo_findings_violations == 0. options
 * may be NULL. *out is the caller's to free and lives independently of the model. */
CAMEO_API enum cameo_status cameo_model_check(const struct cameo_model *model,
                                              const struct cameo_check_options *options,
                                              struct cameo_findings **out, struct cameo_error *err);

/* ---- values ----
 *
 * What goes into a run and comes out of it: a tensor, or a sequence or map of such. A value is the
 * caller's to free, unless it was given by const pointer: then it belongs to where it was asked of.
 */

struct cameo_value;

/* A tensor of zeros, or of empty strings. */
CAMEO_API enum cameo_status cameo_value_new(enum cameo_dtype dtype, int rank, const int64_t *dims,
                                            struct cameo_value **out, struct cameo_error *err);
/* A tensor over memory of the caller's, without a copy. Without a deleter it is lent until the
 * value is freed; with one it is taken over, and let go when neither the value nor what was made of
 * it needs it. Memory with strides or that is not aligned for its type, and strings, are copied. */
CAMEO_API enum cameo_status cameo_value_from_tensor(const struct cameo_tensor *tensor,
                                                    struct cameo_value **out,
                                                    struct cameo_error *err);
/* A tensor of strings, which end with NUL and are copied. cameo_value_from_tensor takes those that
 * hold one, as struct cameo_text. */
CAMEO_API enum cameo_status cameo_value_new_strings(int rank, const int64_t *dims,
                                                    const char *const *strings,
                                                    struct cameo_value **out,
                                                    struct cameo_error *err);
/* A sequence of values of one kind, tensors of one element type. Items stay the caller's to free;
 * the sequence refers to the same memory, unless it was lent: that is copied. */
CAMEO_API enum cameo_status cameo_value_new_sequence(const struct cameo_value *const *items,
                                                     size_t count, struct cameo_value **out,
                                                     struct cameo_error *err);
/* A map: keys is a tensor of rank 1, integers or strings, and each has an item. */
CAMEO_API enum cameo_status cameo_value_new_map(const struct cameo_value *keys,
                                                const struct cameo_value *const *items,
                                                struct cameo_value **out, struct cameo_error *err);
/* An optional with content, which is that content once more, or without: NULL. */
CAMEO_API enum cameo_status cameo_value_new_optional(const struct cameo_value *content,
                                                     struct cameo_value **out,
                                                     struct cameo_error *err);
CAMEO_API void cameo_value_free(struct cameo_value *value); /* NULL is fine */

CAMEO_API enum cameo_kind cameo_value_kind(const struct cameo_value *value);
/* Of tensors; of a map these speak of its keys. All others have CAMEO_UNDEFINED, rank 0, no
 * elements. */
CAMEO_API enum cameo_dtype cameo_value_dtype(const struct cameo_value *value);
CAMEO_API int cameo_value_rank(const struct cameo_value *value);
CAMEO_API const int64_t *cameo_value_dims(const struct cameo_value *value);
CAMEO_API int64_t cameo_value_count(const struct cameo_value *value); /* elements */
/* Elements in row-major order, types of less than a byte packed as in ONNX files; strings are
 * struct cameo_text. */
CAMEO_API const void *cameo_value_data(const struct cameo_value *value);
CAMEO_API size_t cameo_value_bytes(const struct cameo_value *value);
/* The same memory for writing, of a value that the caller made. NULL for strings, and for memory
 * that came as to be read only. */
CAMEO_API void *cameo_value_mutable_data(struct cameo_value *value);
/* One element of any type but complex and string, as a number; 0 past the end. */
CAMEO_API double cameo_value_real(const struct cameo_value *value, int64_t index);
/* One element of an integer or bool tensor; of uint64, its bits. */
CAMEO_API int64_t cameo_value_integer(const struct cameo_value *value, int64_t index);
/* One element of a string tensor; "" past the end. */
CAMEO_API struct cameo_text cameo_value_string(const struct cameo_value *value, int64_t index);
/* Sets one element of a value that the caller made, rounded to its type. Complex and string tensors
 * are left alone. */
CAMEO_API void cameo_value_set_real(struct cameo_value *value, int64_t index, double number);
/* Of sequences and maps. NULL past the end. */
CAMEO_API size_t cameo_value_item_count(const struct cameo_value *value);
CAMEO_API const struct cameo_value *cameo_value_item(const struct cameo_value *value, size_t index);

/* Tensors of other libraries, through DLPack; cameo_dlpack.h has the structs for programs that do
 * not have dlpack.h. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;
/* Takes the tensor over, without a copy where it is dense memory of the CPU, aligned for its type,
 * and lets go of it when neither the value nor what was made of it needs it. What is flagged as to
 * be read only stays so. After a failure it is the caller's as before. */
CAMEO_API enum cameo_status cameo_value_from_dlpack(struct DLManagedTensorVersioned *tensor,
                                                    struct cameo_value **out,
                                                    struct cameo_error *err);
CAMEO_API enum cameo_status cameo_value_from_dlpack_unversioned(struct DLManagedTensor *tensor,
                                                                struct cameo_value **out,
                                                                struct cameo_error *err);
/* The memory of a tensor for others, who call its deleter when they are done; it may outlive the
 * value. It is flagged as to be read only where others than this value read it, and copied where it
 * is lent. The older form has no flags: what may not be written to is copied. */
CAMEO_API enum cameo_status cameo_value_to_dlpack(const struct cameo_value *value,
                                                  struct DLManagedTensorVersioned **out,
                                                  struct cameo_error *err);
CAMEO_API enum cameo_status cameo_value_to_dlpack_unversioned(const struct cameo_value *value,
                                                              struct DLManagedTensor **out,
                                                              struct cameo_error *err);

/* ---- comparing ---- */

/* How far one value is from another, the reference. Complex numbers count as two. */
struct cameo_difference {
    size_t struct_size;
    int64_t count;         /* numbers or strings compared */
    int64_t differing;     /* of them, |a - b| > absolute + relative * |b|; NaN equals NaN */
    int64_t first;         /* the first such; -1: none */
    double max_abs;        /* the largest |a - b|; infinite where one of them is not finite */
    double norm;           /* the Euclidean norm of a - b, finite terms only */
    double reference_norm; /* of b; 0 where both have the same bytes */
};

#define CAMEO_DIFFERENCE_INIT                                                                      \
    {                                                                                              \
        sizeof(struct cameo_difference), 0, 0, 0, 0, 0, 0                                          \
    }

/* CAMEO_BAD_ARGUMENT where they are of different types or shapes. */
CAMEO_API enum cameo_status cameo_value_difference(const struct cameo_value *a,
                                                   const struct cameo_value *b, double relative,
                                                   double absolute, struct cameo_difference *out,
                                                   struct cameo_error *err);
/* The same of initializers of two models, where they lie; sparse ones are CAMEO_UNSUPPORTED. */
CAMEO_API enum cameo_status cameo_initializer_difference(
    const struct cameo_model *a, size_t index_a, const struct cameo_model *b, size_t index_b,
    double relative, double absolute, struct cameo_difference *out, struct cameo_error *err);

/* ---- files of arrays ---- */

struct cameo_arrays;

/* Opens .npy, .npz, .safetensors or .pb (an ONNX message). Values stay views into the file where
 * they can. A .pb file does not say what it holds: kind does (a cameo_value_info has it), and is
 * ignored otherwise; CAMEO_KIND_NONE means a tensor. */
CAMEO_API enum cameo_status cameo_arrays_open(const char *path, enum cameo_kind kind,
                                              struct cameo_arrays **out, struct cameo_error *err);

struct cameo_arrays_options {
    size_t struct_size;
    enum cameo_kind kind; /* of a .pb file, as above */
    bool copy_files;      /* read the file into memory rather than map it */
    size_t memory_limit;  /* bytes that its values may take, beside the file; 0: no limit */
    /* Arrays of these names are loaded; others are listed, but have no value. NULL: all are loaded.
     */
    const struct cameo_text *names;
    size_t name_count;
    bool or_alone; /* an array that is alone in its file is loaded whatever its name */
};

#define CAMEO_ARRAYS_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(struct cameo_arrays_options), CAMEO_KIND_NONE, false, 0, NULL, 0, false             \
    }

/* The same with more said; options may be NULL. A few bytes of a file can stand for gigabytes, so
 * programs that open files of strangers set a limit. */
CAMEO_API enum cameo_status cameo_arrays_load(const char *path,
                                              const struct cameo_arrays_options *options,
                                              struct cameo_arrays **out, struct cameo_error *err);
CAMEO_API void cameo_arrays_free(struct cameo_arrays *arrays); /* NULL is fine */
CAMEO_API size_t cameo_arrays_count(const struct cameo_arrays *arrays);
/* "" where the format has no names; NULL data past the end. */
CAMEO_API struct cameo_text cameo_arrays_name(const struct cameo_arrays *arrays, size_t index);
/* NULL past the end, and where the array was not loaded. */
CAMEO_API const struct cameo_value *cameo_arrays_at(const struct cameo_arrays *arrays,
                                                    size_t index);
/* Writes values under their names to a file of one of these endings, whole or not at all. .npy and
 * .pb hold one value and only .pb holds what is no tensor. Types that NumPy has not are widened in
 * .npy and .npz: narrow floats to float32, narrow integers to bytes. */
CAMEO_API enum cameo_status cameo_arrays_save(const char *path, const char *const *names,
                                              const struct cameo_value *const *values, size_t count,
                                              struct cameo_error *err);

/* ---- operators of one's own ----
 *
 * A registry holds operators that ONNX does not have. It is filled, then given to sessions, which
 * freeze it: from then on it may be shared between threads, and must outlive them. */

struct cameo_registry;
struct cameo_infer; /* a use of the operator whose result types are asked for */
struct cameo_call;  /* a use of the operator that is to be computed */
struct cameo_use;   /* a use of the operator that a function is to be written for */

CAMEO_API enum cameo_status cameo_registry_new(struct cameo_registry **out,
                                               struct cameo_error *err);
CAMEO_API void cameo_registry_free(struct cameo_registry *registry); /* NULL is fine */

enum cameo_operand_kind {
    CAMEO_OPERAND_SINGLE = 0,
    CAMEO_OPERAND_OPTIONAL = 1,
    CAMEO_OPERAND_VARIADIC = 2 /* one or more; the last only */
};

#define CAMEO_TYPE_BIT(dtype) (UINT64_C(1) << (unsigned)(dtype))

/* An input or output: a tensor. */
struct cameo_operand {
    size_t struct_size;
    const char *name;
    /* Operands that name the same variable have the same type, as "T" in ONNX; NULL: its own. */
    const char *variable;
    uint64_t types; /* CAMEO_TYPE_BIT of each that is allowed; 0: all */
    enum cameo_operand_kind kind;
};

#define CAMEO_OPERAND_INIT                                                                         \
    {                                                                                              \
        sizeof(struct cameo_operand), 0, 0, 0, CAMEO_OPERAND_SINGLE                                \
    }

/* Of the kinds from FLOAT to STRING and from FLOATS to STRINGS. */
struct cameo_attribute {
    size_t struct_size;
    const char *name;
    enum cameo_attribute_kind kind;
    bool required;
    bool has_default; /* single ones: the member of its kind; lists have none */
    float f;
    int64_t i;
    const char *s;
};

#define CAMEO_ATTRIBUTE_INIT                                                                       \
    {                                                                                              \
        sizeof(struct cameo_attribute), 0, CAMEO_ATTRIBUTE_INT, false, false, 0, 0, 0              \
    }

typedef enum cameo_status cameo_infer_fn(struct cameo_infer *in, void *arg);
typedef enum cameo_status cameo_run_fn(struct cameo_call *call, void *arg);
typedef enum cameo_status cameo_use_fn(struct cameo_use *use, void *arg);

/* What an operator is. Everything in it is copied, but for what arg points at. Outputs of strings
 * can only come from a body. */
struct cameo_custom_operator {
    size_t struct_size;
    const char *domain, *name;
    int version; /* of the domain's opset that brought it; 0: 1 */
    const struct cameo_operand *inputs, *outputs;
    size_t input_count, output_count;
    const struct cameo_attribute *attributes;
    size_t attribute_count;
    cameo_infer_fn *infer; /* NULL: each output is like input 0 */
    cameo_run_fn *run;     /* NULL: the body is run */
    /* A function in ONNX's text form with the same domain and name, over operators that are there
     * already; NULL: none. */
    const char *body;
    /* run gives each output its memory with cameo_call_allocate: sizes depend on values. */
    bool sizes_at_run;
    void *arg; /* handed to all functions here, which any thread may call */
    /* Instead of body: gives with cameo_use_give the function for the attributes, types and present
     * operands at hand. It has the operands in the operator's order. */
    cameo_use_fn *make_body;
    /* How gradients flow, as a function in text form, under any name. Its inputs are what it needs,
     * by name: operands "x", and "d_y" for the gradient of output y; its outputs are "d_x" for
     * input x, of as many inputs as have one. What a variadic operand xs stands for is "xs_0",
     * "xs_1", .. NULL: make_gradient gives it; without that either, gradients flow through the
     * body. */
    const char *gradient;
    cameo_use_fn *make_gradient;
};

#define CAMEO_CUSTOM_OPERATOR_INIT                                                                 \
    {                                                                                              \
        sizeof(struct cameo_custom_operator), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, false, 0, 0, 0,  \
            0                                                                                      \
    }

CAMEO_API enum cameo_status cameo_registry_add(struct cameo_registry *registry,
                                               const struct cameo_custom_operator *op,
                                               struct cameo_error *err);

/* For infer: what is known of inputs. An absent one has CAMEO_UNDEFINED; what is not known yet is
 * -1. */
CAMEO_API size_t cameo_infer_input_count(const struct cameo_infer *in);
CAMEO_API enum cameo_dtype cameo_infer_dtype(const struct cameo_infer *in, size_t input);
CAMEO_API int cameo_infer_rank(const struct cameo_infer *in, size_t input);
CAMEO_API int64_t cameo_infer_dim(const struct cameo_infer *in, size_t input, int axis);
/* Says what an output is: rank -1 and dims of -1 where that is not known. */
CAMEO_API enum cameo_status cameo_infer_set(struct cameo_infer *in, size_t output,
                                            enum cameo_dtype dtype, int rank, const int64_t *dims);
CAMEO_API enum cameo_status cameo_infer_set_like(struct cameo_infer *in, size_t output,
                                                 size_t input);
/* Returns CAMEO_BAD_MODEL after noting the reason; the node is named before it. */
CAMEO_API enum cameo_status cameo_infer_fail(struct cameo_infer *in, const char *reason);

/* For both: attributes of the node, or their defaults, else 0, "" and nothing. */
CAMEO_API int64_t cameo_infer_int(const struct cameo_infer *in, const char *name);
CAMEO_API float cameo_infer_float(const struct cameo_infer *in, const char *name);
CAMEO_API const int64_t *cameo_infer_ints(const struct cameo_infer *in, const char *name,
                                          size_t *count);
CAMEO_API int64_t cameo_call_int(const struct cameo_call *call, const char *name);
CAMEO_API float cameo_call_float(const struct cameo_call *call, const char *name);
CAMEO_API struct cameo_text cameo_call_string(const struct cameo_call *call, const char *name);
CAMEO_API const int64_t *cameo_call_ints(const struct cameo_call *call, const char *name,
                                         size_t *count);
CAMEO_API const float *cameo_call_floats(const struct cameo_call *call, const char *name,
                                         size_t *count);

/* For make_body and make_gradient: the same of a node, attributes included. An absent input has
 * CAMEO_UNDEFINED. */
CAMEO_API size_t cameo_use_input_count(const struct cameo_use *use);
CAMEO_API size_t cameo_use_output_count(const struct cameo_use *use);
CAMEO_API bool cameo_use_wants(const struct cameo_use *use, size_t output); /* by anybody? */
CAMEO_API enum cameo_dtype cameo_use_dtype(const struct cameo_use *use, size_t input);
CAMEO_API int cameo_use_rank(const struct cameo_use *use, size_t input);
CAMEO_API int64_t cameo_use_dim(const struct cameo_use *use, size_t input, int axis);
CAMEO_API int64_t cameo_use_int(const struct cameo_use *use, const char *name);
CAMEO_API float cameo_use_float(const struct cameo_use *use, const char *name);
CAMEO_API struct cameo_text cameo_use_string(const struct cameo_use *use, const char *name);
CAMEO_API const int64_t *cameo_use_ints(const struct cameo_use *use, const char *name,
                                        size_t *count);
CAMEO_API const float *cameo_use_floats(const struct cameo_use *use, const char *name,
                                        size_t *count);
/* The function, in ONNX's text form; it is copied. Attributes of the node may be referred to. */
CAMEO_API enum cameo_status cameo_use_give(struct cameo_use *use, const char *text);
/* Notes the reason and returns status: CAMEO_UNSUPPORTED says that this case has no function. */
CAMEO_API enum cameo_status cameo_use_fail(struct cameo_use *use, enum cameo_status status,
                                           const char *reason);

CAMEO_API size_t cameo_call_input_count(const struct cameo_call *call);
CAMEO_API size_t cameo_call_output_count(const struct cameo_call *call);
/* The operand as plain memory, good until run returns; inputs are only to be read, and strings here
 * have no NUL. False when it is absent, or the output not wanted. out is made with its _INIT macro.
 */
CAMEO_API bool cameo_call_input(const struct cameo_call *call, size_t index,
                                struct cameo_tensor *out);
CAMEO_API bool cameo_call_output(struct cameo_call *call, size_t index, struct cameo_tensor *out);
/* Of an operator with sizes_at_run: before cameo_call_output. */
CAMEO_API enum cameo_status cameo_call_allocate(struct cameo_call *call, size_t output,
                                                enum cameo_dtype dtype, int rank,
                                                const int64_t *dims);
/* Notes the reason and returns status. */
CAMEO_API enum cameo_status cameo_call_fail(struct cameo_call *call, enum cameo_status status,
                                            const char *reason);

/* ---- operators of one's own, known to a model ----
 *
 * Where a model has been given a registry, everything that is done with it or with what is derived
 * from it knows these operators: checking, inferring, preparing, gradients, sessions, trainers. A
 * registry in options comes before it. */

/* Freezes the registry, which must outlive the model and all that is made of it; NULL: none, as at
 * first. Needs the model alone, before sessions and trainers are made of it. */
CAMEO_API void cameo_model_set_registry(struct cameo_model *model,
                                        const struct cameo_registry *registry);

/* More about attributes, for infer and run: whether there is one, given by the node or by default;
 * one text of a list, false past its end. Texts of attributes have no NUL behind them. */
CAMEO_API bool cameo_infer_has(const struct cameo_infer *in, const char *name);
CAMEO_API struct cameo_text cameo_infer_string(const struct cameo_infer *in, const char *name);
CAMEO_API const float *cameo_infer_floats(const struct cameo_infer *in, const char *name,
                                          size_t *count);
CAMEO_API bool cameo_infer_string_at(const struct cameo_infer *in, const char *name, size_t index,
                                     struct cameo_text *out);
CAMEO_API bool cameo_call_has(const struct cameo_call *call, const char *name);
CAMEO_API bool cameo_call_string_at(const struct cameo_call *call, const char *name, size_t index,
                                    struct cameo_text *out);
/* The library never gives the memory of this call's operands back, though it goes on using it: for
 * callers who find at the end of run that something still refers to it, such as an array of another
 * language. What was fed is the caller's own. */
CAMEO_API void cameo_call_pin(struct cameo_call *call);

/* ---- running ----
 *
 * A session is a model made ready to run. It cannot change: any number of threads may run it at
 * once. The model must outlive it, unchanged. */

struct cameo_session;

struct cameo_session_options {
    size_t struct_size;
    int threads;         /* 0: as many as there are cores */
    size_t memory_limit; /* bytes that one run may hold, weights not counted; 0: none */
    /* "reference": our own kernels only; "plain": those, node by node without a plan, which is slow
     * and judges the rest; NULL: whatever is fastest */
    const char *backend;
    uint64_t seed;                         /* of random operators that bring none */
    const struct cameo_registry *registry; /* operators beside the built-in ones, or NULL */
    bool expand; /* replace operators by their function bodies where they have one */
    /* Passes to leave out, by name, parted by commas: "fold,regions"; NULL: none. */
    const char *without_passes;
    /* Refuse operators that are not core, and run none of the passes that make such: for a model
     * that was expanded to core operators. */
    bool core_only;
    /* Receives all that keeps the session from being made, for the caller to free: the message has
     * as many as fit. NULL where the message says all, or the call succeeds. NULL: nobody asks. */
    struct cameo_findings **findings;
};

#define CAMEO_SESSION_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(struct cameo_session_options), 0, 0, 0, 0, 0, false, 0, false, 0                    \
    }

/* Makes the model ready. All that cannot run (an operator, a version, a type) is named in one
 * message, each with its node and the reason, as far as a message reaches; the findings of the
 * options have no such limit. options may be NULL. */
CAMEO_API enum cameo_status cameo_session_new(const struct cameo_model *model,
                                              const struct cameo_session_options *options,
                                              struct cameo_session **out, struct cameo_error *err);
/* Lists all that keeps cameo_session_new, with the same options, from making a session; an empty
 * list says that it would. CAMEO_OK says that the list is there. *out is the caller's to free and
 * lives independently of the model. */
CAMEO_API enum cameo_status cameo_model_blockers(const struct cameo_model *model,
                                                 const struct cameo_session_options *options,
                                                 struct cameo_findings **out,
                                                 struct cameo_error *err);
/* Nobody may be running it. NULL is fine. */
CAMEO_API void cameo_session_free(struct cameo_session *session);
/* How many nodes option expand has replaced by their function bodies. */
CAMEO_API size_t cameo_session_expanded(const struct cameo_session *session);

/* The inputs and outputs of the model, in its order. Types of outputs are as good as inference can
 * make them. NULL past the end. */
CAMEO_API size_t cameo_session_input_count(const struct cameo_session *session);
CAMEO_API size_t cameo_session_output_count(const struct cameo_session *session);
CAMEO_API const struct cameo_value_info *cameo_session_input(const struct cameo_session *session,
                                                             size_t index);
CAMEO_API const struct cameo_value_info *cameo_session_output(const struct cameo_session *session,
                                                              size_t index);

/* What the caller feeds to one input: a value, or memory of its own, which is lent for the call. */
struct cameo_feed {
    size_t struct_size;
    const char *name; /* of the input; NULL: index counts */
    size_t index;
    const struct cameo_value *value;
    const struct cameo_tensor *tensor; /* where value is NULL */
};

#define CAMEO_FEED_INIT                                                                            \
    {                                                                                              \
        sizeof(struct cameo_feed), 0, 0, 0, 0                                                      \
    }

/* What the caller wants back. */
struct cameo_fetch {
    size_t struct_size;
    const char *name; /* of the output; NULL: index counts */
    size_t index;
    /* Memory of the caller's for the result, dense and of exactly the type and shape of it; NULL:
     * the result comes as value, the caller's to free. Strings always come as value. It must not be
     * memory of an input or of another result. */
    const struct cameo_tensor *tensor;
    struct cameo_value *value; /* set by the run */
};

#define CAMEO_FETCH_INIT                                                                           \
    {                                                                                              \
        sizeof(struct cameo_fetch), 0, 0, 0, 0                                                     \
    }

/* Feeds and fetches by name; what they point at is not copied. */
static inline struct cameo_feed cameo_feed_value(const char *name, const struct cameo_value *value)
{
    struct cameo_feed feed = CAMEO_FEED_INIT;

    feed.name = name;
    feed.value = value;
    return feed;
}

static inline struct cameo_feed cameo_feed_tensor(const char *name,
                                                  const struct cameo_tensor *tensor)
{
    struct cameo_feed feed = CAMEO_FEED_INIT;

    feed.name = name;
    feed.tensor = tensor;
    return feed;
}

static inline struct cameo_fetch cameo_fetch_value(const char *name)
{
    struct cameo_fetch fetch = CAMEO_FETCH_INIT;

    fetch.name = name;
    return fetch;
}

static inline struct cameo_fetch cameo_fetch_tensor(const char *name,
                                                    const struct cameo_tensor *tensor)
{
    struct cameo_fetch fetch = CAMEO_FETCH_INIT;

    fetch.name = name;
    fetch.tensor = tensor;
    return fetch;
}

/* One of several feeds that the library made, whose structs may be longer than the caller's. */
static inline const struct cameo_feed *cameo_feed_at(const struct cameo_feed *feeds, size_t index)
{
    return (const struct cameo_feed *)(const void *)((const char *)feeds +
                                                     index * feeds->struct_size);
}

/* Stops runs from another thread, or from a signal handler. May serve any number of runs. */
struct cameo_cancel;
CAMEO_API enum cameo_status cameo_cancel_new(struct cameo_cancel **out, struct cameo_error *err);
CAMEO_API void cameo_cancel_free(struct cameo_cancel *cancel); /* NULL is fine */
CAMEO_API void cameo_cancel_set(struct cameo_cancel *cancel);  /* runs end with CAMEO_CANCELLED */
CAMEO_API void cameo_cancel_clear(struct cameo_cancel *cancel);

/* One operator that ran. */
struct cameo_step {
    struct cameo_text node, domain, op; /* node may be ""; "rnn (LSTM)" for a part of one */
    const char *kernel;                 /* "reference", "onednn"; "function": by its body */
    const char *declined; /* which faster kernels were not taken and why, "int8 product: operand
                             'A' is float; ..", and why it was prepared as it ran; or "" */
    int depth;            /* 0: the graph itself; more: bodies inside */
    uint64_t begin_ns, end_ns; /* since the run began */
    size_t live_bytes;         /* of results that the step or later ones read, and its scratch */
    uint64_t id;               /* of the node: the same whenever it runs */
    double flops; /* multiplications and additions of its products (convolutions included); what is
                     done to single elements is not counted */
};

typedef void cameo_step_fn(void *arg, const struct cameo_step *step);

struct cameo_run_options {
    size_t struct_size;
    struct cameo_cancel *cancel; /* NULL: none */
    cameo_step_fn *step;         /* called after each step, on the calling thread; NULL: none */
    void *step_arg;
    /* Receives all that keeps the run from beginning, for the caller to free; NULL where it began.
     * NULL: nobody asks. */
    struct cameo_findings **findings;
};

#define CAMEO_RUN_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(struct cameo_run_options), 0, 0, 0, 0                                               \
    }

/* Runs the model once. Inputs that are not fed take their default, if they have one. All that is
 * wrong with feeds and fetches (a name, a type, a rank, a size, a missing input) is one list, made
 * before anything runs; the session lives on. After a failure no value is set. options may be NULL.
 */
CAMEO_API enum cameo_status cameo_session_run(struct cameo_session *session,
                                              const struct cameo_feed *feeds, size_t feed_count,
                                              struct cameo_fetch *fetches, size_t fetch_count,
                                              const struct cameo_run_options *options,
                                              struct cameo_error *err);

/* Fails as a run with these feeds would before it begins, and runs nothing. *findings, unless
 * findings is NULL, receives all that is wrong with the feeds, for the caller to free; NULL where
 * nothing is. */
CAMEO_API enum cameo_status cameo_session_check(struct cameo_session *session,
                                                const struct cameo_feed *feeds, size_t feed_count,
                                                struct cameo_findings **findings,
                                                struct cameo_error *err);

/* ---- inputs made up ----
 *
 * To try a model without data: floats at random, integers within what they are used to point at.
 * Sizes that the model leaves open are guessed from names and places, and others are tried where
 * the model would refuse those, within a fixed amount of work. */

struct cameo_size {
    size_t struct_size;
    const char *symbol; /* "batch" */
    int64_t size;
};

#define CAMEO_SIZE_INIT                                                                            \
    {                                                                                              \
        sizeof(struct cameo_size), 0, 0                                                            \
    }

struct cameo_input_shape {
    size_t struct_size;
    const char *input;
    int rank;
    const int64_t *dims;
};

#define CAMEO_INPUT_SHAPE_INIT                                                                     \
    {                                                                                              \
        sizeof(struct cameo_input_shape), 0, 0, 0                                                  \
    }

struct cameo_make_options {
    size_t struct_size;
    uint64_t seed;
    const struct cameo_size *sizes; /* of open dimensions, by name */
    size_t size_count;
    const struct cameo_input_shape *shapes; /* of inputs */
    size_t shape_count;
    int64_t batch;       /* the guess for batches */
    bool both_signs;     /* floats on both sides of 0, away from it; otherwise from 0 to 1 */
    unsigned attempt;    /* 0: the best guesses; 1, 2, ..: others, for when those did not run */
    size_t memory_limit; /* bytes of all values together; 0: none */
};

#define CAMEO_MAKE_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(struct cameo_make_options), 0, 0, 0, 0, 0, 1, false, 0, 0                           \
    }

/* A size that was made up. */
struct cameo_made_size {
    struct cameo_text input; /* where it stands first */
    int axis;
    struct cameo_text symbol; /* "" when it has no name */
    int64_t size;
};

struct cameo_made_inputs;

/* Makes values for the inputs of a session that feeds does not hold and that have no default. Sizes
 * of what is fed count for dimensions of the same name. A name that no open dimension or input has
 * is CAMEO_NOT_FOUND; inputs that are maps cannot be made. options may be NULL. *out is the
 * caller's to free. */
CAMEO_API enum cameo_status cameo_session_make_inputs(const struct cameo_session *session,
                                                      const struct cameo_make_options *options,
                                                      const struct cameo_feed *feeds,
                                                      size_t feed_count,
                                                      struct cameo_made_inputs **out,
                                                      struct cameo_error *err);
CAMEO_API void cameo_made_inputs_free(struct cameo_made_inputs *made); /* NULL is fine */
/* The values, for cameo_session_run; *count receives how many. cameo_feed_at gives one of them. */
CAMEO_API const struct cameo_feed *cameo_made_inputs_feeds(const struct cameo_made_inputs *made,
                                                           size_t *count);
/* NULL past the last. */
CAMEO_API const struct cameo_made_size *cameo_made_inputs_size(const struct cameo_made_inputs *made,
                                                               size_t index);
/* Why the model will refuse the sizes, as far as is known before a run; "": it will not. */
CAMEO_API const char *cameo_made_inputs_refusal(const struct cameo_made_inputs *made);

/* ---- comparing models ----
 *
 * What became of a first model in a second: nodes, inputs, outputs, opsets, functions, training
 * info and metadata that were added, removed or changed; weights; results on the same inputs.
 * Graphs are matched by the names of values. */

struct cameo_comparison;

enum cameo_compare_part {
    CAMEO_COMPARE_STRUCTURE = 0,
    CAMEO_COMPARE_WEIGHTS = 1,
    CAMEO_COMPARE_RESULTS = 2
};

enum cameo_compare_kind {
    CAMEO_COMPARE_ADDED = 0,
    CAMEO_COMPARE_REMOVED = 1,
    CAMEO_COMPARE_CHANGED = 2,
    CAMEO_COMPARE_VALUE = 3, /* a result */
    CAMEO_COMPARE_FIRST = 4, /* the first value of a run that differs, in the order of the nodes */
    CAMEO_COMPARE_NOTE = 5   /* worth knowing; no difference */
};

struct cameo_compare_row {
    enum cameo_compare_part part;
    enum cameo_compare_kind kind;
    struct cameo_text name;                    /* "node 'conv1' (Conv)", "input 'x'", a tensor's */
    struct cameo_text text;                    /* "name is 'conv2'"; may be empty */
    const struct cameo_difference *difference; /* of numbers; NULL: none were compared */
};

struct cameo_compare_options {
    size_t struct_size;
    unsigned parts;                 /* 1 << part of those to compare, or'd; 0: all */
    double relative;                /* below 0: 1e-3 of results, 0 of weights */
    double absolute;                /* below 0: 1e-5 of results, 0 of weights */
    const struct cameo_feed *feeds; /* of inputs of both models, by name; the rest is made up: */
    size_t feed_count;
    const struct cameo_make_options *make;       /* or NULL */
    const struct cameo_session_options *session; /* of all runs, or NULL */
};

#define CAMEO_COMPARE_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(struct cameo_compare_options), 0, -1, -1, 0, 0, 0, 0                                \
    }

/* CAMEO_OK says that there is a comparison. Where the second model does not run, a row says so;
 * where results differ, both models run once more to find the first value that does. options may be
 * NULL. *out is the caller's to free and lives independently of the models. */
CAMEO_API enum cameo_status cameo_model_compare(const struct cameo_model *a,
                                                const struct cameo_model *b,
                                                const struct cameo_compare_options *options,
                                                struct cameo_comparison **out,
                                                struct cameo_error *err);
/* Values of a run of the model that somebody recorded, such as those of another runtime, against
 * what it computes here: feeds with a name of the graph and a value. The only part is results. */
CAMEO_API enum cameo_status
cameo_model_compare_values(const struct cameo_model *model, const struct cameo_feed *recorded,
                           size_t recorded_count, const struct cameo_compare_options *options,
                           struct cameo_comparison **out, struct cameo_error *err);
CAMEO_API void cameo_comparison_free(struct cameo_comparison *comparison); /* NULL is fine */
/* Are there no rows but notes? */
CAMEO_API bool cameo_comparison_same(const struct cameo_comparison *comparison);
/* Nodes, tensors or values that were compared, and those of them that differ. */
CAMEO_API size_t cameo_comparison_compared(const struct cameo_comparison *comparison,
                                           enum cameo_compare_part part);
CAMEO_API size_t cameo_comparison_differing(const struct cameo_comparison *comparison,
                                            enum cameo_compare_part part);
/* Was any input made up? */
CAMEO_API bool cameo_comparison_made_inputs(const struct cameo_comparison *comparison);
/* NULL past the last. */
CAMEO_API const struct cameo_compare_row *
cameo_comparison_row(const struct cameo_comparison *comparison, size_t index);

/* ---- costs by shapes ----
 *
 * What a run takes, found from types and shapes alone: nothing is run, no weights are read. */

struct cameo_cost {
    struct cameo_text domain, op;
    size_t node_count;
    double flops;          /* multiplications and additions of products, as in struct cameo_step */
    uint64_t output_bytes; /* of all results */
};

struct cameo_assumed_size {
    struct cameo_text symbol; /* "batch"; "?" for all that have no name */
    int64_t size;
    bool assumed; /* nobody gave it: 1 is taken */
};

struct cameo_costs {
    double flops;
    uint64_t activation_bytes; /* of all results of nodes */
    uint64_t peak_bytes;       /* of inputs and results that are needed at once, nodes in order */
    size_t unknown_count;      /* results whose size is not known before a run: not counted */
    size_t left_out;           /* nodes that cannot be typed: not counted */
    bool has_bodies;           /* bodies of If, Loop and Scan: each is counted once */
    size_t operator_count;     /* rows come in falling order of flops, then bytes */
    const struct cameo_cost *const *operators;
    size_t size_count;
    const struct cameo_assumed_size *const *sizes;
};

/* sizes are those of open dimensions of inputs. *out belongs to the model. */
CAMEO_API enum cameo_status cameo_model_costs(const struct cameo_model *model,
                                              const struct cameo_size *sizes, size_t size_count,
                                              const struct cameo_costs **out,
                                              struct cameo_error *err);

/* ---- data to train on ---- */

struct cameo_dataset;

struct cameo_dataset_options {
    size_t struct_size;
    /* CSV: which columns make which array, "x=a,b,c y=label"; NULL: all but the last are "x", the
     * last is "y" */
    const char *columns;
    bool allow_links; /* files in a folder may be symbolic links, to anywhere, or have hard links */
};

#define CAMEO_DATASET_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(struct cameo_dataset_options), 0, false                                             \
    }

/* One array of a data set: the type and shape of a sample. */
struct cameo_dataset_field {
    size_t struct_size;
    struct cameo_text name;
    enum cameo_dtype dtype;
    int rank;
    int64_t dims[64];
};

#define CAMEO_DATASET_FIELD_INIT                                                                   \
    {                                                                                              \
        sizeof(struct cameo_dataset_field), {0, 0}, CAMEO_UNDEFINED, 0,                            \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

/* Opens .npz, .npy, .safetensors, .csv, a folder of .npy files or IDX files ("images:labels" or a
 * folder). The first axis counts samples. Rows are read as they are asked for. options may be NULL.
 */
CAMEO_API enum cameo_status cameo_dataset_open(const char *path,
                                               const struct cameo_dataset_options *options,
                                               struct cameo_dataset **out, struct cameo_error *err);
/* The same for several paths: the samples of each follow those of the path before it. All must have
 * the same arrays, with samples of the same types and shapes; otherwise the error names both paths
 * and the array. count is at least 1. */
CAMEO_API enum cameo_status cameo_dataset_open_files(const char *const *paths, size_t count,
                                                     const struct cameo_dataset_options *options,
                                                     struct cameo_dataset **out,
                                                     struct cameo_error *err);
CAMEO_API void cameo_dataset_free(struct cameo_dataset *dataset); /* NULL is fine */
CAMEO_API int64_t cameo_dataset_samples(const struct cameo_dataset *dataset);
CAMEO_API size_t cameo_dataset_field_count(const struct cameo_dataset *dataset);
/* False past the end. */
CAMEO_API bool cameo_dataset_field(const struct cameo_dataset *dataset, size_t index,
                                   struct cameo_dataset_field *out);

/* ---- training ----
 *
 * A trainer executes the training info of a model: its initialization, then steps. It has values of
 * its own for all that the bindings write; the model does not change. One thread at a time may use
 * a trainer: it may be another thread at each call, if the caller's lock orders the calls. Trainers
 * of one model are independent, so that each may run, save and be made in a thread of its own. The
 * model must outlive it, unchanged. */

struct cameo_trainer;

struct cameo_trainer_options {
    size_t struct_size;
    int threads;         /* 0: as many as there are cores */
    size_t memory_limit; /* bytes that one step may hold, weights not counted; 0: none */
    const char *backend; /* as for sessions, without "plain" */
    uint64_t seed;       /* of random operators that bring none */
    const struct cameo_registry *registry; /* operators beside the built-in ones, or NULL */
    /* Go on when a loss or a weight becomes NaN or infinite. Otherwise such a step fails and leaves
     * everything as it was. */
    bool allow_not_finite;
    /* Steps have two halves, with the gradients between them: see cameo_trainer_compute. */
    bool gradients;
    /* Passes to leave out, and passes to run that run on request only ("recompute"): names, parted
     * by commas; NULL: none. */
    const char *without_passes, *with_passes;
    /* As for sessions: receives all that keeps the trainer from being made. */
    struct cameo_findings **findings;
};

#define CAMEO_TRAINER_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(struct cameo_trainer_options), 0, 0, 0, 0, 0, false, false, 0, 0, 0                 \
    }

/* Makes a model with training info ready. Everything that stands in the way (a binding that names
 * nothing, a type that does not fit, an operator or a gradient that is missing) is in one message,
 * as far as a message reaches; the findings of the options have no such limit. options may be
 * NULL. */
CAMEO_API enum cameo_status cameo_trainer_new(struct cameo_model *model,
                                              const struct cameo_trainer_options *options,
                                              struct cameo_trainer **out, struct cameo_error *err);
CAMEO_API void cameo_trainer_free(struct cameo_trainer *trainer); /* NULL is fine */
/* Lists all that keeps cameo_trainer_new, with the same options, from making a trainer, as
 * cameo_model_blockers does of a session. */
CAMEO_API enum cameo_status
cameo_model_training_blockers(struct cameo_model *model,
                              const struct cameo_trainer_options *options,
                              struct cameo_findings **out, struct cameo_error *err);

/* What a step must be fed. NULL past the end. */
CAMEO_API size_t cameo_trainer_input_count(const struct cameo_trainer *trainer);
CAMEO_API const struct cameo_value_info *cameo_trainer_input(const struct cameo_trainer *trainer,
                                                             size_t index);

/* What training changes: weights, moments of the optimizer, counters. NULL past the end. */
CAMEO_API size_t cameo_trainer_variable_count(const struct cameo_trainer *trainer);
CAMEO_API const struct cameo_initializer *
cameo_trainer_variable(const struct cameo_trainer *trainer, size_t index);
/* The number of the one called so, or cameo_trainer_variable_count. */
CAMEO_API size_t cameo_trainer_find_variable(const struct cameo_trainer *trainer, const char *name);
/* Copies its values, row-major; size must be that of all of them. */
CAMEO_API enum cameo_status cameo_trainer_read_variable(const struct cameo_trainer *trainer,
                                                        size_t index, void *values, size_t size,
                                                        struct cameo_error *err);
CAMEO_API enum cameo_status cameo_trainer_set_variable(struct cameo_trainer *trainer, size_t index,
                                                       const void *values, size_t size,
                                                       struct cameo_error *err);

/* Scalars that the algorithm outputs: losses, learning rates. NULL past the end. */
CAMEO_API size_t cameo_trainer_scalar_count(const struct cameo_trainer *trainer);
CAMEO_API const char *cameo_trainer_scalar_name(const struct cameo_trainer *trainer, size_t index);
/* Which of them is the loss: "loss", else the first real one; cameo_trainer_scalar_count: none. */
CAMEO_API size_t cameo_trainer_loss(const struct cameo_trainer *trainer);

/* Parameters: the variables that Gradient nodes of the training differentiate by, which is what
 * cameo_model_prepare trains; in a training without such a node, the float initializers of the
 * inference graph that a step updates. They come in the order of the variables and lie one after
 * the other in flat memory, each at a multiple of its element's size: where all have one type, all
 * of it is one array of that type. */
struct cameo_parameter {
    struct cameo_text name;
    size_t variable; /* its number */
    enum cameo_dtype dtype;
    int64_t elements;
    size_t offset, bytes; /* in flat memory */
};
CAMEO_API size_t cameo_trainer_parameter_count(const struct cameo_trainer *trainer);
/* NULL past the end. */
CAMEO_API const struct cameo_parameter *cameo_trainer_parameter(const struct cameo_trainer *trainer,
                                                                size_t index);
/* Of all parameters together: size must be this in the calls below. */
CAMEO_API size_t cameo_trainer_parameter_bytes(const struct cameo_trainer *trainer);
CAMEO_API enum cameo_status cameo_trainer_read_parameters(const struct cameo_trainer *trainer,
                                                          void *values, size_t size,
                                                          struct cameo_error *err);
CAMEO_API enum cameo_status cameo_trainer_set_parameters(struct cameo_trainer *trainer,
                                                         const void *values, size_t size,
                                                         struct cameo_error *err);

/* Variables back to what the model has, then the initialization graphs. Steps count from 0 again.
 */
CAMEO_API enum cameo_status cameo_trainer_initialize(struct cameo_trainer *trainer,
                                                     struct cameo_error *err);

/* One iteration. Its variables change all at once when everything is computed, or not at all.
 * scalars, room for cameo_trainer_scalar_count or NULL, receives their values: those of the batch
 * before the update. */
CAMEO_API enum cameo_status cameo_trainer_step(struct cameo_trainer *trainer,
                                               const struct cameo_feed *feeds, size_t feed_count,
                                               double *scalars, struct cameo_error *err);

/* A step by halves, of a trainer that was made with the option gradients. The first computes loss
 * and gradients from a batch; no variable changes. Then the gradients may be read, changed and put
 * back: averaged over machines, clipped, replaced. The second computes the update from them as they
 * are then (accumulation, clipping and the optimizer of the training come after them). Training
 * info of several entries is computed and applied entry by entry, in order: a step is as many pairs
 * of calls as there are entries. Each entry is fed a batch of its own and sees what those before it
 * wrote; the last one changes all variables at once and ends the step. cameo_trainer_step does all
 * of it. Computing again, instead of applying, begins the entry anew. Where computing or applying
 * fails, all is as before the step and the first entry is next. Each half fills the scalars that it
 * knows; scalars may be NULL.
 *
 *     for (size_t i = 0; i < cameo_trainer_entry_count(trainer); i++) {
 *         cameo_trainer_compute(trainer, feeds, feed_count, scalars, &err);
 *         ..                                  the gradients of entry i
 *         cameo_trainer_apply(trainer, scalars, &err);
 *     }
 *
 * It needs an update that follows from Gradient nodes; what cannot be split is told by
 * cameo_trainer_new. An entry without gradients is computed by its first half. */
CAMEO_API size_t cameo_trainer_entry_count(const struct cameo_trainer *trainer);
/* The entry that is computed next, or is computed and not applied yet. */
CAMEO_API size_t cameo_trainer_next_entry(const struct cameo_trainer *trainer);
CAMEO_API enum cameo_status cameo_trainer_compute(struct cameo_trainer *trainer,
                                                  const struct cameo_feed *feeds, size_t feed_count,
                                                  double *scalars, struct cameo_error *err);
CAMEO_API enum cameo_status cameo_trainer_apply(struct cameo_trainer *trainer, double *scalars,
                                                struct cameo_error *err);
/* Flat, in the order and at the places of the parameters. There from cameo_trainer_compute until
 * cameo_trainer_apply, for the entry that was computed: parameters that it does not differentiate
 * by read as 0, and what is set for them is not used. */
CAMEO_API enum cameo_status cameo_trainer_read_gradients(const struct cameo_trainer *trainer,
                                                         void *values, size_t size,
                                                         struct cameo_error *err);
CAMEO_API enum cameo_status cameo_trainer_set_gradients(struct cameo_trainer *trainer,
                                                        const void *values, size_t size,
                                                        struct cameo_error *err);

/* Tells a training that was prepared with CAMEO_SCHEDULE_PLATEAU the loss of a validation:
 * PyTorch's scheduler.step(loss). cameo_trainer_run does so itself. Any other training refuses it.
 */
CAMEO_API enum cameo_status cameo_trainer_add_validation(struct cameo_trainer *trainer, double loss,
                                                         struct cameo_error *err);

/* Iterations so far; a checkpoint remembers them. */
CAMEO_API uint64_t cameo_trainer_steps(const struct cameo_trainer *trainer);
/* Ends the step under way with CAMEO_CANCELLED when it is set. NULL: none. */
CAMEO_API void cameo_trainer_set_cancel(struct cameo_trainer *trainer, struct cameo_cancel *cancel);
/* Called after each step of the graphs that an iteration runs, on the calling thread; times count
 * from the start of each graph. NULL: none, as at first. */
CAMEO_API void cameo_trainer_set_step(struct cameo_trainer *trainer, cameo_step_fn *step,
                                      void *step_arg);

/* What a step holds, in bytes. */
struct cameo_memory {
    size_t struct_size;
    uint64_t weights;   /* variables of the inference graph */
    uint64_t state;     /* variables of the algorithms: moments of the optimizer, counters */
    uint64_t updates;   /* new values beside the old ones, until the step is done */
    uint64_t constants; /* what training leaves as it is, mostly in the file, and copies of it */
    uint64_t batch;     /* the inputs */
    uint64_t work;      /* activations, gradients and scratch memory, in places used again */
    size_t late; /* nodes that take more as they run: the data decides, or a body's turns do */
    /* Of work, the most at once of each: what the backward pass waits for, derivatives, the
     * arithmetic of the update, scratch memory of kernels. They use each other's places, so that
     * together they may be more than work. */
    uint64_t activations, gradients, arithmetic, scratch;
    uint64_t limited; /* what memory_limit is compared with */
};

#define CAMEO_MEMORY_INIT                                                                          \
    {                                                                                              \
        sizeof(struct cameo_memory), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                            \
    }

/* Says so before the first step. Fed like one, but only types and shapes count and data may be
 * NULL. Nothing is run; a memory limit is not applied. */
CAMEO_API enum cameo_status cameo_trainer_memory(struct cameo_trainer *trainer,
                                                 const struct cameo_feed *feeds, size_t feed_count,
                                                 struct cameo_memory *out, struct cameo_error *err);

/* What is seen of a batch without training on it. */
struct cameo_measure {
    size_t struct_size;
    int64_t samples;
    double loss;     /* NaN: the training has none */
    int64_t judged;  /* labels that count; 0: the loss does not classify */
    int64_t correct; /* of them, those with the highest score */
    /* Otherwise, when the model has one real output and a target of its shape: how many numbers
     * were compared, sums of absolute and squared errors, of targets and of their squares. */
    int64_t compared;
    double absolute, squared, targets, target_squares;
    /* What follows from these, NaN where it does not apply: the share of the labels that were hit,
     * the mean absolute and squared error, and the share of the targets' variance that the model
     * explains. */
    double accuracy, mae, mse, r2;
};

#define CAMEO_MEASURE_INIT                                                                         \
    {                                                                                              \
        sizeof(struct cameo_measure), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                        \
    }

/* Fed like a step. Dropout and batch statistics behave as in inference. */
CAMEO_API enum cameo_status cameo_trainer_evaluate(struct cameo_trainer *trainer,
                                                   const struct cameo_feed *feeds,
                                                   size_t feed_count, struct cameo_measure *out,
                                                   struct cameo_error *err);
/* Runs the inference graph with the variables as they are now; feeds and fetches are those of a
 * session, results always come as value. */
CAMEO_API enum cameo_status cameo_trainer_predict(struct cameo_trainer *trainer,
                                                  const struct cameo_feed *feeds, size_t feed_count,
                                                  struct cameo_fetch *fetches, size_t fetch_count,
                                                  struct cameo_error *err);

/* Saves the model with the variables as they are now: values change and nothing else. options and
 * report may be NULL. */
CAMEO_API enum cameo_status cameo_trainer_save(struct cameo_trainer *trainer, const char *path,
                                               const struct cameo_save_options *options,
                                               struct cameo_save_report *report,
                                               struct cameo_error *err);

/* A checkpoint is a .safetensors file of the variables, the random state, the number of steps and
 * notes of the caller's: a training that is resumed from it goes on with the same bits. That holds
 * under the same conditions only, so it records them too: the version of Cameo, the instruction
 * set, backends and their versions, the number of threads, passes, the seed. */
CAMEO_API enum cameo_status cameo_checkpoint_save(struct cameo_trainer *trainer, const char *path,
                                                  const struct cameo_note *notes, size_t note_count,
                                                  struct cameo_error *err);
/* Hears of each condition that is not what it was: "threads", "8", "2". */
typedef void cameo_difference_fn(void *arg, const char *condition, const char *was,
                                 const char *now);

struct cameo_resume_options {
    size_t struct_size;
    bool anyway; /* resume under other conditions too: results may differ */
    cameo_difference_fn *difference;
    void *difference_arg;
};

#define CAMEO_RESUME_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(struct cameo_resume_options), false, 0, 0                                           \
    }

/* Puts the trainer where the other one was. Refuses a checkpoint of another model, and one that was
 * written under other conditions. options may be NULL. */
CAMEO_API enum cameo_status cameo_checkpoint_resume(struct cameo_trainer *trainer, const char *path,
                                                    const struct cameo_resume_options *options,
                                                    struct cameo_error *err);
/* Calls note for each of its notes; nothing else is read. */
typedef void cameo_note_fn(void *arg, const char *key, const char *value);
CAMEO_API enum cameo_status cameo_checkpoint_notes(const char *path, cameo_note_fn *note, void *arg,
                                                   struct cameo_error *err);
/* The newest checkpoint in the folder of a run: its path, in size bytes; "" when there is none. */
CAMEO_API enum cameo_status cameo_checkpoint_newest(const char *folder, char *path, size_t size,
                                                    struct cameo_error *err);

/* Batches of a data set for a trainer. */
struct cameo_batches;

enum cameo_last_batch {
    CAMEO_LAST_SHORT = 0, /* what is left */
    CAMEO_LAST_DROP = 1,  /* none */
    CAMEO_LAST_WRAP = 2,  /* filled up from the beginning of the epoch */
    CAMEO_LAST_AUTO = 3   /* as CAMEO_LAST_SHORT; as CAMEO_LAST_DROP if the model fixes the batch */
};

struct cameo_batches_options {
    size_t struct_size;
    int64_t batch_size; /* 0: what the model fixes, else 32 */
    bool shuffle;
    uint64_t seed; /* of the order; each epoch has its own */
    enum cameo_last_batch last;
    bool endless;       /* batches go on over the end of an epoch, as if the data were repeated */
    bool prefetch;      /* read ahead on a thread */
    const char *target; /* the array for the one input that none is named after; NULL: the one left
                         */
    /* An array of bytes with 64 numbers a sample or more is taken for images: a float input of the
     * model is fed its numbers divided by 255. true: as they are */
    bool raw_bytes;
    /* Receives all that does not fit, for the caller to free; or NULL */
    struct cameo_findings **findings;
};

#define CAMEO_BATCHES_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(struct cameo_batches_options), 0, false, 0, CAMEO_LAST_SHORT, false, false, 0,      \
            false, 0                                                                               \
    }

/* Arrays and inputs meet by name; values are converted to what the inputs take. All that does not
 * fit is in one message, labels that no class has included, and in the findings of the options.
 * Both must outlive it. options may be NULL. */
CAMEO_API enum cameo_status cameo_batches_new(struct cameo_dataset *dataset,
                                              const struct cameo_trainer *trainer,
                                              const struct cameo_batches_options *options,
                                              struct cameo_batches **out, struct cameo_error *err);
CAMEO_API void cameo_batches_free(struct cameo_batches *batches); /* NULL is fine */
/* The next one: *feeds, one for each input of the trainer, is good until the next call; *rows is 0
 * at the end of an epoch, and the call after that begins the next. */
CAMEO_API enum cameo_status cameo_batches_next(struct cameo_batches *batches,
                                               const struct cameo_feed **feeds, int64_t *rows,
                                               struct cameo_error *err);
/* What a full batch looks like, without data: for cameo_trainer_memory. Good until the next call.
 * NULL: batches of a function. */
CAMEO_API const struct cameo_feed *cameo_batches_shapes(struct cameo_batches *batches);
CAMEO_API int64_t cameo_batches_per_epoch(const struct cameo_batches *batches);
CAMEO_API int64_t cameo_batches_size(const struct cameo_batches *batches); /* rows of one */
/* What happens to the last batch of an epoch: never CAMEO_LAST_AUTO. */
CAMEO_API enum cameo_last_batch cameo_batches_last(const struct cameo_batches *batches);
/* Is this input of the trainer fed bytes divided by 255? */
CAMEO_API bool cameo_batches_scales(const struct cameo_batches *batches, size_t input);
/* Where it stands after the batch given last, and going there. */
struct cameo_batches_position {
    size_t struct_size;
    uint64_t epoch;
    int64_t sample;
};

#define CAMEO_BATCHES_POSITION_INIT                                                                \
    {                                                                                              \
        sizeof(struct cameo_batches_position), 0, 0                                                \
    }

CAMEO_API void cameo_batches_tell(const struct cameo_batches *batches,
                                  struct cameo_batches_position *out);
/* position NULL: the beginning. */
CAMEO_API enum cameo_status cameo_batches_seek(struct cameo_batches *batches,
                                               const struct cameo_batches_position *position,
                                               struct cameo_error *err);

/* ---- a whole run ----
 *
 * The loop that most trainings are: batches, steps, validation after each epoch, early stopping,
 * the best model, checkpoints. `cameo train` runs it too. What happens is told to a function of the
 * caller's, which may stop it. */

enum cameo_moment {
    CAMEO_AFTER_STEP = 0,
    CAMEO_AFTER_EPOCH = 1, /* and its validation and the saving of the best, if there are such */
    CAMEO_AFTER_CHECKPOINT = 2, /* it is written */
    CAMEO_AT_START = 3,         /* resumed or not, before the first step */
    CAMEO_AT_END = 4,           /* the run ends within an epoch, and its last step was validated */
    CAMEO_NOT_WRITTEN = 5       /* a checkpoint or the best model; the run goes on without it */
};

struct cameo_progress {
    enum cameo_moment moment;
    uint64_t step, steps;                /* done, and to do in all; 0: that is not known */
    uint64_t epoch;                      /* of the last batch, from 1 */
    const double *scalars;               /* of the last step, by number */
    double loss;                         /* of the last step; NaN: the training has none */
    const struct cameo_measure *measure; /* of the validation data, after an epoch; NULL: none */
    bool best;                           /* it is the best so far */
    const char *checkpoint; /* the file that was written; at the start, resumed from; or NULL */
    const double *means;    /* scalars over the epoch so far, each batch weighed by its rows */
    double best_loss;       /* of validations so far; infinite: none */
    const char *unwritten;  /* the file that could not be written, and why */
    const char *problem;
};

/* false: the run ends here, without failure. */
typedef bool cameo_progress_fn(void *arg, const struct cameo_progress *progress);

struct cameo_loop_options {
    size_t struct_size;
    uint64_t epochs, steps; /* how long, counted from the first step ever; both 0: one epoch */
    struct cameo_batches *validation; /* measured after each epoch and at the end, or NULL */
    uint64_t patience; /* stop when so many validations in a row brought nothing better; 0: never */
    const char *best;  /* the model with the best validation loss goes to this file, or NULL */
    const char *checkpoint;    /* a folder for checkpoints, made where it is not; or NULL */
    uint64_t checkpoint_every; /* steps; 0: at the end only */
    bool resume;               /* go on from the newest checkpoint, if there is one */
    cameo_progress_fn *progress;
    void *progress_arg;
    uint64_t keep; /* how many checkpoints stay; 0: 3 */
    /* For resuming under other conditions than those of the checkpoint, or NULL. To the trainer's
     * conditions come those of the data: which array goes to which input, columns, samples, batch
     * size, order, last batch. */
    const struct cameo_resume_options *resuming;
    /* Of the caller's: whatever else must be the same, such as how the model was prepared. */
    const struct cameo_note *conditions;
    size_t condition_count;
    /* epochs and steps count from where the trainer is when the run begins, which a run that
     * resumes this one goes by too. */
    bool further;
    /* Receives all that is wrong with these options, for the caller to free; or NULL */
    struct cameo_findings **findings;
};

#define CAMEO_LOOP_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(struct cameo_loop_options), 0, 0, 0, 0, 0, 0, 0, false, 0, 0, 0, 0, 0, 0, false, 0  \
    }

struct cameo_loop_result {
    size_t struct_size;
    double loss;          /* of the last step; NaN: none was done, or it has none */
    double best_loss;     /* of validations; infinite: there was none */
    bool stopped;         /* by the function */
    bool out_of_patience; /* by patience */
    double first_loss;    /* of the first step ever, as loss */
    bool finished; /* the run went to its end: if it failed, then for a file that was not written */
    uint64_t unwritten;             /* checkpoints and best models that could not be written */
    uint64_t best_step, best_epoch; /* of best_loss; 0: there was none */
};

#define CAMEO_LOOP_RESULT_INIT                                                                     \
    {                                                                                              \
        sizeof(struct cameo_loop_result), 0, 0, false, false, 0, false, 0, 0, 0                    \
    }

/* The trainer is then where the run ended, and the newest checkpoint, if asked for, too; saving it
 * is the caller's. A run that was stopped or killed and resumed ends with the bits of one that was
 * not: a checkpoint of another model, other conditions, or a folder with checkpoints that is not to
 * be resumed from, is refused before the first step. A step that is cancelled leaves a checkpoint
 * of the one before. What an initialization has set is overwritten by what is resumed from. A
 * checkpoint or a best model that cannot be written does not end the run; the run then fails at its
 * end, with finished set in result, and the trainer can be saved all the same. The checkpoint
 * folder is locked: a second run on it, of any process, is refused with the process id of the
 * first. result may be NULL. */
CAMEO_API enum cameo_status cameo_trainer_run(struct cameo_trainer *trainer,
                                              struct cameo_batches *batches,
                                              const struct cameo_loop_options *options,
                                              struct cameo_loop_result *result,
                                              struct cameo_error *err);
/* Fails as cameo_trainer_run does with these options, whatever the trainer and the data are, before
 * there are any. validates: the run will have validation batches. *findings, unless findings is
 * NULL, receives all that is wrong, for the caller to free; NULL where nothing is. */
CAMEO_API enum cameo_status cameo_loop_check(const struct cameo_loop_options *options,
                                             bool validates, struct cameo_findings **findings,
                                             struct cameo_error *err);

/* ---- writing files ----
 *
 * What the library itself writes with. A file comes into being whole or not at all: its bytes go to
 * a new file in the same folder, which is synced and takes its name when all is written; until
 * then, and when the disk is full, the old one stays as it is. It keeps the permissions of the old
 * one, and a symbolic link is followed. A file that grows, such as a log, has each record when the
 * call returns, whole or not at all; the first one replaces the old file. Pipes, terminals and what
 * the process has open (/dev/stdout, /dev/fd/3) are written directly. */

struct cameo_file;

struct cameo_file_options {
    size_t struct_size;
    bool grows;
    uint64_t
        keep; /* of a file that grows: bytes of the old one that stay before the first record */
};

#define CAMEO_FILE_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(struct cameo_file_options), false, 0                                                \
    }

/* options may be NULL. Fails where the file could not be made: made and freed again, it tells
 * whether a result could be written. */
CAMEO_API enum cameo_status cameo_file_new(const char *path,
                                           const struct cameo_file_options *options,
                                           struct cameo_file **out, struct cameo_error *err);
/* One record of a file that grows; after a failure the next one may succeed. */
CAMEO_API enum cameo_status cameo_file_write(struct cameo_file *file, const void *bytes,
                                             size_t size, struct cameo_error *err);
/* All is written: the file is synced, and one that does not grow takes its name. To be called once,
 * after the last write. */
CAMEO_API enum cameo_status cameo_file_commit(struct cameo_file *file, struct cameo_error *err);
/* Without a commit before it, nothing of a file that does not grow stays. NULL is fine. */
CAMEO_API void cameo_file_free(struct cameo_file *file);

/* Removes the temporary files of everything that this process is writing. For a program that is
 * about to end without returning from the library's functions, in a signal handler for example. */
CAMEO_API void cameo_remove_unfinished(void);

/* ---- curves for TensorBoard ----
 *
 * Event files as TensorBoard reads them. A writer has a file of its own in a folder, which may hold
 * those of earlier runs; what is added is in the file when the call returns, so that curves can be
 * watched while they grow, and a run that dies leaves all that it has told. Any thread may add.
 * step counts from 0; time is in seconds since 1970, 0 for now. */

struct cameo_events;

/* The folder is made where it is not, with those above it. `cameo train --tensorboard` names
 * curves "train/loss", "train/lr", "val/loss", "val/accuracy". */
CAMEO_API enum cameo_status cameo_events_new(const char *folder, struct cameo_events **out,
                                             struct cameo_error *err);
CAMEO_API void cameo_events_free(struct cameo_events *events);              /* NULL is fine */
CAMEO_API const char *cameo_events_path(const struct cameo_events *events); /* of the file */
/* A run goes on: what earlier files of the folder have of this step and later ones is forgotten. */
CAMEO_API enum cameo_status cameo_events_resume(struct cameo_events *events, int64_t step,
                                                double time, struct cameo_error *err);
/* A point of the curve called tag, which is stored as float. */
CAMEO_API enum cameo_status cameo_events_add_scalar(struct cameo_events *events, const char *tag,
                                                    int64_t step, double time, double value,
                                                    struct cameo_error *err);
/* Markdown. */
CAMEO_API enum cameo_status cameo_events_add_text(struct cameo_events *events, const char *tag,
                                                  int64_t step, double time, const char *text,
                                                  struct cameo_error *err);
/* Syncs and closes the file, which is where some file systems say that a point could not be kept.
 * To be called once, after the last point; the writer is still to be freed. */
CAMEO_API enum cameo_status cameo_events_finish(struct cameo_events *events,
                                                struct cameo_error *err);

/* ---- evaluating and predicting ----
 *
 * A data set goes through a model batch by batch: how good its predictions are, or the predictions
 * themselves. What this holds does not grow with the number of samples. */

/* After each batch; false ends it with CAMEO_CANCELLED. */
typedef bool cameo_rows_fn(void *arg, int64_t done, int64_t samples);

struct cameo_stream_options {
    size_t struct_size;
    /* 0: what the model fixes, else 32. Where the model fixes it, rows from the beginning fill up
     * the last batch, and their results are not used. */
    int64_t batch_size;
    bool raw_bytes;                              /* as for batches */
    const struct cameo_session_options *session; /* or NULL */
    struct cameo_cancel *cancel;                 /* or NULL */
    cameo_rows_fn *progress;                     /* or NULL */
    void *progress_arg;
    bool as_is; /* nodes in training mode run in it; otherwise it is turned off, which is noted */
};

#define CAMEO_STREAM_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(struct cameo_stream_options), 0, false, 0, 0, 0, 0, false                           \
    }

struct cameo_evaluate_options {
    size_t struct_size;
    /* Parted by commas: loss, accuracy, top-5 (any number), confusion, precision, recall, f1 (these
     * three also as f1-macro, f1-micro, f1-weighted), auc, auc-weighted, mae, mse, rmse, r2. NULL:
     * those that fit. docs/evaluating.md defines them. */
    const char *metrics;
    /* A loss of docs/training.md (cross-entropy, mse, ..); a model file with inputs prediction and
     * target and a scalar output; output:NAME for one that the model computes. NULL: that of the
     * training which the model carries, if any. */
    const char *loss;
    const char *output;     /* which output is judged; NULL: the only one, or labels and scores */
    const char *target;     /* the array of the data set that holds the truth; NULL: the one left */
    int64_t class_axis;     /* of scores */
    int64_t ignored;        /* targets that do not count */
    const int64_t *classes; /* labels, by column of the scores; NULL: 0, 1, .. */
    size_t class_count;
    const struct cameo_stream_options *stream; /* or NULL */
};

#define CAMEO_EVALUATE_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(struct cameo_evaluate_options), 0, 0, 0, 0, 1, -100, 0, 0, 0                        \
    }

struct cameo_evaluation;

/* Judges the predictions of a model against a data set. options may be NULL. *out is the caller's
 * to free and lives independently of both. */
CAMEO_API enum cameo_status cameo_model_evaluate(struct cameo_model *model,
                                                 struct cameo_dataset *dataset,
                                                 const struct cameo_evaluate_options *options,
                                                 struct cameo_evaluation **out,
                                                 struct cameo_error *err);
CAMEO_API void cameo_evaluation_free(struct cameo_evaluation *evaluation); /* NULL is fine */
CAMEO_API int64_t cameo_evaluation_samples(const struct cameo_evaluation *evaluation);

struct cameo_metric {
    const char *name;    /* "accuracy", "top-5" */
    const char *average; /* over classes: "macro", "micro", "weighted", "class 1"; "": none */
    double value;        /* NaN: it is not defined for this data */
    double bound;        /* by how much it may be wrong; 0: it is exact */
};
/* NULL past the end. */
CAMEO_API const struct cameo_metric *
cameo_evaluation_metric(const struct cameo_evaluation *evaluation, size_t index);

/* A class that occurs in targets or predictions, in the order of labels. */
struct cameo_class_count {
    int64_t label;
    uint64_t actual, predicted, correct;
};
CAMEO_API const struct cameo_class_count *
cameo_evaluation_class(const struct cameo_evaluation *evaluation, size_t index);
/* The confusion matrix, by numbers of classes: how often the one was taken for the other; -1 where
 * it was not asked for. */
CAMEO_API int64_t cameo_evaluation_confused(const struct cameo_evaluation *evaluation,
                                            size_t actual, size_t predicted);
/* Sentences on what was judged and how. NULL past the end. */
CAMEO_API const char *cameo_evaluation_note(const struct cameo_evaluation *evaluation,
                                            size_t index);

struct cameo_predict_options {
    size_t struct_size;
    const char *outputs;                       /* names, parted by commas; NULL: all */
    const struct cameo_stream_options *stream; /* or NULL */
};

#define CAMEO_PREDICT_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(struct cameo_predict_options), 0, 0                                                 \
    }

struct cameo_prediction {
    size_t struct_size;
    int64_t samples;
    size_t output_count; /* written */
    char note[256];      /* a sentence on how the data was fed; or "" */
};

#define CAMEO_PREDICTION_INIT                                                                      \
    {                                                                                              \
        sizeof(struct cameo_prediction), 0, 0,                                                     \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

/* Writes what the model predicts for a data set to .npz, .npy, .safetensors (arrays named after
 * outputs) or .csv (a column for each number), whole or not at all. Every output must have a row
 * for each sample; scores that come as a sequence of maps become a matrix. options and report may
 * be NULL. */
CAMEO_API enum cameo_status cameo_model_predict(const struct cameo_model *model,
                                                struct cameo_dataset *dataset, const char *path,
                                                const struct cameo_predict_options *options,
                                                struct cameo_prediction *report,
                                                struct cameo_error *err);

/* ---- data and models in memory ----
 *
 * For programs that hold their data themselves: arrays as a data set, batches from a function of
 * the caller's for the loop, and results that go to no file. */

/* A data set of arrays; the first axis of each counts samples. Memory without a deleter is lent
 * until the data set is freed, and must not change meanwhile. Nothing is copied where each sample
 * is dense, or all of the array lies column-major. names are copied. */
CAMEO_API enum cameo_status cameo_dataset_from_arrays(const char *const *names,
                                                      const struct cameo_tensor *tensors,
                                                      size_t count, struct cameo_dataset **out,
                                                      struct cameo_error *err);

/* An epoch begins, from 0, or is gone through again. Its first skip batches are not asked for: the
 * run is resumed after them. What next gives then must be what it would have given after them, for
 * a resumed run to end in the same bits. A status other than CAMEO_OK ends the run with it, and
 * with the message in err. */
typedef enum cameo_status cameo_batch_begin_fn(void *arg, uint64_t epoch, int64_t skip,
                                               struct cameo_error *err);
/* The next batch: feeds of each input of the trainer, lent until the next call or until the batches
 * are freed, and how many rows they have; 0 after the last one of an epoch. Deleters are not
 * called.
 */
typedef enum cameo_status cameo_batch_next_fn(void *arg, const struct cameo_feed **feeds,
                                              size_t *feed_count, int64_t *rows,
                                              struct cameo_error *err);

struct cameo_batch_source {
    size_t struct_size;
    cameo_batch_begin_fn *begin;
    cameo_batch_next_fn *next;
    void *arg;
    int64_t batches, samples; /* of an epoch, to be told; 0: not known */
    /* What a run that resumes from a checkpoint must agree on, in words; NULL: nothing. */
    const char *conditions;
};

#define CAMEO_BATCH_SOURCE_INIT                                                                    \
    {                                                                                              \
        sizeof(struct cameo_batch_source), 0, 0, 0, 0, 0, 0                                        \
    }

/* Batches for cameo_trainer_run, to train on or to validate with, that functions of the caller's
 * give; they are called on the thread of the run. Types must be those of the trainer's inputs.
 * Where a run stands is the epoch and how many of its batches were given (cameo_batches_tell:
 * sample). An epoch is as long as the source says by giving no rows; if steps limit the run and
 * batches is 0, an epoch that ends with the last step is not noticed. Such batches have no shapes,
 * no size, and need the trainer for as long as they live. */
CAMEO_API enum cameo_status cameo_batches_from_function(struct cameo_trainer *trainer,
                                                        const struct cameo_batch_source *source,
                                                        struct cameo_batches **out,
                                                        struct cameo_error *err);

/* The model with the variables as they are now, as cameo_trainer_save would write it, in memory:
 * what training changed is copied, the rest stays where it is. The trainer's model must outlive it,
 * unchanged; the trainer need not. *out is the caller's to free. */
CAMEO_API enum cameo_status cameo_trainer_copy_model(struct cameo_trainer *trainer,
                                                     struct cameo_model **out,
                                                     struct cameo_error *err);

/* Hears of the predictions of one output, all samples together; value is the function's to free. */
typedef void cameo_output_fn(void *arg, struct cameo_text name, struct cameo_value *value);

/* What cameo_model_predict writes, in memory instead: output is called for each one in order, once
 * all are computed. options and report may be NULL. */
CAMEO_API enum cameo_status cameo_model_predict_values(const struct cameo_model *model,
                                                       struct cameo_dataset *dataset,
                                                       const struct cameo_predict_options *options,
                                                       cameo_output_fn *output, void *output_arg,
                                                       struct cameo_prediction *report,
                                                       struct cameo_error *err);

/* ---- making models trainable ----
 *
 * An inference model plus the name of a loss and of an optimizer becomes a model that carries its
 * training, in ONNX's own terms: any runtime of training info can go on with it. */

enum cameo_schedule {
    CAMEO_SCHEDULE_CONSTANT = 0,
    CAMEO_SCHEDULE_STEP = 1,   /* times schedule_factor every schedule_steps */
    CAMEO_SCHEDULE_COSINE = 2, /* down to 0 at schedule_steps */
    CAMEO_SCHEDULE_LINEAR = 3,
    /* Times schedule_factor when the validation loss has not fallen for more than
     * schedule_patience validations, as PyTorch's ReduceLROnPlateau: cameo_trainer_run measures it
     * after each epoch, cameo_trainer_add_validation takes it otherwise */
    CAMEO_SCHEDULE_PLATEAU = 4
};

/* Names mean what they mean in PyTorch (lion and lamb: in optax), formula and defaults. A negative
 * number stands for the optimizer's default. */
struct cameo_prepare_options {
    size_t struct_size;
    /* A loss of docs/training.md: cross-entropy, mse, ..; a model file with inputs prediction and
     * target and a scalar output; output:NAME for a loss that the model computes itself */
    const char *loss;
    const char *output;    /* which output the loss reads; NULL: the only one */
    const char *target;    /* what the label input is to be called, if the model has not that name
                              already; NULL: "target" */
    const char *optimizer; /* one of docs/training.md: sgd, adamw, .. */
    double lr, momentum, weight_decay, beta1, beta2, epsilon; /* rmsprop's alpha is beta2 */
    enum cameo_schedule schedule;
    int64_t warmup;         /* updates over which the rate rises */
    int64_t schedule_steps; /* updates, warmup included; the period of CAMEO_SCHEDULE_STEP */
    double schedule_factor; /* of CAMEO_SCHEDULE_STEP and CAMEO_SCHEDULE_PLATEAU */
    double clip_norm;       /* of all gradients together; 0: none */
    int64_t accumulate;     /* batches whose gradients are averaged for one update */
    /* POSIX extended regular expressions over initializer names, and over the names that the
     * framework had for them where the file records them: train those alone; leave those alone.
     * NULL: what a user of the framework would call a parameter, see docs/training.md */
    const char *train, *freeze;
    bool keep_opset;    /* refuse a model whose opset is too old, instead of raising it */
    int64_t class_axis; /* of the prediction, for cross-entropy and nll; negative: from the end */
    /* Tensors that hold one repeated value, such as biases of zeros, come merged from exporters and
     * are trained apart; true: as the one they are in the file */
    bool keep_tied;
    /* A table of an embedding and its transpose, which the output layer reads, are one weight that
     * exporters write twice, and are trained as one; true: as the two they are in the file */
    bool keep_untied;
    /* Weights whose names match, and with no_decay_vectors those of fewer than two axes (biases,
     * scales of norms), have no weight decay; NULL: all others have */
    const char *no_decay;
    /* "REGEX=X", several with ";" between them: weights with a rate of their own */
    const char *lr_for;
    /* The part of the rate that the first update of a warmup has (Hugging Face's begin at 0);
     * negative: 1 / warmup */
    double warmup_from;
    bool no_decay_vectors;
    /* Further settings of the optimizer or the loss, "rho=0.95,gamma=1"; NULL: their defaults */
    const char *settings;
    /* Passes of the preparation, see cameo_prepare_pass: those to leave out, separated by commas;
     * NULL: none */
    const char *without;
    /* Stop after this pass: the model is then what the passes made of it so far, as one graph until
     * training info is written; NULL: after all */
    const char *until;
    /* A weight for each class, as PyTorch's: `weight` of cross-entropy and nll, `pos_weight` of
     * bce-logits (one, or one for each column). NULL: all are 1 */
    const double *class_weights;
    size_t class_weight_count;
    /* The lengths of warmup and schedule in epochs of updates_per_epoch updates, instead of warmup
     * and schedule_steps; 0: not given */
    double warmup_epochs, schedule_epochs;
    double updates_per_epoch;
    /* Of CAMEO_SCHEDULE_PLATEAU, as PyTorch has them: validations to wait, what share of the best
     * loss counts as a fall, validations to skip after a reduction, and the least rate */
    int64_t schedule_patience;
    double schedule_threshold;
    int64_t schedule_cooldown;
    double schedule_min_lr;
    /* The run that the model is prepared for: rows of its data, rows of a batch (0: what the model
     * fixes, else 32), epochs, or steps instead. Where they are given, updates_per_epoch need not
     * be, and a cosine or linear schedule without a length ends with the run. 0: not known */
    int64_t run_samples, run_batch_size, run_epochs, run_steps;
};

#define CAMEO_PREPARE_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(struct cameo_prepare_options), 0, 0, 0, 0, -1, -1, -1, -1, -1, -1,                  \
            CAMEO_SCHEDULE_CONSTANT, 0, 0, 0.1, 0, 1, 0, 0, false, 1, false, false, 0, 0, -1,      \
            false, 0, 0, 0, 0, 0, 0, 0, 0, 10, 1e-4, 0, 0, 0, 0, 0, 0                              \
    }

/* Whether an initializer is trained, and why or why not. */
struct cameo_choice {
    struct cameo_text name;
    bool trained;
    struct cameo_text reason;
    struct cameo_text original, folding; /* as in struct cameo_initializer */
};

struct cameo_preparation {
    const struct cameo_choice *const *choices;
    size_t choice_count;
    const struct cameo_text
        *changes; /* sentences: what of the model was raised, lifted, bypassed */
    size_t change_count;
    const struct cameo_findings *findings; /* all that stands in the way; sentences, as notes */
    struct cameo_text target;              /* the label input; empty: the loss needs none */
    struct cameo_text loss;                /* the algorithm's output that is the loss */
};

/* Adds training info. *report, if report is not NULL, tells what was done, or all that stands in
 * the way; it lives as long as the model. After a failure the model is of no further use but to be
 * freed. */
CAMEO_API enum cameo_status cameo_model_prepare(struct cameo_model *model,
                                                const struct cameo_prepare_options *options,
                                                const struct cameo_preparation **report,
                                                struct cameo_error *err);
/* Takes training info away again, and turns off Dropout and BatchNormalization that are in training
 * mode in the inference graph, as an export of a network in training mode has them. report may be
 * NULL; its changes name the nodes that were turned off. */
CAMEO_API enum cameo_status cameo_model_strip_training(struct cameo_model *model,
                                                       const struct cameo_edit **report,
                                                       struct cameo_error *err);
/* The same without a report. */
CAMEO_API enum cameo_status cameo_model_strip(struct cameo_model *model, struct cameo_error *err);

/* The whole training step as a plain model: inputs are the state that it reads, then what is fed;
 * outputs are the scalars of the algorithm, then the new state, "W.next" for "W". portable: neither
 * ai.cameo nor ai.onnx.preview.* is left in it, and what random operators draw is fed too. model
 * must outlive the new one. */
CAMEO_API enum cameo_status cameo_model_step(const struct cameo_model *model, bool portable,
                                             struct cameo_model **out, struct cameo_error *err);
/* The model with further outputs, "gradient.NAME": the derivatives of the sum of value `of` by the
 * values in wrt, inputs, initializers or what is between. Initializers among them may be fed
 * instead. model must outlive the new one. */
CAMEO_API enum cameo_status cameo_model_gradient(const struct cameo_model *model, const char *of,
                                                 const char *const *wrt, size_t wrt_count,
                                                 bool portable, struct cameo_model **out,
                                                 struct cameo_error *err);

/* How an operator is differentiated, as Markdown: the section about it in docs/gradients.md. It has
 * the formula, what is chosen where the operator is not smooth, operands without a gradient, what
 * is kept from the forward pass, and the graph that its rule emits for an example. domain NULL:
 * that of ai.onnx, or of whichever domain has it; name may be "domain.Name". opset 0: the newest;
 * for an older one, says how its version is upgraded. An unknown operator is CAMEO_NOT_FOUND. */
CAMEO_API enum cameo_status cameo_operator_gradient(const char *domain, const char *name,
                                                    int64_t opset, cameo_write_fn *write, void *to,
                                                    struct cameo_error *err);

/* ---- trainings that other frameworks saved ----
 *
 * What a checkpoint of another framework holds: its tensors, its optimizer and schedule, where it
 * stood. The format is recognized by content; nothing in it is executed. Bytes of tensors stay in
 * the files until they are read. Names are those of the framework. */

struct cameo_saved;

enum cameo_saved_role {
    CAMEO_SAVED_WEIGHT = 0,
    CAMEO_SAVED_BUFFER = 1,  /* a state of the network that no optimizer moves */
    CAMEO_SAVED_MASTER = 2,  /* the float copy of a weight that is kept in fewer bits */
    CAMEO_SAVED_SLOT = 3,    /* what an optimizer keeps for a weight */
    CAMEO_SAVED_AVERAGE = 4, /* a moving average of a weight */
    CAMEO_SAVED_RANDOM = 5,  /* the state of a random generator */
    CAMEO_SAVED_OTHER = 6
};

struct cameo_saved_tensor {
    enum cameo_saved_role role;
    struct cameo_text name; /* of a slot: that of its weight */
    struct cameo_text slot; /* "exp_avg"; "" unless it is one */
    const char *meaning;    /* of a slot: PyTorch's name for it; "" when nobody knows */
    enum cameo_dtype dtype;
    size_t rank;
    const int64_t *dims;
    int64_t elements;
    size_t piece_count;     /* that it lies in */
    struct cameo_text file; /* of the first piece, beside the checkpoint's path */
};

struct cameo_saved_setting {
    const char *name; /* "lr", "beta1", "nesterov" (0 or 1) */
    double value;
};

/* Weights with settings of their own. */
struct cameo_saved_group {
    size_t setting_count, name_count;
    const struct cameo_saved_setting *settings; /* those that are known */
    const struct cameo_text *names;
};

struct cameo_saved_summary {
    const char *system;        /* "PyTorch Lightning" */
    const char *format;        /* in words */
    struct cameo_text version; /* of the framework; "" when it is not said */
    size_t tensor_count, group_count, fact_count, file_count, unknown_count, missing_count;
    bool has_optimizer;
    struct cameo_text optimizer;   /* as the framework calls it; "" when it does not say */
    const char *rule, *arithmetic; /* "adam", "torch" */
    const char *clip;              /* how gradients are clipped, "global" */
    double clip_limit;             /* NaN: not known; 0: not */
    double loss_scale;             /* NaN: none */
    int64_t step, epoch;           /* -1: not known */
    int64_t accumulate;            /* batches to an update; 0: not known */
    int64_t ranks;                 /* that the state was spread over; 0: it was not */
    struct cameo_text schedule;    /* its name; "" when it has none */
    const char *schedule_known;    /* "none", "known", "unknown" */
    struct cameo_text phases;      /* of the schedule, as JSON; "" unless it is known */
};

/* path is a file or a folder. */
CAMEO_API enum cameo_status cameo_saved_open(const char *path, struct cameo_saved **out,
                                             struct cameo_error *err);

struct cameo_saved_options {
    size_t struct_size;
    bool allow_links; /* files in a folder may be symbolic links, to anywhere, or have hard links */
};

#define CAMEO_SAVED_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(struct cameo_saved_options), false                                                  \
    }

/* The same; NULL for options: cameo_saved_open. */
CAMEO_API enum cameo_status cameo_saved_open_with(const char *path,
                                                  const struct cameo_saved_options *options,
                                                  struct cameo_saved **out,
                                                  struct cameo_error *err);
CAMEO_API void cameo_saved_free(struct cameo_saved *saved); /* NULL is fine */
CAMEO_API const struct cameo_saved_summary *cameo_saved_summary(const struct cameo_saved *saved);
/* NULL past the last. */
CAMEO_API const struct cameo_saved_tensor *cameo_saved_tensor(const struct cameo_saved *saved,
                                                              size_t index);
CAMEO_API const struct cameo_saved_group *cameo_saved_group(const struct cameo_saved *saved,
                                                            size_t index);
/* Whatever else it tells: a key and JSON, cut where it is long. */
CAMEO_API const struct cameo_entry *cameo_saved_fact(const struct cameo_saved *saved, size_t index);
/* The files that were read; sentences on what was not understood; sentences on what is needed to go
 * on with the training and is not there. */
CAMEO_API const struct cameo_text *cameo_saved_file(const struct cameo_saved *saved, size_t index);
CAMEO_API const struct cameo_text *cameo_saved_unknown(const struct cameo_saved *saved,
                                                       size_t index);
CAMEO_API const struct cameo_text *cameo_saved_missing(const struct cameo_saved *saved,
                                                       size_t index);
/* A tensor, whole. *out is the caller's to free. */
CAMEO_API enum cameo_status cameo_saved_read(const struct cameo_saved *saved, size_t index,
                                             struct cameo_value **out, struct cameo_error *err);

/* ---- trainings of other frameworks that go on here ---- */

struct cameo_import_options {
    size_t struct_size;
    /* The loss and what it reads, which no checkpoint knows; and what counts instead of what the
     * checkpoint says: optimizer and its numbers. NULL: none of it */
    const struct cameo_prepare_options *prepare;
    /* Whether prepare's schedule (with warmup, schedule_steps, schedule_factor), clip_norm and
     * accumulate count: their defaults cannot be told from what was meant */
    bool use_schedule, use_clip_norm, use_accumulate;
    bool weights_only; /* weights and statistics, no training */
    bool partial;      /* what is left over, on either side, is no error */
    /* Rules for names, one to a line: "INITIALIZER = NAME", "/REGEX/ = REPLACEMENT"; NULL: none */
    const char *map;
    /* Settings as JSON, see docs/importing.md; NULL: none. They count instead of what the
     * checkpoint says, and prepare's instead of both */
    const char *settings;
    bool allow_links; /* files in a folder may be symbolic links, to anywhere, or have hard links */
};

#define CAMEO_IMPORT_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(struct cameo_import_options), 0, false, false, false, false, false, 0, 0, false     \
    }

/* How a tensor of the model was found in the checkpoint. One name is empty: it is left over on the
 * other side. */
struct cameo_import_match {
    struct cameo_text initializer;
    struct cameo_text source; /* the framework's name; of several, parted by ", " */
    struct cameo_text how;    /* "by name", "by its layer, transposed", "kept", .. */
};

struct cameo_import_report {
    const char *system, *format; /* that the checkpoint is of */
    const struct cameo_import_match *matches;
    size_t match_count;
    const struct cameo_text *notes; /* sentences: what was assumed, what begins anew */
    size_t note_count;
    const struct cameo_findings *findings; /* all that stands in the way; sentences, as notes */
    const struct cameo_preparation *preparation; /* NULL: it did not come to that */
};

/* Gives the model the weights of a checkpoint of another framework, a file or folder whose format
 * is recognized, and unless weights_only its training at the point where it was saved. *report, if
 * report is not NULL, lives as long as the model. The checkpoint's files are read when the model is
 * saved or used, and must stay as they are until then. After a failure the model is of no further
 * use but to be freed. */
CAMEO_API enum cameo_status cameo_model_import(struct cameo_model *model, const char *path,
                                               const struct cameo_import_options *options,
                                               const struct cameo_import_report **report,
                                               struct cameo_error *err);

/* ---- training info, piece by piece ----
 *
 * What cameo_model_prepare makes of a loss and an optimizer can be made by hand: entries of
 * training_info, each with an initialization graph, an algorithm graph and their bindings. They are
 * read with cameo_model_training and cameo_model_graph. Changes go into the model at hand and show
 * in what describes it; a session or trainer of it must be made anew. Whatever is not changed is
 * saved byte for byte. kind is CAMEO_GRAPH_INITIALIZATION or CAMEO_GRAPH_ALGORITHM everywhere. */

/* Adds an entry without graphs and bindings at the end; *entry, if entry is not NULL, receives its
 * number. An IR version below 7 is raised to 7, which the log is told. */
CAMEO_API enum cameo_status cameo_model_add_training(struct cameo_model *model, size_t *entry,
                                                     struct cameo_error *err);
/* Takes an entry away; later ones move up. With the last one goes the import of
 * ai.onnx.preview.training, where nothing else uses it, as with cameo_model_strip. */
CAMEO_API enum cameo_status cameo_model_remove_training(struct cameo_model *model, size_t entry,
                                                        struct cameo_error *err);
/* Gives an entry this graph, in ONNX's text form, in place of what it has; NULL: none. Operators of
 * ai.onnx.preview.training are imported by themselves. */
CAMEO_API enum cameo_status cameo_model_set_training_graph(struct cameo_model *model, size_t entry,
                                                           enum cameo_graph_kind kind,
                                                           const char *text,
                                                           struct cameo_error *err);
/* The same with a copy of the main graph of another model. */
CAMEO_API enum cameo_status cameo_model_copy_training_graph(struct cameo_model *model, size_t entry,
                                                            enum cameo_graph_kind kind,
                                                            const struct cameo_model *from,
                                                            struct cameo_error *err);
/* The graph in ONNX's text form; CAMEO_NOT_FOUND: there is none. */
CAMEO_API enum cameo_status cameo_model_write_training_graph(const struct cameo_model *model,
                                                             size_t entry,
                                                             enum cameo_graph_kind kind,
                                                             cameo_write_fn *write, void *to,
                                                             struct cameo_error *err);
/* All bindings of a graph, in place of those there are: key is the variable, value the output that
 * it is given. */
CAMEO_API enum cameo_status
cameo_model_set_training_bindings(struct cameo_model *model, size_t entry,
                                  enum cameo_graph_kind kind, const struct cameo_note *bindings,
                                  size_t count, struct cameo_error *err);
/* One of them: added or changed; value NULL: taken away. */
CAMEO_API enum cameo_status cameo_model_bind_training(struct cameo_model *model, size_t entry,
                                                      enum cameo_graph_kind kind,
                                                      const char *variable, const char *value,
                                                      struct cameo_error *err);
/* Brings entries of ONNX 1.7, whose algorithms are complete and call the inference graph with
 * GraphCall, to the form of 1.8 and later, in which the inference graph completes them. A call with
 * inputs of the algorithm as arguments becomes the inference graph itself, whose inputs are fed
 * instead; any other becomes a copy of its nodes. Values of initializers and their names stay.
 * *converted, if converted is not NULL, receives how many entries there were. Trainers and
 * cameo_model_step do this by themselves, without changing the model. */
CAMEO_API enum cameo_status
cameo_model_upgrade_training(struct cameo_model *model, size_t *converted, struct cameo_error *err);
/* What cameo_model_check finds in this entry. */
CAMEO_API enum cameo_status cameo_model_check_training(const struct cameo_model *model,
                                                       size_t entry,
                                                       const struct cameo_check_options *options,
                                                       struct cameo_findings **out,
                                                       struct cameo_error *err);

/* ---- giving training back to other frameworks ----
 *
 * A model's weights, and the state of its training as prepare or an import made it, in the files
 * that another framework saves itself and continues from. docs/checkpoints.md tells which. */

struct cameo_export_format {
    struct cameo_text name;   /* for cameo_export_options: "pytorch" */
    struct cameo_text system; /* "PyTorch" */
    struct cameo_text what;   /* what is written */
};

/* NULL past the end. */
CAMEO_API const struct cameo_export_format *cameo_export_format(size_t index);

struct cameo_export_options {
    size_t struct_size;
    const char *to;              /* name of a format */
    bool weights_only;           /* no optimizer, which a model without training has not */
    struct cameo_cancel *cancel; /* set while it is written: CAMEO_CANCELLED; NULL: none */
    /* Of formats that are code: all that cannot be written, for the caller to free; NULL where all
     * can. NULL: the message tells, as far as it reaches. */
    struct cameo_findings **findings;
    bool no_check; /* of code: no recorded results, so that the model is not run */
};

#define CAMEO_EXPORT_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(struct cameo_export_options), 0, false, 0, 0, false                                 \
    }

/* A tensor as the framework has it. */
struct cameo_exported_tensor {
    struct cameo_text name; /* of a weight or buffer, "fc1.weight" */
    struct cameo_text
        slot; /* of an optimizer's state for it, "exp_avg"; empty: the weight itself */
    struct cameo_text role; /* weight, buffer, slot, average, random, other */
    struct cameo_text type; /* "float[64,32]" */
};

struct cameo_exported {
    const struct cameo_exported_tensor *const *tensors;
    size_t tensor_count;
    struct cameo_text optimizer;    /* as the framework calls it; empty: none */
    int64_t step;                   /* updates so far; -1: not said */
    uint64_t bytes;                 /* of all tensors */
    const struct cameo_text *notes; /* sentences: what the receiver must set or know */
    size_t note_count;
};

/* Writes a file or folder at path, whole or not at all; path NULL: only tells what would be
 * written. *report, if report is not NULL, lives as long as the model. options may not be NULL. A
 * training whose arithmetic the other framework does not have is CAMEO_UNSUPPORTED, with the
 * reason. */
CAMEO_API enum cameo_status cameo_model_export(const struct cameo_model *model, const char *path,
                                               const struct cameo_export_options *options,
                                               const struct cameo_exported **report,
                                               struct cameo_error *err);

/* ---- optimizing ---- */

/* A pass: a step of the way from a model to what runs. Sessions and trainers take all of them. */
struct cameo_pass {
    size_t struct_size;
    const char *name, *summary; /* "fold", "constants computed" */
    bool required;              /* cannot be left out */
    bool on_request;            /* runs only where it is asked for */
};

#define CAMEO_PASS_INIT                                                                            \
    {                                                                                              \
        sizeof(struct cameo_pass), 0, 0, false, false                                              \
    }

/* The passes in the order they run; one may be there twice. False past the end. */
CAMEO_API bool cameo_pass(size_t index, struct cameo_pass *out);

/* The same of the passes that cameo_model_prepare runs. */
CAMEO_API bool cameo_prepare_pass(size_t index, struct cameo_pass *out);

/* Lists hold names of passes, parted by commas. */
struct cameo_optimize_options {
    size_t struct_size;
    const char *passes;  /* these and the required ones; NULL: all but those on request */
    const char *without; /* not these; NULL: none is left out */
    const char *until;   /* the model as it is after this pass, its last run; NULL: after all */
    /* Standard operators in place of what was fused, and of functions: neither ai.cameo nor
     * ai.onnx.preview.* is left. Otherwise each group of nodes that was fused is a call of a
     * function of the model, which any runtime can inline and Cameo fuses again. */
    bool portable;
    const struct cameo_registry *registry; /* operators beside the built-in ones, or NULL */
    size_t memory_limit; /* bytes that computed constants may hold; 0: a limit of the library's */
    bool as_is;          /* nodes in training mode stay in it; otherwise it is turned off */
};

#define CAMEO_OPTIMIZE_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(struct cameo_optimize_options), 0, 0, 0, false, 0, 0, false                         \
    }

/* What one pass did. Nodes in bodies of control flow count too, a fused group counts as one. */
struct cameo_pass_result {
    const char *name;
    bool skipped;
    size_t nodes_before, nodes_after;
};

struct cameo_optimization {
    const struct cameo_pass_result *const *passes;
    size_t pass_count;
    size_t nodes_before;              /* of the model that was given */
    size_t nodes;                     /* a fused group is one */
    size_t nodes_inlined;             /* with the nodes of fused groups in their place */
    size_t function_count;            /* written for what was fused or is younger than the opset */
    const struct cameo_text *changes; /* sentences: what of the model was raised, and what for */
    size_t change_count;
};

/* The model as Cameo runs it, as a model: inputs, outputs, metadata and, from 17 on, the opset are
 * those it had; nodes that no pass touched are as they were. A model that carries its training is
 * refused: strip it, or write its step, and optimize that. *report, if report is not NULL, lives as
 * long as *out. model must outlive the new one. options may be NULL. */
CAMEO_API enum cameo_status cameo_model_optimize(const struct cameo_model *model,
                                                 const struct cameo_optimize_options *options,
                                                 struct cameo_model **out,
                                                 const struct cameo_optimization **report,
                                                 struct cameo_error *err);

/* ---- inferring types and shapes ---- */

struct cameo_infer_options {
    size_t struct_size;
    bool strict;                           /* an operator that is not supported is a problem too */
    bool list_values;                      /* in the report */
    const struct cameo_registry *registry; /* operators beside the built-in ones, or NULL */
    /* Write what could be inferred although there are problems. The report lists them all, and the
     * status is CAMEO_OK. */
    bool partial;
    /* Inputs that have an initializer keep their declared type only: a caller may feed another
     * value. Otherwise the initializer is taken for the value, as ONNX's inference does. Before IR
     * version 4 it is the value in any case. */
    bool open_inputs;
};

#define CAMEO_INFER_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(struct cameo_infer_options), false, false, 0, false, false                          \
    }

struct cameo_inferred_value {
    struct cameo_text place; /* "function 'f': "; empty in the main graph */
    struct cameo_text name;
    struct cameo_text type; /* "float[N,floor((H + 1)/2)]"; "?" where nothing is known */
    size_t unknown;         /* dimensions that are neither a number nor made of names of the model;
                               an unknown rank counts as one */
};

/* Values are results of nodes, in bodies of control flow, functions and training info too. */
struct cameo_inference {
    size_t value_count;    /* of the whole model */
    size_t declared_count; /* of which the file said all dimensions */
    size_t typed_count;    /* of which the element type is known now */
    size_t complete_count; /* and no dimension is unknown */
    size_t dim_count, number_count, symbolic_count, unknown_count; /* dimensions of all of them */
    const struct cameo_inferred_value *const *values;              /* if they are to be listed */
    size_t listed_count;
    /* Violations: what contradicts itself. Warnings: operators whose results are left open. */
    const struct cameo_findings *findings;
};

/* Fills the value_info of the graph, of bodies of control flow, of functions (from IR version 10
 * on: what holds at every call) and of the graphs of training info; declared types are kept and
 * filled where they leave something open, everything else of the model is as it was. Dimensions are
 * numbers, names of the model or expressions of these; those that are unknown but the same are
 * called unk__0, unk__1 and so on. Where the model contradicts itself, nothing is changed, the call
 * fails and the report lists every problem. Weights are not read. *report, if report is not NULL,
 * lives as long as the model. options may be NULL. */
CAMEO_API enum cameo_status cameo_model_infer(struct cameo_model *model,
                                              const struct cameo_infer_options *options,
                                              const struct cameo_inference **report,
                                              struct cameo_error *err);

/* Forgets what the model declares of shapes: the dimensions of inputs, outputs and value_info, in
 * bodies, functions and training info too, and with ranks their number as well. Element types stay.
 * What can still run does not depend on what a producer wrote there. */
CAMEO_API enum cameo_status cameo_model_erase_shapes(struct cameo_model *model, bool ranks,
                                                     struct cameo_error *err);

/* ---- expanding functions ---- */

/* Which operators a backend has to implement (core), and which have a body of those below them. The
 * table is in docs/core-operators.md. */
enum cameo_level {
    CAMEO_LEVEL_NONE,     /* no operator of the library */
    CAMEO_LEVEL_CORE,     /* a primitive that must have a kernel */
    CAMEO_LEVEL_FUNCTION, /* has a body over lower levels */
    CAMEO_LEVEL_FUSED     /* of domain ai.cameo, for speed; has such a body too */
};

/* The domain of ONNX's own operators is "". */
CAMEO_API enum cameo_level cameo_operator_level(const char *domain, const char *name);

/* What is expanded: the functions that the model defines. Lists hold names, parted by commas: NAME,
 * DOMAIN::NAME or DOMAIN::*, of functions of the model and of operators. */
struct cameo_expand_options {
    size_t struct_size;
    const char *only;   /* these functions and operators and no others; NULL: as below */
    const char *except; /* not these; NULL: no exception */
    bool operators;     /* operators that have a function body too */
    bool core;          /* all but core operators; refused where that cannot be */
    const struct cameo_registry *registry; /* operators beside the built-in ones, or NULL */
    /* Receives all that must be expanded and cannot, for the caller to free; NULL where the call
     * succeeds. NULL: nobody asks. */
    struct cameo_findings **findings;
};

#define CAMEO_EXPAND_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(struct cameo_expand_options), 0, 0, false, false, 0, 0                              \
    }

/* Nodes are those of the whole model: of training info and bodies of control flow too, but not of
 * functions that stay. */
struct cameo_expansion {
    size_t nodes_before, nodes;
    size_t call_count;                /* calls of functions that were inlined */
    size_t operator_count;            /* nodes that gave way to the body of their operator */
    size_t function_count;            /* functions that the model no longer has */
    const struct cameo_text *changes; /* sentences: what of the model was raised, and what for */
    size_t change_count;
    const struct cameo_text *left; /* operators that have a body, but not for the case at hand */
    size_t left_count;
};

/* The model with functions inlined, in training info too. A node that is not expanded, and every
 * name of the model, stays as it was; names inside a body get that of the call as a prefix. What
 * was named, or asked for with core, and has no body is refused, all of it at once. *report,
 * if report is not NULL, lives as long as *out. model must outlive the new one. options may be
 * NULL. */
CAMEO_API enum cameo_status cameo_model_expand(const struct cameo_model *model,
                                               const struct cameo_expand_options *options,
                                               struct cameo_model **out,
                                               const struct cameo_expansion **report,
                                               struct cameo_error *err);

/* ---- compiling ----
 *
 * A model, or its training step, as native code with one C function and no runtime: an object, an
 * archive, a shared library or a module of WebAssembly, with a header beside it that says how it is
 * called. docs/compiling.md has more. It needs Cameo's module for MLIR, clang and, for libraries,
 * LLVM's linker; what is missing is named, with what to install. */

/* How far a model is taken. */
enum cameo_emit {
    CAMEO_EMIT_BY_NAME = 0,  /* as the ending of the path says */
    CAMEO_EMIT_ONNX = 1,     /* text: the ONNX dialect of MLIR */
    CAMEO_EMIT_CORE = 2,     /* the same of the model expanded to core operators */
    CAMEO_EMIT_LINALG = 3,   /* text: linalg on tensors */
    CAMEO_EMIT_BUFFERS = 4,  /* text: loops over memory that has its places */
    CAMEO_EMIT_LLVM = 5,     /* text: LLVM IR of the whole, optimized */
    CAMEO_EMIT_ASSEMBLY = 6, /* text */
    CAMEO_EMIT_OBJECT = 7,   /* .o */
    CAMEO_EMIT_ARCHIVE = 8,  /* .a */
    CAMEO_EMIT_LIBRARY = 9   /* .so, .wasm */
};

enum cameo_weight_place {
    CAMEO_WEIGHTS_INSIDE = 0, /* in the object */
    CAMEO_WEIGHTS_BESIDE = 1, /* in a file beside it, NAME.weights, which the caller maps */
    CAMEO_WEIGHTS_CALLER = 2  /* the caller has them; the header says where each must lie */
};

typedef void cameo_tell_fn(void *arg, const char *what);

struct cameo_compile_options {
    size_t struct_size;
    const char *path; /* of the file to write; NULL: the text goes to write */
    enum cameo_emit emit;
    enum cameo_weight_place weights;
    const char *target; /* as LLVM spells it, "aarch64-linux-gnu"; NULL: this machine */
    const char *cpu;    /* "native": this machine's; NULL: the least of its kind */
    const char *name;   /* what functions are called; NULL: made of the model's name */
    bool pure;          /* no kernels of ours: generated code only */
    bool train_step;    /* of a model with training info: its step */
    cameo_write_fn *write;
    void *write_to;
    cameo_tell_fn *tell; /* told what is being done; NULL: nobody is */
    void *tell_arg;
    struct cameo_cancel *cancel; /* looked at between steps: CAMEO_CANCELLED; NULL: none */
    /* Receives all that keeps the model from being compiled, of which the message has as many as
     * fit, for the caller to free; or NULL, where the message says all. NULL: nobody asks. */
    struct cameo_findings **findings;
    /* A training step begins with what the training's initialization gives, not with the values
     * that the model holds. */
    bool initialize;
};

#define CAMEO_COMPILE_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(struct cameo_compile_options), 0, CAMEO_EMIT_BY_NAME, CAMEO_WEIGHTS_INSIDE, 0, 0,   \
            0, false, false, 0, 0, 0, 0, 0, 0, false                                               \
    }

/* What was written. Texts are "" where there is no such file. */
struct cameo_compilation {
    const char *path, *header_path, *weights_path;
    const char *prototype; /* of the function that runs it */
    enum cameo_emit emit;
    size_t code_bytes;   /* of code and constants, without the weights */
    size_t weight_bytes; /* wherever they lie */
    size_t arena_bytes;  /* that a run needs, at least; enough where it is fixed */
    size_t state_bytes;  /* of a training step */
    bool arena_is_fixed;
    const struct cameo_text *needs; /* functions of others that it calls: memcpy, expf */
    size_t need_count;
};

/* All that keeps the model from being compiled (an operator, a type) is named in one message. Files
 * come into being whole or not at all. *report, if report is not NULL, is the caller's to free.
 * options must have a path or write. */
CAMEO_API enum cameo_status cameo_model_compile(const struct cameo_model *model,
                                                const struct cameo_compile_options *options,
                                                struct cameo_compilation **report,
                                                struct cameo_error *err);
CAMEO_API void cameo_compilation_free(struct cameo_compilation *report); /* NULL is fine */

/* A compiled library (CAMEO_EMIT_LIBRARY, for this machine) as a model: one node, which runs the
 * compiled code. It lives as long as the library is open; sessions of it are run like any other.
 * The library is code that runs with the rights of the caller: open those that you trust. */
struct cameo_compiled;
CAMEO_API enum cameo_status cameo_compiled_open(const char *path, struct cameo_compiled **out,
                                                struct cameo_error *err);
CAMEO_API const struct cameo_model *cameo_compiled_model(const struct cameo_compiled *compiled);
/* Nobody may be running it. NULL is fine. */
CAMEO_API void cameo_compiled_free(struct cameo_compiled *compiled);

/* ---- converting between opset versions ----
 *
 * The same model under newer or older versions of its operator sets: nodes that mean the same there
 * stay as they are, others become that version's form, names kept. docs/converting.md has more. */

struct cameo_target_opset {
    size_t struct_size;
    const char *domain; /* "" is ai.onnx */
    int64_t version;
};

#define CAMEO_TARGET_OPSET_INIT                                                                    \
    {                                                                                              \
        sizeof(struct cameo_target_opset), "", 0                                                   \
    }

struct cameo_convert_options {
    size_t struct_size;
    const struct cameo_target_opset *opsets; /* domains that are not listed stay; NULL: every domain
                                                that ONNX defines goes to its newest version */
    size_t opset_count;
    /* Nodes in training mode stay in it; otherwise it is turned off, unless the model carries its
     * training. */
    bool as_is;
};

#define CAMEO_CONVERT_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(struct cameo_convert_options), 0, 0, false                                          \
    }

/* Nodes of one operator that were written in another version of it. */
struct cameo_version_change {
    struct cameo_text domain, op;
    int64_t from, to;      /* versions of the operator; to 0: it has none that old */
    size_t nodes;          /* of the file */
    struct cameo_text how; /* "axes are an input"; may be empty */
};

struct cameo_conversion {
    const struct cameo_version_change *const *changes;
    size_t change_count;
    size_t nodes_changed, nodes_kept; /* those that mean the same keep their bytes */
    const struct cameo_text *notes;   /* sentences: what else of the model was raised or lowered */
    size_t note_count;
    const struct cameo_findings *findings; /* all that the versions cannot express */
};

/* Converts the inference graph, training info, functions and sub-graphs, and sets opset imports and
 * IR version. Where a node has no form in the version asked for, or the model is broken, nothing
 * is changed, and the report has every reason. *report, if report is not NULL, lives as long as the
 * model. options may be NULL. */
CAMEO_API enum cameo_status cameo_model_convert(struct cameo_model *model,
                                                const struct cameo_convert_options *options,
                                                const struct cameo_conversion **report,
                                                struct cameo_error *err);

/* Gradients against differences of values, in double precision: one row for each initializer and
 * input of floats. */
struct cameo_gradcheck {
    struct cameo_text name;
    int64_t elements;
    size_t checked;           /* of them */
    double analytic, numeric; /* of the element that differs most */
    double worst;             /* by how much, as a part of the larger */
    int64_t at;               /* its number */
    bool reached;             /* false: the outputs do not depend on it */
    double below, above;      /* differences to one side, of the same element */
    size_t kinks; /* elements at a kink or too near one for differences to tell: the sides disagree
                     with the gradient between them, or narrower differences say something else.
                     They do not count as differing */
};

struct cameo_gradcheck_options {
    size_t struct_size;
    uint64_t seed;  /* of inputs that are made up, and of which elements are looked at */
    size_t samples; /* elements looked at per tensor */
};

#define CAMEO_GRADCHECK_OPTIONS_INIT                                                               \
    {                                                                                              \
        sizeof(struct cameo_gradcheck_options), 0, 20                                              \
    }

/* Calls row for each, as soon as it is done. Feeds name inputs by their number in the model; those
 * that are missing are made up as cameo_session_make_inputs does, with batches of 2. options may be
 * NULL. */
typedef void cameo_gradcheck_fn(void *arg, const struct cameo_gradcheck *row);
CAMEO_API enum cameo_status cameo_model_gradcheck(const struct cameo_model *model,
                                                  const struct cameo_gradcheck_options *options,
                                                  const struct cameo_feed *feeds, size_t feed_count,
                                                  cameo_gradcheck_fn *row, void *arg,
                                                  struct cameo_error *err);

#ifdef __cplusplus
}
#endif

#endif
