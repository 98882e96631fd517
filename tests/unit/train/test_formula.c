/* Formulas of data/training/: lines whose conditions hold, and all of the files that are there. */
// SPDX-License-Identifier: Apache-2.0
#include "train/formula.h"
#include "train/rules.h"
#include "train_case.h"

static const char two[] = "other (x) => (z)\n{\nz = Neg (x)\n}\n"
                          "sum (x, y, half) => (kept, z)\n{\n"
                          "[wide !deep] kept = Mul (half, y)\n"
                          "[deep] z = Add (x, y)\n"
                          "[!deep] z__plain = Abs (x)\n"
                          "[!deep] z = Neg (z__plain)\n}\n";

static void lines(struct cm_arena *arena)
{
    const char *const wide[] = {"wide", NULL}, *const deep[] = {"wide", "deep", NULL};
    const struct cm_function_proto *function;
    struct cm_error err = {0};

    CHECK_OK(cm_formula_read(arena, two, "sum", wide, &function, &err), &err);
    CHECK_INT(function->node.count, 3);
    CHECK_INT(function->input.count, 3);
    CHECK_INT(function->output.count, 2);
    CHECK_OK(cm_formula_read(arena, two, "sum", deep, &function, &err), &err);
    CHECK_INT(function->node.count, 1);
    CHECK_INT(function->input.count, 2); /* nothing reads half */
    CHECK_INT(function->output.count, 1);
    CHECK_OK(cm_formula_read(arena, two, NULL, NULL, &function, &err), &err);
    CHECK_STR(function->name, "other");
    CHECK_STR(cm_formula_word(CM_STR("z__plain")), "z");
    CHECK_STR(cm_formula_stem(CM_STR("exp_avg_next")), "exp_avg");
    CHECK_STR(cm_formula_stem(CM_STR("next")), "next");
}

void test_formula__lines_are_kept_by_their_conditions(void)
{
    check_in_arena(lines);
}

/* Each result of a state is named for it, and each rule has a default of some framework. */
static void files(struct cm_arena *arena)
{
    const char *const matrix[] = {"torch", "matrix", NULL};

    for (size_t rule = CM_RULE_UNKNOWN + 1; rule < CM_RULES; rule++) {
        const struct cm_optimizer_rule *is = &cm_optimizer_rules[rule];
        const struct cm_function_proto *update;
        struct cm_error err = {0};
        bool known = false;

        for (size_t like = 0; like < 4; like++)
            known = known || is->defaults[like];
        CHECK(known && is->presets->name);
        CHECK_OK(cm_formula_read(arena, is->functions, "update", matrix, &update, &err), &err);
        for (const struct cm_optimizer_state *s = is->states; s->name; s++) {
            bool is_set = !cm_words_hold(s->when, matrix);

            for (size_t o = 0; o < update->output.count; o++)
                is_set = is_set || cm_str_is(cm_formula_stem(update->output.items[o]), s->name);
            CHECK(is_set);
        }
    }
    for (const struct cm_loss_rule *loss = cm_loss_rules; loss->name; loss++) {
        const struct cm_function_proto *function;
        struct cm_error err = {0};

        CHECK_OK(cm_formula_read(arena, loss->functions, NULL, NULL, &function, &err), &err);
        CHECK_INT(function->output.count, 1);
    }
}

void test_formula__every_file_can_be_read(void)
{
    check_in_arena(files);
}
