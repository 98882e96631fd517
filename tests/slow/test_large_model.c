/* A model beyond 2 GiB: opened, saved with its data in one file and in many, and refused to be put
 * into one. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "onnx/model_case.h"
#include "onnx/tensor_data.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { TENSORS = 3 };
#define ELEMENTS (INT64_C(190) << 20) /* 760 MiB each, 2.2 GiB together */
#define BYTES    (ELEMENTS * 4)

static const char *const names[TENSORS] = {"first", "second", "momentum"};

/* What a tensor holds at its start, middle and end; zero elsewhere, so that the file can be mostly
 * hole. */
static const float marks[TENSORS][3] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};

static void write_data(const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    CHECK(fd >= 0);
    CHECK(ftruncate(fd, (off_t)(TENSORS * BYTES)) == 0);
    for (int i = 0; i < TENSORS; i++) {
        const int64_t at[] = {0, ELEMENTS / 2 * 4, BYTES - 4};
        for (int k = 0; k < 3; k++)
            CHECK(pwrite(fd, &marks[i][k], 4, (off_t)(i * BYTES + at[k])) == 4);
    }
    close(fd);
}

static void make_tensor(struct cm_arena *arena, struct cm_tensor_proto *tensor, int i)
{
    case_tensor(arena, tensor, names[i], 1);
    tensor->dims.items[0] = ELEMENTS;
    case_outside(arena, tensor, "all.bin", i * BYTES, BYTES);
}

/* Two weights, and a variable of the training algorithm: that counts as much. */
static const char *make_model(struct cm_arena *arena, const char *folder)
{
    struct cm_model_proto model = {.ir_version = 9};
    struct cm_graph_proto graph = {0}, algorithm = {0};
    struct cm_training_proto training = {.algorithm = &algorithm};
    const char *path = case_path(arena, folder, "large.onnx");

    write_data(case_path(arena, folder, "all.bin"));
    for (int i = 0; i < TENSORS; i++) {
        struct cm_graph_proto *owner = i < 2 ? &graph : &algorithm;
        make_tensor(arena, CM_LIST_ADD(arena, &owner->initializer), i);
    }
    cm_msg_set(&graph.msg, CM_GRAPH_INITIALIZER);
    cm_msg_set(&algorithm.msg, CM_GRAPH_INITIALIZER);
    cm_msg_set(&training.msg, CM_TRAINING_ALGORITHM);
    model.graph = &graph;
    model.training_info.items = &training;
    model.training_info.count = 1;
    cm_msg_set(&model.msg, CM_MODEL_IR_VERSION);
    cm_msg_set(&model.msg, CM_MODEL_GRAPH);
    cm_msg_set(&model.msg, CM_MODEL_TRAINING_INFO);
    case_save(arena, &model, path);
    return path;
}

struct check {
    struct cm_model_file *file;
    int seen;
};

static enum cm_status check_tensor(void *arg, struct cm_tensor_proto *proto)
{
    struct check *check = arg;
    struct cm_tensor tensor;
    struct cm_error err;

    CHECK_INT(proto->data_location, CM_LOCATION_EXTERNAL);
    CHECK_OK(cm_tensor_proto_load(proto, check->file->files, &tensor, &err), &err);
    CHECK(!tensor.buffer); /* mapped, not copied */
    const float *values = tensor.data;
    for (int i = 0; i < TENSORS; i++) {
        if (!cm_str_is(proto->name, names[i]))
            continue;
        check->seen++;
        CHECK(values[0] == marks[i][0] && values[ELEMENTS / 2] == marks[i][1]);
        CHECK(values[ELEMENTS - 1] == marks[i][2]);
    }
    return CM_OK;
}

static struct cm_model_file *checked(struct cm_arena *arena, const char *path)
{
    struct check check = {0};
    struct cm_error err;

    CHECK_OK(cm_model_open(arena, path, NULL, &check.file, &err), &err);
    CHECK_INT(cm_model_each_tensor(&check.file->model, check_tensor, &check), CM_OK);
    CHECK_INT(check.seen, TENSORS);
    return check.file;
}

static void save_as(struct cm_arena *arena, const struct cm_save_options *options)
{
    const char *from = case_folder(arena), *to = case_folder(arena);
    const char *out = case_path(arena, to, "out.onnx");
    struct cm_save_report report;
    struct cm_error err;
    struct cm_model_file *file = checked(arena, make_model(arena, from));
    CHECK_OK(cm_model_save(file, out, options, &report, &err), &err);
    CHECK_INT(report.moved_out, TENSORS);
    CHECK_INT(report.external_files, options->one_file_per_tensor ? TENSORS : 1);
    CHECK_INT(report.external_bytes, TENSORS * BYTES);
    CHECK_INT(report.forced_external, options->placement == CM_PLACE_INLINE);
    CHECK(report.model_bytes < 1000);
    checked(arena, out);
}

/* The result is written in full, and removed at once. */
static void check_with_room(check_body_fn *body)
{
    const char *folder = getenv("TMPDIR");
    struct statvfs space;

    if (statvfs(folder && *folder ? folder : "/tmp", &space) == 0 &&
        space.f_bavail * space.f_frsize < UINT64_C(3) << 30)
        skip();
    check_in_arena(body);
}

static void save_one(struct cm_arena *arena)
{
    save_as(arena, &(struct cm_save_options){.placement = CM_PLACE_EXTERNAL});
}

void test_large__saves_into_one_file(void)
{
    check_with_room(save_one);
}

static void save_many(struct cm_arena *arena)
{
    save_as(arena,
            &(struct cm_save_options){.placement = CM_PLACE_EXTERNAL, .one_file_per_tensor = true});
}

void test_large__saves_into_many_files(void)
{
    check_with_room(save_many);
}

static void save_inline(struct cm_arena *arena)
{
    save_as(arena, &(struct cm_save_options){.placement = CM_PLACE_INLINE});
}

void test_large__stays_external_when_asked_inline_because_a_file_cannot_hold_it(void)
{
    check_with_room(save_inline);
}
