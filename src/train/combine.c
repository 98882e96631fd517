/* Putting the graphs of training info together. */
// SPDX-License-Identifier: Apache-2.0
#include "train/combine.h"

#include "graph/node_order.h"
#include "graph/registry.h"
#include "graph/type.h"

enum { DEPTH_MAX = 64 };

static const struct cm_graph_proto nothing;

const struct cm_graph_proto *cm_training_algorithm(const struct cm_training_proto *entry)
{
    return entry->algorithm ? entry->algorithm : &nothing;
}

/* ---- who needs what ---- */

struct need {
    struct cm_arena *arena;
    struct cm_map names;
    struct cm_map given; /* fed, whoever would compute it */
};

static void need(void *arg, struct cm_str name)
{
    struct need *n = arg;

    if (name.size)
        cm_map_insert(&n->names, n->arena, name, NULL);
}

static bool is_needed(const struct need *n, struct cm_str name)
{
    return name.size && cm_map_find(&n->names, name);
}

struct reader {
    cm_name_fn *name;
    void *arg;
};

static void reads_of_graph(const struct reader *r, const struct cm_graph_proto *graph, int depth);

/* Gradient reads what its attributes name. Names that a body defines itself may be listed too: that
 * keeps a node too many, at worst. */
static void reads_of_attribute(const struct reader *r, const struct cm_node_proto *node,
                               const struct cm_attribute_proto *attribute, int depth)
{
    if (attribute->g)
        reads_of_graph(r, attribute->g, depth + 1);
    for (size_t i = 0; i < attribute->graphs.count; i++)
        reads_of_graph(r, &attribute->graphs.items[i], depth + 1);
    if (!cm_str_is(node->op_type, "Gradient"))
        return;
    if (cm_str_is(attribute->name, "y"))
        r->name(r->arg, attribute->s);
    for (size_t i = 0; i < attribute->strings.count; i++)
        r->name(r->arg, attribute->strings.items[i]);
}

static void reads_of_node(const struct reader *r, const struct cm_node_proto *node, int depth)
{
    for (size_t i = 0; i < node->input.count; i++)
        r->name(r->arg, node->input.items[i]);
    for (size_t i = 0; i < node->attribute.count && depth < DEPTH_MAX; i++)
        reads_of_attribute(r, node, &node->attribute.items[i], depth);
}

static void reads_of_graph(const struct reader *r, const struct cm_graph_proto *graph, int depth)
{
    for (size_t i = 0; i < graph->node.count; i++)
        reads_of_node(r, &graph->node.items[i], depth);
    for (size_t i = 0; i < graph->output.count; i++)
        r->name(r->arg, graph->output.items[i].name);
}

void cm_node_reads(const struct cm_node_proto *node, cm_name_fn *name, void *arg)
{
    reads_of_node(&(const struct reader){name, arg}, node, 0);
}

/* ---- behaving as in inference ---- */

/* With the attribute gone, and the statistics that only training gives, unless they are asked for.
 */
static void clear_mode_attribute(const struct need *n, struct cm_node_proto *node,
                                 const struct cm_training_form *training)
{
    const size_t first = (size_t)training->statistics_output;
    size_t kept = 0;

    for (size_t o = first; training->n_statistics && o < node->output.count; o++)
        if (is_needed(n, node->output.items[o]))
            return;
    struct cm_attribute_proto *attributes =
        CM_NEW_ARRAY(n->arena, struct cm_attribute_proto, node->attribute.count);
    for (size_t i = 0; i < node->attribute.count; i++)
        if (!cm_str_is(node->attribute.items[i].name, training->mode_attribute))
            attributes[kept++] = node->attribute.items[i];
    node->attribute.items = attributes;
    node->attribute.count = kept;
    if (training->n_statistics && node->output.count > first)
        node->output.count = first;
}

