/* What rows can ask of the node they are used for; docs/handover.md has the list. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/code/code_state.h"

#include "template/template_run.h"

#include <stdio.h>
#include <string.h>

enum { CONTENTS_MAX = 65536 };

/* ---- operands and results by the names of the schema ---- */

static struct cm_term value_term(struct cm_code *code, cm_value value)
{
    if (!value)
        return CM_TERM_ABSENT;
    return (struct cm_term){.kind = CM_TERM_VALUE, .i = value, .text = cm_code_value(code, value)};
}

static struct cm_term list_term(struct cm_code *code, size_t count, struct cm_term **items)
{
    *items = CM_NEW_ARRAY(code->arena, struct cm_term, count + 1);
    return (struct cm_term){.kind = CM_TERM_LIST, .items = *items, .count = count};
}

static cm_value operand(const struct cm_node *node, bool is_input, int i)
{
    return is_input ? cm_node_input(node, i) : cm_node_output(node, i);
}

static bool find_param(struct cm_code *code, bool is_input, struct cm_str name, struct cm_term *out)
{
    const struct cm_node *node = code->node;
    const struct cm_schema *schema = node->schema;
    const struct cm_schema_param *params = is_input ? schema->inputs : schema->outputs;
    const size_t count = is_input ? schema->input_count : schema->output_count;
    const int given = is_input ? node->n_inputs : node->n_outputs;

    for (size_t p = 0; p < count; p++) {
        const int first = (int)p;
        struct cm_term *items;

        if (!cm_str_is(name, params[p].name))
            continue;
        if (params[p].kind != CM_PARAM_VARIADIC) {
            *out = value_term(code, operand(node, is_input, first));
            return true;
        }
        *out = list_term(code, given > first ? (size_t)(given - first) : 0, &items);
        for (size_t i = 0; i < out->count; i++)
            items[i] = value_term(code, operand(node, is_input, first + (int)i));
        return true;
    }
    return false;
}

/* An operator may call a result as it calls an operand: the result is then NAME_out. */
static bool host_name(void *arg, struct cm_str name, struct cm_term *out)
{
    struct cm_code *code = arg;

    if (find_param(code, true, name, out) || find_param(code, false, name, out))
        return true;
    if (name.size > 4 && cm_str_ends(name, "_out")) {
        name.size -= 4;
        return find_param(code, false, name, out);
    }
    return false;
}

static struct cm_str own_var(struct cm_code *code, struct cm_str prefix, struct cm_str name)
{
    const struct cm_str key =
        cm_arena_printf(code->arena, "%.*s %.*s", CM_STR_ALL(prefix), CM_STR_ALL(name));
    bool added;
    uint64_t *number = cm_map_insert(&code->own_vars, code->arena, key, &added);

    if (added)
        *number = cm_code_new_var(code, cm_code_identifier(code->arena, name));
    return cm_code_ref(code, CM_CODE_VAR, (size_t)*number);
}

static struct cm_str host_own(void *arg, struct cm_str prefix, struct cm_str name)
{
    return own_var(arg, prefix, name);
}

/* ---- attributes and contents as terms ---- */

static struct cm_term float_term(double f)
{
    return (struct cm_term){.kind = CM_TERM_FLOAT, .f = f};
}

/* A text of the model that rows may compare and put into lines: one of letters, digits, '_' alone
 * stays as it is, every other becomes a literal. */
static struct cm_term safe_text(struct cm_code *code, struct cm_str text)
{
    bool is_plain = text.size <= 64;

    for (size_t i = 0; i < text.size && is_plain; i++)
        is_plain = cm_template_is_name(text.data[i]);
    return cm_term_text(is_plain ? text : cm_code_string(code->arena, text, false));
}

static struct cm_term literals(struct cm_code *code, const struct cm_tensor *tensor)
{
    const enum cm_dtype_class kind = cm_dtype_info(tensor->type)->kind;
    struct cm_term *items;
    const struct cm_term list = list_term(code, (size_t)cm_tensor_count(tensor), &items);

