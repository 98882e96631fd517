/* A build from text to bytes: its two parts, the steps of each, their passes, and what goes wrong
 * in them. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/module/mlir_build.h"

#include "mlir/module/ir.h"
#include "mlir/module/mlir_entry.h"

#include <llvm-c/ErrorHandling.h>
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <mlir-c/Diagnostics.h>
#include <mlir-c/Pass.h>
#include <mlir-c/RegisterEverything.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- messages ---- */

void cm_mlir_string_add(struct cm_mlir_string *text, const char *data, size_t size)
{
    if (text->size + size + 1 > text->room) {
        const size_t room = 2 * (text->size + size + 1);
        char *grown = realloc(text->data, room);

        if (!grown) {
            text->failed = true;
            return;
        }
        text->data = grown;
        text->room = room;
    }
    memcpy(text->data + text->size, data, size);
    text->size += size;
    text->data[text->size] = '\0';
}

static void add_piece(MlirStringRef piece, void *text)
{
    cm_mlir_string_add(text, piece.data, piece.length);
}

bool cm_mlir_build_fail(struct cm_mlir_build *build, const char *format, ...)
{
    char text[1024];
    va_list arguments;

    if (build->error.size)
        return false;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    cm_mlir_string_add(&build->error, text, strlen(text));
    return false;
}

/* loc("-":12:3) is told as "line 12, column 3: ". */
static void add_place(struct cm_mlir_string *text, MlirLocation where)
{
    struct cm_mlir_string printed = {0};
    int line = 0, column = 0;
    char place[64];

    mlirLocationPrint(where, add_piece, &printed);
    const char *at = printed.data ? strchr(printed.data, ':') : NULL;
    if (at && sscanf(at, ":%d:%d", &line, &column) == 2) {
        snprintf(place, sizeof place, "line %d, column %d: ", line, column);
        cm_mlir_string_add(text, place, strlen(place));
    }
    free(printed.data);
}

/* The first error is told, with its first note; whatever follows comes of it. */
static MlirLogicalResult on_diagnostic(MlirDiagnostic diagnostic, void *data)
{
    struct cm_mlir_build *build = data;
    struct cm_mlir_string *text = &build->error;

    if (mlirDiagnosticGetSeverity(diagnostic) != MlirDiagnosticError || text->size)
        return mlirLogicalResultSuccess();
    add_place(text, mlirDiagnosticGetLocation(diagnostic));
    mlirDiagnosticPrint(diagnostic, add_piece, text);
    if (mlirDiagnosticGetNumNotes(diagnostic) > 0) {
        cm_mlir_string_add(text, "; ", 2);
        mlirDiagnosticPrint(mlirDiagnosticGetNote(diagnostic, 0), add_piece, text);
    }
    return mlirLogicalResultSuccess();
}

/* ---- steps ---- */

bool cm_mlir_build_passes(struct cm_mlir_build *build, const char *passes)
{
    const MlirPassManager manager = mlirPassManagerCreate(build->context);
    const MlirOpPassManager top = mlirPassManagerGetAsOpPassManager(manager);
    struct cm_mlir_string error = {0};

    mlirPassManagerEnableVerifier(manager, false);
    bool done = mlirLogicalResultIsSuccess(
        mlirOpPassManagerAddPipeline(top, cm_ir_text(passes), add_piece, &error));
    if (!done)
        cm_mlir_build_fail(build, "%s", error.data ? error.data : "the passes are not known");
    done = done && mlirLogicalResultIsSuccess(
                       mlirPassManagerRunOnOp(manager, mlirModuleGetOperation(build->module)));
    free(error.data);
    mlirPassManagerDestroy(manager);
    return done || cm_mlir_build_fail(build, "a pass failed without a reason");
}

static bool parse(struct cm_mlir_build *build)
{
    const struct cm_mlir_bytes text = build->job->text;

    build->stage = "reading the program";
    build->module =
        mlirModuleCreateParse(build->context, mlirStringRefCreate(text.data, text.size));
    return !mlirModuleIsNull(build->module) || cm_mlir_build_fail(build, "it is not MLIR");
}

