/* What a run takes by the shapes alone: operations of products, memory of activations. */
// SPDX-License-Identifier: Apache-2.0
#include "evaluate/costs.h"

#include "base/diagnostics.h"
#include "graph/function.h"
#include "graph/import.h"
#include "lower/lower.h"

#include <stdlib.h>

enum { OPERANDS_MAX = 64 };

struct counting {
    struct cm_arena *arena, *scratch; /* of the result, of the work */
    struct cm_module *module;
    struct cm_costs *costs;
    struct cm_map rows;  /* domain and name of an operator to 1 + its row */
    struct cm_cost *row; /* of the node of the file that is counted */
    struct cm_map sizes; /* of dimensions, by name */
    CM_ARRAY(struct value_life) lives;
    const struct cm_value_infos *outputs; /* of the model */
};

/* ---- sizes of open dimensions ---- */

/* A size for a dimension of an input that is not fixed. */
static int64_t size_of(struct counting *c, struct cm_str symbol)
{
    bool added;
    uint64_t *slot = cm_map_insert(&c->sizes, c->scratch, symbol, &added);

    if (added)
        *slot = 1;
    if (added || *slot >> 63) {
        *slot &= ~(UINT64_C(1) << 63);
        *CM_PUSH(c->arena, &c->costs->sizes) =
            (struct cm_assumed_size){cm_arena_str(c->arena, symbol), (int64_t)*slot, added};
    }
    return (int64_t)*slot;
}

static struct cm_type_proto *fixed_type(struct counting *c, const struct cm_type_proto *from)
{
    struct cm_type_proto *type = CM_NEW(c->scratch, struct cm_type_proto);
    struct cm_tensor_type_proto *tensor = CM_NEW(c->scratch, struct cm_tensor_type_proto);
    struct cm_shape_proto *shape = CM_NEW(c->scratch, struct cm_shape_proto);

    *type = *from;
    *tensor = *from->tensor_type;
    *shape = *tensor->shape;
    type->tensor_type = tensor;
    tensor->shape = shape;
    shape->dim.items = CM_NEW_ARRAY(c->scratch, struct cm_dim_proto, shape->dim.count);
    for (size_t i = 0; i < shape->dim.count; i++) {
        struct cm_dim_proto *dim = &shape->dim.items[i];
        *dim = from->tensor_type->shape->dim.items[i];
        if (cm_msg_has(&dim->msg, CM_DIM_VALUE))
            continue;
        dim->dim_value =
            size_of(c, cm_msg_has(&dim->msg, CM_DIM_PARAM) ? dim->dim_param : CM_STR("?"));
        dim->dim_param = CM_STR_NONE;
        cm_msg_clear(&dim->msg, CM_DIM_PARAM);
        cm_msg_set(&dim->msg, CM_DIM_VALUE);
    }
    return type;
}

/* The model with inputs of fixed shapes, over the same messages otherwise. */
static struct cm_model_proto *fixed_model(struct counting *c, const struct cm_model_proto *from)
{
    struct cm_model_proto *model = CM_NEW(c->scratch, struct cm_model_proto);
    struct cm_graph_proto *graph = CM_NEW(c->scratch, struct cm_graph_proto);

    *model = *from;
    *graph = *from->graph;
    model->graph = graph;
    graph->input.items = CM_NEW_ARRAY(c->scratch, struct cm_value_info_proto, graph->input.count);
    for (size_t i = 0; i < graph->input.count; i++) {
        struct cm_value_info_proto *info = &graph->input.items[i];
        *info = from->graph->input.items[i];
        if (info->type && info->type->tensor_type && info->type->tensor_type->shape)
            info->type = fixed_type(c, info->type);
    }
    return model;
}

/* ---- counting ---- */

static struct cm_cost *row_of(struct counting *c, const struct cm_node *node)
{
    uint64_t *slot =
        cm_map_insert(&c->rows, c->scratch,
                      cm_arena_printf(c->scratch, "%.*s\n%.*s", CM_STR_FMT(node->domain),
                                      CM_STR_FMT(node->op_type)),
                      NULL);

    if (!*slot) {
        *CM_PUSH(c->arena, &c->costs->operators) =
            (struct cm_cost){.domain = cm_arena_str(c->arena, node->domain),
                             .op = cm_arena_str(c->arena, node->op_type)};
        *slot = c->costs->operators.count;
    }
    return &c->costs->operators.items[*slot - 1];
}

