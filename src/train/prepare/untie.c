/* Tensors that an exporter merged because they were equal when it wrote them. Biases of zeros and
 * scales of ones of different layers come as one initializer; trained as one they would stay equal,
 * which no framework does. So an initializer that holds one repeated value and is read as scale,
 * shift or bias by several nodes becomes one for each. Who belongs together is told, where the file
 * has it, by nodes that copy the initializer under the name of the tensor it replaced (PyTorch's
 * older exporter), or by the parameters that a node's metadata names (the newer one). */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "train/prepare/trainables.h"

#include "graph/registry.h"
#include "onnx/tensor_data.h"

enum { VISITS_MAX = 64 }; /* of uses of what a tensor becomes */

/* Nodes that read an initializer as one tensor of the framework. */
struct group {
    struct cm_str key;
    bool is_weight, is_statistic;
    struct cm_node *copy; /* that makes it; NULL: they read the initializer itself */
    struct cm_str scope;  /* the module they are part of, or "" */
    struct cm_str hint;   /* a name to make one of */
    struct cm_str meant;  /* what the framework calls the tensor, or "" */
    cm_value value;       /* its own initializer, when it gets one */
};

struct merged {
    cm_value value;
    const struct cm_tensor_proto *tensor;
    bool is_pinned; /* read in a body, by a node that could not be built, or as an output */
    CM_ARRAY(struct group) groups;
    struct cm_map keys; /* of groups, to their numbers */
};

static const char other_key[] = " other", direct_key[] = " direct";

struct untie {
    struct cm_preparation *p;
    struct cm_graph *graph;
    struct cm_module *module;
    struct merged **merged; /* by value number: initializers that may be such */
    struct merged **copied; /* the same of what a node copies one to */
    cm_value n_values;
    struct cm_map outputs; /* of the model */
    bool has_copies;
};

/* A node of the file; the nodes that were made of it begin with first. */
struct reader {
    struct cm_node *first;
    const struct cm_node_proto *proto;
    size_t number;
};

static bool is_vector(const struct cm_tensor_proto *tensor)
{
    int axes = 0;

    for (size_t i = 0; i < tensor->dims.count; i++)
        axes += tensor->dims.items[i] != 1;
    return axes <= 1 && cm_tensor_may_be_weight(tensor);
}

/* ---- what metadata says ---- */

/* The parameters and buffers that the framework's operation read, one after the other. "" where
 * nothing is recorded. */
static struct cm_str read_parameters(struct cm_arena *arena, const struct cm_node_proto *node)
{
    size_t at = 0, used = 0;
    struct cm_str name;

