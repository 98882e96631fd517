/* Types, symbols and the arithmetic of dimensions. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/type.h"

#include "onnx/type_text.h"

enum { TYPE_DEPTH = 16 }; /* sequences of optionals of maps ..: no model nests deeper */

const struct cm_type *cm_type_tensor(struct cm_arena *arena, enum cm_dtype dtype, int rank,
                                     const struct cm_dim *dims)
{
    static const struct cm_dim none; /* never NULL, so that copying no dimensions is sound */
    struct cm_type *type = CM_NEW(arena, struct cm_type);
    type->kind = CM_KIND_TENSOR;
    type->dtype = dtype;
    type->rank = rank;
    type->dims = &none;
    if (rank > 0) {
        struct cm_dim *copy = CM_NEW_ARRAY(arena, struct cm_dim, (size_t)rank);
        memcpy(copy, dims, (size_t)rank * sizeof *copy);
        type->dims = copy;
    }
    return type;
}

const struct cm_type *cm_type_of_tensor(struct cm_arena *arena, const struct cm_tensor *tensor)
{
    struct cm_dim dims[CM_MAX_RANK];
    for (int i = 0; i < tensor->shape.rank; i++)
        dims[i] = CM_DIM(tensor->shape.dims[i]);
    return cm_type_tensor(arena, tensor->type, tensor->shape.rank, dims);
}

const struct cm_type *cm_type_wrap(struct cm_arena *arena, enum cm_kind kind,
                                   const struct cm_type *elem)
{
    struct cm_type *type = CM_NEW(arena, struct cm_type);
    type->kind = kind;
    type->elem = elem;
    return type;
}

const struct cm_type *cm_type_of_datum(struct cm_arena *arena, const struct cm_datum *datum)
{
    if (datum->kind == CM_KIND_TENSOR)
        return cm_type_of_tensor(arena, &datum->tensor);
    const struct cm_type *elem = NULL;
    for (size_t i = 0; i < datum->n_items; i++) {
        const struct cm_type *one = cm_type_of_datum(arena, &datum->items[i]);
        elem = elem && one ? cm_type_join(arena, elem, one) : one;
    }
    struct cm_type *type = (struct cm_type *)cm_type_wrap(arena, datum->kind, elem);
    if (datum->kind == CM_KIND_MAP)
        type->dtype = datum->tensor.type;
    return type;
}

static enum cm_status shape_from_proto(struct cm_arena *arena, struct cm_symbols *symbols,
                                       const struct cm_shape_proto *proto, struct cm_type *type,
                                       struct cm_error *err)
{
    if (!proto) {
        type->rank = CM_RANK_UNKNOWN;
        return CM_OK;
    }
    if (proto->dim.count > CM_MAX_RANK)
        return cm_fail(err, CM_LIMIT, "rank %zu is beyond the limit of %d", proto->dim.count,
                       CM_MAX_RANK);
    type->rank = (int)proto->dim.count;
    struct cm_dim *dims = CM_NEW_ARRAY(arena, struct cm_dim, proto->dim.count);
    for (size_t i = 0; i < proto->dim.count; i++) {
        const struct cm_dim_proto *dim = &proto->dim.items[i];
        dims[i] = CM_DIM_ANY;
        /* ONNX has no negative dimensions, but producers write -1 where one is unknown. */
        if (cm_msg_has(&dim->msg, CM_DIM_VALUE) && dim->dim_value < 0)
            continue;
        if (cm_msg_has(&dim->msg, CM_DIM_VALUE)) {
            if (dim->dim_value > CM_MAX_DIM)
                return cm_fail(err, CM_BAD_MODEL, "dimension %zu is %lld", i,
                               (long long)dim->dim_value);
            dims[i].value = dim->dim_value;
        } else if (dim->dim_param.size && dim->dim_param.data[0]) { /* NUL: see cm_symbol_unnamed */
            dims[i].symbol = cm_symbol_named(symbols, dim->dim_param);
        }
    }
    type->dims = dims;
    return CM_OK;
}

