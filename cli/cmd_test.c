/* cameo test: folders of ONNX backend test cases. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "test_cases.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static bool only_list, expanded, core, pure;
static const char *filter, *junit_path, *backend, *scaled_text, *without, *erased;
static size_t threads;

static bool is_compiled(void)
{
    return backend && strcmp(backend, "compiled") == 0;
}

/* ---- the table by operator ---- */

struct tally {
    char name[96];
    size_t passed, failed, refused;
};

static struct tally *tallies;
static size_t tally_count, tally_room;

static struct tally *find_tally(const char *name)
{
    for (size_t i = 0; i < tally_count; i++)
        if (strcmp(tallies[i].name, name) == 0)
            return &tallies[i];
    tallies = cli_grow(tallies, tally_count, &tally_room, sizeof *tallies);
    struct tally *made = &tallies[tally_count++];
    *made = (struct tally){.passed = 0};
    snprintf(made->name, sizeof made->name, "%s", name);
    return made;
}

static void count_operator(const struct cameo_operator *row, const struct test_case *test,
                           bool passed)
{
    char name[96];

    snprintf(name, sizeof name, "%.40s%s%.50s", row->domain.data, row->domain.size ? "." : "",
             row->name.data);
    struct tally *tally = find_tally(name);
    if (passed)
        tally->passed++;
    else if (test->refused)
        tally->refused++;
    else
        tally->failed++;
}

static int by_name(const void *a, const void *b)
{
    const struct tally *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static void print_table(void)
{
    if (tally_count)
        qsort(tallies, tally_count, sizeof *tallies, by_name);
    printf("%-40s %7s %7s%s\n", "operator", "passed", "failed", is_compiled() ? " refused" : "");
    for (size_t i = 0; i < tally_count; i++) {
        cli_put_padded(stdout, (struct cameo_text){tallies[i].name, strlen(tallies[i].name)}, 40);
        printf(" %7zu %7zu", tallies[i].passed, tallies[i].failed);
        if (is_compiled())
            printf(" %7zu", tallies[i].refused);
        fputc('\n', stdout);
    }
}

/* ---- one case ---- */

/* Whose numbers no text fixes. */
static bool is_random(const struct cameo_model *model)
{
    for (size_t i = 0; i < cameo_model_summary(model)->operator_count; i++)
        if (cameo_model_operator(model, i)->is_random)
            return true;
    return false;
}

/* The same model of core operators only, in its place. */
static bool to_core(struct test_case *test, struct cameo_model *model, struct cameo_model **out)
{
    struct cameo_expand_options options = CAMEO_EXPAND_OPTIONS_INIT;
    struct cameo_error err;

    options.core = true;
    if (cameo_model_expand(model, &options, out, NULL, &err) == CAMEO_OK)
        return true;
    return test_failed(test, &err);
}

static bool run_case(struct test_case *test, const struct cli_tolerance *base)
{
    struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
    struct cli_tolerance tolerance = *base;
    struct cameo_session *session = NULL;
    struct cameo_model *model, *cores = NULL;
    struct cameo_compiled *compiled = NULL;
    const struct cameo_model *subject;
    struct cameo_error err;
    char path[TEST_PATH_SIZE];

    if (!test_path(path, test->path, "model.onnx")) {
        snprintf(test->reason, sizeof test->reason, "the path of the folder is too long");
        return false;
    }
    if (cli_load_model(path, NULL, &model, &err) != CAMEO_OK)
        return test_failed(test, &err);
    if (erased && cameo_model_erase_shapes(model, strcmp(erased, "ranks") == 0, &err) != CAMEO_OK) {
        cameo_model_free(model);
        return test_failed(test, &err);
    }
    options.threads = (int)threads;
    options.memory_limit = cli_memory_limit(0);
    options.backend = is_compiled() ? NULL : backend;
    options.expand = expanded;
    options.without_passes = without;
    options.core_only = core;
    test_read_tolerance(test->path, &tolerance);
    tolerance.loose = is_random(model);
    bool passed = false;
    if (core && !to_core(test, model, &cores))
        ; /* the reason is noted */
    else if (is_compiled() && !test_compile(test, model, pure, &compiled))
        ; /* there too */
    else if (subject = compiled ? cameo_compiled_model(compiled)
                       : cores  ? cores
                                : model,
             cameo_session_new(subject, &options, &session, &err) != CAMEO_OK)
        (void)test_failed(test, &err);
    else
        passed = test_run_sets(test, session, &tolerance);
    test->expanded = session && cameo_session_expanded(session) > 0;
    for (size_t i = 0; i < cameo_model_summary(model)->operator_count; i++)
        count_operator(cameo_model_operator(model, i), test, passed);
    test->random = tolerance.loose;
    cameo_session_free(session);
    cameo_compiled_free(compiled);
    cameo_model_free(cores);
    cameo_model_free(model);
    return passed;
}

static void run_cases(struct test_list *list, const struct cli_tolerance *tolerance)
{
    for (size_t i = 0; i < list->count && !cli_reader_gone; i++) {
        struct test_case *test = &list->items[i];
        const double begin = test_seconds();

        test->passed = run_case(test, tolerance);
        test->seconds = test_seconds() - begin;
        if (test->passed)
            continue;
        fputs(test->refused ? "REFUSED " : "FAIL ", stdout);
        cli_put_text(stdout, test->name, strlen(test->name));
        fputs(": ", stdout);
        cli_put_text(stdout, test->reason, strlen(test->reason));
        fputc('\n', stdout);
    }
}

/* ---- the whole ---- */

static bool is_wanted(const struct test_case *test)
{
    const char *last = strrchr(test->name, '/');

    return !filter || fnmatch(filter, test->name, 0) == 0 ||
           fnmatch(filter, last ? last + 1 : test->name, 0) == 0;
}

static void keep_wanted(struct test_list *list)
{
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++) {
        if (is_wanted(&list->items[i]))
            list->items[kept++] = list->items[i];
        else
            test_case_free(&list->items[i]);
    }
    list->count = kept;
}

