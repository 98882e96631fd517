/* A checkpoint brought into a model, step by step: match, settings, prepare, fill, keep. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/transfer/import_saved.h"

#include "convert/transfer/import_parts.h"

#include <math.h>
#include <stdarg.h>

void cm_import_note(struct cm_importing *in, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    cm_findings_note_args(&in->findings, format, args);
    va_end(args);
}

void cm_import_block(struct cm_importing *in, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    cm_findings_add_args(&in->findings, CM_UNSUPPORTED, CM_STR_NONE, format, args);
    va_end(args);
}

/* ---- the table, and what is left over ---- */

static void judge(struct cm_importing *in)
{
    const struct cm_matching *m = in->matching;
    const bool partial = in->options->partial;

    cm_findings_merge(&in->findings, &m->problems, CM_STR_NONE);
    for (size_t i = 0; i < m->targets.count; i++) {
        const struct cm_match_target *target = &m->targets.items[i];

        if (target->parts.count || !target->is_needed || partial)
            continue;
        if (target->misfit.size)
            cm_import_block(in, "%.*s", CM_STR_FMT(target->misfit));
        else
            cm_import_block(in, "initializer '%.*s' is like nothing in the checkpoint",
                            CM_STR_FMT(target->name));
    }
    for (size_t i = 0; i < m->sources.count; i++) {
        const struct cm_match_source *source = &m->sources.items[i];

        if (!source->uses && !source->is_misfit && !partial && !cm_match_may_be_left(m, source))
            cm_import_block(in, "'%.*s' of the checkpoint is like nothing in the model",
                            CM_STR_FMT(source->name));
    }
}

/* Tensors that nothing demands and that are no mere numbers: an exporter may have computed them of
 * weights. */
static void tell_unmatched(struct cm_importing *in)
{
    const struct cm_matching *m = in->matching;
    struct cm_str names = CM_STR("");
    size_t count = 0;

    for (size_t i = 0; i < m->targets.count; i++) {
        const struct cm_match_target *target = &m->targets.items[i];

        if (target->parts.count || target->is_constant || target->is_tied ||
            !cm_dtype_is_float(target->tensor->data_type) ||
            cm_shape_elements(&target->shape) < 8 || (target->is_needed && !in->options->partial))
            continue;
        if (count++ < 5)
            names = cm_arena_printf(in->arena, "%s%s'%.*s'", cm_str_text(names),
                                    names.size ? ", " : "", CM_STR_FMT(target->name));
    }
    if (count)
        cm_import_note(in, "tensors that are not in the checkpoint keep their values (%zu): %s%s",
                       count, cm_str_text(names), count > 5 ? ", .." : "");
}

static struct cm_str sources_of(struct cm_arena *arena, const struct cm_parts *parts)
{
    struct cm_str text = parts->items[0].source;

    for (size_t i = 1; i < parts->count; i++)
        if (!cm_str_equal(parts->items[i].source, parts->items[i - 1].source))
            text = cm_arena_printf(arena, "%.*s, %.*s", CM_STR_ALL(text),
                                   CM_STR_ALL(parts->items[i].source));
    return text;
}

static void tell_matches(struct cm_importing *in, struct cm_saved_import_report *report)
{
    const struct cm_matching *m = in->matching;
    const size_t room = m->targets.count + m->sources.count;

    report->matches = CM_NEW_ARRAY(in->arena, struct cm_import_match, room + 1);
    for (size_t i = 0; i < m->targets.count; i++) {
        const struct cm_match_target *target = &m->targets.items[i];

        if (target->parts.count)
            report->matches[report->n_matches++] = (struct cm_import_match){
                target->name, sources_of(in->arena, &target->parts), target->how};
        else if (target->is_needed)
            report->matches[report->n_matches++] =
                (struct cm_import_match){target->name, CM_STR(""), CM_STR("not in the checkpoint")};
    }
    for (size_t i = 0; i < m->sources.count; i++) {
        const struct cm_match_source *source = &m->sources.items[i];

        if (!source->uses)
            report->matches[report->n_matches++] = (struct cm_import_match){
                CM_STR(""), source->name,
                cm_match_may_be_left(m, source) ? CM_STR("kept") : CM_STR("not in the model")};
    }
}

/* Names that share the memory of others are no tensors of their own: which, is told. */
static void tell_tied(struct cm_importing *in)
{
    const struct cm_matching *m = in->matching;
    struct cm_item *tied = cm_item_new(in->arena, CM_ITEM_MAP);

    for (size_t i = 0; i < m->sources.count; i++)
        if (m->sources.items[i].same)
            cm_item_set(
                in->arena, tied, cm_item_text(in->arena, m->sources.items[i].name),
                cm_item_text(in->arena, m->sources.items[m->sources.items[i].same - 1].name));
    if (cm_item_count(tied))
        cm_saved_tell(in->saved, "tied", tied);
}

/* ---- which weights move ---- */

