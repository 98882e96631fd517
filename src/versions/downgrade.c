/* Going down from an operator's version to an older one, one row at a time. A version without a row
 * that old nodes did not notice needs no step: attributes that the older version does not know are
 * left out where they say what it does anyway, and what is then not legal is refused. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/downgrade_step.h"

#include "versions/upgrade.h"

#include <string.h>

static const struct cm_upgrade_table *const tables[] = {
    &cm_downgrade_elementwise, &cm_downgrade_shape,  &cm_downgrade_reduce,
    &cm_downgrade_nn,          &cm_downgrade_resize, &cm_downgrade_ml,
};

static bool is_default(const struct cm_attribute_proto *attr, const struct cm_schema_attr *known)
{
    const struct cm_schema_default *preset = known ? known->preset : NULL;
    if (!preset || (int)attr->type != (int)known->kind)
        return false;
    switch (known->kind) {
    case CM_SCHEMA_INT:
        return attr->i == preset->i;
    case CM_SCHEMA_FLOAT:
        return attr->f == preset->f;
    case CM_SCHEMA_STRING:
        return cm_str_is(attr->s, preset->s);
    case CM_SCHEMA_INTS:
        return attr->ints.count == preset->count &&
               (!preset->count ||
                memcmp(attr->ints.items, preset->ints, preset->count * sizeof *preset->ints) == 0);
    default:
        return false;
    }
}

/* What the version that is left does by default, and the older one would do otherwise, is said. */
static void say_default(struct cm_upgrade *down, const struct cm_schema_attr *attr,
                        const struct cm_schema_default *older)
{
    struct cm_arena *arena = cm_upgrade_arena(down);
    const struct cm_schema_default *preset = attr->preset;
    if (attr->kind == CM_SCHEMA_INT && (!older || older->i != preset->i))
        cm_upgrade_set(down, cm_attr_int(arena, attr->name, preset->i));
    else if (attr->kind == CM_SCHEMA_FLOAT && (!older || older->f != preset->f))
        cm_upgrade_set(down, cm_attr_float(arena, attr->name, preset->f));
    else if (attr->kind == CM_SCHEMA_STRING && (!older || strcmp(older->s, preset->s) != 0))
        cm_upgrade_set(down, cm_attr_str(arena, attr->name, cm_str(preset->s)));
}

static void fit_attributes(struct cm_upgrade *down, const struct cm_schema *left,
                           const struct cm_schema *older)
{
    for (size_t i = 0; i < left->attr_count; i++) {
        const struct cm_schema_attr *attr = &left->attrs[i];
        const struct cm_schema_attr *known = cm_schema_find_attr(older, cm_str(attr->name));
        if (known && known->kind == attr->kind && attr->preset &&
            !cm_upgrade_given(down, attr->name))
            say_default(down, attr, known->preset);
    }
    for (size_t i = down->spec->n_attributes; i-- > 0;) {
        const struct cm_attribute_proto *attr = &down->spec->attributes[i];
        if (!cm_schema_find_attr(older, attr->name) &&
            is_default(attr, cm_schema_find_attr(left, attr->name)))
            cm_upgrade_drop(down, cm_arena_str(cm_upgrade_arena(down), attr->name).data);
    }
}

enum cm_status cm_downgrade_walk(struct cm_upgrade *down)
{
    while (!down->done && down->node.schema->since_version > down->opset) {
        const struct cm_schema *left = down->node.schema;
        const int from = left->since_version;
        const struct cm_upgrade_row *row = cm_upgrade_find_row(
            tables, CM_COUNT(tables), down->spec->domain, down->spec->op_type, from);
        down->next = cm_upgrade_schema_at(down, from - 1);
        if (!row && !down->next)
            return cm_upgrade_fail(down, CM_UNSUPPORTED, "%s is an operator since opset %d",
                                   left->name, from);
        if (!row && !cm_upgrade_changes_little(down->spec->domain, down->spec->op_type, from))
            return cm_upgrade_fail(down, CM_UNSUPPORTED,
                                   "%s version %d cannot be written as version %d", left->name,
                                   from, down->next->since_version);
        cm_upgrade_note_row(down, row ? row->note : NULL);
        if (row && row->step)
            CM_TRY(cm_upgrade_take_step(down, row->step));
        if (down->done)
            break;
        if (!down->next)
            return cm_upgrade_fail(down, CM_UNSUPPORTED, "%s is an operator since opset %d",
                                   left->name, from);
        fit_attributes(down, left, down->next);
        down->node.schema = down->next;
    }
    return down->done ? CM_OK : cm_upgrade_add(down);
}

/* ---- what steps share ---- */

