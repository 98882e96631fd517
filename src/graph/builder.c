/* Emitting nodes. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/builder.h"

#include "graph/registry.h"
#include "tensor/half.h"

struct cm_arena *cm_builder_arena(const struct cm_builder *builder)
{
    return cm_module_arena(builder->graph->module);
}

const struct cm_type *cm_builder_type(const struct cm_builder *builder, cm_value value)
{
    return value ? cm_value_get(builder->graph->module, value)->fact.type : NULL;
}

enum cm_status cm_builder_fail(struct cm_builder *builder, enum cm_status status,
                               const char *format, ...)
{
    if (builder->status)
        return builder->status;
    char text[CM_ERROR_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    builder->status = status;
    return cm_fail(builder->err, status, "%s", text);
}

/* "domain::Name" or "Name". */
static void split_name(const char *op, struct cm_str *domain, struct cm_str *name)
{
    const char *colons = strstr(op, "::");
    *domain = colons ? (struct cm_str){op, (size_t)(colons - op)} : CM_STR_NONE;
    *name = cm_str(colons ? colons + 2 : op);
}

cm_value cm_build(struct cm_builder *builder, const struct cm_emission *emission)
{
    struct cm_arena *arena = cm_builder_arena(builder);
    const size_t n_outputs = emission->n_outputs ? emission->n_outputs : 1;

    if (builder->status) {
        for (size_t i = 0; emission->outputs && i < n_outputs; i++)
            emission->outputs[i] = 0;
        return 0;
    }
    struct cm_node_spec spec = {.inputs = emission->inputs,
                                .n_inputs = emission->n_inputs,
                                .n_outputs = n_outputs,
                                .n_attributes = emission->n_attributes,
                                .n_bodies = emission->n_bodies};
    split_name(emission->op, &spec.domain, &spec.op_type);
    spec.domain = cm_arena_str(arena, spec.domain);
    spec.op_type = cm_arena_str(arena, spec.op_type);
    spec.version = cm_opsets_version(&builder->imports, spec.domain);
    spec.attributes = CM_NEW_ARRAY(arena, struct cm_attribute_proto, spec.n_attributes);
    for (size_t i = 0; i < spec.n_attributes; i++)
        spec.attributes[i] = emission->attributes[i];
    spec.bodies = CM_NEW_ARRAY(arena, struct cm_body_ref, spec.n_bodies);
    for (size_t i = 0; i < spec.n_bodies; i++) {
        spec.bodies[i].attribute = cm_arena_str(arena, cm_str(emission->body_names[i]));
        spec.bodies[i].graph = emission->body_graphs[i];
    }
    struct cm_node *node = NULL;
    builder->status =
        cm_graph_add_node(builder->graph, builder->before, &spec, &node, builder->err);
    for (size_t i = 0; emission->outputs && i < n_outputs; i++)
        emission->outputs[i] = builder->status ? 0 : node->outputs[i];
    return builder->status ? 0 : node->outputs[0];
}

cm_value cm_build_tensor(struct cm_builder *builder, const struct cm_tensor *tensor)
{
    if (builder->status)
        return 0;
    cm_value value = 0;
    builder->status =
        cm_graph_copy_constant(builder->graph, CM_STR_NONE, tensor, &value, builder->err);
    return value;
}

cm_value cm_build_int64s(struct cm_builder *builder, size_t count, const int64_t *values)
{
    const struct cm_shape shape = CM_SHAPE((int64_t)count);
    const struct cm_tensor tensor = cm_tensor_borrow(CM_INT64, &shape, (void *)(uintptr_t)values);
    return cm_build_tensor(builder, &tensor);
}

cm_value cm_build_int64(struct cm_builder *builder, int64_t value)
{
    const struct cm_tensor tensor = cm_tensor_borrow(CM_INT64, &CM_SCALAR, &value);
    return cm_build_tensor(builder, &tensor);
}

cm_value cm_build_scalar(struct cm_builder *builder, enum cm_dtype dtype, double value)
{
    union {
        float f;
        double d;
        int64_t i;
        uint16_t half;
        unsigned char bytes[8];
    } room = {.i = 0};

    switch (cm_dtype_info(dtype)->kind) {
    case CM_CLASS_FLOAT:
        if (dtype == CM_DOUBLE) {
            room.d = value;
        } else if (dtype == CM_FLOAT) {
            room.f = (float)value;
        } else {
            const float narrow = (float)value;
            cm_narrow_store(dtype, room.bytes, 0, 1, &narrow);
        }
        break;
    case CM_CLASS_SIGNED:
    case CM_CLASS_UNSIGNED:
    case CM_CLASS_BOOL:
        if (!(value >= -0x1p63 && value < 0x1p63)) {
            cm_builder_fail(builder, CM_BAD_MODEL, "%g is not a value of type %s", value,
                            cm_dtype_name(dtype));
            return 0;
        }
        room.i = (int64_t)value; /* little-endian: the low bytes are the narrower integer */
        break;
    case CM_CLASS_NONE:
    case CM_CLASS_COMPLEX:
        cm_builder_fail(builder, CM_UNSUPPORTED, "no scalar constant of type %s",
                        cm_dtype_name(dtype));
        return 0;
    }
    const struct cm_tensor tensor = cm_tensor_borrow(dtype, &CM_SCALAR, room.bytes);
    return cm_build_tensor(builder, &tensor);
}

cm_value cm_build_scalar_like(struct cm_builder *builder, cm_value like, double value)
{
    if (builder->status)
        return 0;
    return cm_build_scalar(builder, cm_builder_type(builder, like)->dtype, value);
}

cm_value cm_build_dims(struct cm_builder *build, cm_value x, int64_t from, int64_t to)
{
    struct cm_arena *arena = cm_builder_arena(build);
    return cm_build(build, &(struct cm_emission){.op = "Shape",
                                                 CM_INPUTS(x),
                                                 CM_ATTRIBUTES(cm_attr_int(arena, "start", from),
                                                               cm_attr_int(arena, "end", to))});
}

cm_value cm_build_cast(struct cm_builder *build, cm_value x, enum cm_dtype to)
{
    const struct cm_type *type = cm_builder_type(build, x);
    if (!type || type->dtype == to)
        return x;
    const struct cm_attribute_proto attribute =
        cm_attr_int(cm_builder_arena(build), "to", (int64_t)to);
    return cm_build(build,
                    &(struct cm_emission){
                        .op = "Cast", CM_INPUTS(x), .attributes = &attribute, .n_attributes = 1});
}
