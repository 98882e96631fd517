/* Names of Python and NumPy that pickles of checkpoints call, and what plain values they stand for.
 */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "bytes/numpy_types.h"
#include "bytes/pickle.h"

enum { CALL_DEPTH_MAX = 4 };

static enum cm_status make(struct cm_pickle_call *call, struct cm_item **out);

enum cm_status cm_pickle_bad_arguments(const struct cm_pickle_call *call)
{
    return cm_fail(call->err, CM_BAD_MODEL, "'%.*s' is called with the wrong arguments",
                   CM_STR_FMT(call->function->text));
}

/* ---- containers ---- */

/* A new item with the entries of another. */
static struct cm_item *copied(struct cm_pickle *p, enum cm_item_kind kind,
                              const struct cm_item *from)
{
    struct cm_item *made = cm_pickle_item(p, kind);

    p->made += from->entries.count;
    for (size_t i = 0; i < from->entries.count; i++)
        *CM_PUSH(p->arena, &made->entries) = from->entries.items[i];
    return made;
}

/* dict(), dict(map), OrderedDict([[key, value], ..]), defaultdict(factory, ..). */
static enum cm_status call_map(struct cm_pickle_call *call, struct cm_item **out)
{
    struct cm_item *map = cm_pickle_item(call->pickle, CM_ITEM_MAP);

    for (size_t i = 0; i < call->arguments->entries.count; i++) {
        const struct cm_item *from = cm_pickle_argument(call, i);
        const bool is_map = from->kind == CM_ITEM_MAP;
        if (!is_map && from->kind != CM_ITEM_LIST)
            continue; /* the factory of a defaultdict */
        call->pickle->made += from->entries.count;
        for (size_t k = 0; k < from->entries.count; k++) {
            const struct cm_item_entry *entry = &from->entries.items[k];
            if (!is_map && !cm_pickle_is_list(entry->value, 2))
                return cm_pickle_bad_arguments(call);
            cm_item_set(call->pickle->arena, map, is_map ? entry->key : cm_item_at(entry->value, 0),
                        is_map ? entry->value : cm_item_at(entry->value, 1));
        }
    }
    *out = map;
    return CM_OK;
}

enum cm_status cm_pickle_call_list(struct cm_pickle_call *call, struct cm_item **out)
{
    const struct cm_item *from = cm_pickle_argument(call, 0);

    *out = from && from->kind == CM_ITEM_LIST ? copied(call->pickle, CM_ITEM_LIST, from)
                                              : cm_pickle_item(call->pickle, CM_ITEM_LIST);
    return CM_OK;
}

enum cm_status cm_pickle_call_first(struct cm_pickle_call *call, struct cm_item **out)
{
    const struct cm_item *from = cm_pickle_argument(call, 0);

    if (!from) {
        *out = cm_pickle_item(call->pickle, CM_ITEM_NONE);
        return CM_OK;
    }
    *out = cm_pickle_item(call->pickle, from->kind);
    **out = *from;
    return CM_OK;
}

static enum cm_status call_object(struct cm_pickle_call *call, struct cm_item **out)
{
    *out = copied(call->pickle, CM_ITEM_OBJECT, call->arguments);
    (*out)->text = call->function->text;
    return CM_OK;
}

/* copyreg._reconstructor(class, base, state), copyreg.__newobj__(class, ..): an object. */
static enum cm_status call_new(struct cm_pickle_call *call, struct cm_item **out)
{
    const struct cm_item *class = cm_pickle_argument(call, 0);

    if (!class || class->kind != CM_ITEM_OBJECT)
        return cm_pickle_bad_arguments(call);
    const struct cm_item none = {.kind = CM_ITEM_LIST};
    return cm_pickle_call_inner(call, class, &none, out);
}

/* _codecs.encode(text, 'latin1'): how bytes are written in protocols that have none. */
static enum cm_status call_encode(struct cm_pickle_call *call, struct cm_item **out)
{
    const struct cm_item *from = cm_pickle_argument(call, 0);

