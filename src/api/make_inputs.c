/* Inputs made up, so that a model can be tried without data. */
// SPDX-License-Identifier: Apache-2.0
#include "api/running.h"

#include "base/memory.h"
#include "infer/invent.h"
#include "lower/lower.h"

struct cameo_made_inputs {
    struct cm_arena arena; /* everything below */
    struct cameo_feed *feeds;
    size_t n_feeds;
    struct cameo_made_size *sizes;
    size_t n_sizes;
    struct cameo_text refusal;
};

struct make_call {
    const struct cameo_session *session;
    const struct cameo_make_options *given;
    struct cameo_make_options options;
    const struct cameo_feed *feeds;
    size_t n_feeds;
    struct cameo_made_inputs *made;
    struct cm_error *err;
};

/* What is found while it is under way; lives in scratch. */
struct making {
    struct cm_graph *graph;
    struct cm_size_input *inputs;
    bool *wanted;
    struct cm_shape *shapes;
};

static enum cm_status find_input(struct make_call *call, const char *name, size_t *out)
{
    const struct cameo_session *session = call->session;

    for (*out = 0; *out < session->n_inputs; ++*out)
        if (strcmp(cameo_session_input(session, *out)->name.data, name) == 0)
            return CM_OK;
    return cm_fail(call->err, CM_NOT_FOUND, "the model has no input '%.200s'", name);
}

/* May a tensor of this shape be fed? If not, the run will say so better than we could. */
static bool is_possible(const struct cm_type *type, const struct cm_shape *shape)
{
    if (type->kind != CM_KIND_TENSOR || (type->rank >= 0 && type->rank != shape->rank))
        return false;
    for (int axis = 0; axis < type->rank; axis++)
        if (cm_dim_known(type->dims[axis]) && type->dims[axis].value != shape->dims[axis])
            return false;
    return true;
}

/* What is fed needs no value, and its sizes are known. */
static enum cm_status note_feeds(struct make_call *call, struct making *m)
{
    for (size_t i = 0; i < call->n_feeds; i++) {
        struct cameo_feed feed = CAMEO_FEED_INIT;

        CM_TRY(cm_api_item(&feed, sizeof feed, call->feeds, i, call->err));
        size_t at = feed.index;
        if (feed.name)
            CM_TRY(find_input(call, feed.name, &at));
        if (at >= call->session->n_inputs)
            return cm_fail(call->err, CM_BAD_ARGUMENT, "the model has no input %zu", at);
        const struct cm_datum *datum = feed.value ? cm_api_value(feed.value) : NULL;
        struct cm_tensor tensor;
        struct cameo_tensor lent;
        m->wanted[at] = false;
        if (!datum)
            CM_TRY(cm_api_check_tensor(feed.tensor, &lent, &tensor, call->err));
        m->shapes[at] = datum ? datum->tensor.shape : tensor.shape;
        m->inputs[at].is_open = (!datum || datum->kind == CM_KIND_TENSOR) &&
                                is_possible(call->session->input_types[at], &m->shapes[at]);
        m->inputs[at].shape = m->inputs[at].is_open ? &m->shapes[at] : NULL;
    }
    return CM_OK;
}

static enum cm_status note_shapes(struct make_call *call, struct making *m)
{
    for (size_t i = 0; i < call->options.shape_count; i++) {
        struct cameo_input_shape shape = CAMEO_INPUT_SHAPE_INIT;
        size_t at;

        CM_TRY(cm_api_item(&shape, sizeof shape, call->options.shapes, i, call->err));
        if (!shape.input)
            return cm_fail(call->err, CM_BAD_ARGUMENT, "shape %zu does not name an input", i);
        CM_TRY(find_input(call, shape.input, &at));
        if (m->inputs[at].shape)
            return cm_fail(call->err, CM_BAD_ARGUMENT, "input '%.200s' has two shapes",
                           shape.input);
        CM_TRY(cm_api_shape(shape.rank, shape.dims, &m->shapes[at], call->err));
        m->inputs[at].is_open = m->wanted[at] = true;
        m->inputs[at].shape = &m->shapes[at];
    }
    return CM_OK;
}

static enum cm_status note_sizes(struct make_call *call, struct cm_size_setting *settings)
{
    for (size_t i = 0; i < call->options.size_count; i++) {
        struct cameo_size size = CAMEO_SIZE_INIT;

        CM_TRY(cm_api_item(&size, sizeof size, call->options.sizes, i, call->err));
        if (!size.symbol || size.size < 0)
            return cm_fail(call->err, CM_BAD_ARGUMENT, "size %zu has no name or is negative", i);
        settings[i] = (struct cm_size_setting){cm_str(size.symbol), size.size};
    }
    return CM_OK;
}

/* A graph of its own, with nothing done to it that inference could miss. */
static enum cm_status import(struct make_call *call, struct cm_arena *scratch, struct making *m)
{
    const struct cm_model_file *file = call->session->model->file;
    const struct cm_module_options options = {
        .registry = cm_api_operators(call->session->options.registry, file), .files = file->files};
    const struct cm_lower_options lower = {.passes.only = ""};
    struct cm_module *module = cm_module_new(scratch, &options);

    CM_TRY(cm_lower_import(module, &file->model, NULL, &m->graph, call->err));
    CM_TRY(cm_lower_graph(m->graph, &lower, call->err));
    if (m->graph->n_inputs != call->session->n_inputs)
        return cm_fail(call->err, CM_BAD_MODEL, "the graph has %zu inputs, not %zu",
                       m->graph->n_inputs, call->session->n_inputs);
    return CM_OK;
}

