/* What a model holds of a training beside training info: written, read back, checked. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "convert/saved_contents.h"
#include "convert/transfer/hold.h"

static const char trained[] =
    "<ir_version: 9, opset_import: [\"\" : 21]>\n"
    "net (float[N] x) => (float[N] y) <float[1] w = {2}> { y = Mul (x, w) }\n"
    "training {\n"
    "   algorithm: step () => (float[1] w1, int64 k1) <int64 k = {12}, int64 one = {1}, float[1] m "
    "= {0}>\n"
    "   { w1 = Neg (w) k1 = Add (k, one) },\n"
    "   update_binding: [\"w\": \"w1\", \"k\": \"k1\"]\n}\n";

static struct cm_model_file *open_text(struct cm_arena *arena, const char *text)
{
    const struct cm_load_options options = {.format = CM_FORMAT_TEXT};
    struct cm_model_file *file;
    struct cm_error err;

    CHECK_OK(cm_model_parse(arena, cm_str(text), &options, &file, &err), &err);
    return file;
}

static struct cm_saved *some_training(struct cm_arena *arena)
{
    static const double from[] = {0.1}, to[] = {0};
    static struct cm_phase phase = {.shape = CM_PHASE_COSINE, .length = 30, .from = from, .to = to};
    struct cm_saved *saved = cm_saved_new(arena, CM_STR("ckpt"));
    struct cm_item *arguments = cm_item_new(arena, CM_ITEM_MAP);

    saved->system = "PyTorch";
    saved->format = "a file";
    saved->has_optimizer = true;
    saved->optimizer = CM_STR("AdamW");
    saved->rule = CM_RULE_ADAM;
    saved->arithmetic = CM_LIKE_TORCH;
    saved->clip = (struct cm_plan_clip){CM_CLIP_EACH, 0.5};
    saved->step = 12;
    saved->epoch = 3;
    saved->accumulate = 4;
    saved->schedule_known = CM_SCHEDULE_KNOWN;
    saved->schedule_name = CM_STR("CosineAnnealingLR");
    saved->schedule = (struct cm_rate_schedule){.items = &phase, .count = 1};
    struct cm_saved_group *group = cm_saved_add_group(saved);
    group->settings.lr = 0.1;
    group->settings.decoupled = 1;
    *CM_PUSH(arena, &group->names) = CM_STR("fc.weight");
    cm_item_put(arena, arguments, "seed", cm_item_int(arena, 42));
    cm_saved_tell(saved, "arguments", arguments);
    return saved;
}

static void check_same(const struct cm_saved *back)
{
    CHECK_STR(back->optimizer, "AdamW");
    CHECK_INT(back->rule, CM_RULE_ADAM);
    CHECK_INT(back->clip.kind, CM_CLIP_EACH);
    CHECK(back->clip.limit == 0.5);
    CHECK_INT(back->accumulate, 4);
    CHECK_INT(back->groups.count, 1);
    CHECK(back->groups.items[0].settings.lr == 0.1 &&
          back->groups.items[0].settings.decoupled == 1);
    CHECK_STR(back->groups.items[0].names.items[0], "fc.weight");
    CHECK_INT(back->schedule.count, 1);
    CHECK(back->schedule.items[0].from[0] == 0.1 && back->schedule.items[0].length == 30);
    CHECK_STR(back->schedule_name, "CosineAnnealingLR");
}

static void hold_and_read(struct cm_arena *arena)
{
    static const int64_t batches[] = {7};
    struct cm_model_file *file = open_text(arena, trained);
    const struct cm_saved *saved = some_training(arena);
    struct cm_str names[] = {CM_STR("w")};
    const struct cm_hold_group groups[] = {{names, 1}};
    struct cm_saved_tensor *tensor;
    struct cm_held_tensor *kept;
    struct cm_saved *back;
    struct cm_error err;
    size_t count;

    CHECK_OK(cm_hold_training(file, 0, saved, groups, CM_STR("k"), &err), &err);
    CHECK_INT(file->model.ir_version, 10); /* the first with such metadata */
    CHECK_OK(cm_saved_tensor_new(arena, CM_INT64, &CM_SCALAR,
                                 (struct cm_str){(const char *)batches, 8}, CM_STR("f"), &tensor,
                                 &err),
             &err);
    const struct cm_saved_entry counter = {
        .role = CM_SAVED_BUFFER, .name = CM_STR("bn.num_batches"), .tensor = tensor};
    CHECK_OK(cm_hold_keep(file, 0, &counter, cm_saved_contents(arena, tensor, CM_INT64), &err),
             &err);
    CHECK_OK(cm_hold_read(arena, file, 0, &back, &err), &err);
    check_same(back);
    CHECK_STRING(back->system, "PyTorch");
    CHECK_INT(back->step, 12); /* the state variable's */
    CHECK_INT(back->epoch, 3);
    CHECK_INT(back->facts.count, 1);
    CHECK_OK(cm_hold_read_kept(arena, file, 0, &kept, &count, &err), &err);
    CHECK_INT(count, 1);
    CHECK_STR(kept[0].name, "bn.num_batches");
    CHECK_INT(kept[0].role, CM_SAVED_BUFFER);
    struct cm_tensor value;
    CHECK_OK(cm_tensor_proto_load(kept[0].tensor, NULL, &value, &err), &err);
    CHECK_INT(cm_tensor_int(&value, 0), 7);
    cm_tensor_drop(&value);
}

