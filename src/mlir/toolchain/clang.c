/* Running clang over glue and kernels. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "mlir/toolchain/clang.h"

#include "mlir/lowering/glue_text.h"

#include <string.h>

/* ---- which sources ---- */

/* Behind the parameters that begin at text, which is at "(": the first byte that is no space. */
static char after_parameters(struct cm_str text)
{
    size_t depth = 0, i = 0;

    for (; i < text.size; i++) {
        depth += text.data[i] == '(';
        depth -= text.data[i] == ')';
        if (depth == 0)
            break;
    }
    for (i++; i < text.size; i++)
        if (text.data[i] != ' ' && text.data[i] != '\n')
            return text.data[i];
    return '\0';
}

bool cm_clang_defines(struct cm_str source, struct cm_str function)
{
    for (size_t i = 1; i + function.size < source.size; i++) {
        const char *at = source.data + i;
        const struct cm_str rest = {at + function.size, source.size - i - function.size};

        if (*at == *function.data && memcmp(at, function.data, function.size) == 0 &&
            !cm_glue_is_word(at[-1]) && *rest.data == '(' && after_parameters(rest) == '{')
            return true;
    }
    return false;
}

/* A file that is written for a type, "f32.c", defines the functions that end in it through macros:
 * cameo_product_f32. */
static bool is_of_type(const struct cm_mlir_source *source, struct cm_str function)
{
    const char *slash = strrchr(source->name, '/');
    const struct cm_str name = cm_str(slash ? slash + 1 : source->name);
    const size_t size = name.size > 2 ? name.size - 2 : 0; /* without ".c" */

    return size && function.size > size && function.data[function.size - size - 1] == '_' &&
           memcmp(function.data + function.size - size, name.data, size) == 0;
}

enum cm_status cm_clang_kernels(const struct cm_mlir_program *program, struct cm_arena *arena,
                                struct cm_clang_sources *out, struct cm_error *err)
{
    for (size_t k = 0; k < program->n_kernels; k++) {
        const struct cm_mlir_source *found = NULL;
        bool listed = false;

        for (size_t i = 0; i < cm_mlir_source_count && !found; i++) {
            const struct cm_mlir_source *source = &cm_mlir_sources[i];
            struct cm_str text;

            if (!cm_str_starts(cm_str(source->name), "kernels/") ||
                !cm_str_ends(cm_str(source->name), ".c"))
                continue;
            CM_TRY(cm_clang_expand(source, arena, &text, err));
            if (is_of_type(source, program->kernels[k]) ||
                cm_clang_defines(text, program->kernels[k]))
                found = source;
        }
        if (!found)
            return cm_fail(err, CM_UNSUPPORTED, "there is no kernel '%.*s'",
                           CM_STR_FMT(program->kernels[k]));
        for (size_t i = 0; i < out->count; i++)
            listed = listed || out->items[i] == found;
        if (!listed)
            *CM_PUSH(arena, out) = found;
    }
    return CM_OK;
}

/* What `#include "NAME"` at the beginning of line names; empty where it is another line. */
static struct cm_str included(struct cm_str line)
{
    static const char directive[] = "#include \"";
    const size_t begin = sizeof directive - 1;

    if (!cm_str_starts(line, directive))
        return CM_STR_NONE;
    const char *end = memchr(line.data + begin, '"', line.size - begin);
    return end ? (struct cm_str){line.data + begin, (size_t)(end - line.data) - begin}
               : CM_STR_NONE;
}

enum { INCLUDE_DEPTH = 20 };

static enum cm_status expand(const struct cm_mlir_source *source, struct cm_glue_text *to,
                             int depth, struct cm_error *err)
{
    const char *at = source->text, *end = source->text + source->size;

    if (depth > INCLUDE_DEPTH)
        return cm_fail(err, CM_LIMIT, "%s: files include each other", source->name);
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const struct cm_str line = {at, (size_t)((newline ? newline + 1 : end) - at)};
        const struct cm_str name = included(line);
        const struct cm_mlir_source *inner =
            name.size ? cm_mlir_source_find(cm_arena_str(to->arena, name).data) : NULL;

        if (name.size && !inner)
            return cm_fail(err, CM_NOT_FOUND, "%s: there is no '%.*s'", source->name,
                           CM_STR_FMT(name));
        if (inner)
            CM_TRY(expand(inner, to, depth + 1, err));
        else
            cm_glue_put_bytes(to, line);
        at += line.size;
    }
    return CM_OK;
}