/* cm_main and its first three arguments. A pass may replace the function. */
static bool find_main(struct cm_mlir_build *build)
{
    const MlirSymbolTable table = mlirSymbolTableCreate(mlirModuleGetOperation(build->module));

    build->main = mlirSymbolTableLookup(table, cm_ir_text("cm_main"));
    mlirSymbolTableDestroy(table);
    if (mlirOperationIsNull(build->main) || !cm_ir_is(build->main, "func.func"))
        return cm_mlir_build_fail(build, "the program has no function cm_main");
    const MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(build->main, 0));
    if (mlirBlockIsNull(block) || mlirBlockGetNumArguments(block) < 3)
        return cm_mlir_build_fail(build, "cm_main does not take context, weights and arena");
    for (intptr_t i = 0; i < 3; i++) {
        build->arguments[i] = mlirBlockGetArgument(block, i);
        const MlirType type = mlirValueGetType(build->arguments[i]);
        if (i == 0 ? !mlirTypeIsAIndex(type)
                   : !mlirTypeIsAMemRef(type) || mlirShapedTypeGetRank(type) != 1 ||
                         !mlirTypeEqual(mlirShapedTypeGetElementType(type),
                                        mlirIntegerTypeGet(build->context, 8)))
            return cm_mlir_build_fail(build, "argument %d of cm_main is not %s", (int)i,
                                      i == 0 ? "an index" : "a memref<?xi8>");
    }
    return true;
}

static void set_text_attribute(struct cm_mlir_build *build, const char *name, const char *value)
{
    mlirOperationSetAttributeByName(mlirModuleGetOperation(build->module), cm_ir_text(name),
                                    mlirStringAttrGet(build->context, cm_ir_text(value)));
}

static bool to_buffers(struct cm_mlir_build *build)
{
    build->stage = "choosing buffers";
    return find_main(build) && cm_mlir_number_checks(build) && cm_mlir_carry_in_place(build) &&
           /* No cse here: an empty tensor that two operations share would become the one output
            * of both. */
           cm_mlir_build_passes(build, "inline,canonicalize,linalg-generalize-named-ops,"
                                       "linalg-fuse-elementwise-ops,canonicalize") &&
           cm_mlir_build_passes(build, "eliminate-empty-tensors,empty-tensor-to-alloc-tensor,"
                                       "one-shot-bufferize{bufferize-function-boundaries "
                                       "allow-return-allocs-from-loops},canonicalize,cse") &&
           cm_mlir_fill_gaps(build) && find_main(build) && cm_mlir_plan_arena(build) &&
           cm_mlir_build_passes(build, "canonicalize,cse");
}

static bool to_dialect(struct cm_mlir_build *build)
{
    char passes[1024];
    const int bits = CM_MLIR_INDEX_BITS;

    build->stage = "lowering to LLVM";
    set_text_attribute(build, "llvm.data_layout", build->layout);
    set_text_attribute(build, "llvm.target_triple", build->triple);
    snprintf(passes, sizeof passes,
             "arith-expand{include-bf16=true},convert-math-to-llvm,convert-math-to-libm,"
             "convert-complex-to-standard,convert-vector-to-llvm,convert-ub-to-llvm,finalize-"
             "memref-to-llvm{index-bitwidth=%d},"
             "convert-arith-to-llvm{index-bitwidth=%d},convert-index-to-llvm{index-bitwidth=%d},"
             "convert-func-to-llvm{index-bitwidth=%d},convert-cf-to-llvm{index-bitwidth=%d},"
             "reconcile-unrealized-casts,canonicalize,cse",
             bits, bits, bits, bits, bits);
    return find_main(build) && cm_mlir_resolve_addresses(build) && cm_mlir_copy_by_loops(build) &&
           cm_mlir_outline(build) && cm_mlir_order_loops(build) &&
           cm_mlir_build_passes(
               build, "convert-linalg-to-loops,fold-memref-alias-ops,expand-strided-metadata,lower-"
                      "affine,canonicalize,cse,"
                      "convert-vector-to-scf,loop-invariant-code-motion,convert-scf-to-cf") &&
           find_main(build) && cm_mlir_return_early(build) && cm_mlir_convert_floats(build) &&
           cm_mlir_build_passes(build, passes) && cm_mlir_move_as_integers(build);
}

