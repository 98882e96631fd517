/* A hostile model that is changed by every function of cameo.h that changes models. The model's own
 * version number chooses the change. What a change gives must be written and must load again. */
// SPDX-License-Identifier: Apache-2.0
#include "cameo.h"
#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NODES = 60, MOST_TEXT = 1 << 22 };

struct copy {
    uint8_t *data;
    size_t size, room;
};

static int keep(void *to, const void *bytes, size_t size)
{
    struct copy *copy = to;

    if (size > copy->room - copy->size) {
        const size_t room = 2 * copy->room + size;
        uint8_t *data = room < MOST_TEXT ? realloc(copy->data, room) : NULL;
        if (!data)
            return 1;
        copy->data = data;
        copy->room = room;
    }
    memcpy(copy->data + copy->size, bytes, size);
    copy->size += size;
    return 0;
}

static int drop(void *to, const void *bytes, size_t size)
{
    (void)bytes;
    return (*(size_t *)to += size) > MOST_TEXT;
}

static void check_written(const struct cameo_model *model, struct cameo_error *err)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct copy copy = {0};
    struct cameo_model *again = NULL;

    options.format = CAMEO_FORMAT_BINARY;
    options.borrow_bytes = true;
    if (cameo_model_write(model, NULL, keep, &copy, err) == CAMEO_OK && copy.size) {
        const enum cameo_status status =
            cameo_model_load_memory(copy.data, copy.size, &options, &again, err);
        if (status != CAMEO_OK && status != CAMEO_LIMIT) {
            fprintf(stderr, "ERROR: what was written does not load: %s\n", err->message);
            abort();
        }
    }
    cameo_model_free(again);
    free(copy.data);
}

/* ---- changes ---- */

static const char *name_of(const struct cameo_model *model, uint64_t choice)
{
    static char name[256];
    const struct cameo_graph *graph;
    size_t count;

    if (cameo_model_graph(model, CAMEO_GRAPH_MAIN, 0, &graph, NULL) != CAMEO_OK ||
        (count = cameo_graph_edge_count(graph)) == 0)
        return "x";
    const struct cameo_text text = cameo_graph_edge(graph, choice % count)->name;
    snprintf(name, sizeof name, "%.*s", text.size < 255 ? (int)text.size : 255, text.data);
    return name;
}

static void convert(struct cameo_model *model, uint64_t choice, struct cameo_error *err)
{
    static const char *const domains[] = {"", "", "", "ai.onnx.ml", "ai.onnx.preview.training"};
    struct cameo_convert_options options = CAMEO_CONVERT_OPTIONS_INIT;
    struct cameo_target_opset target = CAMEO_TARGET_OPSET_INIT;
    const struct cameo_conversion *report = NULL;

    target.domain = domains[choice / 32 % 5];
    target.version = (int64_t)(choice % 32);
    options.opsets = &target;
    options.opset_count = choice % 32 ? 1 : 0;
    if (cameo_model_convert(model, &options, &report, err) == CAMEO_OK)
        check_written(model, err);
}

static void expand(struct cameo_model *model, uint64_t choice, struct cameo_error *err)
{
    struct cameo_expand_options options = CAMEO_EXPAND_OPTIONS_INIT;
    struct cameo_model *made = NULL;

    options.operators = choice & 1;
    options.core = choice >> 1 & 1;
    if (cameo_model_expand(model, &options, &made, NULL, err) == CAMEO_OK)
        check_written(made, err);
    cameo_model_free(made);
}

static void infer(struct cameo_model *model, uint64_t choice, struct cameo_error *err)
{
    struct cameo_infer_options options = CAMEO_INFER_OPTIONS_INIT;
    const struct cameo_inference *report = NULL;
    const struct cameo_costs *costs;

    options.strict = choice & 1;
    options.list_values = true;
    if (choice >> 1 & 1)
        (void)cameo_model_erase_shapes(model, choice >> 2 & 1, err);
    if (cameo_model_infer(model, &options, &report, err) == CAMEO_OK)
        check_written(model, err);
    (void)cameo_model_costs(model, NULL, 0, &costs, err);
}

static void extract(struct cameo_model *model, uint64_t choice, struct cameo_error *err)
{
    const struct cameo_edit *report = NULL;
    const char *out = name_of(model, choice / 8), *in = name_of(model, choice / 64);

    if (choice & 1) {
        if (cameo_model_expose(model, &out, choice >> 1 & 1, &report, err) == CAMEO_OK)
            check_written(model, err);
    } else if (cameo_model_extract(model, &in, choice >> 1 & 1, &out, 1, &report, err) ==
               CAMEO_OK) {
        check_written(model, err);
    }
}

