/* Nodes in training mode, found and turned off. */
// SPDX-License-Identifier: Apache-2.0
#include "models/inference_modes.h"

#include "base/array.h"
#include "base/map.h"
#include "graph/builder.h"
#include "graph/called_functions.h"
#include "graph/registry.h"
#include "onnx/tensor_data.h"

enum { LOOKUPS_MAX = 1 << 20, LOOKUP_DEPTH = 32, NAMES_MAX = 4 };

/* What defines a name in a scope: the kind, and the number among its kind. */
enum maker { MADE_BY_NODE, IS_INITIALIZER, IS_DEFAULT, IS_INPUT, N_MAKERS };

/* An Identity node to be. */
struct copy {
    size_t after; /* which node it comes */
    struct cm_str from, to;
};

/* A graph, or the nodes of a function. */
struct scope {
    struct scope *outer;
    struct cm_graph_proto *graph;       /* NULL: a function's own nodes */
    struct cm_function_proto *function; /* that it is in, or NULL */
    struct cm_nodes *nodes;
    struct cm_map makers; /* name to number * N_MAKERS + enum maker */
    struct cm_map *reads; /* how often a name is read in this graph and those it is in or holds */
    struct cm_map gone;   /* names that nothing defines any more */
    CM_ARRAY(struct copy) copies; /* in the order of the nodes they come after */
};

struct call {
    const struct scope *scope;
    const struct cm_node_proto *node;
};

struct calls {
    CM_ARRAY(struct call);
};

struct search {
    struct cm_arena *arena;
    struct cm_model_file *file;
    struct cm_modes *out;
    CM_ARRAY(struct scope *) scopes;
    struct cm_map functions; /* key to number, from 1 */
    struct calls *calls;     /* by function */
    size_t lookups;
};

/* ---- what defines and reads a name ---- */

static void define(struct search *s, struct scope *scope, struct cm_str name, enum maker maker,
                   size_t number)
{
    bool added;
    uint64_t *place = cm_map_insert(&scope->makers, s->arena, name, &added);

    if (added)
        *place = number * N_MAKERS + maker;
    else if (maker == IS_INPUT && !scope->outer && s->file->model.ir_version >= 4 &&
             *place % N_MAKERS == IS_INITIALIZER)
        *place += IS_DEFAULT - IS_INITIALIZER;
}

static void note_read(struct search *s, struct scope *scope, struct cm_str name)
{
    if (name.size)
        ++*cm_map_insert(scope->reads, s->arena, name, NULL);
}

static void enter_graph(struct search *s, struct cm_graph_proto *graph, struct scope *outer);

static void enter(struct search *s, struct scope *scope)
{
    *CM_PUSH(s->arena, &s->scopes) = scope;
    for (size_t n = 0; n < scope->nodes->count; n++) {
        const struct cm_node_proto *node = &scope->nodes->items[n];
        const size_t function = (size_t)cm_map_get(&s->functions, cm_call_key(s->arena, node), 0);
        struct cm_graph_proto *body;

        for (size_t i = 0; i < node->input.count; i++)
            note_read(s, scope, node->input.items[i]);
        for (size_t o = 0; o < node->output.count; o++)
            if (node->output.items[o].size)
                define(s, scope, node->output.items[o], MADE_BY_NODE, n);
        if (function)
            *CM_PUSH(s->arena, &s->calls[function - 1]) = (struct call){scope, node};
        for (size_t b = 0; (body = cm_node_subgraph(node, b)); b++)
            enter_graph(s, body, scope);
    }
}

static void enter_graph(struct search *s, struct cm_graph_proto *graph, struct scope *outer)
{
    struct scope *scope = CM_NEW(s->arena, struct scope);

    *scope = (struct scope){.outer = outer,
                            .graph = graph,
                            .function = outer ? outer->function : NULL,
                            .nodes = &graph->node,
                            .reads = outer ? outer->reads : CM_NEW(s->arena, struct cm_map)};
    for (size_t i = 0; i < graph->initializer.count; i++)
        define(s, scope, graph->initializer.items[i].name, IS_INITIALIZER, i);
    for (size_t i = 0; i < graph->input.count; i++)
        define(s, scope, graph->input.items[i].name, IS_INPUT, i);
    for (size_t i = 0; i < graph->output.count; i++)
        note_read(s, scope, graph->output.items[i].name);
    enter(s, scope);
}

