/* Items: JSON read and printed, looked into, bounded. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "convert/saved_item.h"

static void there_and_back(struct cm_arena *arena)
{
    static const char *const texts[] = {
        "{\"a\": [1, -2, 3.5, 1e-08, true, false, null], \"b\": {\"c\": \"x\\\"y\"}}",
        "[]",
        "{}",
        "\"\"",
        "0.1",
        "NaN",
        "[-Infinity, Infinity]",
        "9223372036854775807",
    };

    for (size_t i = 0; i < CM_COUNT(texts); i++) {
        struct cm_item *item;
        struct cm_error err;

        CHECK_OK(cm_item_parse_json(arena, cm_str(texts[i]), &item, &err), &err);
        CHECK_STRING(cm_item_json(arena, item, 0).data, texts[i]);
    }
}

void test_item__json_comes_back_as_it_was(void)
{
    check_in_arena(there_and_back);
}

static void look(struct cm_arena *arena)
{
    struct cm_item *item;
    struct cm_error err;
    struct cm_str text;
    int64_t number;
    double real;

    CHECK_OK(
        cm_item_parse_json(arena,
                           CM_STR("{\"optim\": {\"sched\": {\"name\": \"Cosine\", \"n\": 4.0}},"
                                  " \"n\": 1, \"n\": 2}"),
                           &item, &err),
        &err);
    CHECK(cm_item_is_text(cm_item_path(item, "optim.sched.name"), &text));
    CHECK_STR(text, "Cosine");
    CHECK(cm_item_is_int(cm_item_path(item, "optim.sched.n"), &number));
    CHECK_INT(number, 4);
    CHECK(cm_item_is_real(cm_item_get(item, "n"), &real));
    CHECK(real == 2); /* the last counts */
    CHECK(!cm_item_path(item, "optim.none.name"));
    CHECK(!cm_item_get(NULL, "x") && !cm_item_at(item, 99));
    CHECK(cm_item_real_or(NULL, 7) == 7);
}

void test_item__is_looked_into_by_path(void)
{
    check_in_arena(look);
}

static void refuse(struct cm_arena *arena)
{
    char deep[400];
    struct cm_item *item;
    struct cm_error err;

    CHECK_FAILS(cm_item_parse_json(arena, CM_STR("{\"a\": tru}"), &item, &err), CM_BAD_MODEL, &err,
                "lacks a value at byte 6");
    CHECK_FAILS(cm_item_parse_json(arena, CM_STR("[1, 2"), &item, &err), CM_BAD_MODEL, &err, "");
    CHECK_FAILS(cm_item_parse_json(arena, CM_STR("1 2"), &item, &err), CM_BAD_MODEL, &err,
                "goes on after its end");
    memset(deep, '[', sizeof deep);
    CHECK_FAILS(cm_item_parse_json(arena, (struct cm_str){deep, sizeof deep}, &item, &err),
                CM_LIMIT, &err, "nested deeper than 64");
}

void test_item__broken_json_is_refused(void)
{
    check_in_arena(refuse);
}

static void print_bounded(struct cm_arena *arena)
{
    struct cm_item *list = cm_item_new(arena, CM_ITEM_LIST), *in = list;

    /* Each holds the one before it many times, and itself. */
    for (int i = 0; i < 40; i++) {
        struct cm_item *out = cm_item_new(arena, CM_ITEM_LIST);
        for (int k = 0; k < 10; k++)
            cm_item_append(arena, out, in);
        in = out;
    }
    cm_item_append(arena, list, in);
    CHECK(cm_item_json(arena, in, 1000).size < 6000);
    CHECK(cm_item_json(arena, list, 1000).size < 6000);
}

static void print_keys(struct cm_arena *arena)
{
    struct cm_item *in = cm_item_int(arena, 1), *map = cm_item_new(arena, CM_ITEM_MAP);

    /* Keys that are maps, whose keys are maps, and so on. */
    for (int i = 0; i < 30; i++) {
        struct cm_item *out = cm_item_new(arena, CM_ITEM_MAP);
        cm_item_set(arena, out, in, cm_item_int(arena, i));
        in = out;
    }
    for (int64_t k = 0; k < 1000; k++)
        cm_item_set(arena, map, in, cm_item_int(arena, k));
    const size_t before = arena->held;
    const size_t size = cm_item_json(arena, map, 0).size;
    CHECK(size > 100000 && arena->held - before < 8 * size);

    in = cm_item_new(arena, CM_ITEM_MAP);
    cm_item_set(arena, in, cm_item_real(arena, 2), cm_item_real(arena, 0.5));
    CHECK_STRING(cm_item_json(arena, in, 0).data, "{\"2.0\": 0.5}");
}

void test_item__keys_that_are_maps_need_little_memory(void)
{
    check_in_arena(print_keys);
}

void test_item__what_holds_itself_is_printed_all_the_same(void)
{
    check_in_arena(print_bounded);
}

static void settings(struct cm_arena *arena)
{
    static const double from[] = {0.1, 0.2}, to[] = {0, 0};
    struct cm_phase phases[] = {
        {.shape = CM_PHASE_LINEAR, .length = 3, .from = to, .to = from},
        {.shape = CM_PHASE_EXPONENTIAL,
         .first = 3,
         .length = 5,
         .factor = 0.5,
         .is_stepped = true,
         .from = from},
    };
    const struct cm_rate_schedule schedule = {.items = phases, .count = 2, .offset = -1};
    struct cm_plan_group group = CM_PLAN_GROUP, read = CM_PLAN_GROUP;
    struct cm_rate_schedule back;
    struct cm_error err;

    group.lr = 0.1;
    group.nesterov = 1;
    group.step_offset = -3;
    CHECK_OK(cm_group_from_item(cm_group_item(arena, &group), &read, &err), &err);
    CHECK(read.lr == 0.1 && read.nesterov == 1 && read.amsgrad == -1 && isnan(read.beta1));
    CHECK_INT(read.step_offset, -3);
    const struct cm_item *item = cm_schedule_item(arena, &schedule, 2);
    CHECK_OK(cm_schedule_from_item(arena, item, 2, &back, &err), &err);
    CHECK_STRING(cm_item_json(arena, cm_schedule_item(arena, &back, 2), 0).data,
                 cm_item_json(arena, item, 0).data);
    CHECK_INT(back.offset, -1);
    CHECK(back.items[1].is_stepped && back.items[1].from[1] == 0.2 && !back.items[1].to);
    CHECK_FAILS(cm_schedule_from_item(arena, item, 3, &back, &err), CM_BAD_MODEL, &err,
                "one a group");
}

void test_item__settings_and_schedules_come_back(void)
{
    check_in_arena(settings);
}
