/* How often each operator is used, and what the training entries need. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api.h"

#include "base/array.h"
#include "graph/registry.h"

/* Where a node counts. */
enum where { IN_GRAPH, IN_NESTED, IN_FUNCTIONS, IN_TRAINING };

struct tally {
    struct cameo_model *model;
    struct cm_arena *scratch;
    struct cm_map rows; /* key of an operator to its index */
    CM_ARRAY(struct cameo_operator);
    char *key;
    size_t key_room;
};

static struct cm_str plain_domain(struct cm_str domain)
{
    return cm_str_is(domain, "ai.onnx") ? CM_STR_NONE : domain;
}

/* Domain and name with their lengths apart, in memory that the next call reuses. */
static struct cm_str operator_key(struct tally *tally, struct cm_str domain, struct cm_str name)
{
    const size_t size = sizeof domain.size + domain.size + name.size;

    if (size > tally->key_room) {
        tally->key = cm_arena_alloc(tally->scratch, size * 2);
        tally->key_room = size * 2;
    }
    memcpy(tally->key, &domain.size, sizeof domain.size);
    if (domain.size)
        memcpy(tally->key + sizeof domain.size, domain.data, domain.size);
    if (name.size)
        memcpy(tally->key + sizeof domain.size + domain.size, name.data, name.size);
    return (struct cm_str){tally->key, size};
}

/* What draws in training alone has results that are fixed otherwise. */
static bool is_random(const struct cm_node_proto *node)
{
    const struct cm_op *op = cm_builtin_op(node);

    return op->effects & CM_RANDOM && !op->training;
}

static void count_node(struct tally *tally, const struct cm_node_proto *node, enum where where)
{
    const struct cm_str domain = plain_domain(node->domain);
    const struct cm_str key = operator_key(tally, domain, node->op_type);
    uint64_t *index = cm_map_find(&tally->rows, key);

    if (!index) {
        index =
            cm_map_insert(&tally->rows, tally->scratch, cm_arena_str(tally->scratch, key), NULL);
        *index = tally->count;
        *CM_PUSH(tally->scratch, tally) = (struct cameo_operator){
            .domain = cm_api_text(&tally->model->arena, domain),
            .name = cm_api_text(&tally->model->arena, node->op_type),
            .is_random = is_random(node),
        };
    }
    struct cameo_operator *row = &tally->items[*index];
    row->count++;
    row->in_graph += where == IN_GRAPH;
    row->in_nested += where == IN_NESTED;
    row->in_functions += where == IN_FUNCTIONS;
    row->in_training += where == IN_TRAINING;
}

/* Recursion is as deep as graphs nest, which the readers of both forms bound. Tally may be NULL. */
static size_t count_nodes(struct tally *tally, const struct cm_nodes *nodes, enum where where)
{
    const enum where inside = where == IN_GRAPH ? IN_NESTED : where;
    size_t count = nodes->count;

    for (size_t i = 0; i < nodes->count; i++) {
        const struct cm_node_proto *node = &nodes->items[i];

        if (tally)
            count_node(tally, node, where);
        for (size_t a = 0; a < node->attribute.count; a++) {
            const struct cm_attribute_proto *attribute = &node->attribute.items[a];

            if (attribute->g)
                count += count_nodes(tally, &attribute->g->node, inside);
            for (size_t g = 0; g < attribute->graphs.count; g++)
                count += count_nodes(tally, &attribute->graphs.items[g].node, inside);
        }
    }
    return count;
}

size_t cm_count_nodes(const struct cm_nodes *nodes)
{
    return count_nodes(NULL, nodes, IN_GRAPH);
}

static int compare_texts(struct cameo_text a, struct cameo_text b)
{
    return cm_str_compare((struct cm_str){a.data, a.size}, (struct cm_str){b.data, b.size});
}

static int compare_operators(const void *a, const void *b)
{
    const struct cameo_operator *x = a, *y = b;

    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    const int order = compare_texts(x->domain, y->domain);
    return order ? order : compare_texts(x->name, y->name);
}