    while (cm_node_next_parameter(node, &at, &name))
        used += name.size + 1;
    char *list = cm_arena_alloc(arena, used + 1);
    at = used = 0;
    while (cm_node_next_parameter(node, &at, &name)) {
        list[used++] = '%';
        memcpy(list + used, name.data, name.size);
        used += name.size;
    }
    return (struct cm_str){list, used};
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

static bool is_weight(const struct cm_op *op, size_t input)
{
    return op && input < 32 && (op->layer.weights & CM_OPERAND(input));
}

/* Is a value read as a weight, or the transpose of it, or it in another shape? */
static bool becomes_weight(const struct untie *u, cm_value value, int *visits)
{
    for (const struct cm_use *use = cm_value_get(u->module, value)->uses; use; use = use->next) {
        const struct cm_node *node = use->node;

        if (!node || !node->op || ++*visits > VISITS_MAX)
            continue;
        if (is_weight(node->op, (size_t)use->index) ||
            (node->op->values.kept && use->index == 0 && cm_node_output(node, 0) &&
             becomes_weight(u, node->outputs[0], visits)))
            return true;
    }
    return false;
}

/* The node that reads operand i of the file's node, and as which of its own; NULL: none does. */
static const struct cm_node *reading(const struct reader *reader, size_t input, int *index)
{
    const struct cm_origin *origin = reader->first->origin;
    const struct cm_node *node = reader->first;

    *index = (int)input;
    if (!origin->n_nodes)
        return (int)input < node->n_inputs ? node : NULL;
    for (int at = 0; at < origin->inputs[input].node; at++)
        node = node->next;
    *index = origin->inputs[input].index;
    return origin->inputs[input].node >= 0 ? node : NULL;
}

/* As the file's operator has it, or the one that an upgrade made of it. */
static bool reads_weight(const struct untie *u, const struct reader *reader, size_t input)
{
    int index;
    const struct cm_node *node = reading(reader, input, &index);

    if (is_weight(cm_builtin_op(reader->proto), input) ||
        (node && is_weight(node->op, (size_t)index)))
        return true;
    int visits = 0;
    return node && node->op && node->op->values.kept && index == 0 && cm_node_output(node, 0) &&
           becomes_weight(u, node->outputs[0], &visits);
}

static bool reads_statistic(const struct reader *reader, size_t input)
{
    int index;
    const struct cm_node *node = reading(reader, input, &index);

    return node && cm_operand_is_statistic(node, index);
}

/* Readers that mean one tensor have one key. */
static struct cm_str key_of(struct untie *u, const struct merged *merged,
                            const struct reader *reader, size_t input)
{
    struct cm_arena *arena = u->p->arena;

    if (reads_statistic(reader, input))
        return cm_arena_printf(arena, "statistic %zu %zu", reader->number, input);
    if (!reads_weight(u, reader, input))
        return cm_str(other_key);
    if (u->has_copies || u->p->options->keep_tied)
        return cm_str(direct_key);
    const struct cm_str meant = cm_originals_meant(
        u->p->originals, reader->proto->input.items[input], reader->proto, input);
    if (meant.size || !is_vector(merged->tensor)) /* matrices are apart if they have names alone */
        return meant.size ? meant : cm_str(direct_key);
    const struct cm_str parameters = read_parameters(arena, reader->proto);
    return parameters.size ? parameters : cm_arena_printf(arena, "node %zu", reader->number);
}

static struct cm_str hint_of(const struct cm_node_proto *node)
{
    return node->name.size ? node->name : node->output.count ? node->output.items[0] : CM_STR("it");
}

static void add_reader(struct untie *u, struct group *group, const struct reader *reader,
                       size_t input)
{
    if (!group->hint.size) {
        group->hint = hint_of(reader->proto);
        group->scope = cm_node_scope(reader->proto);
        group->meant = cm_originals_meant(u->p->originals, reader->proto->input.items[input],
                                          reader->proto, input);
    }
    group->is_statistic = group->is_statistic || reads_statistic(reader, input);
    group->is_weight = group->is_weight || reads_weight(u, reader, input);
}

/* Calls fn for all nodes of the file that were built. */
typedef void reader_fn(struct untie *u, const struct reader *reader);

static void walk(struct untie *u, reader_fn *fn)
{
    struct cm_node *next;
    size_t number = 0;

    for (struct cm_node *node = u->graph->first; node; node = next) {
        const struct reader reader = {node, node->origin ? node->origin->proto : NULL, number++};
        const size_t count = node->origin && node->origin->n_nodes ? node->origin->n_nodes : 1;

        next = node;
        for (size_t i = 0; i < count; i++)
            next = next->next;
        fn(u, &reader);
    }
}

static void find_copy(struct untie *u, const struct reader *reader)
{
    struct cm_node *node = reader->first;
    struct merged *merged = u->merged[cm_node_input(node, 0)];

    if (!merged || !reader->proto || !node->op || !node->op->values.is_copy ||
        node->n_outputs != 1 || cm_map_find(&u->outputs, reader->proto->output.items[0]))
        return;
    struct group *group = find_group(u, merged, reader->proto->output.items[0]);
    const struct cm_original *original =
        cm_originals_find(u->p->originals, reader->proto->output.items[0]);
    group->copy = node;
    group->hint = group->key;
    if (original && original->names.count)
        group->meant = original->names.items[0];
    u->copied[node->outputs[0]] = merged;
    u->has_copies = true;
}

static bool is_copy(const struct untie *u, const struct reader *reader)
{
    return u->copied[cm_node_output(reader->first, 0)] != NULL;
}

static void find_reads(struct untie *u, const struct reader *reader)
{
    if (!reader->proto || is_copy(u, reader))
        return;
    for (size_t i = 0; i < reader->proto->input.count; i++) {
        const cm_value value = cm_origin_operand(reader->first, i);

        if (u->merged[value])
            add_reader(u, find_group(u, u->merged[value], key_of(u, u->merged[value], reader, i)),
                       reader, i);
        else if (u->copied[value]) /* a copy means what its readers take it for */
            add_reader(u, find_group(u, u->copied[value], reader->proto->input.items[i]), reader,
                       i);
    }
}

/* What is read otherwise than by a node of the file that was built keeps its name. A node that was
 * not built has nothing to do with the prediction: what it reads is not trained. */
static void pin_others(struct untie *u)
{
    const struct cm_graph_proto *graph = u->p->model->graph;

    for (size_t n = 0; n < graph->node.count; n++) {
        const struct cm_node_proto *node = &graph->node.items[n];
        const bool built =
            node->output.count && cm_graph_find(u->graph, node->output.items[0]) != 0;

        for (size_t i = 0; !built && i < node->input.count; i++) {
            struct merged *merged = u->merged[cm_graph_find(u->graph, node->input.items[i])];

            if (!merged)
                continue;
            merged->is_pinned = true;
            (void)find_group(u, merged, cm_str(other_key));
        }
    }
    for (cm_value v = 1; v < u->n_values; v++) {
        struct merged *merged = u->merged[v];

        if (!merged)
            continue;
        merged->is_pinned =
            merged->is_pinned || cm_map_find(&u->outputs, merged->tensor->name) != NULL;
        for (const struct cm_use *use = cm_value_get(u->module, v)->uses; use; use = use->next)
            if (use->graph != u->graph || !use->node || !use->node->origin)
                merged->is_pinned = true;
    }
}

/* ---- taking apart ---- */

static struct cm_str after_dot(struct cm_str name)
{
    const struct cm_str head = cm_str_before_last(name, '.');
    const size_t skip = head.size ? head.size + 1 : 0;

