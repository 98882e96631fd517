/* Training info as a thing of its own: entries made, changed, checked and taken away by hand. */
// SPDX-License-Identifier: Apache-2.0
#include "api/running.h"

#include "graph/called_functions.h"
#include "models/graph_calls.h"
#include "onnx/decode.h"
#include "onnx/encode.h"
#include "onnx/syntax.h"
#include "train/prepare/prepare.h"

static const char training_domain[] = "ai.onnx.preview.training";

struct info_call {
    struct cameo_model *model;
    enum cm_status (*change)(struct info_call *call);
    size_t entry;
    enum cameo_graph_kind kind;
    const char *text;               /* a graph, or the name of a variable */
    const char *value;              /* of a binding */
    const struct cameo_model *from; /* a graph is its main graph */
    const struct cameo_note *bindings;
    size_t n_bindings; /* or entries that were converted */
    struct cm_api_writer writer;
    struct cm_error *err;
};

/* ---- finding ---- */

static enum cm_status find_entry(struct info_call *call, struct cm_training_proto **out)
{
    struct cm_model_proto *model = &call->model->file->model;

    if (call->entry >= model->training_info.count)
        return cm_fail(call->err, CM_NOT_FOUND,
                       "entry %zu of training info does not exist, there are %zu", call->entry,
                       model->training_info.count);
    *out = &model->training_info.items[call->entry];
    return CM_OK;
}

/* The same of a call about one of the two graphs of the entry. */
static enum cm_status find_half(struct info_call *call, struct cm_training_proto **out)
{
    if (call->kind != CAMEO_GRAPH_INITIALIZATION && call->kind != CAMEO_GRAPH_ALGORITHM)
        return cm_fail(call->err, CM_BAD_ARGUMENT,
                       "graph kind %d: expected CAMEO_GRAPH_INITIALIZATION or "
                       "CAMEO_GRAPH_ALGORITHM",
                       (int)call->kind);
    return find_entry(call, out);
}

static bool is_algorithm(const struct info_call *call)
{
    return call->kind == CAMEO_GRAPH_ALGORITHM;
}

static struct cm_graph_proto **graph_of(const struct info_call *call,
                                        struct cm_training_proto *entry)
{
    return is_algorithm(call) ? &entry->algorithm : &entry->initialization;
}

/* A change to the whole list: it is written anew, entries that were not touched as they came. */
static void mark_list(struct cm_model_proto *model)
{
    if (model->training_info.count)
        cm_msg_set(&model->msg, CM_MODEL_TRAINING_INFO);
    else
        cm_msg_clear(&model->msg, CM_MODEL_TRAINING_INFO);
}

/* ---- what the model needs for it ---- */

enum { TRAINING_IR_VERSION = 7 };

/* Training info is there since IR version 7. */
static void raise_ir(struct cm_model_proto *model)
{
    if (model->ir_version >= TRAINING_IR_VERSION)
        return;
    model->ir_version = TRAINING_IR_VERSION;
    cm_msg_set(&model->msg, CM_MODEL_IR_VERSION);
}

static void import_training(struct cm_arena *arena, struct cm_model_proto *model,
                            const struct cm_graph_proto *graph)
{
    if (!cm_nodes_use_domain(&graph->node, cm_str(training_domain)))
        return;
    for (size_t i = 0; i < model->opset_import.count; i++)
        if (cm_str_is(model->opset_import.items[i].domain, training_domain))
            return;
    struct cm_opset_proto *added = CM_LIST_ADD(arena, &model->opset_import);
    added->domain = cm_str(training_domain);
    added->version = 1;
    cm_msg_set(&added->msg, CM_OPSET_DOMAIN);
    cm_msg_set(&added->msg, CM_OPSET_VERSION);
    cm_msg_set(&model->msg, CM_MODEL_OPSET_IMPORT);
}

/* ---- entries ---- */

static enum cm_status change_info(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    struct info_call *call = arg;

    (void)scratch;
    call->err = err;
    return call->change(call);
}

static enum cameo_status run_change(struct info_call *call, struct cameo_error *err)
{
    return cm_api_change_call(call->model, change_info, call, err);
}

