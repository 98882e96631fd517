/* State dictionaries: names of an optimizer's numbered parameters, settings, steps; and back. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "convert/find_saved.h"
#include "convert/frameworks/torch/torch_state.h"

#include <math.h>

static struct cm_saved_tensor *tensor(struct cm_arena *arena, int64_t rows, int64_t columns)
{
    const struct cm_shape shape = columns ? CM_SHAPE(rows, columns) : CM_SHAPE(rows);
    const size_t size = (size_t)(rows * (columns ? columns : 1)) * 4;
    struct cm_saved_tensor *out;
    struct cm_error err;

    CHECK_OK(cm_saved_tensor_new(arena, CM_FLOAT, &shape,
                                 (struct cm_str){cm_arena_alloc(arena, size), size},
                                 CM_STR("memory"), &out, &err),
             &err);
    return out;
}

struct part {
    const char *name;
    int64_t rows, columns;
};

static struct cm_saved *with_weights(struct cm_arena *arena, const struct part *parts, size_t count)
{
    struct cm_saved *saved = cm_saved_new(arena, CM_STR("test"));
    struct cm_item *map = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_error err;

    for (size_t i = 0; i < count; i++)
        cm_item_put(arena, map, parts[i].name,
                    cm_item_tensor(arena, tensor(arena, parts[i].rows, parts[i].columns)));
    CHECK_OK(cm_torch_take_weights(saved, map, &err), &err);
    return saved;
}

/* An optimizer whose groups JSON says; parameter i has a state of the shape of parts[i], and has
 * seen steps[i] steps (NULL: it does not count them). */
static void take_optimizer(struct cm_arena *arena, struct cm_saved *saved, const char *groups,
                           const struct part *parts, size_t count, const char *slot,
                           const int *steps)
{
    struct cm_item *optimizer = cm_item_new(arena, CM_ITEM_MAP), *list;
    struct cm_item *states = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_error err;

    CHECK_OK(cm_item_parse_json(arena, cm_str(groups), &list, &err), &err);
    for (size_t i = 0; i < count; i++) {
        struct cm_item *state = cm_item_new(arena, CM_ITEM_MAP);
        if (steps)
            cm_item_put(arena, state, "step", cm_item_int(arena, steps[i]));
        cm_item_put(arena, state, slot,
                    cm_item_tensor(arena, tensor(arena, parts[i].rows, parts[i].columns)));
        cm_item_set(arena, states, cm_item_int(arena, (int64_t)i), state);
    }
    cm_item_put(arena, optimizer, "state", states);
    cm_item_put(arena, optimizer, "param_groups", list);
    CHECK(cm_torch_is_optimizer(optimizer));
    CHECK_OK(cm_torch_take_optimizer(saved, optimizer, -1, &err), &err);
}

#define ADAM                                                                                       \
    "\"lr\": 0.1, \"betas\": [0.9, 0.99], \"eps\": 1e-8, \"amsgrad\": false, "                     \
    "\"decoupled_weight_decay\": true, "

static void decay_and_not(struct cm_arena *arena)
{
    static const struct part net[] = {
        {"a.weight", 3, 2}, {"a.bias", 3, 0}, {"b.weight", 3, 3}, {"b.bias", 3, 0}};
    static const struct part slots[] = {{"", 3, 2}, {"", 3, 3}, {"", 3, 0}, {"", 3, 0}};
    static const int steps[] = {7, 7, 7, 5};
    struct cm_saved *saved = with_weights(arena, net, 4);

    take_optimizer(arena, saved,
                   "[{" ADAM "\"weight_decay\": 0.01, \"params\": [0, 1]},"
                   " {" ADAM "\"weight_decay\": 0, \"params\": [2, 3]}]",
                   slots, 4, "exp_avg", steps);
    CHECK_INT(saved->missing.count, 0);
    CHECK_STR(saved->optimizer, "AdamW");
    CHECK_INT(saved->rule, CM_RULE_ADAM);
    CHECK_INT(saved->step, 7);
    /* The last parameter has seen fewer steps, so it has a group of its own. */
    CHECK_INT(saved->groups.count, 3);
    CHECK_STR(saved->groups.items[0].names.items[1], "b.weight");
    CHECK_STR(saved->groups.items[1].names.items[0], "a.bias");
    CHECK_STR(saved->groups.items[2].names.items[0], "b.bias");
    CHECK_INT(saved->groups.items[2].settings.step_offset, -2);
    CHECK(saved->groups.items[0].settings.weight_decay == 0.01);
    CHECK(saved->groups.items[0].settings.beta2 == 0.99);
    CHECK_INT(saved->groups.items[0].settings.decoupled, 1);
    CHECK(find_saved(saved, CM_SAVED_SLOT, CM_STR("b.bias"), "exp_avg") != NULL);
}

