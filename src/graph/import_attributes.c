/* Attributes of a node of the file as the builder takes them: references to those of the function
 * at hand resolved, graphs apart. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/builder.h"
#include "graph/import_context.h"

/* The attribute a reference stands for: the call's, the function's default, or none. */
static const struct cm_attribute_proto *resolve(const struct cm_import_context *context,
                                                const struct cm_attribute_proto *attr)
{
    if (!attr->ref_attr_name.size)
        return attr;
    if (!context->call)
        return NULL;
    for (size_t i = 0; i < context->call->n_attributes; i++)
        if (cm_str_equal(context->call->attributes[i].name, attr->ref_attr_name))
            return &context->call->attributes[i];
    for (size_t i = 0; i < context->function->attribute_proto.count; i++)
        if (cm_str_equal(context->function->attribute_proto.items[i].name, attr->ref_attr_name))
            return &context->function->attribute_proto.items[i];
    return NULL;
}

/* Schema defaults of the call count too, so that a text body of ours may refer to them. */
static bool resolve_default(const struct cm_import_context *context,
                            const struct cm_attribute_proto *attr, struct cm_attribute_proto *out)
{
    if (!context->call || !context->call->schema)
        return false;
    const struct cm_schema_attr *known =
        cm_schema_find_attr(context->call->schema, attr->ref_attr_name);
    if (!known || !known->preset)
        return false;
    struct cm_arena *arena = context->module->arena;
    const char *name = cm_arena_str(arena, attr->name).data;
    const struct cm_schema_default *preset = known->preset;
    switch (known->kind) {
    case CM_SCHEMA_INT:
        *out = cm_attr_int(arena, name, preset->i);
        return true;
    case CM_SCHEMA_FLOAT:
        *out = cm_attr_float(arena, name, preset->f);
        return true;
    case CM_SCHEMA_STRING:
        *out = cm_attr_str(arena, name, cm_str(preset->s));
        return true;
    case CM_SCHEMA_INTS:
        *out = cm_attr_ints(arena, name, preset->count, preset->ints);
        return true;
    case CM_SCHEMA_FLOATS:
        *out = cm_attr_floats(arena, name, preset->count, preset->floats);
        return true;
    default:
        return false;
    }
}

void cm_import_attributes(struct cm_import_context *context, const struct cm_node_proto *proto,
                          struct cm_node_spec *spec)
{
    struct cm_arena *arena = context->module->arena;
    spec->attributes = CM_NEW_ARRAY(arena, struct cm_attribute_proto, proto->attribute.count);
    spec->bodies = CM_NEW_ARRAY(arena, struct cm_body_ref, proto->attribute.count);
    for (size_t i = 0; i < proto->attribute.count; i++) {
        const struct cm_attribute_proto *given = &proto->attribute.items[i];
        const struct cm_attribute_proto *attr = resolve(context, given);
        struct cm_attribute_proto *to = &spec->attributes[spec->n_attributes];
        if (!attr) {
            if (resolve_default(context, given, to))
                spec->n_attributes++;
            continue;
        }
        if (attr->g) {
            spec->bodies[spec->n_bodies++] =
                (struct cm_body_ref){.attribute = given->name, .proto = attr->g};
            continue;
        }
        *to = *attr;
        if (!cm_str_equal(to->name, given->name)) {
            to->name = given->name;
            cm_msg_set(&to->msg, CM_ATTRIBUTE_NAME);
        }
        spec->n_attributes++;
    }
}
