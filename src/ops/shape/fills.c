/* Constant and ConstantOfShape: tensors that come from attributes. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "graph/node_formula.h"
#include "onnx/tensor_data.h"
#include "ops/common/move.h"
#include "ops/shape/shape_rules.h"
#include "tensor/half.h"

/* ---- Constant ---- */

/* A sparse value as its attribute has it: some elements and where they go. */
struct sparse {
    struct cm_tensor values, indices;
    struct cm_shape shape;
    size_t bytes; /* that all elements take */
};

static void drop_sparse(struct sparse *sparse)
{
    cm_tensor_drop(&sparse->values);
    cm_tensor_drop(&sparse->indices);
}

/* Element `at` as a position among all elements; -1 when it is outside. */
static int64_t sparse_position(const struct sparse *sparse, int64_t at)
{
    const struct cm_tensor *indices = &sparse->indices;
    const struct cm_shape *shape = &sparse->shape;
    if (indices->shape.rank != 2) {
        const int64_t position = cm_tensor_int(indices, at);
        return position >= 0 && position < cm_shape_elements(shape) ? position : -1;
    }
    int64_t position = 0;
    for (int i = 0; i < shape->rank; i++) {
        const int64_t index = cm_tensor_int(indices, at * shape->rank + i);
        if (index < 0 || index >= shape->dims[i])
            return -1;
        position = position * shape->dims[i] + index;
    }
    return position;
}

static enum cm_status check_sparse(const struct sparse *sparse, struct cm_error *err)
{
    const int64_t count = cm_tensor_count(&sparse->values);
    const struct cm_shape *shape = &sparse->indices.shape;
    const bool listed = shape->rank == 1 && shape->dims[0] == count;
    const bool tabled =
        shape->rank == 2 && shape->dims[0] == count && shape->dims[1] == sparse->shape.rank;

    if (sparse->indices.type != CM_INT64 || (!listed && !tabled))
        return cm_fail(err, CM_BAD_MODEL,
                       "the indices of sparse_value do not match its %lld values",
                       (long long)count);
    for (int64_t i = 0; i < count; i++)
        if (sparse_position(sparse, i) < 0)
            return cm_fail(err, CM_BAD_MODEL, "index %lld of sparse_value is outside its shape",
                           (long long)i);
    return CM_OK;
}

/* What fails halfway can be dropped. */
static enum cm_status load_sparse(const struct cm_node *node, const struct cm_sparse_proto *proto,
                                  struct sparse *out, struct cm_error *err)
{
    int64_t count;

    *out = (struct sparse){0};
    if (!proto->values || !proto->indices)
        return cm_fail(err, CM_BAD_MODEL, "sparse_value lacks values or indices");
    for (size_t i = 0; i < proto->dims.count; i++)
        if (!cm_shape_insert(&out->shape, (int)i, proto->dims.items[i]))
            return cm_fail(err, CM_BAD_MODEL, "sparse_value has rank %zu, the limit is %d",
                           proto->dims.count, CM_MAX_RANK);
    CM_TRY(cm_node_load(node, proto->values, &out->values, err));
    CM_TRY(cm_node_load(node, proto->indices, &out->indices, err));
    if (!cm_shape_count(&out->shape, &count) ||
        !cm_dtype_bytes(out->values.type, count, &out->bytes)) {
        char text[128];
        return cm_fail(err, CM_BAD_MODEL, "sparse_value cannot have the shape %s",
                       cm_shape_print(&out->shape, text, sizeof text));
    }
    return check_sparse(out, err);
}

static enum cm_status fill_sparse(const struct sparse *sparse, struct cm_tensor *out,
                                  struct cm_error *err)
{
    const struct cm_tensor *values = &sparse->values;

    cm_move_zero(out->type, out->data, 0, cm_tensor_count(out));
    for (int64_t i = 0; i < cm_tensor_count(values); i++) {
        const int64_t to = sparse_position(sparse, i);
        if (to >= 0) /* was checked, but the bytes may be those of a file that others change */
            cm_move_span(values->type, values->data, i, out->data, to, 1);
    }
    return cm_move_hold(out, values, err);
}

/* A tensor that lives as long as the arena; empty until it is loaded. */
static struct cm_tensor *kept_tensor(struct cm_infer *in)
{
    struct cm_tensor *tensor = CM_NEW(in->arena, struct cm_tensor);
    cm_tensor_defer(in->arena, tensor);
    return tensor;
}