static void rename_all(struct cameo_model *model, uint64_t choice, struct cameo_error *err)
{
    static const char *const to[] = {"p/*", "x", "*", "\xc3\xa4*"};
    struct cameo_renaming renaming = CAMEO_RENAMING_INIT;
    const struct cameo_edit *report = NULL;

    renaming.kind = (enum cameo_renaming_kind)(choice % 3);
    renaming.from = choice >> 2 & 1 ? "*" : name_of(model, choice / 16);
    renaming.to = to[choice >> 3 & 3];
    if (cameo_model_rename(model, &renaming, 1, &report, err) == CAMEO_OK)
        check_written(model, err);
}

static void set_shapes(struct cameo_model *model, uint64_t choice, struct cameo_error *err)
{
    static const char *const dims[] = {"2", "2,3", "1,3,H,?", "", "N", "0", "9223372036854775807"};
    struct cameo_reshaping shape = CAMEO_RESHAPING_INIT;
    const struct cameo_edit *report = NULL;

    shape.name = choice & 1 ? "N" : name_of(model, choice / 8);
    shape.dims = dims[choice % 7];
    if (cameo_model_set_shapes(model, &shape, 1, &report, err) == CAMEO_OK)
        check_written(model, err);
}

static void merge(struct cameo_model *model, uint64_t choice, struct cameo_error *err)
{
    struct cameo_merge_options options = CAMEO_MERGE_OPTIONS_INIT;
    struct cameo_merge_pair pair = CAMEO_MERGE_PAIR_INIT;
    struct cameo_model *first = NULL, *second = NULL;
    char output[256];

    snprintf(output, sizeof output, "%s", name_of(model, choice / 4));
    pair.output = output;
    pair.input = name_of(model, choice / 64);
    options.pairs = &pair;
    options.pair_count = choice >> 1 & 1;
    options.prefix2 = choice & 1 ? "b/" : NULL;
    if (cameo_model_copy(model, &first, err) == CAMEO_OK &&
        cameo_model_copy(model, &second, err) == CAMEO_OK &&
        cameo_model_merge(first, second, &options, NULL, err) == CAMEO_OK)
        check_written(first, err);
    cameo_model_free(first);
    cameo_model_free(second);
}

static void optimize(struct cameo_model *model, uint64_t choice, struct cameo_error *err)
{
    struct cameo_optimize_options options = CAMEO_OPTIMIZE_OPTIONS_INIT;
    struct cameo_model *made = NULL;

    options.portable = choice & 1;
    if (cameo_model_optimize(model, &options, &made, NULL, err) == CAMEO_OK)
        check_written(made, err);
    cameo_model_free(made);
}

/* Text, by the stages that need no library of MLIR. */
static void compile(struct cameo_model *model, uint64_t choice, struct cameo_error *err)
{
    static const enum cameo_emit stages[] = {CAMEO_EMIT_ONNX, CAMEO_EMIT_CORE, CAMEO_EMIT_LINALG};
    struct cameo_compile_options options = CAMEO_COMPILE_OPTIONS_INIT;
    struct cameo_compilation *report = NULL;
    size_t written = 0;

    options.emit = stages[choice % 3];
    options.pure = choice / 3 & 1;
    options.write = drop;
    options.write_to = &written;
    (void)cameo_model_compile(model, &options, &report, err);
    cameo_compilation_free(report);
}

static void train(struct cameo_model *model, uint64_t choice, struct cameo_error *err)
{
    struct cameo_model *made = NULL;
    struct cameo_findings *findings = NULL;
    size_t converted = 0;

    (void)cameo_model_check_training(model, 0, NULL, &findings, err);
    cameo_findings_free(findings);
    if (choice & 1 && cameo_model_step(model, choice >> 1 & 1, &made, err) == CAMEO_OK)
        check_written(made, err);
    cameo_model_free(made);
    if (cameo_model_upgrade_training(model, &converted, err) == CAMEO_OK)
        check_written(model, err);
    if (cameo_model_strip(model, err) == CAMEO_OK)
        check_written(model, err);
}

/* ---- ---- */

static void run_input(const uint8_t *data, size_t size)
{
    static void (*const changes[])(struct cameo_model *, uint64_t, struct cameo_error *) = {
        convert, expand,   infer,   extract, rename_all, set_shapes,
        merge,   optimize, compile, train,   convert,    convert,
    };
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_error err = {0};
    struct cameo_model *model = NULL;

    options.format = CAMEO_FORMAT_BINARY;
    options.borrow_bytes = true;
    options.memory_limit = (size_t)256 << 20;
    if (cameo_model_load_memory(data, size, &options, &model, &err) == CAMEO_OK &&
        cameo_model_summary(model)->node_count <= MOST_NODES) {
        const uint64_t choice = (uint64_t)cameo_model_summary(model)->model_version;
        changes[choice % CM_COUNT(changes)](model, choice / CM_COUNT(changes), &err);
    }
    cameo_model_free(model);
}

const struct fuzz_target fuzz_target = {
    .run = run_input,
    .mutate = mutate_model,
    .most_bytes = 8 * FUZZ_KIB,
    .memory_base = 16 * FUZZ_MIB,
    .memory_per_byte = 4096,
};
