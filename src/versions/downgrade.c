/* Going down from an operator's version to an older one, one row at a time. A version without a row
 * that old nodes did not notice needs no step: attributes that the older version does not know are
 * left out where they say what it does anyway, and what is then not legal is refused. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/upgrade.h"
#include "versions/upgrade_step.h"

#include <string.h>

const struct cm_new_word *cm_version_new_word(const struct cm_node *node, int to)
{
    static const struct cm_new_word words[] = {
        {"Pad", 19, "mode", "wrap"},
        {"Resize", 19, "coordinate_transformation_mode", "half_pixel_symmetric"},
        {"RoiAlign", 16, "coordinate_transformation_mode", "half_pixel"},
        {"ScatterElements", 18, "reduction", "max"},
        {"ScatterElements", 18, "reduction", "min"},
        {"ScatterND", 18, "reduction", "max"},
        {"ScatterND", 18, "reduction", "min"},
    };
    for (size_t i = 0; i < CM_COUNT(words); i++)
        if (words[i].to == to && cm_str_is(node->op_type, words[i].op) &&
            cm_str_is(cm_node_str(node, words[i].attribute), words[i].word))
            return &words[i];
    return NULL;
}

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

static bool has_way_down(const struct cm_version_row *row)
{
    return row && (row->down || row->moved[0].attribute || (row->gone && !row->up));
}

bool cm_downgrade_known(struct cm_str domain, struct cm_str op, int to)
{
    return has_way_down(cm_version_find_row(domain, op, to)) ||
           cm_upgrade_known(domain, op, to) == CM_UPGRADE_SAME;
}

static enum cm_status move_to_attribute(struct cm_upgrade *down, const struct cm_moved *moved)
{
    const size_t i = moved->operand;
    struct cm_int64s list;
    if (moved->form == CM_MOVED_REAL || moved->form == CM_MOVED_REAL_OR_0)
        return cm_downgrade_real(down, i, moved->attribute);
    const bool given = cm_upgrade_input(down, i) != 0;
    CM_TRY(cm_downgrade_ints(down, i, moved->attribute, &list));
    if (moved->form == CM_MOVED_COUNT && list.count != 1)
        return cm_upgrade_fail(down, CM_BAD_MODEL, "input %zu must be one number", i);
    if (!given)
        return CM_OK;
    struct cm_arena *arena = cm_upgrade_arena(down);
    cm_upgrade_set(down, moved->form == CM_MOVED_COUNT
                             ? cm_attr_int(arena, moved->attribute, list.items[0])
                             : cm_attr_ints(arena, moved->attribute, list.count, list.items));
    cm_upgrade_set_input(down, i, 0);
    return CM_OK;
}

static enum cm_status take_row(struct cm_upgrade *down, const struct cm_version_row *row)
{
    cm_upgrade_note_row(down, row->down_note);
    CM_TRY(cm_upgrade_check_tensors(down));
    for (size_t i = 0; i < CM_COUNT(row->moved) && row->moved[i].attribute; i++)
        CM_TRY(move_to_attribute(down, &row->moved[i]));
    if (row->down)
        CM_TRY(row->down(down));
    return down->build.status;
}

static enum cm_status fail_younger(struct cm_upgrade *down)
{
    return cm_upgrade_fail(down, CM_UNSUPPORTED, "%s is an operator since opset %d",
                           down->node.schema->name, down->node.schema->since_version);
}

enum cm_status cm_downgrade_walk(struct cm_upgrade *down)
{
    while (!down->done && down->node.schema->since_version > down->opset) {
        const struct cm_schema *left = down->node.schema;
        const int from = left->since_version;
        const struct cm_version_row *row =
            cm_version_find_row(down->spec->domain, down->spec->op_type, from);
        const struct cm_new_word *word = cm_version_new_word(&down->node, from);
        down->next = cm_upgrade_schema_at(down, from - 1);
        if (!has_way_down(row) && !down->next)
            return fail_younger(down);
        if (!cm_downgrade_known(down->spec->domain, down->spec->op_type, from))
            return cm_upgrade_fail(down, CM_UNSUPPORTED,
                                   "%s version %d cannot be written as version %d", left->name,
                                   from, down->next->since_version);
        if (word)
            return cm_upgrade_fail(down, CM_UNSUPPORTED,
                                   "attribute '%s' can be '%s' since version %d only",
                                   word->attribute, word->word, from);
        if (has_way_down(row))
            CM_TRY(take_row(down, row));
        if (down->done)
            break;
        if (!down->next)
            return fail_younger(down);
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

enum cm_status cm_downgrade_real(struct cm_upgrade *down, size_t i, const char *name)
{
    const struct cm_tensor *number;
    CM_TRY(cm_downgrade_constant(down, i, name, &number));
    if (number && cm_tensor_count(number) == 1)
        cm_upgrade_set(
            down, cm_attr_float(cm_upgrade_arena(down), name, (float)cm_tensor_real(number, 0)));
    cm_upgrade_set_input(down, i, 0);
    return CM_OK;
}

static enum cm_status count_axis(struct cm_upgrade *down, int extra, int64_t *axis)
{
    const int rank = cm_upgrade_rank(down, 0);
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
    const struct cm_attribute_proto *given = cm_node_attr(&down->node, name);
    if (!given)
        return CM_OK; /* a default that differs is said in any case */
    if (given->type == CM_ATTR_INT) {
        int64_t axis = given->i;
        CM_TRY(count_axis(down, extra, &axis));
        if (axis != given->i)
            cm_upgrade_set(down, cm_attr_int(arena, name, axis));
        return CM_OK;
    }
    struct cm_attribute_proto counted =
        cm_attr_ints(arena, name, given->ints.count, given->ints.items);
    bool changed = false;
    for (size_t i = 0; i < counted.ints.count; i++) {
        changed = changed || counted.ints.items[i] < 0;
        CM_TRY(count_axis(down, extra, &counted.ints.items[i]));
    }
    if (changed)
        cm_upgrade_set(down, counted);
    return CM_OK;
}

enum cm_status cm_downgrade_axes(struct cm_upgrade *down)
{
    CM_TRY(cm_downgrade_axis(down, "axis", 0));
    return cm_downgrade_axis(down, "axes", 0);
}

enum cm_status cm_downgrade_nothing(struct cm_upgrade *down)
{
    (void)down;
    return CM_OK;
}
