/* Saving models. Everything is decided first: which tensors move, into which files, under which
 * free names. Then the data files are written, then the model is renamed into place, and only then
 * is anything old removed. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "onnx/model_save.h"

#include "base/array.h"
#include "base/map.h"
#include "base/number.h"
#include "onnx/decode.h"
#include "onnx/encode.h"
#include "onnx/syntax.h"
#include "onnx/tensor_data.h"

#include <assert.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODEL_LIMIT ((UINT64_C(1) << 31) - 1)
enum { NAME_TRIES = 100000 };

enum action { STAY, MOVE_OUT, MOVE_IN };

struct item {
    const struct cm_tensor_proto *from;
    struct cm_tensor_proto *to; /* in the tree that is written */
    enum action action;
    uint64_t bytes, offset;
    size_t file;   /* index of its new data file, when it moves out */
    bool came_in;  /* it was outside until it was given new contents, and stays inside */
    bool is_again; /* an item before it moves the very same bytes out */
};

struct data_file {
    struct cm_str name; /* what tensors say is their location */
    const char *path;
    bool is_copy;         /* of a file beside the old model, whole */
    struct cm_str copied; /* its bytes */
    bool is_there;        /* the very same bytes, under this name: nothing is written */
    size_t first_item;    /* else: tensors from here on */
    uint64_t size;
};

struct job {
    const struct cm_model_file *file;
    const char *path;
    struct cm_save_options options;
    struct cm_save_report report;
    struct cm_error *err;

    struct cm_arena *arena;
    struct cm_str folder;
    bool forced;
    enum cm_save_placement placement; /* what CM_PLACE_AUTO means here */
    bool own_data; /* tensors that are external go to a new file, and only those */
    const struct cm_model_proto *model; /* what is written: the caller's, or a twin */
    struct cm_encoding *encoding;
    CM_ARRAY(struct item) tensors;
    CM_ARRAY(struct data_file) files;
    struct cm_map claimed; /* names that files of this save will have */
    struct cm_map moved;   /* places of external tensors that move out: the first item */
    struct cm_map kept; /* locations that stay: 1, or 2 + the index of the copy that replaces it */
    CM_ARRAY(struct cm_str) needed; /* those of them that are neither copied nor written */
    size_t n_created; /* data files in place; removed again unless the model follows, but for
                           those that were there before */
    bool in_use;
};

static enum cm_status collect(void *arg, struct cm_tensor_proto *tensor)
{
    struct job *job = arg;
    *CM_PUSH(job->arena, &job->tensors) = (struct item){.from = tensor};
    return CM_OK;
}

/* Did the file say so, whatever has been put into the tensor since? */
static bool came_external(struct job *job, const struct cm_tensor_proto *tensor)
{
    struct cm_tensor_proto before = {0};

    if (!tensor->msg.changed || tensor->msg.source.size == 0)
        return false;
    return cm_decode(&cm_tensor_info, tensor->msg.source, job->arena, &before, NULL) == CM_OK &&
           before.data_location == CM_LOCATION_EXTERNAL;
}

/* Strings have no form outside, and what is broken stays as it is. */
static bool can_move_out(struct item *item)
{
    return item->from->data_type != CM_STRING && cm_tensor_proto_check(item->from, NULL) == CM_OK &&
           cm_tensor_proto_bytes(item->from, &item->bytes, NULL) == CM_OK && item->bytes > 0;
}

static bool is_file(const char *path, uint64_t device, uint64_t inode)
{
    struct stat facts;
    return stat(path, &facts) == 0 && (uint64_t)facts.st_dev == device &&
           (uint64_t)facts.st_ino == inode;
}

/* Is the model written over the one that was read? */
static bool onto_itself(const struct job *job)
{
    struct stat facts;

    return job->file->path.size && stat(cm_str_text(job->file->path), &facts) == 0 &&
           is_file(job->path, (uint64_t)facts.st_dev, (uint64_t)facts.st_ino);
}

/* A tensor that other files hold, or held until it was given new contents. */
static bool is_outside(struct job *job, const struct item *item)
{
    return item->from->data_location == CM_LOCATION_EXTERNAL || came_external(job, item->from);
}

