/* What rows can ask of the node they are used for, and the walk over a graph. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/savedmodel/tf_rows.h"

#include "base/diagnostics.h"
#include "convert/framework_texts.h"
#include "template/template_run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LISTED = 65536 }; /* elements of a constant that an expression may see */

struct row_use {
    struct cm_tf_scope *scope;
    const struct cm_node *node;
    struct cm_error *err;
    enum cm_status status; /* of the first line that failed */
    struct cm_template_run *run;
};

/* ---- names ---- */

void cm_tf_define(struct cm_tf_scope *scope, struct cm_str name, struct cm_tf_tensor tensor)
{
    struct cm_arena *arena = scope->graph->arena;

    *cm_map_insert(&scope->names, arena, cm_arena_str(arena, name), NULL) = scope->tensors.count;
    *CM_PUSH(arena, &scope->tensors) = tensor;
}

struct cm_str cm_tf_value_name(struct cm_tf_scope *scope, cm_value value)
{
    return cm_arena_printf(scope->graph->arena, "%%v%u", (unsigned)value);
}

void cm_tf_set_value(struct cm_tf_scope *scope, cm_value value, struct cm_tf_tensor tensor)
{
    cm_tf_define(scope, cm_tf_value_name(scope, value), tensor);
}

/* Its contents, where they can never change. */
static const struct cm_tensor *contents_of(const struct cm_tf_scope *scope, cm_value value)
{
    const struct cm_value_def *def = cm_value_get(scope->module, value);
    const struct cm_tensor *tensor = def->fact.constant;
    struct cm_error ignored;

    if (tensor || def->is_state || def->role != CM_ROLE_INITIALIZER)
        return tensor;
    return cm_value_constant(scope->module, value, &tensor, &ignored) == CM_OK ? tensor : NULL;
}

static struct cm_tf_tensor make_constant(struct cm_tf_scope *scope, cm_value value)
{
    const struct cm_tensor *tensor = contents_of(scope, value);
    const struct cm_str name = cm_value_get(scope->module, value)->name;

    if (!tensor || !cm_tf_type_of(tensor->type))
        return (struct cm_tf_tensor){0};
    return cm_tf_constant(scope->graph,
                          cm_arena_printf(scope->graph->arena, "%.*s%.*s", CM_STR_ALL(scope->label),
                                          CM_STR_ALL(name.size ? name : CM_STR("Const"))),
                          tensor);
}

struct cm_tf_tensor cm_tf_value(struct cm_tf_scope *scope, cm_value value)
{
    const struct cm_str name = cm_tf_value_name(scope, value);
    const uint64_t *place = cm_map_find(&scope->names, name);
    const struct cm_type *type = cm_value_get(scope->module, value)->fact.type;

    if (place) {
        struct cm_tf_tensor tensor = scope->tensors.items[*place];
        tensor.is_scalar = type->kind == CM_KIND_TENSOR && type->rank == 0;
        return tensor;
    }
    const struct cm_tf_tensor made = make_constant(scope, value);
    if (made.node)
        cm_tf_define(scope, name, made);
    return made;
}

struct cm_tf_tensor cm_tf_find(struct cm_tf_scope *scope, struct cm_str name)
{
    const uint64_t *place = cm_map_find(&scope->names, name);
    int64_t value;

    if (cm_str_starts(name, "%v") && cm_str_to_int64(cm_str_from(name, 2), &value) && value > 0)
        return cm_tf_value(scope, (cm_value)value);
    return place ? scope->tensors.items[*place] : (struct cm_tf_tensor){0};
}

static struct cm_term value_term(struct row_use *use, cm_value value)
{
    if (!value)
        return CM_TERM_ABSENT;
    return (struct cm_term){
        .kind = CM_TERM_VALUE, .i = value, .text = cm_tf_value_name(use->scope, value)};
}

