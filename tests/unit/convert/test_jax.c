/* Trees of JAX and checkpoints of ONNX Runtime: optimizers told by their state, and all formats
 * there and back. */
// SPDX-License-Identifier: Apache-2.0
#include "base/folder.h"
#include "check.h"
#include "convert/find_saved.h"
#include "convert/format.h"
#include "convert/frameworks/jax/flax_state.h"

extern const struct cm_format cm_format_flax, cm_format_onnxruntime, cm_format_orbax;

static const float numbers[] = {1, 2, 3, 4, 5, 6, 7, 8};

static struct cm_saved_tensor *tensor_of(struct cm_arena *arena, struct cm_shape shape, size_t from)
{
    const size_t count = (size_t)cm_shape_elements(&shape);
    struct cm_saved_tensor *tensor;
    struct cm_error err;

    CHECK_OK(cm_saved_tensor_new(
                 arena, CM_FLOAT, &shape,
                 (struct cm_str){(const char *)(numbers + from), count * sizeof numbers[0]},
                 CM_STR("m"), &tensor, &err),
             &err);
    return tensor;
}

/* A tree out of JSON: "k" stands for a kernel of 2x3, "b" for a bias of 3, "s" for a number. */
static const struct cm_item *tree_of(struct cm_arena *arena, const struct cm_item *item)
{
    struct cm_str text;

    if (cm_item_is_text(item, &text))
        return cm_item_tensor(arena, cm_str_is(text, "k")   ? tensor_of(arena, CM_SHAPE(2, 3), 0)
                                     : cm_str_is(text, "b") ? tensor_of(arena, CM_SHAPE(3), 1)
                                                            : tensor_of(arena, CM_SCALAR, 4));
    if (item->kind != CM_ITEM_MAP)
        return item;
    struct cm_item *tree = cm_item_new(arena, CM_ITEM_MAP);
    for (size_t i = 0; i < item->entries.count; i++)
        cm_item_set(arena, tree, item->entries.items[i].key,
                    tree_of(arena, item->entries.items[i].value));
    return tree;
}

static struct cm_saved *taken(struct cm_arena *arena, const char *json)
{
    struct cm_saved *saved = cm_saved_new(arena, CM_STR("x"));
    struct cm_item *item;
    struct cm_error err;

    CHECK_OK(cm_item_parse_json(arena, cm_str(json), &item, &err), &err);
    CHECK_OK(cm_jax_take_tree(saved, tree_of(arena, item), &err), &err);
    return saved;
}

#define TREE       "{\"w\": \"k\", \"b\": \"b\"}"
#define STATE(opt) "{\"step\": 7, \"params\": " TREE ", \"opt_state\": " opt "}"
#define ADAM       "{\"count\": \"s\", \"mu\": " TREE ", \"nu\": " TREE "}"

static bool says(const struct cm_saved_texts *texts, const char *part)
{
    for (size_t i = 0; i < texts->count; i++)
        if (strstr(texts->items[i].data, part))
            return true;
    return false;
}

