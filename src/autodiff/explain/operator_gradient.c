/* Builds a use of an operator from its example, differentiates it and writes the graph down. */
// SPDX-License-Identifier: Apache-2.0
#include "autodiff/explain/operator_gradient.h"

#include "autodiff/backward.h"
#include "graph/function.h"
#include "graph/import.h"
#include "onnx/syntax.h"

#include <ctype.h>

/* ---- the example as a model in text form ---- */

struct example {
    struct cm_arena *arena;
    const struct cm_schema *schema;
    struct cm_str inputs, initializers, operands, outputs; /* comma-separated */
    struct cm_str attributes;
    size_t n_operands, n_outputs;
};

static void add_item(struct cm_arena *arena, struct cm_str *list, struct cm_str item)
{
    *list = cm_arena_printf(arena, "%s%s%s", list->data ? cm_str_text(*list) : "",
                            list->data ? ", " : "", item.data ? cm_str_text(item) : "");
}

/* The name that the schema gives operand or result i; those of a variadic one are numbered. */
static struct cm_str param_name(struct cm_arena *arena, const struct cm_schema_param *params,
                                size_t count, size_t i)
{
    const struct cm_schema_param *param = &params[i < count ? i : count - 1];
    size_t size = strlen(param->name);

    if (param->kind != CM_PARAM_VARIADIC)
        return cm_str(param->name);
    if (size > 2 && strcmp(param->name + size - 2, "_0") == 0)
        size -= 2;
    return cm_arena_printf(arena, "%.*s_%zu", (int)size, param->name, i + 1 - count);
}

static struct cm_str output_name(const struct example *e, size_t o)
{
    const struct cm_schema *schema = e->schema;
    const struct cm_str name = param_name(e->arena, schema->outputs, schema->output_count, o);

    for (size_t i = 0; i < schema->input_count; i++)
        if (cm_str_is(name, schema->inputs[i].name))
            return cm_arena_printf(e->arena, "%.*s_out", CM_STR_FMT(name));
    return name;
}

/* The next word; brackets hold it together. */
static struct cm_str next_word(struct cm_str *line)
{
    size_t start = 0, end;
    int depth = 0;

    while (start < line->size && line->data[start] == ' ')
        start++;
    for (end = start; end < line->size && (depth || line->data[end] != ' '); end++)
        depth += strchr("([{", line->data[end]) ? 1 : strchr(")]}", line->data[end]) ? -1 : 0;
    const struct cm_str word = {line->data + start, end - start};
    line->data += end;
    line->size -= end;
    return word;
}

static void add_value(struct example *e, struct cm_str word, struct cm_str name)
{
    const char *equals = memchr(word.data, '=', word.size);
    size_t size = equals ? (size_t)(equals - word.data) : word.size;
    const char *element = size && word.data[0] == '[' ? "float" : "";

    if (size >= 2 && memcmp(word.data + size - 2, "[]", 2) == 0)
        size -= 2; /* a scalar; the text form means any rank with it */
    const struct cm_str declaration =
        cm_arena_printf(e->arena, "%s%.*s %.*s", element, (int)size, word.data, CM_STR_FMT(name));
    if (!equals) {
        add_item(e->arena, &e->inputs, declaration);
        return;
    }
    const size_t rest = word.size - (size_t)(equals - word.data);
    add_item(e->arena, &e->initializers,
             cm_arena_printf(e->arena, "%s %.*s", cm_str_text(declaration), (int)rest, equals));
}

static void add_word(struct example *e, struct cm_str word)
{
    const struct cm_schema *schema = e->schema;
    size_t letters = 0;

    if (word.data[0] == '>') { /* how many results */
        e->n_outputs = (size_t)(word.data[1] - '0');
        return;
    }
    while (letters < word.size &&
           (isalnum((unsigned char)word.data[letters]) || word.data[letters] == '_'))
        letters++;
    if (letters < word.size && word.data[letters] == ':') { /* for bodies to read */
        add_value(e, (struct cm_str){word.data + letters + 1, word.size - letters - 1},
                  (struct cm_str){word.data, letters});
        return;
    }
    const size_t i = e->n_operands++;
    if (cm_str_is(word, "-")) {
        add_item(e->arena, &e->operands, CM_STR("\"\""));
        return;
    }
    const struct cm_str name = param_name(e->arena, schema->inputs, schema->input_count, i);
    add_item(e->arena, &e->operands, name);
    add_value(e, word, name);
}