static void settle(const struct need *n, struct cm_node_proto *node)
{
    const struct cm_training_form *training = cm_builtin_op(node)->training;

    if (!training)
        return;
    if (training->mode_attribute)
        clear_mode_attribute(n, node, training);
    if (training->mode_input && node->input.count > (size_t)training->mode_input)
        node->input.count = (size_t)training->mode_input;
}

/* ---- joining ---- */

struct joint {
    const struct cm_combine *what;
    const struct cm_graph_proto *parts[3];
    size_t n_parts;
    struct need need;
    struct cm_map initializers; /* of all parts */
    struct cm_map variables;    /* those that became inputs */
    struct cm_graph_proto *out;
};

/* Does anything that is needed come from this node? What is given does not: then its name belongs
 * to an input. */
static bool is_wanted(struct joint *j, const struct cm_node_proto *from, struct cm_node_proto *node)
{
    bool wanted = false, hidden = false;

    for (size_t o = 0; o < from->output.count; o++) {
        const bool given =
            from->output.items[o].size && cm_map_find(&j->need.given, from->output.items[o]);

        hidden = hidden || given;
        wanted = wanted || (!given && is_needed(&j->need, from->output.items[o]));
    }
    *node = *from;
    if (!wanted || !hidden)
        return wanted;
    node->output.items = CM_NEW_ARRAY(j->what->arena, struct cm_str, from->output.count);
    for (size_t o = 0; o < from->output.count; o++)
        if (!cm_map_find(&j->need.given, from->output.items[o]))
            node->output.items[o] = from->output.items[o];
    return true;
}

static void keep_nodes(struct joint *j, const struct cm_graph_proto *const *parts, size_t n_parts)
{
    size_t total = 0, at;

    for (size_t p = 0; p < n_parts; p++)
        total += parts[p]->node.count;
    struct cm_node_proto *nodes = CM_NEW_ARRAY(j->what->arena, struct cm_node_proto, total);
    at = total;
    for (size_t p = n_parts; p-- > 0;) {
        const struct cm_nodes sorted = cm_nodes_sorted(j->what->arena, &parts[p]->node);

        for (size_t i = sorted.count; i-- > 0;) {
            struct cm_node_proto node;

            if (!is_wanted(j, &sorted.items[i], &node))
                continue;
            if (j->what->evaluate)
                settle(&j->need, &node);
            nodes[--at] = node;
            cm_node_reads(&node, need, &j->need);
        }
    }
    j->out->node.items = nodes + at;
    j->out->node.count = total - at;
}

static void add_variables(struct joint *j, struct cm_combined *out, const struct cm_map *hidden)
{
    const struct cm_combine *what = j->what;

    out->variables = CM_NEW_ARRAY(what->arena, size_t, what->n_variables);
    struct cm_value_info_proto *inputs =
        CM_NEW_ARRAY(what->arena, struct cm_value_info_proto, what->n_variables);
    for (size_t i = 0; i < what->n_variables; i++) {
        const struct cm_combine_variable *variable = &what->variables[i];
        const size_t rank = variable->proto->dims.count;

        if ((variable->entry >= 0 && (size_t)variable->entry != what->entry) ||
            !is_needed(&j->need, variable->name) ||
            (hidden && cm_map_find(hidden, variable->name)) || rank > CM_MAX_RANK)
            continue;
        struct cm_dim *dims = CM_NEW_ARRAY(what->arena, struct cm_dim, rank);
        for (size_t d = 0; d < rank; d++)
            dims[d] = CM_DIM(variable->proto->dims.items[d]);
        struct cm_value_info_proto *input = &inputs[out->n_variables];
        input->name = variable->name;
        input->type = CM_NEW(what->arena, struct cm_type_proto);
        cm_type_to_proto(
            what->arena, NULL,
            cm_type_tensor(what->arena, (enum cm_dtype)variable->proto->data_type, (int)rank, dims),
            input->type);
        out->variables[out->n_variables++] = i;
        cm_map_insert(&j->variables, what->arena, variable->name, NULL);
    }
    j->out->input = (struct cm_value_infos){inputs, out->n_variables};
}

