/* Data sets by their names, or of memory: what format a path is in, and whether its arrays go
 * together. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "io/dataset.h"

#include "base/folder_list.h"
#include "base/memory.h"
#include "io/dataset_sets.h"

#include <sys/stat.h>
#include <unistd.h>

struct opening {
    struct cm_dataset *set;
    const char *path; /* of the file that is read; or NULL, and then: */
    const struct cm_dataset_array *arrays;
    size_t n_arrays;
    struct cm_dataset_options options;
    const char *const *paths;
    size_t n_paths;
    struct cm_error *err;
};

// clang-format off
const struct cm_rows_format cm_rows_formats[] = {
    {".npz", cm_rows_npz},
    {".npy", cm_rows_npy},
    {".safetensors", cm_rows_safetensors},
    {".csv", cm_rows_csv},
    {NULL, NULL},
};
// clang-format on

/* Maps a file by its path, or one of the folder that is opened, and adds its arrays. name: of an
 * array without a name; about: what a message begins with, or empty. */
static enum cm_status add_file(struct opening *opening, struct cm_str path, bool in_folder,
                               struct cm_str name, cm_rows_fn *read, struct cm_str about)
{
    struct cm_dataset *set = opening->set;
    struct cm_error *err = opening->err;
    struct cm_mapping *mapping = CM_NEW(&set->arena, struct cm_mapping);
    int fd;

    cm_mapping_defer(&set->arena, mapping);
    if (in_folder) {
        const struct cm_str whole = cm_path_join(&set->arena, cm_str(opening->path), path);

        CM_TRY(cm_file_open_beneath(opening->path, path, opening->options.flags, &fd, err));
        const enum cm_status status = cm_fd_map(fd, cm_str_text(whole), false, mapping, err);
        close(fd);
        CM_TRY(status);
    } else {
        CM_TRY(cm_file_map(cm_str_text(path), false, mapping, err));
    }
    const struct cm_rows_file file = {.arena = &set->arena,
                                      .name = name,
                                      .bytes = {(const char *)mapping->data, mapping->size},
                                      .columns = opening->options.columns};
    const enum cm_status status = read(&file, &set->rows, err);
    return about.size ? cm_error_context(err, status, "%.*s", CM_STR_ALL(about)) : status;
}

/* ---- folders ---- */

static bool is_idx(struct cm_str name)
{
    return cm_str_ends(name, "-ubyte") || cm_str_ends(name, ".idx") || cm_str_ends(name, "-idx");
}

/* The one file of a kind; of several, the one for training. */
static enum cm_status pick(const struct opening *opening, const struct cm_folder_names *names,
                           const char *kind, struct cm_str *out)
{
    size_t found = 0, for_training = 0;
    struct cm_str training = CM_STR_NONE;

    for (size_t i = 0; i < names->count; i++) {
        if (names->items[i].data[0] == '.' || !is_idx(names->items[i]) ||
            !cm_str_contains(names->items[i], kind))
            continue;
        found++;
        *out = names->items[i];
        if (cm_str_starts(names->items[i], "train")) {
            for_training++;
            training = names->items[i];
        }
    }
    if (for_training == 1)
        *out = training;
    if (found == 1 || for_training == 1)
        return CM_OK;
    return cm_fail(opening->err, found ? CM_BAD_ARGUMENT : CM_NOT_FOUND,
                   "%zu of its IDX files are called ..%s..; name two as IMAGES:LABELS", found,
                   kind);
}

/* ---- IDX ---- */

/* What the arrays are called: "x=images y=labels", or only one of the two. */
static enum cm_status idx_names(struct opening *opening, struct cm_str *images,
                                struct cm_str *labels)
{
    const char *text = opening->options.columns ? opening->options.columns : "x=images y=labels";
    struct cm_column_arrays arrays;

    *images = *labels = CM_STR_NONE;
    CM_TRY(cm_columns_parse(&opening->set->arena, text, &arrays, opening->err));
    for (size_t i = 0; i < arrays.count; i++) {
        const struct cm_column_array *array = &arrays.items[i];
        const struct cm_str of = array->items[0].first;
        const bool is_images = cm_str_is(of, "images");

        if (array->count != 1 || array->type || !(is_images || cm_str_is(of, "labels")))
            return cm_fail(
                opening->err, CM_BAD_ARGUMENT,
                "columns: IDX files have images and labels, as in \"x=images y=labels\"");
        *(is_images ? images : labels) = cm_arena_str(&opening->set->arena, array->name);
    }
    return CM_OK;
}