static const char *usual_type(const struct cm_schema *schema, const struct cm_schema_param *param)
{
    static const enum cm_dtype types[] = {CM_FLOAT, CM_INT64, CM_INT32, CM_BOOL, CM_INT8, CM_UINT8};

    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (cm_type_set_allows_tensor(cm_schema_types_of(schema, param), types[i]))
            return cm_dtype_name(types[i]);
    return "string";
}

static void read_example(struct example *e, struct cm_str line)
{
    const struct cm_schema *schema = e->schema;
    const char *bar = line.size ? memchr(line.data, '|', line.size) : NULL;

    e->n_outputs = (size_t)(schema->min_outputs > 0 ? schema->min_outputs : 1);
    for (size_t i = 0; !line.size && i < (size_t)schema->min_inputs; i++) {
        const struct cm_schema_param *param = cm_schema_input(schema, i);
        add_word(e, cm_arena_printf(e->arena, "%s[N]", usual_type(schema, param)));
    }
    if (bar) {
        const size_t rest = line.size - (size_t)(bar - line.data) - 1;
        e->attributes = cm_arena_printf(e->arena, "<%.*s>", (int)rest, bar + 1);
        line.size = (size_t)(bar - line.data);
    }
    for (struct cm_str word; (word = next_word(&line)).size;)
        add_word(e, word);
    for (size_t o = 0; o < e->n_outputs; o++)
        add_item(e->arena, &e->outputs, output_name(e, o));
}

static const char *or_empty(struct cm_str text)
{
    return text.data ? cm_str_text(text) : "";
}

static struct cm_str example_model(const struct example *e)
{
    const char *domain = e->schema->domain;
    const long long onnx = (long long)cm_schema_newest_opset(CM_STR_NONE);
    struct cm_str other = CM_STR_NONE;

    if (*domain)
        other = cm_arena_printf(e->arena, ", \"%s\": %lld", domain,
                                (long long)cm_schema_newest_opset(cm_str(domain)));
    return cm_arena_printf(
        e->arena,
        "<ir_version: 10, opset_import: [\"\": %lld%s]> g (%s) => (%s) %s%s%s {%s = %s%s%s%s(%s)}",
        onnx, or_empty(other), or_empty(e->inputs), cm_str_text(e->outputs),
        e->initializers.data ? "<" : "", or_empty(e->initializers), e->initializers.data ? ">" : "",
        cm_str_text(e->outputs), domain, *domain ? "." : "", e->schema->name,
        or_empty(e->attributes), or_empty(e->operands));
}

/* ---- its gradient ---- */

static bool has_gradient(const struct cm_type *type)
{
    while (type && type->elem)
        type = type->elem;
    return type && cm_dtype_info(type->dtype)->kind == CM_CLASS_FLOAT;
}

static struct cm_str gradient_name(struct cm_arena *arena, struct cm_str name)
{
    const bool is_upper = name.size && isupper((unsigned char)name.data[0]);

    return cm_arena_printf(arena, "d%s%.*s", is_upper ? "" : "_", CM_STR_FMT(name));
}

/* Operands and seeds are numbered as the graph has them. */
struct differentiation {
    struct cm_arena *arena;
    struct cm_graph *graph;
    cm_value *ys, *seeds, *xs, *grads;
    size_t n_ys, n_xs, n_forward; /* graph inputs before the seeds */
};