/* Finds the parameter of a name; a variadic one is a list. */
static bool find_param(struct row_use *use, const struct cm_schema_param *params, size_t count,
                       bool is_input, struct cm_str name, struct cm_term *out)
{
    const struct cm_node *node = use->node;
    const int given = is_input ? node->n_inputs : node->n_outputs;

    for (size_t p = 0; p < count; p++) {
        const int first = (int)p;
        if (!cm_str_is(name, params[p].name))
            continue;
        if (params[p].kind != CM_PARAM_VARIADIC) {
            *out = value_term(use,
                              is_input ? cm_node_input(node, first) : cm_node_output(node, first));
            return true;
        }
        const size_t size = given > first ? (size_t)(given - first) : 0;
        struct cm_term *items = CM_NEW_ARRAY(use->scope->graph->arena, struct cm_term, size + 1);
        for (size_t i = 0; i < size; i++)
            items[i] = value_term(use, is_input ? cm_node_input(node, first + (int)i)
                                                : cm_node_output(node, first + (int)i));
        *out = (struct cm_term){.kind = CM_TERM_LIST, .items = items, .count = size};
        return true;
    }
    return false;
}

static bool host_name(void *arg, struct cm_str name, struct cm_term *out)
{
    struct row_use *use = arg;
    const struct cm_schema *schema = use->node->schema;

    if (find_param(use, schema->inputs, schema->input_count, true, name, out) ||
        find_param(use, schema->outputs, schema->output_count, false, name, out))
        return true;
    /* An operator may call a result as it calls an operand: the result is then NAME_out. */
    if (!cm_str_ends(name, "_out"))
        return false;
    name.size -= 4;
    return find_param(use, schema->outputs, schema->output_count, false, name, out);
}

/* ---- attributes and contents ---- */

static struct cm_term float_term(double f)
{
    return (struct cm_term){.kind = CM_TERM_FLOAT, .f = f};
}

static struct cm_term list_term(struct cm_arena *arena, size_t count, struct cm_term **items)
{
    *items = CM_NEW_ARRAY(arena, struct cm_term, count + 1);
    return (struct cm_term){.kind = CM_TERM_LIST, .items = *items, .count = count};
}

static struct cm_term contents_term(struct cm_arena *arena, const struct cm_tensor *tensor)
{
    struct cm_term *items;
    const struct cm_term list = list_term(arena, (size_t)cm_tensor_count(tensor), &items);
    const struct cm_str *texts = tensor->data;

    for (size_t i = 0; i < list.count; i++)
        items[i] = tensor->type == CM_STRING ? cm_term_text(texts[i])
                   : cm_dtype_info(tensor->type)->kind == CM_CLASS_FLOAT
                       ? float_term(cm_tensor_real(tensor, (int64_t)i))
                       : cm_term_int(cm_tensor_int(tensor, (int64_t)i));
    return list;
}

static struct cm_term tensor_attribute(struct row_use *use, struct cm_template_run *run,
                                       const char *name, bool dims)
{
    struct cm_arena *arena = use->scope->graph->arena;
    struct cm_tensor tensor = {0};
    struct cm_error err = {0};
    struct cm_term list = CM_TERM_ABSENT, *items;

    if (cm_node_tensor(use->node, name, &tensor, &err) != CM_OK) {
        cm_template_refuse(run, "%s", err.text);
        return list;
    }
    if (cm_tensor_count(&tensor) > LISTED) {
        cm_template_refuse(run, "attribute '%s' has too many elements", name);
    } else if (dims) {
        list = list_term(arena, (size_t)tensor.shape.rank, &items);
        for (int i = 0; i < tensor.shape.rank; i++)
            items[i] = cm_term_int(tensor.shape.dims[i]);
    } else {
        list = contents_term(arena, &tensor);
        for (size_t i = 0; i < list.count; i++) { /* texts outlive the tensor */
            struct cm_term *item = (struct cm_term *)(uintptr_t)&list.items[i];
            if (item->kind == CM_TERM_TEXT)
                item->text = cm_arena_str(arena, item->text);
        }
    }
    cm_tensor_drop(&tensor);
    return list;
}

