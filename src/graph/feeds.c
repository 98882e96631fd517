/* Data for the inputs of a graph: types, ranks and sizes. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/feeds.h"

const char *cm_kind_phrase(enum cm_kind kind)
{
    static const char *const phrases[] = {"nothing", "a tensor",    "a sparse tensor", "a sequence",
                                          "a map",   "an optional", "an opaque value"};

    return (size_t)kind < CM_COUNT(phrases) ? phrases[kind] : "no value";
}

/* NumPy makes double and int64 of most things, which is seldom what a model takes. NULL: NumPy does
 * not have the type. */
static const char *numpy_help(enum cm_dtype wanted)
{
    static const char *const helps[CM_DTYPE_COUNT] = {
        [CM_FLOAT] = "in NumPy, .astype('float32') makes it so",
        [CM_DOUBLE] = "in NumPy, .astype('float64') makes it so",
        [CM_FLOAT16] = "in NumPy, .astype('float16') makes it so",
        [CM_INT64] = "in NumPy, .astype('int64') makes it so",
        [CM_INT32] = "in NumPy, .astype('int32') makes it so",
        [CM_INT16] = "in NumPy, .astype('int16') makes it so",
        [CM_INT8] = "in NumPy, .astype('int8') makes it so",
        [CM_UINT64] = "in NumPy, .astype('uint64') makes it so",
        [CM_UINT32] = "in NumPy, .astype('uint32') makes it so",
        [CM_UINT16] = "in NumPy, .astype('uint16') makes it so",
        [CM_UINT8] = "in NumPy, .astype('uint8') makes it so",
        [CM_BOOL] = "in NumPy, .astype('bool') makes it so",
    };

    return helps[wanted];
}

struct feed {
    const struct cm_module *module;
    const struct cm_value_def *input;
    const char *help;
    struct cm_error *err;
};

struct sentence {
    const struct feed *feed;
    const char *fact; /* "has rank 3, needs 2 (" */
    const char *end;  /* ")", after the declared type; NULL: the type is not told */
};

static enum cm_status fail_guarded(struct cm_guard *guard, void *arg)
{
    const struct sentence *s = arg;
    const struct cm_value_def *input = s->feed->input;
    struct cm_arena scratch;

    cm_arena_init(&scratch, guard);
    const struct cm_str type =
        s->end ? cm_type_print(&scratch, cm_module_symbols(s->feed->module), input->fact.type)
               : CM_STR("");
    const enum cm_status status =
        cm_fail(s->feed->err, CM_BAD_ARGUMENT, "input '%.200s' %s%.200s%s",
                cm_str_text(cm_arena_str(&scratch, input->name)), s->fact, cm_str_text(type),
                s->end ? s->end : "");
    cm_arena_release(&scratch);
    return status;
}

/* "input 'x' has rank 3, needs 2 (float[N,2])". */
static enum cm_status CM_PRINTF(3, 4)
    fail(const struct feed *feed, const char *end, const char *format, ...)
{
    char fact[300];
    struct sentence sentence = {feed, fact, end};
    va_list args;

    va_start(args, format);
    vsnprintf(fact, sizeof fact, format, args);
    va_end(args);
    return cm_guarded(0, feed->err, fail_guarded, &sentence);
}

/* ---- checking ---- */

static enum cm_status refuse_dtype(struct feed *feed, const char *what, enum cm_dtype has,
                                   enum cm_dtype wanted)
{
    if (numpy_help(has) && numpy_help(wanted))
        feed->help = numpy_help(wanted);
    return fail(feed, NULL, "%s of type %s, needs %s", what, cm_dtype_name(has),
                cm_dtype_name(wanted));
}

static enum cm_status check_tensor(struct feed *feed, const struct cm_type *type,
                                   const struct cm_tensor *tensor)
{
    char shape[200];

    if (tensor->type != type->dtype)
        return refuse_dtype(feed, "is", tensor->type, type->dtype);
    if (type->rank >= 0 && tensor->shape.rank != type->rank)
        return fail(feed, ")", "has rank %d, needs %d (", tensor->shape.rank, type->rank);
    for (int axis = 0; axis < type->rank; axis++)
        if (cm_dim_known(type->dims[axis]) && type->dims[axis].value != tensor->shape.dims[axis])
            return fail(feed, "", "has shape %s, needs ",
                        cm_shape_print(&tensor->shape, shape, sizeof shape));
    return CM_OK;
}

/* One element of the type's element type: as the value of a map that is a scalar and a list of one
 * alike. Converters write the one and feed the other. */
static bool is_element_of(const struct cm_type *type, const struct cm_datum *datum)
{
    return type->kind == CM_KIND_TENSOR && datum->kind == CM_KIND_TENSOR &&
           datum->tensor.type == type->dtype && cm_tensor_count(&datum->tensor) == 1;
}

static enum cm_status check(struct feed *feed, const struct cm_type *type,
                            const struct cm_datum *datum)
{
    if (type->kind == CM_KIND_OPTIONAL)
        return datum->kind == CM_KIND_NONE ? CM_OK : check(feed, type->elem, datum);
    if (datum->kind != type->kind)
        return fail(feed, ")", "is %s, needs %s (", cm_kind_phrase(datum->kind),
                    cm_kind_phrase(type->kind));
    if (type->kind == CM_KIND_TENSOR)
        return check_tensor(feed, type, &datum->tensor);
    if (type->kind == CM_KIND_MAP && datum->tensor.type != type->dtype)
        return refuse_dtype(feed, "has keys", datum->tensor.type, type->dtype);
    for (size_t item = 0; item < datum->n_items && type->elem; item++)
        if (type->kind != CM_KIND_MAP || !is_element_of(type->elem, &datum->items[item]))
            CM_TRY(check(feed, type->elem, &datum->items[item]));
    return CM_OK;
}

static struct feed feed_of(const struct cm_graph *graph, size_t input, struct cm_error *err)
{
    return (struct feed){graph->module, cm_value_get(graph->module, graph->inputs[input]), "", err};
}

enum cm_status cm_feed_check(const struct cm_graph *graph, size_t input,
                             const struct cm_datum *data, const char **help, struct cm_error *err)
{
    struct feed feed = feed_of(graph, input, err);
    const enum cm_status status = check(&feed, feed.input->fact.type, data);

    if (help)
        *help = feed.help;
    return status;
}

enum cm_status cm_feed_missing(const struct cm_graph *graph, size_t input, struct cm_error *err)
{
    const struct feed feed = feed_of(graph, input, err);

    return fail(&feed, "", "is missing, needs ");
}