void test_torch_state__shapes_and_decay_tell_names(void)
{
    check_in_arena(decay_and_not);
}

#define SGD                                                                                        \
    "\"lr\": 0.1, \"momentum\": 0.9, \"dampening\": 0, \"nesterov\": true, \"weight_decay\": 0, "

/* As safetensors lists them: a bias before its weight, "key" before "query". */
static void alphabetical(struct cm_arena *arena)
{
    static const struct part net[] = {{"key.bias", 2, 0},   {"key.weight", 2, 2},
                                      {"query.bias", 2, 0}, {"query.weight", 2, 2},
                                      {"value.bias", 2, 0}, {"value.weight", 2, 2}};
    static const struct part unknown[] = {
        {"a.bias", 2, 0}, {"a.weight", 2, 2}, {"b.bias", 2, 0}, {"b.weight", 2, 2}};
    static const struct part slots[] = {{"", 2, 2}, {"", 2, 0}, {"", 2, 2},
                                        {"", 2, 0}, {"", 2, 2}, {"", 2, 0}};
    struct cm_saved *saved = with_weights(arena, net, 6);

    take_optimizer(arena, saved, "[{" SGD "\"params\": [0, 1, 2, 3, 4, 5]}]", slots, 6,
                   "momentum_buffer", NULL);
    CHECK_INT(saved->missing.count, 0);
    CHECK_STR(saved->groups.items[0].names.items[0], "query.weight");
    CHECK_STR(saved->groups.items[0].names.items[2], "key.weight");
    CHECK_STR(saved->groups.items[0].names.items[5], "value.bias");

    /* Two modules of the same shapes, whose names say nothing: either may be the first. */
    saved = with_weights(arena, unknown, 4);
    take_optimizer(arena, saved, "[{" SGD "\"params\": [0, 1, 2, 3]}]", slots, 4, "momentum_buffer",
                   NULL);
    CHECK_INT(saved->missing.count, 1);
    CHECK(cm_str_starts(saved->missing.items[0], "the names of the optimizer's 4 parameters"));
}

void test_torch_state__alphabetical_files_are_put_in_the_order_of_modules(void)
{
    check_in_arena(alphabetical);
}

static void numbered(struct cm_arena *arena)
{
    static const struct part net[] = {
        {"bn1.bias", 2, 0},     {"bn1.weight", 2, 0}, {"bn2.bias", 2, 0},    {"bn2.weight", 2, 0},
        {"conv1.weight", 2, 2}, {"conv2.bias", 2, 0}, {"conv2.weight", 2, 2}};
    static const struct part slots[] = {{"", 2, 2}, {"", 2, 0}, {"", 2, 0}, {"", 2, 2},
                                        {"", 2, 0}, {"", 2, 0}, {"", 2, 0}};
    struct cm_saved *saved = with_weights(arena, net, 7);

    take_optimizer(arena, saved, "[{" SGD "\"params\": [0, 1, 2, 3, 4, 5, 6]}]", slots, 7,
                   "momentum_buffer", NULL);
    CHECK_INT(saved->missing.count, 0);
    CHECK_STR(saved->groups.items[0].names.items[0], "conv1.weight");
    CHECK_STR(saved->groups.items[0].names.items[1], "bn1.weight");
    CHECK_STR(saved->groups.items[0].names.items[4], "conv2.bias");
    CHECK_STR(saved->groups.items[0].names.items[6], "bn2.bias");
}