static bool tensor_of(const struct counting *c, cm_value value, struct cm_tensor *out)
{
    const struct cm_type *type = value ? cm_value_get(c->module, value)->fact.type : NULL;

    *out = (struct cm_tensor){0};
    if (!type || type->kind != CM_KIND_TENSOR || !cm_type_shape(type, &out->shape))
        return false;
    out->type = type->dtype;
    return true;
}

static void count_flops(struct counting *c, const struct cm_node *node)
{
    struct cm_tensor tensors[2 * OPERANDS_MAX];
    const struct cm_tensor *in[OPERANDS_MAX], *out[OPERANDS_MAX];

    if (!node->op || !node->op->cost.flops || node->n_inputs > OPERANDS_MAX ||
        node->n_outputs > OPERANDS_MAX)
        return;
    for (int i = 0; i < node->n_inputs; i++) {
        in[i] = node->inputs[i].value ? &tensors[i] : NULL;
        if (in[i] && !tensor_of(c, node->inputs[i].value, &tensors[i]))
            return;
    }
    for (int o = 0; o < node->n_outputs; o++) {
        out[o] = node->outputs[o] ? &tensors[OPERANDS_MAX + o] : NULL;
        if (out[o] && !tensor_of(c, node->outputs[o], &tensors[OPERANDS_MAX + o]))
            return;
    }
    const double flops = node->op->cost.flops(node, in, node->n_inputs, out, node->n_outputs);
    c->row->flops += flops;
    c->costs->flops += flops;
}

/* Bytes of a result that a run computes; 0 where that is not known or known before. */
static uint64_t bytes_of(struct counting *c, cm_value value, bool *known)
{
    struct cm_tensor tensor;

    *known = true;
    if (!value || cm_value_get(c->module, value)->fact.constant)
        return 0;
    *known = tensor_of(c, value, &tensor) && tensor.type != CM_STRING;
    return *known ? (uint64_t)cm_tensor_bytes(&tensor) : 0;
}

/* ---- what lives when ---- */

/* Of values by their number, which is unique in the module: bodies and instances share the list. */
struct value_life {
    uint64_t bytes;
    size_t last_use; /* position of the node of its graph that reads it last */
};

static struct value_life *life_of(struct counting *c, cm_value value)
{
    while (c->lives.count <= value)
        *CM_PUSH(c->scratch, &c->lives) = (struct value_life){0};
    return &c->lives.items[value];
}

static void mark(struct counting *c, const struct cm_graph *graph, cm_value value, size_t position)
{
    if (value && cm_value_get(c->module, value)->graph == graph)
        life_of(c, value)->last_use = position;
}

/* Marks what a node reads of its graph, bodies inside it included. */
static void mark_uses(struct counting *c, const struct cm_graph *graph, const struct cm_node *node,
                      size_t position)
{
    for (int i = 0; i < node->n_inputs; i++)
        mark(c, graph, node->inputs[i].value, position);
    for (size_t b = 0; b < node->n_bodies; b++) {
        const struct cm_graph *body = node->bodies[b].graph;
        for (const struct cm_node *inner = body ? body->first : NULL; inner; inner = inner->next)
            mark_uses(c, graph, inner, position);
        for (size_t o = 0; body && o < body->n_outputs; o++)
            mark(c, graph, body->outputs[o].value, position);
    }
}

struct level {
    uint64_t now, peak; /* bytes */
    int depth;
};

static void count_graph(struct counting *c, const struct cm_graph *graph, struct level *level);

/* What runs inside a node: its bodies, or the function that it calls. Gives the most it holds. */
static uint64_t count_inside(struct counting *c, struct cm_node *node, int depth)
{
    const bool by_function =
        node->function || (!cm_node_has_kernel(node) && cm_node_has_function(node));
    uint64_t most = 0;

    if (depth >= CM_CALL_DEPTH)
        return 0;
    for (size_t b = 0; b < node->n_bodies; b++) {
        struct level level = {.depth = depth + 1};
        if (node->bodies[b].graph)
            count_graph(c, node->bodies[b].graph, &level);
        most = level.peak > most ? level.peak : most;
        c->costs->has_bodies = true;
    }
    if (by_function && cm_node_instantiate(node, NULL) == CM_OK) {
        struct level level = {.depth = depth + 1};
        count_graph(c, node->instance, &level);
        most = level.peak;
    }
    return most;
}

static void count_node(struct counting *c, struct cm_node *node, size_t position,
                       struct level *level)
{
    const bool own = level->depth == 0;