static void add_given(struct joint *j, struct cm_combined *out)
{
    const struct cm_combine *what = j->what;
    struct cm_value_info_proto *inputs =
        CM_NEW_ARRAY(what->arena, struct cm_value_info_proto, j->out->input.count + what->n_given);
    size_t count = j->out->input.count;

    if (count)
        memcpy(inputs, j->out->input.items, count * sizeof *inputs);
    out->given = CM_NEW_ARRAY(what->arena, size_t, what->n_given);
    for (size_t i = 0; i < what->n_given; i++) {
        if (!is_needed(&j->need, what->given[i].name))
            continue;
        inputs[count++] = what->given[i];
        out->given[out->n_given++] = i;
    }
    j->out->input = (struct cm_value_infos){inputs, count};
}

/* Inputs that an initializer covers are constants in training: nobody feeds them. */
static void add_feeds(struct joint *j)
{
    struct cm_arena *arena = j->what->arena;
    size_t total = j->out->input.count;

    for (size_t p = 0; p < j->n_parts; p++)
        total += j->parts[p]->input.count;
    struct cm_value_info_proto *inputs = CM_NEW_ARRAY(arena, struct cm_value_info_proto, total);
    struct cm_map seen = {0};
    size_t count = j->out->input.count;
    if (count)
        memcpy(inputs, j->out->input.items, count * sizeof *inputs);
    for (size_t p = 0; p < j->n_parts; p++)
        for (size_t i = 0; i < j->parts[p]->input.count; i++) {
            const struct cm_value_info_proto *input = &j->parts[p]->input.items[i];

            if (cm_map_find(&j->initializers, input->name) || !is_needed(&j->need, input->name) ||
                cm_map_find(&seen, input->name) || cm_map_find(&j->need.given, input->name))
                continue;
            cm_map_insert(&seen, arena, input->name, NULL);
            inputs[count++] = *input;
        }
    j->out->input = (struct cm_value_infos){inputs, count};
}

static void add_initializers(struct joint *j, const struct cm_map *hidden)
{
    struct cm_arena *arena = j->what->arena;
    size_t dense = 0, sparse = 0;

    for (size_t p = 0; p < j->n_parts; p++) {
        dense += j->parts[p]->initializer.count;
        sparse += j->parts[p]->sparse_initializer.count;
    }
    j->out->initializer.items = CM_NEW_ARRAY(arena, struct cm_tensor_proto, dense);
    j->out->sparse_initializer.items = CM_NEW_ARRAY(arena, struct cm_sparse_proto, sparse);
    for (size_t p = 0; p < j->n_parts; p++) {
        const struct cm_graph_proto *part = j->parts[p];

        for (size_t i = 0; i < part->initializer.count; i++) {
            const struct cm_str name = part->initializer.items[i].name;
            const bool is_hidden = hidden && p > 0 && cm_map_find(hidden, name);

            if (is_needed(&j->need, name) && !cm_map_find(&j->variables, name) && !is_hidden)
                j->out->initializer.items[j->out->initializer.count++] = part->initializer.items[i];
        }
        for (size_t i = 0; i < part->sparse_initializer.count; i++) {
            const struct cm_sparse_proto *tensor = &part->sparse_initializer.items[i];

            if (tensor->values && is_needed(&j->need, tensor->values->name))
                j->out->sparse_initializer.items[j->out->sparse_initializer.count++] = *tensor;
        }
    }
}

static void add_value_infos(struct joint *j)
{
    size_t total = 0, count = 0;

    for (size_t p = 0; p < j->n_parts; p++)
        total += j->parts[p]->value_info.count;
    struct cm_value_info_proto *infos =
        CM_NEW_ARRAY(j->what->arena, struct cm_value_info_proto, total);
    for (size_t p = 0; p < j->n_parts; p++)
        for (size_t i = 0; i < j->parts[p]->value_info.count; i++)
            infos[count++] = j->parts[p]->value_info.items[i];
    j->out->value_info = (struct cm_value_infos){infos, count};
}

