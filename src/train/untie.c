/* Tensors that an exporter merged because they were equal when it wrote them. Biases of zeros and
 * scales of ones of different layers come as one initializer; trained as one they would stay equal,
 * which no framework does. So an initializer that holds one repeated value and is read as scale,
 * shift or bias by several nodes becomes one for each. Who belongs together is told, where the file
 * has it, by nodes that copy the initializer under the name of the tensor it replaced (PyTorch's
 * older exporter), or by the parameters that a node's metadata names (the newer one). */
// SPDX-License-Identifier: Apache-2.0
#include "train/trainables.h"

#include "graph/registry.h"
#include "onnx/tensor_data.h"
#include "train/combine.h"

/* Nodes that read an initializer as one tensor of the framework. */
struct group {
    struct cm_str key;
    bool is_weight, is_statistic;
    struct cm_node_proto *copy; /* that makes it; NULL: they read the initializer itself */
    struct cm_str scope;        /* the module they are part of, or "" */
    struct cm_str hint;         /* a name to make one of */
    struct cm_str name;         /* of its own initializer, when it gets one */
};

struct merged {
    struct cm_tensor_proto *tensor;
    bool is_pinned; /* read by name in a body, or an output of the model */
    struct {
        struct group *items;
        size_t count, capacity;
    } groups;
    struct cm_map keys; /* of groups, to their numbers */
};

static const char other_key[] = " other", direct_key[] = " direct";

struct untie {
    struct cm_preparation *p;
    struct cm_graph_proto *graph;
    struct cm_map names;   /* initializers that may be such, to struct merged * */
    struct cm_map copies;  /* names that copies give, to the numbers of their nodes from 1 */
    struct cm_map outputs; /* of the model */
    bool has_copies;
};

static struct merged *find_merged(const struct untie *u, struct cm_str name)
{
    return name.size ? (struct merged *)(uintptr_t)cm_map_get(&u->names, name, 0) : NULL;
}

static bool is_vector(const struct cm_tensor_proto *tensor)
{
    int axes = 0;

    for (size_t i = 0; i < tensor->dims.count; i++)
        axes += tensor->dims.items[i] != 1;
    return tensor->dims.count > 0 && axes <= 1 && cm_dtype_is_valid(tensor->data_type) &&
           cm_dtype_info((enum cm_dtype)tensor->data_type)->kind == CM_CLASS_FLOAT;
}

static bool holds_one_value(const struct cm_preparation *p, const struct cm_tensor_proto *proto)
{
    struct cm_tensor tensor;
    bool same = true;

    if (cm_tensor_proto_load(proto, p->file->files, &tensor, NULL))
        return false;
    const int64_t count = cm_tensor_count(&tensor);
    for (int64_t i = 1; i < count && same; i++)
        same = cm_tensor_real(&tensor, i) == cm_tensor_real(&tensor, 0);
    cm_tensor_drop(&tensor);
    return same && count > 0;
}

/* ---- what metadata says ---- */

static struct cm_str metadata(const struct cm_node_proto *node, const char *key)
{
    for (size_t i = 0; i < node->metadata_props.count; i++)
        if (cm_str_is(node->metadata_props.items[i].key, key))
            return node->metadata_props.items[i].value;
    return CM_STR_NONE;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The parameters and buffers that the framework's operation read: %p_NAME and %b_NAME in the text
 * of its node. "" where there is no such text. */
static struct cm_str read_parameters(struct cm_arena *arena, const struct cm_node_proto *node)
{
    const struct cm_str text = metadata(node, "pkg.torch.onnx.fx_node");
    char *list = cm_arena_alloc(arena, text.size + 1);
    size_t used = 0;

    for (size_t i = 0; i + 3 < text.size; i++) {
        if (text.data[i] != '%' || (text.data[i + 1] != 'p' && text.data[i + 1] != 'b') ||
            text.data[i + 2] != '_')
            continue;
        do
            list[used++] = text.data[i++];
        while (i < text.size && is_word(text.data[i]));
        i--;
    }
    return (struct cm_str){list, used};
}

/* The module a node is part of: the last name but one in a list such as ['', 'a', 'a.b', 'add']. */
static struct cm_str read_scope(const struct cm_node_proto *node)
{
    const struct cm_str text = metadata(node, "pkg.torch.onnx.name_scopes");
    struct cm_str last = CM_STR_NONE, before = CM_STR_NONE;

    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] != '\'')
            continue;
        const size_t from = ++i;
        while (i < text.size && text.data[i] != '\'')
            i++;
        before = last;
        last = (struct cm_str){text.data + from, i - from};
    }
    return before;
}

