/* Values, nodes and the lists that tie them together. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/graph.h"

#include "graph/function.h"
#include "graph/module.h"
#include "graph/op.h"
#include "graph/registry.h"

#include <assert.h>

enum { DEFAULT_NODE_BUDGET = 1000000 };

static cm_value new_value(struct cm_module *module, struct cm_graph *graph, struct cm_str name)
{
    const size_t number = module->n_values++;
    if (number / VALUES_PER_CHUNK == module->chunks.count) {
        struct cm_value_chunk *chunk = CM_NEW(module->arena, struct cm_value_chunk);
        *CM_PUSH(module->arena, &module->chunks) = chunk;
    }
    struct cm_value_def *def = cm_value_get(module, (cm_value)number);
    def->graph = graph;
    if (name.size && graph)
        cm_value_set_name(module, (cm_value)number, name);
    return (cm_value)number;
}

struct cm_module *cm_module_new(struct cm_arena *arena, const struct cm_module_options *options)
{
    struct cm_module *module = CM_NEW(arena, struct cm_module);
    module->arena = arena;
    module->registry = options && options->registry ? options->registry : cm_registry_builtin();
    if (!module->registry)
        cm_guard_unwind(arena->guard, CM_NO_MEMORY, "no memory for the table of operators");
    module->files = options ? options->files : NULL;
    module->symbols = cm_symbols_new(arena);
    module->is_widened = options && options->is_widened;
    module->computes_contents = options && options->computes_contents;
    module->node_budget =
        options && options->node_budget ? options->node_budget : DEFAULT_NODE_BUDGET;
    new_value(module, NULL, CM_STR_NONE); /* number 0 is no value */
    return module;
}

struct cm_value_def *cm_value_get(const struct cm_module *module, cm_value value)
{
    return &module->chunks.items[value / VALUES_PER_CHUNK]->items[value % VALUES_PER_CHUNK];
}

struct cm_graph *cm_graph_new(struct cm_module *module, struct cm_graph *parent, struct cm_str name)
{
    struct cm_graph *graph = CM_NEW(module->arena, struct cm_graph);
    graph->module = module;
    graph->parent = parent;
    graph->name = name;
    return graph;
}

cm_value cm_graph_add_input(struct cm_graph *graph, struct cm_str name, const struct cm_type *type)
{
    struct cm_arena *arena = graph->module->arena;
    const cm_value value = new_value(graph->module, graph, name);
    struct cm_value_def *def = cm_value_get(graph->module, value);
    def->role = CM_ROLE_INPUT;
    def->fact.type = type;
    CM_ARRAY(cm_value) inputs = {graph->inputs, graph->n_inputs, graph->inputs_capacity};
    *CM_PUSH(arena, &inputs) = value;
    graph->inputs = inputs.items;
    graph->n_inputs = inputs.count;
    graph->inputs_capacity = inputs.capacity;
    return value;
}

cm_value cm_graph_add_stand_in(struct cm_graph *graph, const struct cm_type *type)
{
    const cm_value value = new_value(graph->module, graph, CM_STR_NONE);
    struct cm_value_def *def = cm_value_get(graph->module, value);
    def->role = CM_ROLE_INPUT;
    def->fact.type = cm_value_symbolic(graph->module, value, type);
    return value;
}

/* A tensor that the module drops when it goes; empty so far. */
static struct cm_tensor *new_held(struct cm_module *module)
{
    struct cm_tensor *held = CM_NEW(module->arena, struct cm_tensor);
    cm_tensor_defer(module->arena, held);
    return held;
}

static cm_value constant_of(struct cm_graph *graph, struct cm_str name,
                            const struct cm_tensor *held)
{
    const cm_value value = new_value(graph->module, graph, name);
    struct cm_value_def *def = cm_value_get(graph->module, value);
    def->role = CM_ROLE_INITIALIZER;
    def->fact.type = cm_type_of_tensor(graph->module->arena, held);
    def->fact.constant = held;
    return value;
}