void test_torch_state__layers_are_numbered(void)
{
    check_in_arena(numbered);
}

static void some_are_frozen(struct cm_arena *arena)
{
    static const struct part net[] = {
        {"stem.weight", 5, 2}, {"stem.bias", 5, 0}, {"fc.weight", 3, 5}, {"fc.bias", 3, 0}};
    static const struct part slots[] = {{"", 3, 5}, {"", 3, 0}};
    struct cm_saved *saved = with_weights(arena, net, 4);

    take_optimizer(arena, saved, "[{" SGD "\"params\": [0, 1]}]", slots, 2, "momentum_buffer",
                   NULL);
    CHECK_INT(saved->missing.count, 0);
    CHECK_STR(saved->groups.items[0].names.items[0], "fc.weight");
    CHECK(find_saved(saved, CM_SAVED_BUFFER, CM_STR("stem.bias"), NULL) != NULL);
}

void test_torch_state__weights_that_no_optimizer_moves_are_none_of_its(void)
{
    check_in_arena(some_are_frozen);
}

static void damped(struct cm_arena *arena)
{
    static const struct part net[] = {{"a.weight", 3, 2}, {"b.weight", 2, 3}};
    struct cm_saved *saved = with_weights(arena, net, 2);

    take_optimizer(arena, saved,
                   "[{\"lr\": 0.1, \"momentum\": 0.9, \"dampening\": 0.5, \"nesterov\": false, "
                   "\"weight_decay\": 0, \"params\": [0, 1], \"param_names\": [\"a.weight\", "
                   "\"b.weight\"]}]",
                   net, 1, "momentum_buffer", NULL);
    CHECK_INT(saved->step, -1);
    CHECK_INT(saved->groups.count, 2); /* b.weight has no velocity: its first step is to come */
    CHECK_STR(saved->groups.items[0].names.items[0], "a.weight");
    CHECK_INT(saved->groups.items[0].settings.step_offset, 1);
    CHECK_INT(saved->groups.items[1].settings.step_offset, 0);
}

void test_torch_state__a_damped_velocity_is_past_its_first_step(void)
{
    check_in_arena(damped);
}

/* Written and read again, with numbers and with names. */
static void back(struct cm_arena *arena)
{
    static const struct part net[] = {{"w", 2, 2}, {"b", 2, 0}};
    static const int steps[] = {4, 4};
    struct cm_saved *saved = with_weights(arena, net, 2);
    struct cm_error err;

    take_optimizer(arena, saved,
                   "[{\"lr\": 0.1, \"lr_decay\": 0.01, \"eps\": 1e-10, \"weight_decay\": 0, "
                   "\"initial_accumulator_value\": 0, \"params\": [0, 1]}]",
                   net, 2, "sum", steps);
    CHECK_INT(saved->schedule_known, CM_SCHEDULE_KNOWN);
    CHECK_INT(saved->schedule.items[0].shape, CM_PHASE_INVERSE);
    for (int by_name = 0; by_name < 2; by_name++) {
        const struct cm_item *item = cm_torch_optimizer_item(arena, saved, by_name);
        struct cm_saved *again = with_weights(arena, net, 2);

        CHECK_OK(cm_torch_take_optimizer(again, item, -1, &err), &err);
        CHECK_INT(again->missing.count, 0);
        CHECK_STR(again->optimizer, "Adagrad");
        CHECK_INT(again->step, 4);
        CHECK_STR(again->groups.items[0].names.items[1], "b");
        CHECK(again->groups.items[0].settings.lr == 0.1);
        CHECK(again->schedule.items[0].factor == 0.01);
        CHECK(find_saved(again, CM_SAVED_SLOT, CM_STR("b"), "sum") != NULL);
    }
    CHECK(cm_torch_schedule_item(arena, saved) == NULL);
}

void test_torch_state__an_optimizer_comes_back(void)
{
    check_in_arena(back);
}