static bool print_module(struct cm_mlir_build *build)
{
    struct cm_mlir_string text = {0};

    mlirOperationPrint(mlirModuleGetOperation(build->module), add_piece, &text);
    if (text.failed || !text.data) {
        free(text.data);
        return cm_mlir_build_fail(build, "memory ran out");
    }
    build->out->bytes = text.data;
    build->out->size = text.size;
    return true;
}

static bool plan(struct cm_mlir_build *build)
{
    build->stage = "choosing the target";
    return cm_mlir_choose_target(build) && parse(build) &&
           (build->job->form == CM_MLIR_LINALG || to_buffers(build));
}

static bool finish(struct cm_mlir_build *build)
{
    const enum cm_mlir_form form = build->job->form;

    if (form > CM_MLIR_BUFFERS && !to_dialect(build))
        return false;
    return form > CM_MLIR_DIALECT ? cm_mlir_emit(build) : print_module(build);
}

/* ---- errors that LLVM takes for the end of the process ---- */

static _Thread_local jmp_buf *way_out;
static _Thread_local char last_words[512];

static void on_fatal(const char *reason)
{
    if (!way_out)
        return;
    snprintf(last_words, sizeof last_words, "%s", reason);
    longjmp(*way_out, 1);
}

/* ---- one build ---- */

static void start_once(void)
{
    mlirRegisterAllPasses();
    LLVMInstallFatalErrorHandler(on_fatal);
    cm_mlir_start_targets();
}

static void start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, start_once);
}

static void open_context(struct cm_mlir_build *build)
{
    const MlirDialectRegistry registry = mlirDialectRegistryCreate();

    mlirRegisterAllDialects(registry);
    build->context = mlirContextCreateWithRegistry(registry, false);
    mlirDialectRegistryDestroy(registry);
    mlirRegisterAllLLVMTranslations(build->context);
    mlirContextAttachDiagnosticHandler(build->context, on_diagnostic, build, NULL);
}

static void close_build(struct cm_mlir_build *build)
{
    if (build->code)
        LLVMDisposeModule(build->code);
    if (build->llvm)
        LLVMContextDispose(build->llvm);
    if (build->machine)
        LLVMDisposeTargetMachine(build->machine);
    LLVMDisposeMessage(build->layout);
    LLVMDisposeMessage(build->triple);
    if (!mlirModuleIsNull(build->module))
        mlirModuleDestroy(build->module);
    mlirContextDestroy(build->context);
}

static void tell_failure(struct cm_mlir_build *build)
{
    struct cm_mlir_product *out = build->out;
    struct cm_mlir_string text = {0};

    cm_mlir_release(out);
    cm_mlir_string_add(&text, build->stage, strlen(build->stage));
    cm_mlir_string_add(&text, ": ", 2);
    cm_mlir_string_add(&text, build->error.data ? build->error.data : "unknown",
                       build->error.data ? build->error.size : 7);
    out->error = text.data;
}

/* Runs steps with a way out of errors that LLVM takes for the end of the process. */
static bool run(struct cm_mlir_build *build, bool (*steps)(struct cm_mlir_build *))
{
    jmp_buf here;
    volatile bool done = false;

    if (setjmp(here) == 0) {
        way_out = &here;
        done = steps(build);
    } else {
        cm_mlir_build_fail(build, "%s", last_words);
        build->is_lost = true;
        done = false;
    }
    way_out = NULL;
    if (!done)
        tell_failure(build);
    return done;
}

static bool open_and_plan(struct cm_mlir_build *build)
{
    open_context(build);
    return plan(build);
}

struct cm_mlir_build *cm_mlir_build_plan(const struct cm_mlir_job *job, struct cm_mlir_product *out)
{
    struct cm_mlir_build *build = calloc(1, sizeof *build);

    *out = (struct cm_mlir_product){0};
    if (!build)
        return NULL;
    start();
    *build = (struct cm_mlir_build){.job = job, .out = out, .stage = "starting"};
    if (run(build, open_and_plan))
        return build;
    cm_mlir_build_end(build);
    return NULL;
}

bool cm_mlir_build_finish(struct cm_mlir_build *build)
{
    return run(build, finish);
}

void cm_mlir_build_end(struct cm_mlir_build *build)
{
    if (!build)
        return;
    if (!build->is_lost) /* else what LLVM held is lost */
        close_build(build);
    free(build->error.data);
    free(build);
}
