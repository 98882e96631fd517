/* Results of two models, or of one and those recorded elsewhere, on the same inputs. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "compare.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Values of one run, by the name that they are asked for by. */
struct results {
    struct cameo_fetch *fetches;
    size_t count;
};

static void free_results(struct results *results)
{
    for (size_t i = 0; i < results->count; i++)
        cameo_value_free(results->fetches[i].value);
    free(results->fetches);
    *results = (struct results){0};
}

static int open_session(const struct cameo_model *model, struct cameo_session **out)
{
    struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_error err;

    options.memory_limit = cli_memory_limit(0);
    return cameo_session_new(model, &options, out, &err) == CAMEO_OK
               ? CLI_YES
               : cli_fail_model(model, &options, &err);
}

static int run(struct cameo_session *session, const struct cameo_feed *feeds, size_t feed_count,
               const char *const *names, size_t count, struct results *out, struct cameo_error *err)
{
    out->fetches = cli_alloc(count, sizeof *out->fetches);
    out->count = count;
    for (size_t i = 0; i < count; i++)
        out->fetches[i] = cameo_fetch_value(names[i]);
    return cameo_session_run(session, feeds, feed_count, out->fetches, count, NULL, err) == CAMEO_OK
               ? CLI_YES
               : cli_exit_code(err->status);
}

/* Adds a row for a value of which b is what is expected; false when they differ. */
static bool judge(struct comparison *c, const char *kind, const char *name, const char *where,
                  const struct cameo_value *a, const struct cameo_value *b)
{
    struct cameo_difference difference = CAMEO_DIFFERENCE_INIT;
    char is[200], should[200];

    if (cameo_value_difference(a, b, c->relative, c->absolute, &difference, NULL) != CAMEO_OK) {
        compare_add(c, COMPARE_RESULTS, kind, name, NULL, "%s%s%s, expected %s", where,
                    where[0] ? ", is " : "is ", cli_describe_value(is, sizeof is, a),
                    cli_describe_value(should, sizeof should, b));
        return false;
    }
    if (!difference.differing)
        return true;
    compare_add(c, COMPARE_RESULTS, kind, name, &difference, where[0] ? "%s" : NULL, where);
    return false;
}

static const char *maker_text(char *text, size_t size, const struct cameo_node *node)
{
    if (node->name.size)
        snprintf(text, size, "node '%.100s' (%.60s)", node->name.data, node->op_type.data);
    else
        snprintf(text, size, "node %zu (%.60s)", node->index, node->op_type.data);
    return text;
}

/* ---- inputs ---- */

static int gather(struct comparison *c, struct cli_inputs *inputs,
                  const struct cameo_session *session, const struct cli_texts *texts,
                  const struct cli_make *make, size_t seed)
{
    struct cameo_make_options options = CAMEO_MAKE_OPTIONS_INIT;
    int code = CLI_YES;

    cli_inputs_begin(inputs, "compare", session);
    for (size_t i = 0; i < texts->count && code == CLI_YES; i++)
        code = cli_inputs_add(inputs, texts->items[i]);
    options.seed = seed;
    options.memory_limit = cli_memory_limit(0);
    if (code == CLI_YES) {
        const size_t given = inputs->count;
        code = cli_inputs_make(inputs, make, &options);
        c->random = c->random || inputs->count > given;
    }
    return code;
}

/* ---- two models ---- */

/* Names of values that nodes of both compute, in the order of the first. */
static size_t common_values(const struct comparison *c, const char **names,
                            const struct cameo_node **makers)
{
    const struct cameo_graph *a, *b;
    size_t count = 0;

    if (cameo_model_graph(c->a, CAMEO_GRAPH_MAIN, 0, &a, NULL) != CAMEO_OK ||
        cameo_model_graph(c->b, CAMEO_GRAPH_MAIN, 0, &b, NULL) != CAMEO_OK)
        return 0;
    for (size_t n = 0; n < cameo_graph_node_count(a); n++) {
        const struct cameo_node *node = cameo_graph_node(a, n);
        for (size_t o = 0; o < node->output_count; o++) {
            const struct cameo_edge *edge =
                node->outputs[o].size ? cameo_graph_find_edge(b, node->outputs[o].data) : NULL;
            if (!edge || !edge->maker)
                continue;
            if (names) {
                names[count] = node->outputs[o].data;
                makers[count] = node;
            }
            count++;
        }
    }
    return count;
}

