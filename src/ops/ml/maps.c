/* Operators that make maps and take them apart: ZipMap, CastMap, DictVectorizer. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "ops/cast/number_text.h"
#include "ops/common/move.h"
#include "ops/ml/class_labels.h"

/* ---- keys ---- */

struct map_key {
    struct cm_str text; /* or */
    int64_t number;
    size_t place; /* of its value */
};

static int compare_words(const void *a, const void *b)
{
    const struct map_key *x = a, *y = b;
    const int order = cm_str_compare(x->text, y->text);
    if (order)
        return order;
    return (x->number > y->number) - (x->number < y->number);
}

/* Equal words stay in their order. */
static int compare_keys(const void *a, const void *b)
{
    const struct map_key *x = a, *y = b;
    const int order = compare_words(a, b);
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

/* Of the map that is input 0. */
static enum cm_dtype value_type(const struct cm_call *call)
{
    const cm_value x = call->node->inputs[0].value;
    return cm_value_get(call->node->module, x)->fact.type->elem->dtype;
}

/* The keys of a map as an array of struct map_key, sorted, in a buffer to be dropped. Values must
 * be single elements of one type. */
static enum cm_status sort_map(struct cm_call *call, const struct cm_datum *x, enum cm_dtype type,
                               struct cm_buffer **out)
{
    size_t bytes;
    for (size_t i = 0; i < x->n_items; i++)
        if (x->items[i].kind != CM_KIND_TENSOR || x->items[i].tensor.type != type ||
            cm_tensor_count(&x->items[i].tensor) != 1)
            return cm_call_fail(call, CM_BAD_ARGUMENT, "value %zu of the map is not one %s", i,
                                cm_dtype_name(type));
    if (!cm_size_mul(x->n_items, sizeof(struct map_key), &bytes))
        return cm_call_fail(call, CM_LIMIT, "the map is too large");
    CM_TRY(cm_buffer_new(bytes, out, call->err));
    struct map_key *keys = cm_buffer_data(*out);
    for (size_t i = 0; i < x->n_items; i++) {
        keys[i] = (struct map_key){.place = i};
        if (x->tensor.type == CM_STRING)
            keys[i].text = ((const struct cm_str *)x->tensor.data)[i];
        else
            keys[i].number = cm_tensor_int(&x->tensor, (int64_t)i);
    }
    qsort(keys, x->n_items, sizeof *keys, compare_keys);
    return CM_OK;
}

/* ---- ZipMap: rows of scores to maps from labels ---- */

static enum cm_status zip_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    const struct cm_labels labels = cm_labels_read(in->node, "classlabels_int64s");
    struct cm_dim both;
    if (labels.count == 0)
        return cm_infer_fail(in, "it has no class labels");
    CM_TRY(cm_infer_rank(in, 0, 1, 2));
    if (x->rank > 0 && !cm_dim_unify(x->dims[x->rank - 1], CM_DIM((int64_t)labels.count), &both))
        return cm_infer_fail(in, "input 0 has %lld columns for %zu class labels",
                             (long long)x->dims[x->rank - 1].value, labels.count);
    const struct cm_type map = {.kind = CM_KIND_MAP,
                                .dtype = cm_labels_type(&labels),
                                .elem = cm_type_tensor(in->arena, CM_FLOAT, 0, NULL)};
    struct cm_type *kept = CM_NEW(in->arena, struct cm_type);
    *kept = map;
    return cm_infer_set(in, 0, cm_type_wrap(in->arena, CM_KIND_SEQUENCE, kept));
}

/* The columns whose labels become keys, in the order of the keys. */
struct zipper {
    size_t n_keys;
    struct map_key keys[];
};

/* Of equal labels the last one counts. */
static enum cm_status zip_prepare(struct cm_call *call)
{
    const struct cm_labels labels = cm_labels_read(call->node, "classlabels_int64s");
    size_t bytes;
    if (!cm_size_mul(labels.count, sizeof(struct map_key), &bytes) ||
        !cm_size_add(bytes, sizeof(struct zipper), &bytes))
        return cm_call_fail(call, CM_LIMIT, "it has too many class labels");
    struct zipper *zipper = cm_call_state(call, bytes);
    for (size_t i = 0; i < labels.count; i++) {
        zipper->keys[i].place = i;
        if (labels.strings.count)
            zipper->keys[i].text = labels.strings.items[i];
        else
            zipper->keys[i].number = labels.numbers.items[i];
    }
    qsort(zipper->keys, labels.count, sizeof zipper->keys[0], compare_keys);
    for (size_t i = 0; i < labels.count; i++)
        if (i + 1 == labels.count || compare_words(&zipper->keys[i], &zipper->keys[i + 1]) != 0)
            zipper->keys[zipper->n_keys++] = zipper->keys[i];
    return CM_OK;
}

