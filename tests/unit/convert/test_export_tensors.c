/* A model's tensors as a framework has them. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "convert/find_saved.h"
#include "convert/transfer/export_saved.h"
#include "convert/transfer/hold.h"
#include "onnx/model_file.h"
#include "train/prepare/prepare.h"

#include <math.h>

static const char net[] =
    "<ir_version: 10, opset_import: [\"\" : 17]>\n"
    "net (float[n, 2] x) => (float[n, 3] y)\n"
    "<float[2,3] w = {1, 2, 3, 4, 5, 6}, float[3] b = {7, 8, 9}, float half = {0.5}>\n"
    "{ m = MatMul (x, w) s = Add (m, b) y = Mul (s, half) }";

static struct cm_model_file *prepared(struct cm_arena *arena, const char *optimizer)
{
    struct cm_prepare_options options = CM_PREPARE_OPTIONS;
    struct cm_prepare_report report;
    struct cm_model_file *file;
    struct cm_error err = {0};
    const struct cm_load_options text = {.format = CM_FORMAT_TEXT};

    options.loss = "mse";
    options.optimizer = optimizer;
    options.lr = 0.1;
    options.warmup = 4;
    options.schedule = CM_SCHEDULE_COSINE;
    options.schedule_steps = 104;
    options.clip_norm = 2;
    CHECK_OK(cm_model_parse(arena, cm_str(net), &text, &file, &err), &err);
    CHECK_OK(cm_prepare(arena, file, &options, &report, &err), &err);
    return file;
}

static const struct cm_saved_entry *find(const struct cm_saved *saved, const char *name,
                                         const char *slot)
{
    return find_saved(saved, slot ? CM_SAVED_SLOT : CM_SAVED_WEIGHT, cm_str(name), slot);
}

static void check_floats(const struct cm_saved_entry *entry, const float *wanted, size_t count)
{
    struct cm_saved_reader reader = {0};
    struct cm_error err = {0};
    float found[8];

    CHECK(entry && cm_shape_elements(&entry->tensor->shape) == (int64_t)count);
    CHECK_OK(cm_saved_tensor_read(&reader, entry->tensor, 0, (int64_t)count, found, &err), &err);
    for (size_t i = 0; i < count; i++)
        CHECK(found[i] == wanted[i]);
    cm_saved_reader_release(&reader);
}

static void by_flags(struct cm_arena *arena)
{
    struct cm_model_file *file = prepared(arena, "adamw");
    struct cm_saved *saved;
    struct cm_error err = {0};

    CHECK_OK(cm_gather(arena, file, (struct cm_gathering){0}, &saved, &err), &err);
    CHECK(saved->has_optimizer);
    CHECK_INT(saved->rule, CM_RULE_ADAM);
    CHECK_STR(saved->optimizer, "AdamW");
    CHECK_INT(saved->step, 0);
    CHECK_INT(saved->groups.count, 1);
    CHECK_INT(saved->groups.items[0].names.count, 2);
    const struct cm_plan_group *is = &saved->groups.items[0].settings;
    CHECK(is->initial_lr == 0.1 && is->beta1 == 0.9 && is->beta2 == 0.999 && is->epsilon == 1e-8);
    CHECK(is->weight_decay == 0.01 && is->decoupled == 1);
    CHECK(fabs(is->lr - 0.025) < 1e-12); /* the first of four updates of warmup */
    CHECK(saved->clip.limit == 2);
    CHECK(find(saved, "w", "exp_avg") && find(saved, "b", "exp_avg_sq"));
    CHECK(find(saved, "w", NULL) && find(saved, "b", NULL) && !find(saved, "half", NULL));
    CHECK_INT(saved->entries.count, 6);
}

void test_export_tensors__what_flags_prepared_is_recognized(void)
{
    check_in_arena(by_flags);
}

static void momentum(struct cm_arena *arena)
{
    struct cm_saved *saved;
    struct cm_error err = {0};

    CHECK_OK(cm_gather(arena, prepared(arena, "nesterov"), (struct cm_gathering){0}, &saved, &err),
             &err);
    CHECK_INT(saved->rule, CM_RULE_SGD);
    CHECK_INT(saved->groups.items[0].settings.nesterov, 1);
    CHECK(find(saved, "w", "momentum_buffer"));
    CHECK_OK(cm_gather(arena, prepared(arena, "rmsprop"), (struct cm_gathering){0}, &saved, &err),
             &err);
    CHECK_INT(saved->rule, CM_RULE_RMSPROP);
    CHECK_OK(cm_gather(arena, prepared(arena, "adagrad"), (struct cm_gathering){0}, &saved, &err),
             &err);
    CHECK_INT(saved->rule, CM_RULE_ADAGRAD);
    CHECK_OK(cm_gather(arena, prepared(arena, "sgd"), (struct cm_gathering){0}, &saved, &err),
             &err);
    CHECK_INT(saved->rule, CM_RULE_SGD);
    CHECK_INT(saved->entries.count, 2);
}