static enum cm_status open_idx(struct opening *opening, struct cm_str images, struct cm_str labels,
                               bool in_folder)
{
    const struct cm_str paths[] = {images, labels};
    struct cm_str names[2];

    CM_TRY(idx_names(opening, &names[0], &names[1]));
    for (size_t i = 0; i < CM_COUNT(paths); i++)
        if (names[i].size)
            CM_TRY(add_file(opening, paths[i], in_folder, names[i], cm_rows_idx, paths[i]));
    return CM_OK;
}

static enum cm_status open_idx_folder(struct opening *opening, const struct cm_folder_names *names)
{
    struct cm_str images, labels;

    CM_TRY(pick(opening, names, "images", &images));
    CM_TRY(pick(opening, names, "labels", &labels));
    return open_idx(opening, images, labels, true);
}

/* "images:labels": cut at the colon whose left side is a file. */
static enum cm_status open_idx_pair(struct opening *opening, bool *is_pair)
{
    struct cm_arena *arena = &opening->set->arena;

    *is_pair = false;
    for (const char *at = strchr(opening->path, ':'); at; at = strchr(at + 1, ':')) {
        const struct cm_str images =
            cm_arena_str(arena, (struct cm_str){opening->path, (size_t)(at - opening->path)});
        struct stat facts;

        if (!images.size || !at[1] || stat(cm_str_text(images), &facts) != 0)
            continue;
        *is_pair = true;
        return open_idx(opening, images, cm_arena_str(arena, cm_str(at + 1)), false);
    }
    return CM_OK;
}

/* ---- all formats ---- */

static enum cm_status open_folder(struct opening *opening)
{
    struct cm_arena *arena = &opening->set->arena;
    struct cm_folder_names names;
    bool any = false, any_idx = false;

    CM_TRY(cm_folder_list(arena, opening->path, 1, opening->options.flags, &names, opening->err));
    for (size_t i = 0; i < names.count; i++) {
        const struct cm_str file = names.items[i], name = cm_str_before_last(file, '.');

        any_idx = any_idx || is_idx(file);
        if (file.data[0] == '.' || !cm_str_ends(file, ".npy"))
            continue;
        any = true;
        CM_TRY(add_file(opening, file, true, name, cm_rows_npy,
                        cm_arena_printf(arena, "array '%.*s'", CM_STR_FMT(name))));
    }
    if (any)
        return CM_OK;
    return any_idx
               ? open_idx_folder(opening, &names)
               : cm_fail(opening->err, CM_NOT_FOUND, "the folder has neither .npy nor IDX files");
}

static enum cm_status open_file(struct opening *opening)
{
    struct cm_arena *arena = &opening->set->arena;
    const struct cm_str path = cm_str(opening->path);
    const struct cm_str name =
        cm_arena_str(arena, cm_str_before_last(cm_str(cm_path_name(opening->path)), '.'));
    struct cm_str endings = CM_STR("");

    for (const struct cm_rows_format *format = cm_rows_formats; format->ending; format++) {
        if (cm_str_ends(path, format->ending))
            return add_file(opening, path, false, name, format->read, CM_STR_NONE);
        endings = cm_arena_printf(arena, "%s%s%s", cm_str_text(endings),
                                  !endings.size      ? ""
                                  : format[1].ending ? ", "
                                                     : " or ",
                                  format->ending);
    }
    return cm_fail(opening->err, CM_BAD_ARGUMENT,
                   "a data set is a %s file, a folder of .npy or IDX files, or IMAGES:LABELS",
                   cm_str_text(endings));
}

static enum cm_status open_any(struct opening *opening)
{
    struct stat facts;
    bool is_pair = false;

    if (stat(opening->path, &facts) == 0)
        return S_ISDIR(facts.st_mode) ? open_folder(opening) : open_file(opening);
    CM_TRY(open_idx_pair(opening, &is_pair));
    return is_pair ? CM_OK : cm_fail(opening->err, CM_NOT_FOUND, "there is no such file or folder");
}

static enum cm_status take_arrays(struct opening *opening)
{
    struct cm_arena *arena = &opening->set->arena;
    struct cm_rows *rows;