static void structures(struct cm_arena *arena)
{
    static const struct {
        const char *state, *name;
        enum cm_update_rule rule;
        const char *missing;
    } known[] = {
        {"{\"0\": " ADAM ", \"1\": {}}", "adam", CM_RULE_ADAM, "beta1"},
        {"{\"0\": " ADAM ", \"1\": {}, \"2\": {}}", "adamw", CM_RULE_ADAM, "the weight decay"},
        {"{\"0\": " ADAM ", \"1\": {\"inner_state\": {}}, \"2\": {}}", "adamw", CM_RULE_ADAM,
         "which weights decay"},
        {"{\"0\": " ADAM ", \"1\": {\"count\": \"s\"}}", "adam", CM_RULE_ADAM,
         "how the learning rate goes on"},
        {"{\"0\": {}, \"1\": {\"0\": " ADAM ", \"1\": {}}}", "adam", CM_RULE_ADAM, "clip_norm"},
        {"{\"0\": {\"trace\": " TREE "}, \"1\": {}}", "sgd", CM_RULE_SGD, "momentum"},
        {"{\"0\": {}, \"1\": {}}", "sgd", CM_RULE_SGD, "learning rate"},
        {"{\"0\": {\"sum_of_squares\": " TREE "}, \"1\": {}}", "adagrad", CM_RULE_ADAGRAD, "1e-7"},
        {"{\"0\": {\"nu\": " TREE "}, \"1\": {}, \"2\": {}}", "rmsprop", CM_RULE_RMSPROP,
         "beta2 and epsilon: optax stores none"},
        {"{\"0\": {\"count\": \"s\", \"mu\": " TREE "}, \"1\": {}, \"2\": {}}", "lion",
         CM_RULE_LION, "beta1 and beta2: optax stores none"},
        {"{\"0\": " ADAM ", \"1\": {}, \"2\": {}, \"3\": {}}", "lamb", CM_RULE_LAMB,
         "the weight decay"},
        {"{\"mini_step\": 1, \"gradient_step\": 3, \"inner_opt_state\": {\"0\": " ADAM
         ", \"1\": {}}, \"acc_grads\": " TREE ", \"skip_state\": {}}",
         "adam", CM_RULE_ADAM, "--accumulate"},
    };

    for (size_t i = 0; i < CM_COUNT(known); i++) {
        char json[1024];

        snprintf(json, sizeof json, STATE("%s"), known[i].state);
        const struct cm_saved *saved = taken(arena, json);
        CHECK_STR(saved->optimizer, known[i].name);
        CHECK_INT(saved->rule, known[i].rule);
        CHECK_INT(saved->arithmetic, CM_LIKE_OPTAX);
        CHECK_INT(saved->step, 7);
        CHECK_INT(saved->groups.count, 1);
        CHECK_INT(saved->groups.items[0].names.count, 2);
        CHECK(says(&saved->missing, known[i].missing));
        CHECK_INT(saved->unknown.count, 0);
    }
}

void test_jax__optimizers_are_told_by_their_state(void)
{
    check_in_arena(structures);
}

static void settings(struct cm_arena *arena)
{
    const struct cm_saved *saved = taken(
        arena,
        STATE("{\"count\": \"s\", \"hyperparams\": {\"learning_rate\": \"s\", \"b1\": 0.5, "
              "\"b2\": 0.25, \"eps\": 0.125}, \"inner_state\": {\"0\": " ADAM ", \"1\": {}}}"));
    const struct cm_plan_group *is = &saved->groups.items[0].settings;

    CHECK(is->lr == 5 && is->beta1 == 0.5 && is->beta2 == 0.25 && is->epsilon == 0.125);
    CHECK_INT(saved->missing.count, 0);
    CHECK_INT(is->step_offset, 5 - 7); /* the optimizer has its own count */
    /* Groups by label, of which one does not move. */
    saved = taken(arena, STATE("{\"inner_states\": {\"a\": {\"inner_state\": {\"0\": {\"count\": "
                               "\"s\", \"mu\": {\"w\": \"k\", \"b\": {}}, \"nu\": {\"w\": \"k\", "
                               "\"b\": {}}}, \"1\": {}}}, \"z\": {\"inner_state\": {}}}}"));
    CHECK_INT(saved->groups.count, 1);
    CHECK_INT(saved->groups.items[0].names.count, 1);
    CHECK_STR(saved->groups.items[0].names.items[0], "params/w");
    /* Not known: said, and kept. */
    saved = taken(arena, STATE("{\"0\": {\"count\": \"s\", \"v_row\": " TREE "}, \"1\": {}}"));
    CHECK(says(&saved->unknown, "opt_state/0"));
    CHECK(find_saved(saved, CM_SAVED_OTHER, CM_STR("opt_state/0/v_row/w"), NULL) != NULL);
}

void test_jax__stored_settings_and_groups_are_used(void)
{
    check_in_arena(settings);
}

/* ---- there and back ---- */

static void check_same(struct cm_arena *arena, const struct cm_saved *a, const struct cm_saved *b)
{
    CHECK_INT(a->entries.count, b->entries.count);
    CHECK_INT(a->step, b->step);
    CHECK_INT(a->rule, b->rule);
    for (size_t i = 0; i < a->entries.count; i++) {
        const struct cm_saved_entry *x = &a->entries.items[i];
        const struct cm_saved_entry *y = find_saved(b, x->role, x->name, x->meaning);
        struct cm_saved_reader reader = {0};
        struct cm_error err;
        float got[2][8];
        const int64_t count = cm_shape_elements(&x->tensor->shape);

        CHECK(y != NULL);
        CHECK(cm_shape_equal(&x->tensor->shape, &y->tensor->shape));
        CHECK_OK(cm_saved_tensor_read(&reader, x->tensor, 0, count, got[0], &err), &err);
        CHECK_OK(cm_saved_tensor_read(&reader, y->tensor, 0, count, got[1], &err), &err);
        CHECK(memcmp(got[0], got[1], (size_t)count * sizeof(float)) == 0);
    }
    (void)arena;
}

