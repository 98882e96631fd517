/* Reading a node's attributes, and making new ones. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/builder.h"
#include "graph/module.h"
#include "onnx/tensor_data.h"

const struct cm_attribute_proto *cm_node_attr(const struct cm_node *node, const char *name)
{
    for (size_t i = 0; i < node->n_attributes; i++)
        if (cm_str_is(node->attributes[i].name, name))
            return &node->attributes[i];
    return NULL;
}

/* What the node says, else the schema's default; both NULL: neither says anything. */
struct said {
    const struct cm_attribute_proto *here;
    const struct cm_schema_default *preset;
};

static struct said look_up(const struct cm_node *node, const char *name)
{
    const struct cm_attribute_proto *here = cm_node_attr(node, name);
    const struct cm_schema_attr *attr =
        !here && node->schema ? cm_schema_find_attr(node->schema, cm_str(name)) : NULL;

    return (struct said){here, attr ? attr->preset : NULL};
}

bool cm_node_has_attr(const struct cm_node *node, const char *name)
{
    const struct said said = look_up(node, name);
    return said.here || said.preset || cm_node_body(node, name);
}

int64_t cm_node_int(const struct cm_node *node, const char *name)
{
    const struct said said = look_up(node, name);
    return said.here ? said.here->i : said.preset ? said.preset->i : 0;
}

float cm_node_float(const struct cm_node *node, const char *name)
{
    const struct said said = look_up(node, name);
    return said.here ? said.here->f : said.preset ? said.preset->f : 0;
}

struct cm_str cm_node_str(const struct cm_node *node, const char *name)
{
    const struct said said = look_up(node, name);
    return said.here ? said.here->s : said.preset ? cm_str(said.preset->s) : CM_STR_NONE;
}

struct cm_int64s cm_node_ints(const struct cm_node *node, const char *name)
{
    const struct said said = look_up(node, name);
    if (said.here || !said.preset)
        return said.here ? said.here->ints : (struct cm_int64s){NULL, 0};
    return (struct cm_int64s){(int64_t *)(uintptr_t)said.preset->ints, said.preset->count};
}

struct cm_floats cm_node_floats(const struct cm_node *node, const char *name)
{
    const struct said said = look_up(node, name);
    if (said.here || !said.preset)
        return said.here ? said.here->floats : (struct cm_floats){NULL, 0};
    return (struct cm_floats){(float *)(uintptr_t)said.preset->floats, said.preset->count};
}

struct cm_strs cm_node_strs(const struct cm_node *node, const char *name)
{
    const struct said said = look_up(node, name);
    if (said.here || !said.preset)
        return said.here ? said.here->strings : (struct cm_strs){NULL, 0};
    struct cm_strs list = {
        CM_NEW_ARRAY(cm_module_arena(node->module), struct cm_str, said.preset->count),
        said.preset->count};
    for (size_t i = 0; i < list.count; i++)
        list.items[i] = cm_str(said.preset->strings[i]);
    return list;
}

enum cm_status cm_node_tensor(const struct cm_node *node, const char *name, struct cm_tensor *out,
                              struct cm_error *err)
{
    static const _Alignas(CM_TENSOR_ALIGNMENT) unsigned char nothing[CM_TENSOR_ALIGNMENT];
    const struct cm_attribute_proto *attr = cm_node_attr(node, name);

    *out = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(0), (void *)(uintptr_t)nothing);
    return attr && attr->t ? cm_node_load(node, attr->t, out, err) : CM_OK;
}

enum cm_status cm_node_load(const struct cm_node *node, const struct cm_tensor_proto *proto,
                            struct cm_tensor *out, struct cm_error *err)
{
    return cm_tensor_proto_load(proto, node->module ? node->module->files : NULL, out, err);
}

int cm_node_body_index(const struct cm_node *node, const char *name)
{
    for (size_t i = 0; i < node->n_bodies; i++)
        if (cm_str_is(node->bodies[i].attribute, name))
            return (int)i;
    return -1;
}