cm_value cm_graph_add_constant(struct cm_graph *graph, struct cm_str name,
                               const struct cm_tensor *tensor)
{
    struct cm_tensor *held = new_held(graph->module);
    *held = *tensor;
    cm_tensor_keep(held);
    return constant_of(graph, name, held);
}

enum cm_status cm_graph_copy_constant(struct cm_graph *graph, struct cm_str name,
                                      const struct cm_tensor *tensor, cm_value *out,
                                      struct cm_error *err)
{
    struct cm_tensor *held = new_held(graph->module); /* before the copy: nothing then gets lost */
    CM_TRY(cm_tensor_copy(tensor, held, err));
    *out = constant_of(graph, name, held);
    return CM_OK;
}

void cm_value_drop_constant(struct cm_module *module, cm_value value)
{
    struct cm_value_def *def = cm_value_get(module, value);
    assert(def->n_uses == 0 && !def->initializer);
    if (!def->fact.constant)
        return; /* gone already: it was an operand twice */
    cm_tensor_drop((struct cm_tensor *)(uintptr_t)def->fact.constant); /* never a const object */
    def->fact.constant = NULL;
}

static void link_use(struct cm_module *module, struct cm_use *use, cm_value value)
{
    use->value = value;
    use->prev = use->next = NULL;
    if (!value)
        return;
    struct cm_value_def *def = cm_value_get(module, value);
    use->next = def->uses;
    if (def->uses)
        def->uses->prev = use;
    def->uses = use;
    def->n_uses++;
}

static void note_unread(struct cm_module *module, struct cm_node *node)
{
    if (node->is_listed)
        return;
    node->is_listed = true;
    *CM_PUSH(module->arena, &module->unread) = node;
}

static void unlink_use(struct cm_module *module, struct cm_use *use)
{
    if (!use->value)
        return;
    struct cm_value_def *def = cm_value_get(module, use->value);
    if (use->prev)
        use->prev->next = use->next;
    else
        def->uses = use->next;
    if (use->next)
        use->next->prev = use->prev;
    if (--def->n_uses == 0 && def->node)
        note_unread(module, def->node);
    use->value = 0;
}

void cm_graph_set_outputs(struct cm_graph *graph, const cm_value *values, size_t count)
{
    for (size_t i = 0; i < graph->n_outputs; i++)
        unlink_use(graph->module, &graph->outputs[i]);
    graph->outputs = CM_NEW_ARRAY(graph->module->arena, struct cm_use, count);
    graph->n_outputs = count;
    for (size_t i = 0; i < count; i++) {
        graph->outputs[i].graph = graph;
        graph->outputs[i].index = (int)i;
        link_use(graph->module, &graph->outputs[i], values[i]);
    }
}

cm_value cm_graph_find(const struct cm_graph *graph, struct cm_str name)
{
    for (; graph && name.size; graph = graph->parent) {
        const cm_value value = (cm_value)cm_map_get(&graph->names, name, 0);
        if (value)
            return value;
    }
    return 0;
}

void cm_value_set_name(struct cm_module *module, cm_value value, struct cm_str name)
{
    struct cm_value_def *def = cm_value_get(module, value);
    if (def->name.size)
        cm_map_remove(&def->graph->names, def->name);
    def->name = name;
    if (name.size)
        *cm_map_insert(&def->graph->names, module->arena, name, NULL) = value;
}

static void link_node(struct cm_graph *graph, struct cm_node *node, struct cm_node *before)
{
    node->next = before;
    node->prev = before ? before->prev : graph->last;
    *(node->prev ? &node->prev->next : &graph->first) = node;
    *(before ? &before->prev : &graph->last) = node;
    graph->n_nodes++;
}

static void unlink_node(struct cm_graph *graph, struct cm_node *node)
{
    *(node->prev ? &node->prev->next : &graph->first) = node->next;
    *(node->next ? &node->next->prev : &graph->last) = node->prev;
    node->prev = node->next = NULL;
    graph->n_nodes--;
}