static struct cm_saved *round_trip(struct cm_arena *arena, const struct cm_saved *saved,
                                   const struct cm_format *format, const char *name)
{
    struct cm_saved *back = cm_saved_new(arena, CM_STR("back"));
    char path[FOLDER_PATH_SIZE];
    struct cm_saved_place place;
    struct folder folder;
    struct cm_error err;

    folder_make(&folder);
    folder_path(&folder, name, path);
    CHECK_OK(format->write(saved, path, &err), &err);
    CHECK_OK(cm_place_open(arena, path, 0, &place, &err), &err);
    CHECK_INT(format->recognize(&place), 2);
    CHECK_OK(format->read(&place, back, &err), &err);
    folder_remove(&folder);
    return back;
}

static void formats(struct cm_arena *arena)
{
    struct cm_saved *saved = taken(arena, STATE("{\"0\": " ADAM ", \"1\": {}, \"2\": {}}"));
    const struct cm_item *tree, *again;
    struct cm_error err;

    check_same(arena, saved, round_trip(arena, saved, &cm_format_flax, "x.msgpack"));
    saved->groups.items[0].settings.lr = 0.25;
    const struct cm_saved *orbax = round_trip(arena, saved, &cm_format_orbax, "x");
    check_same(arena, saved, orbax);
    CHECK(orbax->groups.items[0].settings.lr == 0.25); /* kept beside the tree */
    saved->groups.items[0].settings.step_offset = 0;
    struct cm_saved *runtime = round_trip(arena, saved, &cm_format_onnxruntime, "x.checkpoint");
    check_same(arena, saved, runtime);
    /* What never was a tree of JAX becomes that of a TrainState. */
    CHECK_OK(cm_jax_tree(arena, runtime, &tree, &err), &err);
    CHECK(cm_item_path(tree, "params.w") != NULL);
    CHECK(cm_item_path(tree, "opt_state.0.mu.w") != NULL);
    /* Counts go on with the step. */
    saved->step += 3;
    CHECK_OK(cm_jax_tree(arena, saved, &again, &err), &err);
    double count;
    CHECK(cm_item_is_real(cm_item_path(again, "opt_state.0.count"), &count) && count == 8);
    CHECK(cm_item_is_real(cm_item_get(again, "step"), &count) && count == 10);
    /* Without an optimizer only the variables. */
    runtime->has_optimizer = false;
    CHECK_OK(cm_jax_tree(arena, runtime, &tree, &err), &err);
    CHECK(cm_item_get(tree, "params") && !cm_item_get(tree, "opt_state"));
}

void test_jax__formats_come_back_as_they_were(void)
{
    check_in_arena(formats);
}

static void properties(struct cm_arena *arena)
{
    struct cm_saved *saved = cm_saved_new(arena, CM_STR("x"));
    struct cm_item *all;
    struct cm_error err;

    CHECK_OK(
        cm_item_parse_json(arena, CM_STR("{\"n\": 3, \"x\": 0.5, \"t\": \"text\"}"), &all, &err),
        &err);
    cm_saved_add(saved, CM_SAVED_WEIGHT, CM_STR("w"), tensor_of(arena, CM_SHAPE(2, 2), 0));
    cm_saved_tell(saved, "ort.properties", all);
    saved->epoch = 4;
    const struct cm_saved *back = round_trip(arena, saved, &cm_format_onnxruntime, "checkpoint");
    CHECK_INT(back->epoch, 4);
    CHECK(!back->has_optimizer);
    CHECK_STRING(cm_item_json(arena, back->facts.items[0].value, 0).data,
                 "{\"n\": 3, \"epoch\": 4, \"x\": 0.5, \"t\": \"text\"}");
}

void test_jax__properties_of_onnx_runtime_are_kept(void)
{
    check_in_arena(properties);
}