enum cm_status cm_clang_expand(const struct cm_mlir_source *source, struct cm_arena *arena,
                               struct cm_str *out, struct cm_error *err)
{
    struct cm_glue_text text = {.arena = arena};

    CM_TRY(expand(source, &text, 0, err));
    *out = (struct cm_str){text.data, text.size};
    return CM_OK;
}

/* ---- targets ---- */

/* How clang is told of a processor: x86 has architectures, all others have processors. */
static const char *cpu_option(struct cm_arena *arena, const struct cm_clang_target *target)
{
    const struct cm_str triple = cm_str(target->triple);
    bool x86 = cm_str_starts(triple, "x86") || cm_str_starts(triple, "i") ||
               cm_str_starts(triple, "amd64");

#if defined(__x86_64__) || defined(__i386__)
    x86 = x86 || triple.size == 0;
#endif
    return cm_arena_printf(arena, "%s%s", x86 ? "-march=" : "-mcpu=", target->cpu).data;
}

/* What code of ours takes for granted: weights are written as this machine has them, and sizes do
 * not fit into 16 bits. */
static const char granted[] =
    "_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, \"ORDER\");\n"
    "_Static_assert(sizeof(void *) >= 4, \"POINTERS\");\n";

/* Has clang compile that. A processor is given to the compiler proper, which lists those that
 * there are, or to the program around it, which knows what this machine's is. */
static enum cm_status probe(const struct cm_workspace *workspace, const char *clang,
                            const struct cm_clang_target *target, bool is_native, bool *succeeded,
                            struct cm_str *said, struct cm_error *err)
{
    struct cm_arena *arena = workspace->arena;
    const char *arguments[16] = {clang, "-c", "-emit-llvm", "-o", "/dev/null"};
    size_t n = 5;

    arguments[n++] = cm_workspace_path(workspace, "granted.c");

    if (*target->triple)
        arguments[n++] = cm_arena_printf(arena, "--target=%s", target->triple).data;
    if (is_native) {
        arguments[n++] = cpu_option(arena, target);
    } else if (*target->cpu) {
        arguments[n++] = "-Xclang";
        arguments[n++] = "-target-cpu";
        arguments[n++] = "-Xclang";
        arguments[n++] = target->cpu;
    }
    return cm_tool_try(workspace, arguments, succeeded, said, err);
}

/* The next of the processors that clang lists in one line, parted by commas; empty at its end. */
static struct cm_str next_processor(struct cm_str *list)
{
    size_t size = 0;

    while (list->size && (*list->data == ',' || *list->data == ' '))
        *list = (struct cm_str){list->data + 1, list->size - 1};
    while (size < list->size && list->data[size] != ',' && list->data[size] != '\n')
        size++;
    const struct cm_str name = {list->data, size};
    *list = (struct cm_str){list->data + size, list->size - size};
    return name;
}

static struct cm_str find_list(struct cm_str said)
{
    static const char before[] = "valid target CPU values are: ";
    const char *at = memmem(said.data, said.size, before, sizeof before - 1);

    if (!at)
        return CM_STR_NONE;
    at += sizeof before - 1;
    return (struct cm_str){at, said.size - (size_t)(at - said.data)};
}

/* The one that is spelled nearly so, and some that are spread over the list. */
static struct cm_str some_processors(struct cm_arena *arena, struct cm_str list, struct cm_str wish)
{
    enum { SHOWN = 8, NEAR = 3 };
    struct cm_glue_text text = {.arena = arena};
    struct cm_str rest = list, name, best = CM_STR_NONE;
    size_t count = 0, distance = NEAR, i = 0;

    for (; (name = next_processor(&rest)).size; count++)
        if (cm_str_distance(name, wish) < distance) {
            distance = cm_str_distance(name, wish);
            best = name;
        }
    if (best.size)
        cm_glue_put(&text, " (did you mean '%.*s'?)", CM_STR_FMT(best));
    for (rest = list; (name = next_processor(&rest)).size; i++)
        if (i % (count / SHOWN + 1) == 0)
            cm_glue_put(&text, "%s%.*s", i ? ", " : "; there are ", CM_STR_FMT(name));
    cm_glue_put(&text, "%s", count > SHOWN ? " and others" : "");
    return (struct cm_str){text.size ? text.data : "", text.size};
}

static bool says(struct cm_str said, const char *what)
{
    return memmem(said.data, said.size, what, strlen(what)) != NULL;
}

static enum cm_status refuse_processor(const struct cm_workspace *workspace,
                                       const struct cm_clang_target *target, bool is_native,
                                       struct cm_str said, struct cm_error *err)
{
    struct cm_arena *arena = workspace->arena;
    const bool here = !*target->triple;
    const struct cm_str some = some_processors(arena, find_list(said), cm_str(target->cpu));