/* How many outputs a node has that is asked for `count`: kernels write all that its schema does not
 * call optional, whoever reads them. */
static size_t output_count(const struct cm_schema *schema, size_t count)
{
    while (schema && count < (size_t)schema->min_outputs &&
           cm_schema_output(schema, count)->kind == CM_PARAM_SINGLE)
        count++;
    return count;
}

static bool is_made(const struct cm_node_spec *spec, const struct cm_schema *schema, size_t o)
{
    const struct cm_schema_param *param = schema ? cm_schema_output(schema, o) : NULL;

    return (o < spec->n_outputs && (!spec->wanted || spec->wanted[o])) ||
           (param && param->kind == CM_PARAM_SINGLE);
}

struct cm_operator cm_module_operator(struct cm_module *module, struct cm_str domain,
                                      struct cm_str name, int64_t version)
{
    const size_t place = name.size ? name.size * 7 + (unsigned char)name.data[0] +
                                         (unsigned char)name.data[name.size - 1] * 3 + domain.size +
                                         (size_t)version
                                   : 0;
    struct cm_operator *kept = &module->operators[place % OPERATORS_KEPT];
    if (kept->schema && kept->version == version && cm_str_is(name, kept->schema->name) &&
        cm_str_is(domain, kept->schema->domain))
        return *kept;
    const struct cm_schema *schema = cm_registry_schema(module->registry, domain, name, version);
    const struct cm_operator found = {
        .version = version,
        .schema = schema,
        .newest =
            version && schema ? cm_registry_schema(module->registry, domain, name, 0) : schema,
        .op = cm_registry_op(module->registry, domain, name),
    };
    if (schema)
        *kept = found;
    return found;
}

static void note_fact(struct cm_module *module, enum cm_module_fact fact, bool is_so)
{
    module->had |= is_so ? (unsigned)fact : 0;
}

static struct cm_node *make_node(struct cm_graph *graph, const struct cm_node_spec *spec)
{
    struct cm_module *module = graph->module;
    struct cm_node *node = CM_NEW(module->arena, struct cm_node);
    node->module = module;
    node->graph = graph;
    node->name = spec->name;
    node->domain = cm_domain_plain(spec->domain);
    node->op_type = spec->op_type;
    node->overload = spec->overload;
    node->function = spec->function;
    node->attributes = spec->attributes;
    node->n_attributes = spec->n_attributes;
    if (!spec->function) {
        const struct cm_operator found =
            cm_module_operator(module, node->domain, node->op_type, spec->version);
        node->schema = found.schema;
        node->op = found.op;
        node->is_newest = !spec->version || found.schema == found.newest;
    }
    node->original_version = spec->original_version ? spec->original_version
                             : node->schema         ? node->schema->since_version
                                                    : 0;
    node->origin = spec->origin;
    node->stream = spec->stream;
    node->phase = spec->phase;
    const unsigned effects = node->op ? node->op->effects : 0;
    note_fact(module, CM_HAD_CALLS, spec->function != NULL);
    note_fact(module, CM_HAD_RANDOM, effects & CM_RANDOM);
    note_fact(module, CM_HAD_REPLACED, effects & CM_REPLACED);
    note_fact(module, CM_HAD_BODIES_ONLY, !cm_node_has_kernel(node));
    node->n_inputs = (int)spec->n_inputs;
    /* Absent operands at the end are dropped, but for those that the schema counts: Loop(n, ""). */
    const int least = node->schema ? node->schema->min_inputs : 0;
    while (node->n_inputs > least && !spec->inputs[node->n_inputs - 1])
        node->n_inputs--;
    node->inputs = CM_NEW_ARRAY(module->arena, struct cm_use, (size_t)node->n_inputs);
    for (int i = 0; i < node->n_inputs; i++) {
        node->inputs[i].node = node;
        node->inputs[i].graph = graph;
        node->inputs[i].index = i;
        link_use(module, &node->inputs[i], spec->inputs[i]);
    }
    node->n_outputs = (int)output_count(node->schema, spec->n_outputs);
    node->outputs = CM_NEW_ARRAY(module->arena, cm_value, (size_t)node->n_outputs);
    note_fact(module, CM_HAD_MORE_OUTPUTS, node->n_outputs > 1);
    for (int i = 0; i < node->n_outputs; i++) {
        if (!is_made(spec, node->schema, (size_t)i))
            continue;
        node->outputs[i] = new_value(module, graph, CM_STR_NONE);
        struct cm_value_def *def = cm_value_get(module, node->outputs[i]);
        def->node = node;
        def->output = i;
    }
    node->n_bodies = (uint32_t)spec->n_bodies;
    node->bodies = CM_NEW_ARRAY(module->arena, struct cm_body_ref, spec->n_bodies);
    for (size_t i = 0; i < spec->n_bodies; i++) {
        node->bodies[i] = spec->bodies[i];
        if (node->bodies[i].graph)
            node->bodies[i].graph->owner = node;
    }
    return node;
}