/* A few bytes of a file may stand for any number of zeros, so only what is in proportion to them is
 * spread out here. The rest is computed like any other result: under the limit of a run, or of
 * what may be folded. */
static enum cm_status infer_sparse(struct cm_infer *in, const struct cm_sparse_proto *proto)
{
    enum { ALWAYS = 4096, GROWTH = 32 };
    struct cm_tensor *tensor = kept_tensor(in);
    struct sparse sparse;

    enum cm_status status = load_sparse(in->node, proto, &sparse, in->err);
    const size_t stored = status ? 0 : cm_tensor_bytes(&sparse.values);
    if (!status && (sparse.bytes <= ALWAYS || sparse.bytes / GROWTH <= stored)) {
        status = cm_tensor_new(sparse.values.type, &sparse.shape, tensor, in->err);
        if (!status)
            status = fill_sparse(&sparse, tensor, in->err);
        if (!status && in->n_out > 0)
            in->out[0].constant = tensor;
    }
    const struct cm_tensor whole = cm_tensor_borrow(sparse.values.type, &sparse.shape, NULL);
    drop_sparse(&sparse);
    CM_TRY(status);
    return cm_infer_set(in, 0, cm_type_of_tensor(in->arena, &whole));
}

static enum cm_status run_sparse(struct cm_call *call, const struct cm_sparse_proto *proto)
{
    struct sparse sparse;

    enum cm_status status = load_sparse(call->node, proto, &sparse, call->err);
    if (!status)
        status = fill_sparse(&sparse, call->out[0], call->err);
    drop_sparse(&sparse);
    return status;
}

/* A view of numbers or strings that the attribute holds. */
static struct cm_tensor view(enum cm_dtype type, bool list, size_t count, const void *items)
{
    const struct cm_shape line = CM_SHAPE((int64_t)count);
    return cm_tensor_borrow(type, list ? &line : &CM_SCALAR, (void *)(uintptr_t)items);
}

static enum cm_status load_attribute(struct cm_infer *in, const struct cm_attribute_proto *attr,
                                     struct cm_tensor *out)
{
    switch (attr->type) {
    case CM_ATTR_TENSOR:
        return cm_node_load(in->node, attr->t, out, in->err);
    case CM_ATTR_FLOAT:
        *out = view(CM_FLOAT, false, 1, &attr->f);
        return CM_OK;
    case CM_ATTR_FLOATS:
        *out = view(CM_FLOAT, true, attr->floats.count, attr->floats.items);
        return CM_OK;
    case CM_ATTR_INT:
        *out = view(CM_INT64, false, 1, &attr->i);
        return CM_OK;
    case CM_ATTR_INTS:
        *out = view(CM_INT64, true, attr->ints.count, attr->ints.items);
        return CM_OK;
    case CM_ATTR_STRING:
        *out = view(CM_STRING, false, 1, &attr->s);
        return CM_OK;
    case CM_ATTR_STRINGS:
        *out = view(CM_STRING, true, attr->strings.count, attr->strings.items);
        return CM_OK;
    default:
        return cm_infer_fail(in, "attribute '%.*s' holds no value", CM_STR_FMT(attr->name));
    }
}

/* The value is a fact of the output from here on, but for large sparse ones; run copies it from
 * there. */
static enum cm_status constant_infer(struct cm_infer *in)
{
    static const char *const names[] = {"value",        "sparse_value", "value_float",
                                        "value_floats", "value_int",    "value_ints",
                                        "value_string", "value_strings"};
    const struct cm_attribute_proto *attr = NULL;

    for (size_t i = 0; i < CM_COUNT(names); i++) {
        const struct cm_attribute_proto *one = cm_node_attr(in->node, names[i]);
        if (one && attr)
            return cm_infer_fail(in, "it has both '%.*s' and '%s'", CM_STR_FMT(attr->name),
                                 names[i]);
        attr = one ? one : attr;
    }
    if (!attr)
        return cm_infer_fail(in, "none of its attributes holds a value");
    if (attr->type == CM_ATTR_SPARSE_TENSOR)
        return infer_sparse(in, attr->sparse_tensor);
    struct cm_tensor *tensor = kept_tensor(in);
    CM_TRY(load_attribute(in, attr, tensor));
    if (in->n_out > 0)
        in->out[0].constant = tensor;
    return cm_infer_set(in, 0, cm_type_of_tensor(in->arena, tensor));
}

