/* Folders of Hugging Face and files of Lightning: what is written is read again. */
// SPDX-License-Identifier: Apache-2.0
#include "base/folder.h"
#include "check.h"
#include "convert/find_saved.h"
#include "convert/format.h"
#include "convert/frameworks/torch/torch_state.h"

static struct cm_saved_tensor *tensor(struct cm_arena *arena, const struct cm_shape *shape,
                                      float first)
{
    const size_t count = (size_t)cm_shape_elements(shape);
    float *values = CM_NEW_ARRAY(arena, float, count);
    struct cm_saved_tensor *out;
    struct cm_error err;

    for (size_t i = 0; i < count; i++)
        values[i] = first + (float)i;
    CHECK_OK(cm_saved_tensor_new(arena, CM_FLOAT, shape,
                                 (struct cm_str){(const char *)values, count * sizeof *values},
                                 CM_STR("memory"), &out, &err),
             &err);
    return out;
}

/* A training of two weights with Adam. */
static struct cm_saved *example(struct cm_arena *arena)
{
    struct cm_saved *saved = cm_saved_new(arena, CM_STR("test"));
    struct cm_saved_group *group = cm_saved_add_group(saved);
    const struct cm_str names[] = {CM_STR("fc.weight"), CM_STR("fc.bias")};
    const struct cm_shape shapes[] = {CM_SHAPE(2, 3), CM_SHAPE(2)};
    struct cm_item *config;
    struct cm_error err;

    for (size_t i = 0; i < 2; i++) {
        cm_saved_add(saved, CM_SAVED_WEIGHT, names[i], tensor(arena, &shapes[i], 1));
        cm_saved_add_slot(saved, names[i], CM_STR("exp_avg"), "exp_avg",
                          tensor(arena, &shapes[i], 10));
        cm_saved_add_slot(saved, names[i], CM_STR("exp_avg_sq"), "exp_avg_sq",
                          tensor(arena, &shapes[i], 20));
        *CM_PUSH(arena, &group->names) = names[i];
    }
    CHECK_OK(cm_item_parse_json(arena, CM_STR("{\"model_type\": \"tiny\"}"), &config, &err), &err);
    cm_saved_tell(saved, "config", config);
    group->settings.lr = 0.125;
    group->settings.beta1 = 0.5;
    group->settings.beta2 = 0.75;
    group->settings.weight_decay = 0.25;
    group->settings.decoupled = 1;
    saved->has_optimizer = true;
    saved->rule = CM_RULE_ADAM;
    saved->optimizer = CM_STR("AdamW");
    saved->step = 7;
    saved->epoch = 2;
    return saved;
}

static const struct cm_format *format_named(const char *name)
{
    for (size_t i = 0; i < cm_format_count; i++)
        if (strcmp(cm_formats[i]->name, name) == 0)
            return cm_formats[i];
    fail_msg("there is no format '%s'", name);
    return NULL;
}

static void round_trip(struct cm_arena *arena)
{
    static const struct {
        const char *format, *system;
    } cases[] = {{"huggingface", "Hugging Face"}, {"lightning", "PyTorch Lightning"}};

    for (size_t i = 0; i < CM_COUNT(cases); i++) {
        char path[FOLDER_PATH_SIZE];
        struct cm_saved *again;
        struct folder folder;
        struct cm_error err;

        folder_make(&folder);
        folder_path(&folder, "out", path);
        CHECK_OK(format_named(cases[i].format)->write(example(arena), path, &err), &err);
        CHECK_OK(cm_saved_open(arena, path, 0, &again, &err), &err);
        CHECK_STRING(again->system, cases[i].system);
        CHECK_INT(again->missing.count + again->unknown.count, 0);
        CHECK_STR(again->optimizer, "AdamW");
        CHECK_INT(again->step, 7);
        CHECK_INT(again->epoch, 2);
        CHECK_INT(again->groups.count, 1);
        CHECK(again->groups.items[0].settings.beta2 == 0.75);
        CHECK(again->groups.items[0].settings.weight_decay == 0.25);
        CHECK_STR(again->groups.items[0].names.items[1], "fc.bias");
        const struct cm_saved_entry *slot =
            find_saved(again, CM_SAVED_SLOT, CM_STR("fc.weight"), "exp_avg_sq");
        struct cm_saved_reader reader = {0};
        float values[6];
        CHECK(slot != NULL);
        CHECK_OK(cm_saved_tensor_read(&reader, slot->tensor, 0, 6, values, &err), &err);
        CHECK(values[0] == 20 && values[5] == 25);
        cm_saved_reader_release(&reader);
        folder_remove(&folder);
    }
}

void test_huggingface__a_training_comes_back(void)
{
    check_in_arena(round_trip);
}

/* Weights in two files of an index, one of which is lost, and an index that names what is not. */
static void sharded(struct cm_arena *arena)
{
    static const char first[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}  ";
    char shard[9 + sizeof first], path[FOLDER_PATH_SIZE];
    const uint64_t size = sizeof first - 1;
    struct cm_saved *saved;
    struct folder folder;
    struct cm_error err;
    FILE *file;

    memcpy(shard, &size, 8);
    memcpy(shard + 8, first, sizeof first - 1);
    shard[8 + sizeof first - 1] = 5;
    folder_make(&folder);
    file = fopen(folder_path(&folder, "model-00001-of-00002.safetensors", path), "wb");
    CHECK(file && fwrite(shard, 1, 8 + sizeof first, file) == 8 + sizeof first &&
          fclose(file) == 0);
    folder_write(&folder, "model.safetensors.index.json",
                 "{\"weight_map\": {\"a\": \"model-00001-of-00002.safetensors\"}}");
    CHECK_OK(cm_saved_open(arena, folder.path, 0, &saved, &err), &err);
    CHECK_INT(saved->entries.count, 1);
    folder_write(&folder, "model.safetensors.index.json",
                 "{\"weight_map\": {\"a\": \"model-00001-of-00002.safetensors\", \"b\": "
                 "\"model-00001-of-00002.safetensors\"}}");
    CHECK_FAILS(cm_saved_open(arena, folder.path, 0, &saved, &err), CM_BAD_MODEL, &err,
                "none of its files has the tensor \"b\"");
    folder_write(&folder, "model.safetensors.index.json",
                 "{\"weight_map\": {\"a\": \"../../etc/passwd\"}}");
    CHECK(cm_saved_open(arena, folder.path, 0, &saved, &err) != CM_OK);
    folder_remove(&folder);
}

void test_huggingface__an_index_is_followed_and_checked(void)
{
    check_in_arena(sharded);
}