/* ---- who reads what ---- */

static struct group *find_group(struct untie *u, struct merged *merged, struct cm_str key)
{
    bool added;
    uint64_t *number = cm_map_insert(&merged->keys, u->p->arena, key, &added);

    if (!added)
        return &merged->groups.items[*number];
    *number = merged->groups.count;
    struct group *group = CM_PUSH(u->p->arena, &merged->groups);
    *group = (struct group){.key = key};
    return group;
}

static bool reads_weight(const struct cm_node_proto *node, size_t input)
{
    return input < 32 && (cm_builtin_op(node)->weights & CM_OPERAND(input));
}

/* Readers that mean one tensor have one key. */
static struct cm_str key_of(struct untie *u, size_t node, size_t input)
{
    struct cm_arena *arena = u->p->arena;
    const struct cm_node_proto *reader = &u->graph->node.items[node];

    if (cm_node_reads_statistic(reader, input))
        return cm_arena_printf(arena, "statistic %zu %zu", node, input);
    if (!reads_weight(reader, input))
        return cm_str(other_key);
    if (u->has_copies || u->p->options->keep_tied)
        return cm_str(direct_key);
    const struct cm_str parameters = read_parameters(arena, reader);
    return parameters.size ? parameters : cm_arena_printf(arena, "node %zu", node);
}

static struct cm_str hint_of(const struct cm_node_proto *node)
{
    return node->name.size ? node->name : node->output.count ? node->output.items[0] : CM_STR("it");
}

static void add_reader(struct untie *u, struct merged *merged, size_t node, size_t input)
{
    const struct cm_node_proto *reader = &u->graph->node.items[node];
    struct group *group = find_group(u, merged, key_of(u, node, input));

    if (!group->hint.size) {
        group->hint = hint_of(reader);
        group->scope = read_scope(reader);
    }
    group->is_statistic = group->is_statistic || cm_node_reads_statistic(reader, input);
    group->is_weight = group->is_weight || reads_weight(reader, input);
}

static void pin(void *arg, struct cm_str name)
{
    struct merged *merged = find_merged(arg, name);

    if (merged)
        merged->is_pinned = true;
}

static bool is_copy(const struct untie *u, const struct cm_node_proto *node)
{
    return cm_builtin_op(node)->is_copy && node->input.count == 1 && node->output.count == 1 &&
           node->output.items[0].size && find_merged(u, node->input.items[0]) &&
           !cm_map_find(&u->outputs, node->output.items[0]);
}

static void find_copies(struct untie *u)
{
    for (size_t n = 0; n < u->graph->node.count; n++) {
        struct cm_node_proto *node = &u->graph->node.items[n];

        if (!is_copy(u, node))
            continue;
        struct group *group =
            find_group(u, find_merged(u, node->input.items[0]), node->output.items[0]);
        group->copy = node;
        group->hint = node->output.items[0];
        *cm_map_insert(&u->copies, u->p->arena, node->output.items[0], NULL) = n + 1;
        u->has_copies = true;
    }
}

/* A copy means what its readers take it for. */
static void read_copy(struct untie *u, size_t copy, const struct cm_node_proto *node, size_t input)
{
    const struct cm_node_proto *maker = &u->graph->node.items[copy];
    struct group *group =
        find_group(u, find_merged(u, maker->input.items[0]), maker->output.items[0]);

    group->is_statistic = group->is_statistic || cm_node_reads_statistic(node, input);
    group->is_weight = group->is_weight || reads_weight(node, input);
}

static void find_readers(struct untie *u)
{
    find_copies(u);
    for (size_t n = 0; n < u->graph->node.count; n++) {
        const struct cm_node_proto *node = &u->graph->node.items[n];

        if (is_copy(u, node))
            continue;
        for (size_t i = 0; i < node->input.count; i++) {
            struct merged *merged = find_merged(u, node->input.items[i]);
            const uint64_t copy = cm_map_get(&u->copies, node->input.items[i], 0);

            if (merged)
                add_reader(u, merged, n, i);
            else if (copy)
                read_copy(u, copy - 1, node, i);
        }
        if (cm_node_subgraph(node, 0))
            cm_node_reads(node, pin, u);
    }
    for (size_t i = 0; i < u->graph->output.count; i++)
        pin(u, u->graph->output.items[i].name);
}