static void enter_function(struct search *s, struct cm_function_proto *function)
{
    struct scope *scope = CM_NEW(s->arena, struct scope);

    *scope = (struct scope){
        .function = function, .nodes = &function->node, .reads = CM_NEW(s->arena, struct cm_map)};
    for (size_t i = 0; i < function->input.count; i++)
        define(s, scope, function->input.items[i], IS_INPUT, i);
    for (size_t i = 0; i < function->output.count; i++)
        note_read(s, scope, function->output.items[i]);
    enter(s, scope);
}

static void enter_model(struct search *s)
{
    struct cm_model_proto *model = &s->file->model;

    s->calls = CM_NEW_ARRAY(s->arena, struct calls, model->functions.count);
    s->functions = cm_functions_by_key(s->arena, model);
    if (model->graph)
        enter_graph(s, model->graph, NULL);
    for (size_t i = 0; i < model->functions.count; i++)
        enter_function(s, &model->functions.items[i]);
}

/* ---- whether a mode is on ---- */

/* The larger of two calls' answers counts for a function. */
enum answer { OFF, UNKNOWN, ON_BY_DEFAULT, ON };

static enum answer larger(enum answer a, enum answer b)
{
    return a > b ? a : b;
}

static enum answer tensor_answer(const struct search *s, const struct cm_tensor_proto *proto)
{
    struct cm_error ignored = {0};
    struct cm_tensor tensor;
    enum answer answer = UNKNOWN;

    if (cm_tensor_proto_load(proto, s->file->files, &tensor, &ignored) != CM_OK)
        return UNKNOWN;
    if (cm_dtype_is_real(tensor.type) && cm_tensor_count(&tensor) == 1)
        answer = cm_tensor_real(&tensor, 0) != 0 ? ON : OFF;
    cm_tensor_drop(&tensor);
    return answer;
}

/* The calls of the function that a scope is in. */
static const struct calls *calls_of(const struct search *s, const struct scope *scope)
{
    static const struct calls none;

    return scope->function ? &s->calls[scope->function - s->file->model.functions.items] : &none;
}

/* Is the number that an attribute holds, or refers to, other than 0? */
static enum answer attribute_answer(struct search *s, const struct scope *scope,
                                    const struct cm_attribute_proto *attribute, int depth)
{
    enum answer answer = OFF;

    if (!attribute)
        return OFF;
    if (depth > LOOKUP_DEPTH || s->lookups++ > LOOKUPS_MAX)
        return UNKNOWN;
    if (attribute->ref_attr_name.size) {
        const struct calls *calls = calls_of(s, scope);

        for (size_t c = 0; c < calls->count; c++) {
            const struct cm_attribute_proto *given =
                cm_node_attribute(calls->items[c].node, attribute->ref_attr_name);

            for (size_t i = 0; !given && i < scope->function->attribute_proto.count; i++)
                if (cm_str_equal(scope->function->attribute_proto.items[i].name,
                                 attribute->ref_attr_name))
                    given = &scope->function->attribute_proto.items[i];
            answer = larger(answer, attribute_answer(s, calls->items[c].scope, given, depth + 1));
        }
        return answer;
    }
    if (attribute->t)
        return tensor_answer(s, attribute->t);
    return attribute->i || attribute->f != 0 ? ON : OFF;
}

static enum answer value_answer(struct search *s, const struct scope *scope, struct cm_str name,
                                int depth);

/* Constants, and what passes them on. */
static enum answer node_answer(struct search *s, const struct scope *scope,
                               const struct cm_node_proto *node, int depth)
{
    if (cm_domain_plain(node->domain).size)
        return UNKNOWN;
    if (cm_str_is(node->op_type, "Constant") && node->attribute.count == 1)
        return attribute_answer(s, scope, &node->attribute.items[0], depth + 1);
    if ((cm_str_is(node->op_type, "Identity") || cm_str_is(node->op_type, "Cast")) &&
        node->input.count)
        return value_answer(s, scope, node->input.items[0], depth + 1);
    return UNKNOWN;
}