static enum cm_status from_proto(struct cm_arena *arena, struct cm_symbols *symbols,
                                 const struct cm_type_proto *proto, int depth,
                                 const struct cm_type **out, struct cm_error *err)
{
    if (!proto)
        return cm_fail(err, CM_BAD_MODEL, "type is missing");
    if (depth > TYPE_DEPTH)
        return cm_fail(err, CM_LIMIT, "type nests deeper than %d", TYPE_DEPTH);
    struct cm_type *type = CM_NEW(arena, struct cm_type);
    const struct cm_type_proto *inside = NULL;
    const struct cm_tensor_type_proto *tensor =
        proto->tensor_type ? proto->tensor_type : proto->sparse_tensor_type;

    if (tensor) {
        type->kind = proto->tensor_type ? CM_KIND_TENSOR : CM_KIND_SPARSE;
        if (!cm_dtype_is_valid(tensor->elem_type))
            return cm_fail(err, CM_BAD_MODEL, "element type %d is not defined by ONNX",
                           tensor->elem_type);
        type->dtype = (enum cm_dtype)tensor->elem_type;
        CM_TRY(shape_from_proto(arena, symbols, tensor->shape, type, err));
    } else if (proto->sequence_type) {
        type->kind = CM_KIND_SEQUENCE;
        inside = proto->sequence_type->elem_type;
    } else if (proto->optional_type) {
        type->kind = CM_KIND_OPTIONAL;
        inside = proto->optional_type->elem_type;
    } else if (proto->map_type) {
        type->kind = CM_KIND_MAP;
        if (!cm_dtype_is_valid(proto->map_type->key_type))
            return cm_fail(err, CM_BAD_MODEL, "map key type %d is not defined by ONNX",
                           proto->map_type->key_type);
        type->dtype = (enum cm_dtype)proto->map_type->key_type;
        inside = proto->map_type->value_type;
    } else if (proto->opaque_type) {
        type->kind = CM_KIND_OPAQUE;
        type->domain = proto->opaque_type->domain;
        type->name = proto->opaque_type->name;
    } else {
        return cm_fail(err, CM_BAD_MODEL, "type is neither a tensor nor any other kind");
    }
    if (type->kind == CM_KIND_SEQUENCE || type->kind == CM_KIND_OPTIONAL ||
        type->kind == CM_KIND_MAP)
        CM_TRY(from_proto(arena, symbols, inside, depth + 1, &type->elem, err));
    *out = type;
    return CM_OK;
}

enum cm_status cm_type_from_proto(struct cm_arena *arena, struct cm_symbols *symbols,
                                  const struct cm_type_proto *proto, const struct cm_type **out,
                                  struct cm_error *err)
{
    return from_proto(arena, symbols, proto, 0, out, err);
}

static struct cm_shape_proto *
shape_to_proto(struct cm_arena *arena, const struct cm_symbols *symbols, const struct cm_type *type)
{
    if (type->rank == CM_RANK_UNKNOWN)
        return NULL;
    struct cm_shape_proto *proto = CM_NEW(arena, struct cm_shape_proto);
    proto->dim.count = (size_t)type->rank;
    proto->dim.items = CM_NEW_ARRAY(arena, struct cm_dim_proto, proto->dim.count);
    if (type->rank > 0)
        cm_msg_set(&proto->msg, CM_SHAPE_DIM);
    for (int i = 0; i < type->rank; i++) {
        struct cm_dim_proto *dim = &proto->dim.items[i];
        if (cm_dim_known(type->dims[i])) {
            dim->dim_value = type->dims[i].value;
            cm_msg_set(&dim->msg, CM_DIM_VALUE);
        } else if (cm_symbol_name(symbols, type->dims[i].symbol).size) {
            dim->dim_param = cm_arena_str(arena, cm_symbol_name(symbols, type->dims[i].symbol));
            cm_msg_set(&dim->msg, CM_DIM_PARAM);
        }
    }
    return proto;
}

static struct cm_type_proto *elem_to_proto(struct cm_arena *arena, const struct cm_symbols *symbols,
                                           const struct cm_type *elem)
{
    struct cm_type_proto *proto = CM_NEW(arena, struct cm_type_proto);
    if (elem)
        cm_type_to_proto(arena, symbols, elem, proto);
    return proto;
}