/* Settles what CM_PLACE_AUTO means for this model. A tensor counts as often as it is named: that is
 * how much the model file would grow. */
static void choose_placement(struct job *job)
{
    uint64_t total = 0;

    job->placement = job->options.placement;
    if (job->placement != CM_PLACE_AUTO)
        return;
    job->placement = CM_PLACE_KEEP;
    if (!job->file->to_ship || !job->file->path.size)
        return;
    for (size_t i = 0; i < job->tensors.count && total < CM_SMALL_EXTERNAL; i++) {
        struct item *item = &job->tensors.items[i];

        if (is_outside(job, item) && can_move_out(item))
            total += cm_min_size(item->bytes, CM_SMALL_EXTERNAL);
    }
    if (total < CM_SMALL_EXTERNAL)
        job->placement = CM_PLACE_INLINE;
    else
        job->own_data = !onto_itself(job);
}

static enum action choose(struct job *job, struct item *item)
{
    const bool external = item->from->data_location == CM_LOCATION_EXTERNAL;
    const enum cm_save_placement placement = job->placement;

    if (job->own_data && external && cm_tensor_proto_check(item->from, NULL) == CM_OK)
        return can_move_out(item) && item->bytes >= job->options.threshold ? MOVE_OUT : MOVE_IN;
    item->came_in = placement == CM_PLACE_INLINE && !job->forced && came_external(job, item->from);
    if (placement == CM_PLACE_INLINE && !job->forced)
        return external ? MOVE_IN : STAY;
    if (placement == CM_PLACE_KEEP && external)
        return STAY;
    if (placement == CM_PLACE_KEEP && came_external(job, item->from))
        return can_move_out(item) ? MOVE_OUT : STAY;
    if (placement == CM_PLACE_KEEP && !job->forced)
        return STAY;
    if (can_move_out(item) && item->bytes >= job->options.threshold)
        return MOVE_OUT;
    return external ? MOVE_IN : STAY;
}

/* "a/b.data" and "-7" make "a/b-7.data". */
static struct cm_str name_with(struct cm_arena *arena, struct cm_str name, size_t number)
{
    size_t dot = name.size;

    while (dot > 0 && name.data[dot - 1] != '.' && name.data[dot - 1] != '/')
        dot--;
    const size_t stem = dot > 1 && name.data[dot - 1] == '.' ? dot - 1 : name.size;
    const struct cm_str middle = cm_arena_printf(arena, "-%zu", number);
    char *text = cm_arena_alloc(arena, name.size + middle.size + 1);
    memcpy(text, name.data, stem);
    memcpy(text + stem, middle.data, middle.size);
    memcpy(text + stem + middle.size, name.data + stem, name.size - stem);
    return (struct cm_str){text, name.size + middle.size};
}

/* Does a plain file beside the new model hold these bytes? */
static bool holds(const struct job *job, struct cm_str name, struct cm_str bytes)
{
    struct cm_mapping mapping;
    struct stat facts;
    int fd;

    if (cm_file_open_beneath(cm_str_text(job->folder), name, 0, &fd, NULL) != CM_OK)
        return false;
    const bool worth = fstat(fd, &facts) == 0 && (uint64_t)facts.st_size == bytes.size &&
                       cm_fd_map(fd, cm_str_text(name), false, &mapping, NULL) == CM_OK;
    close(fd);
    if (!worth)
        return false;
    const bool same = mapping.size == bytes.size &&
                      (bytes.size == 0 || memcmp(mapping.data, bytes.data, bytes.size) == 0);
    cm_mapping_release(&mapping);
    return same;
}

/* Under a free name, or, when copied is not NULL, one under which it is there already. */
static enum cm_status new_data_file(struct job *job, struct cm_str wanted,
                                    const struct cm_str *copied, struct data_file **out)
{
    struct cm_str name = cm_arena_str(job->arena, wanted);

    for (size_t n = 1; n < NAME_TRIES; n++) {
        const char *path = cm_path_join(job->arena, job->folder, name).data;
        struct stat facts;
        const bool taken = lstat(path, &facts) == 0;
        if (!taken && errno != ENOENT)
            return cm_fail(job->err, CM_IO, "cannot write '%.600s': %s", path, strerror(errno));
        const bool ours = cm_map_find(&job->claimed, name);
        if (!ours && (!taken || (copied && holds(job, name, *copied)))) {
            cm_map_insert(&job->claimed, job->arena, name, NULL);
            *out = CM_PUSH(job->arena, &job->files);
            **out = (struct data_file){.name = name, .path = path, .is_there = taken};
            return CM_OK;
        }
        name = name_with(job->arena, wanted, n);
    }
    return cm_fail(job->err, CM_IO, "no free name like '%.*s' for external data",
                   CM_STR_FMT(wanted));
}

