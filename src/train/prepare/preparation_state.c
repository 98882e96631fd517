/* State variables of an algorithm that is being made, and how the initialization resets them. */
// SPDX-License-Identifier: Apache-2.0
#include "train/prepare/preparation.h"

#include "onnx/tensor_data.h"

/* Nodes of the initialization. */
struct reset {
    struct cm_builder build;
};

static struct reset begin_reset(const struct cm_preparation *p)
{
    return (struct reset){{.graph = p->reset, .err = p->err, .status = p->build.status}};
}

static cm_value hold(struct cm_preparation *p, struct reset *reset, const struct cm_tensor *tensor)
{
    const struct cm_attribute_proto held = cm_attr_tensor(p->arena, "value", tensor);

    return cm_build(&reset->build, &(struct cm_emission){
                                       .op = "Constant", .attributes = &held, .n_attributes = 1});
}

/* The initialization gives the state this value. */
static void end_reset(struct cm_preparation *p, const struct reset *reset, cm_value state,
                      cm_value next)
{
    p->build.status = reset->build.status;
    cm_preparation_term(p, cm_preparation_name_of(p, state), "reset", next);
    *CM_PUSH(p->arena, &p->resets) = next;
    *CM_PUSH(p->arena, &p->reset_bindings) = (struct cm_prepared_binding){state, next};
}

/* The initialization makes the zeros (or the one number) again from their shape. */
static void add_reset(struct cm_preparation *p, cm_value state, const struct cm_tensor *zeros,
                      double first)
{
    struct reset reset = begin_reset(p);
    const struct cm_str name = cm_preparation_name_of(p, state);
    const struct cm_shape rank = CM_SHAPE(zeros->shape.rank), one = CM_SHAPE(1);
    int64_t *dims = CM_NEW_ARRAY(p->arena, int64_t, (size_t)zeros->shape.rank + 1);
    const struct cm_tensor size = cm_tensor_borrow(CM_INT64, &rank, dims);
    const struct cm_tensor zero = cm_tensor_borrow(zeros->type, &one, cm_arena_alloc(p->arena, 16));

    if (first != 0)
        cm_tensor_set_real(&zero, 0, first);

    for (int i = 0; i < zeros->shape.rank; i++)
        dims[i] = zeros->shape.dims[i];
    const cm_value made = cm_preparation_term(p, name, "shape", hold(p, &reset, &size));
    const cm_value next = cm_emit_with(
        &reset, "ConstantOfShape", CM_ATTRIBUTES(cm_attr_tensor(p->arena, "value", &zero)), made);
    end_reset(p, &reset, state, next);
}

static cm_value add_state(struct cm_preparation *p, struct cm_str name,
                          const struct cm_tensor_proto *tensor, const struct cm_tensor *like,
                          double first)
{
    const cm_value state = cm_preparation_tensor(p, p->build.graph, tensor, name);

    if (!state)
        return 0;
    cm_value_get(p->inference->module, state)->is_state = true;
    add_reset(p, state, like, first);
    return state;
}

static enum cm_status read_zeros(const struct cm_contents *self, uint64_t offset, size_t size,
                                 void *out, struct cm_error *err)
{
    (void)self;
    (void)offset;
    (void)err;
    memset(out, 0, size);
    return CM_OK;
}

/* Zeros of the size of all weights, twice and more, are not for memory. */
cm_value cm_preparation_state(struct cm_preparation *p, struct cm_str name, enum cm_dtype dtype,
                              const struct cm_type *like, double first)
{
    static const struct cm_contents zeros = {.read = read_zeros, .piece = 1 << 20};
    struct cm_tensor_proto *tensor = CM_NEW(p->arena, struct cm_tensor_proto);
    struct cm_tensor shaped = {.type = dtype};

    for (int i = 0; i < like->rank; i++) /* an initializer's: known, and checked */
        if (!cm_shape_insert(&shaped.shape, i, like->dims[i].value))
            break;
    if (first != 0) {
        const struct cm_tensor number =
            cm_tensor_borrow(dtype, &CM_SCALAR, cm_arena_alloc(p->arena, 16));

        cm_tensor_set_real(&number, 0, first);
        if (!p->build.status)
            p->build.status = cm_tensor_proto_store(tensor, p->arena, &number, p->err);
    } else if (!p->build.status) {
        p->build.status =
            cm_tensor_proto_store_later(tensor, p->arena, dtype, &shaped.shape, &zeros, p->err);
    }
    return add_state(p, name, tensor, &shaped, first);
}

cm_value cm_preparation_numbers(struct cm_preparation *p, struct cm_str name, double *values,
                                size_t count)
{
    struct cm_tensor_proto *stored = CM_NEW(p->arena, struct cm_tensor_proto);
    const struct cm_shape shape = CM_SHAPE((int64_t)count);
    const struct cm_tensor tensor = cm_tensor_borrow(CM_DOUBLE, &shape, values);

    if (!p->build.status)
        p->build.status = cm_tensor_proto_store(stored, p->arena, &tensor, p->err);
    const cm_value state = cm_preparation_tensor(p, p->build.graph, stored, name);
    if (!state)
        return 0;
    cm_value_get(p->inference->module, state)->is_state = true;
    struct reset reset = begin_reset(p);
    end_reset(p, &reset, state, hold(p, &reset, &tensor));
    return state;
}

cm_value cm_preparation_counter(struct cm_preparation *p, struct cm_str name, int64_t first)
{
    struct cm_tensor_proto *tensor = CM_NEW(p->arena, struct cm_tensor_proto);
    int64_t *held = CM_NEW(p->arena, int64_t);
    const struct cm_tensor number = cm_tensor_borrow(CM_INT64, &CM_SCALAR, held);

    *held = first;
    if (!p->build.status)
        p->build.status = cm_tensor_proto_store(tensor, p->arena, &number, p->err);
    return add_state(p, name, tensor, &number, 0);
}
