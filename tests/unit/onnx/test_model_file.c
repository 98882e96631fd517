/* Opening models from files and memory, and finding every tensor in them. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "onnx/model_file.h"

#include "base/memory.h"
#include "onnx/encode.h"
#include "onnx/model_case.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void open_it(struct cm_arena *arena)
{
    const char *folder = case_folder(arena), *path = case_path(arena, folder, "m.onnx");
    struct cm_model_proto model;
    struct cm_model_file *file;
    struct cm_error err;

    case_model(arena, &model);
    case_save(arena, &model, path);
    for (int copy = 0; copy < 2; copy++) {
        const struct cm_load_options options = {.copy = copy != 0};
        CHECK_OK(cm_model_open(arena, path, &options, &file, &err), &err);
        CHECK_INT(file->mapping.copied, copy);
        CHECK_STR(file->folder, folder);
        case_check(file, 0);
    }
}

void test_model__opens_mapped_or_copied(void)
{
    check_in_arena(open_it);
}

static void open_wrong(struct cm_arena *arena)
{
    const char *folder = case_folder(arena), *path = case_path(arena, folder, "m.onnx");
    struct cm_model_file *file;
    struct cm_error err;

    CHECK_FAILS(cm_model_open(arena, path, NULL, &file, &err), CM_NOT_FOUND, &err, "m.onnx");
    CHECK_FAILS(cm_model_open(arena, folder, NULL, &file, &err), CM_BAD_ARGUMENT, &err, "folder");
    case_write(path, "", 0);
    CHECK_FAILS(cm_model_open(arena, path, NULL, &file, &err), CM_BAD_MODEL, &err,
                "m.onnx: this is not an ONNX model: the file is empty");
    case_write(path, "\x3a\x50\x0a", 3);
    CHECK_FAILS(cm_model_open(arena, path, NULL, &file, &err), CM_BAD_MODEL, &err, "m.onnx: ");
    CHECK_FAILS(cm_model_parse(arena, CM_STR("\x3a\x50\x0a"), NULL, &file, &err), CM_BAD_MODEL,
                &err, "past the end");
}

void test_model__errors_name_the_file(void)
{
    check_in_arena(open_wrong);
}

static void parse_memory(struct cm_arena *arena)
{
    struct cm_model_proto model;
    struct cm_model_file *file;
    struct cm_error err;
    struct cm_str bytes;

    case_model(arena, &model);
    CHECK_OK(cm_encode(&cm_model_info, &model, arena, &bytes, &err), &err);
    CHECK_OK(cm_model_parse(arena, bytes, NULL, &file, &err), &err);
    CHECK_INT(file->path.size, 0);
    case_check(file, 0);
}

void test_model__parses_from_memory(void)
{
    check_in_arena(parse_memory);
}

static enum cm_status stop_at_constant(void *arg, struct cm_tensor_proto *tensor)
{
    ++*(int *)arg;
    return cm_str_is(tensor->name, "constant") ? CM_CANCELLED : CM_OK;
}

static void stop_walk(struct cm_arena *arena)
{
    struct cm_model_proto model;
    int seen = 0;

    case_model(arena, &model);
    CHECK_INT(cm_model_each_tensor(&model, stop_at_constant, &seen), CM_CANCELLED);
    CHECK(seen > 0 && seen < 12);
}

void test_model__the_walk_over_tensors_can_be_stopped(void)
{
    check_in_arena(stop_walk);
}

static void read_text(struct cm_arena *arena)
{
    static const char text[] = "<ir_version: 9, opset_import: [\"\" : 20]>\n"
                               "g (float[2] x) => (float[2] y) <float[2] W = {1.0, 2.0}> {\n"
                               "  y = Add(x, W)\n}\n";
    const char *folder = case_folder(arena), *path = case_path(arena, folder, "m.onnxtxt");
    const struct cm_load_options as_text = {.format = CM_FORMAT_TEXT};
    struct cm_model_file *file, *again;
    struct cm_error err;

    case_write(path, text, sizeof text - 1);
    CHECK_OK(cm_model_open(arena, path, NULL, &file, &err), &err);
    CHECK_STR(file->model.graph->node.items[0].op_type, "Add");
    CHECK_OK(cm_model_parse(arena, cm_str(text), &as_text, &again, &err), &err);

    /* Through both forms and back. */
    const char *binary = case_path(arena, folder, "m.onnx");
    CHECK_OK(cm_model_save(file, binary, NULL, NULL, &err), &err);
    CHECK_OK(cm_model_open(arena, binary, NULL, &again, &err), &err);
    CHECK_OK(cm_model_save(again, path, NULL, NULL, &err), &err);
    CHECK_OK(cm_model_open(arena, path, NULL, &again, &err), &err);
    CHECK(cm_message_equal(&cm_model_info, &file->model, &again->model, arena, NULL));
    case_write(path, "<ir_version: >", 14);
    CHECK_FAILS(cm_model_open(arena, path, NULL, &file, &err), CM_BAD_MODEL, &err,
                "m.onnxtxt: line 1");
}