/* Takes a node out of everything that knows it. Its output values become numbers nobody uses. */
static void detach(struct cm_node *node)
{
    for (int i = 0; i < node->n_inputs; i++)
        unlink_use(node->module, &node->inputs[i]);
    for (int i = 0; i < node->n_outputs; i++) {
        if (!node->outputs[i])
            continue;
        struct cm_value_def *def = cm_value_get(node->module, node->outputs[i]);
        if (def->name.size && def->node == node)
            cm_map_remove(&def->graph->names, def->name);
        def->node = NULL;
    }
    for (size_t i = 0; i < node->n_bodies; i++) {
        struct cm_graph *body = node->bodies[i].graph;
        if (!body)
            continue;
        while (body->last)
            cm_graph_remove_node(body->last);
        cm_graph_set_outputs(body, NULL, 0);
    }
    unlink_node(node->graph, node);
    node->is_gone = true;
    node->module->n_nodes--;
}

struct cm_node_spec cm_node_spec_of(const struct cm_node *node, struct cm_arena *arena)
{
    cm_value *inputs = CM_NEW_ARRAY(arena, cm_value, (size_t)node->n_inputs);
    bool *wanted = CM_NEW_ARRAY(arena, bool, (size_t)node->n_outputs);

    for (int i = 0; i < node->n_inputs; i++)
        inputs[i] = node->inputs[i].value;
    for (int o = 0; o < node->n_outputs; o++)
        wanted[o] = node->outputs[o] != 0;
    return (struct cm_node_spec){.domain = node->domain,
                                 .op_type = node->op_type,
                                 .inputs = inputs,
                                 .n_inputs = (size_t)node->n_inputs,
                                 .n_outputs = (size_t)node->n_outputs,
                                 .wanted = wanted,
                                 .attributes = node->attributes,
                                 .n_attributes = node->n_attributes,
                                 .bodies = node->bodies,
                                 .n_bodies = node->n_bodies};
}

enum cm_status cm_graph_add_node(struct cm_graph *graph, struct cm_node *before,
                                 const struct cm_node_spec *spec, struct cm_node **out,
                                 struct cm_error *err)
{
    struct cm_module *module = graph->module;
    if (module->n_nodes >= module->node_budget)
        return cm_fail(err, CM_LIMIT, "the graph would have more than %zu nodes",
                       module->node_budget);
    struct cm_node *node = make_node(graph, spec);
    link_node(graph, node, before);
    module->n_nodes++;
    note_unread(module, node);

    enum cm_status status = CM_OK;
    if (!spec->alike || !cm_node_take_facts(node, spec->alike)) {
        status = cm_node_conforms(node, err);
        if (!status)
            status = cm_node_infer(node, err);
    }
    if (status) { /* which node it was is said by whoever knows it by name: the importer, a rule's
                     caller */
        detach(node);
        return spec->alike ? cm_node_blame(spec->alike, status, err)
                           : cm_error_context(err, status, "%.*s", CM_STR_FMT(spec->op_type));
    }
    if (out)
        *out = node;
    return CM_OK;
}

