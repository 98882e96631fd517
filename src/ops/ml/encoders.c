/* LabelEncoder and CategoryMapper: each element replaced by what a list gives for it. */
// SPDX-License-Identifier: Apache-2.0
#include "base/map.h"
#include "graph/op.h"
#include "onnx/tensor_data.h"

#include <math.h>

/* An attribute that may hold the keys, the values or the default. */
struct source {
    const char *name;
    enum cm_dtype type; /* CM_UNDEFINED: a tensor, of any */
};

/* Where the parts of the two operators are; CategoryMapper goes both ways. */
struct kind {
    struct source keys[4], values[4], defaults[4];
    bool mapper;
};

/* clang-format off */
static const struct kind encoder = {
    {{"keys_tensor", CM_UNDEFINED}, {"keys_strings", CM_STRING}, {"keys_int64s", CM_INT64}, {"keys_floats", CM_FLOAT}},
    {{"values_tensor", CM_UNDEFINED}, {"values_strings", CM_STRING}, {"values_int64s", CM_INT64}, {"values_floats", CM_FLOAT}},
    {{"default_tensor", CM_UNDEFINED}, {"default_string", CM_STRING}, {"default_int64", CM_INT64}, {"default_float", CM_FLOAT}},
    false,
};
static const struct kind mapper = {
    {{"cats_strings", CM_STRING}, {"cats_int64s", CM_INT64}},
    {{"cats_strings", CM_STRING}, {"cats_int64s", CM_INT64}},
    {{"default_string", CM_STRING}, {"default_int64", CM_INT64}},
    true,
};
/* clang-format on */

static enum cm_status load(const struct cm_node *node, const struct cm_attribute_proto *attr,
                           const struct source *source, struct cm_tensor *out, struct cm_error *err)
{
    switch (source->type) {
    case CM_STRING:
        *out = cm_tensor_borrow(CM_STRING, &CM_SHAPE((int64_t)attr->strings.count),
                                attr->strings.items);
        return CM_OK;
    case CM_INT64:
        *out = cm_tensor_borrow(CM_INT64, &CM_SHAPE((int64_t)attr->ints.count), attr->ints.items);
        return CM_OK;
    case CM_FLOAT:
        *out =
            cm_tensor_borrow(CM_FLOAT, &CM_SHAPE((int64_t)attr->floats.count), attr->floats.items);
        return CM_OK;
    default:
        if (!attr->t)
            return cm_fail(err, CM_BAD_MODEL, "'%s' holds no tensor", source->name);
        return cm_node_load(node, attr->t, out, err);
    }
}

/* The list that is given; with `only`, of that type or a tensor. Its type is undefined when there
 * is none. */
static enum cm_status find_list(const struct cm_node *node, const struct source *sources,
                                enum cm_dtype only, struct cm_tensor *out, struct cm_error *err)
{
    *out = (struct cm_tensor){0};
    for (int i = 0; i < 4 && sources[i].name; i++) {
        const struct cm_attribute_proto *attr = cm_node_attr(node, sources[i].name);
        if (!attr || (only && sources[i].type && sources[i].type != only))
            continue;
        return load(node, attr, &sources[i], out, err);
    }
    return CM_OK;
}

struct tables {
    struct cm_tensor keys, values;
};

static void drop_tables(void *what)
{
    struct tables *t = what;
    cm_tensor_drop(&t->keys);
    cm_tensor_drop(&t->values);
}

/* What ONNX allows in a result. */
static bool is_value_type(enum cm_dtype type)
{
    return type == CM_STRING || type == CM_INT16 || type == CM_INT32 || type == CM_INT64 ||
           type == CM_FLOAT || type == CM_DOUBLE;
}

static enum cm_status load_tables(const struct cm_node *node, enum cm_dtype from, struct tables *t,
                                  struct cm_error *err)
{
    const struct kind *kind = node->op->arg;
    const enum cm_dtype to = from == CM_STRING ? CM_INT64 : CM_STRING;
    CM_TRY(find_list(node, kind->keys, from, &t->keys, err));
    CM_TRY(find_list(node, kind->values, kind->mapper ? to : CM_UNDEFINED, &t->values, err));
    if (!t->keys.type || !t->values.type)
        return cm_fail(err, CM_BAD_MODEL, "it has no keys for %s, or no values",
                       cm_dtype_name(from));
    if (!is_value_type(t->values.type))
        return cm_fail(err, CM_BAD_MODEL,
                       "its values are of type %s, expected string, int16, int32, int64, float or "
                       "double",
                       cm_dtype_name(t->values.type));
    if (t->keys.type != from)
        return cm_fail(err, CM_BAD_MODEL, "its keys are %s, input 0 is %s",
                       cm_dtype_name(t->keys.type), cm_dtype_name(from));
    if (cm_tensor_count(&t->keys) != cm_tensor_count(&t->values))
        return cm_fail(err, CM_BAD_MODEL, "it has %lld keys and %lld values",
                       (long long)cm_tensor_count(&t->keys),
                       (long long)cm_tensor_count(&t->values));
    return CM_OK;
}

static enum cm_status encode_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    struct tables t = {0};
    const enum cm_status status = load_tables(in->node, x->dtype, &t, in->err);
    const enum cm_dtype type = t.values.type;
    drop_tables(&t);
    CM_TRY(status);
    return cm_infer_set_tensor(in, 0, type, x->rank, x->dims);
}