void cm_type_to_proto(struct cm_arena *arena, const struct cm_symbols *symbols,
                      const struct cm_type *type, struct cm_type_proto *out)
{
    switch (type->kind) {
    case CM_KIND_TENSOR:
    case CM_KIND_SPARSE: {
        const bool dense = type->kind == CM_KIND_TENSOR;
        struct cm_tensor_type_proto *tensor = CM_NEW(arena, struct cm_tensor_type_proto);
        tensor->elem_type = (int32_t)type->dtype;
        cm_msg_set(&tensor->msg, CM_TENSOR_TYPE_ELEM_TYPE);
        tensor->shape = shape_to_proto(arena, symbols, type);
        if (tensor->shape)
            cm_msg_set(&tensor->msg, CM_TENSOR_TYPE_SHAPE);
        *(dense ? &out->tensor_type : &out->sparse_tensor_type) = tensor;
        cm_msg_set(&out->msg, dense ? CM_TYPE_TENSOR_TYPE : CM_TYPE_SPARSE_TENSOR_TYPE);
        break;
    }
    case CM_KIND_SEQUENCE:
    case CM_KIND_OPTIONAL: {
        const bool sequence = type->kind == CM_KIND_SEQUENCE;
        struct cm_wrap_type_proto *wrap = CM_NEW(arena, struct cm_wrap_type_proto);
        wrap->elem_type = elem_to_proto(arena, symbols, type->elem);
        cm_msg_set(&wrap->msg, CM_WRAP_TYPE_ELEM_TYPE);
        *(sequence ? &out->sequence_type : &out->optional_type) = wrap;
        cm_msg_set(&out->msg, sequence ? CM_TYPE_SEQUENCE_TYPE : CM_TYPE_OPTIONAL_TYPE);
        break;
    }
    case CM_KIND_MAP: {
        struct cm_map_type_proto *map = CM_NEW(arena, struct cm_map_type_proto);
        map->key_type = (int32_t)type->dtype;
        map->value_type = elem_to_proto(arena, symbols, type->elem);
        cm_msg_set(&map->msg, CM_MAP_TYPE_KEY_TYPE);
        cm_msg_set(&map->msg, CM_MAP_TYPE_VALUE_TYPE);
        out->map_type = map;
        cm_msg_set(&out->msg, CM_TYPE_MAP_TYPE);
        break;
    }
    case CM_KIND_OPAQUE: {
        struct cm_opaque_type_proto *opaque = CM_NEW(arena, struct cm_opaque_type_proto);
        opaque->domain = type->domain;
        opaque->name = type->name;
        cm_msg_set(&opaque->msg, CM_OPAQUE_TYPE_DOMAIN);
        cm_msg_set(&opaque->msg, CM_OPAQUE_TYPE_NAME);
        out->opaque_type = opaque;
        cm_msg_set(&out->msg, CM_TYPE_OPAQUE_TYPE);
        break;
    }
    case CM_KIND_NONE:
        break;
    }
}

bool cm_dim_same(struct cm_dim a, struct cm_dim b)
{
    if (cm_dim_known(a) || cm_dim_known(b))
        return a.value == b.value;
    return a.symbol != 0 && a.symbol == b.symbol;
}

bool cm_dims_same(const struct cm_dim *a, const struct cm_dim *b, int count)
{
    for (int i = 0; i < count; i++)
        if (!cm_dim_same(a[i], b[i]))
            return false;
    return true;
}

bool cm_type_same_shape(const struct cm_type *a, const struct cm_type *b)
{
    return a->rank >= 0 && a->rank == b->rank && cm_dims_same(a->dims, b->dims, a->rank);
}

bool cm_type_is_single(const struct cm_type *type)
{
    for (int i = 0; i < type->rank; i++)
        if (type->dims[i].value != 1)
            return false;
    return type->rank >= 0;
}

static bool dim_equal(struct cm_dim a, struct cm_dim b)
{
    return a.value == b.value && (cm_dim_known(a) || a.symbol == b.symbol);
}