static enum cm_status make_keys(struct cm_call *call, const struct zipper *zipper,
                                struct cm_tensor *out)
{
    const struct cm_labels labels = cm_labels_read(call->node, "classlabels_int64s");
    CM_TRY(
        cm_tensor_new(cm_labels_type(&labels), &CM_SHAPE((int64_t)zipper->n_keys), out, call->err));
    for (size_t i = 0; i < zipper->n_keys; i++)
        if (out->type == CM_STRING)
            ((struct cm_str *)out->data)[i] = zipper->keys[i].text;
        else
            ((int64_t *)out->data)[i] = zipper->keys[i].number;
    return CM_OK;
}

static enum cm_status make_map(struct cm_call *call, const struct zipper *zipper,
                               const struct cm_tensor *keys, const struct cm_tensor *row,
                               struct cm_datum *out)
{
    CM_TRY(cm_sequence_new(zipper->n_keys, out, call->err));
    out->kind = CM_KIND_MAP;
    out->tensor = *keys;
    cm_tensor_keep(&out->tensor);
    for (; out->n_items < zipper->n_keys; out->n_items++) {
        struct cm_datum *item = &out->items[out->n_items];
        *item = (struct cm_datum){.kind = CM_KIND_TENSOR, .tensor = *row};
        item->tensor.shape = (struct cm_shape){0};
        item->tensor.data = (float *)row->data + zipper->keys[out->n_items].place;
        cm_tensor_keep(&item->tensor);
    }
    return CM_OK;
}

static enum cm_status zip_run(struct cm_call *call)
{
    const struct zipper *zipper = call->state;
    const struct cm_tensor *x = call->in[0];
    const int rank = x->shape.rank;
    const int64_t labels = (int64_t)cm_labels_read(call->node, "classlabels_int64s").count;
    if ((rank != 1 && rank != 2) || x->shape.dims[rank - 1] != labels)
        return cm_call_fail(call, CM_BAD_ARGUMENT,
                            "input 0 has rank %d and %lld columns, needs rank 1 or 2 and %lld "
                            "columns, one for each class label",
                            rank, (long long)(rank ? x->shape.dims[rank - 1] : 1),
                            (long long)labels);
    const int64_t rows = rank == 2 ? x->shape.dims[0] : 1, columns = labels;
    struct cm_datum *y = call->out_datum[0];
    struct cm_tensor keys = {0}, scores = {0}; /* of all maps: their items are views of these */
    enum cm_status status = cm_tensor_copy(x, &scores, call->err);
    if (!status)
        status = make_keys(call, zipper, &keys);
    if (!status)
        status = cm_sequence_new((size_t)rows, y, call->err);
    for (int64_t i = 0; i < rows && !status; i++) {
        struct cm_tensor row = scores;
        row.data = (float *)scores.data + i * columns;
        y->items[y->n_items] = (struct cm_datum){0};
        status = make_map(call, zipper, &keys, &row, &y->items[y->n_items++]);
    }
    cm_tensor_drop(&keys);
    cm_tensor_drop(&scores);
    return status;
}

CM_OP_IN(ml, "ai.onnx.ml", ZipMap, .infer = zip_infer, .prepare = zip_prepare, .run = zip_run,
         .grad = cm_grad_none, .effects = CM_OUTPUT_SIZE_AT_RUN);

/* ---- CastMap: the values of a map in a row ---- */

static bool parse_cast(struct cm_str name, enum cm_dtype *out)
{
    *out = cm_str_is(name, "TO_FLOAT")    ? CM_FLOAT
           : cm_str_is(name, "TO_INT64")  ? CM_INT64
           : cm_str_is(name, "TO_STRING") ? CM_STRING
                                          : CM_UNDEFINED;
    return *out != CM_UNDEFINED;
}