struct encoding {
    struct tables tables;
    struct cm_tensor given; /* the default as a tensor, if it is one */
    int64_t number;         /* the default otherwise, for each kind of type */
    double real;
    struct cm_str text;
    size_t slots;      /* a power of two */
    uint32_t places[]; /* hash table: 1 + the key's place, 0 is free */
};

/* A key as bytes. Zeros of both signs are one key, and so are all that are no number. */
static struct cm_str key_bytes(const struct cm_tensor *keys, int64_t i, uint64_t *hold)
{
    if (keys->type == CM_STRING)
        return ((const struct cm_str *)keys->data)[i];
    if (cm_dtype_info(keys->type)->kind == CM_CLASS_FLOAT) {
        double v = cm_tensor_real(keys, i);
        v = v != v ? (double)NAN : v == 0 ? 0 : v;
        memcpy(hold, &v, sizeof v);
    } else {
        const int64_t v = cm_tensor_int(keys, i);
        memcpy(hold, &v, sizeof v);
    }
    return (struct cm_str){(const char *)hold, sizeof *hold};
}

/* The slot of a key, or the free one where it would be. */
static size_t find_slot(const struct encoding *e, struct cm_str key)
{
    size_t slot = (size_t)cm_hash(key) & (e->slots - 1);
    for (; e->places[slot]; slot = (slot + 1) & (e->slots - 1)) {
        uint64_t hold;
        if (cm_str_equal(key_bytes(&e->tables.keys, e->places[slot] - 1, &hold), key))
            break;
    }
    return slot;
}

static void drop_encoding(void *what)
{
    struct encoding *e = what;
    drop_tables(&e->tables);
    cm_tensor_drop(&e->given);
}

static enum cm_status encode_prepare(struct cm_call *call)
{
    const enum cm_dtype from = call->in[0]->type;
    const struct cm_attribute_proto *given = cm_node_attr(call->node, "default_tensor");
    struct tables sized = {0};
    size_t slots = 2;
    const enum cm_status status = load_tables(call->node, from, &sized, call->err);
    const int64_t count = status ? 0 : cm_tensor_count(&sized.keys);
    drop_tables(&sized);
    CM_TRY(status);
    if (count > UINT32_MAX / 4)
        return cm_call_fail(call, CM_LIMIT, "it has too many keys");
    while (slots < 2 * (size_t)count)
        slots *= 2;
    struct encoding *e = cm_call_state(call, sizeof *e + slots * sizeof e->places[0]);
    cm_call_defer(call, drop_encoding, e);
    e->slots = slots;
    CM_TRY(load_tables(call->node, from, &e->tables, call->err));
    e->number = cm_node_int(call->node, "default_int64");
    e->real = (double)cm_node_float(call->node, "default_float");
    e->text = cm_node_str(call->node, "default_string");
    if (given) {
        if (!given->t)
            return cm_call_fail(call, CM_BAD_MODEL, "attribute 'default_tensor' holds no tensor");
        CM_TRY(cm_node_load(call->node, given->t, &e->given, call->err));
        if (e->given.type != e->tables.values.type || cm_tensor_count(&e->given) != 1)
            return cm_call_fail(
                call, CM_BAD_MODEL,
                "attribute 'default_tensor' has %lld elements of type %s, needs one of type %s",
                (long long)cm_tensor_count(&e->given), cm_dtype_name(e->given.type),
                cm_dtype_name(e->tables.values.type));
    }
    for (int64_t i = 0; i < count; i++) {
        uint64_t hold;
        uint32_t *place = &e->places[find_slot(e, key_bytes(&e->tables.keys, i, &hold))];
        *place = *place ? *place : (uint32_t)i + 1; /* of equal keys the first counts */
    }
    return CM_OK;
}

static void store_default(const struct encoding *e, struct cm_tensor *y, int64_t at)
{
    const size_t width = cm_dtype_size(y->type);
    char *to = (char *)y->data + (size_t)at * width;
    if (e->given.type)
        memcpy(to, e->given.data, width);
    else if (y->type == CM_STRING)
        *(struct cm_str *)(void *)to = e->text;
    else if (y->type == CM_FLOAT)
        *(float *)(void *)to = (float)e->real;
    else if (y->type == CM_DOUBLE)
        *(double *)(void *)to = e->real;
    else /* little-endian: the low bytes of the number */
        memcpy(to, &e->number, width);
}

static enum cm_status encode_run(struct cm_call *call)
{
    const struct encoding *e = call->state;
    struct cm_tensor *y = call->out[0];
    const size_t width = cm_dtype_size(y->type);
    for (int64_t i = 0; i < cm_tensor_count(y); i++) {
        uint64_t hold;
        const uint32_t place = e->places[find_slot(e, key_bytes(call->in[0], i, &hold))];
        if (place)
            memcpy((char *)y->data + (size_t)i * width,
                   (const char *)e->tables.values.data + (size_t)(place - 1) * width, width);
        else
            store_default(e, y, i);
    }
    return CM_OK;
}

CM_OP_IN(ml, "ai.onnx.ml", LabelEncoder, .infer = encode_infer, .prepare = encode_prepare,
         .run = encode_run, .grad = cm_grad_none, .arg = &encoder);
CM_OP_IN(ml, "ai.onnx.ml", CategoryMapper, .infer = encode_infer, .prepare = encode_prepare,
         .run = encode_run, .grad = cm_grad_none, .arg = &mapper);
