/* The walk over a graph: each node by its row. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/code/code_state.h"

#include "graph/function.h"

#include <stdio.h>
#include <string.h>

enum { BODY_DEPTH = 24 };

const struct cm_template_text *cm_code_text_of(const struct cm_code_framework *to, const char *kind,
                                               struct cm_str name)
{
    return cm_framework_text(to->folder, cm_str(kind), name);
}

const struct cm_template_text *cm_code_row(const struct cm_code_framework *to, struct cm_str domain,
                                           struct cm_str op_type)
{
    return cm_framework_row(to->folder, domain, op_type);
}

/* Only rows and escape.c write text; neither has a reason for a byte that no keyboard has. */
static bool is_printable(struct cm_str text)
{
    for (size_t i = 0; i < text.size; i++) {
        const unsigned char c = (unsigned char)text.data[i];
        if (c != CM_CODE_VAR && c != CM_CODE_TENSOR && c != CM_CODE_LAYER && c != CM_CODE_END &&
            (c < 0x20 || c > 0x7e))
            return false;
    }
    return true;
}

void cm_code_line(struct cm_code *code, int indent, struct cm_str text)
{
    if (!is_printable(text))
        text = CM_STR("raise ValueError(\"a row wrote bytes that are not text\")");
    *CM_PUSH(code->arena, &code->lines) = (struct cm_code_line){.indent = indent, .text = text};
}

/* Nobody asks for a value whose contents are known. */
static bool is_needed(struct cm_code *code, const struct cm_node *node)
{
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] && !cm_code_contents(code, node->outputs[i]))
            return true;
    return node->n_outputs == 0;
}

static enum cm_status expand_row(struct cm_code *code, const struct cm_node *node,
                                 struct cm_error *err)
{
    const struct cm_template_text *text = cm_code_row(code->to, node->domain, node->op_type);
    struct cm_template_host host = cm_code_host;

    if (!text)
        return cm_fail(err, CM_UNSUPPORTED, "%s has no form for %.*s%s%.*s", code->to->system,
                       CM_STR_FMT(node->domain), node->domain.size ? "::" : "",
                       CM_STR_FMT(node->op_type));
    host.arg = code;
    const struct cm_template_use use = {
        .text = text,
        .prefix = cm_arena_printf(code->arena, "n%zu", ++code->n_uses),
        .host = &host,
        .arena = code->arena,
    };
    return cm_template_expand(&use, err);
}

static enum cm_status write_node(struct cm_code *code, struct cm_node *node, struct cm_error *err)
{
    const struct cm_node *outer = code->node;
    const size_t n_lines = code->lines.count;

    code->node = node;
    code->expands = false;
    const bool has_row = cm_code_row(code->to, node->domain, node->op_type);
    enum cm_status status =
        has_row || !cm_node_has_function(node) ? expand_row(code, node, err) : CM_OK;
    const bool expands = code->expands || (!has_row && !status);
    code->node = outer;
    code->expands = false;
    if (!status && expands) {
        code->lines.count = n_lines;
        if (!cm_node_has_function(node))
            return cm_fail(err, CM_UNSUPPORTED, "%s has no form for this use of it",
                           code->to->system);
        status = cm_graph_inline(node, err);
    }
    return status;
}

static enum cm_status write_nodes(struct cm_code *code, struct cm_graph *graph)
{
    for (struct cm_node *node = graph->first; node;) {
        struct cm_node *before = node->prev;
        const int indent = code->indent;
        struct cm_error why = {0};

        if (!is_needed(code, node)) {
            node = node->next;
            continue;
        }
        const struct cm_str place = cm_arena_str(code->arena, cm_str(cm_node_describe(node).text));
        if (write_node(code, node, &why) != CM_OK)
            cm_findings_unsupported(code->options->findings, place, "%s", why.text);
        code->indent = indent;
        if (node->is_gone) /* its body is in its place */
            node = before ? before->next : graph->first;
        else
            node = node->next;
    }
    return CM_OK;
}

enum cm_status cm_code_nodes(struct cm_code *code, struct cm_graph *graph, struct cm_error *err)
{
    if (++code->depth > BODY_DEPTH)
        return cm_fail(err, CM_LIMIT, "bodies nest deeper than %d", BODY_DEPTH);
    const enum cm_status status = write_nodes(code, graph);
    code->depth--;
    return status;
}