void test_model__text_and_binary_forms_go_by_name(void)
{
    check_in_arena(read_text);
}

static enum cm_status open_once(struct cm_guard *guard, void *path)
{
    struct cm_arena arena;
    struct cm_model_file *file;

    cm_arena_init(&arena, guard);
    const enum cm_status status = cm_model_open(&arena, path, NULL, &file, NULL);
    cm_arena_release(&arena);
    return status;
}

static void open_without_memory(struct cm_arena *arena)
{
    const char *path = case_path(arena, case_folder(arena), "m.onnx");
    struct cm_model_proto model;
    enum cm_status status = CM_NO_MEMORY;

    case_model(arena, &model);
    case_save(arena, &model, path);
    for (uint64_t n = 1; status != CM_OK; n++) {
        struct cm_error err;
        CHECK(n < 1000);
        cm_memory_fail_after(n);
        status = cm_guarded(0, &err, open_once, (void *)(uintptr_t)path);
        cm_memory_fail_after(0);
        CHECK(status == CM_OK || status == CM_NO_MEMORY);
    }
}

void test_oom__opening_a_model_fails_cleanly_wherever_memory_ends(void)
{
    check_in_arena(open_without_memory);
}

/* A model file of a gibibyte that is all one tensor, and on disk almost nothing: the tensor is a
 * hole. */
static void write_sparse_model(const char *path)
{
    static const uint8_t head[] = {
        0x08, 9,                                        /* ir_version */
        0x3A, 0x94, 0x80, 0x80, 0x80, 0x04,             /* graph */
        0x2A, 0x8E, 0x80, 0x80, 0x80, 0x04,             /* initializer */
        0x08, 0x80, 0x80, 0x80, 0x80, 0x01, 0x10, 0x01, /* dims, data_type */
        0x4A, 0x80, 0x80, 0x80, 0x80, 0x04,             /* raw_data */
    };
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    CHECK(fd >= 0);
    CHECK(write(fd, head, sizeof head) == (ssize_t)sizeof head);
    CHECK(ftruncate(fd, (off_t)sizeof head + (INT64_C(1) << 30)) == 0);
    close(fd);
}

static long peak(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* In a process of its own: the peak of this one is that of all tests before. */
static long measure_open(const char *path)
{
    long kibibytes = 0; /* resident beyond what was there before */
    int ends[2];

    CHECK(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) {
        const long before = peak();
        const enum cm_status status = cm_guarded(0, NULL, open_once, (void *)(uintptr_t)path);
        kibibytes = peak() - before;
        const bool told = write(ends[1], &kibibytes, sizeof kibibytes) == (ssize_t)sizeof kibibytes;
        _exit(status == CM_OK && told ? 0 : 1);
    }
    int result = 1;
    CHECK(child > 0 && waitpid(child, &result, 0) == child);
    CHECK_INT(result, 0);
    CHECK(read(ends[0], &kibibytes, sizeof kibibytes) == (ssize_t)sizeof kibibytes);
    close(ends[0]);
    close(ends[1]);
    return kibibytes;
}

static void open_large(struct cm_arena *arena)
{
    const char *path = case_path(arena, case_folder(arena), "large.onnx");
    struct cm_model_file *file;
    struct cm_error err;

    write_sparse_model(path);
    CHECK(measure_open(path) < 20 * 1024);
    CHECK_OK(cm_model_open(arena, path, NULL, &file, &err), &err);
    CHECK_INT(file->model.graph->initializer.items[0].raw_data.size, INT64_C(1) << 30);
}

void test_model__a_gibibyte_opens_in_no_time_and_no_memory(void)
{
    check_in_arena(open_large);
}