static enum cm_status cast_infer(struct cm_infer *in)
{
    const struct cm_str cast = cm_node_str(in->node, "cast_to");
    const struct cm_str form = cm_node_str(in->node, "map_form");
    const int64_t columns = cm_node_int(in->node, "max_map");
    const bool sparse = cm_str_is(form, "SPARSE");
    enum cm_dtype type;
    if (!parse_cast(cast, &type))
        return cm_infer_fail(
            in, "attribute 'cast_to' is '%.*s', expected 'TO_FLOAT', 'TO_INT64' or 'TO_STRING'",
            CM_STR_FMT(cast));
    if (!sparse && !cm_str_is(form, "DENSE"))
        return cm_infer_fail(in, "attribute 'map_form' is '%.*s', expected 'DENSE' or 'SPARSE'",
                             CM_STR_FMT(form));
    if (sparse && columns < 1)
        return cm_infer_fail(in, "attribute 'max_map' is %lld, expected 1 or more",
                             (long long)columns);
    return cm_infer_set_tensor(in, 0, type, 2,
                               (struct cm_dim[]){CM_DIM(1), sparse ? CM_DIM(columns) : CM_DIM_ANY});
}

/* Stores the value of `from`, one element, at `at` of y. texts is where strings are written. */
static enum cm_status cast_value(struct cm_call *call, const struct cm_tensor *from,
                                 struct cm_tensor *y, int64_t at, char **texts)
{
    enum { FLOAT_TEXT = 64 }; /* FLT_MAX has 39 digits before the point */
    enum { ONLY = 0 };        /* that there is one was checked when the map was read */
    const bool text = from->type == CM_STRING;
    const struct cm_str string = text ? *(const struct cm_str *)from->data : CM_STR_NONE;
    double real = text ? 0 : cm_tensor_real(from, ONLY);
    uint64_t whole = text ? 0 : cm_number_cut(real);
    if (y->type == CM_STRING) {
        if (text)
            memcpy(*texts, string.data, string.size);
        /* As ONNX Runtime writes it, with six digits behind the point. */
        const size_t size =
            text ? string.size : (size_t)cm_format(*texts, FLOAT_TEXT, "%f", (double)(float)real);
        ((struct cm_str *)y->data)[at] = (struct cm_str){*texts, size};
        *texts += size;
        return CM_OK;
    }
    if (text && !(y->type == CM_FLOAT ? cm_number_parse_real(string, &real)
                                      : cm_number_parse_whole(string, &whole)))
        return cm_call_fail(call, CM_BAD_ARGUMENT, "'%.*s' is not a number", CM_STR_FMT(string));
    if (y->type == CM_FLOAT)
        ((float *)y->data)[at] = (float)real;
    else
        ((int64_t *)y->data)[at] = (int64_t)whole;
    return CM_OK;
}

/* Room for the texts of all results, held by y. */
static enum cm_status reserve_texts(struct cm_call *call, const struct cm_datum *x,
                                    struct cm_tensor *y, char **texts)
{
    size_t bytes = 64;
    struct cm_buffer *buffer;
    for (size_t i = 0; i < x->n_items; i++) {
        const struct cm_tensor *item = &x->items[i].tensor;
        if (!cm_size_add(bytes,
                         item->type == CM_STRING ? ((const struct cm_str *)item->data)->size : 64,
                         &bytes))
            return cm_call_fail(call, CM_LIMIT, "its strings are too long");
    }
    CM_TRY(cm_buffer_new(bytes, &buffer, call->err));
    const enum cm_status status = cm_buffer_hold(y->buffer, buffer, call->err);
    *texts = cm_buffer_data(buffer);
    cm_buffer_drop(buffer);
    return status;
}

/* What a column is that no key names. */
static void fill_absent(struct cm_tensor *y)
{
    static const struct cm_str zero = {"0.f", 3}; /* as in ONNX Runtime */
    if (y->type == CM_STRING)
        cm_move_fill(CM_STRING, &zero, 0, y->data, 0, cm_tensor_count(y));
    else
        cm_move_zero(y->type, y->data, 0, cm_tensor_count(y));
}