static enum answer value_answer(struct search *s, const struct scope *scope, struct cm_str name,
                                int depth)
{
    const uint64_t *made = NULL;
    enum answer answer = OFF;

    if (!name.size)
        return OFF;
    if (depth > LOOKUP_DEPTH || s->lookups++ > LOOKUPS_MAX)
        return UNKNOWN;
    while (scope && !(made = cm_map_find(&scope->makers, name)))
        scope = scope->outer;
    if (!made)
        return UNKNOWN;
    const size_t number = (size_t)(*made / N_MAKERS);
    switch ((enum maker)(*made % N_MAKERS)) {
    case MADE_BY_NODE:
        return node_answer(s, scope, &scope->nodes->items[number], depth);
    case IS_INITIALIZER:
        return tensor_answer(s, &scope->graph->initializer.items[number]);
    case IS_DEFAULT:
        answer = tensor_answer(s, &scope->graph->initializer.items[number]);
        return answer == ON ? ON_BY_DEFAULT : UNKNOWN;
    default:
        break;
    }
    if (scope->graph) /* the caller of the model, or a loop, gives it */
        return UNKNOWN;
    const struct calls *calls = calls_of(s, scope);
    for (size_t c = 0; c < calls->count; c++) {
        const struct cm_strs *given = &calls->items[c].node->input;
        answer =
            larger(answer, number < given->count ? value_answer(s, calls->items[c].scope,
                                                                given->items[number], depth + 1)
                                                 : OFF);
    }
    return answer;
}

/* ---- how a node says its mode ---- */

enum { NO_OPERAND = -1 };

struct mode {
    const char *attribute; /* training_mode, or is_test, which means the opposite; NULL: none */
    bool is_test;
    int operand; /* NO_OPERAND: none */
    bool by_results;
};

/* Inputs of BatchNormalization that its results from the second on are the next values of. */
static size_t statistic_of(size_t output)
{
    return 3 + (output - 1) % 2;
}

static bool is_batch_norm(const struct cm_node_proto *node)
{
    return !cm_domain_plain(node->domain).size && cm_str_is(node->op_type, "BatchNormalization");
}

static bool gives_more(const struct cm_node_proto *node)
{
    for (size_t o = 1; o < node->output.count; o++)
        if (node->output.items[o].size)
            return true;
    return false;
}

/* False: its operator has no mode. */
static bool find_mode(const struct search *s, const struct scope *scope,
                      const struct cm_node_proto *node, struct mode *out)
{
    const struct cm_registry *registry =
        s->file->registry ? s->file->registry : cm_registry_builtin();
    const struct cm_opsets *imports = scope->function && scope->function->opset_import.count
                                          ? &scope->function->opset_import
                                          : &s->file->model.opset_import;
    const int64_t version = cm_opsets_version(imports, node->domain);
    const struct cm_schema *schema =
        version > 0 ? cm_registry_schema(registry, node->domain, node->op_type, version) : NULL;

    *out = (struct mode){.operand = NO_OPERAND};
    if (!schema)
        return false;
    if (cm_schema_find_attr(schema, CM_STR("training_mode")))
        out->attribute = "training_mode";
    out->is_test = cm_schema_find_attr(schema, CM_STR("is_test")) != NULL;
    if (out->is_test)
        out->attribute = "is_test";
    for (int i = 0; i < schema->input_count; i++)
        if (strcmp(schema->inputs[i].name, "training_mode") == 0)
            out->operand = i;
    out->by_results = !out->attribute && is_batch_norm(node);
    return out->attribute || out->operand >= 0 || out->by_results;
}

static enum answer mode_answer(struct search *s, const struct scope *scope,
                               const struct cm_node_proto *node, const struct mode *mode)
{
    if (mode->by_results)
        return gives_more(node) ? ON : OFF;
    if (mode->operand >= 0)
        return (size_t)mode->operand < node->input.count
                   ? value_answer(s, scope, node->input.items[mode->operand], 0)
                   : OFF;
    const enum answer answer =
        attribute_answer(s, scope, cm_node_attribute(node, cm_str(mode->attribute)), 0);
    if (!mode->is_test || answer == UNKNOWN)
        return answer;
    return answer == ON ? OFF : ON;
}

/* ---- turning it off ---- */

/* Its name, or that of its first result. */
static struct cm_str name_of(const struct cm_node_proto *node)
{
    return node->name.size          ? node->name
           : node->output.count > 0 ? node->output.items[0]
                                    : CM_STR("");
}

static void set_attribute(struct search *s, struct cm_node_proto *node, const struct mode *mode)
{
    CM_LIST_OWN(s->arena, &node->attribute);
    CM_LIST_KEEP(node, CM_NODE_ATTRIBUTE, &node->attribute,
                 !cm_str_is(node->attribute.items[i].name, mode->attribute));
    if (!mode->is_test)
        return;
    *CM_LIST_ADD(s->arena, &node->attribute) = cm_attr_int(s->arena, mode->attribute, 1);
    cm_msg_set(&node->msg, CM_NODE_ATTRIBUTE);
}