    if (is_native)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "'native' is this machine's processor, which the target '%.100s' does not "
                       "have%.*s",
                       target->triple, (int)some.size, some.data);
    return cm_fail(err, CM_BAD_ARGUMENT,
                   "there is no processor '%.100s' for %s%.100s%s%.*s ('clang-%d%s%.100s "
                   "--print-supported-cpus' lists them%s)",
                   target->cpu, here ? "this machine" : "the target '", target->triple,
                   here ? "" : "'", (int)some.size, some.data, CM_LLVM_VERSION,
                   here ? "" : " --target=", target->triple,
                   here ? "; 'native' is the one of this machine" : "");
}

enum cm_status cm_clang_check_target(const struct cm_workspace *workspace, const char *clang,
                                     const struct cm_clang_target *target, struct cm_error *err)
{
    const bool is_native = strcmp(target->cpu, "native") == 0;
    struct cm_str said;
    bool succeeded;

    if (!*target->triple && (is_native || !*target->cpu))
        return CM_OK;
    CM_TRY(cm_workspace_put(workspace, "granted.c", cm_str(granted), err));
    CM_TRY(probe(workspace, clang, target, is_native, &succeeded, &said, err));
    if (succeeded)
        return CM_OK;
    if (is_native)
        CM_TRY(probe(workspace, clang, target, false, &succeeded, &said, err));
    if (says(said, "unknown target CPU"))
        return refuse_processor(workspace, target, is_native, said, err);
    if (says(said, "\"ORDER\"") || says(said, "\"POINTERS\""))
        return cm_fail(err, CM_UNSUPPORTED, "the target '%.100s' %s, which is not compiled for",
                       target->triple,
                       says(said, "\"ORDER\"") ? "has the high byte of a number first"
                                               : "has addresses of 16 bits");
    if (says(said, "unknown target triple"))
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "there is no target '%.100s'; targets are x86_64-linux-gnu, "
                       "aarch64-linux-gnu, riscv64-linux-gnu, armv7-linux-gnueabihf, wasm32 and "
                       "others ('clang-%d --print-targets' lists their first words)",
                       target->triple, CM_LLVM_VERSION);
    return cm_fail(err, CM_BAD_ARGUMENT, "clang refuses the target '%.100s': %.*s", target->triple,
                   said.size < 600 ? (int)said.size : 600, said.data);
}

/* ---- compiling ---- */

enum cm_status cm_clang_compile(const struct cm_workspace *workspace, const char *clang,
                                const struct cm_clang_target *target, const char *name,
                                struct cm_str source, bool optimize, struct cm_str *bitcode,
                                struct cm_error *err)
{
    struct cm_arena *arena = workspace->arena;
    const char *from = cm_arena_printf(arena, "%s.c", name).data;
    const char *to = cm_arena_printf(arena, "%s.bc", name).data;
    const char *arguments[32];
    size_t n = 0;

    CM_TRY(cm_workspace_put(workspace, from, source, err));
    arguments[n++] = clang;
    if (*target->triple)
        arguments[n++] = cm_arena_printf(arena, "--target=%s", target->triple).data;
    if (*target->cpu)
        arguments[n++] = cpu_option(arena, target);
    /* Freestanding, and headers of the compiler alone: nothing of this machine comes in. */
    static const char *const fixed[] = {"-c",
                                        "-emit-llvm",
                                        "-std=c17",
                                        "-O2",
                                        "-fPIC",
                                        "-ffreestanding",
                                        "-nostdlibinc",
                                        "-fno-stack-protector",
                                        "-w",
                                        "-fno-unwind-tables",
                                        "-fno-ident",
                                        "-fno-asynchronous-unwind-tables",
                                        "-fno-math-errno",
                                        "-fno-trapping-math"};
    for (size_t i = 0; i < CM_COUNT(fixed); i++)
        arguments[n++] = fixed[i];
    if (!optimize) {
        arguments[n++] = "-Xclang";
        arguments[n++] = "-disable-llvm-passes";
    }
    arguments[n++] = cm_workspace_path(workspace, from);
    arguments[n++] = "-o";
    arguments[n++] = cm_workspace_path(workspace, to);
    arguments[n] = NULL;
    CM_TRY(cm_error_context(err, cm_tool_run(workspace, arguments, err), "compiling %s", name));
    return cm_workspace_get(workspace, to, bitcode, err);
}