static enum cm_status constant_run(struct cm_call *call)
{
    const cm_value output = cm_node_output(call->node, 0);
    const struct cm_tensor *value = cm_value_get(call->node->module, output)->fact.constant;
    const struct cm_attribute_proto *sparse = cm_node_attr(call->node, "sparse_value");
    if (!value && sparse)
        return run_sparse(call, sparse->sparse_tensor);
    if (!value)
        return cm_call_fail(call, CM_BAD_MODEL, "its value is not known");
    const size_t size = cm_tensor_bytes(value);
    if (size)
        memcpy(call->out[0]->data, value->data, size);
    return cm_move_hold(call->out[0], value, call->err);
}

CM_OP(Constant, .infer = constant_infer, .run = constant_run, .grad = cm_grad_none,
      .cost.work = cm_work_linear, .values.is_constant = true);

/* ---- ConstantOfShape ---- */

/* The element repeated: its type and bytes. */
struct element {
    enum cm_dtype type;
    unsigned char bytes[16];
};

static enum cm_status load_element(const struct cm_node *node, struct element *out,
                                   struct cm_error *err)
{
    *out = (struct element){.type = CM_FLOAT};
    if (!cm_node_attr(node, "value"))
        return CM_OK;
    struct cm_tensor value;
    CM_TRY(cm_node_tensor(node, "value", &value, err));
    const int64_t count = cm_tensor_count(&value);
    out->type = value.type;
    if (count == 1 && value.type != CM_STRING)
        cm_move_span(value.type, value.data, 0, out->bytes, 0, 1);
    cm_tensor_drop(&value);
    if (count != 1)
        return cm_fail(err, CM_BAD_MODEL, "value has %lld elements, needs 1", (long long)count);
    return CM_OK;
}

static enum cm_status constant_of_shape_infer(struct cm_infer *in)
{
    struct element element;
    CM_TRY(cm_infer_list(in, 0));
    CM_TRY(load_element(in->node, &element, in->err));
    CM_TRY(cm_infer_set_shape_from(in, element.type, 0));
    const struct cm_type *y = in->n_out > 0 ? in->out[0].type : NULL;
    if (!y || y->dtype != CM_INT64 || y->rank < 0 || y->rank > 1 ||
        (y->rank == 1 && (!cm_dim_known(y->dims[0]) || y->dims[0].value > CM_MAX_RANK)))
        return CM_OK;
    struct cm_quantity items[CM_MAX_RANK];
    const int64_t count = y->rank == 1 ? y->dims[0].value : 1;
    int64_t number;
    memcpy(&number, element.bytes, sizeof number);
    for (int64_t i = 0; i < count; i++)
        items[i] = (struct cm_quantity){number, 0, true};
    cm_infer_set_known(in, 0, y->rank, (size_t)count, items);
    return CM_OK;
}

static enum cm_status constant_of_shape_prepare(struct cm_call *call)
{
    struct element *element = cm_call_state(call, sizeof *element);
    return load_element(call->node, element, call->err);
}

static enum cm_status constant_of_shape_run(struct cm_call *call)
{
    const struct element *element = call->state;
    struct cm_tensor *y = call->out[0];
    cm_move_fill(y->type, element->bytes, 0, y->data, 0, cm_tensor_count(y));
    return CM_OK;
}

/* One element spread over the shape; types that Expand does not take by way of float. */
static enum cm_status constant_of_shape_body(struct cm_body *b)
{
    const cm_value shape = cm_body_input(b, 0), empty = cm_build_int64s(&b->build, 0, NULL);
    const struct cm_attribute_proto *value = cm_node_attr(b->node, "value");
    cm_value one = value ? cm_build(&b->build, &(struct cm_emission){.op = "Constant",
                                                                     .attributes = value,
                                                                     .n_attributes = 1})
                         : cm_emit_scalar(b, CM_FLOAT, 0);
    const enum cm_dtype type = b->build.status ? CM_FLOAT : cm_builder_type(&b->build, one)->dtype;
    const bool through = cm_dtype_is_narrow(type) && type != CM_FLOAT16 && type != CM_BFLOAT16;
    one = cm_emit(b, "Reshape", through ? cm_emit_cast(b, one, CM_FLOAT) : one, empty);
    const cm_value y = cm_emit(b, "Expand", one, shape);
    return cm_body_return(b, 0, through ? cm_emit_cast(b, y, type) : y);
}

CM_OP(ConstantOfShape, .infer = constant_of_shape_infer, .prepare = constant_of_shape_prepare,
      .run = constant_of_shape_run, .grad = cm_grad_none, .body = constant_of_shape_body,
      .cost.work = cm_work_linear, .values.zero_attribute = "value");