static void scheduler_moves(struct cm_arena *arena)
{
    struct cm_saved *saved = cm_saved_new(arena, CM_STR("test"));
    struct cm_item *state;
    struct cm_error err;

    CHECK_OK(
        cm_item_parse_json(arena,
                           CM_STR("{\"_milestones\": [3], \"last_epoch\": 9, \"_last_lr\": [0.5],"
                                  "\"_schedulers\": [{\"last_epoch\": 2, \"_step_count\": 3},"
                                  "{\"last_epoch\": 6, \"_step_count\": 7, \"T_max\": 20}]}"),
                           &state, &err),
        &err);
    cm_saved_tell(saved, "scheduler", state);
    cm_saved_add_group(saved)->settings.lr = 0.25;
    saved->has_optimizer = true;
    saved->step = 12;
    const struct cm_item *out = cm_torch_schedule_item(arena, saved);
    const struct cm_item *parts = cm_item_get(out, "_schedulers");
    CHECK(cm_item_real_or(cm_item_get(out, "last_epoch"), 0) == 12);
    CHECK(cm_item_real_or(cm_item_at(cm_item_get(out, "_last_lr"), 0), 0) == 0.25);
    CHECK(cm_item_real_or(cm_item_get(cm_item_at(parts, 0), "last_epoch"), 0) == 2);
    CHECK(cm_item_real_or(cm_item_get(cm_item_at(parts, 1), "last_epoch"), 0) == 9);
    CHECK(cm_item_real_or(cm_item_get(cm_item_at(parts, 1), "_step_count"), 0) == 10);
    CHECK(cm_item_real_or(cm_item_get(cm_item_at(parts, 1), "T_max"), 0) == 20);
}

void test_torch_state__a_scheduler_is_moved_to_the_present_step(void)
{
    check_in_arena(scheduler_moves);
}

static void tree(struct cm_arena *arena)
{
    struct cm_saved *saved = cm_saved_new(arena, CM_STR("test"));
    struct cm_item *all, *net = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_error err;

    CHECK_OK(cm_item_parse_json(
                 arena,
                 CM_STR("{\"epoch\": 3, \"global_step\": 30, \"scaler\": {\"scale\": 1024.0, "
                        "\"growth_factor\": 2.0}, \"best\": 0.5}"),
                 &all, &err),
             &err);
    cm_item_put(arena, net, "w", cm_item_tensor(arena, tensor(arena, 2, 2)));
    cm_item_put(arena, net, "running_mean", cm_item_tensor(arena, tensor(arena, 2, 0)));
    cm_item_put(arena, all, "net", net);
    cm_item_put(arena, all, "net_ema", net);
    CHECK_OK(cm_torch_take_tree(saved, all, &err), &err);
    CHECK_INT(saved->epoch, 3);
    CHECK_INT(saved->step, 30);
    CHECK(saved->loss_scale == 1024);
    CHECK(find_saved(saved, CM_SAVED_WEIGHT, CM_STR("w"), NULL) != NULL);
    CHECK(find_saved(saved, CM_SAVED_BUFFER, CM_STR("running_mean"), NULL) != NULL);
    CHECK(find_saved(saved, CM_SAVED_AVERAGE, CM_STR("w"), NULL) != NULL);
    CHECK(cm_item_real_or(cm_saved_fact(saved, "best"), 0) == 0.5);
}

void test_torch_state__files_of_any_habit_are_looked_through(void)
{
    check_in_arena(tree);
}

static void shared_maps(struct cm_arena *arena)
{
    struct cm_saved *saved = cm_saved_new(arena, CM_STR("test"));
    struct cm_item *in = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_error err;

    /* Each holds the one before it twenty times: 64 million places. */
    for (int i = 0; i < 6; i++) {
        struct cm_item *out = cm_item_new(arena, CM_ITEM_MAP);
        for (int k = 0; k < 20; k++)
            cm_item_set(arena, out, cm_item_int(arena, k), in);
        in = out;
    }
    CHECK_OK(cm_torch_take_tree(saved, in, &err), &err);
    CHECK(arena->held < 256 * 1024);
}

void test_torch_state__a_map_that_is_held_often_is_looked_through_once(void)
{
    check_in_arena(shared_maps);
}
