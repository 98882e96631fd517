/* Checkpoints that TensorFlow wrote, whole and cut into slices; and damaged ones. */
// SPDX-License-Identifier: Apache-2.0
#include "base/folder.h"
#include "check.h"
#include "convert/find_saved.h"
#include "convert/frameworks/keras/bundle.h"

#define CHECKPOINTS TESTS_DIR "/checkpoints/"

/* The first and the last element of a tensor of floats. */
static void check_ends(const struct cm_saved_entry *entry, double first, double last)
{
    struct cm_saved_reader reader = {0};
    struct cm_error err;
    float value;

    CHECK(entry != NULL);
    const struct cm_saved_tensor *tensor = entry->tensor;
    CHECK_OK(cm_saved_tensor_read(&reader, tensor, 0, 1, &value, &err), &err);
    CHECK(value == (float)first);
    CHECK_OK(cm_saved_tensor_read(&reader, tensor, cm_shape_elements(&tensor->shape) - 1, 1, &value,
                                  &err),
             &err);
    CHECK(value == (float)last);
}

static void reads_adam(struct cm_arena *arena)
{
    struct cm_saved *saved;
    struct cm_error err;

    CHECK_OK(cm_saved_open(arena, CHECKPOINTS "tensorflow-adam", 0, &saved, &err), &err);
    CHECK_STRING(saved->system, "TensorFlow");
    CHECK_INT(saved->entries.count, 18);
    CHECK_INT(saved->step, 10);
    CHECK_INT(saved->epoch, 1);
    CHECK_INT(saved->rule, CM_RULE_ADAM);
    CHECK_INT(saved->arithmetic, CM_LIKE_KERAS);
    CHECK_INT(saved->schedule_known, CM_SCHEDULE_UNKNOWN);
    CHECK_INT(saved->groups.items[0].names.count, 6);
    CHECK_STR(saved->groups.items[0].names.items[2], "mlp/fc2/kernel");
    check_ends(find_saved(saved, CM_SAVED_WEIGHT, CM_STR("mlp/fc2/kernel"), NULL), 0x1.72d924p-3,
               0x1.061d32p-4);
    check_ends(find_saved(saved, CM_SAVED_SLOT, CM_STR("mlp/fc2/kernel"), "exp_avg_sq"),
               0x1.4b5546p-13, 0x1.6fd268p-14);
    CHECK(saved->missing.count == 4);
    CHECK(cm_str_starts(saved->missing.items[0], "the learning rate schedule"));
}

void test_bundle__a_checkpoint_of_keras_is_read_through_its_objects(void)
{
    check_in_arena(reads_adam);
}

static void reads_sharded(struct cm_arena *arena)
{
    struct cm_saved *saved;
    struct cm_error err;

    CHECK_OK(cm_saved_open(arena, CHECKPOINTS "tensorflow-sharded/ckpt-1", 0, &saved, &err), &err);
    const struct cm_saved_entry *weight =
        find_saved(saved, CM_SAVED_WEIGHT, CM_STR("model/logits_kernel"), NULL);
    check_ends(weight, 0x1.ad2624p-5, -0x1.1c86dcp-2);
    CHECK_INT(weight->tensor->pieces.count, 2);
    check_ends(find_saved(saved, CM_SAVED_SLOT, CM_STR("model/logits_kernel"), "momentum_buffer"),
               -0x1.c8a354p-8, 0x1.4c8a94p-10);
    CHECK_INT(saved->step, 9);
    CHECK_INT(saved->rule, CM_RULE_SGD);
}

void test_bundle__slices_in_several_files_are_one_tensor(void)
{
    check_in_arena(reads_sharded);
}

static void keeps_graph(struct cm_arena *arena)
{
    struct cm_bundle_graph graph, again, twice;
    const struct cm_bundle_entry *entry;
    struct cm_bundle bundle;
    struct cm_saved_place place;
    struct cm_error err;

    CHECK_OK(cm_place_open(arena, CHECKPOINTS "tensorflow-adam", 0, &place, &err), &err);
    CHECK_OK(cm_bundle_read(&place, CM_STR("ckpt-10"), &bundle, &err), &err);
    entry = cm_bundle_find(&bundle, CM_STR(CM_BUNDLE_GRAPH_KEY));
    CHECK_OK(cm_bundle_graph_parse(arena, entry->text, &graph, &err), &err);
    CHECK_INT(graph.count, 43);
    CHECK_STR(graph.nodes[33].full_name, "mlp/fc1/kernel");
    const struct cm_item *item = cm_bundle_graph_item(arena, &graph);
    CHECK(cm_bundle_graph_from_item(arena, item, &again));
    const struct cm_str bytes = cm_bundle_graph_encode(arena, &again);
    CHECK_OK(cm_bundle_graph_parse(arena, bytes, &twice, &err), &err);
    CHECK(cm_str_equal(bytes, cm_bundle_graph_encode(arena, &twice)));
    CHECK(cm_str_equal(bytes, cm_bundle_graph_encode(arena, &graph)));
}

void test_bundle__the_graph_of_objects_survives_being_a_fact(void)
{
    check_in_arena(keeps_graph);
}

/* A copy of the checkpoint, with one byte of one of its files changed or the file cut. */
static enum cm_status open_changed(struct cm_arena *arena, bool data, size_t at, bool cut,
                                   struct cm_error *err)
{
    static const char *const names[] = {"ckpt-10.index", "ckpt-10.data-00000-of-00001"};
    struct cm_saved *saved;
    struct folder folder;

    folder_make(&folder);
    for (int i = 0; i < 2; i++) {
        char path[FOLDER_PATH_SIZE];
        struct cm_save save = {0};
        struct cm_mapping file;

        snprintf(path, sizeof path, CHECKPOINTS "tensorflow-adam/%s", names[i]);
        CHECK_OK(cm_file_map(path, true, &file, err), err);
        char *bytes = cm_arena_alloc(arena, file.size);
        memcpy(bytes, file.data, file.size);
        const bool wanted = data == (i == 1);
        const size_t size = wanted && cut ? at % file.size : file.size;
        if (wanted && !cut)
            bytes[at % file.size] ^= 1;
        CHECK_OK(cm_save_begin(&save, folder_path(&folder, names[i], path), err), err);
        CHECK_OK(cm_save_write(&save, bytes, size, err), err);
        CHECK_OK(cm_save_commit(&save, err), err);
        cm_mapping_release(&file);
    }
    const enum cm_status status = cm_saved_open(arena, folder.path, 0, &saved, err);
    folder_remove(&folder);
    return status;
}

static void refuses(struct cm_arena *arena)
{
    struct cm_error err;

    for (size_t at = 0; at < 1341; at += 89)
        CHECK_INT(open_changed(arena, false, at, true, &err), CM_BAD_MODEL);
    for (size_t at = 0; at < 1100; at += 97)
        CHECK_FAILS(open_changed(arena, false, at, false, &err), CM_BAD_MODEL, &err, "check sum");
    CHECK_FAILS(open_changed(arena, true, 24, false, &err), CM_BAD_MODEL, &err,
                "tensor 'optimizer/_iterations/.ATTRIBUTES/VARIABLE_VALUE': its check sum");
    CHECK_FAILS(open_changed(arena, true, 10000, false, &err), CM_BAD_MODEL, &err, "check sum");
    CHECK_FAILS(open_changed(arena, true, 9000, true, &err), CM_BAD_MODEL, &err,
                "which has 9000: the file is cut");
}

void test_bundle__damaged_and_cut_files_are_refused(void)
{
    check_in_arena(refuses);
}
