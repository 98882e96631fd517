/* Compiled libraries as models: one node of an operator that is the library. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "api/running.h"

#include "base/crc32c.h"
#include "base/file.h"
#include "base/memory.h"
#include "mlir/lowering/glue_text.h"
#include "mlir/runtime/compiled.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOMAIN CM_API_COMPILED_DOMAIN

struct arena_block;

struct cameo_compiled {
    char path[301]; /* for messages */
    void *library;
    const struct cm_compiled *info;
    struct cm_mapping weights; /* none where they are inside */
    struct cameo_registry *registry;
    struct cameo_model *model;
    struct arena_block *_Atomic spare; /* the arena of a run that is over; or NULL */
    size_t arena_bytes;                /* that a run is given at first */
};

/* ---- elements below a byte ----
 *
 * Compiled code has one to a byte; values have them packed. */

static bool is_packed(const struct cm_compiled_port *port)
{
    return cm_dtype_size((enum cm_dtype)port->type) == 0;
}

static struct cm_tensor borrow(const struct cameo_tensor *lent)
{
    struct cm_shape shape = {.rank = lent->rank};

    for (int d = 0; d < shape.rank; d++)
        shape.dims[d] = lent->dims[d];
    return cm_tensor_borrow((enum cm_dtype)lent->dtype, &shape, lent->data);
}

static unsigned char *unpack(const struct cm_tensor *tensor)
{
    const int64_t count = cm_tensor_count(tensor);
    unsigned char *to = cm_malloc((size_t)count + 1);

    if (to)
        cm_mlir_unpack(to, tensor);
    return to;
}

/* ---- a run ---- */

/* One input or output, while it runs. */
struct lent {
    struct cameo_tensor tensor;
    unsigned char *unpacked; /* owned; NULL: the memory is the value's */
    int64_t shape[CM_MAX_RANK];
    bool placed; /* an output that has its memory */
};

struct compiled_run {
    struct cameo_compiled *compiled;
    struct cameo_call *call;
    struct lent *lent;
    struct cm_compiled_tensor *tensors; /* inputs, then outputs */
    enum cameo_status status;           /* of what was placed */
};

/* Memory for an output whose shape is known. */
static void *place_output(struct compiled_run *run, size_t i, const int64_t *shape, size_t bytes)
{
    const struct cm_compiled *info = run->compiled->info;
    const struct cm_compiled_port *port = &info->outputs[i];
    struct lent *lent = &run->lent[info->n_inputs + i];

    if (lent->placed) /* by a try that lacked memory later on; the same inputs give the same shape
                       */
        return is_packed(port) ? lent->unpacked : lent->tensor.data;
    lent->tensor = (struct cameo_tensor)CAMEO_TENSOR_INIT;
    run->status =
        cameo_call_allocate(run->call, i, (enum cameo_dtype)port->type, port->rank, shape);
    if (run->status || !cameo_call_output(run->call, i, &lent->tensor))
        return NULL;
    lent->placed = true;
    lent->unpacked = is_packed(port) ? cm_malloc(bytes + 1) : NULL;
    return is_packed(port) ? lent->unpacked : lent->tensor.data;
}

static void *place(void *arg, size_t output, const int64_t *shape, size_t bytes)
{
    static unsigned char nothing;
    void *data = place_output(arg, output, shape, bytes);

    return data || bytes ? data : &nothing;
}

static bool lend_input(struct compiled_run *run, size_t i)
{
    const struct cm_compiled_port *port = &run->compiled->info->inputs[i];
    struct cm_compiled_tensor *to = &run->tensors[i];
    struct lent *lent = &run->lent[i];

    lent->tensor = (struct cameo_tensor)CAMEO_TENSOR_INIT;
    if (!cameo_call_input(run->call, i, &lent->tensor) || lent->tensor.rank != port->rank) {
        run->status = cameo_call_fail(run->call, CAMEO_BAD_ARGUMENT, port->wrong);
        return false;
    }
    for (int d = 0; d < port->rank; d++)
        lent->shape[d] = lent->tensor.dims[d];
    *to = (struct cm_compiled_tensor){lent->tensor.data, lent->shape, lent->tensor.bytes};
    if (is_packed(port)) {
        const struct cm_tensor tensor = borrow(&lent->tensor);

        lent->unpacked = unpack(&tensor);
        *to = (struct cm_compiled_tensor){lent->unpacked, lent->shape,
                                          (size_t)cm_tensor_count(&tensor)};
        return lent->unpacked != NULL;
    }
    return true;
}