    for (size_t i = 0; i < list.count; i++)
        if (kind == CM_CLASS_FLOAT)
            items[i] = float_term(cm_tensor_real(tensor, (int64_t)i));
        else if (kind == CM_CLASS_NONE || kind == CM_CLASS_COMPLEX)
            items[i] = cm_term_text(cm_code_element(code->arena, tensor, (int64_t)i));
        else
            items[i] = cm_term_int(cm_tensor_int(tensor, (int64_t)i));
    return list;
}

/* NULL: it cannot be read, and the reason is the refusal of the row. */
static const struct cm_tensor *load_attribute(struct cm_code *code, const char *name,
                                              struct cm_template_run *run)
{
    struct cm_tensor *tensor = CM_NEW(code->arena, struct cm_tensor);
    struct cm_error why = {0};

    if (cm_node_tensor(code->node, name, tensor, &why) != CM_OK) {
        cm_template_refuse(run, "%s", why.text);
        return NULL;
    }
    cm_tensor_defer(code->arena, tensor);
    return tensor;
}

static const struct cm_schema_attr *find_attr(struct cm_code *code, struct cm_str name)
{
    const struct cm_schema *schema = code->node->schema;

    for (size_t i = 0; i < schema->attr_count; i++)
        if (cm_str_is(name, schema->attrs[i].name))
            return &schema->attrs[i];
    return NULL;
}

/* is_literal: texts as Python literals, whatever they are. */
static struct cm_term attribute(struct cm_code *code, struct cm_template_run *run,
                                struct cm_str name, bool is_literal)
{
    const struct cm_schema_attr *attr = find_attr(code, name);
    const struct cm_node *node = code->node;
    struct cm_term *items, list = CM_TERM_ABSENT;

    if (!attr) {
        cm_template_wrong(run, "there is no attribute '%.*s'", CM_STR_FMT(name));
        return list;
    }
    if (!cm_node_has_attr(node, attr->name))
        return list;
    switch (attr->kind) {
    case CM_SCHEMA_INT:
        return cm_term_int(cm_node_int(node, attr->name));
    case CM_SCHEMA_FLOAT:
        return float_term((double)cm_node_float(node, attr->name));
    case CM_SCHEMA_STRING: {
        const struct cm_str text = cm_node_str(node, attr->name);
        return is_literal ? cm_term_text(cm_code_string(code->arena, text, false))
                          : safe_text(code, text);
    }
    case CM_SCHEMA_INTS: {
        const struct cm_int64s ints = cm_node_ints(node, attr->name);
        list = list_term(code, ints.count, &items);
        for (size_t k = 0; k < ints.count; k++)
            items[k] = cm_term_int(ints.items[k]);
        return list;
    }
    case CM_SCHEMA_FLOATS: {
        const struct cm_floats floats = cm_node_floats(node, attr->name);
        list = list_term(code, floats.count, &items);
        for (size_t k = 0; k < floats.count; k++)
            items[k] = float_term((double)floats.items[k]);
        return list;
    }
    case CM_SCHEMA_STRINGS: {
        const struct cm_strs strs = cm_node_strs(node, attr->name);
        list = list_term(code, strs.count, &items);
        for (size_t k = 0; k < strs.count; k++)
            items[k] = is_literal ? cm_term_text(cm_code_string(code->arena, strs.items[k], false))
                                  : safe_text(code, strs.items[k]);
        return list;
    }
    case CM_SCHEMA_TENSOR: {
        const struct cm_tensor *tensor = load_attribute(code, attr->name, run);
        return tensor ? literals(code, tensor) : list;
    }
    default:
        return list;
    }
}

/* The ONNX number of the element type of a tensor that is an attribute. */
static struct cm_term attribute_type(struct cm_code *code, struct cm_template_run *run,
                                     struct cm_str name)
{
    const struct cm_schema_attr *attr = find_attr(code, name);

    if (!attr || attr->kind != CM_SCHEMA_TENSOR || !cm_node_has_attr(code->node, attr->name))
        return CM_TERM_ABSENT;
    const struct cm_tensor *tensor = load_attribute(code, attr->name, run);
    return tensor ? cm_term_int(tensor->type) : CM_TERM_ABSENT;
}

/* ---- sizes ---- */