/* Tensors may share external data; what they share is written once. */
static bool moves_with_another(struct job *job, size_t index)
{
    struct item *item = &job->tensors.items[index];
    struct cm_external_place place;
    bool added;

    item->is_again = false;
    if (item->from->data_location != CM_LOCATION_EXTERNAL ||
        cm_external_place(item->from, &place, NULL) != CM_OK)
        return false;
    const struct cm_str key =
        cm_arena_printf(job->arena, "%llu %llu %.*s", (unsigned long long)place.offset,
                        (unsigned long long)item->bytes, CM_STR_FMT(place.location));
    uint64_t *first = cm_map_insert(&job->moved, job->arena, key, &added);
    if (added) {
        *first = index;
        return false;
    }
    item->is_again = true;
    item->file = job->tensors.items[*first].file;
    item->offset = job->tensors.items[*first].offset;
    return true;
}

static enum cm_status place_outside(struct job *job, size_t index, bool *has_file)
{
    const struct cm_str base = cm_str(job->options.external_name);
    struct item *item = &job->tensors.items[index];

    if (moves_with_another(job, index))
        return CM_OK;
    struct data_file *file = *has_file ? &job->files.items[job->files.count - 1] : NULL;

    if (!file || job->options.one_file_per_tensor) {
        CM_TRY(new_data_file(
            job, job->options.one_file_per_tensor ? name_with(job->arena, base, index) : base, NULL,
            &file));
        file->first_item = index;
        *has_file = true;
    }
    item->file = job->files.count - 1;
    item->offset = cm_round_up(file->size, job->options.alignment);
    file->size = item->offset + item->bytes;
    return CM_OK;
}

/* A file that tensors go on using must be there beside the new model: it is copied when the folders
 * differ, or when something has replaced or removed it since we opened it. */
static enum cm_status keep_file(struct job *job, struct cm_str location, uint64_t *out)
{
    const struct cm_str target = cm_path_join(job->arena, job->folder, location);
    struct cm_external_file old;
    struct data_file *file;

    *out = 1;
    CM_TRY(cm_external_file(job->file->files, location, &old, job->err));
    if (is_file(cm_str_text(target), old.device, old.inode)) {
        *CM_PUSH(job->arena, &job->needed) = cm_arena_str(job->arena, location);
        return CM_OK;
    }
    CM_TRY(new_data_file(job, location, &old.bytes, &file));
    file->is_copy = true;
    file->copied = old.bytes;
    file->size = old.bytes.size;
    *out = 1 + job->files.count;
    return CM_OK;
}

/* A reference to what is not there would only look like a saved model. */
static enum cm_status keep_reference(struct job *job, const struct item *item)
{
    struct cm_external_place place;
    struct cm_str bytes;
    uint64_t need, value;
    bool added;

    CM_TRY(cm_external_place(item->from, &place, job->err));
    uint64_t *kept = cm_map_insert(&job->kept, job->arena, place.location, &added);
    if (added) {
        const enum cm_status status = keep_file(job, place.location, &value);
        *kept = status == CM_OK ? value : 0;
        CM_TRY(status);
    }
    if (cm_tensor_proto_check(item->from, NULL) != CM_OK ||
        cm_tensor_proto_bytes(item->from, &need, NULL) != CM_OK)
        return CM_OK; /* broken in other ways: it stays as it is */
    return cm_external_range(job->file->files, &place, need, &bytes, job->err);
}

/* Of a model in memory nobody knows where its files are: what it says of them is kept. */
static enum cm_status keep_location(struct job *job, const struct item *item)
{
    struct cm_str location;
    bool added;