    if (!from || from->kind != CM_ITEM_TEXT)
        return call_object(call, out);
    char *bytes = cm_arena_alloc(call->pickle->arena, from->text.size + 1), *to = bytes;
    const char *at = from->text.data, *end = at + from->text.size;
    call->pickle->made += from->text.size / 16;
    while (at < end) {
        const uint8_t c = (uint8_t)*at++;
        if (c < 0x80) {
            *to++ = (char)c;
            continue;
        }
        if ((c & 0xfe) != 0xc2 || at == end)
            return cm_pickle_bad_arguments(call);
        *to++ = (char)(c << 6 | ((uint8_t)*at++ & 0x3f));
    }
    *out = cm_pickle_item(call->pickle, CM_ITEM_BYTES);
    (*out)->text = (struct cm_str){bytes, (size_t)(to - bytes)};
    return CM_OK;
}

/* ---- NumPy ---- */

bool cm_pickle_is_count(const struct cm_item *item, int64_t *out)
{
    *out = item && item->kind == CM_ITEM_INT ? item->number : -1;
    return *out >= 0;
}

bool cm_pickle_read_shape(const struct cm_item *list, struct cm_shape *out)
{
    int64_t count;

    if (!cm_pickle_is_list(list, 0) || list->entries.count > CM_MAX_RANK)
        return false;
    out->rank = (int)list->entries.count;
    for (int i = 0; i < out->rank; i++)
        if (!cm_pickle_is_count(cm_item_at(list, (size_t)i), &out->dims[i]))
            return false;
    return cm_shape_count(out, &count);
}

/* numpy.dtype('f4', False, True), with its byte order in its state. */
static enum cm_dtype numpy_dtype(const struct cm_item *item)
{
    enum cm_dtype dtype;
    const struct cm_item *name = item && item->kind == CM_ITEM_OBJECT ? cm_item_at(item, 0) : NULL;
    struct cm_str order, text;

    if (!name && item && item->kind == CM_ITEM_OBJECT && item->entries.count)
        name = item->entries.items[0].value;
    if (!cm_item_is_text(name, &text))
        return CM_UNDEFINED;
    if (cm_item_is_text(cm_item_at(item->state, 1), &order) && cm_str_is(order, ">"))
        return CM_UNDEFINED;
    return cm_numpy_dtype_of(text, &dtype) ? dtype : CM_UNDEFINED;
}

/* An array of bytes that lie in the pickle; column_major: its axes are stored in reverse. */
static enum cm_status numpy_tensor(struct cm_pickle *p, struct cm_item *into,
                                   const struct cm_item *shape, const struct cm_item *type,
                                   const struct cm_item *bytes, bool column_major,
                                   struct cm_error *err)
{
    const enum cm_dtype dtype = numpy_dtype(type);
    struct cm_saved_tensor *tensor;
    struct cm_shape dims;

    if (dtype == CM_UNDEFINED || (bytes->kind != CM_ITEM_BYTES && bytes->kind != CM_ITEM_TEXT))
        return CM_OK; /* arrays of texts and objects stay objects */
    if (!cm_pickle_read_shape(shape, &dims))
        return cm_fail(err, CM_BAD_MODEL, "the shape of an array of NumPy is broken");
    CM_TRY(cm_saved_tensor_new(p->arena, dtype, &dims, bytes->text, p->file, &tensor, err));
    if (column_major && dims.rank > 1) {
        struct cm_saved_piece *piece = &tensor->pieces.items[0];
        int64_t stride = 1;
        piece->is_run = false;
        memcpy(piece->size, dims.dims, (size_t)dims.rank * sizeof *piece->size);
        piece->stride = CM_NEW_ARRAY(p->arena, int64_t, (size_t)dims.rank);
        for (int i = 0; i < dims.rank; i++) {
            piece->stride[i] = stride;
            stride *= dims.dims[i]; /* the product was checked, but for empty ones */
            if (stride < 0 || stride > CM_MAX_DIM)
                stride = 0;
        }
    }
    into->kind = CM_ITEM_TENSOR;
    into->tensor = tensor;
    return CM_OK;
}

/* numpy.core.multiarray.scalar(dtype, bytes). */
static enum cm_status call_scalar(struct cm_pickle_call *call, struct cm_item **out)
{
    const struct cm_item *type = cm_pickle_argument(call, 0), *bytes = cm_pickle_argument(call, 1);
    const struct cm_item scalar = {.kind = CM_ITEM_LIST};