/* Where a size can be read: at an operand of the node, or at an input of the graph. */
static struct cm_str read_size(struct cm_code *code, cm_value value, int axis)
{
    const struct cm_str ref = cm_code_value(code, value);
    const char *format = code->to->size_format;
    struct cm_code_text out = {0};

    for (; *format; format++)
        if (format[0] == '%' && format[1] == 's') {
            cm_code_put(code, &out, ref);
            format++;
        } else if (format[0] == '%' && format[1] == 'd') {
            cm_code_putf(code, &out, "%d", axis);
            format++;
        } else {
            *CM_PUSH(code->arena, &out) = *format;
        }
    return cm_code_text_str(&out);
}

static bool size_in(struct cm_code *code, cm_value value, uint32_t symbol, struct cm_str *out)
{
    const struct cm_type *type = value ? cm_code_type_of(code, value) : NULL;

    if (!type || type->kind != CM_KIND_TENSOR || type->dtype == CM_STRING)
        return false;
    for (int a = 0; a < type->rank; a++)
        if (!cm_dim_known(type->dims[a]) && type->dims[a].symbol == symbol) {
            *out = read_size(code, value, a);
            return true;
        }
    return false;
}

static struct cm_term symbol_term(struct cm_code *code, uint32_t symbol)
{
    struct cm_str out;

    if (!symbol)
        return CM_TERM_ABSENT;
    for (int i = 0; i < code->node->n_inputs; i++)
        if (size_in(code, code->node->inputs[i].value, symbol, &out))
            return cm_term_text(out);
    for (size_t i = 0; i < code->graph->n_inputs; i++)
        if (size_in(code, code->graph->inputs[i], symbol, &out))
            return cm_term_text(out);
    return CM_TERM_ABSENT;
}

/* The sizes of a value as far as code can say them: numbers, and texts that read a size elsewhere.
 */
static struct cm_term sizes_term(struct cm_code *code, const struct cm_type *type)
{
    struct cm_term *items;

    if (type->kind != CM_KIND_TENSOR || type->rank < 0)
        return CM_TERM_ABSENT;
    const struct cm_term list = list_term(code, (size_t)type->rank, &items);
    for (size_t i = 0; i < list.count; i++)
        items[i] = cm_dim_known(type->dims[i]) ? cm_term_int(type->dims[i].value)
                                               : symbol_term(code, type->dims[i].symbol);
    return list;
}

/* The elements of a list of sizes, where code can say them all. */
static struct cm_term ints_term(struct cm_code *code, cm_value value)
{
    const struct cm_tensor *contents = cm_code_contents(code, value);
    const struct cm_known *known = cm_value_get(code->module, value)->fact.known;
    struct cm_term *items;

    if (contents && cm_tensor_count(contents) <= CONTENTS_MAX)
        return literals(code, contents);
    if (!known)
        return CM_TERM_ABSENT;
    const struct cm_term list = list_term(code, known->count, &items);
    for (size_t i = 0; i < list.count; i++) {
        items[i] = known->items[i].is_number ? cm_term_int(known->items[i].number)
                                             : symbol_term(code, known->items[i].symbol);
        if (items[i].kind == CM_TERM_NONE)
            return CM_TERM_ABSENT;
    }
    return list;
}

/* ---- functions of one value ---- */

/* Elements of tensors, wherever they are in the value. */
static const struct cm_type *tensor_type(const struct cm_type *type)
{
    while (type && type->elem)
        type = type->elem;
    return type;
}

static struct cm_term dtype_term(struct cm_code *code, struct cm_template_run *run,
                                 enum cm_dtype dtype)
{
    const char *text = cm_code_type(code, dtype);

    if (!text)
        cm_template_refuse(run, "%s has no type for elements of type %s", code->to->system,
                           cm_dtype_name(dtype));
    return cm_term_text(cm_str(text ? text : ""));
}

/* The one element of a constant as a literal; absent: there is none such. */
static struct cm_term scalar_term(struct cm_code *code, cm_value value)
{
    const struct cm_tensor *contents = cm_code_contents(code, value);

    if (!contents || cm_tensor_count(contents) != 1)
        return CM_TERM_ABSENT;
    return cm_term_text(cm_code_element(code->arena, contents, 0));
}