void cm_graph_remove_node(struct cm_node *node)
{
    detach(node);
}

/* The first node of the bodies of a node from this one on. */
static struct cm_node *first_inside(const struct cm_node *node, size_t body)
{
    for (; body < node->n_bodies; body++) {
        const struct cm_graph *graph = node->bodies[body].graph;
        if (graph && graph->first && graph->owner == node)
            return graph->first;
    }
    return NULL;
}

struct cm_node *cm_graph_next_node(const struct cm_graph *graph, const struct cm_node *node)
{
    struct cm_node *next = node ? first_inside(node, 0) : graph->first;

    while (!next && node) {
        const struct cm_graph *body = node->graph;
        size_t index = 0;
        next = node->next;
        if (next || body == graph)
            break;
        node = body->owner;
        while (node->bodies[index].graph != body)
            index++;
        next = first_inside(node, index + 1);
    }
    return next;
}

void cm_node_move(struct cm_node *node, struct cm_node *before)
{
    if (node == before)
        return;
    unlink_node(node->graph, node);
    link_node(node->graph, node, before);
}

void cm_node_move_to(struct cm_node *node, struct cm_graph *graph)
{
    unlink_node(node->graph, node);
    link_node(graph, node, NULL);
    for (int i = 0; i < node->n_inputs; i++)
        node->inputs[i].graph = graph;
    for (int o = 0; o < node->n_outputs; o++) {
        if (!node->outputs[o])
            continue;
        cm_value_set_name(node->module, node->outputs[o], CM_STR_NONE);
        cm_value_get(node->module, node->outputs[o])->graph = graph;
    }
    for (size_t i = 0; i < node->n_bodies; i++)
        if (node->bodies[i].graph && node->bodies[i].graph->parent)
            node->bodies[i].graph->parent = graph;
    node->graph = graph;
}

void cm_use_redirect(struct cm_module *module, struct cm_use *use, cm_value value)
{
    unlink_use(module, use);
    link_use(module, use, value);
}

static void mark_stale(struct cm_node *node)
{
    /* Already stale nodes end the walk: their owners were marked with them. */
    for (; node && !node->stale; node = node->graph->owner) {
        node->stale = true;
        node->graph->has_stale = true;
    }
}

static void mark_users(struct cm_module *module, cm_value value)
{
    for (struct cm_use *use = cm_value_get(module, value)->uses; use; use = use->next) {
        if (use->node)
            mark_stale(use->node);
        else if (use->graph->owner)
            mark_stale(use->graph->owner);
    }
}

void cm_node_set_input(struct cm_node *node, int index, cm_value value)
{
    unlink_use(node->module, &node->inputs[index]);
    link_use(node->module, &node->inputs[index], value);
    mark_stale(node);
}

enum cm_status cm_node_want_output(struct cm_node *node, int index, cm_value *out,
                                   struct cm_error *err)
{
    struct cm_module *module = node->module;
    if (index >= node->n_outputs) {
        if (node->schema && index >= node->schema->max_outputs)
            return cm_fail(err, CM_BAD_ARGUMENT, "%s has no output %d", cm_node_describe(node).text,
                           index);
        cm_value *outputs = CM_NEW_ARRAY(module->arena, cm_value, (size_t)index + 1);
        memcpy(outputs, node->outputs, (size_t)node->n_outputs * sizeof *outputs);
        node->outputs = outputs;
        node->n_outputs = index + 1;
        note_fact(module, CM_HAD_MORE_OUTPUTS, index > 0);
    }
    if (!node->outputs[index]) {
        node->outputs[index] = new_value(module, node->graph, CM_STR_NONE);
        struct cm_value_def *def = cm_value_get(module, node->outputs[index]);
        def->node = node;
        def->output = index;
        CM_TRY(cm_node_infer(node, err));
    }
    *out = node->outputs[index];
    return CM_OK;
}