/* Results that a rule asked the forward node for have the names that the schema gives them. */
static void name_extra_outputs(const struct differentiation *d)
{
    struct cm_node *node = d->graph->first;

    if (!node || node->phase != CM_PHASE_FORWARD ||
        (node->next && node->next->phase == CM_PHASE_FORWARD))
        return;
    for (int o = 0; o < node->n_outputs; o++) {
        const struct cm_schema_param *param = cm_schema_output(node->schema, (size_t)o);
        if (node->outputs[o] && !cm_value_get(node->module, node->outputs[o])->name.size && param &&
            !cm_graph_find(d->graph, cm_str(param->name)))
            cm_value_set_name(node->module, node->outputs[o], cm_str(param->name));
    }
}

static enum cm_status differentiate(struct differentiation *d, struct cm_operator_gradient *out,
                                    struct cm_error *err)
{
    struct cm_module *module = d->graph->module;
    const size_t n_results = d->graph->n_outputs;

    d->n_forward = d->graph->n_inputs;
    d->ys = CM_NEW_ARRAY(d->arena, cm_value, 2 * n_results);
    d->seeds = d->ys + n_results;
    d->xs = CM_NEW_ARRAY(d->arena, cm_value, 2 * d->n_forward);
    d->grads = d->xs + d->n_forward;
    for (size_t i = 0; i < d->n_forward; i++) {
        const struct cm_value_def *def = cm_value_get(module, d->graph->inputs[i]);
        if (has_gradient(def->fact.type))
            d->xs[d->n_xs++] = d->graph->inputs[i];
        else
            *CM_PUSH(d->arena, &out->whole) = def->name;
    }
    for (size_t o = 0; o < n_results; o++) {
        const cm_value y = d->graph->outputs[o].value;
        const struct cm_value_def *def = cm_value_get(module, y);
        if (!has_gradient(def->fact.type))
            continue;
        d->ys[d->n_ys] = y;
        d->seeds[d->n_ys++] =
            cm_graph_add_input(d->graph, gradient_name(d->arena, def->name), def->fact.type);
    }
    for (struct cm_node *node = d->graph->first; node; node = node->next)
        node->phase = CM_PHASE_FORWARD;
    const struct cm_autodiff what = {.graph = d->graph,
                                     .ys = d->ys,
                                     .seeds = d->seeds,
                                     .n_ys = d->n_ys,
                                     .xs = d->xs,
                                     .n_xs = d->n_xs};
    if (d->n_ys && d->n_xs)
        CM_TRY(cm_autodiff_emit(&what, d->grads, err));
    struct cm_builder build = {.graph = d->graph, .err = err};
    cm_value *results = CM_NEW_ARRAY(d->arena, cm_value, d->n_xs);
    size_t n_grads = 0;
    for (size_t i = 0; i < d->n_xs; i++) {
        const struct cm_str name = cm_value_get(module, d->xs[i])->name;
        cm_value grad = d->grads[i];
        if (!grad) {
            *CM_PUSH(d->arena, &out->without) = name;
            continue;
        }
        if (cm_value_get(module, grad)->name.size)
            grad = cm_build(&build, &(struct cm_emission){.op = "Identity", CM_INPUTS(grad)});
        CM_TRY(build.status);
        cm_value_set_name(module, grad, gradient_name(d->arena, name));
        results[n_grads++] = grad;
    }
    cm_graph_set_outputs(d->graph, results, n_grads);
    name_extra_outputs(d);
    cm_graph_remove_dead(d->graph);
    return CM_OK;
}

/* ---- what of the forward pass it reads ---- */

/* The node follows from shapes alone: computing it reads no elements. */
static bool is_shape_arithmetic(const struct cm_node *node)
{
    for (int o = 0; o < node->n_outputs; o++) {
        const struct cm_known *known =
            node->outputs[o] ? cm_value_get(node->module, node->outputs[o])->fact.known : NULL;
        if (node->outputs[o] && !known)
            return false;
        for (size_t i = 0; known && i < known->count; i++)
            if (!known->items[i].is_number && !known->items[i].symbol)
                return false;
    }
    return true;
}

