/* What other frameworks saved, as the public API has it. */
// SPDX-License-Identifier: Apache-2.0
#include "api/running.h"

#include "base/memory.h"
#include "convert/format.h"
#include "convert/saved_item.h"

enum { FACT_MAX = 4000 };

struct cameo_saved {
    struct cm_arena arena; /* everything below lives here */
    struct cm_saved *saved;
    struct cameo_saved_summary summary;
    struct cameo_saved_tensor *tensors;
    struct cameo_saved_group *groups;
    struct cameo_entry *facts;
    struct cameo_text *files, *unknown, *missing;
};

struct open_call {
    struct cameo_saved *out;
    const char *path;
    const struct cameo_saved_options *given;
};

static struct cameo_text *texts_of(struct cm_arena *arena, const struct cm_str *texts, size_t count)
{
    struct cameo_text *list = CM_NEW_ARRAY(arena, struct cameo_text, count + 1);

    for (size_t i = 0; i < count; i++)
        list[i] = cm_api_text(arena, texts[i]);
    return list;
}

static void tell_tensor(struct cm_arena *arena, const struct cm_saved_entry *entry,
                        struct cameo_saved_tensor *out)
{
    const struct cm_saved_tensor *tensor = entry->tensor;

    *out = (struct cameo_saved_tensor){
        .role = (enum cameo_saved_role)entry->role,
        .name = cm_api_text(arena, entry->name),
        .slot = cm_api_text(arena, entry->slot),
        .meaning = entry->meaning ? entry->meaning : "",
        .dtype = (enum cameo_dtype)tensor->dtype,
        .rank = (size_t)tensor->shape.rank,
        .dims = tensor->shape.dims,
        .elements = cm_shape_elements(&tensor->shape),
        .piece_count = tensor->pieces.count,
        .file =
            cm_api_text(arena, tensor->pieces.count ? tensor->pieces.items[0].file : CM_STR(""))};
}

static void tell_group(struct cm_arena *arena, const struct cm_saved_group *group,
                       struct cameo_saved_group *out)
{
    struct cameo_saved_setting *settings =
        CM_NEW_ARRAY(arena, struct cameo_saved_setting, cm_group_field_count);
    size_t count = 0;

    for (size_t i = 0; i < cm_group_field_count; i++) {
        const double value = cm_group_field_get(&group->settings, &cm_group_fields[i]);

        if (!isnan(value))
            settings[count++] = (struct cameo_saved_setting){cm_group_fields[i].name, value};
    }
    *out = (struct cameo_saved_group){.setting_count = count,
                                      .settings = settings,
                                      .name_count = group->names.count,
                                      .names =
                                          texts_of(arena, group->names.items, group->names.count)};
}

static void tell_summary(struct cameo_saved *out)
{
    static const char *const known[] = {"unknown", "none", "known"};
    struct cm_arena *arena = &out->arena;
    const struct cm_saved *saved = out->saved;
    struct cm_str phases = CM_STR("");

    if (saved->schedule_known == CM_SCHEDULE_KNOWN)
        phases =
            cm_item_json(arena, cm_schedule_item(arena, &saved->schedule, saved->groups.count), 0);
    out->summary =
        (struct cameo_saved_summary){.system = saved->system,
                                     .format = saved->format,
                                     .version = cm_api_text(arena, saved->version),
                                     .tensor_count = saved->entries.count,
                                     .group_count = saved->groups.count,
                                     .fact_count = saved->facts.count,
                                     .file_count = saved->files.count,
                                     .unknown_count = saved->unknown.count,
                                     .missing_count = saved->missing.count,
                                     .has_optimizer = saved->has_optimizer,
                                     .optimizer = cm_api_text(arena, saved->optimizer),
                                     .rule = cm_rule_name(saved->rule),
                                     .arithmetic = cm_arithmetic_name(saved->arithmetic),
                                     .clip = cm_clip_name(saved->clip.kind),
                                     .clip_limit = saved->clip.limit,
                                     .loss_scale = saved->loss_scale,
                                     .step = saved->step,
                                     .epoch = saved->epoch,
                                     .accumulate = saved->accumulate,
                                     .ranks = saved->ranks,
                                     .schedule = cm_api_text(arena, saved->schedule_name),
                                     .schedule_known = known[saved->schedule_known],
                                     .phases = cm_api_text(arena, phases)};
}