/* The tensor of the framework that a value is the transposed of. */
static struct cm_term turned_term(struct cm_code *code, cm_value value)
{
    const struct cm_value_def *def = cm_value_get(code->module, value);

    if (!def->is_state && !cm_code_contents(code, value))
        return CM_TERM_ABSENT;
    const size_t number = cm_code_tensor(code, value);
    return code->tensors.items[number].is_turned
               ? cm_term_text(cm_code_ref(code, CM_CODE_TENSOR, number))
               : CM_TERM_ABSENT;
}

static bool of_value(struct cm_code *code, struct cm_template_run *run, struct cm_str name,
                     cm_value value, struct cm_term *out)
{
    static const char *const kinds[] = {"none", "tensor",   "sparse", "sequence",
                                        "map",  "optional", "opaque"};
    const struct cm_type *type = cm_code_type_of(code, value), *inner = tensor_type(type);
    const struct cm_dtype_info *info = cm_dtype_info(inner->dtype);
    const bool is_tensor = type->kind == CM_KIND_TENSOR;
    struct cm_term *items;

    if (cm_str_is(name, "rank"))
        *out = is_tensor && type->rank >= 0 ? cm_term_int(type->rank) : CM_TERM_ABSENT;
    else if (cm_str_is(name, "dims")) {
        if (!is_tensor || type->rank < 0)
            return true;
        *out = list_term(code, (size_t)type->rank, &items);
        for (int i = 0; i < type->rank; i++)
            items[i] =
                cm_dim_known(type->dims[i]) ? cm_term_int(type->dims[i].value) : CM_TERM_ABSENT;
    } else if (cm_str_is(name, "sizes"))
        *out = sizes_term(code, type);
    else if (cm_str_is(name, "ints"))
        *out = ints_term(code, value);
    else if (cm_str_is(name, "dtype"))
        *out = cm_term_text(cm_str(info->name));
    else if (cm_str_is(name, "type"))
        *out = dtype_term(code, run, inner->dtype);
    else if (cm_str_is(name, "held"))
        *out = cm_term_text(cm_str(cm_dtype_name(code->to->types[inner->dtype].held)));
    else if (cm_str_is(name, "bits"))
        *out = cm_term_int(info->bits);
    else if (cm_str_is(name, "is_float"))
        *out = cm_term_int(info->kind == CM_CLASS_FLOAT);
    else if (cm_str_is(name, "is_complex"))
        *out = cm_term_int(info->kind == CM_CLASS_COMPLEX);
    else if (cm_str_is(name, "is_unsigned"))
        *out = cm_term_int(info->kind == CM_CLASS_UNSIGNED);
    else if (cm_str_is(name, "is_int"))
        *out = cm_term_int(info->kind == CM_CLASS_UNSIGNED || info->kind == CM_CLASS_SIGNED);
    else if (cm_str_is(name, "kind"))
        *out = cm_term_text(cm_str(type->kind < CM_COUNT(kinds) ? kinds[type->kind] : "opaque"));
    else if (cm_str_is(name, "const")) {
        const struct cm_tensor *contents = cm_code_contents(code, value);
        *out = contents && cm_tensor_count(contents) <= CONTENTS_MAX ? literals(code, contents)
                                                                     : CM_TERM_ABSENT;
    } else if (cm_str_is(name, "scalar"))
        *out = scalar_term(code, value);
    else if (cm_str_is(name, "turned"))
        *out = turned_term(code, value);
    else if (cm_str_is(name, "is_tensor")) /* of the model, not computed */
        *out = cm_term_int(cm_value_get(code->module, value)->is_state ||
                           cm_code_contents(code, value));
    else
        return false;
    return true;
}

/* ---- the rest ---- */

/* number(x, y): x, or its one element as a number where that does the same with y. */
static struct cm_term number_term(struct cm_code *code, const struct cm_term *x,
                                  const struct cm_term *with)
{
    const struct cm_type *type = cm_code_type_of(code, (cm_value)x->i),
                         *other = cm_code_type_of(code, (cm_value)with->i);
    const struct cm_term scalar = scalar_term(code, (cm_value)x->i);

    if (scalar.kind == CM_TERM_NONE || type->rank < 0 ||
        (type->rank > 0 && other->rank < type->rank) || type->dtype == CM_STRING ||
        type->dtype == CM_BOOL || cm_code_contents(code, (cm_value)with->i))
        return *x;
    return scalar;
}