/* Runs both models again with all values that they have in common as outputs. */
static int find_first(struct comparison *c, const struct cli_inputs *inputs)
{
    const size_t count = common_values(c, NULL, NULL);
    const char **names = cli_alloc(count, sizeof *names);
    const struct cameo_node **makers = cli_alloc(count, sizeof *makers);
    struct cameo_session *x = NULL, *y = NULL;
    struct results of_a = {0}, of_b = {0};
    struct cameo_error err;
    int code = CLI_YES;

    common_values(c, names, makers);
    if (count && cameo_model_expose(c->a, names, count, NULL, &err) == CAMEO_OK &&
        cameo_model_expose(c->b, names, count, NULL, &err) == CAMEO_OK) {
        code = open_session(c->a, &x);
        if (code == CLI_YES)
            code = open_session(c->b, &y);
        if (code == CLI_YES &&
            run(x, inputs->feeds, inputs->count, names, count, &of_a, &err) == CLI_YES &&
            run(y, inputs->feeds, inputs->count, names, count, &of_b, &err) == CLI_YES)
            for (size_t i = 0; i < count; i++) {
                char where[260];
                maker_text(where, sizeof where, makers[i]);
                if (!judge(c, "first", names[i], where, of_b.fetches[i].value,
                           of_a.fetches[i].value))
                    break;
            }
    }
    free_results(&of_a);
    free_results(&of_b);
    cameo_session_free(x);
    cameo_session_free(y);
    free(names);
    free(makers);
    return code;
}

/* Outputs by name, or by position where no name is in both. */
static size_t pair_outputs(const struct comparison *c, const char **a, const char **b)
{
    const struct cameo_value_info *x, *y;
    size_t count = 0, by_name = 0;

    for (int named = 1; named >= 0 && !by_name; named--)
        for (size_t i = 0; (x = cameo_model_output(c->a, i)) != NULL; i++)
            for (size_t k = 0; (y = cameo_model_output(c->b, k)) != NULL; k++)
                if (named ? strcmp(x->name.data, y->name.data) == 0 : i == k) {
                    a[count] = x->name.data;
                    b[count++] = y->name.data;
                    by_name += (size_t)named;
                    break;
                }
    return count;
}

static int run_both(struct comparison *c, const struct cli_inputs *inputs,
                    struct cameo_session *first, struct cameo_session *second)
{
    const size_t room = cameo_model_summary(c->a)->output_count + 1;
    const char **of_a = cli_alloc(room, sizeof *of_a), **of_b = cli_alloc(room, sizeof *of_b);
    struct results x = {0}, y = {0};
    struct cameo_error err;

    const size_t count = pair_outputs(c, of_a, of_b);
    int code = run(first, inputs->feeds, inputs->count, of_a, count, &x, &err);
    if (code == CLI_YES &&
        run(second, inputs->feeds, inputs->count, of_b, count, &y, &err) != CLI_YES) {
        compare_add(c, COMPARE_RESULTS, "changed", "second model", NULL, "does not run: %.600s",
                    err.message);
        c->differing[COMPARE_RESULTS]++;
    } else if (code == CLI_YES) {
        for (size_t i = 0; i < count; i++) {
            c->looked[COMPARE_RESULTS]++;
            c->differing[COMPARE_RESULTS] +=
                !judge(c, "value", of_a[i], "", y.fetches[i].value, x.fetches[i].value);
        }
    } else {
        cli_complain("%s", err.message);
    }
    free_results(&x);
    free_results(&y);
    free(of_a);
    free(of_b);
    return code;
}

