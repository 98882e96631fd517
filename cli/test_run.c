/* Running the data sets of a backend test case, and the report for machines. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "test_cases.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* One data set: files of inputs and expected outputs, and what came out. */
struct data_set {
    struct cameo_arrays **inputs, **outputs;
    size_t n_inputs, n_outputs; /* files */
    struct cameo_feed *feeds;
    struct cameo_fetch *fetches;
};

static bool fail(struct test_case *test, const char *format, ...) CLI_PRINTF(2, 3);

static bool fail(struct test_case *test, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(test->reason, sizeof test->reason, format, args);
    va_end(args);
    return false;
}

bool test_failed(struct test_case *test, const struct cameo_error *err)
{
    test->starved = err->status == CAMEO_NO_MEMORY;
    return fail(test, "%.900s", err->message);
}

static bool has_file(const char *folder, const char *side, size_t index, char *path)
{
    char name[64];
    uint64_t bytes;

    snprintf(name, sizeof name, "%s_%zu.pb", side, index);
    return test_path(path, folder, name) && cli_file_size(path, &bytes);
}

static size_t count_files(const char *folder, const char *side)
{
    char path[TEST_PATH_SIZE];
    size_t count = 0;

    while (has_file(folder, side, count, path))
        count++;
    return count;
}

/* Files are numbered like the inputs of the graph; in old models, which list their weights as
 * inputs too, like those without a default. */
static size_t input_of_file(const struct cameo_session *session, size_t files, size_t file)
{
    const size_t count = cameo_session_input_count(session);
    size_t needed = 0, at = 0;

    for (size_t i = 0; i < count; i++)
        needed += !cameo_session_input(session, i)->has_default;
    if (files > needed)
        return file;
    for (size_t i = 0; i < count; i++)
        if (!cameo_session_input(session, i)->has_default && at++ == file)
            return i;
    return count;
}

static enum cameo_status open_value(const char *path, enum cameo_kind kind,
                                    struct cameo_arrays **out, struct cameo_error *err)
{
    struct cameo_arrays_options options = CAMEO_ARRAYS_OPTIONS_INIT;

    cli_reads(path);
    options.kind = kind;
    options.memory_limit = cli_memory_limit(0);
    return cameo_arrays_load(path, &options, out, err);
}

static bool load_inputs(struct test_case *test, const struct cameo_session *session,
                        const char *folder, struct data_set *set)
{
    const size_t files = count_files(folder, "input");
    struct cameo_error err;
    char path[TEST_PATH_SIZE];

    set->inputs = cli_alloc(files, sizeof *set->inputs);
    set->feeds = cli_alloc(files, sizeof *set->feeds);
    for (; set->n_inputs < files; set->n_inputs++) {
        const size_t i = set->n_inputs, index = input_of_file(session, files, i);
        const struct cameo_value_info *input = cameo_session_input(session, index);

        if (!input)
            return fail(test, "there are %zu input files, the model takes %zu", files,
                        cameo_session_input_count(session));
        if (!has_file(folder, "input", i, path) ||
            open_value(path, input->kind, &set->inputs[i], &err) != CAMEO_OK)
            return test_failed(test, &err);
        set->feeds[i] = cameo_feed_value(NULL, cameo_arrays_at(set->inputs[i], 0));
        set->feeds[i].index = index;
    }
    return true;
}

static bool load_outputs(struct test_case *test, const struct cameo_session *session,
                         const char *folder, struct data_set *set)
{
    const size_t files = count_files(folder, "output");
    struct cameo_error err;
    char path[TEST_PATH_SIZE];

    if (files != cameo_session_output_count(session))
        return fail(test, "gives %zu outputs, should give %zu", cameo_session_output_count(session),
                    files);
    set->outputs = cli_alloc(files, sizeof *set->outputs);
    set->fetches = cli_alloc(files, sizeof *set->fetches);
    for (; set->n_outputs < files; set->n_outputs++) {
        const size_t i = set->n_outputs;

        if (!has_file(folder, "output", i, path) ||
            open_value(path, cameo_session_output(session, i)->kind, &set->outputs[i], &err) !=
                CAMEO_OK)
            return test_failed(test, &err);
        set->fetches[i] = cameo_fetch_value(NULL);
        set->fetches[i].index = i;
    }
    return true;
}