    CM_TRY(call_object(call, out));
    if (!bytes)
        return cm_pickle_bad_arguments(call);
    CM_TRY(numpy_tensor(call->pickle, *out, &scalar, type, bytes, false, call->err));
    if ((*out)->kind != CM_ITEM_TENSOR)
        return CM_OK;
    struct cm_item *made = *out;
    const enum cm_dtype_class kind = cm_dtype_info(made->tensor->dtype)->kind;
    int64_t number = 0;
    if (kind == CM_CLASS_COMPLEX || !cm_saved_tensor_number(made->tensor, &made->real))
        return CM_OK;
    made->kind = kind == CM_CLASS_FLOAT  ? CM_ITEM_REAL
                 : kind == CM_CLASS_BOOL ? CM_ITEM_BOOL
                                         : CM_ITEM_INT;
    made->truth = made->real != 0;
    if (made->kind == CM_ITEM_INT) { /* little-endian, its sign in its highest bit */
        const struct cm_str raw = bytes->text;
        memcpy(&number, raw.data, cm_min_size(raw.size, sizeof number));
        if (kind == CM_CLASS_SIGNED && raw.size < 8 && raw.data[raw.size - 1] & 0x80)
            number -= (int64_t)(UINT64_C(1) << 8 * raw.size);
    }
    made->number = number;
    made->entries.count = 0;
    return CM_OK;
}

/* numpy.core.numeric._frombuffer(bytes, dtype, shape, order). */
static enum cm_status call_frombuffer(struct cm_pickle_call *call, struct cm_item **out)
{
    CM_TRY(call_object(call, out));
    if (!cm_pickle_is_list(call->arguments, 3))
        return cm_pickle_bad_arguments(call);
    return numpy_tensor(call->pickle, *out, cm_pickle_argument(call, 2),
                        cm_pickle_argument(call, 1), cm_pickle_argument(call, 0),
                        cm_str_is(cm_item_text_or_none(cm_pickle_argument(call, 3)), "F"),
                        call->err);
}

/* ---- the names ---- */

static const struct cm_pickle_known names[] = {
    {"collections", "OrderedDict", call_map},
    {"collections", "defaultdict", call_map},
    {"collections", "Counter", call_map},
    {"collections", "deque", cm_pickle_call_list},
    {"builtins", "dict", call_map},
    {"builtins", "list", cm_pickle_call_list},
    {"builtins", "tuple", cm_pickle_call_list},
    {"builtins", "set", cm_pickle_call_list},
    {"builtins", "frozenset", cm_pickle_call_list},
    {"builtins", "int", cm_pickle_call_first},
    {"builtins", "long", cm_pickle_call_first},
    {"builtins", "float", cm_pickle_call_first},
    {"builtins", "bool", cm_pickle_call_first},
    {"builtins", "str", cm_pickle_call_first},
    {"builtins", "bytes", cm_pickle_call_first},
    {"builtins", "bytearray", cm_pickle_call_first},
    {"copyreg", "_reconstructor", call_new},
    {"copyreg", "__newobj__", call_new},
    {"_codecs", "encode", call_encode},
    {"numpy.core.multiarray", "scalar", call_scalar},
    {"numpy.core.numeric", "_frombuffer", call_frombuffer},
};

static struct cm_str modern_module(struct cm_arena *arena, struct cm_str module)
{
    if (cm_str_is(module, "__builtin__"))
        return CM_STR("builtins");
    if (cm_str_is(module, "copy_reg"))
        return CM_STR("copyreg");
    if (cm_str_starts(module, "numpy._core."))
        return cm_arena_printf(arena, "numpy.core.%.*s", (int)cm_min_size(module.size - 12, 100),
                               module.data + 12);
    return module;
}

/* Python's and NumPy's names, then those of the framework. */
static const struct cm_pickle_known *known(const struct cm_pickle *p, size_t row)
{
    return row < CM_COUNT(names) ? &names[row] : &p->known[row - CM_COUNT(names)];
}