static bool lend_output(struct compiled_run *run, size_t i)
{
    const struct cm_compiled *info = run->compiled->info;
    const struct cm_compiled_port *port = &info->outputs[i];
    struct cm_compiled_tensor *to = &run->tensors[info->n_inputs + i];
    size_t bytes = (size_t)port->element_bytes;

    if (!port->is_fixed)
        return true; /* it comes through place */
    for (int d = 0; d < port->rank; d++)
        bytes *= (size_t)port->dims[d];
    *to = (struct cm_compiled_tensor){place_output(run, i, port->dims, bytes), NULL, bytes};
    return to->data || !bytes;
}

/* The arena of a run, with its size before it: another thread's may be larger or smaller. */
struct arena_block {
    _Alignas(CM_COMPILED_ALIGNMENT) size_t bytes; /* behind this head */
};

/* One of at least so many bytes: the one of a run that is over, or a new one. */
static struct arena_block *take_arena(struct cameo_compiled *compiled, size_t bytes)
{
    struct arena_block *block = atomic_exchange(&compiled->spare, NULL);

    if (block && block->bytes >= bytes)
        return block;
    cm_free(block);
    block = bytes < SIZE_MAX / 4 ? cm_malloc_aligned(CM_COMPILED_ALIGNMENT, sizeof *block + bytes)
                                 : NULL;
    if (block)
        block->bytes = bytes;
    return block;
}

/* Runs with an arena that is large enough, which where it is not fixed is found by trying. */
static int run_in_arena(struct compiled_run *run)
{
    struct cameo_compiled *compiled = run->compiled;
    const struct cm_compiled *info = compiled->info;
    const bool fixed = info->flags & CM_COMPILED_FIXED_ARENA;
    struct cm_compiled_call call = {.inputs = run->tensors,
                                    .outputs = run->tensors + info->n_inputs,
                                    .weights = compiled->weights.data,
                                    .place = place,
                                    .place_arg = run};
    struct arena_block *block;
    size_t bytes = compiled->arena_bytes;
    int code;

    do {
        block = take_arena(compiled, bytes);
        if (!block)
            return CM_COMPILED_ARENA;
        call.arena = block + 1;
        call.arena_bytes = block->bytes;
        bytes = 2 * block->bytes;
        code = info->run(&call);
        cm_free(atomic_exchange(&compiled->spare, block));
    } while (code == CM_COMPILED_ARENA && !fixed);
    return code;
}

static enum cameo_status finish(struct compiled_run *run, int code)
{
    const struct cm_compiled *info = run->compiled->info;

    if (code) {
        const enum cameo_status status =
            code == CM_COMPILED_ARENA ? CAMEO_NO_MEMORY : CAMEO_BAD_ARGUMENT;
        char text[CM_ERROR_SIZE];

        snprintf(text, sizeof text, "%s: %.600s", run->compiled->path, info->error(code));
        return run->status ? run->status : cameo_call_fail(run->call, status, text);
    }
    for (size_t i = 0; i < info->n_outputs; i++) {
        const struct lent *lent = &run->lent[info->n_inputs + i];

        if (lent->unpacked) {
            const struct cm_tensor tensor = borrow(&lent->tensor);

            cm_mlir_pack(&tensor, lent->unpacked);
        }
    }
    return CAMEO_OK;
}

static enum cameo_status run_library(struct cameo_call *call, void *arg)
{
    struct cameo_compiled *compiled = arg;
    const struct cm_compiled *info = compiled->info;
    const size_t count = info->n_inputs + info->n_outputs;
    struct compiled_run run = {.compiled = compiled, .call = call};
    enum cameo_status status;
    bool ok;

    run.lent = cm_calloc(count + 1, sizeof *run.lent);
    run.tensors = cm_calloc(count + 1, sizeof *run.tensors);
    ok = run.lent && run.tensors;
    for (size_t i = 0; i < info->n_inputs && ok; i++)
        ok = lend_input(&run, i);
    for (size_t i = 0; i < info->n_outputs && ok; i++)
        ok = lend_output(&run, i);
    if (ok)
        status = finish(&run, run_in_arena(&run));
    else
        status = run.status ? run.status
                            : cameo_call_fail(call, CAMEO_NO_MEMORY, "no memory for the operands");
    for (size_t i = 0; i < count && run.lent; i++)
        cm_free(run.lent[i].unpacked);
    cm_free(run.lent);
    cm_free(run.tensors);
    return status;
}

static enum cameo_status infer_library(struct cameo_infer *in, void *arg)
{
    const struct cm_compiled *info = ((struct cameo_compiled *)arg)->info;

    for (size_t i = 0; i < info->n_outputs; i++) {
        const struct cm_compiled_port *port = &info->outputs[i];
        const enum cameo_status status = cameo_infer_set(
            in, i, (enum cameo_dtype)port->type, port->rank, port->rank ? port->dims : NULL);

        if (status)
            return status;
    }
    return CAMEO_OK;
}