static int report(const struct test_list *list)
{
    size_t passed = 0, loose = 0, by_body = 0, refused = 0, starved = 0;
    int code = CLI_YES;

    for (size_t i = 0; i < list->count; i++) {
        passed += list->items[i].passed;
        refused += list->items[i].refused;
        starved += list->items[i].starved;
        loose += list->items[i].passed && list->items[i].random;
        by_body += list->items[i].expanded;
    }
    fputc('\n', stdout);
    print_table();
    if (loose)
        printf("\n%zu of those that passed draw random numbers and were judged by type, shape and "
               "kind of value\n",
               loose);
    if (expanded)
        printf("\n%zu of %zu cases had a node expanded\n", by_body, list->count);
    if (junit_path && cli_may_write("test: --junit", junit_path) != CLI_YES)
        code = CLI_USAGE;
    else if (junit_path && !starved)
        code = test_write_junit(junit_path, list);
    printf("\n%zu passed, %zu failed", passed, list->count - passed - refused);
    if (is_compiled())
        printf(", %zu refused", refused);
    fputc('\n', stdout);
    if (starved) {
        cli_complain("test: memory ran out in %zu of the cases, which were not judged", starved);
        return CLI_MACHINE;
    }
    return code != CLI_YES ? code : passed == list->count ? CLI_YES : CLI_NO;
}

static bool read_scaled(struct cli_tolerance *tolerance)
{
    char *end;

    if (!scaled_text)
        return true;
    tolerance->scaled = strtod(scaled_text, &end);
    if (end != scaled_text && !*end && tolerance->scaled > 0)
        return true;
    cli_complain("test: --tolerance-scaled needs a number above 0, not '%s'", scaled_text);
    return false;
}

/* Compiled code is a backend here and nowhere else; of all others a session knows, and says before
 * it looks at its model. */
static bool check_backend(void)
{
    static const char empty[] = "<ir_version: 8, opset_import: [\"\" : 17]> g (float x) => () {}";
    struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_load_options load = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_session *session = NULL;
    struct cameo_model *model = NULL;
    struct cameo_error err = {0};

    if (!backend || is_compiled())
        return true;
    load.format = CAMEO_FORMAT_TEXT;
    options.backend = backend;
    if (cameo_model_load_memory(empty, sizeof empty - 1, &load, &model, &err) == CAMEO_OK)
        (void)cameo_session_new(model, &options, &session, &err);
    cameo_session_free(session);
    cameo_model_free(model);
    if (err.status == CAMEO_BAD_ARGUMENT)
        cli_complain("test: %s, compiled", err.message);
    return err.status != CAMEO_BAD_ARGUMENT;
}

