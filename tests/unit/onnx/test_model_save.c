/* Saving models: bytes kept, tensors moved in and out, nothing lost when it fails. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "base/memory.h"
#include "onnx/model_case.h"
#include "onnx/tensor_data.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* case_model in a file of a fresh folder, opened. */
static struct cm_model_file *opened_case(struct cm_arena *arena, const char **folder)
{
    struct cm_model_proto *model = CM_NEW(arena, struct cm_model_proto);
    struct cm_model_file *file;
    struct cm_error err;

    *folder = case_folder(arena);
    case_model(arena, model);
    case_save(arena, model, case_path(arena, *folder, "m.onnx"));
    CHECK_OK(cm_model_open(arena, case_path(arena, *folder, "m.onnx"), NULL, &file, &err), &err);
    return file;
}

static struct cm_model_file *reopened(struct cm_arena *arena, const char *path)
{
    struct cm_model_file *file;
    struct cm_error err;
    CHECK_OK(cm_model_open(arena, path, NULL, &file, &err), &err);
    return file;
}

static void keep_untouched(struct cm_arena *arena)
{
    const char *folder;
    struct cm_model_file *file = opened_case(arena, &folder);
    struct cm_save_report report;
    struct cm_error err;
    const struct cm_str before = case_read(arena, file->path.data);
    const char *copy = case_path(arena, folder, "copy.onnx");

    CHECK_OK(cm_model_save(file, copy, NULL, &report, &err), &err);
    CHECK(cm_str_equal(case_read(arena, copy), before));
    CHECK_INT(report.model_bytes, before.size);
    CHECK_INT(report.external_files + report.moved_in + report.moved_out, 0);
    CHECK_OK(cm_model_save(file, file->path.data, NULL, NULL, &err), &err);
    CHECK(cm_str_equal(case_read(arena, file->path.data), before));
    case_check(file, 0); /* the file it is mapped from is gone, its bytes are not */
    CHECK_INT(case_count_files(folder), 2);
}

void test_save__an_untouched_model_keeps_its_bytes(void)
{
    check_in_arena(keep_untouched);
}

static void out_and_in(struct cm_arena *arena)
{
    const char *folder;
    struct cm_model_file *file = opened_case(arena, &folder);
    const struct cm_save_options out = {.placement = CM_PLACE_EXTERNAL};
    const struct cm_save_options in = {.placement = CM_PLACE_INLINE};
    const char *outside = case_path(arena, folder, "out.onnx");
    const char *inside = case_path(arena, folder, "in.onnx");
    struct cm_save_report report;
    struct cm_error err;

    CHECK_OK(cm_model_save(file, outside, &out, &report, &err), &err);
    CHECK_INT(report.moved_out, CASE_LARGE);
    CHECK_INT(report.external_files, 1);
    CHECK_STRING(report.external_name, "out.onnx.data");
    case_check(file, 0); /* not changed by saving */
    struct cm_model_file *moved = reopened(arena, outside);
    case_check(moved, CASE_LARGE);
    const struct cm_tensor_proto *w = &moved->model.graph->initializer.items[0];
    CHECK_INT(w->external_data.count, 3);
    CHECK_STR(w->external_data.items[0].value, "out.onnx.data");
    CHECK_STR(w->external_data.items[1].key, "offset");
    CHECK_STR(w->external_data.items[2].value, "4000");

    CHECK_OK(cm_model_save(moved, inside, &in, &report, &err), &err);
    CHECK_INT(report.moved_in, CASE_LARGE);
    struct cm_model_file *back = reopened(arena, inside);
    case_check(back, 0);
    CHECK_INT(back->model.graph->initializer.items[0].external_data.count, 0);
    CHECK(!cm_msg_has(&back->model.graph->initializer.items[0].msg, CM_TENSOR_DATA_LOCATION));
}

void test_save__tensors_everywhere_move_out_and_back_in(void)
{
    check_in_arena(out_and_in);
}

struct told {
    size_t written, kept;
    uint64_t bytes;
};

static void count_file(void *arg, const struct cm_save_file *file)
{
    struct told *told = arg;

    *(file->written ? &told->written : &told->kept) += 1;
    told->bytes += file->bytes;
}