/* ---- taking apart ---- */

static struct cm_str before_dot(struct cm_str name)
{
    while (name.size && name.data[name.size - 1] != '.')
        name.size--;
    return name.size ? (struct cm_str){name.data, name.size - 1} : name;
}

static struct cm_str after_dot(struct cm_str name)
{
    const struct cm_str head = before_dot(name);
    const size_t skip = head.size ? head.size + 1 : 0;

    return (struct cm_str){name.data + skip, name.size - skip};
}

/* The group that keeps the initializer: those that read it beside copies; else the module whose
 * name it has; else the first that is trained. */
static struct group *choose_keeper(const struct untie *u, struct merged *merged)
{
    struct group *first = NULL;

    for (size_t i = 0; i < merged->groups.count; i++) {
        struct group *group = &merged->groups.items[i];

        if (merged->is_pinned ? cm_str_is(group->key, other_key)
                              : u->has_copies && !group->copy && group->is_weight)
            return group;
        if (!merged->is_pinned && group->scope.size &&
            cm_str_equal(group->scope, before_dot(merged->tensor->name)))
            return group;
        if (!first && group->is_weight && !merged->is_pinned)
            first = group;
    }
    return first;
}

static struct cm_str name_piece(struct untie *u, const struct merged *merged,
                                const struct group *group)
{
    const struct cm_str name = merged->tensor->name;

    if (group->copy)
        return group->hint; /* the copy goes, its name stays */
    if (!group->is_weight && !group->is_statistic)
        return cm_preparation_name(u->p, "%.*s.constant", CM_STR_FMT(name));
    if (group->scope.size && !group->is_statistic)
        return cm_preparation_name(u->p, "%.*s.%.*s", CM_STR_FMT(group->scope),
                                   CM_STR_FMT(after_dot(name)));
    return cm_preparation_name(u->p, "%.*s.%.*s", CM_STR_FMT(name), CM_STR_FMT(group->hint));
}

/* Does it pay: is there more than one tensor to train or to update, or one beside a constant? */
static bool is_tied(const struct untie *u, const struct merged *merged)
{
    size_t weights = 0, statistics = 0;

    for (size_t i = 0; i < merged->groups.count; i++) {
        weights += merged->groups.items[i].is_weight;
        statistics += merged->groups.items[i].is_statistic;
    }
    return merged->groups.count > 1 && (weights || statistics > 1) &&
           (statistics || !u->p->options->keep_tied) && holds_one_value(u->p, merged->tensor);
}

static void take_apart(struct untie *u, struct merged *merged)
{
    struct cm_preparation *p = u->p;
    const struct cm_tensor_proto *from = merged->tensor;
    const struct group *keeper = choose_keeper(u, merged);

    for (size_t i = 0; i < merged->groups.count; i++) {
        struct group *group = &merged->groups.items[i];

        if (group == keeper || (p->options->keep_tied && !group->is_statistic) ||
            (merged->is_pinned && cm_str_is(group->key, other_key)))
            continue;
        group->name = name_piece(u, merged, group);
        struct cm_piece *piece = CM_PUSH(p->arena, &p->pieces);
        *piece = (struct cm_piece){.name = group->name,
                                   .original = from->name,
                                   .is_copy = group->copy != NULL,
                                   .is_statistic = group->is_statistic};
        if (group->copy)
            piece->copy = *group->copy;
    }
}

static struct cm_str new_name(struct untie *u, size_t node, size_t input)
{
    struct merged *merged = find_merged(u, u->graph->node.items[node].input.items[input]);

    return merged && merged->groups.count ? find_group(u, merged, key_of(u, node, input))->name
                                          : CM_STR_NONE;
}

static void set_input(struct cm_arena *arena, struct cm_node_proto *node, size_t input,
                      struct cm_str name)
{
    struct cm_strs in = {CM_NEW_ARRAY(arena, struct cm_str, node->input.count), node->input.count};

    memcpy(in.items, node->input.items, in.count * sizeof *in.items);
    in.items[input] = name;
    node->input = in;
    cm_msg_set(&node->msg, CM_NODE_INPUT);
}

