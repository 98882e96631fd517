/* The steps from a program to files. The module plans the arena and finds checks; the glue in C is
 * written for these. Then the module goes on with the glue and the kernels linked in. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/toolchain/produce.h"

#include "base/clock.h"
#include "base/crc32c.h"
#include "mlir/runtime/compiled.h"
#include "mlir/toolchain/ar.h"
#include "mlir/toolchain/link.h"

#include <string.h>

struct production {
    const struct cm_mlir_program *program;
    const struct cm_produce_options *options;
    struct cm_arena *arena;
    struct cm_produced *out;
    struct cm_workspace workspace;
    const char *clang, *linker;
    struct cm_glue glue;
    const struct cm_mlir_module *module;
    struct cm_mlir_job job;
    struct cm_mlir_product product;
    struct cm_mlir_build *build;
    struct cm_error *err;
};

/* ---- the programs of others ---- */

/* Buffers are not compiled, but for another machine than this one clang is asked whether there is
 * such a one. */
static enum cm_status find_tools(enum cm_produce_kind kind, const struct cm_clang_target *target,
                                 struct cm_arena *arena, const char **clang, const char **linker,
                                 struct cm_error *err)
{
    *clang = *linker = NULL;
    if (kind == CM_PRODUCE_BUFFERS && !*target->triple && !*target->cpu)
        return CM_OK;
    CM_TRY(cm_tool_find(arena, "clang", clang, err));
    if (kind == CM_PRODUCE_LIBRARY)
        CM_TRY(cm_tool_find(arena, cm_link_program(target->triple), linker, err));
    return CM_OK;
}

enum cm_status cm_produce_check(enum cm_produce_kind kind, const struct cm_clang_target *target,
                                struct cm_arena *arena, struct cm_error *err)
{
    struct cm_workspace workspace;
    const char *clang, *linker;

    CM_TRY(find_tools(kind, target, arena, &clang, &linker, err));
    if (!*target->triple && !*target->cpu)
        return CM_OK;
    CM_TRY(cm_workspace_open(&workspace, arena, err));
    return cm_clang_check_target(&workspace, clang, target, err);
}

/* ---- weights ---- */

static size_t stored_bytes(const struct cm_tensor *tensor)
{
    return (size_t)cm_tensor_count(tensor) * cm_mlir_element_bytes(tensor->type);
}

static void put_tensor(unsigned char *to, const struct cm_tensor *tensor)
{
    if (cm_dtype_size(tensor->type) == 0)
        cm_mlir_unpack(to, tensor);
    else if (tensor->type == CM_BOOL) /* files may hold other bytes than 0 and 1 */
        for (int64_t i = 0; i < cm_tensor_count(tensor); i++)
            to[i] = ((const uint8_t *)tensor->data)[i] != 0;
    else if (cm_tensor_bytes(tensor))
        memcpy(to, tensor->data, cm_tensor_bytes(tensor));
}

static enum cm_status gather_weights(struct production *p)
{
    const struct cm_mlir_program *program = p->program;
    struct cm_glue_state *state = p->options->state;
    size_t bytes = program->weight_bytes;

    if (state) {
        bytes = (bytes + CM_COMPILED_ALIGNMENT - 1) / CM_COMPILED_ALIGNMENT * CM_COMPILED_ALIGNMENT;
        state->initial_offset = bytes;
        bytes += state->bytes;
    }
    unsigned char *block = cm_arena_alloc(p->arena, bytes);
    for (size_t i = 0; i < program->n_weights; i++) {
        const struct cm_mlir_weight *weight = &program->weights[i];

        if (weight->offset > program->weight_bytes ||
            program->weight_bytes - weight->offset < stored_bytes(weight->tensor))
            return cm_fail(p->err, CM_BAD_MODEL, "weight '%.*s' lies outside the weights",
                           CM_STR_FMT(weight->name));
        put_tensor(block + weight->offset, weight->tensor);
    }
    for (size_t i = 0; state && i < state->count; i++)
        put_tensor(block + state->initial_offset + state->variables[i].offset,
                   p->options->initial[state->variables[i].number]);
    p->out->weights = (struct cm_str){(const char *)block, bytes};
    return CM_OK;
}

/* ---- the module ---- */

/* Says what comes next, unless nobody wants it any more. */
static enum cm_status next_step(struct production *p, const char *what)
{
    if (cm_cancelled(p->options->cancel))
        return cm_fail(p->err, CM_CANCELLED, "it was cancelled before %s", what);
    if (p->options->tell)
        p->options->tell(p->options->tell_arg, what);
    return CM_OK;
}

static enum cm_status open_workspace(struct production *p)
{
    CM_TRY(cm_workspace_open(&p->workspace, p->arena, p->err));
    p->workspace.cancel = p->options->cancel;
    return CM_OK;
}

static enum cm_mlir_form form_of(enum cm_produce_kind kind)
{
    return kind == CM_PRODUCE_BUFFERS    ? CM_MLIR_BUFFERS
           : kind == CM_PRODUCE_LLVM     ? CM_MLIR_LLVM
           : kind == CM_PRODUCE_ASSEMBLY ? CM_MLIR_ASSEMBLY
                                         : CM_MLIR_OBJECT;
}