static void ship(struct cm_arena *arena)
{
    const char *folder;
    struct cm_model_file *file = opened_case(arena, &folder);
    struct told told = {0};
    const struct cm_save_options out = {.placement = CM_PLACE_EXTERNAL};
    const struct cm_save_options by_itself = {
        .placement = CM_PLACE_AUTO, .file = count_file, .file_arg = &told};
    const char *outside = case_path(arena, folder, "out.onnx");
    const char *copy = case_path(arena, folder, "copy.onnx");
    struct cm_save_report report;
    struct cm_error err;

    CHECK_OK(cm_model_save(file, outside, &out, NULL, &err), &err);
    struct cm_model_file *moved = reopened(arena, outside);
    CHECK_OK(cm_model_save(moved, copy, &by_itself, &report, &err), &err);
    case_check(reopened(arena, copy), CASE_LARGE);
    CHECK_INT(report.moved_in, 0);
    CHECK_INT(told.written, 0);
    CHECK_INT(told.kept, 1);
    CHECK_INT(told.bytes, case_read(arena, case_path(arena, folder, "out.onnx.data")).size);

    told = (struct told){0};
    moved->to_ship = true;
    CHECK_OK(cm_model_save(moved, copy, &by_itself, &report, &err), &err);
    case_check(reopened(arena, copy), 0);
    CHECK_INT(report.moved_in, CASE_LARGE);
    CHECK_INT(told.written + told.kept, 0);
}

void test_save__small_external_data_of_a_model_to_be_shipped_goes_inside(void)
{
    check_in_arena(ship);
}

static void check_alignment(struct cm_arena *arena, size_t alignment, bool many)
{
    const char *folder;
    struct cm_model_file *file = opened_case(arena, &folder);
    const struct cm_save_options options = {.placement = CM_PLACE_EXTERNAL,
                                            .external_name = "w.bin",
                                            .alignment = alignment,
                                            .threshold = 1,
                                            .one_file_per_tensor = many};
    const char *path = case_path(arena, folder, "out.onnx");
    struct cm_save_report report;
    struct cm_error err;

    CHECK_OK(cm_model_save(file, path, &options, &report, &err), &err);
    /* all but the empty one and the strings */
    CHECK_INT(report.moved_out, 10);
    CHECK_INT(report.external_files, many ? 10 : 1);
    CHECK_INT(case_count_files(folder), many ? 12 : 3);
    struct cm_model_file *moved = reopened(arena, path);
    case_check(moved, 10);
    for (size_t i = 0; i < moved->model.graph->initializer.count; i++) {
        struct cm_external_place place;
        const struct cm_tensor_proto *tensor = &moved->model.graph->initializer.items[i];
        if (cm_external_place(tensor, &place, NULL) != CM_OK)
            continue;
        CHECK_INT(place.offset % (alignment ? alignment : 4096), 0);
        CHECK(place.has_length);
        if (many)
            CHECK_INT(place.offset, 0);
    }
}

static void check_alignments(struct cm_arena *arena)
{
    check_alignment(arena, 0, false);
    check_alignment(arena, 64, false);
    check_alignment(arena, 1, false);
    check_alignment(arena, 0, true);
}

void test_save__one_file_or_many_and_aligned(void)
{
    check_in_arena(check_alignments);
}

static void refuse_options(struct cm_arena *arena)
{
    const char *folder;
    struct cm_model_file *file = opened_case(arena, &folder);
    const char *path = case_path(arena, folder, "out.onnx");
    struct cm_save_options options = {.placement = CM_PLACE_EXTERNAL, .alignment = 3};
    struct cm_error err;

    CHECK_FAILS(cm_model_save(file, path, &options, NULL, &err), CM_BAD_ARGUMENT, &err, "power");
    options.alignment = 0;
    options.external_name = "../w";
    CHECK_FAILS(cm_model_save(file, path, &options, NULL, &err), CM_BAD_ARGUMENT, &err, "'..'");
    options.external_name = "./out.onnx";
    CHECK_FAILS(cm_model_save(file, path, &options, NULL, &err), CM_BAD_ARGUMENT, &err, "itself");
    options.external_name = "/w";
    CHECK_FAILS(cm_model_save(file, path, &options, NULL, &err), CM_BAD_ARGUMENT, &err, "absolute");
    CHECK_FAILS(cm_model_save(file, case_path(arena, folder, "no/m.onnx"), NULL, NULL, &err),
                CM_NOT_FOUND, &err, "no/m.onnx");
    CHECK_FAILS(cm_model_save(file, "", NULL, NULL, &err), CM_BAD_ARGUMENT, &err, "empty");
    CHECK_FAILS(cm_model_save(file, folder, NULL, NULL, &err), CM_BAD_ARGUMENT, &err, "folder");
    CHECK_INT(case_count_files(folder), 1);
}