static bool compare(struct test_case *test, const struct cameo_session *session,
                    const struct data_set *set, const struct cli_tolerance *tolerance)
{
    char reason[512];

    for (size_t i = 0; i < set->n_outputs; i++)
        if (!cli_same_value(set->fetches[i].value, cameo_arrays_at(set->outputs[i], 0), tolerance,
                            reason, sizeof reason))
            return fail(test, "output '%.100s' %s", cameo_session_output(session, i)->name.data,
                        reason);
    return true;
}

static bool run_set(struct test_case *test, struct cameo_session *session, const char *folder,
                    const struct cli_tolerance *tolerance)
{
    struct data_set set = {0};
    struct cameo_error err;
    bool passed =
        load_inputs(test, session, folder, &set) && load_outputs(test, session, folder, &set);

    if (passed && cameo_session_run(session, set.feeds, set.n_inputs, set.fetches, set.n_outputs,
                                    NULL, &err) != CAMEO_OK)
        passed = test_failed(test, &err);
    passed = passed && compare(test, session, &set, tolerance);
    for (size_t i = 0; i < set.n_inputs; i++)
        cameo_arrays_free(set.inputs[i]);
    for (size_t i = 0; i < set.n_outputs; i++) {
        cameo_arrays_free(set.outputs[i]);
        cameo_value_free(set.fetches[i].value);
    }
    free(set.inputs);
    free(set.outputs);
    free(set.feeds);
    free(set.fetches);
    return passed;
}

bool test_run_sets(struct test_case *test, struct cameo_session *session,
                   const struct cli_tolerance *tolerance)
{
    char folder[TEST_PATH_SIZE], name[64];
    uint64_t bytes;
    size_t count = 0;

    for (;; count++) {
        snprintf(name, sizeof name, "test_data_set_%zu", count);
        if (!test_path(folder, test->path, name) || !cli_file_size(folder, &bytes))
            break;
        if (!run_set(test, session, folder, tolerance))
            return false;
    }
    return count ? true : fail(test, "has no test_data_set_0");
}

/* ---- JUnit ---- */

static void put_xml(FILE *to, const char *text)
{
    const size_t size = strlen(text);

    for (size_t i = 0; i < size;) {
        const unsigned char c = (unsigned char)text[i];
        const size_t length = cli_utf8_length((const unsigned char *)text + i, size - i);

        if (c == '<' || c == '>' || c == '&' || c == '"')
            fputs(c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : "&quot;", to);
        else if (length == 0 || c < 32)
            fputc('?', to);
        else
            fwrite(text + i, 1, length, to);
        i += length ? length : 1;
    }
}

static void write_case(FILE *to, const struct test_case *test)
{
    fputs("  <testcase classname=\"onnx\" name=\"", to);
    put_xml(to, test->name);
    fprintf(to, "\" time=\"%.6f\"", test->seconds);
    if (test->passed) {
        fputs("/>\n", to);
        return;
    }
    fputs(">\n    <failure message=\"", to);
    put_xml(to, test->reason);
    fputs("\"/>\n  </testcase>\n", to);
}

int test_write_junit(const char *path, const struct test_list *list)
{
    struct cli_output output;
    const int code = cli_output_begin(&output, path);
    FILE *to = output.to;
    size_t failed = 0;

    if (code != CLI_YES)
        return code;
    for (size_t i = 0; i < list->count; i++)
        failed += !list->items[i].passed;
    fprintf(to,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuite name=\"cameo\" tests=\"%zu\" failures=\"%zu\">\n",
            list->count, failed);
    for (size_t i = 0; i < list->count; i++)
        write_case(to, &list->items[i]);
    fputs("</testsuite>\n", to);
    return cli_output_end(&output, CLI_YES);
}