    for (size_t i = 0; i < opening->n_arrays; i++) {
        const struct cm_dataset_array *array = &opening->arrays[i];

        for (size_t k = 0; k < i; k++)
            if (cm_str_equal(array->name, opening->arrays[k].name))
                return cm_fail(opening->err, CM_BAD_ARGUMENT, "two arrays are called '%.*s'",
                               CM_STR_FMT(array->name));
        const enum cm_status status =
            cm_rows_add(arena, &opening->set->rows, cm_arena_str(arena, array->name), array->type,
                        &array->shape, array->data, &rows, opening->err);
        CM_TRY(cm_error_context(opening->err, status, "array '%.*s'", CM_STR_FMT(array->name)));
        if (array->stride)
            rows->stride = array->stride;
        rows->column_major = array->column_major && array->shape.rank > 1;
    }
    return CM_OK;
}

static enum cm_status check_together(struct opening *opening)
{
    const struct cm_rows_list *rows = &opening->set->rows;

    if (rows->count == 0)
        return cm_fail(opening->err, CM_BAD_MODEL, "it has no arrays");
    for (size_t i = 1; i < rows->count; i++)
        if (rows->items[i].count != rows->items[0].count)
            return cm_fail(opening->err, CM_BAD_MODEL,
                           "array '%.*s' has %lld samples, array '%.*s' has %lld",
                           CM_STR_FMT(rows->items[0].name), (long long)rows->items[0].count,
                           CM_STR_FMT(rows->items[i].name), (long long)rows->items[i].count);
    return CM_OK;
}

/* ---- several files ---- */

static struct cm_rows *find_rows(const struct cm_rows_list *list, struct cm_str name)
{
    for (size_t i = 0; i < list->count; i++)
        if (cm_str_equal(list->items[i].name, name))
            return &list->items[i];
    return NULL;
}

static enum cm_status check_alike(struct opening *opening, const struct cm_rows *a,
                                  const struct cm_rows *b)
{
    char left[100], right[100];

    if (a->type == b->type && cm_shape_equal(&a->sample, &b->sample))
        return CM_OK;
    return cm_fail(opening->err, CM_BAD_ARGUMENT,
                   "array '%.*s' has samples of %s %s in '%.300s' and of %s %s in '%.300s'; files "
                   "that are read as one must have the same types and shapes",
                   CM_STR_FMT(a->name), cm_dtype_name(a->type),
                   cm_shape_print(&a->sample, left, sizeof left), opening->paths[0],
                   cm_dtype_name(b->type), cm_shape_print(&b->sample, right, sizeof right),
                   opening->path);
}

/* Samples of the file that was read last follow those of `first`. */
static enum cm_status append(struct opening *opening, struct cm_rows_list *first)
{
    struct cm_rows_list *added = &opening->set->rows;

    for (size_t i = 0; i < added->count; i++)
        if (!find_rows(first, added->items[i].name))
            return cm_fail(opening->err, CM_BAD_ARGUMENT,
                           "array '%.*s' is in '%.300s' and not in '%.300s'; files that are read "
                           "as one must have the same arrays",
                           CM_STR_FMT(added->items[i].name), opening->path, opening->paths[0]);
    for (size_t i = 0; i < first->count; i++) {
        struct cm_rows *last = &first->items[i];
        const struct cm_rows *rows = find_rows(added, last->name);

        if (!rows)
            return cm_fail(opening->err, CM_BAD_ARGUMENT,
                           "array '%.*s' is in '%.300s' and not in '%.300s'; files that are read "
                           "as one must have the same arrays",
                           CM_STR_FMT(last->name), opening->paths[0], opening->path);
        CM_TRY(check_alike(opening, last, rows));
        while (last->next)
            last = (struct cm_rows *)last->next;
        last->next = rows;
    }
    return CM_OK;
}

static enum cm_status open_path(struct opening *opening, size_t i)
{
    struct cm_dataset *set = opening->set;

    opening->path = opening->paths[i];
    set->rows = (struct cm_rows_list){0};
    enum cm_status status = open_any(opening);
    if (status == CM_OK)
        status = check_together(opening);
    return cm_error_context(opening->err, status, "%.600s", opening->path);
}

static enum cm_status open_paths(struct opening *opening)
{
    struct cm_dataset *set = opening->set;
    struct cm_rows_list first = {0};