static enum cm_status add_entry(struct info_call *call)
{
    struct cm_model_proto *model = &call->model->file->model;

    call->entry = model->training_info.count;
    (void)CM_LIST_ADD(&call->model->arena, &model->training_info);
    mark_list(model);
    raise_ir(model);
    return CM_OK;
}

enum cameo_status cameo_model_add_training(struct cameo_model *model, size_t *entry,
                                           struct cameo_error *err)
{
    CM_API_NEED(model, err);
    struct info_call call = {.model = model, .change = add_entry};
    const bool old = model->file->model.ir_version < TRAINING_IR_VERSION;
    const enum cameo_status status = run_change(&call, err);

    if (status == CAMEO_OK && entry)
        *entry = call.entry;
    if (status == CAMEO_OK && old)
        cm_api_log(model, CAMEO_LOG_INFO, "the IR version is raised to %d, for training info",
                   TRAINING_IR_VERSION);
    return status;
}

static enum cm_status remove_entry(struct info_call *call)
{
    struct cm_model_proto *model = &call->model->file->model;
    struct cm_training_proto *entry = NULL;

    CM_TRY(find_entry(call, &entry));
    if (model->training_info.count == 1) {
        struct cm_modes ignored;

        cm_strip(&call->model->arena, call->model->file, &ignored);
        return CM_OK;
    }
    struct cm_training_proto *left =
        CM_NEW_ARRAY(&call->model->arena, struct cm_training_proto, model->training_info.count - 1);
    for (size_t i = 0, k = 0; i < model->training_info.count; i++)
        if (i != call->entry)
            left[k++] = model->training_info.items[i];
    model->training_info.items = left;
    model->training_info.count--;
    call->model->file->to_ship = true; /* as when the last entry is stripped */
    mark_list(model);
    return CM_OK;
}

enum cameo_status cameo_model_remove_training(struct cameo_model *model, size_t entry,
                                              struct cameo_error *err)
{
    CM_API_NEED(model, err);
    struct info_call call = {.model = model, .change = remove_entry, .entry = entry};

    return run_change(&call, err);
}

/* ---- graphs ---- */

static enum cm_status refuse_external(void *arg, struct cm_tensor_proto *tensor)
{
    struct info_call *call = arg;

    if (tensor->data_location != CM_LOCATION_EXTERNAL)
        return CM_OK;
    return cm_fail(call->err, CM_UNSUPPORTED,
                   "tensor '%.*s' of the graph is in an external file: save that model with its "
                   "values inside first",
                   CM_STR_FMT(tensor->name));
}

/* A copy that shares nothing with the model it comes from. */
static enum cm_status copy_graph(struct info_call *call, struct cm_graph_proto *out)
{
    struct cm_model_proto around = {.graph = call->from->file->model.graph};
    struct cm_arena *arena = &call->model->arena;
    struct cm_str bytes;

    if (!around.graph)
        return cm_fail(call->err, CM_BAD_ARGUMENT, "the other model has no graph");
    CM_TRY(cm_model_each_tensor(&around, refuse_external, call));
    CM_TRY(cm_encode(&cm_graph_info, around.graph, arena, &bytes, call->err));
    return cm_decode(&cm_graph_info, bytes, arena, out, call->err);
}

static enum cm_status make_graph(struct info_call *call, struct cm_graph_proto **out)
{
    struct cm_arena *arena = &call->model->arena;

    *out = NULL;
    if (!call->text && !call->from)
        return CM_OK;
    *out = CM_NEW(arena, struct cm_graph_proto);
    if (call->from)
        return copy_graph(call, *out);
    const struct cm_str text = cm_arena_str(arena, cm_str(call->text));
    return cm_error_context(call->err, cm_syntax_parse_graph(text, arena, *out, call->err),
                            is_algorithm(call) ? "algorithm" : "initialization");
}

static enum cm_status set_graph(struct info_call *call)
{
    const int field = is_algorithm(call) ? CM_TRAINING_ALGORITHM : CM_TRAINING_INITIALIZATION;
    struct cm_training_proto *entry = NULL;
    struct cm_graph_proto *graph;