static struct cm_term attribute(struct row_use *use, struct cm_template_run *run,
                                struct cm_str name)
{
    struct cm_arena *arena = use->scope->graph->arena;
    const char *text = cm_arena_str(arena, name).data;
    const struct cm_schema *schema = use->node->schema;
    struct cm_term *items, list = CM_TERM_ABSENT;
    size_t i = 0;

    while (i < schema->attr_count && strcmp(schema->attrs[i].name, text) != 0)
        i++;
    if (i == schema->attr_count)
        cm_template_wrong(run, "there is no attribute '%s'", text);
    if (i == schema->attr_count || !cm_node_has_attr(use->node, text))
        return list;
    switch (schema->attrs[i].kind) {
    case CM_SCHEMA_INT:
        return cm_term_int(cm_node_int(use->node, text));
    case CM_SCHEMA_FLOAT:
        return float_term((double)cm_node_float(use->node, text));
    case CM_SCHEMA_STRING:
        return cm_term_text(cm_node_str(use->node, text));
    case CM_SCHEMA_INTS: {
        const struct cm_int64s ints = cm_node_ints(use->node, text);
        list = list_term(arena, ints.count, &items);
        for (size_t k = 0; k < ints.count; k++)
            items[k] = cm_term_int(ints.items[k]);
        return list;
    }
    case CM_SCHEMA_FLOATS: {
        const struct cm_floats floats = cm_node_floats(use->node, text);
        list = list_term(arena, floats.count, &items);
        for (size_t k = 0; k < floats.count; k++)
            items[k] = float_term((double)floats.items[k]);
        return list;
    }
    case CM_SCHEMA_STRINGS: {
        const struct cm_strs strs = cm_node_strs(use->node, text);
        list = list_term(arena, strs.count, &items);
        for (size_t k = 0; k < strs.count; k++)
            items[k] = cm_term_text(strs.items[k]);
        return list;
    }
    case CM_SCHEMA_TENSOR:
        return tensor_attribute(use, run, text, false);
    default:
        return list;
    }
}

/* ---- functions of one value ---- */

static const struct cm_type *type_of(const struct row_use *use, cm_value value)
{
    return cm_value_get(use->scope->module, value)->fact.type;
}

static int64_t rank_of(struct row_use *use, struct cm_template_run *run, cm_value value)
{
    const struct cm_type *type = type_of(use, value);

    if (type->kind == CM_KIND_TENSOR && type->rank != CM_RANK_UNKNOWN)
        return type->rank;
    const struct cm_str name = cm_value_get(use->scope->module, value)->name;
    cm_template_refuse(run, "the rank of '%.*s' is not known", CM_STR_FMT(name));
    return 0;
}

static struct cm_term dims_term(struct row_use *use, struct cm_template_run *run, cm_value value)
{
    struct cm_term *items;
    const int64_t rank = rank_of(use, run, value);
    const struct cm_term list = list_term(use->scope->graph->arena, (size_t)rank, &items);
    const struct cm_type *type = type_of(use, value);

    for (int64_t i = 0; i < rank; i++)
        items[i] = cm_dim_known(type->dims[i]) ? cm_term_int(type->dims[i].value) : CM_TERM_ABSENT;
    return list;
}

static bool of_value(struct row_use *use, struct cm_template_run *run, struct cm_str name,
                     cm_value value, struct cm_term *out)
{
    const struct cm_type *type = type_of(use, value);
    const struct cm_dtype_info *info = cm_dtype_info(type->dtype);

    if (cm_str_is(name, "rank"))
        *out = cm_term_int(rank_of(use, run, value));
    else if (cm_str_is(name, "has_rank"))
        *out = cm_term_int(type->kind == CM_KIND_TENSOR && type->rank != CM_RANK_UNKNOWN);
    else if (cm_str_is(name, "dims"))
        *out = dims_term(use, run, value);
    else if (cm_str_is(name, "type"))
        *out = cm_term_text(cm_str(cm_tf_type_name(cm_tf_type_of(type->dtype))));
    else if (cm_str_is(name, "dtype"))
        *out = cm_term_text(cm_str(info->name));
    else if (cm_str_is(name, "bits"))
        *out = cm_term_int(info->bits);
    else if (cm_str_is(name, "is_float"))
        *out = cm_term_int(info->kind == CM_CLASS_FLOAT);
    else if (cm_str_is(name, "is_unsigned"))
        *out = cm_term_int(info->kind == CM_CLASS_UNSIGNED);
    else if (cm_str_is(name, "const")) {
        const struct cm_tensor *tensor = contents_of(use->scope, value);
        *out = tensor && cm_tensor_count(tensor) <= LISTED
                   ? contents_term(use->scope->graph->arena, tensor)
                   : CM_TERM_ABSENT;
    } else
        return false;
    return true;
}

