/* Other names: the same one everywhere, and no two things under one. */
// SPDX-License-Identifier: Apache-2.0
#include "models/edit.h"

#include "onnx/descriptor.h"

#include <string.h>

static const char *const kind_names[] = {"value", "node", "dimension"};

/* ---- all names of a kind ---- */

struct visitor {
    enum cm_renaming_kind kind;
    cm_edit_name_fn *fn;
    void *arg;
};

static void visit_dims(const struct visitor *v, const struct cm_tensor_type_proto *type)
{
    for (size_t i = 0; type && type->shape && i < type->shape->dim.count; i++) {
        struct cm_dim_proto *dim = &type->shape->dim.items[i];
        if (cm_msg_has(&dim->msg, CM_DIM_PARAM) && dim->dim_param.size &&
            v->fn(v->arg, &dim->dim_param))
            cm_msg_set(&dim->msg, CM_DIM_PARAM);
    }
}

static enum cm_status visit_name(void *arg, const struct cm_message_info *info, struct cm_msg *msg)
{
    const struct visitor *v = arg;
    void *any = msg;

    if (v->kind == CM_RENAME_NODE && info == &cm_node_info) {
        struct cm_node_proto *node = any;
        if (node->name.size && v->fn(v->arg, &node->name))
            cm_msg_set(msg, CM_NODE_NAME);
    } else if (v->kind == CM_RENAME_DIM && info == &cm_type_info) {
        const struct cm_type_proto *type = any;
        visit_dims(v, type->tensor_type);
        visit_dims(v, type->sparse_tensor_type);
    }
    return CM_OK;
}

/* Dimensions mean the same in the whole model; names of nodes and values in functions are the
 * functions' own. */
static enum cm_status each_name(struct cm_model_proto *model, struct visitor *v)
{
    if (v->kind == CM_RENAME_VALUE)
        return cm_edit_model_names(model, v->fn, v->arg);
    if (v->kind == CM_RENAME_DIM)
        return cm_message_walk(&cm_model_info, model, visit_name, v);
    struct cm_graph_proto *graph;
    for (size_t at = 0; (graph = cm_model_next_graph(model, &at));)
        CM_TRY(cm_message_walk(&cm_graph_info, graph, visit_name, v));
    return CM_OK;
}

/* ---- what becomes of a name ---- */

struct renamed_name {
    struct cm_str from, to;
};

struct renamer {
    const struct cm_renaming *renamings;
    size_t count;
    size_t *used; /* how many names each renaming is for */
    enum cm_renaming_kind kind;
    struct cm_arena *scratch;
    struct cm_findings *findings;
    struct cm_map numbers; /* every name: 1 + its number */
    CM_ARRAY(struct renamed_name) names;
};

/* The piece of name that '*' stands for; false: the pattern is of other names. */
static bool matches(struct cm_str pattern, struct cm_str name, struct cm_str *piece)
{
    const char *star = pattern.size ? memchr(pattern.data, '*', pattern.size) : NULL;

    *piece = CM_STR_NONE;
    if (!star)
        return cm_str_equal(pattern, name);
    const size_t before = (size_t)(star - pattern.data), after = pattern.size - before - 1;
    if (name.size < before + after || memcmp(name.data, pattern.data, before) != 0 ||
        memcmp(name.data + name.size - after, star + 1, after) != 0)
        return false;
    *piece = (struct cm_str){name.data + before, name.size - before - after};
    return true;
}

static struct cm_str fill(struct cm_arena *arena, struct cm_str pattern, struct cm_str piece)
{
    const char *star = pattern.size ? memchr(pattern.data, '*', pattern.size) : NULL;

    if (!star)
        return cm_arena_str(arena, pattern);
    const size_t before = (size_t)(star - pattern.data), after = pattern.size - before - 1;
    const size_t size = before + piece.size + after;
    char *text = cm_arena_alloc(arena, size + 1);
    memcpy(text, pattern.data, before);
    if (piece.size)
        memcpy(text + before, piece.data, piece.size);
    memcpy(text + before + piece.size, star + 1, after);
    return (struct cm_str){text, size};
}