void test_hold__a_training_comes_back_as_it_was(void)
{
    check_in_arena(hold_and_read);
}

static void recall(struct cm_arena *arena)
{
    const struct cm_item *text = cm_hold_text(arena, some_training(arena));
    struct cm_saved *back = cm_saved_new(arena, CM_STR("other"));
    struct cm_error err;

    cm_saved_missing(back, "the schedule");
    CHECK_OK(cm_hold_recall_text(back, text, &err), &err);
    check_same(back);
    CHECK_INT(back->missing.count, 0);
    CHECK_OK(cm_hold_recall_text(back, NULL, &err), &err);
    CHECK_OK(cm_hold_recall_text(back, cm_item_text(arena, CM_STR("not JSON")), &err), &err);
    check_same(back);
}

void test_hold__other_formats_carry_it_as_a_text(void)
{
    check_in_arena(recall);
}

static void find_problems(struct cm_arena *arena)
{
    static const struct {
        const char *key, *value, *reason;
    } rows[] = {
        {"ai.cameo.training.position", "{\"step\": \"n\"}", "'n', which is not an initializer"},
        {"ai.cameo.training.position", "{\"step\": \"one\"}", "'one', which is never updated"},
        {"ai.cameo.training.optimizer", "{\"rule\": \"lion\"}", "no rule 'lion'"},
        {"ai.cameo.training.optimizer",
         "{\"rule\": \"sgd\", \"arithmetic\": \"torch\", \"groups\": [{\"initializers\": "
         "[\"q\"]}]}",
         "group 0 names 'q', which is not an initializer"},
        {"ai.cameo.training.schedule", "{\"phases\": [{\"shape\": \"wild\"}]}", "no shape 'wild'"},
        {"ai.cameo.training.schedule", "{", "JSON"},
        {"ai.cameo.training.kept", "[{\"initializer\": \"gone\"}]", "'gone', which is not there"},
        {"ai.cameo.training.other", "1", "is not known here"},
    };

    for (size_t i = 0; i < CM_COUNT(rows); i++) {
        struct cm_model_file *file = open_text(arena, trained);
        struct cm_graph_proto *graph = file->model.training_info.items[0].algorithm;
        struct cm_entry_proto *entry = CM_NEW(arena, struct cm_entry_proto);
        struct cm_findings problems = {.arena = arena};

        cm_hold_check(arena, file, &problems);
        CHECK_INT(problems.count, 0);
        entry->key = cm_str(rows[i].key);
        entry->value = cm_str(rows[i].value);
        graph->metadata_props = (struct cm_entries){entry, 1};
        cm_hold_check(arena, file, &problems);
        if (!problems.count || !strstr(problems.items[0].reason.data, rows[i].reason))
            fail_msg("%s = %s: expected '%s', got '%s'", rows[i].key, rows[i].value, rows[i].reason,
                     problems.count ? problems.items[0].reason.data : "nothing");
    }
}

void test_hold__what_is_not_as_described_is_told(void)
{
    check_in_arena(find_problems);
}