    if (!cm_tensor_proto_location(item->from, &location))
        return CM_OK;
    if (!job->file->path.size) {
        *cm_map_insert(&job->kept, job->arena, location, &added) = 1;
        if (added)
            *CM_PUSH(job->arena, &job->needed) = cm_arena_str(job->arena, location);
        return CM_OK;
    }
    return cm_error_context(job->err, keep_reference(job, item), "tensor '%.*s'",
                            CM_STR_FMT(item->from->name));
}

static enum cm_status apply(struct job *job, struct item *item)
{
    struct cm_str location, bytes;
    uint64_t need;

    if (item->action == MOVE_OUT) {
        cm_tensor_proto_put_outside(item->to, job->arena, job->files.items[item->file].name,
                                    item->offset, item->bytes);
    } else if (item->action == MOVE_IN) {
        CM_TRY(cm_tensor_proto_check(item->from, job->err));
        CM_TRY(cm_tensor_proto_bytes(item->from, &need, job->err));
        CM_TRY(cm_error_context(
            job->err, cm_external_view(job->file->files, item->from, need, &bytes, job->err),
            "tensor '%.*s'", CM_STR_FMT(item->from->name)));
        cm_tensor_proto_put_inside(item->to, bytes);
    } else if (cm_tensor_proto_location(item->from, &location)) {
        const uint64_t kept = cm_map_get(&job->kept, location, 1);
        if (kept < 2)
            return CM_OK;
        const struct cm_str name = job->files.items[kept - 2].name;
        if (!cm_str_equal(name, location))
            cm_tensor_proto_relocate(item->to, job->arena, name);
    }
    return CM_OK;
}

struct pairing {
    struct item *items;
    size_t next;
};

static enum cm_status pair(void *arg, struct cm_tensor_proto *tensor)
{
    struct pairing *pairing = arg;
    pairing->items[pairing->next++].to = tensor;
    return CM_OK;
}

static enum cm_status rewrite(struct job *job)
{
    struct cm_model_proto *twin = cm_model_twin(job->arena, &job->file->model);
    struct pairing pairing = {job->tensors.items, 0};

    CM_TRY(cm_model_each_tensor(twin, pair, &pairing));
    assert(pairing.next == job->tensors.count);
    for (size_t i = 0; i < job->tensors.count; i++)
        CM_TRY(apply(job, &job->tensors.items[i]));
    job->model = twin;
    return CM_OK;
}

/* Decides what moves where, and makes the tree that says so. */
static enum cm_status plan(struct job *job)
{
    bool has_file = false, moves = false;

    job->files.count = job->needed.count = 0;
    job->claimed = job->kept = job->moved = (struct cm_map){0};
    cm_map_insert(&job->claimed, job->arena, cm_str(cm_path_name(job->path)), NULL);
    for (size_t i = 0; i < job->tensors.count; i++) {
        struct item *item = &job->tensors.items[i];
        item->action = choose(job, item);
        moves = moves || item->action != STAY;
        if (item->action == MOVE_OUT)
            CM_TRY(place_outside(job, i, &has_file));
    }
    for (size_t i = 0; i < job->tensors.count; i++) {
        if (job->tensors.items[i].action == STAY)
            CM_TRY(keep_location(job, &job->tensors.items[i]));
    }
    job->model = &job->file->model;
    return moves || job->files.count ? rewrite(job) : CM_OK;
}

static enum cm_status plan_encoding(struct job *job)
{
    const uint64_t limit = job->options.size_limit;

    CM_TRY(cm_encode_plan(&cm_model_info, job->model, job->arena, &job->encoding, job->err));
    if (cm_encoding_size(job->encoding) <= limit)
        return CM_OK;
    job->forced = true;
    CM_TRY(plan(job));
    CM_TRY(cm_encode_plan(&cm_model_info, job->model, job->arena, &job->encoding, job->err));
    const uint64_t size = cm_encoding_size(job->encoding);
    if (size > limit)
        return cm_fail(job->err, CM_LIMIT,
                       "the model has %llu bytes without its large tensors, a file can hold %llu",
                       (unsigned long long)size, (unsigned long long)limit);
    return CM_OK;
}

static struct cm_save *new_save(struct job *job)
{
    struct cm_save *save = CM_NEW(job->arena, struct cm_save);
    cm_save_defer(job->arena, save);
    return save;
}

