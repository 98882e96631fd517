/* Programs as text, compiled and run. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "mlir/compiled_program.h"

#include "check.h"

#include "base/folder.h"
#include "mlir/toolchain/open.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int left_out;

/* cm_allocate takes the next piece of what follows the planned part and never reuses one, so a
 * buffer that is used after its release is not given to another; released memory is overwritten. */
static const char glue_start[] =
    "#include <stdint.h>\n"
    "typedef intptr_t I;\n"
    "extern const int64_t cm_arena_bytes;\n"
    "struct run { I failed, n_allocated, held, most, n_outputs, output_dims[6]; char output[4096]; "
    "};\n"
    "struct context { struct run *run; char *arena; I used, bytes, now; };\n"
    "I cm_allocate(I c, I bytes) {\n"
    "  struct context *x = (struct context *)c; I at = (x->used + 127) / 64 * 64;\n"
    "  if (bytes < 0 || bytes > x->bytes - at) { x->run->failed = -1; return 0; }\n"
    "  *(I *)(x->arena + at - 64) = bytes; x->used = at + bytes;\n"
    "  x->run->n_allocated++; x->run->held++; x->now += bytes;\n"
    "  if (x->now > x->run->most) x->run->most = x->now;\n"
    "  return (I)(x->arena + at);\n"
    "}\n"
    "I cm_times(I a, I b) { return a * b; }\n"
    "void cm_release(I c, I address) {\n"
    "  struct context *x = (struct context *)c; I bytes = *(I *)(address - 64);\n"
    "  x->run->held--; x->now -= bytes;\n"
    "  for (I i = 0; i < bytes; i++) ((char *)address)[i] = (char)0xEE;\n"
    "}\n"
    "I cm_require(I c, I holds, I number) {\n"
    "  if (!holds) ((struct context *)c)->run->failed = 1 + number;\n"
    "  return holds;\n"
    "}\n"
    "I cm_output(I c, I i, I data, I rank, I shape) {\n"
    "  struct run *run = ((struct context *)c)->run; I count = 4; (void)i; run->n_outputs++;\n"
    "  for (I k = 0; k < rank; k++) count *= run->output_dims[k] = ((int64_t *)shape)[k];\n"
    "  for (I k = 0; k < count && k < 4096; k++) run->output[k] = ((char *)data)[k];\n"
    "  return 1;\n"
    "}\n";

static void add(char *out, size_t size, const char *format, const char *text, int number)
{
    const size_t used = strlen(out);

    snprintf(out + used, size - used, format, text, number);
}

/* void run(..): cm_main with each memref as MLIR passes it: the address twice, an offset, sizes,
 * strides. */
static void write_glue(char *out, size_t size, const struct program_case *program,
                       const struct program_port *ports, size_t n_ports)
{
    out[0] = '\0';
    add(out, size, "%s", glue_start, 0);
    add(out, size, program->n_weights ? "extern const char cm_weights[];\n" : "%s", "", 0);
    add(out, size,
        "%s\nvoid cm_main(I, const char *, const char *, I, I, I, char *, char *, I, I, I",
        program->c ? program->c : "", 0);
    for (size_t i = 0; i < n_ports; i++) {
        add(out, size, ", void *, void *, I", "", 0);
        for (int k = 0; k < 2 * ports[i].rank; k++)
            add(out, size, ", I", "", 0);
    }
    add(out, size,
        ");\nvoid run(struct run *run, char *arena, I bytes, void **p, const I *s) {\n"
        "  struct context c = {run, arena, cm_arena_bytes, bytes, 0};\n"
        "  cm_main((I)&c, %s, 0, 1 << 30, 1, arena, arena, 0, bytes, 1",
        program->n_weights ? "cm_weights, cm_weights" : "0, 0", 0);
    int at = 0;
    for (size_t i = 0; i < n_ports; i++) {
        add(out, size, ", p[%s%d]", "", (int)i);
        add(out, size, ", p[%s%d], 0", "", (int)i);
        for (int k = 0; k < 2 * ports[i].rank; k++)
            add(out, size, ", s[%s%d]", "", at++);
    }
    add(out, size, ");\n}\nint64_t arena_bytes(void) { return cm_arena_bytes; }\n", "", 0);
}

static char *whole_text(const struct program_case *program)
{
    static const char start[] = "func.func @cm_main(%context: index, %weights: memref<?xi8>, "
                                "%arena: memref<?xi8>";
    const size_t size = strlen(program->text) + sizeof start +
                        (program->private ? strlen(program->private) : 0) + 8;
    char *text = malloc(size);

    CHECK(text != NULL);
    snprintf(text, size, "%s%s%s%s", program->private ? program->private : "", start,
             program->text[0] == ')' ? "" : ", ", program->text);
    return text;
}

bool program_has_module(void)
{
#ifdef MLIR_MODULE_FILE
    return true;
#else
    return false;
#endif
}

const struct cm_mlir_module *program_module(void)
{
    const struct cm_mlir_module *module = NULL;
    struct cm_error err = {0};

#ifdef MLIR_MODULE_FILE
    setenv("CAMEO_MLIR", MLIR_MODULE_FILE, 0);
#endif
    CHECK_OK(cm_mlir_open(&module, &err), &err);
    return module;
}

bool program_build_job(const struct cm_mlir_job *job, struct cm_mlir_product *out)
{
    struct cm_mlir_build *planned = program_module()->plan(job, out);
    const bool done = planned && program_module()->finish(planned);

    program_module()->end(planned);
    return done;
}