bool cm_type_equal(const struct cm_type *a, const struct cm_type *b)
{
    if (a == b)
        return true;
    if (!a || !b || a->kind != b->kind || a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (!dim_equal(a->dims[i], b->dims[i]))
            return false;
    return cm_str_equal(a->domain, b->domain) && cm_str_equal(a->name, b->name) &&
           cm_type_equal(a->elem, b->elem);
}

bool cm_type_shape(const struct cm_type *type, struct cm_shape *out)
{
    if (type->kind != CM_KIND_TENSOR || type->rank == CM_RANK_UNKNOWN)
        return false;
    out->rank = type->rank;
    for (int i = 0; i < type->rank; i++) {
        if (!cm_dim_known(type->dims[i]))
            return false;
        out->dims[i] = type->dims[i].value;
    }
    return true;
}

bool cm_type_is_concrete(const struct cm_type *type)
{
    struct cm_shape shape;
    return cm_type_shape(type, &shape);
}

/* How two dimensions of types that meet or join become one; false: they contradict each other. */
typedef bool dim_pair_fn(struct cm_dim a, struct cm_dim b, struct cm_dim *out);

static bool join_dims(struct cm_dim a, struct cm_dim b, struct cm_dim *out)
{
    *out = cm_dim_same(a, b) ? a : CM_DIM_ANY;
    return true;
}

static const struct cm_type *combine(struct cm_arena *arena, const struct cm_type *a,
                                     const struct cm_type *b, bool meet)
{
    if (!a || !b)
        return meet ? (a ? a : b) : NULL;
    /* An optional with content is that content: what is both is the content. */
    if (meet && a->kind == CM_KIND_OPTIONAL && b->kind != CM_KIND_OPTIONAL)
        return combine(arena, a->elem, b, meet);
    if (meet && b->kind == CM_KIND_OPTIONAL && a->kind != CM_KIND_OPTIONAL)
        return combine(arena, a, b->elem, meet);
    if (a->kind != b->kind || a->dtype != b->dtype || !cm_str_equal(a->name, b->name))
        return NULL;
    if (cm_type_equal(a, b))
        return a;
    struct cm_type *type = CM_NEW(arena, struct cm_type);
    *type = *a;
    if (a->elem || b->elem) {
        type->elem = combine(arena, a->elem, b->elem, meet);
        return type->elem ? type : NULL;
    }
    if (a->rank != b->rank) {
        if (!meet || (a->rank != CM_RANK_UNKNOWN && b->rank != CM_RANK_UNKNOWN)) {
            type->rank = CM_RANK_UNKNOWN;
            type->dims = NULL;
            return meet ? NULL : type;
        }
        return a->rank == CM_RANK_UNKNOWN ? b : a;
    }
    dim_pair_fn *const pair = meet ? cm_dim_unify : join_dims;
    struct cm_dim dims[CM_MAX_RANK];
    for (int i = 0; i < a->rank; i++)
        if (!pair(a->dims[i], b->dims[i], &dims[i]))
            return NULL;
    if (a->rank > 0) {
        struct cm_dim *copy = CM_NEW_ARRAY(arena, struct cm_dim, (size_t)a->rank);
        memcpy(copy, dims, (size_t)a->rank * sizeof *copy);
        type->dims = copy;
    }
    return type;
}

const struct cm_type *cm_type_meet(struct cm_arena *arena, const struct cm_type *a,
                                   const struct cm_type *b)
{
    return combine(arena, a, b, true);
}

const struct cm_type *cm_type_join(struct cm_arena *arena, const struct cm_type *a,
                                   const struct cm_type *b)
{
    return combine(arena, a, b, false);
}

struct cm_str cm_type_print(struct cm_arena *arena, const struct cm_symbols *symbols,
                            const struct cm_type *type)
{
    struct cm_type_proto proto = {0};

    if (!type || type->kind == CM_KIND_NONE)
        return type ? CM_STR("nothing") : CM_STR("unknown");
    cm_type_to_proto(arena, symbols, type, &proto);
    return cm_type_text(arena, &proto, ", ");
}

bool cm_dim_broadcast(struct cm_dim a, struct cm_dim b, struct cm_dim *out)
{
    if (cm_dim_known(a) && cm_dim_known(b) && a.value != b.value && a.value != 1 && b.value != 1)
        return false;
    if (a.value == 1 || cm_dim_same(a, b))
        *out = b;
    else if (b.value == 1)
        *out = a;
    else if (cm_dim_known(a))
        *out = a; /* b is a symbol: 1 or the same, and the larger wins either way */
    else if (cm_dim_known(b))
        *out = b;
    else
        *out = CM_DIM_ANY;
    return true;
}

bool cm_dim_unify(struct cm_dim a, struct cm_dim b, struct cm_dim *out)
{
    if (cm_dim_known(a) && cm_dim_known(b) && a.value != b.value)
        return false;
    if (cm_dim_known(a) || (!cm_dim_known(b) && a.symbol))
        *out = a;
    else
        *out = b;
    return true;
}