struct cm_item *cm_pickle_name(struct cm_pickle *p, struct cm_str module, struct cm_str name)
{
    struct cm_item *item = cm_pickle_item(p, CM_ITEM_OBJECT);
    const struct cm_str modern = modern_module(p->arena, module);

    item->truth = true;
    item->text = cm_arena_printf(p->arena, "%.*s.%.*s", CM_STR_FMT(modern), CM_STR_FMT(name));
    for (size_t i = 0; i < CM_COUNT(names) + p->n_known; i++)
        if (cm_str_is(name, known(p, i)->name) && cm_str_is(modern, known(p, i)->module))
            item->number = (int64_t)i + 1;
    return item;
}

static enum cm_status make(struct cm_pickle_call *call, struct cm_item **out)
{
    if (call->depth > CALL_DEPTH_MAX)
        return cm_fail(call->err, CM_LIMIT, "calls are nested too deeply");
    const int64_t row = call->function->number;
    return row > 0 && row <= (int64_t)(CM_COUNT(names) + call->pickle->n_known)
               ? known(call->pickle, (size_t)row - 1)->call(call, out)
               : call_object(call, out);
}

enum cm_status cm_pickle_call_inner(struct cm_pickle_call *call, const struct cm_item *function,
                                    const struct cm_item *arguments, struct cm_item **out)
{
    struct cm_pickle_call inner = {call->pickle, function, arguments, call->depth + 1, call->err};

    return make(&inner, out);
}

enum cm_status cm_pickle_call(struct cm_pickle *p, const struct cm_item *function,
                              const struct cm_item *arguments, struct cm_item **out,
                              struct cm_error *err)
{
    struct cm_pickle_call call = {p, function, arguments, 0, err};

    if (function->kind != CM_ITEM_OBJECT)
        return cm_fail(err, CM_BAD_MODEL, "what is called is not a name");
    return make(&call, out);
}

/* ---- state ---- */

/* (version, shape, dtype, is_column_major, bytes) of numpy's _reconstruct. */
static enum cm_status build_array(struct cm_pickle *p, struct cm_item *object,
                                  const struct cm_item *state, struct cm_error *err)
{
    bool column_major = false;

    (void)cm_item_is_bool(cm_item_at(state, 3), &column_major);
    return numpy_tensor(p, object, cm_item_at(state, 1), cm_item_at(state, 2), cm_item_at(state, 4),
                        column_major, err);
}

enum cm_status cm_pickle_build(struct cm_pickle *p, struct cm_item *object,
                               const struct cm_item *state, struct cm_error *err)
{
    if (object->kind == CM_ITEM_MAP || object->kind == CM_ITEM_LIST ||
        object->kind == CM_ITEM_TENSOR)
        return CM_OK; /* attributes of a dictionary, such as a state dictionary's versions */
    if (object->kind != CM_ITEM_OBJECT)
        return cm_fail(err, CM_BAD_MODEL, "what gets a state is not an object");
    if (cm_str_is(object->text, "numpy.core.multiarray._reconstruct") &&
        cm_pickle_is_list(state, 5))
        CM_TRY(build_array(p, object, state, err));
    /* What was in the object as a dictionary or list before stays beside its attributes. */
    const struct cm_item *before = object->state;
    object->state = state;
    if (cm_pickle_is_list(state, 2) && state->entries.count == 2 &&
        cm_item_at(state, 1)->kind == CM_ITEM_MAP &&
        (cm_item_at(state, 0)->kind == CM_ITEM_MAP || cm_item_at(state, 0)->kind == CM_ITEM_NONE)) {
        before = cm_item_at(state, 0); /* of a class with slots */
        object->state = state = cm_item_at(state, 1);
    }
    if (before && before->kind == CM_ITEM_MAP && state->kind == CM_ITEM_MAP) {
        struct cm_item *both = copied(p, CM_ITEM_MAP, before);
        p->made += state->entries.count;
        for (size_t i = 0; i < state->entries.count; i++)
            *CM_PUSH(p->arena, &both->entries) = state->entries.items[i];
        object->state = both;
    } else if (before && before->kind == CM_ITEM_LIST) {
        cm_item_append(p->arena, object, before);
    }
    return CM_OK;
}