/* A text of the model as a literal: every byte that could end it is written as \xHH. */
static struct cm_str quoted(struct cm_arena *arena, struct cm_str text)
{
    static const char digits[] = "0123456789abcdef";
    struct cm_bytes out = {.arena = arena};

    cm_bytes_put(&out, "\"", 1);
    for (size_t i = 0; i < text.size; i++) {
        const unsigned char c = (unsigned char)text.data[i];
        const char hex[4] = {'\\', 'x', digits[c >> 4], digits[c & 15]};
        const bool is_plain = c >= ' ' && c < 127 && c != '"' && c != '\\' && c != '%' && c != '$';
        cm_bytes_put(&out, is_plain ? (const char *)&text.data[i] : hex, is_plain ? 1 : 4);
    }
    cm_bytes_put(&out, "\"", 1);
    return cm_bytes_str(&out);
}

/* An equation with its result spelled out, as TensorFlow wants it: letters that stand once, in
 * alphabetical order, after "..." if there is one. */
static struct cm_str full_equation(struct cm_arena *arena, struct cm_str equation)
{
    size_t counts[128] = {0};
    struct cm_bytes out = {.arena = arena};
    bool has_arrow = false, has_dots = false;

    for (size_t i = 0; i < equation.size; i++) {
        const char c = equation.data[i];
        if (c == ' ')
            continue;
        cm_bytes_put(&out, &c, 1);
        has_arrow |= c == '>';
        has_dots |= c == '.';
        counts[c & 127] += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    }
    if (has_arrow)
        return cm_bytes_str(&out);
    cm_bytes_text(&out, has_dots ? CM_STR("->...") : CM_STR("->"));
    for (char c = 'A'; c <= 'z'; c++)
        if (counts[(int)c] == 1)
            cm_bytes_put(&out, &c, 1);
    return cm_bytes_str(&out);
}

static struct cm_term texts_term(struct cm_arena *arena, const struct cm_term *list)
{
    struct cm_term *items;
    const struct cm_term out = list_term(arena, list->count, &items);

    for (size_t i = 0; i < list->count; i++)
        items[i] = list->items[i].kind == CM_TERM_TEXT
                       ? cm_term_text(quoted(arena, list->items[i].text))
                       : list->items[i];
    return out;
}

