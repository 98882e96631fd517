/* Reading and changing a node on its way up. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/upgrade_step.h"

#include <stdio.h>

struct cm_arena *cm_upgrade_arena(const struct cm_upgrade *up)
{
    return cm_builder_arena(&up->build);
}

enum cm_status cm_upgrade_fail(struct cm_upgrade *up, enum cm_status status, const char *format,
                               ...)
{
    char text[CM_ERROR_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return cm_builder_fail(&up->build, status, "%s", text);
}

bool cm_upgrade_given(const struct cm_upgrade *up, const char *name)
{
    return cm_node_attr(&up->node, name) != NULL;
}

static void set_attributes(struct cm_upgrade *up, struct cm_attribute_proto *items, size_t count)
{
    up->spec->attributes = up->node.attributes = items;
    up->spec->n_attributes = up->node.n_attributes = count;
}

void cm_upgrade_drop(struct cm_upgrade *up, const char *name)
{
    struct cm_attribute_proto *items = up->spec->attributes;
    size_t kept = 0;
    for (size_t i = 0; i < up->spec->n_attributes; i++)
        if (!cm_str_is(items[i].name, name))
            items[kept++] = items[i];
    set_attributes(up, items, kept);
}

void cm_upgrade_set(struct cm_upgrade *up, struct cm_attribute_proto attr)
{
    const size_t count = up->spec->n_attributes;
    struct cm_attribute_proto *items =
        CM_NEW_ARRAY(cm_upgrade_arena(up), struct cm_attribute_proto, count + 1);
    for (size_t i = 0; i < count; i++) {
        items[i] = up->spec->attributes[i];
        if (cm_str_equal(items[i].name, attr.name)) {
            up->spec->attributes[i] = attr;
            return;
        }
    }
    items[count] = attr;
    set_attributes(up, items, count + 1);
}

void cm_upgrade_rename(struct cm_upgrade *up, const char *name, const char *to)
{
    for (size_t i = 0; i < up->spec->n_attributes; i++)
        if (cm_str_is(up->spec->attributes[i].name, name)) {
            up->spec->attributes[i].name = cm_str(to);
            cm_msg_set(&up->spec->attributes[i].msg, CM_ATTRIBUTE_NAME);
        }
}

cm_value cm_upgrade_input(const struct cm_upgrade *up, size_t i)
{
    return i < up->spec->n_inputs ? up->spec->inputs[i] : 0;
}

void cm_upgrade_set_input(struct cm_upgrade *up, size_t i, cm_value value)
{
    const size_t old = up->spec->n_inputs, count = i < old ? old : i + 1;
    cm_value *inputs = CM_NEW_ARRAY(cm_upgrade_arena(up), cm_value, count);
    for (size_t k = 0; k < old; k++)
        inputs[k] = up->spec->inputs[k];
    inputs[i] = value;
    up->spec->inputs = inputs;
    up->spec->n_inputs = count;
}

const struct cm_type *cm_upgrade_type(const struct cm_upgrade *up, size_t i)
{
    return cm_builder_type(&up->build, cm_upgrade_input(up, i));
}

int cm_upgrade_rank(const struct cm_upgrade *up, size_t i)
{
    const struct cm_type *type = cm_upgrade_type(up, i);
    return type ? type->rank : CM_RANK_UNKNOWN;
}

bool cm_upgrade_wants(const struct cm_upgrade *up, size_t o)
{
    return o < up->spec->n_outputs && (!up->spec->wanted || up->spec->wanted[o]);
}

void cm_upgrade_set_outputs(struct cm_upgrade *up, size_t count, const bool *wanted)
{
    bool *copy = CM_NEW_ARRAY(cm_upgrade_arena(up), bool, count);
    for (size_t o = 0; o < count; o++)
        copy[o] = wanted[o];
    up->spec->wanted = copy;
    up->spec->n_outputs = count;
}

cm_value cm_upgrade_int64s(struct cm_upgrade *up, size_t count, const int64_t *values)
{
    const int64_t nothing = 0;
    return cm_build_int64s(&up->build, count, count ? values : &nothing);
}

cm_value cm_upgrade_reshape_like(struct cm_upgrade *up, cm_value value, cm_value like)
{
    struct cm_arena *arena = cm_upgrade_arena(up);
    const cm_value shape = cm_emit(up, "Shape", like);
    const struct cm_type *type = cm_builder_type(&up->build, like);
    bool filled = type && type->rank != CM_RANK_UNKNOWN;
    for (int i = 0; filled && i < type->rank; i++)
        filled = type->dims[i].value > 0;
    if (filled)
        return cm_emit(up, "Reshape", value, shape);
    /* allowzero: an empty dimension is meant as such */
    return cm_emit_with(up, "Reshape", CM_ATTRIBUTES(cm_attr_int(arena, "allowzero", 1)), value,
                        shape);
}

cm_value cm_upgrade_cast(struct cm_upgrade *up, cm_value value, enum cm_dtype to)
{
    struct cm_arena *arena = cm_upgrade_arena(up);
    return cm_emit_with(up, "Cast", CM_ATTRIBUTES(cm_attr_int(arena, "to", (int64_t)to)), value);
}

enum cm_status cm_upgrade_give(struct cm_upgrade *up, cm_value value)
{
    if (up->n_outputs != 1)
        return cm_upgrade_fail(up, CM_BAD_MODEL, "has %zu outputs, must have 1", up->n_outputs);
    up->outputs[0] = value;
    up->done = true;
    return up->build.status;
}