static enum cm_status cast_items(struct cm_call *call, const struct cm_datum *x,
                                 const struct map_key *keys, bool sparse)
{
    struct cm_tensor *y = call->out[0];
    const int64_t columns = y->shape.dims[1];
    char *texts = NULL;
    if (y->type == CM_STRING)
        CM_TRY(reserve_texts(call, x, y, &texts));
    fill_absent(y);
    for (size_t i = 0; i < x->n_items; i++) {
        const int64_t at = sparse ? keys[i].number : (int64_t)i;
        if (at < 0)
            return cm_call_fail(call, CM_BAD_ARGUMENT, "key %lld of the map is negative",
                                (long long)at);
        if (at < columns)
            CM_TRY(cast_value(call, &x->items[keys[i].place].tensor, y, at, &texts));
    }
    return CM_OK;
}

static enum cm_status cast_run(struct cm_call *call)
{
    const struct cm_datum *x = call->in_datum[0];
    const bool sparse = cm_str_is(cm_node_str(call->node, "map_form"), "SPARSE");
    const int64_t columns = sparse ? cm_node_int(call->node, "max_map") : (int64_t)x->n_items;
    enum cm_dtype type;
    struct cm_buffer *keys;
    parse_cast(cm_node_str(call->node, "cast_to"), &type);
    CM_TRY(cm_call_allocate(call, 0, type, &CM_SHAPE(1, columns)));
    CM_TRY(sort_map(call, x, value_type(call), &keys));
    const enum cm_status status = cast_items(call, x, cm_buffer_data(keys), sparse);
    cm_buffer_drop(keys);
    return status;
}

CM_OP_IN(ml, "ai.onnx.ml", CastMap, .infer = cast_infer, .run = cast_run, .grad = cm_grad_none,
         .effects = CM_OUTPUT_SIZE_AT_RUN);

/* ---- DictVectorizer: the values of a map, in the order of a vocabulary ---- */

static enum cm_status dictionary_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    const bool text = x->dtype == CM_STRING;
    const size_t n = text ? cm_node_strs(in->node, "string_vocabulary").count
                          : cm_node_ints(in->node, "int64_vocabulary").count;
    if (n == 0)
        return cm_infer_fail(in, "attribute '%s' is needed for keys of type %s",
                             text ? "string_vocabulary" : "int64_vocabulary",
                             cm_dtype_name(x->dtype));
    return cm_infer_set_tensor(in, 0, x->elem->dtype, 2,
                               (struct cm_dim[]){CM_DIM(1), CM_DIM((int64_t)n)});
}

static enum cm_status dictionary_run(struct cm_call *call)
{
    const struct cm_datum *x = call->in_datum[0];
    const bool text = x->tensor.type == CM_STRING;
    const struct cm_strs strings = cm_node_strs(call->node, "string_vocabulary");
    const struct cm_int64s numbers = cm_node_ints(call->node, "int64_vocabulary");
    const size_t n = text ? strings.count : numbers.count;
    struct cm_buffer *buffer;
    CM_TRY(cm_call_allocate(call, 0, value_type(call), &CM_SHAPE(1, (int64_t)n)));
    struct cm_tensor *y = call->out[0];
    CM_TRY(sort_map(call, x, value_type(call), &buffer));
    const struct map_key *keys = cm_buffer_data(buffer);
    enum cm_status status = CM_OK;
    cm_move_zero(y->type, y->data, 0, (int64_t)n);
    for (size_t i = 0; i < n && !status; i++) {
        const struct map_key word = {.text = text ? strings.items[i] : CM_STR_NONE,
                                     .number = text ? 0 : numbers.items[i]};
        const struct map_key *found = bsearch(&word, keys, x->n_items, sizeof *keys, compare_words);
        if (!found)
            continue;
        const struct cm_tensor *value = &x->items[found->place].tensor;
        cm_move_span(y->type, value->data, 0, y->data, (int64_t)i, 1);
        status = cm_move_hold(y, value, call->err);
    }
    cm_buffer_drop(buffer);
    return status;
}

CM_OP_IN(ml, "ai.onnx.ml", DictVectorizer, .infer = dictionary_infer, .run = dictionary_run,
         .grad = cm_grad_none, .effects = CM_OUTPUT_SIZE_AT_RUN);