struct cm_graph *cm_node_body(const struct cm_node *node, const char *name)
{
    const int index = cm_node_body_index(node, name);
    return index < 0 ? NULL : node->bodies[index].graph;
}

static struct cm_attribute_proto new_attribute(struct cm_arena *arena, const char *name,
                                               enum cm_attribute_type type, int field)
{
    struct cm_attribute_proto attr = {.name = cm_arena_str(arena, cm_str(name)),
                                      .type = (int32_t)type};
    cm_msg_set(&attr.msg, CM_ATTRIBUTE_NAME);
    cm_msg_set(&attr.msg, CM_ATTRIBUTE_TYPE);
    cm_msg_set(&attr.msg, field);
    return attr;
}

struct cm_attribute_proto cm_attr_int(struct cm_arena *arena, const char *name, int64_t value)
{
    struct cm_attribute_proto attr = new_attribute(arena, name, CM_ATTR_INT, CM_ATTRIBUTE_I);
    attr.i = value;
    return attr;
}

struct cm_attribute_proto cm_attr_float(struct cm_arena *arena, const char *name, float value)
{
    struct cm_attribute_proto attr = new_attribute(arena, name, CM_ATTR_FLOAT, CM_ATTRIBUTE_F);
    attr.f = value;
    return attr;
}

struct cm_attribute_proto cm_attr_strs(struct cm_arena *arena, const char *name, size_t count,
                                       struct cm_str *values)
{
    struct cm_attribute_proto attr =
        new_attribute(arena, name, CM_ATTR_STRINGS, CM_ATTRIBUTE_STRINGS);
    attr.strings = (struct cm_strs){values, count};
    return attr;
}

struct cm_attribute_proto cm_attr_sparse(struct cm_arena *arena, const char *name,
                                         struct cm_sparse_proto *sparse)
{
    struct cm_attribute_proto attr =
        new_attribute(arena, name, CM_ATTR_SPARSE_TENSOR, CM_ATTRIBUTE_SPARSE_TENSOR);
    attr.sparse_tensor = sparse;
    return attr;
}

struct cm_attribute_proto cm_attr_str(struct cm_arena *arena, const char *name, struct cm_str value)
{
    struct cm_attribute_proto attr = new_attribute(arena, name, CM_ATTR_STRING, CM_ATTRIBUTE_S);
    attr.s = cm_arena_str(arena, value);
    return attr;
}

struct cm_attribute_proto cm_attr_ints(struct cm_arena *arena, const char *name, size_t count,
                                       const int64_t *values)
{
    struct cm_attribute_proto attr = new_attribute(arena, name, CM_ATTR_INTS, CM_ATTRIBUTE_INTS);
    attr.ints.items = CM_NEW_ARRAY(arena, int64_t, count);
    attr.ints.count = count;
    for (size_t i = 0; i < count; i++)
        attr.ints.items[i] = values[i];
    return attr;
}

struct cm_attribute_proto cm_attr_floats(struct cm_arena *arena, const char *name, size_t count,
                                         const float *values)
{
    struct cm_attribute_proto attr =
        new_attribute(arena, name, CM_ATTR_FLOATS, CM_ATTRIBUTE_FLOATS);
    attr.floats.items = CM_NEW_ARRAY(arena, float, count);
    attr.floats.count = count;
    for (size_t i = 0; i < count; i++)
        attr.floats.items[i] = values[i];
    return attr;
}

struct cm_attribute_proto cm_attr_tensor(struct cm_arena *arena, const char *name,
                                         const struct cm_tensor *tensor)
{
    struct cm_attribute_proto attr = new_attribute(arena, name, CM_ATTR_TENSOR, CM_ATTRIBUTE_T);
    struct cm_tensor *kept = CM_NEW(arena, struct cm_tensor);
    *kept = *tensor;
    cm_tensor_keep(kept);
    cm_tensor_defer(arena, kept);
    attr.t = CM_NEW(arena, struct cm_tensor_proto);
    /* Storing in an arena cannot fail for a tensor that exists. */
    (void)!cm_tensor_proto_store(attr.t, arena, kept, NULL);
    return attr;
}