    for (size_t i = 0; i < opening->n_paths; i++) {
        CM_TRY(open_path(opening, i));
        set->samples += set->rows.items[0].count;
        if (i == 0)
            first = set->rows;
        else
            CM_TRY(append(opening, &first));
    }
    set->rows = first;
    return CM_OK;
}

static enum cm_status open_arrays(struct opening *opening)
{
    CM_TRY(take_arrays(opening));
    CM_TRY(check_together(opening));
    opening->set->samples = opening->set->rows.items[0].count;
    return CM_OK;
}

static void show_field(struct cm_dataset *set, size_t i)
{
    const struct cm_rows *rows = &set->rows.items[i];

    set->fields[i] = (struct cm_dataset_field){rows->name, rows->view.type, rows->view.sample};
}

static enum cm_status open_guarded(struct cm_guard *guard, void *arg)
{
    struct opening *opening = arg;
    struct cm_dataset *set = opening->set;

    cm_arena_init(&set->arena, guard);
    CM_TRY(opening->paths ? open_paths(opening) : open_arrays(opening));
    set->columns = cm_arena_str(&set->arena, cm_str(opening->options.columns));
    set->fields = CM_NEW_ARRAY(&set->arena, struct cm_dataset_field, set->rows.count);
    for (size_t i = 0; i < set->rows.count; i++)
        show_field(set, i);
    return CM_OK;
}

static enum cm_status open_set(struct opening *opening, struct cm_dataset **out,
                               struct cm_error *err)
{
    struct cm_dataset *set = cm_calloc(1, sizeof *set);

    *out = NULL;
    if (!set)
        return cm_fail(err, CM_NO_MEMORY, "no memory for a data set");
    opening->set = set;
    opening->err = err;
    const enum cm_status status = cm_guarded(0, err, open_guarded, opening);
    if (status)
        cm_dataset_close(set);
    else
        *out = set;
    return status;
}

enum cm_status cm_dataset_open(const char *const *paths, size_t count,
                               const struct cm_dataset_options *options, struct cm_dataset **out,
                               struct cm_error *err)
{
    struct opening opening = {.paths = paths, .n_paths = count};

    if (options)
        opening.options = *options;
    return open_set(&opening, out, err);
}

enum cm_status cm_dataset_of_arrays(const struct cm_dataset_array *arrays, size_t count,
                                    struct cm_dataset **out, struct cm_error *err)
{
    struct opening opening = {.arrays = arrays, .n_arrays = count};

    return open_set(&opening, out, err);
}

void cm_dataset_close(struct cm_dataset *dataset)
{
    if (!dataset)
        return;
    cm_arena_release(&dataset->arena);
    cm_free(dataset);
}

size_t cm_dataset_field_count(const struct cm_dataset *dataset)
{
    return dataset->rows.count;
}

const struct cm_dataset_field *cm_dataset_field(const struct cm_dataset *dataset, size_t i)
{
    return &dataset->fields[i];
}

int cm_dataset_find(const struct cm_dataset *dataset, struct cm_str name)
{
    for (size_t i = 0; i < dataset->rows.count; i++)
        if (cm_str_equal(dataset->fields[i].name, name))
            return (int)i;
    return -1;
}

struct cm_str cm_dataset_columns(const struct cm_dataset *dataset)
{
    return dataset->columns;
}

int64_t cm_dataset_samples(const struct cm_dataset *dataset)
{
    return dataset->samples;
}

enum cm_status cm_dataset_present(struct cm_dataset *dataset, size_t i,
                                  const struct cm_dataset_view *view, struct cm_error *err)
{
    struct cm_rows *rows = &dataset->rows.items[i];
    const enum cm_status status = cm_rows_check_view(rows, view, err);

    if (status)
        return cm_error_context(err, status, "array '%.*s'", CM_STR_FMT(rows->name));
    rows->view = *view;
    show_field(dataset, i);
    return CM_OK;
}

enum cm_dtype cm_dataset_stored_type(const struct cm_dataset *dataset, size_t i)
{
    return dataset->rows.items[i].type;
}

enum cm_status cm_dataset_read(const struct cm_dataset *dataset, size_t i, int64_t sample, void *to,
                               struct cm_error *err)
{
    return cm_rows_read(&dataset->rows.items[i], sample, to, err);
}