static struct cm_term host_call(void *arg, struct cm_template_run *run, struct cm_str name,
                                const struct cm_term *args, size_t count, bool *known)
{
    struct row_use *use = arg;
    struct cm_arena *arena = use->scope->graph->arena;
    const struct cm_term *a = count > 0 ? &args[0] : NULL, *b = count > 1 ? &args[1] : NULL;
    struct cm_term out = CM_TERM_ABSENT;

    if (cm_str_is(name, "has") && count == 1)
        return cm_term_int(a->kind == CM_TERM_VALUE || (a->kind == CM_TERM_LIST && a->count));
    if (cm_str_is(name, "attr") && count == 1 && a->kind == CM_TERM_TEXT)
        return attribute(use, run, a->text);
    if (cm_str_is(name, "attr_dims") && count == 1 && a->kind == CM_TERM_TEXT)
        return tensor_attribute(use, run, cm_arena_str(arena, a->text).data, true);
    if (cm_str_is(name, "text") && count == 1 && a->kind == CM_TERM_TEXT)
        return cm_term_text(quoted(arena, a->text));
    if (cm_str_is(name, "texts") && count == 1 && a->kind == CM_TERM_LIST)
        return texts_term(arena, a);
    if (cm_str_is(name, "equation") && count == 1 && a->kind == CM_TERM_TEXT)
        return cm_term_text(full_equation(arena, a->text));
    if (cm_str_is(name, "letters") && count == 1 && a->kind == CM_TERM_INT && a->i < 20)
        return cm_term_text(cm_arena_printf(arena, "%.*s", (int)a->i, "abcdefghijklmnopqrst"));
    if (cm_str_is(name, "type_named") && count == 1 && a->kind == CM_TERM_INT)
        return cm_term_text(cm_str(cm_tf_type_name(cm_tf_type_of((enum cm_dtype)a->i))));
    if (cm_str_is(name, "sqrt") && count == 1)
        return float_term(sqrt(a->kind == CM_TERM_INT ? (double)a->i : a->f));
    if (count && a->kind == CM_TERM_VALUE) {
        if (count == 1 && of_value(use, run, name, (cm_value)a->i, &out))
            return out;
        if (count == 2 && cm_str_is(name, "dim") && b->kind == CM_TERM_INT) {
            const struct cm_term dims = dims_term(use, run, (cm_value)a->i);
            return b->i >= 0 && (size_t)b->i < dims.count ? dims.items[b->i] : out;
        }
    }
    *known = false;
    return out;
}

static void host_emit(void *arg, struct cm_str line)
{
    struct row_use *use = arg;

    if (use->status == CM_OK)
        use->status = cm_tf_line(use->scope, line, use->err);
}

static const struct cm_template_text *host_macro(void *arg, struct cm_str name)
{
    (void)arg;
    return cm_framework_text("tensorflow", CM_STR_NONE, name);
}

static bool host_directive(void *arg, struct cm_template_run *run, struct cm_str line)
{
    (void)arg, (void)run, (void)line;
    return false;
}

static struct cm_str print_float(struct cm_template_run *run, double value)
{
    char text[40];

    if (isnan(value))
        return CM_STR("nan");
    if (isinf(value))
        return value > 0 ? CM_STR("inf") : CM_STR("-inf");
    const int size = cm_format(text, sizeof text, "%.17g", value);
    const bool is_whole = !memchr(text, '.', (size_t)size) && !memchr(text, 'e', (size_t)size);
    return cm_arena_printf(run->use->arena, "%s%s", text, is_whole ? ".0" : "");
}

/* ---- rows ---- */

static const struct cm_template_text *find_row(struct cm_str domain, struct cm_str op_type)
{
    return cm_framework_row("tensorflow", domain, op_type);
}

bool cm_tf_has_row(struct cm_str domain, struct cm_str op_type)
{
    return find_row(domain, op_type) || cm_tf_is_control_flow(domain, op_type);
}

/* Are the results there, of the types that the graph has for them? */
static enum cm_status check_results(struct cm_tf_scope *scope, const struct cm_node *node,
                                    struct cm_error *err)
{
    for (int o = 0; o < node->n_outputs; o++) {
        const cm_value value = node->outputs[o];
        if (!value || !cm_value_get(scope->module, value)->uses)
            continue;
        const struct cm_tf_tensor tensor = cm_tf_value(scope, value);
        const struct cm_type *type = cm_value_get(scope->module, value)->fact.type;
        if (!tensor.node)
            return cm_fail(err, CM_UNSUPPORTED, "its row has no result %d", o);
        if (type->kind == CM_KIND_TENSOR && tensor.type != cm_tf_type_of(type->dtype))
            return cm_fail(err, CM_UNSUPPORTED, "its row gives %s for result %d, which is %s",
                           cm_tf_type_name(tensor.type), o, cm_dtype_name(type->dtype));
    }
    return CM_OK;
}

