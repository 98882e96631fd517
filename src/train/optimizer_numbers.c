/* One step's numbers of an optimizer: its function is run by the plain interpreter. */
// SPDX-License-Identifier: Apache-2.0
#include "train/optimizer_numbers.h"

#include "graph/eval.h"
#include "train/formula.h"
#include "train/rules.h"

static double operand(enum cm_update_rule rule, const struct cm_plan_group *settings, double t,
                      struct cm_str name)
{
    const struct cm_rule_number common[] = {{"t", t},
                                            {"t_next", t + 1},
                                            {"one", 1},
                                            {"zero", 0},
                                            {"half", 0.5},
                                            {"rest1", 1 - settings->beta1},
                                            {"rest2", 1 - settings->beta2}};

    for (size_t i = 0; i < CM_COUNT(common); i++)
        if (cm_str_is(name, common[i].name))
            return common[i].value;
    for (const struct cm_rule_number *n = cm_optimizer_rules[rule].numbers; n->name; n++)
        if (cm_str_is(name, n->name))
            return n->value;
    for (size_t i = 0; i < cm_group_field_count; i++) {
        const struct cm_group_field *field = &cm_group_fields[i];
        const double value = cm_group_field_get(settings, field);

        if (cm_str_is(name, field->name))
            return isnan(value)
                       ? cm_optimizer_default(&cm_optimizer_rules[rule], NULL, 0, field->name)
                       : value;
    }
    return NAN;
}

double cm_optimizer_number(struct cm_arena *arena, enum cm_update_rule rule,
                           const struct cm_plan_group *settings, int64_t t, struct cm_str name)
{
    const struct cm_function_proto *function;
    const char *const words[] = {NULL};
    struct cm_error err;
    struct cm_module *module = cm_module_new(arena, &(struct cm_module_options){0});
    struct cm_graph *graph = cm_graph_new(module, NULL, CM_STR("numbers"));
    struct cm_builder build = {.graph = graph, .err = &err};
    struct cm_datum *out = cm_data_new(arena, 1);
    size_t which = 0;

    if (cm_formula_read(arena, cm_optimizer_rules[rule].functions, "numbers", words, &function,
                        &err))
        return NAN;
    while (which < function->output.count && !cm_str_equal(function->output.items[which], name))
        which++;
    if (which == function->output.count)
        return NAN;
    cm_value *actuals = CM_NEW_ARRAY(arena, cm_value, function->input.count);
    cm_value *results = CM_NEW_ARRAY(arena, cm_value, function->output.count);
    for (size_t i = 0; i < function->input.count; i++)
        actuals[i] = cm_build_scalar(&build, CM_DOUBLE,
                                     operand(rule, settings, (double)t, function->input.items[i]));
    (void)cm_formula_apply(&build, function, actuals, results);
    if (build.status)
        return NAN;
    cm_graph_set_outputs(graph, &results[which], 1);
    return cm_graph_eval(graph, NULL, 0, out, NULL, &err) ? NAN : cm_tensor_real(&out->tensor, 0);
}
