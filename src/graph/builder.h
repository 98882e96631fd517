/* Emitting nodes as one writes formulas. A failed emit is remembered and makes the ones after it do
 * nothing, so a rule checks once, at its end. Any struct with a member `build` of this type can be
 * given to the cm_emit macros. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_BUILDER_H
#define CM_GRAPH_BUILDER_H

#include "graph/graph.h"

struct cm_builder {
    struct cm_graph *graph;
    struct cm_node *before;   /* nodes go before this one; NULL: at the end */
    struct cm_opsets imports; /* versions to build with; a domain that is not listed: its newest */
    enum cm_status status;    /* of the first emit that failed */
    struct cm_error *err;
};

/* Attributes for an emit: CM_ATTRS(cm_attr_int(b, "axis", 1), ...) */
struct cm_attribute_proto cm_attr_int(struct cm_arena *arena, const char *name, int64_t value);
struct cm_attribute_proto cm_attr_ints(struct cm_arena *arena, const char *name, size_t count,
                                       const int64_t *values);
struct cm_attribute_proto cm_attr_float(struct cm_arena *arena, const char *name, float value);
struct cm_attribute_proto cm_attr_floats(struct cm_arena *arena, const char *name, size_t count,
                                         const float *values);
struct cm_attribute_proto cm_attr_str(struct cm_arena *arena, const char *name,
                                      struct cm_str value);
/* The names are borrowed. */
struct cm_attribute_proto cm_attr_strs(struct cm_arena *arena, const char *name, size_t count,
                                       struct cm_str *values);
/* sparse is borrowed. */
struct cm_attribute_proto cm_attr_sparse(struct cm_arena *arena, const char *name,
                                         struct cm_sparse_proto *sparse);
struct cm_attribute_proto cm_attr_tensor(struct cm_arena *arena, const char *name,
                                         const struct cm_tensor *tensor);

/* What an emit is made of; unset members have their usual meaning. op is "Name" or "domain::Name".
 */
struct cm_emission {
    const char *op;
    const cm_value *inputs;
    size_t n_inputs;
    const struct cm_attribute_proto *attributes;
    size_t n_attributes;
    struct cm_graph *const
        *body_graphs; /* built bodies, for the graph attributes named in body_names */
    const char *const *body_names;
    size_t n_bodies;
    size_t n_outputs;  /* 0 counts as 1 */
    cm_value *outputs; /* where to put them when there are several */
};

/* The first output, or 0 when this or an earlier emit failed. */
cm_value cm_build(struct cm_builder *builder, const struct cm_emission *emission);

#define CM_INPUTS(...)                                                                             \
    .inputs = (const cm_value[]){__VA_ARGS__},                                                     \
    .n_inputs = sizeof((const cm_value[]){__VA_ARGS__}) / sizeof(cm_value)
#define CM_ATTRIBUTES(...)                                                                         \
    .attributes = (const struct cm_attribute_proto[]){__VA_ARGS__},                                \
    .n_attributes = sizeof((const struct cm_attribute_proto[]){__VA_ARGS__}) /                     \
                    sizeof(struct cm_attribute_proto)

/* cm_emit(g, "Where", open, dy, zero) */
#define cm_emit(b, op_name, ...)                                                                   \
    cm_build(&(b)->build, &(struct cm_emission){.op = (op_name), CM_INPUTS(__VA_ARGS__)})
/* cm_emit_with(g, "Cast", CM_ATTRIBUTES(cm_attr_int(arena, "to", CM_FLOAT)), x) */
#define cm_emit_with(b, op_name, attributes_, ...)                                                 \
    cm_build(&(b)->build,                                                                          \
             &(struct cm_emission){.op = (op_name), attributes_, CM_INPUTS(__VA_ARGS__)})

/* Constants. */
cm_value cm_build_tensor(struct cm_builder *builder, const struct cm_tensor *tensor); /* copied */
cm_value cm_build_int64s(struct cm_builder *builder, size_t count,
                         const int64_t *values);                    /* rank 1 */
cm_value cm_build_int64(struct cm_builder *builder, int64_t value); /* rank 0 */
cm_value cm_build_scalar(struct cm_builder *builder, enum cm_dtype dtype,
                         double value); /* rank 0 */

#define cm_emit_int64s(b, ...)                                                                     \
    cm_build_int64s(&(b)->build, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t),         \
                    (const int64_t[]){__VA_ARGS__})
#define cm_emit_scalar(b, dtype, number) cm_build_scalar(&(b)->build, (dtype), (number))
/* A scalar of the element type of `like`. */
#define cm_emit_scalar_like(b, like, number) cm_build_scalar_like(&(b)->build, (like), (number))
cm_value cm_build_scalar_like(struct cm_builder *builder, cm_value like, double value);

struct cm_arena *cm_builder_arena(const struct cm_builder *builder);
const struct cm_type *cm_builder_type(const struct cm_builder *builder, cm_value value);
/* Remembers a failure of the caller's own. */
enum cm_status cm_builder_fail(struct cm_builder *builder, enum cm_status status,
                               const char *format, ...) CM_PRINTF(3, 4);

/* Dimensions [from, to) of x, as a list. */
cm_value cm_build_dims(struct cm_builder *build, cm_value x, int64_t from, int64_t to);
#define cm_emit_dims(b, x, from, to) cm_build_dims(&(b)->build, (x), (from), (to))
/* x as that type: x itself where it has it already, or is absent. */
cm_value cm_build_cast(struct cm_builder *build, cm_value x, enum cm_dtype to);
#define cm_emit_cast(b, x, to) cm_build_cast(&(b)->build, (x), (to))

#endif
