/* Formulas: conditions are resolved line by line, the rest is ONNX's text form. */
// SPDX-License-Identifier: Apache-2.0
#include "train/formula.h"

#include "base/map.h"
#include "graph/function.h"
#include "graph/op.h"
#include "onnx/syntax.h"
#include "train/prepare/preparation.h"
#include "train/rules.h"

static const char head[] = "<domain: \"ai.cameo.training\", opset_import: [\"\" : 17]>\n";

/* Do the conditions before a line hold? Moves *at past them. */
static bool holds(const char **at, const char *const *words)
{
    const char *conditions = *at + 1;

    if (**at != '[')
        return true;
    *at = strchr(*at, ']') + 1;
    return cm_words_hold(conditions, words);
}

/* The text of one function without conditions. */
static struct cm_str select_lines(struct cm_arena *arena, const char *functions, const char *name,
                                  const char *const *words)
{
    const size_t size = name ? strlen(name) : 0;
    char *text = cm_arena_alloc(arena, sizeof head + strlen(functions));
    size_t used = sizeof head - 1;
    bool inside = false;

    memcpy(text, head, used);
    for (const char *line = functions; *line;) {
        const char *end = strchr(line, '\n');

        if (!inside)
            inside = !name || (strncmp(line, name, size) == 0 && line[size] == ' ');
        const char *next = end + 1;
        if (inside && holds(&line, words)) {
            memcpy(text + used, line, (size_t)(next - line));
            used += (size_t)(next - line);
        }
        if (inside && end[-1] == '}' && (end - 1 == functions || end[-2] == '\n'))
            break;
        line = next;
    }
    return (struct cm_str){text, used};
}

/* Names that the nodes, and the nodes in their bodies, read or compute. Where ONNX's own domain was
 * not written, a file need not say it. */
static void note_names(struct cm_arena *arena, const struct cm_nodes *nodes, struct cm_map *map)
{
    for (size_t i = 0; i < nodes->count; i++) {
        struct cm_node_proto *node = &nodes->items[i];
        const struct cm_graph_proto *body;

        if (!node->domain.size)
            cm_msg_clear(&node->msg, CM_NODE_DOMAIN);
        for (size_t k = 0; k < node->input.count; k++)
            cm_map_insert(map, arena, node->input.items[k], NULL);
        for (size_t k = 0; k < node->output.count; k++)
            cm_map_insert(map, arena, node->output.items[k], NULL);
        for (size_t b = 0; (body = cm_node_subgraph(node, b)); b++)
            note_names(arena, &body->node, map);
    }
}

static void keep_used(struct cm_strs *names, const struct cm_map *used)
{
    size_t count = 0;

    for (size_t i = 0; i < names->count; i++)
        if (cm_map_find(used, names->items[i]))
            names->items[count++] = names->items[i];
    names->count = count;
}

enum cm_status cm_formula_read(struct cm_arena *arena, const char *functions, const char *name,
                               const char *const *words, const struct cm_function_proto **out,
                               struct cm_error *err)
{
    struct cm_function_proto *function = CM_NEW(arena, struct cm_function_proto);
    struct cm_map used = {0};

    CM_TRY(cm_syntax_parse_function(select_lines(arena, functions, name, words), arena, function,
                                    err));
    note_names(arena, &function->node, &used);
    keep_used(&function->input, &used);
    keep_used(&function->output, &used);
    *out = function;
    return CM_OK;
}

const struct cm_node *cm_formula_apply(struct cm_builder *build,
                                       const struct cm_function_proto *function,
                                       const cm_value *actuals, cm_value *results)
{
    const struct cm_node *last = build->graph->last;
    const struct cm_node call = {.module = build->graph->module, .graph = build->graph};

    memset(results, 0, function->output.count * sizeof *results);
    if (cm_function_apply(build, function, &call, actuals, results))
        memset(results, 0, function->output.count * sizeof *results); /* the builder remembers */
    return last;
}

struct cm_str cm_formula_word(struct cm_str name)
{
    for (size_t i = 1; i + 1 < name.size; i++)
        if (name.data[i] == '_' && name.data[i + 1] == '_')
            return (struct cm_str){name.data, i};
    return name;
}

struct cm_str cm_formula_stem(struct cm_str name)
{
    const char *end = "_next";
    const size_t size = strlen(end);

    return cm_str_ends(name, end) && name.size > size ? (struct cm_str){name.data, name.size - size}
                                                      : name;
}

static bool is_result(const struct cm_function_proto *function, struct cm_str name)
{
    for (size_t o = 0; o < function->output.count; o++)
        if (cm_str_equal(function->output.items[o], name))
            return true;
    return false;
}

static void name_node(struct cm_preparation *p, const struct cm_function_proto *function,
                      struct cm_str hint, const struct cm_node *node)
{
    const struct cm_node_proto *from = node->origin ? node->origin->proto : NULL;
    const struct cm_node *first = node;

    if (!from || (cm_node_in_group(node, &first) && first != node))
        return;
    for (size_t o = 0; o < from->output.count; o++) {
        const struct cm_str name = from->output.items[o];
        const cm_value value = name.size ? cm_origin_result(node, o) : 0;

        if (value && !is_result(function, name))
            cm_preparation_call(p, value,
                                cm_preparation_name(p, "%.*s.%.*s", CM_STR_FMT(hint),
                                                    CM_STR_FMT(cm_formula_word(name))));
    }
}

void cm_formula_emit(struct cm_preparation *p, const struct cm_function_proto *function,
                     struct cm_str hint, const cm_value *actuals, cm_value *results)
{
    const struct cm_node *last = cm_formula_apply(&p->build, function, actuals, results);

    if (p->build.status)
        return;
    for (const struct cm_node *node = last ? last->next : p->build.graph->first; node;
         node = node->next)
        name_node(p, function, hint, node);
}
