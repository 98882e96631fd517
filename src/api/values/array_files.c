/* Files of arrays as the public API has them. */
// SPDX-License-Identifier: Apache-2.0
#include "api/running.h"

#include "base/memory.h"
#include "io/arrays.h"
#include "tensor/budget.h"

struct cameo_arrays {
    struct cm_arena arena;
    struct cm_arrays list; /* in arena */
};

struct open_call {
    struct cameo_arrays *arrays;
    const char *path;
    struct cameo_arrays_options options;
    struct cm_budget budget;
    bool named; /* the error says which file */
    struct cm_error err;
};

/* Strings in files end anywhere; those of the API end with NUL. */
static enum cm_status close_strings(struct cm_arena *arena, struct cm_datum *value,
                                    struct cm_error *err)
{
    struct cm_datum *own = CM_NEW(arena, struct cm_datum);

    cm_datum_defer(arena, own);
    CM_TRY(cm_datum_share(value, own, err));
    CM_TRY(cm_api_own_strings(own, err));
    *value = *own;
    return CM_OK;
}

static enum cm_status open_guarded(struct cm_guard *guard, void *arg)
{
    struct open_call *call = arg;
    struct cameo_arrays *arrays = call->arrays;
    struct cm_arrays_options options = {.kind = (enum cm_kind)call->options.kind,
                                        .copy = call->options.copy_files,
                                        .n_names = call->options.name_count,
                                        .or_alone = call->options.or_alone};

    cm_arena_init(&arrays->arena, guard);
    cm_budget_enter(&call->budget, guard);
    if (call->options.names) {
        struct cm_str *names = CM_NEW_ARRAY(&arrays->arena, struct cm_str, options.n_names);
        for (size_t i = 0; i < options.n_names; i++)
            names[i] = (struct cm_str){call->options.names[i].data, call->options.names[i].size};
        options.names = names;
    }
    const enum cm_status status =
        cm_arrays_open(&arrays->arena, call->path, &options, &arrays->list, &call->err);
    call->named = status != CM_OK;
    CM_TRY(status);
    for (size_t i = 0; i < arrays->list.count; i++) {
        struct cm_array *item = &arrays->list.items[i];

        item->name = cm_arena_str(&arrays->arena, item->name);
        if (item->unread)
            continue;
        CM_TRY(close_strings(&arrays->arena, &item->value, &call->err));
    }
    return CM_OK;
}

static enum cm_status open_arrays(struct open_call *call,
                                  const struct cameo_arrays_options *options,
                                  struct cameo_arrays **out)
{
    call->options = (struct cameo_arrays_options)CAMEO_ARRAYS_OPTIONS_INIT;
    CM_TRY(cm_api_options(&call->options, sizeof call->options, options, &call->err));
    call->arrays = cm_calloc(1, sizeof *call->arrays);
    if (!call->arrays)
        return cm_fail(&call->err, CM_NO_MEMORY, "no memory for arrays");
    const enum cm_status status =
        cm_guarded(call->options.memory_limit, &call->err, open_guarded, call);
    cm_budget_leave(&call->budget);
    if (!call->named)
        cm_error_context(&call->err, status, "%.600s", call->path);
    if (status)
        cameo_arrays_free(call->arrays);
    else
        *out = call->arrays;
    return status;
}

enum cameo_status cameo_arrays_load(const char *path, const struct cameo_arrays_options *options,
                                    struct cameo_arrays **out, struct cameo_error *err)
{
    CM_API_NEED(path, err);
    CM_API_NEED(out, err);
    struct open_call call = {.path = path};

    *out = NULL;
    const enum cm_status status = open_arrays(&call, options, out);
    return cm_api_done(status, &call.err, err);
}

enum cameo_status cameo_arrays_open(const char *path, enum cameo_kind kind,
                                    struct cameo_arrays **out, struct cameo_error *err)
{
    struct cameo_arrays_options options = CAMEO_ARRAYS_OPTIONS_INIT;

    options.kind = kind;
    return cameo_arrays_load(path, &options, out, err);
}

void cameo_arrays_free(struct cameo_arrays *arrays)
{
    if (!arrays)
        return;
    cm_arena_release(&arrays->arena);
    cm_free(arrays);
}

size_t cameo_arrays_count(const struct cameo_arrays *arrays)
{
    return arrays->list.count;
}

struct cameo_text cameo_arrays_name(const struct cameo_arrays *arrays, size_t index)
{
    if (index >= arrays->list.count)
        return (struct cameo_text){NULL, 0};
    const struct cm_str name = arrays->list.items[index].name;
    return (struct cameo_text){name.data ? name.data : "", name.size};
}

const struct cameo_value *cameo_arrays_at(const struct cameo_arrays *arrays, size_t index)
{
    if (index >= arrays->list.count || arrays->list.items[index].unread)
        return NULL;
    return (const struct cameo_value *)&arrays->list.items[index].value;
}

/* ---- saving ---- */

struct save_call {
    const char *path;
    const char *const *names;
    const struct cameo_value *const *values;
    size_t count;
};

static enum cm_status save(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    const struct save_call *call = arg;
    struct cm_array *items = CM_NEW_ARRAY(scratch, struct cm_array, call->count);

    for (size_t i = 0; i < call->count; i++) /* borrowed for the call */
        items[i] = (struct cm_array){.name = cm_str(call->names ? call->names[i] : NULL),
                                     .value = *cm_api_value(call->values[i])};
    return cm_arrays_save(scratch, call->path, items, call->count, err);
}

enum cameo_status cameo_arrays_save(const char *path, const char *const *names,
                                    const struct cameo_value *const *values, size_t count,
                                    struct cameo_error *err)
{
    CM_API_NEED(path, err);
    CM_API_NEED_ALL(values, count, err);
    struct save_call call = {path, names, values, count};

    return cm_api_call(NULL, save, &call, err);
}