/* tuple([1]): "(1,)" */
static struct cm_str tuple_text(struct cm_code *code, struct cm_template_run *run,
                                const struct cm_term *list)
{
    const struct cm_str inside = cm_term_print(run, list);

    return cm_arena_printf(code->arena, list->count == 1 ? "(%.*s,)" : "(%.*s)",
                           CM_STR_ALL(inside));
}

/* short([2, 2]): "2"; short([2, 3]): "(2, 3)" */
static struct cm_str short_text(struct cm_code *code, struct cm_template_run *run,
                                const struct cm_term *list)
{
    for (size_t i = 1; i < list->count; i++)
        if (list->items[i].kind != CM_TERM_INT || list->items[i].i != list->items[0].i)
            return tuple_text(code, run, list);
    return list->count ? cm_term_print(run, &list->items[0]) : CM_STR("()");
}

/* layer([["weight", W, is_turned], ["bias", B]]): how code calls the layer that holds just these.
 */
static struct cm_term layer_term(struct cm_code *code, const struct cm_term *list)
{
    struct cm_code_held held[8] = {0};

    if (list->count > CM_COUNT(held))
        return CM_TERM_ABSENT;
    for (size_t i = 0; i < list->count; i++) {
        const struct cm_term *row = &list->items[i];
        if (row->kind != CM_TERM_LIST || row->count < 2 || row->items[0].kind != CM_TERM_TEXT)
            return CM_TERM_ABSENT;
        held[i].name = row->items[0].text;
        if (row->items[1].kind == CM_TERM_VALUE)
            held[i].value = (cm_value)row->items[1].i;
        held[i].is_turned = row->count > 2 && cm_term_is_true(&row->items[2]);
    }
    const int64_t number = cm_code_layer(code, held, list->count);
    return number < 0 ? CM_TERM_ABSENT
                      : cm_term_text(cm_code_ref(code, CM_CODE_LAYER, (size_t)number));
}

/* gates(W, R, B): the layer that holds the network's tensors which these were made of, or none,
 * then those tensors; none: they are not known. */
static struct cm_term gates_term(struct cm_code *code, const struct cm_term *args, size_t count)
{
    cm_value values[3] = {0};
    size_t tensors[8];
    struct cm_term *items;
    int64_t layer;

    for (size_t i = 0; i < count && i < CM_COUNT(values); i++)
        values[i] = args[i].kind == CM_TERM_VALUE ? (cm_value)args[i].i : 0;
    const size_t n = cm_code_gates(code, values, CM_COUNT(values), tensors, &layer);
    if (!n)
        return CM_TERM_ABSENT;
    const struct cm_term list = list_term(code, n + 1, &items);
    if (layer >= 0)
        items[0] = cm_term_text(cm_code_ref(code, CM_CODE_LAYER, (size_t)layer));
    for (size_t i = 0; i < n; i++)
        items[i + 1] = cm_term_text(cm_code_ref(code, CM_CODE_TENSOR, tensors[i]));
    return list;
}

/* made(layer, "nn.Linear(4, 3)"): is that how the layer is made? The first to ask decides. */
static bool is_made_so(struct cm_code *code, struct cm_str ref, struct cm_str how)
{
    size_t at = 0, number;
    char kind;

    if (!cm_code_read_ref(ref, &at, &kind, &number) || kind != CM_CODE_LAYER)
        return false;
    struct cm_code_layer *layer = &code->layers.items[number];
    if (!layer->made.size)
        layer->made = cm_arena_str(code->arena, how);
    return cm_str_equal(layer->made, how);
}

/* parts(x, "MatMul"): the operands of the node of ai.onnx that computes x for this node alone. */
static struct cm_term parts_term(struct cm_code *code, cm_value value, struct cm_str op_type)
{
    const struct cm_value_def *def = cm_value_get(code->module, value);
    struct cm_term *items;