static void end_build(void *production)
{
    struct production *p = production;

    p->module->end(p->build);
    p->module->release(&p->product);
}

static enum cm_status module_failed(struct production *p)
{
    const char *why = p->product.error ? p->product.error : "memory ran out"; /* even for that */

    return cm_fail(p->err, strstr(why, "memory ran out") ? CM_NO_MEMORY : CM_BAD_MODEL,
                   "MLIR refuses the program: %.800s", why);
}

/* What the module made lives until the arena ends. */
static enum cm_status plan(struct production *p)
{
    const struct cm_produce_options *o = p->options;

    p->job = (struct cm_mlir_job){.text = {p->program->text.data, p->program->text.size},
                                  .form = form_of(o->kind),
                                  .triple = o->target.triple,
                                  .cpu = o->target.cpu,
                                  .features = "",
                                  .position_independent = true};
    cm_arena_defer(p->arena, end_build, p);
    p->build = p->module->plan(&p->job, &p->product);
    return p->build ? CM_OK : module_failed(p);
}

static enum cm_status finish_build(struct production *p)
{
    p->job.exported = p->glue.exported;
    p->job.n_exported = p->glue.n_exported;
    if (p->options->weights == CM_GLUE_INSIDE)
        p->job.weights = (struct cm_mlir_bytes){p->out->weights.data, p->out->weights.size};
    const bool done = p->module->finish(p->build);
    p->module->end(p->build); /* linking needs its memory */
    p->build = NULL;
    return done ? CM_OK : module_failed(p);
}

/* ---- C ---- */

static enum cm_status compile(struct production *p, const char *name, struct cm_str source,
                              struct cm_mlir_bytes *out)
{
    struct cm_str bitcode;

    CM_TRY(cm_clang_compile(&p->workspace, p->clang, &p->options->target, name, source, false,
                            &bitcode, p->err));
    *out = (struct cm_mlir_bytes){bitcode.data, bitcode.size};
    return CM_OK;
}

static enum cm_status compile_all(struct production *p)
{
    struct cm_clang_sources sources = {0};

    CM_TRY(cm_clang_kernels(p->program, p->arena, &sources, p->err));
    struct cm_mlir_bytes *kernels = CM_NEW_ARRAY(p->arena, struct cm_mlir_bytes, sources.count);
    CM_TRY(compile(p, "glue", p->glue.source, &p->job.glue));
    for (size_t i = 0; i < sources.count; i++) {
        struct cm_str text;

        CM_TRY(cm_clang_expand(sources.items[i], p->arena, &text, p->err));
        CM_TRY(compile(p, cm_arena_printf(p->arena, "kernels_%zu", i).data, text, &kernels[i]));
    }
    p->job.kernels = kernels;
    p->job.n_kernels = sources.count;
    return CM_OK;
}

static enum cm_status write_glue(struct production *p)
{
    const struct cm_mlir_product *planned = &p->product;
    const struct cm_produce_options *o = p->options;
    const struct cm_glue_options options = {
        .name = o->name,
        .source = o->source,
        .weights = o->weights,
        .is_library = o->kind == CM_PRODUCE_LIBRARY,
        .state = o->state,
        .weight_bytes = p->out->weights.size,
        .weight_check = cm_crc32c(0, p->out->weights.data, p->out->weights.size),
        .planned_bytes = (size_t)planned->arena_bytes,
        .arena_is_fixed = planned->arena_is_fixed,
        .messages = planned->messages,
        .n_messages = planned->n_messages};

    if (planned->arena_bytes < 0)
        return cm_fail(p->err, CM_BAD_MODEL, "the module plans %lld bytes",
                       (long long)planned->arena_bytes);
    CM_TRY(cm_glue_write(p->program, &options, p->arena, &p->glue, p->err));
    p->out->header = p->glue.header;
    p->out->prototype = p->glue.prototype;
    p->out->arena_bytes = p->glue.arena_bytes;
    p->out->arena_is_fixed = planned->arena_is_fixed;
    p->out->state_bytes = o->state ? o->state->bytes : 0;
    return CM_OK;
}

/* ---- files ---- */

/* Is it a function that every C library has: of memory, or of math.h? LLVM makes sincos, which
 * libraries of mathematics have beside it, of a sine and a cosine of one number. */
static bool is_everywhere(struct cm_str name)
{
    static const char *const memory[] = {"memcpy", "memset", "memmove"};
    static const char *const math[] = {
        "acos",  "acosh",     "asin",  "asinh",  "atan",      "atan2", "atanh",  "cbrt",
        "ceil",  "copysign",  "cos",   "cosh",   "erf",       "erfc",  "exp",    "exp2",
        "expm1", "fabs",      "floor", "fma",    "fmax",      "fmin",  "fmod",   "hypot",
        "ldexp", "lgamma",    "log",   "log10",  "log1p",     "log2",  "lrint",  "nearbyint",
        "pow",   "remainder", "rint",  "round",  "roundeven", "sin",   "sincos", "sinh",
        "sqrt",  "tan",       "tanh",  "tgamma", "trunc"};

    for (size_t i = 0; i < CM_COUNT(memory); i++)
        if (cm_str_is(name, memory[i]))
            return true;
    for (size_t i = 0; i < CM_COUNT(math); i++) {
        const size_t size = strlen(math[i]);

        if (cm_str_starts(name, math[i]) &&
            (name.size == size || (name.size == size + 1 && name.data[size] == 'f')))
            return true;
    }
    return false;
}

