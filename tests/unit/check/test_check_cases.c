/* ONNX's own verdicts on some nine hundred messages, against ours. tests/models/check/cases.tar.gz
 * holds the messages; a name there is kind/number-mode-outcome. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include "check/check.h"
#include "onnx/decode.h"

#include <stdio.h>

enum { BLOCK = 512, ARCHIVE_MAX = 8 << 20 };

static size_t read_archive(char *out, size_t room)
{
    FILE *pipe = popen("gzip -dc '" TESTS_DIR "/models/check/cases.tar.gz'", "r");
    size_t size = 0;
    size_t n;

    if (!pipe)
        return 0;
    while (size < room && (n = fread(out + size, 1, room - size, pipe)) > 0)
        size += n;
    return pclose(pipe) == 0 ? size : 0;
}

struct tally {
    int agree, disagree;
    int excepted;
    int later; /* refused by ONNX for the types it infers, which are not looked at here */
};

/* Cases where we mean to differ; docs/check-rules.md says why. */
static const char *const exceptions[] = {
    "model/02164-plain-ok", /* its operator was registered by the test that made the case */
};

static bool is_exception(const char *name)
{
    for (size_t i = 0; i < CM_COUNT(exceptions); i++) {
        if (strcmp(exceptions[i], name) == 0)
            return true;
    }
    return false;
}

struct archive_case {
    const char *name;
    struct cm_str bytes;
    bool full, refused;
};

static enum cm_status check_case(const struct archive_case *item, struct cm_arena *arena,
                                 struct cm_findings *out, struct cm_error *err)
{
    static const struct {
        const char *folder;
        const struct cm_message_info *info;
    } kinds[] = {{"model/", &cm_model_info},
                 {"graph/", &cm_graph_info},
                 {"node/", &cm_node_info},
                 {"tensor/", &cm_tensor_info},
                 {"sparse_tensor/", &cm_sparse_info},
                 {"function/", &cm_function_info}};
    const struct cm_check_context context = {0};
    size_t k = 0;

    while (k + 1 < CM_COUNT(kinds) && !cm_str_starts(cm_str(item->name), kinds[k].folder))
        k++;
    void *message = cm_arena_alloc(arena, kinds[k].info->size);
    CM_TRY(cm_decode(kinds[k].info, item->bytes, arena, message, err));
    return k == 0 ? cm_check_model(message, NULL, 0, arena, out, err)
                  : cm_check_message(kinds[k].info, message, &context, arena, out, err);
}

static void judge(const struct archive_case *item, struct cm_arena *arena, struct tally *tally)
{
    struct cm_findings findings = {0};
    struct cm_error err = {0};

    CHECK_OK(check_case(item, arena, &findings, &err), &err);
    const bool refused = findings.violations > 0;
    if (refused == item->refused) {
        tally->agree++;
        return;
    }
    if (item->full && item->refused) {
        tally->later++;
        return;
    }
    if (is_exception(item->name)) {
        tally->excepted++;
        return;
    }
    tally->disagree++;
    print_message("%s: we %s\n", item->name, refused ? "refuse" : "accept");
    for (size_t i = 0; i < findings.count; i++) {
        if (findings.items[i].severity == CM_VIOLATION)
            print_message("  %s %s: %s\n", findings.items[i].rule, findings.items[i].place.data,
                          findings.items[i].reason.data);
    }
}

/* Counts the cases whose name begins with kind. */
static struct tally run_kind(struct cm_arena *arena, const char *kind)
{
    char *archive = cm_arena_alloc(arena, ARCHIVE_MAX);
    const size_t size = read_archive(archive, ARCHIVE_MAX);
    struct tally tally = {0};

    CHECK(size > BLOCK);
    for (size_t at = 0; at + BLOCK <= size && archive[at];) {
        char *header = archive + at;
        const size_t length = strtoul(header + 124, NULL, 8);
        const struct archive_case item = {header, (struct cm_str){header + BLOCK, length},
                                          strstr(header, "-full-") != NULL,
                                          strstr(header, "-error") != NULL};

        CHECK(length <= size - at - BLOCK);
        if (strncmp(header, kind, strlen(kind)) == 0)
            judge(&item, arena, &tally);
        at += BLOCK + (length + BLOCK - 1) / BLOCK * BLOCK;
    }
    return tally;
}

static void expect(struct cm_arena *arena, const char *kind, int agree, int excepted, int later)
{
    const struct tally tally = run_kind(arena, kind);

    CHECK_INT(tally.disagree, 0);
    CHECK_INT(tally.agree, agree);
    CHECK_INT(tally.excepted, excepted);
    CHECK_INT(tally.later, later);
}

static void check_models(struct cm_arena *arena)
{
    expect(arena, "model/", 811, 1, 6);
}

void test_check_cases__models_get_the_verdict_of_onnx(void)
{
    check_in_arena(check_models);
}

static void check_parts(struct cm_arena *arena)
{
    expect(arena, "graph/", 10, 0, 0);
    expect(arena, "node/", 3, 0, 0);
    expect(arena, "function/", 1, 0, 0);
}

void test_check_cases__graphs_nodes_and_functions_get_the_verdict_of_onnx(void)
{
    check_in_arena(check_parts);
}

static void check_tensors(struct cm_arena *arena)
{
    expect(arena, "tensor/", 39, 0, 0);
    expect(arena, "sparse_tensor/", 4, 0, 0);
}

void test_check_cases__tensors_get_the_verdict_of_onnx(void)
{
    check_in_arena(check_tensors);
}