    return (struct cm_str){name.data + skip, name.size - skip};
}

/* The exporter gave the copies to other tensors: what reads the initializer itself is the tensor
 * that it is called after. */
static struct group *choose_direct(struct merged *merged)
{
    struct group *direct = NULL;
    bool has_copy = false;

    for (size_t i = 0; i < merged->groups.count; i++) {
        struct group *group = &merged->groups.items[i];

        has_copy = has_copy || group->copy;
        if (!group->copy && (group->is_weight || group->is_statistic) &&
            (!direct || (group->is_weight && !direct->is_weight)))
            direct = group;
    }
    return has_copy ? direct : NULL;
}

/* The group that keeps the initializer: those that read it beside copies; else the module whose
 * name it has; else the first that is trained. */
static struct group *choose_keeper(const struct untie *u, struct merged *merged)
{
    struct group *first = merged->is_pinned ? NULL : choose_direct(merged);

    if (first)
        return first;

    for (size_t i = 0; i < merged->groups.count; i++) {
        struct group *group = &merged->groups.items[i];

        if (merged->is_pinned ? cm_str_is(group->key, other_key)
                              : u->has_copies && !group->copy && group->is_weight)
            return group;
        if (!merged->is_pinned &&
            (group->meant.size
                 ? cm_str_equal(group->meant, merged->tensor->name)
                 : group->scope.size &&
                       cm_str_equal(group->scope, cm_str_before_last(merged->tensor->name, '.'))))
            return group;
        if (!first && group->is_weight && !merged->is_pinned)
            first = group;
    }
    return first;
}

/* A tensor that the exporter changed must not have the name that the framework has for it. */
static bool is_folded(const struct untie *u, const struct merged *merged)
{
    const struct cm_original *original = cm_originals_find(u->p->originals, merged->tensor->name);

    return original && original->folding != CM_FOLDED_NOT;
}

/* It has a record instead, of the kind that exporters write. */
static void record_meant(struct untie *u, const struct group *group, cm_value piece)
{
    struct cm_value_def *def = cm_value_get(u->module, piece);
    struct cm_tensor_proto *tensor = CM_NEW(u->p->arena, struct cm_tensor_proto);

    *tensor = *def->initializer;
    cm_originals_record(u->p->arena, tensor, group->meant);
    def->initializer = tensor;
}

static struct cm_str name_piece(struct untie *u, const struct merged *merged,
                                const struct group *group)
{
    const struct cm_str name = merged->tensor->name;

    if (group->copy)
        return group->hint; /* the copy goes, its name stays */
    if (!group->is_weight && !group->is_statistic)
        return cm_preparation_name(u->p, "%.*s.constant", CM_STR_FMT(name));
    if (group->meant.size && !is_folded(u, merged))
        return cm_preparation_name(u->p, "%.*s", CM_STR_FMT(group->meant));
    if (group->scope.size && !group->is_statistic)
        return cm_preparation_name(u->p, "%.*s.%.*s", CM_STR_FMT(group->scope),
                                   CM_STR_FMT(after_dot(name)));
    return cm_preparation_name(u->p, "%.*s.%.*s", CM_STR_FMT(name), CM_STR_FMT(group->hint));
}

/* Does it pay: is there more than one tensor to train or to update, or one beside a constant? */
static bool is_tied(const struct untie *u, const struct merged *merged)
{
    size_t weights = 0, statistics = 0;
    double number;

    for (size_t i = 0; i < merged->groups.count; i++) {
        weights += merged->groups.items[i].is_weight;
        statistics += merged->groups.items[i].is_statistic;
    }
    return merged->groups.count > 1 && (weights || statistics > 1) &&
           (statistics || !u->p->options->keep_tied) &&
           cm_tensor_repeats(u->p, merged->tensor, &number);
}

/* An initializer of its own for a group; a copy gives way to it. */
static void add_piece(struct untie *u, const struct merged *merged, struct group *group)
{
    struct cm_preparation *p = u->p;
    struct cm_piece *piece = CM_PUSH(p->arena, &p->pieces);
    const struct cm_str name = name_piece(u, merged, group);

    *piece = (struct cm_piece){.original = merged->value, .is_statistic = group->is_statistic};
    if (group->copy) {
        const cm_value copy = group->copy->outputs[0];

        piece->is_copied = true;
        cm_value_set_name(u->module, copy, CM_STR_NONE);
        piece->value = cm_preparation_tensor(p, u->graph, merged->tensor, name);
        cm_value_replace(u->module, copy, piece->value);
        cm_graph_remove_node(group->copy);
    } else {
        piece->value = cm_preparation_tensor(p, u->graph, merged->tensor, name);
    }
    group->value = piece->value;
    if (!piece->value || !group->meant.size)
        return;
    if (is_folded(u, merged) && !group->copy) /* the name of a copy follows from its reader */
        record_meant(u, group, piece->value);
    cm_originals_part(p->originals, p->arena, merged->tensor->name, group->meant,
                      cm_preparation_name_of(p, piece->value));
}

static void take_apart(struct untie *u, struct merged *merged)
{
    const struct group *keeper = choose_keeper(u, merged);

    for (size_t i = 0; i < merged->groups.count; i++) {
        struct group *group = &merged->groups.items[i];

        if (group != keeper && (!u->p->options->keep_tied || group->is_statistic) &&
            !(merged->is_pinned && cm_str_is(group->key, other_key)))
            add_piece(u, merged, group);
    }
}

/* The nodes that were made of a node of the file read another value as its operand i. */
static void redirect(struct untie *u, const struct reader *reader, size_t input, cm_value to)
{
    const cm_value from = cm_origin_operand(reader->first, input);
    const struct cm_origin *origin = reader->first->origin;
    struct cm_node *node = reader->first;
    int at = 0;

    if (!origin->n_nodes) {
        cm_use_redirect(u->module, &node->inputs[input], to);
        return;
    }
    size_t readers = 0;
    for (size_t i = 0; i < reader->proto->input.count; i++)
        readers += cm_origin_operand(reader->first, i) == from;
    for (; at < (int)origin->n_nodes; at++, node = node->next)
        for (int i = 0; i < node->n_inputs; i++)
            if (node->inputs[i].value == from &&
                (readers == 1 ||
                 (origin->inputs[input].node == at && origin->inputs[input].index == i)))
                cm_use_redirect(u->module, &node->inputs[i], to);
}

/* Readers read their own. */
static void redirect_reads(struct untie *u, const struct reader *reader)
{
    if (!reader->proto || cm_node_output(reader->first, 0) >= u->n_values || is_copy(u, reader))
        return;
    for (size_t i = 0; i < reader->proto->input.count; i++) {
        const cm_value value = cm_origin_operand(reader->first, i);
        struct merged *merged = value < u->n_values ? u->merged[value] : NULL;

        if (!merged || !merged->groups.count)
            continue;
        const cm_value own = find_group(u, merged, key_of(u, merged, reader, i))->value;
        if (own)
            redirect(u, reader, i, own);
    }
}

enum cm_status cm_untie(struct cm_preparation *p)
{
    struct untie u = {.p = p, .graph = p->inference, .module = p->inference->module};