/* Small processors have no instructions for numbers of 64 bits, or none for floats: there the
 * compiler that links the program has a library of its own with functions like __aeabi_ldivmod. */
static enum cm_status check_needs(struct production *p, bool is_narrow)
{
    for (size_t i = 0; i < p->out->n_needs; i++)
        if (!is_everywhere(p->out->needs[i]) &&
            !(is_narrow && cm_str_starts(p->out->needs[i], "__")))
            return cm_fail(p->err, CM_BAD_MODEL,
                           "the code calls '%.*s', which is neither memcpy, memset nor of math.h",
                           CM_STR_FMT(p->out->needs[i]));
    return CM_OK;
}

/* What a library for the target has to bring along, as bitcode: a module of WebAssembly all that
 * it calls, others nothing. */
static enum cm_status compile_library(struct production *p, struct cm_str *out)
{
    static const char source[] = "mlir/runtime/freestanding.c";
    const struct cm_clang_target *target = &p->options->target;
    struct cm_str text;

    *out = CM_STR_NONE;
    if (!cm_link_is_wasm(target->triple))
        return CM_OK;
    CM_TRY(cm_clang_expand(cm_mlir_source_find(source), p->arena, &text, p->err));
    return cm_clang_compile(&p->workspace, p->clang, target, "freestanding", text, true, out,
                            p->err);
}

static enum cm_status finish(struct production *p, struct cm_str object)
{
    const struct cm_produce_options *o = p->options;
    struct cm_object_facts facts = {0};
    struct cm_str library;
    const size_t inside = o->weights == CM_GLUE_INSIDE ? p->out->weights.size : 0;

    p->out->bytes = object;
    if (o->kind < CM_PRODUCE_OBJECT)
        return CM_OK;
    if (cm_object_read(object, p->arena, &facts)) {
        p->out->code_bytes = facts.bytes > inside ? facts.bytes - inside : 0;
        p->out->needs = facts.undefined;
        p->out->n_needs = facts.n_undefined;
    } else {
        p->out->code_bytes = object.size > inside ? object.size - inside : 0;
    }
    CM_TRY(check_needs(p, facts.is_narrow));
    if (o->kind == CM_PRODUCE_ARCHIVE) {
        const struct cm_ar_member member = {.name = cm_arena_printf(p->arena, "%s.o", o->name).data,
                                            .bytes = object,
                                            .symbols = p->glue.exported,
                                            .n_symbols = p->glue.n_exported};

        return cm_ar_write(&member, 1, p->arena, &p->out->bytes, p->err);
    }
    if (o->kind != CM_PRODUCE_LIBRARY)
        return CM_OK;
    CM_TRY(next_step(p, "linking"));
    CM_TRY(open_workspace(p));
    CM_TRY(compile_library(p, &library));
    CM_TRY(cm_link_shared(&p->workspace, p->linker, o->target.triple, o->file, object, library,
                          p->glue.exported, p->glue.n_exported, &p->out->bytes, p->err));
    if (library.size) { /* it has all that the object called */
        p->out->code_bytes = p->out->bytes.size > inside ? p->out->bytes.size - inside : 0;
        p->out->n_needs = 0;
    }
    return CM_OK;
}

enum cm_status cm_produce(const struct cm_mlir_program *program,
                          const struct cm_produce_options *options, struct cm_arena *arena,
                          struct cm_produced *out, struct cm_error *err)
{
    struct production *p = CM_NEW(arena, struct production);

    *p = (struct production){.program = program,
                             .options = options,
                             .arena = arena,
                             .out = out,
                             .module = options->module,
                             .err = err};
    *out = (struct cm_produced){0};
    CM_TRY(find_tools(options->kind, &options->target, arena, &p->clang, &p->linker, err));
    if (options->state)
        cm_glue_lay_out_state(options->state);
    CM_TRY(gather_weights(p));
    CM_TRY(next_step(p, "planning memory"));
    CM_TRY(plan(p));
    if (options->kind != CM_PRODUCE_BUFFERS) {
        CM_TRY(write_glue(p));
        CM_TRY(next_step(p, "compiling kernels"));
        CM_TRY(open_workspace(p));
        CM_TRY(compile_all(p));
        /* The longest step, and one that cannot be cancelled: whoever kills it finds nothing left.
         */
        cm_workspace_close(&p->workspace);
        CM_TRY(next_step(p, "generating code"));
    }
    CM_TRY(finish_build(p));
    return finish(p, (struct cm_str){p->product.bytes, p->product.size});
}