void test_save__options_and_paths_that_make_no_sense_are_refused(void)
{
    check_in_arena(refuse_options);
}

/* Over itself, again and again: the old data goes, its name is used by turns, and the handle goes
 * on working. */
static void over_itself(struct cm_arena *arena)
{
    const char *folder;
    struct cm_model_file *file = opened_case(arena, &folder);
    const struct cm_save_options out = {.placement = CM_PLACE_EXTERNAL};
    struct cm_save_report report;
    struct cm_error err;
    const char *path = file->path.data;

    CHECK_OK(cm_model_save(file, path, &out, &report, &err), &err);
    CHECK_STRING(report.external_name, "m.onnx.data");
    struct cm_model_file *second = reopened(arena, path);
    CHECK_OK(cm_model_save(second, path, &out, &report, &err), &err);
    CHECK_STRING(report.external_name, "m.onnx-1.data");
    CHECK_INT(report.old_removed, 1);
    CHECK_INT(case_count_files(folder), 2);
    case_check(second, CASE_LARGE); /* from maps of what is removed */
    case_check(reopened(arena, path), CASE_LARGE);

    /* second still says m.onnx.data, which is gone: keeping it means writing it again. */
    CHECK_OK(cm_model_save(second, path, NULL, &report, &err), &err);
    CHECK_INT(report.external_files, 1);
    CHECK_INT(case_count_files(folder), 2);
    struct cm_model_file *third = reopened(arena, path);
    case_check(third, CASE_LARGE);

    const struct cm_save_options in = {.placement = CM_PLACE_INLINE};
    CHECK_OK(cm_model_save(third, path, &in, &report, &err), &err);
    CHECK_INT(report.old_removed, 1);
    CHECK_INT(case_count_files(folder), 1);
    case_check(reopened(arena, path), 0);
}

void test_save__over_itself_with_external_data(void)
{
    check_in_arena(over_itself);
}

static void keep_elsewhere(struct cm_arena *arena)
{
    const char *from = case_folder(arena), *to = case_folder(arena);
    struct cm_save_report report;
    struct cm_error err;

    CHECK(mkdir(case_path(arena, from, "sub"), 0777) == 0);
    const char *path = case_external_model(arena, from, "m.onnx", "sub/w.bin", 5, 3);
    struct cm_model_file *file = reopened(arena, path);
    const char *copy = case_path(arena, to, "m.onnx");
    CHECK_OK(cm_model_save(file, copy, NULL, &report, &err), &err);
    CHECK(cm_str_equal(case_read(arena, copy), case_read(arena, path)));
    CHECK(cm_str_equal(case_read(arena, case_path(arena, to, "sub/w.bin")),
                       case_read(arena, case_path(arena, from, "sub/w.bin"))));

    /* A name that somebody else has there is left to them. */
    case_write(case_path(arena, from, "n.bin"), "", 0);
    path = case_external_model(arena, from, "n.onnx", "n.bin", 5, 0);
    case_write(case_path(arena, to, "n.bin"), "mine", 4);
    copy = case_path(arena, to, "n.onnx");
    CHECK_OK(cm_model_save(reopened(arena, path), copy, NULL, &report, &err), &err);
    CHECK_STRING(report.external_name, "n-1.bin");
    CHECK(cm_str_is(case_read(arena, case_path(arena, to, "n.bin")), "mine"));
    const struct cm_tensor_proto *w = &reopened(arena, copy)->model.graph->initializer.items[0];
    CHECK_STR(w->external_data.items[0].value, "n-1.bin");
    CHECK(cm_str_equal(case_read(arena, case_path(arena, to, "n-1.bin")),
                       case_read(arena, case_path(arena, from, "n.bin"))));

    /* In the same folder the file is shared. */
    CHECK_OK(
        cm_model_save(reopened(arena, path), case_path(arena, from, "o.onnx"), NULL, &report, &err),
        &err);
    CHECK_INT(report.external_files, 0);
}

void test_save__kept_external_files_go_with_the_model(void)
{
    check_in_arena(keep_elsewhere);
}