void cm_describe_operators(struct cameo_model *model, struct cm_arena *scratch)
{
    const struct cm_model_proto *proto = &model->file->model;
    struct cameo_summary *summary = &model->summary;
    struct tally tally = {.model = model, .scratch = scratch};

    if (proto->graph) {
        summary->node_count = proto->graph->node.count;
        summary->nested_node_count =
            count_nodes(&tally, &proto->graph->node, IN_GRAPH) - summary->node_count;
    }
    for (size_t i = 0; i < proto->functions.count; i++)
        summary->function_node_count +=
            count_nodes(&tally, &proto->functions.items[i].node, IN_FUNCTIONS);
    for (size_t i = 0; i < proto->training_info.count; i++) {
        const struct cm_training_proto *entry = &proto->training_info.items[i];

        if (entry->initialization)
            summary->training_node_count +=
                count_nodes(&tally, &entry->initialization->node, IN_TRAINING);
        if (entry->algorithm)
            summary->training_node_count +=
                count_nodes(&tally, &entry->algorithm->node, IN_TRAINING);
    }
    summary->operator_count = tally.count;
    if (tally.count == 0)
        return;
    model->operators = CM_NEW_ARRAY(&model->arena, struct cameo_operator, tally.count);
    memcpy(model->operators, tally.items, tally.count * sizeof *tally.items);
    qsort(model->operators, tally.count, sizeof *tally.items, compare_operators);
}

struct value_list {
    CM_ARRAY(const struct cameo_value_info *);
};

struct text_list {
    CM_ARRAY(struct cameo_text);
};

static void add_value(struct cm_arena *arena, struct value_list *list,
                      const struct cm_value_info_proto *from)
{
    struct cameo_value_info *value = CM_NEW(arena, struct cameo_value_info);

    cm_describe_value(arena, from, value);
    *CM_PUSH(arena, list) = value;
}

/* Names among the keys of bindings become variables of the entry, each once. */
static void add_states(struct cameo_model *model, const struct cm_entries *bindings,
                       struct cm_map *seen, struct cm_arena *scratch, struct text_list *states)
{
    for (size_t i = 0; i < bindings->count; i++) {
        const struct cm_str key = bindings->items[i].key;
        const uint64_t *index = cm_map_find(&model->by_name, key);

        if (index)
            model->initializers[*index].is_state = true;
        if (cm_map_add(seen, scratch, key))
            *CM_PUSH(&model->arena, states) = cm_api_text(&model->arena, key);
    }
}

/* An input needs no feed when an initializer of the algorithm or of the graph has its name. */
static void describe_algorithm(struct cameo_model *model, const struct cm_graph_proto *algorithm,
                               struct cm_arena *scratch, struct cameo_training *out)
{
    struct value_list inputs = {0}, outputs = {0};
    struct cm_map own = {0};

    for (size_t i = 0; i < algorithm->initializer.count; i++)
        cm_map_insert(&own, scratch, algorithm->initializer.items[i].name, NULL);
    for (size_t i = 0; i < algorithm->input.count; i++) {
        const struct cm_str name = algorithm->input.items[i].name;
        const uint64_t *index = cm_map_find(&model->by_name, name);

        if (!cm_map_find(&own, name) && !(index && model->initializers[*index].training < 0))
            add_value(&model->arena, &inputs, &algorithm->input.items[i]);
    }
    for (size_t i = 0; i < algorithm->output.count; i++)
        add_value(&model->arena, &outputs, &algorithm->output.items[i]);
    out->inputs = inputs.items;
    out->input_count = inputs.count;
    out->outputs = outputs.items;
    out->output_count = outputs.count;
    out->algorithm_node_count = cm_count_nodes(&algorithm->node);
}

void cm_describe_training(struct cameo_model *model, struct cm_arena *scratch)
{
    const struct cm_model_proto *proto = &model->file->model;
    struct cm_arena *arena = &model->arena;
    const size_t count = proto->training_info.count;

    model->summary.training_count = count;
    model->trainings = CM_NEW_ARRAY(arena, struct cameo_training, count);
    for (size_t i = 0; i < count; i++) {
        const struct cm_training_proto *from = &proto->training_info.items[i];
        struct cameo_training *out = &model->trainings[i];
        struct text_list states = {0};
        struct cm_map seen = {0};

        if (from->initialization)
            out->initialization_node_count = cm_count_nodes(&from->initialization->node);
        if (from->algorithm)
            describe_algorithm(model, from->algorithm, scratch, out);
        out->initialization_binding_count = from->initialization_binding.count;
        out->initialization_bindings = cm_api_entries(arena, &from->initialization_binding);
        out->update_binding_count = from->update_binding.count;
        out->update_bindings = cm_api_entries(arena, &from->update_binding);
        add_states(model, &from->initialization_binding, &seen, scratch, &states);
        add_states(model, &from->update_binding, &seen, scratch, &states);
        out->states = states.items;
        out->state_count = states.count;
    }
}