int compare_results(struct comparison *c, const struct cli_texts *texts,
                    const struct cli_make *make, size_t seed)
{
    struct cameo_session *first = NULL, *second = NULL;
    struct cli_inputs inputs = {0};
    int code = open_session(c->a, &first);

    if (code == CLI_YES)
        code = open_session(c->b, &second);
    if (code == CLI_YES)
        code = gather(c, &inputs, first, texts, make, seed);
    if (code == CLI_YES)
        code = run_both(c, &inputs, first, second);
    cameo_session_free(second);
    const bool differ = code == CLI_YES && c->differing[COMPARE_RESULTS];
    if (differ && c->looked[COMPARE_RESULTS])
        code = find_first(c, &inputs);
    cli_inputs_end(&inputs);
    cameo_session_free(first);
    return code;
}

/* ---- recorded values ---- */

/* A value of the model that a file holds. */
struct recorded {
    const char *name;
    const struct cameo_node *maker;
    const struct cameo_value *value;
};

struct recording {
    struct recorded *items;
    size_t count, room;
    struct cameo_arrays **files;
    size_t file_count, file_room;
};

/* Names of files that values of a graph would have, in order. */
struct file_names {
    struct file_name {
        char safe[220];
        const struct cameo_edge *edge;
    } * items;
    size_t count;
};

static int by_safe_name(const void *a, const void *b)
{
    return strcmp(((const struct file_name *)a)->safe, ((const struct file_name *)b)->safe);
}

static struct file_names list_file_names(const struct cameo_graph *graph)
{
    const size_t count = cameo_graph_edge_count(graph);
    struct file_names names = {cli_alloc(count, sizeof *names.items), count};

    for (size_t i = 0; i < count; i++) {
        names.items[i].edge = cameo_graph_edge(graph, i);
        cli_file_name(names.items[i].safe, sizeof names.items[i].safe, names.items[i].edge->name,
                      i);
    }
    if (count)
        qsort(names.items, count, sizeof *names.items, by_safe_name);
    return names;
}

/* The value that a file is called after: as it is, or behind the number that --dump writes. */
static const struct cameo_edge *find_value(const struct cameo_graph *graph,
                                           const struct file_names *files, const char *stem)
{
    size_t digits = 0;

    while (isdigit((unsigned char)stem[digits]))
        digits++;
    for (int numbered = 0; numbered < 2; numbered++) {
        const char *called = numbered ? stem + digits + 1 : stem;
        const struct cameo_edge *edge = cameo_graph_find_edge(graph, called);
        struct file_name key = {.edge = NULL};

        if (edge)
            return edge;
        snprintf(key.safe, sizeof key.safe, "%s", called);
        const struct file_name *found =
            bsearch(&key, files->items, files->count, sizeof key, by_safe_name);
        if (found)
            return found->edge;
        if (digits < 5 || stem[digits] != '_')
            break;
    }
    return NULL;
}

static int add_arrays(struct comparison *c, struct recording *recording,
                      const struct cameo_graph *graph, const struct file_names *names,
                      const char *path, const char *stem)
{
    struct cameo_arrays_options options = CAMEO_ARRAYS_OPTIONS_INIT;
    struct cameo_arrays *arrays;
    struct cameo_error err;

    cli_reads(path);
    options.memory_limit = cli_memory_limit(0);
    if (cameo_arrays_load(path, &options, &arrays, &err) != CAMEO_OK)
        return cli_fail(&err);
    recording->files = cli_grow(recording->files, recording->file_count, &recording->file_room,
                                sizeof(*recording->files));
    recording->files[recording->file_count++] = arrays;
    for (size_t i = 0; i < cameo_arrays_count(arrays); i++) {
        const struct cameo_text name = cameo_arrays_name(arrays, i);
        const char *called = stem ? stem : name.data;
        const struct cameo_edge *edge = find_value(graph, names, called);

        if (!edge) {
            compare_add(c, COMPARE_RESULTS, "note", called, NULL, "is not a value of the model");
            continue;
        }
        recording->items = cli_grow(recording->items, recording->count, &recording->room,
                                    sizeof *recording->items);
        recording->items[recording->count++] =
            (struct recorded){edge->name.data, edge->maker, cameo_arrays_at(arrays, i)};
    }
    return CLI_YES;
}