    CM_TRY(find_half(call, &entry));
    CM_TRY(make_graph(call, &graph));
    *graph_of(call, entry) = graph;
    if (graph) {
        cm_msg_set(&entry->msg, field);
        import_training(&call->model->arena, &call->model->file->model, graph);
    } else {
        cm_msg_clear(&entry->msg, field);
    }
    return CM_OK;
}

enum cameo_status cameo_model_set_training_graph(struct cameo_model *model, size_t entry,
                                                 enum cameo_graph_kind kind, const char *text,
                                                 struct cameo_error *err)
{
    CM_API_NEED(model, err);
    struct info_call call = {
        .model = model, .change = set_graph, .entry = entry, .kind = kind, .text = text};

    return run_change(&call, err);
}

enum cameo_status cameo_model_copy_training_graph(struct cameo_model *model, size_t entry,
                                                  enum cameo_graph_kind kind,
                                                  const struct cameo_model *from,
                                                  struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(from, err);
    struct info_call call = {
        .model = model, .change = set_graph, .entry = entry, .kind = kind, .from = from};

    return run_change(&call, err);
}

static enum cm_status write_graph(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    struct info_call *call = arg;
    struct cm_training_proto *entry = NULL;

    (void)scratch;
    call->err = err;
    CM_TRY(find_half(call, &entry));
    const struct cm_graph_proto *graph = *graph_of(call, entry);
    if (!graph)
        return cm_fail(call->err, CM_NOT_FOUND, "entry %zu of training info has no %s graph",
                       call->entry, is_algorithm(call) ? "algorithm" : "initialization");
    return cm_syntax_print_graph(graph, NULL, cm_api_write, &call->writer, call->err);
}

enum cameo_status cameo_model_write_training_graph(const struct cameo_model *model, size_t entry,
                                                   enum cameo_graph_kind kind,
                                                   cameo_write_fn *write, void *to,
                                                   struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(write, err);
    struct info_call call = {.model = (struct cameo_model *)(uintptr_t)model, /* only read */
                             .entry = entry,
                             .kind = kind,
                             .writer = {write, to}};

    return cm_api_call(model, write_graph, &call, err);
}

/* ---- bindings ---- */

static struct cm_entries *bindings_of(const struct info_call *call, struct cm_training_proto *entry)
{
    return is_algorithm(call) ? &entry->update_binding : &entry->initialization_binding;
}

static void mark_bindings(const struct info_call *call, struct cm_training_proto *entry)
{
    const int field =
        is_algorithm(call) ? CM_TRAINING_UPDATE_BINDING : CM_TRAINING_INITIALIZATION_BINDING;

    if (bindings_of(call, entry)->count)
        cm_msg_set(&entry->msg, field);
    else
        cm_msg_clear(&entry->msg, field);
}

static void set_binding(struct cm_arena *arena, struct cm_entry_proto *out, struct cm_str key,
                        struct cm_str value)
{
    out->key = cm_arena_str(arena, key);
    out->value = cm_arena_str(arena, value);
    cm_msg_set(&out->msg, CM_ENTRY_KEY);
    cm_msg_set(&out->msg, CM_ENTRY_VALUE);
}

static enum cm_status set_bindings(struct info_call *call)
{
    struct cm_arena *arena = &call->model->arena;
    struct cm_entry_proto *items = CM_NEW_ARRAY(arena, struct cm_entry_proto, call->n_bindings + 1);
    struct cm_training_proto *entry = NULL;

    CM_TRY(find_half(call, &entry));
    for (size_t i = 0; i < call->n_bindings; i++) {
        struct cameo_note note = CAMEO_NOTE_INIT;

        CM_TRY(cm_api_item(&note, sizeof note, call->bindings, i, call->err));
        set_binding(arena, &items[i], (struct cm_str){note.key.data, note.key.size},
                    (struct cm_str){note.value.data, note.value.size});
    }
    *bindings_of(call, entry) = (struct cm_entries){items, call->n_bindings};
    mark_bindings(call, entry);
    return CM_OK;
}