/* Notes a name when it is first met, with what it becomes. */
static bool note_name(void *arg, struct cm_str *name)
{
    struct renamer *r = arg;
    struct cm_str piece, to = *name;
    bool added;
    uint64_t *number = cm_map_insert(&r->numbers, r->scratch, *name, &added);

    if (!added)
        return false;
    for (size_t i = 0; i < r->count; i++)
        if (r->renamings[i].kind == r->kind && matches(r->renamings[i].from, *name, &piece)) {
            to = fill(r->findings->arena, r->renamings[i].to, piece);
            r->used[i]++;
            break;
        }
    *CM_PUSH(r->scratch, &r->names) = (struct renamed_name){*name, to};
    *number = r->names.count;
    return false;
}

static bool put_name(void *arg, struct cm_str *name)
{
    struct renamer *r = arg;
    const struct renamed_name *row = &r->names.items[cm_map_get(&r->numbers, *name, 1) - 1];

    if (row->to.data == row->from.data || cm_str_equal(row->to, row->from))
        return false;
    *name = row->to;
    return true;
}

static void check_clashes(struct renamer *r)
{
    struct cm_map taken = {0};

    for (size_t i = 0; i < r->names.count; i++) {
        const struct renamed_name *row = &r->names.items[i];
        bool added;
        uint64_t *other = cm_map_insert(&taken, r->scratch, row->to, &added);

        if (!row->to.size)
            cm_findings_refuse(r->findings, "%s '%.*s' would have an empty name",
                               kind_names[r->kind], CM_STR_FMT(row->from));
        else if (!added)
            cm_findings_refuse(r->findings, "%ss '%.*s' and '%.*s' would both be called '%.*s'",
                               kind_names[r->kind], CM_STR_FMT(r->names.items[*other].from),
                               CM_STR_FMT(row->from), CM_STR_FMT(row->to));
        else
            *other = i;
    }
}

static void check_used(const struct renamer *r)
{
    for (size_t i = 0; i < r->count; i++) {
        const struct cm_str from = r->renamings[i].from;
        struct cm_nearest nearest = {.typed = from};

        if (r->renamings[i].kind != r->kind || r->used[i])
            continue;
        for (size_t k = 0; k < r->names.count; k++)
            cm_nearest_try(&nearest, r->names.items[k].from);
        cm_findings_refuse(r->findings, "no %s is called '%.*s'%s", kind_names[r->kind],
                           CM_STR_FMT(from), cm_nearest_hint(&nearest, r->scratch));
    }
}

enum cm_status cm_edit_rename(struct cm_model_file *file, const struct cm_renaming *renamings,
                              size_t count, struct cm_arena *scratch, struct cm_findings *findings,
                              struct cm_error *err)
{
    struct renamer all[3];
    bool asked[3] = {false};

    if (!file->model.graph)
        return cm_fail(err, CM_BAD_MODEL, "the model has no graph");
    for (size_t i = 0; i < count; i++)
        asked[renamings[i].kind] = true;
    for (int kind = 0; kind < 3; kind++) {
        struct renamer *r = &all[kind];
        *r = (struct renamer){.renamings = renamings,
                              .count = count,
                              .used = CM_NEW_ARRAY(scratch, size_t, count),
                              .kind = (enum cm_renaming_kind)kind,
                              .scratch = scratch,
                              .findings = findings};
        if (!asked[kind])
            continue;
        CM_TRY(each_name(&file->model, &(struct visitor){r->kind, note_name, r}));
        check_used(r);
        check_clashes(r);
    }
    CM_TRY(cm_findings_fail(findings, err));
    for (int kind = 0; kind < 3; kind++)
        if (asked[kind])
            CM_TRY(each_name(&file->model,
                             &(struct visitor){(enum cm_renaming_kind)kind, put_name, &all[kind]}));
    return CM_OK;
}
