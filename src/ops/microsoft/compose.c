/* Standard nodes with their usual attributes. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/compose.h"

const struct cm_type *cm_compose_type(const struct cm_body *b, cm_value x)
{
    return x ? cm_builder_type(&b->build, x) : NULL;
}

int cm_compose_rank(const struct cm_body *b, cm_value x)
{
    const struct cm_type *type = cm_compose_type(b, x);
    return type ? type->rank : CM_RANK_UNKNOWN;
}

cm_value cm_compose_add(struct cm_body *b, cm_value x, cm_value y)
{
    return !x ? y : !y ? x : cm_emit(b, "Add", x, y);
}

cm_value cm_compose_dims(struct cm_body *b, cm_value x, int64_t from, int64_t to)
{
    return cm_emit_with(b, "Shape",
                        CM_ATTRIBUTES(cm_attr_int(cm_builder_arena(&b->build), "start", from),
                                      cm_attr_int(cm_builder_arena(&b->build), "end", to)),
                        x);
}

cm_value cm_compose_dim(struct cm_body *b, cm_value x, int64_t axis)
{
    return cm_emit(b, "Squeeze", cm_compose_dims(b, x, axis, axis + 1), cm_emit_int64s(b, 0));
}

cm_value cm_compose_range(struct cm_body *b, cm_value count)
{
    return cm_emit(b, "Range", cm_build_int64(&b->build, 0), count, cm_build_int64(&b->build, 1));
}

cm_value cm_compose_transpose(struct cm_body *b, cm_value x, size_t rank, const int64_t *perm)
{
    return cm_emit_with(
        b, "Transpose",
        CM_ATTRIBUTES(cm_attr_ints(cm_builder_arena(&b->build), "perm", rank, perm)), x);
}

cm_value cm_compose_concat(struct cm_body *b, int64_t axis, size_t count, const cm_value *parts)
{
    return cm_build(&b->build,
                    &(struct cm_emission){
                        .op = "Concat",
                        CM_ATTRIBUTES(cm_attr_int(cm_builder_arena(&b->build), "axis", axis)),
                        .inputs = parts,
                        .n_inputs = count,
                    });
}

cm_value cm_compose_slice(struct cm_body *b, cm_value x, int64_t axis, int64_t from, int64_t to)
{
    return cm_emit(b, "Slice", x, cm_emit_int64s(b, from), cm_emit_int64s(b, to),
                   cm_emit_int64s(b, axis));
}

cm_value cm_compose_unsqueeze(struct cm_body *b, cm_value x, size_t count, const int64_t *axes)
{
    return cm_emit(b, "Unsqueeze", x, cm_build_int64s(&b->build, count, axes));
}

void cm_compose_several(struct cm_body *b, const char *op, const cm_value *inputs, size_t n_inputs,
                        cm_value *results, size_t n_results)
{
    const struct cm_schema *schema = cm_schema_newest(CM_STR_NONE, cm_str(op));
    struct cm_attribute_proto *given =
        CM_NEW_ARRAY(cm_builder_arena(&b->build), struct cm_attribute_proto, schema->attr_count);
    size_t count = 0;
    for (size_t i = 0; i < schema->attr_count; i++) {
        const struct cm_attribute_proto *attribute = cm_node_attr(b->node, schema->attrs[i].name);
        if (attribute)
            given[count++] = *attribute;
    }
    while (n_inputs && !inputs[n_inputs - 1])
        n_inputs--;
    results[0] = cm_build(&b->build, &(struct cm_emission){.op = op,
                                                           .inputs = inputs,
                                                           .n_inputs = n_inputs,
                                                           .attributes = given,
                                                           .n_attributes = count,
                                                           .n_outputs = n_results,
                                                           .outputs = results});
}

cm_value cm_compose_as_called(struct cm_body *b, const char *op, const cm_value *inputs,
                              size_t n_inputs)
{
    cm_value result[1];
    cm_compose_several(b, op, inputs, n_inputs, result, 1);
    return result[0];
}