/* ---- the model ---- */

/* A name in ONNX's text form, where it may be any bytes in quotes. */
static void put_name(struct cm_glue_text *text, const char *name)
{
    cm_glue_put(text, "\"");
    for (; *name; name++)
        if (*name == '"' || *name == '\\' || (unsigned char)*name < 32)
            cm_glue_put(text, "\\x%02x", (unsigned char)*name);
        else
            cm_glue_put(text, "%c", *name);
    cm_glue_put(text, "\"");
}

static void put_values(struct cm_glue_text *text, const struct cm_compiled_port *ports,
                       size_t count)
{
    cm_glue_put(text, "(");
    for (size_t i = 0; i < count; i++) {
        const struct cm_compiled_port *port = &ports[i];

        /* Without brackets it is a scalar; with empty ones its rank would be open. */
        cm_glue_put(text, "%s%s%s", i ? ", " : "", cm_dtype_name((enum cm_dtype)port->type),
                    port->rank ? "[" : "");
        for (int d = 0; d < port->rank; d++) {
            cm_glue_put(text, "%s", d ? ", " : "");
            if (port->dims[d] >= 0)
                cm_glue_put(text, "%lld", (long long)port->dims[d]);
            else if (*port->dim_names[d])
                put_name(text, port->dim_names[d]);
            else
                cm_glue_put(text, "?");
        }
        cm_glue_put(text, port->rank ? "] " : " ");
        put_name(text, port->name);
    }
    cm_glue_put(text, ")");
}

static void put_names(struct cm_glue_text *text, const struct cm_compiled_port *ports, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cm_glue_put(text, "%s", i ? ", " : "");
        put_name(text, ports[i].name);
    }
}

/* A model with one node, in ONNX's text form. */
static struct cm_str write_model(struct cm_arena *arena, const struct cm_compiled *info)
{
    struct cm_glue_text text = {.arena = arena};

    cm_glue_put(&text, "<ir_version: 10, opset_import: [\"\": 20, \"" DOMAIN "\": 1]>\n%s ",
                info->name);
    put_values(&text, info->inputs, info->n_inputs);
    cm_glue_put(&text, " => ");
    put_values(&text, info->outputs, info->n_outputs);
    cm_glue_put(&text, " {\n    ");
    put_names(&text, info->outputs, info->n_outputs);
    cm_glue_put(&text, " = " DOMAIN ".%s(", info->name);
    put_names(&text, info->inputs, info->n_inputs);
    cm_glue_put(&text, ")\n}\n");
    return (struct cm_str){text.data, text.size};
}

static enum cameo_status register_library(struct cameo_compiled *compiled, struct cm_arena *arena,
                                          struct cameo_error *err)
{
    const struct cm_compiled *info = compiled->info;
    struct cameo_custom_operator op = CAMEO_CUSTOM_OPERATOR_INIT;
    struct cameo_operand *operands =
        CM_NEW_ARRAY(arena, struct cameo_operand, info->n_inputs + info->n_outputs);

    for (size_t i = 0; i < info->n_inputs + info->n_outputs; i++) {
        const struct cm_compiled_port *port =
            i < info->n_inputs ? &info->inputs[i] : &info->outputs[i - info->n_inputs];

        operands[i] = (struct cameo_operand)CAMEO_OPERAND_INIT;
        operands[i].name =
            cm_arena_printf(arena, "%s%zu", i < info->n_inputs ? "in" : "out", i).data;
        operands[i].types = CAMEO_TYPE_BIT(port->type);
    }
    op.domain = DOMAIN;
    op.name = info->name;
    op.inputs = operands;
    op.input_count = info->n_inputs;
    op.outputs = operands + info->n_inputs;
    op.output_count = info->n_outputs;
    op.infer = infer_library;
    op.run = run_library;
    op.sizes_at_run = true;
    op.arg = compiled;
    const enum cameo_status status = cameo_registry_new(&compiled->registry, err);
    return status ? status : cameo_registry_add(compiled->registry, &op, err);
}

/* ---- opening ---- */

struct open_call {
    struct cameo_compiled *compiled;
    const char *path;
    struct cm_error err;
};

static enum cm_status find_description(struct open_call *call)
{
    struct cameo_compiled *compiled = call->compiled;
    char *path = realpath(call->path, NULL); /* without a slash it would be looked for elsewhere */