static bool build(const struct program_case *program, enum cm_mlir_form form, const char *triple,
                  const struct cm_mlir_bytes *glue, struct cm_mlir_product *out)
{
    static const char *const exported[] = {"run", "arena_bytes", "cm_main"};
    char *text = whole_text(program);
    const struct cm_mlir_job job = {.text = {text, strlen(text)},
                                    .form = form,
                                    .triple = triple,
                                    .cpu = program->cpu ? program->cpu
                                           : triple[0]  ? ""
                                                        : "native",
                                    .features = "",
                                    .position_independent = true,
                                    .glue = glue ? *glue : (struct cm_mlir_bytes){0},
                                    .exported = exported,
                                    .n_exported = glue ? 2 : 3,
                                    .weights = {program->weights, program->n_weights}};
    const bool done = program_build_job(&job, out);

    free(text);
    return done;
}

bool program_build(const struct program_case *program, enum cm_mlir_form form, const char *triple,
                   struct cm_mlir_product *out)
{
    return build(program, form, triple, NULL, out);
}

/* ---- running ---- */

bool program_has_tool(const char *name)
{
    const char *path = getenv("PATH");
    char file[4096];

    while (path && *path) {
        const size_t length = strcspn(path, ":");

        snprintf(file, sizeof file, "%.*s/%s", (int)length, path, name);
        if (access(file, X_OK) == 0)
            return true;
        path += length + (path[length] == ':');
    }
    return false;
}

static char *read_whole(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *bytes = malloc(1 << 20);

    CHECK(file && bytes);
    *size = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

static void write_whole(const char *path, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");

    CHECK(file && fwrite(bytes, 1, size, file) == size);
    fclose(file);
}

static void shell(const char *format, const char *folder)
{
    char command[4096];

    snprintf(command, sizeof command, format, folder, folder);
    CHECK_INT(system(command), 0);
}

typedef void run_fn(struct program_run *, char *, intptr_t, void **, const intptr_t *);

/* Guards around the arena show writes beyond what was planned. */
static void call(void *library, const struct program_port *ports, size_t n_ports,
                 const struct cm_mlir_product *product, struct program_run *out)
{
    enum { EXTRA = 1 << 20, GUARD = 4096 };
    run_fn *run = NULL;
    void *data[16] = {0};
    intptr_t sizes[192];
    size_t n_sizes = 0;
    const intptr_t fixed = (intptr_t)product->arena_bytes;
    const intptr_t bytes = fixed + (product->arena_is_fixed ? 0 : EXTRA);
    char *memory = aligned_alloc(64, (size_t)(bytes + 2 * GUARD + 63) / 64 * 64);

    *(void **)&run = dlsym(library, "run");
    CHECK(run && memory);
    memset(memory, 0xA5, (size_t)bytes + 2 * GUARD);
    for (size_t i = 0; i < n_ports; i++) {
        data[i] = ports[i].data;
        for (int k = 0; k < ports[i].rank; k++)
            sizes[n_sizes++] = ports[i].dims[k];
        for (int k = 0; k < ports[i].rank; k++) {
            intptr_t stride = 1;
            for (int j = k + 1; j < ports[i].rank; j++)
                stride *= ports[i].dims[j];
            sizes[n_sizes++] = stride;
        }
    }
    *out = (struct program_run){0};
    run(out, memory + GUARD, bytes, data, sizes);
    for (int i = 0; i < GUARD; i++)
        CHECK(memory[i] == (char)0xA5 && memory[GUARD + bytes + i] == (char)0xA5);
    free(memory);
}

bool program_run(const struct program_case *program, const struct program_port *ports,
                 size_t n_ports, struct cm_mlir_product *product, struct program_run *out)
{
    struct folder folder;
    struct cm_mlir_product own = {0};
    struct cm_mlir_bytes bitcode;
    static char glue[64 * 1024];
    char path[4096];

    if (!program_has_tool("clang-19") || !program_has_tool("ld.lld-19")) {
        left_out++;
        return false;
    }
    folder_make(&folder);
    write_glue(glue, sizeof glue, program, ports, n_ports);
    snprintf(path, sizeof path, "%s/glue.c", folder.path);
    write_whole(path, glue, strlen(glue));
    shell("clang-19 -O2 -fPIC -march=native -emit-llvm -c '%s/glue.c' -o '%s/glue.bc'",
          folder.path);
    snprintf(path, sizeof path, "%s/glue.bc", folder.path);
    char *bytes = read_whole(path, &bitcode.size);
    bitcode.data = bytes;
    if (!build(program, CM_MLIR_OBJECT, "", &bitcode, &own))
        fail_msg("not compiled: %s", own.error);
    free(bytes);
    snprintf(path, sizeof path, "%s/program.o", folder.path);
    write_whole(path, own.bytes, own.size);
    shell("clang-19 -shared -fuse-ld=lld '%s/program.o' -o '%s/program.so' -lm", folder.path);
    snprintf(path, sizeof path, "%s/program.so", folder.path);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s", dlerror());
    call(library, ports, n_ports, &own, out);
    dlclose(library);
    folder_remove(&folder);
    if (product)
        *product = own;
    else
        program_module()->release(&own);
    return true;
}

void program_tell_left_out(void)
{
    if (left_out)
        print_message("%d programs were compiled but not run: clang-19 or ld.lld-19 is missing\n",
                      left_out);
}