/* Readers read their own; copies that became initializers go. */
static void rewrite_nodes(struct untie *u)
{
    struct cm_arena *arena = u->p->arena;
    struct cm_nodes *nodes = &u->graph->node;
    struct cm_map gone = {0};
    struct cm_node_proto *kept = CM_NEW_ARRAY(arena, struct cm_node_proto, nodes->count);
    size_t count = 0;

    for (size_t i = 0; i < u->p->pieces.count; i++)
        if (u->p->pieces.items[i].is_copy)
            cm_map_insert(&gone, arena, u->p->pieces.items[i].name, NULL);
    for (size_t n = 0; n < nodes->count; n++) {
        struct cm_node_proto node = nodes->items[n];

        if (node.output.count == 1 && cm_map_find(&gone, node.output.items[0]))
            continue;
        for (size_t i = 0; i < node.input.count && !is_copy(u, &nodes->items[n]); i++) {
            const struct cm_str name = new_name(u, n, i);

            if (name.size)
                set_input(arena, &node, i, name);
        }
        kept[count++] = node;
    }
    nodes->items = kept;
    nodes->count = count;
    cm_msg_set(&u->graph->msg, CM_GRAPH_NODE);
}

static void add_initializers(struct untie *u)
{
    const struct cm_preparation *p = u->p;
    const size_t old = u->graph->initializer.count, count = old + p->pieces.count;
    struct cm_tensor_proto *tensors = CM_NEW_ARRAY(p->arena, struct cm_tensor_proto, count);

    memcpy(tensors, u->graph->initializer.items, old * sizeof *tensors);
    for (size_t i = 0; i < p->pieces.count; i++) {
        struct cm_tensor_proto *tensor = &tensors[old + i];

        *tensor = *find_merged(u, p->pieces.items[i].original)->tensor;
        tensor->name = p->pieces.items[i].name;
        cm_msg_set(&tensor->msg, CM_TENSOR_NAME);
    }
    u->graph->initializer.items = tensors;
    u->graph->initializer.count = count;
    cm_msg_set(&u->graph->msg, CM_GRAPH_INITIALIZER);
}

void cm_untie(struct cm_preparation *p)
{
    struct untie u = {.p = p, .graph = p->model->graph};

    for (size_t i = 0; i < u.graph->initializer.count; i++) {
        struct merged *merged = NULL;

        if (!is_vector(&u.graph->initializer.items[i]))
            continue;
        merged = CM_NEW(p->arena, struct merged);
        merged->tensor = &u.graph->initializer.items[i];
        *cm_map_insert(&u.names, p->arena, merged->tensor->name, NULL) =
            (uint64_t)(uintptr_t)merged;
    }
    for (size_t i = 0; i < u.graph->output.count; i++)
        cm_map_insert(&u.outputs, p->arena, u.graph->output.items[i].name, NULL);
    find_readers(&u);
    for (size_t i = 0; i < u.graph->initializer.count; i++) {
        struct merged *merged = find_merged(&u, u.graph->initializer.items[i].name);

        if (merged && is_tied(&u, merged))
            take_apart(&u, merged);
    }
    if (!p->pieces.count)
        return;
    rewrite_nodes(&u);
    add_initializers(&u);
}

/* ---- and together again ---- */

/* What became of the pieces of one initializer. */
struct tally {
    struct cm_str original, first;
    size_t pieces, trained;
};

struct settle {
    struct cm_preparation *p;
    struct cm_map trained; /* names */
    struct cm_map back;    /* names of pieces that are their originals again, to the pieces */
};

static bool is_trained(const struct settle *s, struct cm_str name)
{
    return cm_map_find(&s->trained, name) != NULL;
}

/* Nodes of the file read the original again .. */
static void rename_inputs(const struct settle *s)
{
    const struct cm_nodes *nodes = &s->p->model->graph->node;

    for (size_t n = 0; n < nodes->count; n++)
        for (size_t i = 0; i < nodes->items[n].input.count; i++) {
            const struct cm_piece *piece = (const struct cm_piece *)(uintptr_t)cm_map_get(
                &s->back, nodes->items[n].input.items[i], 0);

            if (piece && !piece->is_copy)
                set_input(s->p->arena, &nodes->items[n], i, piece->original);
        }
}

/* .. and so do those of the algorithm. */
static void replace_pieces(const struct settle *s)
{
    struct cm_graph *graph = s->p->inference;

    for (size_t i = 0; i < s->p->pieces.count; i++) {
        const struct cm_piece *piece = &s->p->pieces.items[i];
        const cm_value value = cm_graph_find(graph, piece->name);
        const cm_value original = cm_graph_find(graph, piece->original);

        if (piece->is_copy || !value || !cm_map_find(&s->back, piece->name))
            continue;
        if (original)
            cm_value_replace(graph->module, value, original);
        else
            cm_value_set_name(graph->module, value, piece->original);
    }
}