static int test_main(char **operands, int count)
{
    struct cli_tolerance tolerance = {.rtol = 1e-3, .atol = 1e-7};
    struct test_list list = {0};
    int code = CLI_YES;

    if (!read_scaled(&tolerance) || !check_backend())
        return CLI_USAGE;
    if (erased && strcmp(erased, "dims") != 0 && strcmp(erased, "ranks") != 0) {
        cli_complain("test: --erase needs dims or ranks, not '%s'", erased);
        return CLI_USAGE;
    }
    if (is_compiled() && (core || expanded || without)) {
        cli_complain("test: --backend compiled goes without --core, --expanded and --without");
        return CLI_USAGE;
    }
    if (threads > 4096) {
        cli_complain("test: %zu threads are too many", threads);
        return CLI_USAGE;
    }
    code = cli_check_writable(junit_path);
    for (int i = 0; i < count && code == CLI_YES; i++)
        code = test_find(&list, operands[i]);
    if (code == CLI_YES && list.count == 0) {
        cli_complain("test: no folder here holds a model.onnx");
        code = CLI_USAGE;
    }
    if (code == CLI_YES) {
        keep_wanted(&list);
        if (list.count == 0) {
            cli_complain("test: no case matches '%s'", filter);
            code = CLI_USAGE;
        } else if (only_list) {
            for (size_t i = 0; i < list.count; i++) {
                cli_put_text(stdout, list.items[i].name, strlen(list.items[i].name));
                fputc('\n', stdout);
            }
        } else {
            run_cases(&list, &tolerance);
            code = report(&list);
        }
    }
    test_list_free(&list);
    free(tallies);
    return code;
}

static const struct cli_option options[] = {
    {"--list", NULL, NULL, "only list the cases", CLI_FLAG, &only_list},
    {"--filter", NULL, "GLOB", "only cases whose name matches", CLI_TEXT, &filter},
    {"--expanded", NULL, NULL, "run operators by their function bodies where they have one",
     CLI_FLAG, &expanded},
    {"--core", NULL, NULL, "expand to core operators, and run no others", CLI_FLAG, &core},
    {"--pure", NULL, NULL, "with --backend compiled: generated code only", CLI_FLAG, &pure},
    {"--erase", NULL, "WHAT", "dims or ranks: forget what models declare of shapes", CLI_TEXT,
     &erased},
    {"--junit", NULL, "FILE", "write the results as JUnit XML", CLI_TEXT, &junit_path},
    {"--backend", NULL, "NAME", "reference: our own kernels; plain: without a plan; compiled",
     CLI_TEXT, &backend},
    {"--without", NULL, "PASSES", "leave these passes out, see 'cameo help optimize'", CLI_TEXT,
     &without},
    {"--threads", NULL, "N", "how many work at once (as many as cores)", CLI_SIZE, &threads},
    {"--tolerance-scaled", NULL, "X", "accept differences up to X times the largest expected value",
     CLI_TEXT, &scaled_text},
    {0},
};

CLI_COMMAND(
    test, test_main, "DIR... [--list] [--filter GLOB] [--expanded] [--junit FILE]",
    "run ONNX backend test cases",
    "Finds every folder under DIR with a model.onnx, runs the model on the inputs of each\n"
    "test_data_set_N and compares the outputs: number, type, shape, strings exactly, numbers\n"
    "within 1e-3 relative and 1e-7 absolute unless the case's data.json says otherwise; what is\n"
    "zero but for rounding, next to the largest expected number, is equal to zero. What\n"
    "cannot run counts as failed. A table by operator and a line of counts end the report. With\n"
    "--expanded a line before that says how many cases have a node that was replaced.",
    "cameo test node # ONNX's own suite\n"
    "cameo test node --filter 'test_conv*' # a part of it\n"
    "cameo test node --expanded # by the bodies of functions\n"
    "cameo test node --core # by core operators alone\n"
    "cameo test node --backend compiled # each model compiled to native code\n"
    "cameo test node --erase ranks # without declared shapes",
    "0 if all passed, 1 if one failed", options, 1, 1000);
