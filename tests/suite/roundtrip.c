/* Reads every model and every stored value under the given folders, writes each back, and compares
 * bytes. */
// SPDX-License-Identifier: Apache-2.0
#define _XOPEN_SOURCE 700
#include "base/file.h"
#include "onnx/decode.h"
#include "onnx/encode.h"

#include <ftw.h>

static struct {
    size_t models, values, passed, failed;
} counts;

struct job {
    const struct cm_message_info *info;
    const char *path;
    struct cm_error *err;
};

static enum cm_status compare(struct cm_str read, struct cm_str written, struct cm_error *err)
{
    if (read.size != written.size)
        return cm_fail(err, CM_BAD_MODEL, "%zu bytes became %zu", read.size, written.size);
    for (size_t i = 0; i < read.size; i++) {
        if (read.data[i] != written.data[i])
            return cm_fail(err, CM_BAD_MODEL, "byte %zu differs", i);
    }
    return CM_OK;
}

/* Forgets where a message came from, as if it had been made here. */
static enum cm_status forget(void *arg, const struct cm_message_info *info, struct cm_msg *msg)
{
    (void)arg, (void)info;
    msg->source = CM_STR_NONE;
    msg->changed = msg->has;
    return CM_OK;
}

/* The bytes must come back when nothing was touched, and, since official writers wrote these files,
 * also when every message is written anew. */
static enum cm_status turn(const struct job *job, struct cm_str bytes, struct cm_arena *arena)
{
    const struct cm_message_info *const info = job->info;
    void *const msg = cm_arena_alloc(arena, info->size);
    void *const again = cm_arena_alloc(arena, info->size);
    struct cm_str written, where;

    CM_TRY(cm_decode(info, bytes, arena, msg, job->err));
    CM_TRY(cm_encode(info, msg, arena, &written, job->err));
    CM_TRY(compare(bytes, written, job->err));
    CM_TRY(cm_decode(info, written, arena, again, job->err));
    if (!cm_message_equal(info, msg, again, arena, &where))
        return cm_fail(job->err, CM_BAD_MODEL, "%.*s differs", CM_STR_FMT(where));
    CM_TRY(cm_message_walk(info, msg, forget, NULL));
    CM_TRY(cm_encode(info, msg, arena, &written, job->err));
    return cm_error_context(job->err, compare(bytes, written, job->err), "written anew");
}

static enum cm_status run_job(struct cm_guard *guard, void *arg)
{
    const struct job *const job = arg;
    struct cm_mapping mapping = {0};
    struct cm_arena arena;

    CM_TRY(cm_file_map(job->path, false, &mapping, job->err));
    cm_arena_init(&arena, guard);
    const struct cm_str bytes = {(const char *)mapping.data, mapping.size};
    const enum cm_status status = turn(job, bytes, &arena);
    cm_arena_release(&arena);
    cm_mapping_release(&mapping);
    return status;
}

static enum cm_status try_as(const struct cm_message_info *info, const char *path,
                             struct cm_error *err)
{
    struct job job = {info, path, err};

    return cm_guarded((size_t)1 << 30, err, run_job, &job);
}

/* A stored value does not say which message it is. */
static enum cm_status try_value(const char *path, struct cm_error *err)
{
    static const struct cm_message_info *const kinds[] = {&cm_tensor_info, &cm_sequence_info,
                                                          &cm_optional_info, &cm_map_info};
    enum cm_status status = CM_NOT_FOUND;

    for (size_t i = 0; status && i < CM_COUNT(kinds); i++)
        status = try_as(kinds[i], path, err);
    return status;
}

static int visit(const char *path, const struct stat *info, int type, struct FTW *place)
{
    struct cm_error err = {0};
    enum cm_status status;

    (void)info, (void)place;
    if (type != FTW_F)
        return 0;
    if (cm_str_ends(cm_str(path), ".onnx")) {
        counts.models++;
        status = try_as(&cm_model_info, path, &err);
    } else if (cm_str_ends(cm_str(path), ".pb")) {
        counts.values++;
        status = try_value(path, &err);
    } else {
        return 0;
    }
    if (status) {
        counts.failed++;
        printf("%s: %s\n", path, err.text);
    } else {
        counts.passed++;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: roundtrip MODELS_AT_LEAST FOLDER...\n");
        return 2;
    }
    const unsigned long wanted = strtoul(argv[1], NULL, 10);
    for (int i = 2; i < argc; i++) {
        if (nftw(argv[i], visit, 16, FTW_PHYS)) {
            perror(argv[i]);
            counts.failed++;
        }
    }
    if (counts.models < wanted) {
        printf("found %zu models, expected %lu\n", counts.models, wanted);
        counts.failed++;
    }
    printf("%zu models, %zu stored values\n", counts.models, counts.values);
    printf("# counts: %zu passed, %zu failed\n", counts.passed, counts.failed);
    return counts.failed != 0;
}