/* The group of a tensor's sources + 1; 0: it is not trained. */
static size_t group_of(struct cm_importing *in, const struct cm_match_target *target)
{
    const struct cm_saved *saved = in->saved;
    size_t group = 0;

    for (size_t i = 0; i < target->parts.count; i++) {
        const struct cm_str name = target->parts.items[i].source;
        const enum cm_saved_role role = cm_match_find_source(in->matching, name)->role;
        size_t one = (size_t)cm_map_get(&in->groups, name, 0);

        if (!in->groups.count && saved->groups.count == 1 && role != CM_SAVED_BUFFER)
            one = 1;
        if (i && one != group) {
            cm_import_block(in, "'%.*s' is made of '%.*s' and others that are in different groups",
                            CM_STR_FMT(target->name), CM_STR_FMT(name));
            return 0;
        }
        group = one;
    }
    return group;
}

static void choose_weights(struct cm_importing *in)
{
    const struct cm_matching *m = in->matching;
    const struct cm_saved *saved = in->saved;
    bool is_unknown = false;

    for (size_t g = 0; g < saved->groups.count; g++) {
        const size_t count = saved->groups.items[g].names.count;
        size_t known = 0;

        for (size_t i = 0; i < count; i++)
            known += cm_match_find_source(m, saved->groups.items[g].names.items[i]) != NULL;
        if (count && !known)
            cm_import_block(in,
                            "the checkpoint does not say which weights are in group %zu: give "
                            "their %zu names, in order, with --set",
                            g, count);
        is_unknown = is_unknown || (count && !known);
        for (size_t i = 0; i < count; i++) {
            const struct cm_str name = saved->groups.items[g].names.items[i];

            *cm_map_insert(&in->groups, in->arena, name, NULL) = g + 1;
            if (known && !cm_match_find_source(m, name) && !in->options->partial)
                cm_import_block(in, "group %zu has '%.*s', which the checkpoint has no weight of",
                                g, CM_STR_FMT(name));
        }
    }
    in->weights = CM_NEW_ARRAY(in->arena, struct cm_plan_weight, m->targets.count + 1);
    for (size_t i = 0; i < m->targets.count; i++) {
        const struct cm_match_target *target = &m->targets.items[i];
        const size_t group = group_of(in, target);

        if (group && !target->is_tied && cm_dtype_is_float(target->tensor->data_type))
            in->weights[in->n_weights++] = (struct cm_plan_weight){target->name, group - 1};
    }
    if (!in->n_weights && !is_unknown)
        cm_import_block(in, "the optimizer of the checkpoint moves no weight of the model");
}

/* ---- all ---- */

static enum cm_status train(struct cm_importing *in, struct cm_saved_import_report *report,
                            struct cm_error *err)
{
    const struct cm_saved *saved = in->saved;
    struct cm_prepare_options options = in->options->prepare;
    struct cm_plan_group *groups =
        CM_NEW_ARRAY(in->arena, struct cm_plan_group, saved->groups.count);

    if (!options.loss || !options.loss[0])
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "a checkpoint does not say the loss: give --loss, or --weights-only for the "
                       "weights alone");
    for (size_t g = 0; g < saved->groups.count; g++)
        groups[g] = saved->groups.items[g].settings;
    const struct cm_plan plan = {.rule = saved->rule,
                                 .arithmetic = saved->arithmetic,
                                 .groups = groups,
                                 .n_groups = saved->groups.count,
                                 .weights = in->weights,
                                 .n_weights = in->n_weights,
                                 .schedule = saved->schedule,
                                 .clip = saved->clip,
                                 .step = saved->step};
    options.plan = &plan;
    options.keep_tied = true;
    options.accumulate = saved->accumulate > 1 ? saved->accumulate : 1;
    CM_TRY(cm_prepare(in->arena, in->file, &options, &report->prepare, err));
    CM_TRY(cm_import_weights(in, err));
    CM_TRY(cm_import_states(in, &report->prepare, err));
    return cm_import_keep(in, &report->prepare, err);
}

static enum cm_status import(struct cm_importing *in, struct cm_saved_import_report *report,
                             struct cm_error *err)
{
    CM_TRY(cm_match(in->matching, cm_str(in->options->map), err));
    tell_matches(in, report);
    judge(in);
    tell_unmatched(in);
    if (in->options->weights_only) {
        CM_TRY(cm_findings_fail(&in->findings, err));
        return cm_import_weights(in, err);
    }
    if (!in->saved->has_optimizer)
        cm_import_note(in, "the checkpoint has no optimizer: its state begins anew");
    cm_import_settings(in);
    cm_match_tie(in->matching);
    tell_tied(in);
    choose_weights(in);
    CM_TRY(cm_findings_fail(&in->findings, err));
    return train(in, report, err);
}

enum cm_status cm_saved_import(struct cm_arena *arena, struct cm_model_file *file,
                               struct cm_saved *saved,
                               const struct cm_saved_import_options *options,
                               struct cm_saved_import_report *report, struct cm_error *err)
{
    struct cm_importing in = {.arena = arena, .file = file, .saved = saved, .options = options};

    in.findings = (struct cm_findings){
        .arena = arena, .rule = "import", .what = "the checkpoint cannot be imported"};
    *report = (struct cm_saved_import_report){.findings = in.findings};
    if (!file->model.graph)
        return cm_fail(err, CM_BAD_MODEL, "the model has no graph");
    if (file->model.training_info.count && !options->weights_only)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "the model carries its training already; strip it first");
    in.matching = CM_NEW(arena, struct cm_matching);
    in.matching->arena = arena;
    in.matching->file = file;
    in.matching->saved = saved;
    const enum cm_status status = import(&in, report, err);
    report->findings = in.findings;
    return status;
}
