/* The text form against ONNX's own parser and printer: each folder of tests/models/text/parse holds
 * a text and, unless it is to be refused, the message ONNX made of it; each of
 * tests/models/text/print a message and ONNX's text of it. The files' name says what they hold:
 * model, graph, function or node. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "onnx/decode.h"
#include "onnx/model_case.h"
#include "onnx/syntax_case.h"

#include <dirent.h>

#define TEXTS TESTS_DIR "/models/text"

static const char *file_of(struct cm_arena *arena, const char *folder, const char *name,
                           const struct syntax_kind *kind, const char *ending)
{
    return cm_arena_printf(arena, TEXTS "/%s/%s/%s.%s", folder, name, kind->name, ending).data;
}

static const struct syntax_kind *kind_of(struct cm_arena *arena, const char *folder,
                                         const char *name, const char *ending)
{
    for (size_t i = 0; i < SYNTAX_KINDS; i++)
        if (case_exists(file_of(arena, folder, name, &syntax_kinds[i], ending)))
            return &syntax_kinds[i];
    fail_msg("%s/%s holds no case", folder, name);
    return NULL;
}

static void *decoded(struct cm_arena *arena, const struct syntax_kind *kind, const char *path)
{
    struct cm_error err = {0};
    void *const msg = cm_arena_alloc(arena, kind->info->size);

    CHECK_OK(cm_decode(kind->info, case_read(arena, path), arena, msg, &err), &err);
    return msg;
}

typedef void case_fn(struct cm_arena *arena, const char *name);

/* Calls fn for each case folder; returns how many there were. */
static size_t each_case(struct cm_arena *arena, const char *folder, case_fn *fn)
{
    DIR *const dir = opendir(cm_arena_printf(arena, TEXTS "/%s", folder).data);
    size_t count = 0;

    CHECK(dir != NULL);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        fn(arena, entry->d_name);
        count++;
    }
    closedir(dir);
    return count;
}

static void parse_case(struct cm_arena *arena, const char *name)
{
    const struct syntax_kind *const kind = kind_of(arena, "parse", name, "txt");
    const char *const expected = file_of(arena, "parse", name, kind, "onnx");
    struct cm_error err = {0};
    struct cm_str where;
    void *const got = syntax_parse(
        arena, kind, case_read(arena, file_of(arena, "parse", name, kind, "txt")), &err);

    if (!case_exists(expected)) {
        if (got)
            fail_msg("%s: read, though it has to be refused", name);
        CHECK(strncmp(err.text, "line ", 5) == 0);
        return;
    }
    if (!got)
        fail_msg("%s: %s", name, err.text);
    if (!cm_message_equal(kind->info, got, decoded(arena, kind, expected), arena, &where))
        fail_msg("%s: %.*s differs", name, CM_STR_FMT(where));
    syntax_check_round(arena, kind, got);
}

static void parse_cases(struct cm_arena *arena)
{
    CHECK_INT(each_case(arena, "parse", parse_case), 118);
}

void test_syntax__reads_texts_as_onnx_does(void)
{
    check_in_arena(parse_cases);
}

static void print_case(struct cm_arena *arena, const char *name)
{
    const struct syntax_kind *const kind = kind_of(arena, "print", name, "onnx");
    const char *const expected = file_of(arena, "print", name, kind, "txt");
    const struct cm_syntax_options options = {.upstream = true};
    struct cm_error err = {0};
    void *const msg = decoded(arena, kind, file_of(arena, "print", name, kind, "onnx"));
    const struct cm_str got = syntax_print(arena, kind, msg, &options, &err);

    if (!case_exists(expected)) {
        if (got.data)
            fail_msg("%s: printed, though it has to be refused", name);
        return;
    }
    if (!got.data)
        fail_msg("%s: %s", name, err.text);
    if (!cm_str_equal(got, case_read(arena, expected)))
        fail_msg("%s: printed as\n%s", name, got.data);
    syntax_check_round(arena, kind, msg);
}

static void print_cases(struct cm_arena *arena)
{
    CHECK_INT(each_case(arena, "print", print_case), 21);
}

void test_syntax__prints_messages_as_onnx_does(void)
{
    check_in_arena(print_cases);
}