static bool is_kept(const struct cm_value_def *def)
{
    for (const struct cm_use *use = def->uses; use; use = use->next) {
        const struct cm_node *node = use->node;
        if (!node)
            continue;
        if (is_shape_arithmetic(node))
            continue;
        while (node->graph->owner)
            node = node->graph->owner;
        if (node->phase != CM_PHASE_FORWARD)
            return true;
    }
    return false;
}

static void find_kept(const struct differentiation *d, struct cm_operator_gradient *out)
{
    const struct cm_module *module = d->graph->module;

    for (size_t i = 0; i < d->n_forward; i++) {
        const struct cm_value_def *def = cm_value_get(module, d->graph->inputs[i]);
        if (is_kept(def))
            *CM_PUSH(d->arena, &out->kept) = def->name;
    }
    for (const struct cm_node *node = d->graph->first; node; node = node->next)
        for (int o = 0; node->phase == CM_PHASE_FORWARD && o < node->n_outputs; o++) {
            const struct cm_value_def *def =
                node->outputs[o] ? cm_value_get(module, node->outputs[o]) : NULL;
            if (!def || !is_kept(def))
                continue;
            if (def->name.size)
                *CM_PUSH(d->arena, &out->kept) = def->name;
            else
                out->keeps_more = true;
        }
}

/* Inputs that the gradient does not read are left out of the graph as it is shown. */
static void drop_unused_inputs(const struct cm_graph *graph, struct cm_graph_proto *out)
{
    size_t count = 0;

    for (size_t i = 0; i < out->input.count; i++)
        if (cm_value_get(graph->module, graph->inputs[i])->n_uses)
            out->input.items[count++] = out->input.items[i];
    out->input.count = count;
    out->value_info.count = 0;
}

/* A graph whose one node is the operator. */
static enum cm_status import_example(struct cm_arena *arena, const struct cm_schema *schema,
                                     struct cm_str example, cm_import_fn *import,
                                     struct cm_graph **out, struct cm_error *err)
{
    struct example e = {.arena = arena, .schema = schema};
    struct cm_model_proto *model = CM_NEW(arena, struct cm_model_proto);

    read_example(&e, example);
    const struct cm_str text = example_model(&e);
    CM_TRY(cm_error_context(err, cm_syntax_parse_model(text, arena, model, err),
                            "the example of %s", schema->name));
    return import(cm_module_new(arena, NULL), model, &(struct cm_import_options){0}, out, err);
}

static enum cm_status write_down(const struct cm_graph *graph, struct cm_arena *arena,
                                 struct cm_str name, struct cm_graph_proto *out,
                                 struct cm_error *err)
{
    struct cm_opsets imports = {0};

    CM_TRY(cm_graph_export(graph, arena, NULL, out, &imports, err));
    drop_unused_inputs(graph, out);
    out->name = name;
    return CM_OK;
}

enum cm_status cm_operator_gradient(struct cm_arena *arena, const struct cm_schema *schema,
                                    struct cm_str example, cm_import_fn *import,
                                    struct cm_operator_gradient *out, struct cm_error *err)
{
    struct differentiation d = {.arena = arena};

    *out = (struct cm_operator_gradient){0};
    CM_TRY(import_example(arena, schema, example, import, &d.graph, err));
    CM_TRY(differentiate(&d, out, err));
    find_kept(&d, out);
    out->nodes = cm_graph_count(d.graph);
    return write_down(d.graph, arena, cm_arena_printf(arena, "%s_gradient", schema->name),
                      &out->graph, err);
}

enum cm_status cm_operator_definition(struct cm_arena *arena, const struct cm_schema *schema,
                                      struct cm_str example, cm_import_fn *import,
                                      struct cm_graph_proto *out, size_t *nodes,
                                      struct cm_error *err)
{
    struct cm_graph *graph;

    *nodes = 0;
    CM_TRY(import_example(arena, schema, example, import, &graph, err));
    if (!cm_node_has_function(graph->first))
        return CM_OK;
    CM_TRY(cm_graph_inline(graph->first, err));
    cm_graph_remove_dead(graph);
    *nodes = cm_graph_count(graph);
    return write_down(graph, arena, cm_str(schema->name), out, err);
}
