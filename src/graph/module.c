/* What a module says of itself, and the marks that a pass puts on its nodes. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/module.h"

#include <assert.h>

struct cm_module_counts *cm_module_counts(struct cm_module *module)
{
    return &module->counts;
}

struct cm_arena *cm_module_arena(const struct cm_module *module)
{
    return module->arena;
}

struct cm_symbols *cm_module_symbols(const struct cm_module *module)
{
    return module->symbols;
}

const struct cm_registry *cm_module_registry(const struct cm_module *module)
{
    return module->registry;
}

size_t cm_module_value_count(const struct cm_module *module)
{
    return module->n_values;
}

size_t cm_module_room(const struct cm_module *module)
{
    return module->n_nodes < module->node_budget ? module->node_budget - module->n_nodes : 0;
}

struct cm_marks cm_marks_begin(struct cm_module *module)
{
    return (struct cm_marks){module, ++module->n_marks};
}

uint32_t cm_mark_get(const struct cm_marks *marks, const struct cm_node *node)
{
    assert(marks->number == marks->module->n_marks);
    return node->marked_by == marks->number ? node->mark : 0;
}

void cm_mark_set(const struct cm_marks *marks, struct cm_node *node, uint32_t mark)
{
    assert(marks->number == marks->module->n_marks);
    node->marked_by = marks->number;
    node->mark = mark;
}

const struct cm_model_proto *cm_module_model(const struct cm_module *module)
{
    return module->model;
}

int64_t cm_module_channel_block(const struct cm_module *module)
{
    return module->channel_block;
}

void cm_module_set_channel_block(struct cm_module *module, int64_t size)
{
    module->channel_block = size;
}

bool cm_module_be_lenient(struct cm_module *module, bool lenient)
{
    const bool before = module->lenient;
    module->lenient = lenient;
    return before;
}