    if (p->options->plan) /* which names tensors as they are */
        return CM_OK;
    u.n_values = (cm_value)cm_module_value_count(u.module);
    u.merged = CM_NEW_ARRAY(p->arena, struct merged *, u.n_values);
    u.copied = CM_NEW_ARRAY(p->arena, struct merged *, u.n_values);
    for (cm_value v = 1; v < u.n_values; v++) {
        const struct cm_value_def *def = cm_value_get(u.module, v);

        if (def->graph != u.graph || def->role != CM_ROLE_INITIALIZER || !def->initializer ||
            !cm_tensor_may_be_weight(def->initializer))
            continue;
        u.merged[v] = CM_NEW(p->arena, struct merged);
        u.merged[v]->value = v;
        u.merged[v]->tensor = def->initializer;
    }
    for (size_t i = 0; i < p->model->graph->output.count; i++)
        cm_map_insert(&u.outputs, p->arena, p->model->graph->output.items[i].name, NULL);
    walk(&u, find_copy);
    walk(&u, find_reads);
    pin_others(&u);
    for (cm_value v = 1; v < u.n_values; v++)
        if (u.merged[v] && is_tied(&u, u.merged[v]))
            take_apart(&u, u.merged[v]);
    if (p->pieces.count)
        walk(&u, redirect_reads);
    return CM_OK;
}

/* ---- and together again ---- */

/* What became of the pieces of one initializer. */
struct tally {
    struct cm_str first;
    size_t pieces, trained;
};

/* The working copy reads the original again, or the copy of it that the file has. */
static void put_back(struct cm_preparation *p, const struct cm_piece *piece)
{
    struct cm_module *module = p->inference->module;
    const struct cm_str name = cm_preparation_name_of(p, piece->value);
    struct cm_builder build = {.graph = p->inference, .before = p->inference->first, .err = p->err};
    cm_value instead = piece->original;

    if (piece->is_copied)
        instead = cm_build(&build, &(struct cm_emission){.op = "Identity", CM_INPUTS(instead)});
    cm_value_set_name(module, piece->value, CM_STR_NONE);
    cm_value_get(module, piece->value)->is_state = false; /* nothing writes it */
    cm_value_replace(module, piece->value, instead);
    if (piece->is_copied)
        cm_value_set_name(module, instead, name);
    if (build.status)
        p->build.status = build.status;
}

/* One sentence for each initializer that was taken apart. */
static void tell(struct cm_preparation *p, cm_value original, size_t trained, const struct tally *t)
{
    const struct cm_str name = cm_preparation_name_of(p, original);

    if (t->pieces && trained > 1)
        cm_preparation_note(
            p,
            "'%.*s' holds one repeated value for %zu tensors that the exporter merged: "
            "they are trained apart, as '%.*s' and so on (--keep-tied leaves them one)",
            CM_STR_FMT(name), trained, CM_STR_FMT(t->first));
    else if (t->pieces)
        cm_preparation_note(p,
                            "'%.*s' stood for several tensors that the exporter merged: '%.*s' is "
                            "one of its own now",
                            CM_STR_FMT(name), CM_STR_FMT(t->first));
}

void cm_untie_settle(struct cm_preparation *p, struct cm_trainables *list)
{
    const size_t n_values = cm_module_value_count(p->inference->module);
    bool *trained = CM_NEW_ARRAY(p->arena, bool, n_values);
    bool *back = CM_NEW_ARRAY(p->arena, bool, n_values);
    struct tally *tallies = CM_NEW_ARRAY(p->arena, struct tally, n_values); /* by value number */
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++)
        trained[list->items[i].value] = list->items[i].trained;
    for (size_t i = 0; i < p->pieces.count; i++) {
        const struct cm_piece *piece = &p->pieces.items[i];
        struct tally *t = &tallies[piece->original];

        back[piece->value] =
            !piece->is_statistic && !trained[piece->value] && !trained[piece->original];
        if (back[piece->value])
            continue;
        t->pieces++;
        t->trained += trained[piece->value];
        t->first = t->first.size ? t->first : cm_preparation_name_of(p, piece->value);
        cm_preparation_add(p, piece->value,
                           piece->is_copied ? cm_preparation_name_of(p, piece->value) : CM_STR_NONE,
                           false);
    }
    for (cm_value v = 1; v < n_values; v++)
        tell(p, v, tallies[v].trained + trained[v], &tallies[v]);
    for (size_t i = 0; i < list->count; i++)
        if (!back[list->items[i].value])
            list->items[kept++] = list->items[i];
    list->count = kept;
    for (size_t i = 0; i < p->pieces.count; i++)
        if (back[p->pieces.items[i].value])
            put_back(p, &p->pieces.items[i]);
}