static void copy_again(struct cm_arena *arena)
{
    const char *from = case_folder(arena), *to = case_folder(arena);
    const char *path = case_external_model(arena, from, "m.onnx", "w.bin", 5, 0);
    const char *copy = case_path(arena, to, "m.onnx");
    struct cm_save_report report;
    struct cm_error err;

    for (int i = 0; i < 3; i++) {
        CHECK_OK(cm_model_save(reopened(arena, path), copy, NULL, &report, &err), &err);
        CHECK_INT(report.external_files, i == 0);
        CHECK_INT(report.old_left + report.old_removed, 0);
        CHECK(cm_str_equal(case_read(arena, copy), case_read(arena, path)));
        CHECK_INT(case_count_files(to), 2);
    }

    /* Other bytes get another name, which is then found again; the old file is named. */
    case_write(case_path(arena, from, "w.bin"), "01234567890123456789", 20);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(cm_model_save(reopened(arena, path), copy, NULL, &report, &err), &err);
        CHECK_INT(report.external_files, i == 0);
        CHECK_INT(report.old_left, i == 0);
        CHECK_STRING(report.old_name, i == 0 ? "w.bin" : "");
        CHECK_INT(case_count_files(to), 3);
    }
    CHECK(cm_str_is(case_read(arena, case_path(arena, to, "w-1.bin")), "01234567890123456789"));
}

void test_save__a_model_copied_again_uses_the_data_that_is_there(void)
{
    check_in_arena(copy_again);
}

static void refuse_without_data(struct cm_arena *arena)
{
    const char *from = case_folder(arena), *to = case_folder(arena);
    const char *path = case_external_model(arena, from, "m.onnx", "w.bin", 5, 0);
    const char *data = case_path(arena, from, "w.bin");
    const char *here = case_path(arena, from, "o.onnx"), *there = case_path(arena, to, "o.onnx");
    struct cm_error err;

    case_write(data, "0123", 4);
    CHECK_FAILS(cm_model_save(reopened(arena, path), here, NULL, NULL, &err), CM_BAD_MODEL, &err,
                "tensor 'W': external file 'w.bin' has 4 bytes, the tensor needs 20");
    CHECK_FAILS(cm_model_save(reopened(arena, path), there, NULL, NULL, &err), CM_BAD_MODEL, &err,
                "has 4 bytes");
    CHECK(unlink(data) == 0);
    CHECK_FAILS(cm_model_save(reopened(arena, path), here, NULL, NULL, &err), CM_BAD_MODEL, &err,
                "tensor 'W': there is no file 'w.bin'");
    CHECK(symlink("elsewhere", data) == 0);
    CHECK_FAILS(cm_model_save(reopened(arena, path), here, NULL, NULL, &err), CM_BAD_MODEL, &err,
                "a symbolic link that leads to no file");
    CHECK(!case_exists(here) && !case_exists(there));
    CHECK_INT(case_count_files(to), 0);
}

void test_save__refuses_references_to_data_that_is_not_there(void)
{
    check_in_arena(refuse_without_data);
}

static void cancel_a_save(struct cm_arena *arena)
{
    const char *folder;
    struct cm_model_file *file = opened_case(arena, &folder);
    const char *path = case_path(arena, folder, "out.onnx");
    const atomic_bool yes = true;
    const struct cm_save_options options = {.placement = CM_PLACE_EXTERNAL, .cancel = &yes};
    struct cm_error err;

    CHECK_FAILS(cm_model_save(file, path, &options, NULL, &err), CM_CANCELLED, &err,
                "was cancelled");
    CHECK_INT(case_count_files(folder), 1);
}

void test_save__cancelled_leaves_nothing_behind(void)
{
    check_in_arena(cancel_a_save);
}