enum cm_status cm_downgrade_constant(struct cm_upgrade *down, size_t i, const char *what,
                                     const struct cm_tensor **out)
{
    const cm_value value = cm_upgrade_input(down, i);
    *out = NULL;
    if (!value)
        return CM_OK;
    CM_TRY(cm_value_constant(down->build.graph->module, value, out, down->build.err));
    if (!*out)
        return cm_upgrade_fail(down, CM_UNSUPPORTED,
                               "%s version %d needs '%s' to be constant, which it is not here",
                               down->next ? down->next->name : down->node.schema->name,
                               down->next ? down->next->since_version : 0, what);
    return CM_OK;
}

enum cm_status cm_downgrade_ints(struct cm_upgrade *down, size_t i, const char *what,
                                 struct cm_int64s *out)
{
    const struct cm_tensor *tensor;
    *out = (struct cm_int64s){NULL, 0};
    CM_TRY(cm_downgrade_constant(down, i, what, &tensor));
    if (!tensor)
        return CM_OK;
    if (cm_tensor_count(tensor) > LIST_MAX || tensor->type == CM_STRING)
        return cm_upgrade_fail(down, CM_UNSUPPORTED, "'%s' is not a short list of numbers", what);
    out->count = (size_t)cm_tensor_count(tensor);
    out->items = CM_NEW_ARRAY(cm_upgrade_arena(down), int64_t, out->count ? out->count : 1);
    for (size_t k = 0; k < out->count; k++)
        out->items[k] = cm_tensor_int(tensor, (int64_t)k);
    return CM_OK;
}

enum cm_status cm_downgrade_to_attribute(struct cm_upgrade *down, size_t i, const char *name)
{
    struct cm_int64s list;
    const bool given = cm_upgrade_input(down, i) != 0;
    CM_TRY(cm_downgrade_ints(down, i, name, &list));
    if (given) {
        cm_upgrade_set(down, cm_attr_ints(cm_upgrade_arena(down), name, list.count, list.items));
        cm_upgrade_set_input(down, i, 0);
    }
    return CM_OK;
}

static enum cm_status count_axis(struct cm_upgrade *down, size_t input, int extra, int64_t *axis)
{
    const int rank = cm_upgrade_rank(down, input);
    if (*axis >= 0)
        return CM_OK;
    if (rank == CM_RANK_UNKNOWN)
        return cm_upgrade_fail(down, CM_UNSUPPORTED,
                               "%s version %d cannot count axes from the end, and the rank is not "
                               "known",
                               down->next ? down->next->name : down->node.schema->name,
                               down->next ? down->next->since_version : 0);
    *axis += rank + extra;
    return CM_OK;
}

enum cm_status cm_downgrade_axis(struct cm_upgrade *down, const char *name, int extra)
{
    struct cm_arena *arena = cm_upgrade_arena(down);
    const struct cm_schema_attr *attr = cm_schema_find_attr(down->node.schema, cm_str(name));
    if (attr && attr->kind == CM_SCHEMA_INTS) {
        const struct cm_int64s given = cm_node_ints(&down->node, name);
        int64_t *axes = CM_NEW_ARRAY(arena, int64_t, given.count ? given.count : 1);
        bool changed = false;
        for (size_t i = 0; i < given.count; i++) {
            axes[i] = given.items[i];
            changed = changed || axes[i] < 0;
            CM_TRY(count_axis(down, 0, extra, &axes[i]));
        }
        if (changed)
            cm_upgrade_set(down, cm_attr_ints(arena, name, given.count, axes));
        return CM_OK;
    }
    if (!cm_upgrade_given(down, name))
        return CM_OK; /* a default that differs is said in any case */
    int64_t axis = cm_node_int(&down->node, name);
    if (axis >= 0)
        return CM_OK;
    CM_TRY(count_axis(down, 0, extra, &axis));
    cm_upgrade_set(down, cm_attr_int(arena, name, axis));
    return CM_OK;
}

enum cm_status cm_downgrade_one_axis(struct cm_upgrade *down)
{
    return cm_downgrade_axis(down, "axis", 0);
}

enum cm_status cm_downgrade_axes(struct cm_upgrade *down)
{
    return cm_downgrade_axis(down, "axes", 0);
}

enum cm_status cm_downgrade_nothing(struct cm_upgrade *down)
{
    (void)down;
    return CM_OK;
}

enum cm_status cm_downgrade_refuse_word(struct cm_upgrade *down, const char *attribute,
                                        const char *word)
{
    if (cm_str_is(cm_node_str(&down->node, attribute), word))
        return cm_upgrade_fail(down, CM_UNSUPPORTED,
                               "attribute '%s' can be '%s' since version %d only", attribute, word,
                               down->node.schema->since_version);
    return CM_OK;
}