/* The node by its row. */
static enum cm_status put_row(struct cm_tf_scope *scope, const struct cm_node *node,
                              struct cm_error *err)
{
    const struct cm_template_text *text = find_row(node->domain, node->op_type);
    struct row_use use = {.scope = scope, .node = node, .err = err};
    struct cm_template_host host = {
        .arg = &use,
        .sigil = "%",
        .macro = host_macro,
        .name = host_name,
        .call = host_call,
        .emit = host_emit,
        .directive = host_directive,
        .print_float = print_float,
    };
    const struct cm_template_use expansion = {
        .text = text,
        .prefix = cm_arena_printf(scope->graph->arena, "n%zu", ++scope->writer->n_uses),
        .host = &host,
        .arena = scope->graph->arena,
    };

    if (!text)
        return cm_fail(err, CM_UNSUPPORTED, "TensorFlow has no row for it yet");
    const enum cm_status status = cm_template_expand(&expansion, err);
    if (use.status)
        return cm_error_context(err, use.status, "row '%s'", text->name);
    CM_TRY(status);
    return check_results(scope, node, err);
}

/* ---- graphs ---- */

/* A result whose contents are known is a constant: nobody reads what the node computes. */
static bool is_needed(const struct cm_tf_scope *scope, const struct cm_node *node)
{
    for (int o = 0; o < node->n_outputs; o++)
        if (node->outputs[o] && !contents_of(scope, node->outputs[o]) &&
            cm_value_get(scope->module, node->outputs[o])->uses)
            return true;
    return false;
}

static enum cm_status check_value(const struct cm_tf_scope *scope, cm_value value,
                                  struct cm_error *err)
{
    const struct cm_type *type = value ? cm_value_get(scope->module, value)->fact.type : NULL;

    if (!type || type->kind == CM_KIND_NONE)
        return CM_OK;
    if (type->kind != CM_KIND_TENSOR)
        return cm_fail(err, CM_UNSUPPORTED,
                       "sequences, optionals and maps are not written to a SavedModel yet");
    if (!cm_tf_type_of(type->dtype))
        return cm_fail(err, CM_UNSUPPORTED, "TensorFlow has no type for %s",
                       cm_dtype_name(type->dtype));
    return CM_OK;
}

static enum cm_status put_one(struct cm_tf_scope *scope, const struct cm_node *node,
                              struct cm_error *err)
{
    if (!is_needed(scope, node))
        return CM_OK;
    for (int i = 0; i < node->n_inputs; i++)
        CM_TRY(check_value(scope, node->inputs[i].value, err));
    for (int o = 0; o < node->n_outputs; o++)
        CM_TRY(check_value(scope, node->outputs[o], err));
    scope->at = node->name.size ? node->name : node->op_type;
    return cm_tf_is_control_flow(node->domain, node->op_type) ? cm_tf_control_flow(scope, node, err)
                                                              : put_row(scope, node, err);
}

enum cm_status cm_tf_nodes(struct cm_tf_scope *scope, struct cm_graph *graph, struct cm_error *err)
{
    enum cm_status status = CM_OK;

    for (const struct cm_node *node = graph->first; node; node = node->next) {
        struct cm_error one = {0};
        const size_t before = scope->writer->findings->total;

        if (put_one(scope, node, &one) == CM_OK)
            continue;
        /* The findings name what is missing in a body already. */
        if (scope->writer->findings->total == before)
            cm_findings_add(scope->writer->findings, one.status,
                            cm_arena_str(scope->writer->arena, cm_str(cm_node_describe(node).text)),
                            "%s", one.text);
        if (status == CM_OK && err)
            *err = one;
        status = status ? status : one.status;
        for (int o = 0; o < node->n_outputs; o++) {
            const struct cm_type *type =
                node->outputs[o] ? cm_value_get(scope->module, node->outputs[o])->fact.type : NULL;
            if (!type || type->kind != CM_KIND_TENSOR || !cm_tf_type_of(type->dtype))
                continue;
            /* A stand-in, so that all that is missing is found. */
            struct cm_tf_node *stand_in = cm_tf_add(scope->graph, "Placeholder", CM_STR("missing"));
            cm_tf_set_value(
                scope, node->outputs[o],
                cm_tf_output(scope->graph, stand_in, "output", cm_tf_type_of(type->dtype)));
        }
    }
    return status;
}