static enum cm_status open_saved(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    const struct open_call *call = arg;
    struct cameo_saved *out = call->out;
    struct cm_arena *arena = &out->arena;
    struct cameo_saved_options options = CAMEO_SAVED_OPTIONS_INIT;

    cm_arena_init(arena, scratch->guard);
    CM_TRY(cm_api_options(&options, sizeof options, call->given, err));
    CM_TRY(cm_saved_open(arena, call->path, options.allow_links ? CM_FOLLOW_LINKS : 0, &out->saved,
                         err));
    const struct cm_saved *saved = out->saved;
    tell_summary(out);
    out->tensors = CM_NEW_ARRAY(arena, struct cameo_saved_tensor, saved->entries.count + 1);
    for (size_t i = 0; i < saved->entries.count; i++)
        tell_tensor(arena, &saved->entries.items[i], &out->tensors[i]);
    out->groups = CM_NEW_ARRAY(arena, struct cameo_saved_group, saved->groups.count + 1);
    for (size_t i = 0; i < saved->groups.count; i++)
        tell_group(arena, &saved->groups.items[i], &out->groups[i]);
    out->facts = CM_NEW_ARRAY(arena, struct cameo_entry, saved->facts.count + 1);
    for (size_t i = 0; i < saved->facts.count; i++)
        out->facts[i] = (struct cameo_entry){
            cm_api_text(arena, saved->facts.items[i].key),
            cm_api_text(arena, cm_item_json(arena, saved->facts.items[i].value, FACT_MAX))};
    out->files = texts_of(arena, saved->files.items, saved->files.count);
    out->unknown = texts_of(arena, saved->unknown.items, saved->unknown.count);
    out->missing = texts_of(arena, saved->missing.items, saved->missing.count);
    return CM_OK;
}

enum cameo_status cameo_saved_open(const char *path, struct cameo_saved **out,
                                   struct cameo_error *err)
{
    return cameo_saved_open_with(path, NULL, out, err);
}

enum cameo_status cameo_saved_open_with(const char *path, const struct cameo_saved_options *options,
                                        struct cameo_saved **out, struct cameo_error *err)
{
    CM_API_NEED(path, err);
    CM_API_NEED(out, err);
    struct cm_error why = {0};
    struct open_call call = {cm_calloc(1, sizeof *call.out), path, options};
    const enum cm_status status = call.out
                                      ? cm_api_guarded(NULL, open_saved, &call, &why)
                                      : cm_fail(&why, CM_NO_MEMORY, "no memory for a checkpoint");

    *out = status ? NULL : call.out;
    if (status)
        cameo_saved_free(call.out);
    return cm_api_done(status, &why, err);
}

void cameo_saved_free(struct cameo_saved *saved)
{
    if (!saved)
        return;
    cm_arena_release(&saved->arena);
    cm_free(saved);
}

const struct cameo_saved_summary *cameo_saved_summary(const struct cameo_saved *saved)
{
    return &saved->summary;
}

#define AT(lists, list) (index < saved->saved->lists.count ? &saved->list[index] : NULL)

const struct cameo_saved_tensor *cameo_saved_tensor(const struct cameo_saved *saved, size_t index)
{
    return AT(entries, tensors);
}

const struct cameo_saved_group *cameo_saved_group(const struct cameo_saved *saved, size_t index)
{
    return AT(groups, groups);
}

const struct cameo_entry *cameo_saved_fact(const struct cameo_saved *saved, size_t index)
{
    return AT(facts, facts);
}

const struct cameo_text *cameo_saved_file(const struct cameo_saved *saved, size_t index)
{
    return AT(files, files);
}

const struct cameo_text *cameo_saved_unknown(const struct cameo_saved *saved, size_t index)
{
    return AT(unknown, unknown);
}

const struct cameo_text *cameo_saved_missing(const struct cameo_saved *saved, size_t index)
{
    return AT(missing, missing);
}

enum cameo_status cameo_saved_read(const struct cameo_saved *saved, size_t index,
                                   struct cameo_value **out, struct cameo_error *err)
{
    CM_API_NEED(saved, err);
    CM_API_NEED(out, err);
    struct cm_saved_reader reader = {0};
    struct cm_datum datum = {.kind = CM_KIND_TENSOR};
    struct cm_error why = {0};

    *out = NULL;
    if (index >= saved->saved->entries.count)
        return cm_api_done(cm_fail(&why, CM_BAD_ARGUMENT, "there is no tensor %zu", index), &why,
                           err);
    const struct cm_saved_tensor *tensor = saved->saved->entries.items[index].tensor;
    enum cm_status status = cm_tensor_new(tensor->dtype, &tensor->shape, &datum.tensor, &why);
    if (!status)
        status = cm_saved_tensor_read(&reader, tensor, 0, cm_shape_elements(&tensor->shape),
                                      datum.tensor.data, &why);
    cm_saved_reader_release(&reader);
    if (!status)
        status = cm_api_take(&datum, out, &why);
    cm_datum_drop(&datum);
    return cm_api_done(status, &why, err);
}