    if (!def->node || def->n_uses != 1 || def->graph != code->node->graph ||
        def->node->domain.size || !cm_str_equal(def->node->op_type, op_type))
        return CM_TERM_ABSENT;
    const struct cm_term list = list_term(code, (size_t)def->node->n_inputs, &items);
    for (size_t i = 0; i < list.count; i++)
        items[i] = value_term(code, def->node->inputs[i].value);
    return list;
}

static struct cm_graph *body_of(struct cm_code *code, struct cm_template_run *run,
                                struct cm_str name)
{
    struct cm_graph *body = cm_node_body(code->node, cm_str_text(cm_arena_str(code->arena, name)));

    if (!body)
        cm_template_refuse(run, "its body '%.*s' is missing", CM_STR_FMT(name));
    return body;
}

static bool body_call(struct cm_code *code, struct cm_template_run *run, struct cm_str name,
                      struct cm_str body_name, struct cm_term *out)
{
    const bool is_inputs = cm_str_is(name, "body_inputs");
    struct cm_term *items;

    if (!is_inputs && !cm_str_is(name, "body_results"))
        return false;
    const struct cm_graph *body = body_of(code, run, body_name);
    if (!body)
        return true;
    *out = list_term(code, is_inputs ? body->n_inputs : body->n_outputs, &items);
    for (size_t i = 0; i < out->count; i++)
        items[i] = value_term(code, is_inputs ? body->inputs[i] : body->outputs[i].value);
    return true;
}

static bool call_of_text(struct cm_code *code, struct cm_template_run *run, struct cm_str name,
                         struct cm_str text, struct cm_term *out)
{
    enum cm_dtype dtype;

    if (cm_str_is(name, "attr"))
        *out = attribute(code, run, text, false);
    else if (cm_str_is(name, "literal"))
        *out = attribute(code, run, text, true);
    else if (cm_str_is(name, "attr_type"))
        *out = attribute_type(code, run, text);
    else if (cm_str_is(name, "own"))
        *out = cm_term_text(own_var(code, run->scope->prefix, text));
    else if (cm_str_is(name, "type") && cm_dtype_parse(text, &dtype))
        *out = dtype_term(code, run, dtype);
    else
        return body_call(code, run, name, text, out);
    return true;
}

