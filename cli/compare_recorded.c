/* Values that somebody recorded: arrays named after values of a model, or files that are. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "compare.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

/* The value that a file is called after: its name, or its name after the number that --dump writes.
 */
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

static int add_arrays(struct compare_request *r, const struct cameo_graph *graph,
                      const struct file_names *names, const char *path, const char *stem)
{
    struct cameo_arrays_options options = CAMEO_ARRAYS_OPTIONS_INIT;
    struct cameo_arrays *arrays;
    struct cameo_error err;

    cli_reads(path);
    options.memory_limit = cli_memory_limit(0);
    if (cameo_arrays_load(path, &options, &arrays, &err) != CAMEO_OK)
        return cli_fail(&err);
    r->files = cli_grow(r->files, r->file_count, &r->file_room, sizeof(*r->files));
    r->files[r->file_count++] = arrays;
    for (size_t i = 0; i < cameo_arrays_count(arrays); i++) {
        const char *called = stem ? stem : cameo_arrays_name(arrays, i).data;
        const struct cameo_edge *edge = find_value(graph, names, called);

        r->recorded =
            cli_grow(r->recorded, r->recorded_count, &r->recorded_room, sizeof *r->recorded);
        r->recorded[r->recorded_count++] =
            cameo_feed_value(cli_copy(edge ? edge->name.data : called), cameo_arrays_at(arrays, i));
        r->any_known = r->any_known || edge;
    }
    return CLI_YES;
}

static int is_array(const struct dirent *entry)
{
    const char *ending = strrchr(entry->d_name, '.');

    return ending && strcmp(ending, ".npy") == 0;
}

static int read_folder(struct compare_request *r, const struct cameo_graph *graph,
                       const struct file_names *names, const char *folder)
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
            code = add_arrays(r, graph, names, path, stem);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return code;
}

int compare_read_recorded(struct compare_request *r, const char *path)
{
    const struct cameo_graph *graph;
    struct cameo_error err;
    struct stat facts;

    if (cameo_model_graph(r->a, CAMEO_GRAPH_MAIN, 0, &graph, &err) != CAMEO_OK)
        return cli_fail(&err);
    struct file_names names = list_file_names(graph);
    const bool folder = stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
    const int code =
        folder ? read_folder(r, graph, &names, path) : add_arrays(r, graph, &names, path, NULL);
    free(names.items);
    if (code != CLI_YES || r->any_known)
        return code;
    cli_complain("compare: no array of %s is named after a value of the model", path);
    return CLI_USAGE;
}

void compare_free_recorded(struct compare_request *r)
{
    for (size_t i = 0; i < r->recorded_count; i++)
        free((char *)(uintptr_t)r->recorded[i].name);
    for (size_t i = 0; i < r->file_count; i++)
        cameo_arrays_free(r->files[i]);
    free(r->files);
    free(r->recorded);
}