static enum cm_status give_values(struct make_call *call, const struct making *m,
                                  struct cm_datum *values)
{
    struct cameo_made_inputs *made = call->made;

    made->feeds = CM_NEW_ARRAY(&made->arena, struct cameo_feed, m->graph->n_inputs);
    for (size_t i = 0; i < m->graph->n_inputs; i++) {
        if (!m->wanted[i])
            continue;
        CM_TRY(cm_api_own(&values[i], call->err));
        made->feeds[made->n_feeds++] = (struct cameo_feed){
            .struct_size = sizeof(struct cameo_feed),
            .name = cameo_session_input(call->session, i)->name.data,
            .index = i,
            .value = (const struct cameo_value *)&values[i],
        };
    }
    return CM_OK;
}

static void give_sizes(struct make_call *call, const struct cm_open_sizes *sizes)
{
    struct cameo_made_inputs *made = call->made;

    made->sizes = CM_NEW_ARRAY(&made->arena, struct cameo_made_size, sizes->count);
    for (size_t i = 0; i < sizes->count; i++) {
        const struct cm_open_size *open = &sizes->items[i];

        if (!open->is_given)
            made->sizes[made->n_sizes++] = (struct cameo_made_size){
                .input = cameo_session_input(call->session, open->input)->name,
                .axis = open->axis,
                .symbol = cm_api_text(&made->arena, open->symbol),
                .size = open->size,
            };
    }
    made->refusal = cm_api_text(&made->arena, cm_str(sizes->refusal));
}

static enum cm_status read_options(struct make_call *call)
{
    struct cameo_make_options *o = &call->options;

    *o = (struct cameo_make_options)CAMEO_MAKE_OPTIONS_INIT;
    CM_TRY(cm_api_options(o, sizeof *o, call->given, call->err));
    if ((o->size_count && !o->sizes) || (o->shape_count && !o->shapes))
        return cm_fail(call->err, CM_BAD_ARGUMENT,
                       "a count of sizes or shapes is above 0, but its list is NULL");
    return CM_OK;
}

static enum cm_status make(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    struct make_call *call = arg;
    const size_t n = call->session->n_inputs;
    struct making m = {.inputs = CM_NEW_ARRAY(scratch, struct cm_size_input, n),
                       .wanted = CM_NEW_ARRAY(scratch, bool, n),
                       .shapes = CM_NEW_ARRAY(scratch, struct cm_shape, n)};
    struct cm_open_sizes sizes;

    call->err = err;
    cm_arena_init(&call->made->arena, scratch->guard);
    CM_TRY(read_options(call));
    const size_t n_settings = call->options.size_count;
    struct cm_size_setting *settings = CM_NEW_ARRAY(scratch, struct cm_size_setting, n_settings);
    struct cm_datum *values = cm_data_new(&call->made->arena, n);
    for (size_t i = 0; i < n; i++)
        m.inputs[i].is_open = m.wanted[i] = !cameo_session_input(call->session, i)->has_default;
    CM_TRY(note_feeds(call, &m));
    CM_TRY(note_shapes(call, &m));
    CM_TRY(note_sizes(call, settings));
    CM_TRY(import(call, scratch, &m));
    const struct cm_invent_options options = {
        .sizes = {.inputs = m.inputs,
                  .settings = settings,
                  .n_settings = n_settings,
                  .batch = call->options.batch > 0 ? call->options.batch : 1,
                  .attempt = call->options.attempt},
        .wanted = m.wanted,
        .seed = call->options.seed,
        .memory_limit = call->options.memory_limit,
        .both_signs = call->options.both_signs,
    };
    CM_TRY(cm_invent(m.graph, &options, &sizes, values, call->err));
    CM_TRY(give_values(call, &m, values));
    give_sizes(call, &sizes);
    return CM_OK;
}

enum cameo_status cameo_session_make_inputs(const struct cameo_session *session,
                                            const struct cameo_make_options *options,
                                            const struct cameo_feed *feeds, size_t feed_count,
                                            struct cameo_made_inputs **out, struct cameo_error *err)
{
    CM_API_NEED(session, err);
    CM_API_NEED_ALL(feeds, feed_count, err);
    CM_API_NEED(out, err);
    struct cm_error why = {0};
    struct make_call call = {.session = session,
                             .given = options,
                             .feeds = feeds,
                             .n_feeds = feed_count,
                             .made = cm_calloc(1, sizeof *call.made)};
    const enum cm_status status = call.made ? cm_api_guarded(session->model, make, &call, &why)
                                            : cm_fail(&why, CM_NO_MEMORY, "no memory for inputs");

    *out = status ? NULL : call.made;
    if (status)
        cameo_made_inputs_free(call.made);
    return cm_api_done(cm_api_about(session->model, status, &why), &why, err);
}

void cameo_made_inputs_free(struct cameo_made_inputs *made)
{
    if (!made)
        return;
    cm_arena_release(&made->arena);
    cm_free(made);
}

const struct cameo_feed *cameo_made_inputs_feeds(const struct cameo_made_inputs *made,
                                                 size_t *count)
{
    *count = made->n_feeds;
    return made->feeds;
}

const struct cameo_made_size *cameo_made_inputs_size(const struct cameo_made_inputs *made,
                                                     size_t index)
{
    return index < made->n_sizes ? &made->sizes[index] : NULL;
}

const char *cameo_made_inputs_refusal(const struct cameo_made_inputs *made)
{
    return made->refusal.data;
}