    if (own)
        c->row = row_of(c, node);
    c->row->node_count += own;
    count_flops(c, node);
    const uint64_t inside = count_inside(c, node, level->depth);
    for (int o = 0; o < node->n_outputs; o++) {
        bool known;
        const uint64_t bytes = bytes_of(c, node->outputs[o], &known);

        level->now += bytes;
        if (node->outputs[o])
            life_of(c, node->outputs[o])->bytes = bytes;
        c->costs->unknown_count += own && !known;
        c->costs->activation_bytes += own ? bytes : 0;
        c->row->output_bytes += own ? bytes : 0;
    }
    if (level->now + inside > level->peak)
        level->peak = level->now + inside;
    for (int k = 0; k < node->n_inputs + node->n_outputs; k++) {
        const cm_value value =
            k < node->n_inputs ? node->inputs[k].value : node->outputs[k - node->n_inputs];
        if (!value || cm_value_get(c->module, value)->graph != node->graph)
            continue;
        struct value_life *life = life_of(c, value);
        if (life->last_use <= position) {
            level->now -= life->bytes;
            life->bytes = 0;
        }
    }
}

static void count_graph(struct counting *c, const struct cm_graph *graph, struct level *level)
{
    size_t position = 0;
    bool known;

    for (size_t i = 0; level->depth == 0 && i < graph->n_inputs; i++) {
        struct value_life *life = life_of(c, graph->inputs[i]);
        life->bytes = bytes_of(c, graph->inputs[i], &known);
        level->now += life->bytes;
    }
    level->peak = level->now;
    for (const struct cm_node *node = graph->first; node; node = node->next)
        mark_uses(c, graph, node, ++position);
    for (size_t o = 0; o < graph->n_outputs; o++)
        mark(c, graph, graph->outputs[o].value, SIZE_MAX);
    for (size_t o = 0; level->depth == 0 && o < c->outputs->count; o++)
        mark(c, graph, cm_graph_find(graph, c->outputs->items[o].name), SIZE_MAX);
    position = 0;
    for (struct cm_node *node = graph->first; node; node = node->next)
        count_node(c, node, ++position, level);
}

/* ---- all of it ---- */

static int falling(const void *a, const void *b)
{
    const struct cm_cost *x = a, *y = b;

    if (x->flops != y->flops)
        return (x->flops < y->flops) - (x->flops > y->flops);
    return (x->output_bytes < y->output_bytes) - (x->output_bytes > y->output_bytes);
}

static enum cm_status count_model(struct counting *c, const struct cm_model_file *file,
                                  const struct cm_given_size *sizes, size_t n_sizes,
                                  struct cm_error *err)
{
    struct cm_findings findings = {.arena = c->scratch};
    const struct cm_import_options options = {
        .partial = true, .findings = &findings, .constant_defaults = true};
    struct level level = {0};
    struct cm_graph *graph;

    if (!file->model.graph)
        return cm_fail(err, CM_BAD_MODEL, "the model has no graph");
    for (size_t i = 0; i < n_sizes; i++) {
        if (sizes[i].size < 0)
            return cm_fail(err, CM_BAD_ARGUMENT, "a dimension cannot be %lld",
                           (long long)sizes[i].size);
        /* The highest bit says that nobody asked for it yet. */
        *cm_map_insert(&c->sizes, c->scratch, sizes[i].symbol, NULL) =
            (uint64_t)sizes[i].size | UINT64_C(1) << 63;
    }
    const struct cm_model_proto *model = fixed_model(c, &file->model);
    for (size_t i = 0; i < n_sizes; i++)
        if (cm_map_get(&c->sizes, sizes[i].symbol, 0) >> 63)
            return cm_fail(err, CM_NOT_FOUND, "no input has a dimension '%.*s'",
                           CM_STR_FMT(sizes[i].symbol));
    c->module = cm_module_new(
        c->scratch, &(struct cm_module_options){.files = file->files, .registry = file->registry});
    c->outputs = &model->graph->output;
    CM_TRY(cm_lower_import_as(c->module, model, &options, &graph, err));
    c->costs->left_out = findings.total;
    count_graph(c, graph, &level);
    c->costs->peak_bytes = level.peak;
    return CM_OK;
}

enum cm_status cm_costs_count(struct cm_arena *arena, struct cm_arena *scratch,
                              const struct cm_model_file *file, const struct cm_given_size *sizes,
                              size_t n_sizes, struct cm_costs *out, struct cm_error *err)
{
    struct counting c = {.arena = arena, .scratch = scratch, .costs = out};

    *out = (struct cm_costs){0};
    CM_TRY(count_model(&c, file, sizes, n_sizes, err));
    if (out->operators.count)
        qsort(out->operators.items, out->operators.count, sizeof *out->operators.items, falling);
    return CM_OK;
}