static void drop_initializers(const struct settle *s)
{
    struct cm_graph_proto *graph = s->p->model->graph;
    struct cm_tensor_proto *tensors = /* candidates point into the old list */
        CM_NEW_ARRAY(s->p->arena, struct cm_tensor_proto, graph->initializer.count);
    size_t kept = 0;

    for (size_t i = 0; i < graph->initializer.count; i++)
        if (!cm_map_find(&s->back, graph->initializer.items[i].name))
            tensors[kept++] = graph->initializer.items[i];
    graph->initializer.items = tensors;
    graph->initializer.count = kept;
}

/* Copies read initializers only: they may stand first. */
static void restore_copies(const struct settle *s)
{
    struct cm_graph_proto *graph = s->p->model->graph;
    const size_t room = graph->node.count + s->p->pieces.count;
    struct cm_node_proto *nodes = CM_NEW_ARRAY(s->p->arena, struct cm_node_proto, room);
    size_t count = 0;

    for (size_t i = 0; i < s->p->pieces.count; i++)
        if (s->p->pieces.items[i].is_copy && cm_map_find(&s->back, s->p->pieces.items[i].name))
            nodes[count++] = s->p->pieces.items[i].copy;
    for (size_t i = 0; i < graph->node.count; i++)
        nodes[count++] = graph->node.items[i];
    graph->node.items = nodes;
    graph->node.count = count;
}

static void drop_candidates(const struct settle *s, struct cm_trainables *list)
{
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++)
        if (!cm_map_find(&s->back, list->items[i].name))
            list->items[kept++] = list->items[i];
    list->count = kept;
}

/* One sentence for each initializer that was taken apart. */
static void tell(struct cm_preparation *p, const struct tally *t)
{
    if (t->trained > 1)
        cm_preparation_note(
            p,
            "'%.*s' holds one repeated value for %zu tensors that the exporter merged: "
            "they are trained apart, as '%.*s' and so on (--keep-tied leaves them one)",
            CM_STR_FMT(t->original), t->trained, CM_STR_FMT(t->first));
    else if (t->pieces)
        cm_preparation_note(p,
                            "'%.*s' stood for several tensors that the exporter merged: '%.*s' is "
                            "one of its own now",
                            CM_STR_FMT(t->original), CM_STR_FMT(t->first));
}

static void tell_all(const struct settle *s)
{
    struct cm_preparation *p = s->p;
    struct tally *tallies = CM_NEW_ARRAY(p->arena, struct tally, p->pieces.count);
    struct cm_map numbers = {0};
    size_t count = 0;

    for (size_t i = 0; i < p->pieces.count; i++) {
        const struct cm_piece *piece = &p->pieces.items[i];
        bool added;
        uint64_t *number = cm_map_insert(&numbers, p->arena, piece->original, &added);

        if (added) {
            *number = count++;
            tallies[*number] = (struct tally){.original = piece->original,
                                              .trained = is_trained(s, piece->original)};
        }
        struct tally *t = &tallies[*number];
        if (cm_map_find(&s->back, piece->name))
            continue;
        t->pieces++;
        t->trained += is_trained(s, piece->name);
        t->first = t->first.size ? t->first : piece->name;
    }
    for (size_t i = 0; i < count; i++)
        tell(p, &tallies[i]);
}

void cm_untie_settle(struct cm_preparation *p, struct cm_trainables *list)
{
    struct settle s = {.p = p};

    if (!p->pieces.count)
        return;
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].trained)
            cm_map_insert(&s.trained, p->arena, list->items[i].name, NULL);
    for (size_t i = 0; i < p->pieces.count; i++) {
        const struct cm_piece *piece = &p->pieces.items[i];

        if (!piece->is_statistic && !is_trained(&s, piece->name) &&
            !is_trained(&s, piece->original))
            *cm_map_insert(&s.back, p->arena, piece->name, NULL) = (uint64_t)(uintptr_t)piece;
    }
    rename_inputs(&s);
    replace_pieces(&s);
    drop_initializers(&s);
    restore_copies(&s);
    drop_candidates(&s, list);
    tell_all(&s);
}