static struct cm_strs cut_list(struct search *s, const struct cm_strs *from, size_t count)
{
    struct cm_strs list = {CM_NEW_ARRAY(s->arena, struct cm_str, count), count};

    while (list.count && !from->items[list.count - 1].size)
        list.count--;
    if (list.count)
        memcpy(list.items, from->items, list.count * sizeof *list.items);
    return list;
}

/* Is it a constant that may go? Before IR version 4 an initializer is an input too. */
static bool is_constant(const struct search *s, const struct scope *scope, uint64_t made)
{
    if (made % N_MAKERS == MADE_BY_NODE)
        return cm_str_is(scope->nodes->items[made / N_MAKERS].op_type, "Constant");
    return made % N_MAKERS == IS_INITIALIZER && s->file->model.ir_version >= 4;
}

/* A constant that nobody reads any more goes. */
static void forget_read(struct search *s, struct scope *scope, struct cm_str name)
{
    uint64_t *reads = cm_map_find(scope->reads, name);
    const uint64_t *made = NULL;

    if (!reads || --*reads)
        return;
    while (scope && !(made = cm_map_find(&scope->makers, name)))
        scope = scope->outer;
    if (made && is_constant(s, scope, *made))
        cm_map_insert(&scope->gone, s->arena, name, NULL);
}

static void drop_operand(struct search *s, struct scope *scope, struct cm_node_proto *node,
                         size_t index)
{
    const struct cm_str name = node->input.items[index];
    struct cm_strs list = cut_list(s, &node->input, node->input.count);

    list.items[index] = CM_STR_NONE;
    node->input = cut_list(s, &list, list.count);
    cm_msg_set(&node->msg, CM_NODE_INPUT);
    forget_read(s, scope, name);
}

/* Only training mode gives running statistics. Whoever reads one gets the stored one. */
static void drop_statistics(struct search *s, struct scope *scope, size_t number)
{
    struct cm_node_proto *node = &scope->nodes->items[number];

    for (size_t o = 1; o < node->output.count; o++) {
        const struct cm_str name = node->output.items[o];
        const size_t stored = statistic_of(o);

        if (!name.size)
            continue;
        if (!cm_map_get(scope->reads, name, 0)) {
            cm_map_insert(&scope->gone, s->arena, name, NULL);
        } else if (stored < node->input.count) {
            *CM_PUSH(s->arena, &scope->copies) =
                (struct copy){number, node->input.items[stored], name};
            *CM_PUSH(s->arena, &s->out->changes) = cm_arena_printf(
                s->arena,
                "'%.*s' is now the stored statistic '%.*s': BatchNormalization '%.*s' no "
                "longer computes it",
                CM_STR_FMT(name), CM_STR_FMT(node->input.items[stored]), CM_STR_FMT(name_of(node)));
        }
    }
    node->output = cut_list(s, &node->output, node->output.count ? 1 : 0);
    cm_msg_set(&node->msg, CM_NODE_OUTPUT);
}

static void turn_off(struct search *s, struct scope *scope, size_t number, const struct mode *mode)
{
    struct cm_node_proto *node = &scope->nodes->items[number];

    if (mode->attribute)
        set_attribute(s, node, mode);
    if (mode->operand >= 0)
        drop_operand(s, scope, node, (size_t)mode->operand);
    if (is_batch_norm(node) && node->output.count > 1)
        drop_statistics(s, scope, number);
}

/* ---- lists without what is gone, and with what was added ---- */

static bool is_gone(const struct scope *scope, struct cm_str name)
{
    return cm_map_find(&scope->gone, name) != NULL;
}

static void rewrite_nodes(struct search *s, struct scope *scope)
{
    struct cm_node_proto *nodes =
        CM_NEW_ARRAY(s->arena, struct cm_node_proto, scope->nodes->count + scope->copies.count);
    size_t count = 0, copied = 0;

    for (size_t n = 0; n < scope->nodes->count; n++) {
        const struct cm_node_proto *node = &scope->nodes->items[n];

        if (node->output.count != 1 || !is_gone(scope, node->output.items[0]))
            nodes[count++] = *node;
        for (; copied < scope->copies.count && scope->copies.items[copied].after == n; copied++)
            nodes[count++] = cm_identity_proto(s->arena, scope->copies.items[copied].from,
                                               scope->copies.items[copied].to);
    }
    *scope->nodes = (struct cm_nodes){nodes, count};
}