bool cm_node_drop_output(struct cm_node *node, int index)
{
    const cm_value value = cm_node_output(node, index);
    const struct cm_schema_param *param =
        node->schema ? cm_schema_output(node->schema, (size_t)index) : NULL;
    if (!value || !param || param->kind != CM_PARAM_OPTIONAL ||
        cm_value_get(node->module, value)->n_uses)
        return false;
    cm_value_set_name(node->module, value, CM_STR_NONE);
    cm_value_get(node->module, value)->node = NULL;
    node->outputs[index] = 0;
    node->instance = NULL; /* it gives the outputs that were wanted before */
    int count = node->n_outputs;
    while (count > 0 && !node->outputs[count - 1])
        count--;
    while (count < node->n_outputs && !cm_schema_allows_outputs(node->schema, (size_t)count))
        count++;
    node->n_outputs = count;
    return true;
}

enum cm_status cm_node_add_outputs(struct cm_node *node, size_t count, struct cm_error *err)
{
    struct cm_module *module = node->module;
    const size_t before = (size_t)node->n_outputs;
    cm_value *outputs = CM_NEW_ARRAY(module->arena, cm_value, before + count);
    memcpy(outputs, node->outputs, before * sizeof *outputs);
    for (size_t o = before; o < before + count; o++) {
        outputs[o] = new_value(module, node->graph, CM_STR_NONE);
        struct cm_value_def *def = cm_value_get(module, outputs[o]);
        def->node = node;
        def->output = (int)o;
    }
    node->outputs = outputs;
    node->n_outputs = (int)(before + count);
    note_fact(module, CM_HAD_MORE_OUTPUTS, node->n_outputs > 1);
    return cm_node_infer(node, err);
}

static bool fact_equal(const struct cm_fact *a, const struct cm_fact *b)
{
    return cm_type_equal(a->type, b->type) && a->constant == b->constant &&
           !a->known == !b->known &&
           (!a->known || (a->known->count == b->known->count &&
                          memcmp(a->known->items, b->known->items,
                                 a->known->count * sizeof *a->known->items) == 0));
}

void cm_value_replace(struct cm_module *module, cm_value old, cm_value replacement)
{
    struct cm_value_def *from = cm_value_get(module, old);
    const bool same = fact_equal(&from->fact, &cm_value_get(module, replacement)->fact);

    while (from->uses) {
        struct cm_use *use = from->uses;
        struct cm_node *reader = use->node ? use->node : use->graph->owner;
        unlink_use(module, use);
        link_use(module, use, replacement);
        if (!same && reader)
            mark_stale(reader);
    }
}

void cm_value_set_fact(struct cm_module *module, cm_value value, const struct cm_fact *fact)
{
    struct cm_value_def *def = cm_value_get(module, value);
    if (fact_equal(&def->fact, fact))
        return;
    def->fact = *fact;
    mark_users(module, value);
}

void cm_value_declare(struct cm_module *module, cm_value value, const struct cm_type *declared)
{
    struct cm_value_def *def = cm_value_get(module, value);
    def->declared = declared;
    if (def->node)
        mark_stale(def->node);
}

enum cm_status cm_node_retype(struct cm_node *node, struct cm_error *err)
{
    if (!node->stale)
        return CM_OK;
    node->stale = false;
    enum cm_status status = cm_node_conforms(node, err);
    if (!status)
        status = cm_node_infer(node, err);
    if (status == CM_BAD_MODEL && node->graph->owner && node->module->lenient)
        return CM_OK;
    if (status)
        mark_stale(node);
    return cm_node_blame(node, status, err);
}

enum cm_status cm_graph_retype(struct cm_graph *graph, struct cm_error *err)
{
    if (!graph->has_stale)
        return CM_OK;
    graph->has_stale = false;
    /* In order: a node's results can only make later ones stale, so one walk is enough. */
    for (struct cm_node *node = graph->first; node; node = node->next)
        CM_TRY(cm_node_retype(node, err));
    graph->has_stale = false;
    return CM_OK;
}