static enum cm_status put(void *save, const void *bytes, size_t size, struct cm_error *err)
{
    return cm_save_write(save, bytes, size, err);
}

static enum cm_status write_tensor(struct job *job, const struct item *item, struct cm_save *save)
{
    struct cm_tensor tensor;

    CM_TRY(cm_save_align(save, job->options.alignment, job->err));
    assert(save->written == item->offset);
    if (item->from->later)
        return cm_contents_write(item->from->later, item->bytes, put, save, job->err);
    CM_TRY(cm_tensor_proto_load(item->from, job->file->files, &tensor, job->err));
    const enum cm_status status = cm_save_write(save, tensor.data, item->bytes, job->err);
    cm_tensor_drop(&tensor);
    return status;
}

static enum cm_status write_data_file(struct job *job, size_t index)
{
    const struct data_file *file = &job->files.items[index];
    struct cm_save *save = new_save(job);

    if (file->is_there) {
        job->n_created++;
        return CM_OK;
    }
    CM_TRY(cm_save_begin_inside(save, cm_str_text(job->folder), file->name, job->err));
    save->cancel = job->options.cancel;
    if (file->is_copy)
        CM_TRY(cm_save_write(save, file->copied.data, file->copied.size, job->err));
    for (size_t i = file->first_item; !file->is_copy && i < job->tensors.count; i++) {
        const struct item *item = &job->tensors.items[i];
        if (item->action != MOVE_OUT || item->is_again)
            continue;
        if (item->file != index)
            break;
        CM_TRY(write_tensor(job, item, save));
    }
    job->n_created++; /* even a commit that fails may have put it into place */
    return cm_save_commit(save, job->err);
}

static void remove_created(void *arg)
{
    const struct job *job = arg;

    for (size_t i = 0; !job->in_use && i < job->n_created; i++) {
        if (!job->files.items[i].is_there)
            (void)!unlink(job->files.items[i].path);
    }
}

static enum cm_status write_mlir(struct job *job, struct cm_save *save)
{
    const struct cm_mlir_form_hooks *const mlir = job->options.mlir;

    if (!mlir)
        return cm_model_refuse_mlir(job->err);
    return mlir->print(job->file, job->model, job->options.format == CM_FORMAT_MLIR_GENERIC,
                       job->arena, put, save, job->err);
}

static enum cm_status write_model(struct job *job)
{
    struct cm_save *save = new_save(job);
    struct stat mine = {0};

    CM_TRY(cm_save_begin(save, job->path, job->err));
    save->cancel = job->options.cancel;
    if (job->options.format == CM_FORMAT_TEXT)
        CM_TRY(cm_syntax_print_model(job->model, NULL, put, save, job->err));
    else if (job->options.format != CM_FORMAT_BINARY)
        CM_TRY(write_mlir(job, save));
    else
        CM_TRY(cm_encode_write(job->encoding, put, save, job->err));
    job->report.model_bytes = save->written;
    const bool known = fstat(save->fd, &mine) == 0;
    const enum cm_status status = cm_save_commit(save, job->err);
    /* The rename may be done though syncing the folder failed: then the new data is in use. */
    job->in_use = status == CM_OK ||
                  (known && is_file(job->path, (uint64_t)mine.st_dev, (uint64_t)mine.st_ino));
    return status;
}

static void fill_report(struct job *job)
{
    struct cm_save_report *report = &job->report;

    report->forced_external = job->forced;
    for (size_t i = 0; i < job->files.count; i++) {
        const struct data_file *file = &job->files.items[i];
        if (file->is_there)
            continue;
        report->external_bytes += file->size;
        if (report->external_files++ == 0)
            snprintf(report->external_name, sizeof report->external_name, "%s",
                     cm_str_text(file->name));
    }
    for (size_t i = 0; i < job->tensors.count; i++) {
        report->moved_out += job->tensors.items[i].action == MOVE_OUT;
        report->moved_in +=
            job->tensors.items[i].action == MOVE_IN || job->tensors.items[i].came_in;
    }
}

/* Files of a model in memory were not opened: nobody knows their size. */
static uint64_t size_of_kept(const struct job *job, struct cm_str location)
{
    struct cm_external_file file;

    if (!job->file->path.size || cm_external_file(job->file->files, location, &file, NULL) != CM_OK)
        return UINT64_MAX;
    return file.bytes.size;
}

