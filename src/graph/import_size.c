/* How many nodes a model becomes once its functions are expanded, found before any is made: a chain
 * of functions that each call the next one twice doubles with every line of the file. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/function.h"
#include "graph/import_context.h"

/* What a list of nodes comes to. A call is typed by an instance of its function, which holds the
 * instances of what that calls; when it is inlined, what it calls gets instances of its own. */
struct expansion {
    uint64_t instance; /* nodes of one instance, those inside included */
    uint64_t all;      /* nodes that inlining makes on the way */
};

struct function_size {
    enum { UNSEEN, UNDER_WAY, SEEN } state;
    struct expansion expansion;
};

struct measure {
    const struct cm_import_context *context;
    struct function_size *sizes; /* by function of the model */
    uint64_t most;               /* numbers stop growing here */
    int depth;                   /* of functions that call each other */
};

static void add(const struct measure *m, uint64_t *to, uint64_t more)
{
    *to = more > m->most - *to ? m->most : *to + more; /* neither is above most */
}

static struct expansion measure_nodes(struct measure *m, const struct cm_nodes *nodes);

/* Functions that call themselves, and chains that are too long, are refused when they are built. */
static struct expansion measure_function(struct measure *m,
                                         const struct cm_function_proto *function)
{
    struct function_size *size = &m->sizes[function - m->context->model->functions.items];

    if (size->state == UNSEEN && m->depth < CM_CALL_DEPTH) {
        size->state = UNDER_WAY;
        m->depth++;
        size->expansion = measure_nodes(m, &function->node);
        m->depth--;
        size->state = SEEN;
    }
    return size->expansion;
}

static void add_call(struct measure *m, const struct cm_function_proto *function,
                     struct expansion *to)
{
    const struct expansion called = measure_function(m, function);

    add(m, &to->instance, called.instance);
    add(m, &to->all, called.instance);
    add(m, &to->all, called.all);
}

static struct expansion measure_nodes(struct measure *m, const struct cm_nodes *nodes)
{
    struct expansion total = {0, 0};

    for (size_t i = 0; i < nodes->count && total.all < m->most; i++) {
        const struct cm_node_proto *node = &nodes->items[i];
        const struct cm_function_proto *function = cm_import_find_function(m->context, node);

        add(m, &total.instance, 1);
        add(m, &total.all, 1);
        if (function)
            add_call(m, function, &total);
        for (size_t a = 0; a < node->attribute.count; a++) {
            if (!node->attribute.items[a].g)
                continue;
            const struct expansion body = measure_nodes(m, &node->attribute.items[a].g->node);
            add(m, &total.instance, body.instance);
            add(m, &total.all, body.all);
        }
    }
    return total;
}

enum cm_status cm_import_measure(const struct cm_import_context *context, struct cm_error *err)
{
    const struct cm_module *module = context->module;
    const size_t room = cm_module_room(module);
    struct measure m = {.context = context, .most = (uint64_t)room + 1};

    if (!context->functions || context->functions->count == 0)
        return CM_OK;
    m.sizes = CM_NEW_ARRAY(module->arena, struct function_size, context->model->functions.count);
    const struct cm_graph_proto *parts[2];
    const size_t n_parts = cm_import_parts(context, parts);
    uint64_t all = 0;
    for (size_t i = 0; i < n_parts; i++)
        add(&m, &all, measure_nodes(&m, &parts[i]->node).all);
    if (all <= room)
        return CM_OK;
    return cm_fail(err, CM_LIMIT, "expanding its functions would make more than %zu nodes", room);
}