bool cm_node_is_read(const struct cm_node *node)
{
    for (int o = 0; o < node->n_outputs; o++)
        if (node->outputs[o] && cm_value_get(node->module, node->outputs[o])->n_uses)
            return true;
    return false;
}

/* Is inner graph or in a body of it? */
static bool is_within(const struct cm_graph *inner, const struct cm_graph *graph)
{
    while (inner && inner != graph)
        inner = inner->owner ? inner->owner->graph : NULL;
    return inner == graph;
}

void cm_graph_remove_dead(struct cm_graph *graph)
{
    struct cm_module *module = graph->module;
    size_t kept = 0; /* nodes of other graphs, at the front of the list */

    while (module->unread.count > kept) {
        struct cm_node *node = module->unread.items[module->unread.count - 1];
        if (!node->is_gone && !cm_node_is_read(node) && !is_within(node->graph, graph)) {
            module->unread.items[module->unread.count - 1] = module->unread.items[kept];
            module->unread.items[kept++] = node;
            continue;
        }
        module->unread.count--;
        node->is_listed = false;
        if (!node->is_gone && !cm_node_is_read(node))
            cm_graph_remove_node(node); /* what it read may be listed now */
    }
}

bool cm_module_had(const struct cm_module *module, enum cm_module_fact fact)
{
    return module->had & (unsigned)fact;
}

void cm_graph_number_random(struct cm_graph *graph)
{
    struct cm_graph *closed = graph;
    if (!cm_module_had(graph->module, CM_HAD_RANDOM))
        return;
    while (closed->parent)
        closed = closed->parent;
    for (struct cm_node *node = NULL; (node = cm_graph_next_node(graph, node));)
        if (node->op && node->op->effects & CM_RANDOM && !node->stream)
            node->stream = ++closed->n_streams;
}

struct cm_node_text cm_node_describe(const struct cm_node *node)
{
    struct cm_node_text out;
    const char *dot = node->domain.size ? "." : "";
    struct cm_str name = node->name;
    const char *by = "";
    for (int i = 0; i < node->n_outputs && !name.size; i++) {
        if (node->outputs[i])
            name = cm_value_get(node->module, node->outputs[i])->name;
        by = "making ";
    }
    if (name.size)
        snprintf(out.text, sizeof out.text, "node %s'%.*s' (%.*s%s%.*s)", by, CM_STR_FMT(name),
                 CM_STR_FMT(node->domain), dot, CM_STR_FMT(node->op_type));
    else
        snprintf(out.text, sizeof out.text, "node (%.*s%s%.*s)", CM_STR_FMT(node->domain), dot,
                 CM_STR_FMT(node->op_type));
    return out;
}

enum cm_status cm_node_outside(enum cm_status status, struct cm_error *err)
{
    if (status == CM_BAD_ARGUMENT)
        status = CM_BAD_MODEL;
    if (status && err)
        err->status = status;
    return status;
}

enum cm_status cm_node_blame(const struct cm_node *node, enum cm_status status,
                             struct cm_error *err)
{
    status = cm_node_outside(status, err);
    if (node->op && node->op->effects & CM_WHOLE_MODEL)
        return status;
    return status ? cm_error_context(err, status, "%s", cm_node_describe(node).text) : CM_OK;
}

bool cm_node_is_current(const struct cm_node *node)
{
    return !node->schema || node->is_newest;
}

size_t cm_graph_count(const struct cm_graph *graph)
{
    size_t count = graph->n_nodes;
    for (const struct cm_node *node = graph->first; node; node = node->next)
        for (size_t b = 0; b < node->n_bodies; b++)
            if (node->bodies[b].graph && !(node->op && node->op->effects & CM_REGION))
                count += cm_graph_count(node->bodies[b].graph);
    return count;
}
