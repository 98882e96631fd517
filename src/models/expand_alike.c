/* Nodes that are alike are expanded once: networks repeat themselves. */
// SPDX-License-Identifier: Apache-2.0
#include "models/expansion.h"

#include "onnx/encode.h"

enum { KNOWN_ELEMENTS = 1024, OPERANDS_ALIKE = 16 };

bool cm_expansion_is_arithmetic(const struct cm_type *type)
{
    int64_t count = 1;

    if (type->kind != CM_KIND_TENSOR || (type->dtype != CM_INT64 && type->dtype != CM_BOOL) ||
        type->rank < 0)
        return false;
    for (int i = 0; i < type->rank && count <= KNOWN_ELEMENTS; i++)
        count *= cm_dim_known(type->dims[i]) ? type->dims[i].value : KNOWN_ELEMENTS + 1;
    return count <= KNOWN_ELEMENTS;
}

/* Adds bytes that may hold anything. */
static struct cm_str joined(struct cm_arena *arena, struct cm_str a, struct cm_str b)
{
    char *bytes = cm_arena_alloc(arena, a.size + b.size + 1);

    if (a.size)
        memcpy(bytes, a.data, a.size);
    if (b.size)
        memcpy(bytes + a.size, b.data, b.size);
    return (struct cm_str){bytes, a.size + b.size};
}

/* The types of all that the node reads; false where more than that is known of one, or less. */
static bool print_types(const struct cm_expansion *x, const struct cm_graph *graph,
                        const struct cm_strs *names, struct cm_str *out)
{
    const struct cm_module *module = graph->module;

    for (size_t i = 0; i < names->count; i++) {
        const cm_value value = cm_graph_find(graph, names->items[i]);
        const struct cm_value_def *def = value ? cm_value_get(module, value) : NULL;
        if (!def || def->fact.constant || def->fact.known ||
            (def->role == CM_ROLE_INITIALIZER && cm_expansion_is_arithmetic(def->fact.type)))
            return false;
        const struct cm_str type =
            cm_type_print(x->arena, cm_module_symbols(module), def->fact.type);
        if (memchr(type.data, '?', type.size)) /* equal to another or not, one cannot tell */
            return false;
        *out = cm_arena_printf(x->arena, "%.*s%.*s\n", CM_STR_FMT(*out), CM_STR_FMT(type));
    }
    return true;
}

static struct cm_str place_in(struct cm_arena *arena, const struct cm_strs *names,
                              struct cm_str name)
{
    for (size_t i = 0; i < names->count; i++)
        if (cm_str_equal(names->items[i], name))
            return cm_arena_printf(arena, "%zu", i);
    return CM_STR_NONE;
}

enum cm_status cm_expansion_key(struct cm_expansion *x, const struct cm_graph *graph,
                                const struct cm_node_proto *node,
                                const struct cm_function_proto *whole, struct cm_str *key)
{
    struct cm_node_proto plain = *node;
    struct cm_str types = CM_STR_NONE, bytes;

    *key = CM_STR_NONE;
    for (size_t a = 0; a < node->attribute.count; a++)
        if (node->attribute.items[a].g)
            return CM_OK;
    if (node->input.count > OPERANDS_ALIKE || !print_types(x, graph, &whole->input, &types))
        return CM_OK;
    plain.input.items = CM_NEW_ARRAY(x->arena, struct cm_str, node->input.count);
    plain.output.items = CM_NEW_ARRAY(x->arena, struct cm_str, node->output.count);
    for (size_t i = 0; i < node->input.count; i++)
        plain.input.items[i] = place_in(x->arena, &whole->input, node->input.items[i]);
    for (size_t o = 0; o < node->output.count; o++)
        plain.output.items[o] = node->output.items[o].size ? CM_STR("y") : CM_STR_NONE;
    cm_msg_set(&plain.msg, CM_NODE_INPUT);
    cm_msg_set(&plain.msg, CM_NODE_OUTPUT);
    cm_msg_clear(&plain.msg, CM_NODE_NAME);
    cm_msg_clear(&plain.msg, CM_NODE_DOC_STRING);
    cm_msg_clear(&plain.msg, CM_NODE_METADATA_PROPS);
    CM_TRY(cm_encode(&cm_node_info, &plain, x->arena, &bytes, x->err));
    *key = joined(x->arena, types, bytes);
    return CM_OK;
}