    if (!path)
        return cm_fail(&call->err, CM_NOT_FOUND, "%.600s: there is no such file", call->path);
    snprintf(compiled->path, sizeof compiled->path, "%s", call->path);
    compiled->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    free(path);
    if (!compiled->library)
        return cm_api_refuse_library(call->path, dlerror(), &call->err);
    const struct cm_compiled *info = dlsym(compiled->library, CM_COMPILED_SYMBOL);
    if (!info || memcmp(info->magic, CM_COMPILED_MAGIC, sizeof info->magic) != 0)
        return cm_fail(&call->err, CM_BAD_ARGUMENT,
                       "%.600s: is not a library that 'cameo compile' wrote", call->path);
    if (info->abi != CM_COMPILED_ABI)
        return cm_fail(&call->err, CM_UNSUPPORTED,
                       "%.600s: was compiled by another version of Cameo; compile it again",
                       call->path);
    if (info->flags & CM_COMPILED_STEP)
        return cm_fail(&call->err, CM_UNSUPPORTED,
                       "%.600s: is a training step, which a program of your own calls; its header "
                       "says how",
                       call->path);
    if (info->flags & CM_COMPILED_CALLER && info->weight_bytes)
        return cm_fail(&call->err, CM_UNSUPPORTED,
                       "%.600s: its weights are given by the program that calls it; its header "
                       "says how, and with weights inside or beside it would run here",
                       call->path);
    compiled->info = info;
    return CM_OK;
}

static enum cm_status map_weights(struct open_call *call, struct cm_arena *arena)
{
    struct cameo_compiled *compiled = call->compiled;
    const struct cm_compiled *info = compiled->info;
    const char *dot = strrchr(cm_path_name(call->path), '.');
    const size_t stem = dot ? (size_t)(dot - call->path) : strlen(call->path);

    if (info->flags & CM_COMPILED_OWN_WEIGHTS || !info->weight_bytes)
        return CM_OK;
    const char *path = cm_arena_printf(arena, "%.*s.weights", (int)stem, call->path).data;
    CM_TRY(cm_error_context(&call->err, cm_file_map(path, false, &compiled->weights, &call->err),
                            "%.400s has its weights in a file", call->path));
    if (compiled->weights.size != info->weight_bytes ||
        cm_crc32c(0, compiled->weights.data, compiled->weights.size) != info->weight_check)
        return cm_fail(&call->err, CM_BAD_ARGUMENT, "%.400s: are not the weights of %.400s", path,
                       call->path);
    return CM_OK;
}

static enum cm_status open_guarded(struct cm_guard *guard, void *arg)
{
    struct open_call *call = arg;
    struct cameo_compiled *compiled = call->compiled;
    struct cameo_load_options load = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_error err = {0};
    struct cm_arena arena;

    CM_TRY(find_description(call));
    cm_arena_init(&arena, guard);
    enum cm_status status = map_weights(call, &arena);
    if (status == CM_OK) {
        const struct cm_str text = write_model(&arena, compiled->info);

        load.format = CAMEO_FORMAT_TEXT;
        if (register_library(compiled, &arena, &err) != CAMEO_OK ||
            cameo_model_load_memory(text.data, text.size, &load, &compiled->model, &err) !=
                CAMEO_OK)
            status = cm_fail(&call->err, (enum cm_status)err.status, "%.400s: %.500s", call->path,
                             err.message);
    }
    cm_arena_release(&arena);
    if (status)
        return status;
    cameo_model_set_registry(compiled->model, compiled->registry);
    /* What is not planned is guessed at first. */
    compiled->arena_bytes = (size_t)compiled->info->arena_bytes +
                            (compiled->info->flags & CM_COMPILED_FIXED_ARENA ? 0 : (size_t)1 << 20);
    return CM_OK;
}

enum cameo_status cameo_compiled_open(const char *path, struct cameo_compiled **out,
                                      struct cameo_error *err)
{
    CM_API_NEED(path, err);
    CM_API_NEED(out, err);
    struct open_call call = {.compiled = cm_calloc(1, sizeof *call.compiled), .path = path};
    enum cm_status status;

    *out = NULL;
    if (call.compiled)
        status = cm_guarded(0, &call.err, open_guarded, &call);
    else
        status = cm_fail(&call.err, CM_NO_MEMORY, "no memory for a library");
    if (status)
        cameo_compiled_free(call.compiled);
    else
        *out = call.compiled;
    return cm_api_done(status, &call.err, err);
}

const struct cameo_model *cameo_compiled_model(const struct cameo_compiled *compiled)
{
    return compiled ? compiled->model : NULL;
}

void cameo_compiled_free(struct cameo_compiled *compiled)
{
    if (!compiled)
        return;
    cameo_model_free(compiled->model);
    cameo_registry_free(compiled->registry);
    cm_mapping_release(&compiled->weights);
    if (compiled->library)
        dlclose(compiled->library);
    cm_free(atomic_load(&compiled->spare));
    cm_free(compiled);
}