static struct cm_term host_call(void *arg, struct cm_template_run *run, struct cm_str name,
                                const struct cm_term *args, size_t count, bool *known)
{
    struct cm_code *code = arg;
    const struct cm_term *a = count > 0 ? &args[0] : NULL, *b = count > 1 ? &args[1] : NULL;
    struct cm_term out = CM_TERM_ABSENT;

    if (cm_str_is(name, "has") && count == 1)
        return cm_term_int(a->kind == CM_TERM_VALUE);
    if (cm_str_is(name, "opset") && count == 0)
        return cm_term_int(code->node->original_version);
    if (cm_str_is(name, "serial") && count == 0)
        return cm_term_int((int64_t)code->n_uses);
    if (cm_str_is(name, "place") && count == 0)
        return cm_term_text(
            cm_code_string(code->arena, cm_str(cm_node_describe(code->node).text), false));
    if (count == 1 && a->kind == CM_TERM_TEXT && call_of_text(code, run, name, a->text, &out))
        return out;
    if (count == 1 && a->kind == CM_TERM_LIST && cm_str_is(name, "tuple"))
        return cm_term_text(tuple_text(code, run, a));
    if (count == 1 && a->kind == CM_TERM_LIST && cm_str_is(name, "short"))
        return cm_term_text(short_text(code, run, a));
    if (count == 3 && cm_str_is(name, "gates"))
        return gates_term(code, args, count);
    if (count == 1 && a->kind == CM_TERM_LIST && cm_str_is(name, "layer"))
        return layer_term(code, a);
    if (count == 2 && a->kind == CM_TERM_TEXT && b->kind == CM_TERM_TEXT && cm_str_is(name, "made"))
        return cm_term_int(is_made_so(code, a->text, b->text));
    if (count == 2 && a->kind == CM_TERM_VALUE && b->kind == CM_TERM_TEXT &&
        cm_str_is(name, "parts"))
        return parts_term(code, (cm_value)a->i, b->text);
    if (count == 1 && cm_str_is(name, "bool"))
        return cm_term_text(cm_term_is_true(a) ? CM_STR("True") : CM_STR("False"));
    if (count == 1 && a->kind == CM_TERM_INT && a->i >= 0 && a->i < CM_DTYPE_COUNT) {
        if (cm_str_is(name, "type"))
            return dtype_term(code, run, (enum cm_dtype)a->i);
        if (cm_str_is(name, "dtype"))
            return cm_term_text(cm_str(cm_dtype_name((enum cm_dtype)a->i)));
    }
    if (count == 1 && a->kind == CM_TERM_VALUE && of_value(code, run, name, (cm_value)a->i, &out))
        return out;
    if (count == 2 && a->kind == CM_TERM_VALUE && b->kind == CM_TERM_VALUE &&
        cm_str_is(name, "number"))
        return number_term(code, a, b);
    /* Functions of a value that is absent, or whose axis is not known, give nothing. */
    if (count == 2 && a->kind == CM_TERM_VALUE && b->kind == CM_TERM_INT) {
        const struct cm_type *type = cm_code_type_of(code, (cm_value)a->i);
        const int64_t axis = b->i < 0 ? b->i + type->rank : b->i;
        const bool is_axis =
            type->kind == CM_KIND_TENSOR && axis >= 0 && axis < (int64_t)type->rank;
        if (cm_str_is(name, "dim"))
            return is_axis && cm_dim_known(type->dims[axis]) ? cm_term_int(type->dims[axis].value)
                                                             : out;
        if (cm_str_is(name, "size"))
            return cm_term_text(
                is_axis && cm_dim_known(type->dims[axis])
                    ? cm_arena_printf(code->arena, "%lld", (long long)type->dims[axis].value)
                    : read_size(code, (cm_value)a->i, (int)b->i));
    }
    if (a && a->kind == CM_TERM_NONE)
        return out;
    *known = false;
    return out;
}

static void host_emit(void *arg, struct cm_str line)
{
    struct cm_code *code = arg;
    int spaces = 0;

    while (line.size && line.data[0] == ' ') {
        spaces++;
        line = cm_str_from(line, 1);
    }
    cm_code_line(code, code->indent + spaces, line);
}

static const struct cm_template_text *host_macro(void *arg, struct cm_str name)
{
    return cm_code_text_of(((const struct cm_code *)arg)->to, "", name);
}

/* @helper NAME; @body ATTRIBUTE: the lines of a body's nodes, indented as the directive is;
 * @expand: the function body takes the node's place. */
static bool host_directive(void *arg, struct cm_template_run *run, struct cm_str line)
{
    struct cm_code *code = arg;
    const int indent = code->indent;
    struct cm_str rest;
    struct cm_error why = {0};

    if (cm_template_directive(line, "expand", &rest)) {
        code->expands = true;
        return true;
    }
    if (cm_template_directive(line, "helper", &rest)) {
        for (size_t i = 0; i < code->helpers.count; i++)
            if (cm_str_equal(code->helpers.items[i], rest))
                return true;
        if (!cm_code_text_of(code->to, "helpers", rest))
            cm_template_wrong(run, "there is no helper '%.*s'", CM_STR_FMT(rest));
        *CM_PUSH(code->arena, &code->helpers) = rest;
        return true;
    }
    if (!cm_template_directive(line, "body", &rest))
        return false;
    struct cm_graph *body = body_of(code, run, rest);
    if (!body)
        return true;
    for (size_t i = 0; i < line.size && line.data[i] == ' '; i++)
        code->indent++;
    if (cm_code_nodes(code, body, &why) != CM_OK)
        cm_template_refuse(run, "%s", why.text);
    code->indent = indent;
    return true;
}

static struct cm_str print_float(struct cm_template_run *run, double value)
{
    return cm_code_float(run->use->arena, value, (double)(float)value == value);
}

const struct cm_template_host cm_code_host = {
    .sigil = "",
    .macro = host_macro,
    .name = host_name,
    .call = host_call,
    .emit = host_emit,
    .directive = host_directive,
    .print_float = print_float,
    .own = host_own,
};