/* Allocates nothing: the model is in place, so nothing may fail any more. */
static void tell_files(const struct job *job)
{
    const struct cm_save_options *options = &job->options;

    for (size_t i = 0; options->file && i < job->files.count; i++) {
        const struct data_file *file = &job->files.items[i];
        options->file(options->file_arg,
                      &(struct cm_save_file){file->name, file->size, !file->is_there});
    }
    for (size_t i = 0; options->file && i < job->needed.count; i++) {
        const struct cm_str name = job->needed.items[i];
        options->file(options->file_arg,
                      &(struct cm_save_file){name, size_of_kept(job, name), false});
    }
}

static bool is_own_name(const struct job *job, const char *name)
{
    while (name[0] == '.' && name[1] == '/')
        name += 2;
    return strcmp(name, cm_path_name(job->path)) == 0;
}

static enum cm_status fill_options(struct job *job)
{
    struct cm_save_options *options = &job->options;

    options->format = cm_model_format_of(options->format, job->path);
    if (!options->threshold)
        options->threshold = 1024;
    if (!options->alignment)
        options->alignment = 4096;
    if (!options->size_limit)
        options->size_limit = MODEL_LIMIT;
    if (options->alignment & (options->alignment - 1))
        return cm_fail(job->err, CM_BAD_ARGUMENT, "alignment %zu is not a power of two",
                       options->alignment);
    if (!options->external_name)
        options->external_name =
            cm_arena_printf(job->arena, "%s.data", cm_path_name(job->path)).data;
    if (cm_file_name_is_inside(cm_str(options->external_name), job->err) != CM_OK)
        return cm_error_context(job->err, CM_BAD_ARGUMENT, "external data beside the model");
    if (is_own_name(job, options->external_name))
        return cm_fail(job->err, CM_BAD_ARGUMENT,
                       "external data cannot go into '%.200s', which is to be the model itself",
                       options->external_name);
    return CM_OK;
}

/* What goes wrong here is about the model that is read, not about the file that is written. */
static enum cm_status in_model(struct job *job, enum cm_status status)
{
    if (!job->file->path.size)
        return status;
    return cm_error_context(job->err, status, "%.*s", CM_STR_FMT(job->file->path));
}

static enum cm_status run(struct job *job)
{
    const char *user_name = job->options.external_name;

    CM_TRY(fill_options(job));
    job->folder = cm_path_folder(job->arena, job->path);
    /* The walk hands out pointers it may be used to write through; nothing here does. */
    struct cm_model_proto *model = (struct cm_model_proto *)(uintptr_t)&job->file->model;
    CM_TRY(cm_model_each_tensor(model, collect, job));
    choose_placement(job);
    CM_TRY(in_model(job, plan(job)));
    if (job->options.format == CM_FORMAT_BINARY)
        CM_TRY(plan_encoding(job));
    const struct cm_old_data *old = cm_old_data_find(job->arena, job->path, job->options.mlir);
    cm_arena_defer(job->arena, remove_created, job);
    for (size_t i = 0; i < job->files.count; i++)
        CM_TRY(write_data_file(job, i));
    CM_TRY(write_model(job));
    fill_report(job);
    cm_old_data_remove(old, user_name, &job->report);
    tell_files(job);
    return CM_OK;
}

static enum cm_status run_guarded(struct cm_guard *guard, void *arg)
{
    struct job *job = arg;
    struct cm_arena arena;

    cm_arena_init(&arena, guard);
    job->arena = &arena;
    const enum cm_status status = run(job);
    cm_arena_release(&arena);
    return status;
}

enum cm_status cm_model_save(const struct cm_model_file *file, const char *path,
                             const struct cm_save_options *options, struct cm_save_report *report,
                             struct cm_error *err)
{
    struct job job = {.file = file, .path = path, .err = err};

    if (options)
        job.options = *options;
    if (*path == 0)
        return cm_fail(err, CM_BAD_ARGUMENT, "the name of the file to write is empty");
    CM_TRY(cm_guarded(0, err, run_guarded, &job));
    if (report)
        *report = job.report;
    return CM_OK;
}