/* With the type that the file declares, where it does. */
static void add_outputs(struct joint *j)
{
    const struct cm_combine *what = j->what;
    struct cm_value_info_proto *outputs =
        CM_NEW_ARRAY(what->arena, struct cm_value_info_proto, what->n_outputs);
    struct cm_map places = {0};

    for (size_t o = 0; o < what->n_outputs; o++) {
        outputs[o].name = what->outputs[o];
        *cm_map_insert(&places, what->arena, what->outputs[o], NULL) = o + 1;
    }
    for (size_t p = 0; p < j->n_parts; p++)
        for (size_t i = 0; i < j->parts[p]->output.count; i++) {
            const struct cm_value_info_proto *declared = &j->parts[p]->output.items[i];
            const uint64_t place = cm_map_get(&places, declared->name, 0);

            if (place)
                outputs[place - 1] = *declared;
        }
    j->out->output = (struct cm_value_infos){outputs, what->n_outputs};
}

static void begin(struct joint *j, const struct cm_combine *what, struct cm_combined *out)
{
    *out = (struct cm_combined){0};
    j->what = what;
    j->out = &out->graph;
    j->need.arena = what->arena;
    for (size_t i = 0; i < what->n_given; i++)
        cm_map_insert(&j->need.given, what->arena, what->given[i].name, NULL);
    for (size_t i = 0; i < what->n_outputs; i++)
        need(&j->need, what->outputs[i]);
    for (size_t p = 0; p < j->n_parts; p++)
        for (size_t i = 0; i < j->parts[p]->initializer.count; i++)
            cm_map_insert(&j->initializers, what->arena, j->parts[p]->initializer.items[i].name,
                          NULL);
    out->graph.name = j->parts[0]->name;
}

static void finish(struct joint *j, struct cm_combined *out)
{
    add_variables(j, out, NULL);
    add_given(j, out);
    add_initializers(j, NULL);
    add_feeds(j);
    add_value_infos(j);
    add_outputs(j);
}

void cm_combine_step(const struct cm_combine *what, struct cm_combined *out)
{
    struct joint j = {.n_parts = 2};

    j.parts[0] = what->model->graph;
    j.parts[1] = cm_training_algorithm(&what->model->training_info.items[what->entry]);
    begin(&j, what, out);
    keep_nodes(&j, j.parts, 2);
    finish(&j, out);
}

void cm_combine_inference(const struct cm_combine *what, struct cm_combined *out)
{
    struct joint j = {.n_parts = 1};

    j.parts[0] = what->model->graph;
    begin(&j, what, out);
    keep_nodes(&j, j.parts, 1);
    finish(&j, out);
}

/* What the initialization graph defines itself hides variables of the same name. */
static void list_own_names(struct cm_map *names, struct cm_arena *arena,
                           const struct cm_graph_proto *graph)
{
    for (size_t i = 0; i < graph->initializer.count; i++)
        cm_map_insert(names, arena, graph->initializer.items[i].name, NULL);
    for (size_t i = 0; i < graph->node.count; i++)
        for (size_t o = 0; o < graph->node.items[i].output.count; o++)
            cm_map_insert(names, arena, graph->node.items[i].output.items[o], NULL);
}

void cm_combine_initialization(const struct cm_combine *what, struct cm_combined *out)
{
    const struct cm_training_proto *entry = &what->model->training_info.items[what->entry];
    const struct cm_graph_proto *own = entry->initialization ? entry->initialization : &nothing;
    struct joint j = {.n_parts = 3};
    struct cm_map hidden = {0};

    j.parts[0] = own;
    j.parts[1] = what->model->graph;
    j.parts[2] = cm_training_algorithm(entry);
    begin(&j, what, out);
    list_own_names(&hidden, what->arena, own);
    keep_nodes(&j, j.parts, 1);
    add_variables(&j, out, &hidden);
    add_initializers(&j, &hidden);
    j.n_parts = 1; /* values of the other two graphs are none of its business */
    add_value_infos(&j);
    add_outputs(&j);
}