static void rewrite_scope(struct search *s, struct scope *scope)
{
    struct cm_function_proto *function = scope->function;
    struct cm_graph_proto *graph = scope->graph;

    if (!scope->gone.count && !scope->copies.count)
        return;
    rewrite_nodes(s, scope);
    if (!graph) {
        cm_msg_set(&function->msg, CM_FUNCTION_NODE);
        CM_LIST_OWN(s->arena, &function->value_info);
        CM_LIST_KEEP(function, CM_FUNCTION_VALUE_INFO, &function->value_info,
                     !is_gone(scope, function->value_info.items[i].name));
        return;
    }
    cm_msg_set(&graph->msg, CM_GRAPH_NODE);
    CM_LIST_OWN(s->arena, &graph->value_info);
    CM_LIST_KEEP(graph, CM_GRAPH_VALUE_INFO, &graph->value_info,
                 !is_gone(scope, graph->value_info.items[i].name));
    CM_LIST_OWN(s->arena, &graph->initializer);
    CM_LIST_KEEP(graph, CM_GRAPH_INITIALIZER, &graph->initializer,
                 !is_gone(scope, graph->initializer.items[i].name));
}

/* ---- all of it ---- */

static void search_scope(struct search *s, struct scope *scope, bool off)
{
    for (size_t n = 0; n < scope->nodes->count; n++) {
        const struct cm_node_proto *node = &scope->nodes->items[n];
        struct mode mode;

        if (!find_mode(s, scope, node, &mode))
            continue;
        const enum answer answer = mode_answer(s, scope, node, &mode);
        if (answer == ON)
            *CM_PUSH(s->arena, &s->out->nodes) = node;
        if (answer == ON && off)
            turn_off(s, scope, n, &mode);
        if (answer == ON_BY_DEFAULT)
            *CM_PUSH(s->arena, &s->out->changes) = cm_arena_printf(
                s->arena,
                "%.*s '%.*s' stays in training mode: an input of the model says so, by its "
                "default; feed false, or make it a constant",
                CM_STR_FMT(node->op_type), CM_STR_FMT(name_of(node)));
    }
}

/* "Dropout 'drop', Dropout 'drop2' and 3 more" */
static struct cm_str list_nodes(const struct search *s)
{
    struct cm_str list = CM_STR("");
    const size_t count = s->out->nodes.count;

    for (size_t i = 0; i < count && i < NAMES_MAX; i++) {
        const struct cm_node_proto *node = s->out->nodes.items[i];
        list = cm_arena_printf(s->arena, "%s%s%.*s '%.*s'", cm_str_text(list), i ? ", " : "",
                               CM_STR_FMT(node->op_type), CM_STR_FMT(name_of(node)));
    }
    return count > NAMES_MAX
               ? cm_arena_printf(s->arena, "%s and %zu more", cm_str_text(list), count - NAMES_MAX)
               : list;
}

static void search(struct cm_arena *arena, struct cm_model_file *file, bool off,
                   struct cm_modes *out)
{
    struct search s = {.arena = arena, .file = file, .out = out};
    const bool carries = file->model.training_info.count > 0;

    *out = (struct cm_modes){0};
    *CM_PUSH(arena, &out->changes) = CM_STR_NONE; /* the first sentence, known last */
    enter_model(&s);
    for (size_t i = 0; i < s.scopes.count; i++)
        search_scope(&s, s.scopes.items[i], off && !carries);
    for (size_t i = 0; i < s.scopes.count; i++)
        rewrite_scope(&s, s.scopes.items[i]);
    const size_t count = out->nodes.count;
    if (!count) {
        out->changes.items++;
        out->changes.count--;
        return;
    }
    const struct cm_str list = list_nodes(&s);
    out->changes.items[0] =
        carries ? cm_arena_printf(arena,
                                  "%zu node%s in training mode in the inference graph, because the "
                                  "model carries its training: %s; 'cameo strip' turns %s off",
                                  count, count == 1 ? " stays" : "s stay", cm_str_text(list),
                                  count == 1 ? "it" : "them")
                : cm_arena_printf(arena, "%zu node%s in training mode and %s turned off: %s", count,
                                  count == 1 ? " was" : "s were", count == 1 ? "is" : "are",
                                  cm_str_text(list));
}

void cm_modes_find(struct cm_arena *arena, const struct cm_model_file *file, struct cm_modes *out)
{
    struct cm_model_file same = *file; /* nothing of it is changed */

    search(arena, &same, false, out);
}

void cm_modes_turn_off(struct cm_arena *arena, struct cm_model_file *file, struct cm_modes *out)
{
    search(arena, file, true, out);
}