void test_export_tensors__rules_are_told_by_their_states(void)
{
    check_in_arena(momentum);
}

/* As if w had come transposed from "fc.weight", and b as the second half of "fc.bias". */
static struct cm_model_file *imported(struct cm_arena *arena)
{
    static const int turned[] = {1, 0};
    struct cm_model_file *file = prepared(arena, "adam");
    struct cm_graph_proto *algorithm = file->model.training_info.items[0].algorithm;
    struct cm_saved *saved = cm_saved_new(arena, CM_STR("ckpt"));
    struct cm_saved_group *group = cm_saved_add_group(saved);
    struct cm_parts w = {0}, b = {0};
    struct cm_error err = {0};

    cm_parts_transposed(arena, &w, CM_STR("fc.weight"), &CM_SHAPE(3, 2), turned, 2);
    cm_hold_parts(arena, &file->model.graph->initializer.items[0], &w);
    cm_parts_whole(arena, &b, CM_STR("fc.bias"), &CM_SHAPE(3));
    cm_hold_parts(arena, &file->model.graph->initializer.items[1], &b);
    for (size_t i = 0; i < algorithm->initializer.count; i++) {
        struct cm_tensor_proto *state = &algorithm->initializer.items[i];
        struct cm_str weight;
        const char *slot = cm_prepared_slot(state->name, &weight);

        if (slot)
            cm_hold_slot(arena, state, weight, cm_str(slot), slot);
    }
    saved->system = "PyTorch";
    saved->format = "torch.save";
    saved->has_optimizer = true;
    saved->rule = CM_RULE_ADAM;
    saved->optimizer = CM_STR("Adam");
    group->settings.lr = 0.3;
    *CM_PUSH(arena, &group->names) = CM_STR("fc.weight");
    *CM_PUSH(arena, &group->names) = CM_STR("fc.bias");
    CHECK_OK(cm_hold_training(file, 0, saved, NULL, CM_STR("training.step"), &err), &err);
    return file;
}

static void undone(struct cm_arena *arena)
{
    static const float weight[] = {1, 4, 2, 5, 3, 6}, bias[] = {7, 8, 9};
    struct cm_saved *saved;
    struct cm_error err = {0};

    CHECK_OK(cm_gather(arena, imported(arena), (struct cm_gathering){0}, &saved, &err), &err);
    check_floats(find(saved, "fc.weight", NULL), weight, 6);
    check_floats(find(saved, "fc.bias", NULL), bias, 3);
    const struct cm_saved_entry *slot = find(saved, "fc.weight", "exp_avg");
    CHECK(slot && cm_shape_equal(&slot->tensor->shape, &CM_SHAPE(3, 2)));
    CHECK_INT(saved->entries.count, 6);
    CHECK_INT(saved->step, 0);
}

void test_export_tensors__what_an_exporter_turned_is_turned_back(void)
{
    check_in_arena(undone);
}

static void elsewhere(struct cm_arena *arena)
{
    static const float weight[] = {1, 2, 3, 4, 5, 6};
    struct cm_saved *saved;
    struct cm_error err = {0};

    CHECK_OK(
        cm_gather(arena, imported(arena), (struct cm_gathering){.as_graph = true}, &saved, &err),
        &err);
    check_floats(find(saved, "fc.weight", NULL), weight, 6);
    CHECK_STR(saved->groups.items[0].names.items[1], "fc.bias");
    CHECK_OK(cm_gather(arena, imported(arena),
                       (struct cm_gathering){.as_graph = true, .own_names = true}, &saved, &err),
             &err);
    check_floats(find(saved, "w", NULL), weight, 6);
    CHECK_STR(saved->groups.items[0].names.items[1], "b");
}

void test_export_tensors__elsewhere_they_are_laid_out_as_in_the_graph(void)
{
    check_in_arena(elsewhere);
}