static int is_array(const struct dirent *entry)
{
    const char *ending = strrchr(entry->d_name, '.');

    return ending && strcmp(ending, ".npy") == 0;
}

static int read_folder(struct comparison *c, struct recording *recording,
                       const struct cameo_graph *graph, const struct file_names *names,
                       const char *folder)
{
    struct dirent **entries;
    const int count = scandir(folder, &entries, is_array, alphasort);
    int code = CLI_YES;

    for (int i = 0; i < count; i++) {
        const char *file = entries[i]->d_name;
        char path[4096], stem[300];
        const int size = snprintf(path, sizeof path, "%s/%s", folder, file);

        snprintf(stem, sizeof stem, "%.*s", (int)(strlen(file) - 4), file);
        if (code == CLI_YES && size > 0 && (size_t)size < sizeof path)
            code = add_arrays(c, recording, graph, names, path, stem);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return code;
}

static int in_order(const void *a, const void *b)
{
    const struct recorded *x = a, *y = b;
    const size_t i = x->maker ? x->maker->index + 1 : 0, k = y->maker ? y->maker->index + 1 : 0;

    return i != k ? (i > k) - (i < k) : strcmp(x->name, y->name);
}

static int judge_recording(struct comparison *c, const struct recording *recording,
                           const struct cli_texts *texts, const struct cli_make *make, size_t seed)
{
    const char **names = cli_alloc(recording->count, sizeof *names);
    struct cameo_session *session = NULL;
    struct cli_inputs inputs = {0};
    struct results results = {0};
    struct cameo_error err;
    bool first = true;

    for (size_t i = 0; i < recording->count; i++)
        names[i] = recording->items[i].name;
    int code = cameo_model_expose(c->a, names, recording->count, NULL, &err) == CAMEO_OK
                   ? open_session(c->a, &session)
                   : cli_fail(&err);
    if (code == CLI_YES)
        code = gather(c, &inputs, session, texts, make, seed);
    if (code == CLI_YES) {
        code = run(session, inputs.feeds, inputs.count, names, recording->count, &results, &err);
        if (code != CLI_YES)
            cli_complain("%s", err.message);
    }
    for (size_t i = 0; code == CLI_YES && i < recording->count; i++) {
        const struct recorded *item = &recording->items[i];
        char where[260] = "";

        if (item->maker)
            maker_text(where, sizeof where, item->maker);
        c->looked[COMPARE_RESULTS]++;
        if (judge(c, first ? "first" : "value", item->name, where, results.fetches[i].value,
                  item->value))
            continue;
        c->differing[COMPARE_RESULTS]++;
        first = false;
    }
    free_results(&results);
    cli_inputs_end(&inputs);
    cameo_session_free(session);
    free(names);
    return code;
}

int compare_recorded(struct comparison *c, const char *path, const struct cli_texts *inputs,
                     const struct cli_make *make, size_t seed)
{
    struct recording recording = {0};
    const struct cameo_graph *graph;
    struct cameo_error err;
    struct stat facts;
    int code;

    if (cameo_model_graph(c->a, CAMEO_GRAPH_MAIN, 0, &graph, &err) != CAMEO_OK)
        return cli_fail(&err);
    struct file_names names = list_file_names(graph);
    if (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode))
        code = read_folder(c, &recording, graph, &names, path);
    else
        code = add_arrays(c, &recording, graph, &names, path, NULL);
    free(names.items);
    if (code == CLI_YES && !recording.count) {
        cli_complain("compare: no array of %s is named after a value of the model", path);
        code = CLI_USAGE;
    }
    if (code == CLI_YES) {
        qsort(recording.items, recording.count, sizeof *recording.items, in_order);
        code = judge_recording(c, &recording, inputs, make, seed);
    }
    for (size_t i = 0; i < recording.file_count; i++)
        cameo_arrays_free(recording.files[i]);
    free(recording.files);
    free(recording.items);
    return code;
}