enum cameo_status cameo_model_set_training_bindings(struct cameo_model *model, size_t entry,
                                                    enum cameo_graph_kind kind,
                                                    const struct cameo_note *bindings, size_t count,
                                                    struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED_ALL(bindings, count, err);
    struct info_call call = {.model = model,
                             .change = set_bindings,
                             .entry = entry,
                             .kind = kind,
                             .bindings = bindings,
                             .n_bindings = count};

    return run_change(&call, err);
}

static void drop_binding(struct cm_arena *arena, struct cm_entries *list, size_t at)
{
    struct cm_entry_proto *left = CM_NEW_ARRAY(arena, struct cm_entry_proto, list->count);

    for (size_t i = 0, k = 0; i < list->count; i++)
        if (i != at)
            left[k++] = list->items[i];
    *list = (struct cm_entries){left, list->count - 1};
}

static enum cm_status bind(struct info_call *call)
{
    struct cm_arena *arena = &call->model->arena;
    struct cm_training_proto *entry = NULL;
    size_t at = 0;

    CM_TRY(find_half(call, &entry));
    struct cm_entries *list = bindings_of(call, entry);
    while (at < list->count && !cm_str_is(list->items[at].key, call->text))
        at++;
    if (at == list->count && !call->value)
        return cm_fail(call->err, CM_NOT_FOUND, "entry %zu of training info does not bind '%s'",
                       call->entry, call->text);
    if (!call->value)
        drop_binding(arena, list, at);
    else
        set_binding(arena, at < list->count ? &list->items[at] : CM_LIST_ADD(arena, list),
                    cm_str(call->text), cm_str(call->value));
    mark_bindings(call, entry);
    return CM_OK;
}

enum cameo_status cameo_model_bind_training(struct cameo_model *model, size_t entry,
                                            enum cameo_graph_kind kind, const char *variable,
                                            const char *value, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(variable, err);
    struct info_call call = {.model = model,
                             .change = bind,
                             .entry = entry,
                             .kind = kind,
                             .text = variable,
                             .value = value};

    return run_change(&call, err);
}

/* ---- checking ---- */

enum cameo_status cameo_model_check_training(const struct cameo_model *model, size_t entry,
                                             const struct cameo_check_options *options,
                                             struct cameo_findings **out, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(out, err);
    struct cm_error why = {0};
    struct info_call call = {
        .model = (struct cameo_model *)(uintptr_t)model, .entry = entry, .err = &why};
    struct cm_training_proto *found;
    char place[40];

    *out = NULL;
    const enum cm_status status = find_entry(&call, &found);
    if (status)
        return cm_api_done(status, &why, err);
    const enum cameo_status checked = cameo_model_check(model, options, out, err);
    snprintf(place, sizeof place, "training_info[%zu]", entry);
    if (checked == CAMEO_OK)
        cm_api_keep_findings(*out, place);
    return checked;
}

/* ---- the form of ONNX 1.7 ---- */

enum cm_status cm_api_today(struct cm_model_file *file, struct cm_arena *arena,
                            struct cm_model_file **out, struct cm_error *err)
{
    *out = file;
    if (!cm_calls_graph(&file->model))
        return CM_OK;
    *out = CM_NEW(arena, struct cm_model_file);
    **out = *file;
    return cm_edit_graph_calls(&file->model, arena, &(*out)->model, NULL, err);
}

static enum cm_status upgrade(struct info_call *call)
{
    struct cm_model_proto made;

    CM_TRY(cm_edit_graph_calls(&call->model->file->model, &call->model->arena, &made,
                               &call->n_bindings, call->err));
    call->model->file->model = made;
    return CM_OK;
}

enum cameo_status cameo_model_upgrade_training(struct cameo_model *model, size_t *converted,
                                               struct cameo_error *err)
{
    CM_API_NEED(model, err);
    struct info_call call = {.model = model, .change = upgrade};
    const enum cameo_status status = run_change(&call, err);

    if (status == CAMEO_OK && converted)
        *converted = call.n_bindings;
    return status;
}