static void leave_others_alone(struct cm_arena *arena)
{
    const struct cm_save_options in = {.placement = CM_PLACE_INLINE};
    const char *folder = case_folder(arena);
    struct cm_save_report report;
    struct cm_error err;

    /* Named by a model, but not like its own: it may be anything of the user's. */
    const char *path = case_external_model(arena, folder, "m.onnx", "thesis.txt", 5, 0);
    CHECK_OK(cm_model_save(reopened(arena, path), path, &in, &report, &err), &err);
    CHECK(case_exists(case_path(arena, folder, "thesis.txt")));
    CHECK_INT(report.old_removed, 0);
    CHECK_INT(report.old_left, 1);

    /* Used by a neighbour. */
    path = case_external_model(arena, folder, "m.onnx", "m.onnx.data", 5, 0);
    const char *other = case_external_model(arena, folder, "n.onnx", "./m.onnx.data", 5, 0);
    CHECK_OK(cm_model_save(reopened(arena, path), path, &in, &report, &err), &err);
    CHECK_INT(report.old_removed, 0);
    CHECK(case_exists(case_path(arena, folder, "m.onnx.data")));

    /* Beside a model that cannot be read, which might use it. */
    path = case_external_model(arena, folder, "m.onnx", "m.onnx.data", 5, 0);
    case_write(other, "\x3a\x50", 2);
    CHECK_OK(cm_model_save(reopened(arena, path), path, &in, &report, &err), &err);
    CHECK_INT(report.old_removed, 0);

    /* With a second name in the file system. */
    CHECK(unlink(other) == 0);
    path = case_external_model(arena, folder, "m.onnx", "m.onnx.data", 5, 0);
    const char *data = case_path(arena, folder, "m.onnx.data");
    struct cm_load_options links = {.allow_links = true};
    struct cm_model_file *file;
    CHECK(link(data, case_path(arena, folder, "second")) == 0);
    CHECK_OK(cm_model_open(arena, path, &links, &file, &err), &err);
    CHECK_OK(cm_model_save(file, path, &in, &report, &err), &err);
    CHECK(case_exists(data));

    /* And when none of that holds it goes. */
    CHECK(unlink(case_path(arena, folder, "second")) == 0);
    path = case_external_model(arena, folder, "m.onnx", "m.onnx.data", 5, 0);
    CHECK_OK(cm_model_save(reopened(arena, path), path, &in, &report, &err), &err);
    CHECK_INT(report.old_removed, 1);
    CHECK(!case_exists(data));
}

void test_save__removes_only_what_is_surely_its_own(void)
{
    check_in_arena(leave_others_alone);
}

static void keep_changed(struct cm_arena *arena)
{
    const char *folder = case_folder(arena);
    const char *path = case_external_model(arena, folder, "m.onnx", "m.onnx.data", 5, 0);
    struct cm_model_file *file = reopened(arena, path);
    float values[] = {9, 8, 7, 6, 5};
    const struct cm_tensor tensor = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(5), values);
    struct cm_save_report report;
    struct cm_tensor back;
    struct cm_error err;

    struct cm_tensor_proto *w = &file->model.graph->initializer.items[0];
    CHECK_OK(cm_tensor_proto_store(w, arena, &tensor, &err), &err);
    CHECK_OK(cm_model_save(file, path, NULL, &report, &err), &err);
    CHECK_INT(report.moved_out, 1);
    CHECK_INT(report.old_removed, 1);
    CHECK_STRING(report.external_name, "m.onnx-1.data");
    file = reopened(arena, path);
    w = &file->model.graph->initializer.items[0];
    CHECK_INT(w->data_location, CM_LOCATION_EXTERNAL);
    CHECK_OK(cm_tensor_proto_load(w, file->files, &back, &err), &err);
    CHECK_INT(memcmp(back.data, values, sizeof values), 0);
    cm_tensor_drop(&back);
}

void test_save__a_changed_external_tensor_stays_external(void)
{
    check_in_arena(keep_changed);
}

static void force_outside(struct cm_arena *arena)
{
    const char *folder;
    struct cm_model_file *file = opened_case(arena, &folder);
    struct cm_save_options options = {.size_limit = 8000};
    const char *path = case_path(arena, folder, "out.onnx");
    struct cm_save_report report;
    struct cm_error err;

    CHECK_OK(cm_model_save(file, path, &options, &report, &err), &err);
    CHECK(report.forced_external);
    CHECK(report.model_bytes <= 8000);
    CHECK_INT(report.moved_out, CASE_LARGE);
    struct cm_model_file *moved = reopened(arena, path);
    case_check(moved, CASE_LARGE);
    options.placement = CM_PLACE_INLINE;
    const char *again = case_path(arena, folder, "again.onnx");
    CHECK_OK(cm_model_save(moved, again, &options, &report, &err), &err);
    CHECK(report.forced_external);
    case_check(reopened(arena, again), CASE_LARGE);
    options.size_limit = 100;
    CHECK_FAILS(cm_model_save(file, path, &options, &report, &err), CM_LIMIT, &err,
                "a file can hold 100");
}

void test_save__past_the_size_limit_tensors_go_outside_by_themselves(void)
{
    check_in_arena(force_outside);
}

static void inline_broken(struct cm_arena *arena)
{
    const struct cm_save_options in = {.placement = CM_PLACE_INLINE};
    const char *folder = case_folder(arena);
    const char *path = case_external_model(arena, folder, "m.onnx", "w.bin", 5, 0);
    const struct cm_str before = case_read(arena, path);
    struct cm_error err;

    case_write(case_path(arena, folder, "w.bin"), "short", 5);
    CHECK_FAILS(cm_model_save(reopened(arena, path), path, &in, NULL, &err), CM_BAD_MODEL, &err,
                "tensor 'W': external file 'w.bin' has 5 bytes");
    CHECK(cm_str_equal(case_read(arena, path), before));
    CHECK_INT(case_count_files(folder), 2);
}

void test_save__a_failed_save_leaves_everything_as_it_was(void)
{
    check_in_arena(inline_broken);
}

/* The data is written and in place when the model's own file hits the end of the disk. */
static void full_disk(struct cm_arena *arena)
{
    const char *folder;
    struct cm_model_file *file = opened_case(arena, &folder);
    const struct cm_str before = case_read(arena, file->path.data);
    const struct cm_save_options out = {
        .placement = CM_PLACE_EXTERNAL, .alignment = 1, .threshold = 4000};
    struct rlimit old, small = {9000, RLIM_INFINITY};
    struct cm_error err;

    CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
    const enum cm_status status = cm_model_save(file, file->path.data, &out, NULL, &err);
    CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
    CHECK_FAILS(status, CM_IO, &err, "m.onnx");
    CHECK(cm_str_equal(case_read(arena, file->path.data), before));
    CHECK_INT(case_count_files(folder), 1);
}

void test_save__a_full_disk_loses_nothing_and_leaves_nothing(void)
{
    check_in_arena(full_disk);
}

/* Killed at a random moment, many times: the model on disk is always whole, the old one or the new
 * one. */
static void killed(struct cm_arena *arena)
{
    const char *folder;
    struct cm_model_file *file = opened_case(arena, &folder);
    const struct cm_save_options out = {.placement = CM_PLACE_EXTERNAL};
    const char *path = file->path.data;
    struct cm_error err;

    for (int i = 0; i < 30; i++) {
        const pid_t child = fork();
        if (child == 0) {
            for (;;) {
                struct cm_model_file *mine = reopened(arena, path);
                if (cm_model_save(mine, path, &out, NULL, &err) != CM_OK)
                    _exit(1);
            }
        }
        CHECK(child > 0);
        usleep((useconds_t)(500 + i * 700));
        kill(child, SIGKILL);
        int result;
        CHECK(waitpid(child, &result, 0) == child);
        CHECK(WIFSIGNALED(result));
        struct cm_model_file *whole = reopened(arena, path);
        case_check(whole, whole->model.graph->initializer.items[0].data_location ? CASE_LARGE : 0);
    }
}

void test_save__killed_at_any_moment_leaves_a_whole_model(void)
{
    check_in_arena(killed);
}

static void save_without_memory(struct cm_arena *arena)
{
    const char *folder;
    struct cm_model_file *file = opened_case(arena, &folder);
    const struct cm_save_options out = {.placement = CM_PLACE_EXTERNAL};
    const struct cm_str before = case_read(arena, file->path.data);
    enum cm_status status = CM_NO_MEMORY;

    for (uint64_t n = 1; status != CM_OK; n++) {
        struct cm_error err;
        CHECK(n < 1000);
        cm_memory_fail_after(n);
        status = cm_model_save(file, file->path.data, &out, NULL, &err);
        cm_memory_fail_after(0);
        if (status == CM_OK)
            break;
        CHECK_INT(status, CM_NO_MEMORY);
        CHECK_INT(case_count_files(folder), 1);
        CHECK(cm_str_equal(case_read(arena, file->path.data), before));
    }
    case_check(reopened(arena, file->path.data), CASE_LARGE);
}

void test_oom__saving_loses_nothing_wherever_memory_ends(void)
{
    check_in_arena(save_without_memory);
}
