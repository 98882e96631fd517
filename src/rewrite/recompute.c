/* Activations computed again where the backward pass needs them, instead of being kept.
 *
 * A training step computes values early, for the nodes after them, and reads many again late, for
 * gradients; between the two they only take memory. The pass counts the bytes that are alive at
 * each node, in the order of the list, and looks at the node where they are most: of the values
 * that are alive there but neither read nor made there, the largest that can be computed again
 * cheaply from what is alive at its next reader (or from what is cheap to compute again in turn) is
 * cut in two, and a copy of its node is put before that reader. So on, until nothing lowers the
 * peak; what turns out not to have helped is taken back.
 *
 * The same operators run on the same numbers, so results keep their bits. Random nodes are never
 * run again. Only the graph itself is worked on, not bodies: the backward pass of a loop runs the
 * body again as it is. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "rewrite/pass.h"

#include "graph/clone.h"

#include <stdlib.h>

enum {
    USUAL_SIZE = 512, /* of a dimension that is not known: most of all the batch, and who asks for
                         less memory has large ones */
    MAX_CHAIN = 8,    /* nodes computed again for one value */
    MAX_LEAVES = 24,  /* operands of such nodes */
};
/* Candidates and uses looked at. */
static const uint64_t WORK_BUDGET = 50000000;

/* ---- bytes alive at each position: a tree of maxima over ranges ---- */

struct profile {
    size_t leaves;       /* a power of two */
    int64_t *most, *add; /* by tree node: the maximum below it; what was added to all below */
};

static void profile_init(struct profile *p, struct cm_arena *arena, size_t positions)
{
    p->leaves = 1;
    while (p->leaves < positions)
        p->leaves *= 2;
    p->most = CM_NEW_ARRAY(arena, int64_t, 2 * p->leaves);
    p->add = CM_NEW_ARRAY(arena, int64_t, 2 * p->leaves);
}

/* Adds to positions [from, to], of which tree node `at` covers [low, high]. */
static void profile_change(struct profile *p, size_t at, size_t low, size_t high, size_t from,
                           size_t to, int64_t bytes)
{
    if (from > high || to < low)
        return;
    if (from <= low && high <= to) {
        p->most[at] += bytes;
        p->add[at] += bytes;
        return;
    }
    const size_t middle = (low + high) / 2;
    profile_change(p, 2 * at, low, middle, from, to, bytes);
    profile_change(p, 2 * at + 1, middle + 1, high, from, to, bytes);
    p->most[at] = p->add[at] +
                  (p->most[2 * at] > p->most[2 * at + 1] ? p->most[2 * at] : p->most[2 * at + 1]);
}

static void profile_add(struct profile *p, size_t from, size_t to, int64_t bytes)
{
    if (from <= to && bytes)
        profile_change(p, 1, 0, p->leaves - 1, from, to, bytes);
}

static int64_t profile_peak(const struct profile *p)
{
    return p->most[1];
}

/* The first position at the peak. */
static size_t profile_where(const struct profile *p)
{
    size_t at = 1;
    while (at < p->leaves)
        at = p->most[2 * at] >= p->most[2 * at + 1] ? 2 * at : 2 * at + 1;
    return at - p->leaves;
}

/* ---- how long values live ---- */

struct reading {
    size_t position;
    struct reading *next;
};

/* Memory that holds a value, and others that are views of it. Positions count nodes from 1 on. */
struct life {
    cm_value root; /* who made the memory; 0: nothing of this graph is here */
    int64_t bytes;
    size_t made;
    bool is_output;            /* of the graph */
    struct reading *readings;  /* by nodes of the graph, not in order */
    size_t kept_to, copied_at; /* not alive between them; 0: alive throughout */
    size_t ends[4];            /* what the profile has of it: two ranges */
};

/* A value that is computed again. */
struct plan {
    cm_value value;
    size_t made;                      /* where the value is first made */
    size_t position;                  /* before this node */
    struct cm_node *chain[MAX_CHAIN]; /* makers first; the last one makes the value */
    size_t n_chain;
    cm_value leaves[MAX_LEAVES]; /* what the chain reads that is there */
    size_t n_leaves;
    struct reading *leaf_readings[MAX_LEAVES];
    int64_t extra; /* bytes of the chain's other results */
    bool taken_back;
};

struct recompute {
    struct cm_module *module;
    struct cm_graph *graph;
    struct cm_marks marks; /* of nodes: their positions */
    struct cm_error *err;
    struct cm_arena arena;
    struct cm_node **nodes; /* by position */
    size_t n_nodes;
    struct life *lives; /* by value: the root's */
    cm_value *root_of;  /* by value: whose memory it is in; 0: none that counts */
    size_t n_values;
    cm_value *candidates; /* roots that can be computed again, largest first */
    size_t n_candidates;
    struct profile profile;
    uint64_t work; /* what is left of it */
    CM_ARRAY(struct plan *) plans;
};

static int64_t bytes_of(const struct cm_type *type)
{
    const int64_t most = INT64_C(1) << 40;
    int64_t bytes = (int64_t)cm_dtype_size(type->dtype);

    if (type->kind != CM_KIND_TENSOR || type->rank < 0)
        return 0;
    bytes = bytes ? bytes : 1;
    for (int a = 0; a < type->rank; a++) {
        const int64_t size = cm_dim_known(type->dims[a]) ? type->dims[a].value : USUAL_SIZE;
        if (!size)
            return 0;
        bytes = size > most / bytes ? most : bytes * size;
    }
    return bytes;
}

static struct life *life_of(struct recompute *r, cm_value value)
{
    const cm_value root = value < r->n_values ? r->root_of[value] : 0;
    return root ? &r->lives[root] : NULL;
}

/* The node of the graph at which a use happens, that of a body at the node which has the body. */
static size_t position_of(const struct recompute *r, const struct cm_use *use)
{
    const struct cm_graph *graph = use->graph;
    const struct cm_node *node = use->node;

    while (graph != r->graph) {
        node = graph->owner;
        if (!node)
            return r->n_nodes + 1;
        graph = node->graph;
    }
    return node ? cm_mark_get(&r->marks, node) : r->n_nodes + 1;
}

/* Which operand an output is a view of, where nothing else that is computed is read; -1: none. */
static int viewed_operand(const struct recompute *r, const struct cm_node *node, int output)
{
    int viewed = -1;
    for (int i = 0; node->op && node->op->memory.share && i < node->n_inputs; i++) {
        if (!node->inputs[i].value)
            continue;
        if (node->op->memory.share(node, output, i) == CM_SHARE_VIEW)
            viewed = i;
        else if (cm_value_get(r->module, node->inputs[i].value)->role == CM_ROLE_COMPUTED)
            return -1;
    }
    return viewed;
}

static void add_reading(struct recompute *r, struct life *life, size_t position)
{
    struct reading *reading = CM_NEW(&r->arena, struct reading);
    *reading = (struct reading){position, life->readings};
    life->readings = reading;
}

/* The last reading before position and the first after it; 0 where there is none. False when one
 * is at it. */
static bool readings_around(struct recompute *r, const struct life *life, size_t position,
                            size_t *before, size_t *after)
{
    *before = *after = 0;
    for (const struct reading *reading = life->readings; reading; reading = reading->next) {
        r->work -= r->work > 0;
        if (reading->position == position)
            return false;
        if (reading->position < position && reading->position > *before)
            *before = reading->position;
        if (reading->position > position && (!*after || reading->position < *after))
            *after = reading->position;
    }
    return true;
}

/* Brings the profile up to date with what is known of a life. */
static void refresh(struct recompute *r, struct life *life)
{
    size_t last = life->made;

    for (int i = 0; i < 4; i += 2)
        if (life->ends[i])
            profile_add(&r->profile, life->ends[i], life->ends[i + 1], -life->bytes);
    for (const struct reading *reading = life->readings; reading; reading = reading->next) {
        r->work -= r->work > 0;
        last = reading->position > last ? reading->position : last;
    }
    if (life->is_output)
        last = r->n_nodes + 1;
    memset(life->ends, 0, sizeof life->ends);
    life->ends[0] = life->made;
    life->ends[1] = life->copied_at ? life->kept_to : last;
    if (life->copied_at) {
        life->ends[2] = life->copied_at;
        life->ends[3] = last;
    }
    for (int i = 0; i < 4; i += 2)
        if (life->ends[i])
            profile_add(&r->profile, life->ends[i], life->ends[i + 1], life->bytes);
}

static bool is_alive(const struct life *life, size_t position)
{
    return (life->ends[0] <= position && position <= life->ends[1]) ||
           (life->ends[2] && life->ends[2] <= position && position <= life->ends[3]);
}

/* May the node run twice, at about the cost of reading and writing its values? */
static bool is_cheap(const struct cm_node *node)
{
    const struct cm_op *op = node->op;
    if (!op || op->effects & (CM_RANDOM | CM_OUTPUT_SIZE_AT_RUN | CM_REPLACED))
        return false;
    if (op->effects & CM_REGION) /* made of elementwise nodes alone, none of them random */
        return cm_str_is(node->op_type, "ElementwiseRegion");
    return !node->n_bodies && (op->elementwise || op->cost.work == cm_work_linear);
}

static void measure_node(struct recompute *r, struct cm_node *node)
{
    for (int o = 0; o < node->n_outputs; o++) {
        const cm_value value = node->outputs[o];
        if (!value)
            continue;
        const struct cm_value_def *def = cm_value_get(r->module, value);
        const int viewed = viewed_operand(r, node, o);
        cm_value root = viewed >= 0 ? node->inputs[viewed].value : value;
        if (viewed >= 0)
            root = root < r->n_values ? r->root_of[root] : 0;
        r->root_of[value] = root;
        if (!root)
            continue;
        struct life *life = &r->lives[root];
        if (root == value)
            *life = (struct life){.root = root,
                                  .bytes = bytes_of(def->fact.type),
                                  .made = cm_mark_get(&r->marks, node)};
        for (const struct cm_use *use = def->uses; use; use = use->next) {
            const size_t position = position_of(r, use);
            if (position > r->n_nodes)
                life->is_output = true;
            else
                add_reading(r, life, position);
        }
    }
}

static int larger_first(const void *a, const void *b)
{
    const struct life *const *x = a, *const *y = b;
    if ((*x)->bytes != (*y)->bytes)
        return (*x)->bytes < (*y)->bytes ? 1 : -1;
    return (*x)->root < (*y)->root ? -1 : (*x)->root > (*y)->root;
}

static void measure(struct recompute *r)
{
    r->n_values = cm_module_value_count(r->module);
    r->lives = CM_NEW_ARRAY(&r->arena, struct life, r->n_values);
    r->root_of = CM_NEW_ARRAY(&r->arena, cm_value, r->n_values);
    r->nodes = CM_NEW_ARRAY(&r->arena, struct cm_node *, r->graph->n_nodes + 2);
    for (struct cm_node *node = r->graph->first; node; node = node->next) {
        cm_mark_set(&r->marks, node, (uint32_t)++r->n_nodes);
        r->nodes[r->n_nodes] = node;
    }
    profile_init(&r->profile, &r->arena, r->n_nodes + 2);
    for (size_t i = 1; i <= r->n_nodes; i++)
        measure_node(r, r->nodes[i]);
    const struct life **sorted = CM_NEW_ARRAY(&r->arena, const struct life *, r->n_values);
    for (cm_value v = 1; v < r->n_values; v++) {
        struct life *life = &r->lives[v];
        if (!life->root)
            continue;
        if (life->is_output)
            life->bytes = 0; /* it has memory of its own, that of the state or the caller */
        refresh(r, life);
        if (life->bytes && is_cheap(r->nodes[life->made]))
            sorted[r->n_candidates++] = life;
    }
    if (r->n_candidates)
        qsort(sorted, r->n_candidates, sizeof(const struct life *), larger_first);
    r->candidates = CM_NEW_ARRAY(&r->arena, cm_value, r->n_candidates);
    for (size_t i = 0; i < r->n_candidates; i++)
        r->candidates[i] = sorted[i]->root;
}

/* ---- one value ---- */

static bool in_chain(const struct plan *plan, const struct cm_node *node)
{
    for (size_t i = 0; i < plan->n_chain; i++)
        if (plan->chain[i] == node)
            return true;
    return false;
}

/* Finds what must run so that value is there again at the plan's position; `longer` counts bytes
 * that would have to be kept longer for it. Depth is bounded by MAX_CHAIN. */
static bool reach(struct recompute *r, struct plan *plan, cm_value value, int depth,
                  int64_t *longer)
{
    const struct life *life = life_of(r, value);
    struct cm_node *node = cm_value_get(r->module, value)->node;

    r->work -= r->work > 0;
    if (!r->work)
        return false;
    if (!life)
        return true; /* an input, a constant, or a value of a graph around */
    if (depth && is_alive(life, plan->position)) {
        for (size_t i = 0; i < plan->n_leaves; i++)
            if (plan->leaves[i] == value)
                return true;
        if (plan->n_leaves == MAX_LEAVES)
            return false;
        plan->leaves[plan->n_leaves++] = value;
        return true;
    }
    if (in_chain(plan, node))
        return true;
    if (depth < MAX_CHAIN && is_cheap(node)) {
        const struct plan before = *plan;
        bool found = true;
        for (int i = 0; i < node->n_inputs && found; i++)
            if (node->inputs[i].value)
                found = reach(r, plan, node->inputs[i].value, depth + 1, longer);
        if (found && plan->n_chain < MAX_CHAIN) {
            for (int o = 0; o < node->n_outputs; o++)
                if (node->outputs[o] && node->outputs[o] != plan->value)
                    plan->extra += bytes_of(cm_value_get(r->module, node->outputs[o])->fact.type);
            plan->chain[plan->n_chain++] = node;
            return true;
        }
        *plan = before;
    }
    if (!depth || life->copied_at || plan->n_leaves == MAX_LEAVES)
        return false;
    *longer += life->bytes; /* kept until then */
    plan->leaves[plan->n_leaves++] = value;
    return true;
}

static void enter(struct recompute *r, struct plan *plan, size_t kept_to)
{
    struct life *life = life_of(r, plan->value);

    for (size_t i = 0; i < plan->n_leaves; i++) {
        struct life *leaf = life_of(r, plan->leaves[i]);
        add_reading(r, leaf, plan->position);
        plan->leaf_readings[i] = leaf->readings;
        refresh(r, leaf);
    }
    life->kept_to = kept_to;
    life->copied_at = plan->position;
    refresh(r, life);
    profile_add(&r->profile, plan->position, plan->position, plan->extra);
}

static void take_back(struct recompute *r, struct plan *plan)
{
    struct life *life = life_of(r, plan->value);

    for (size_t i = 0; i < plan->n_leaves; i++) {
        struct life *leaf = life_of(r, plan->leaves[i]);
        struct reading **link = &leaf->readings;
        while (*link != plan->leaf_readings[i])
            link = &(*link)->next;
        *link = (*link)->next;
        refresh(r, leaf);
    }
    life->kept_to = life->copied_at = 0;
    refresh(r, life);
    profile_add(&r->profile, plan->position, plan->position, -plan->extra);
}

/* Cuts the life of value at the peak, if that lowers what is alive there and raises nothing above
 * it. */
static bool try_value(struct recompute *r, cm_value value, size_t peak)
{
    struct life *life = &r->lives[value];
    const int64_t before = profile_peak(&r->profile);
    size_t kept_to, position;
    int64_t longer = 0;

    if (life->copied_at || !is_alive(life, peak) || life->made >= peak ||
        !readings_around(r, life, peak, &kept_to, &position) || !position)
        return false;
    struct plan *plan = CM_NEW(&r->arena, struct plan);
    plan->value = value;
    plan->made = life->made;
    plan->position = position;
    if (!reach(r, plan, value, 0, &longer) || longer >= life->bytes)
        return false;
    enter(r, plan, kept_to ? kept_to : life->made);
    if (profile_peak(&r->profile) > before ||
        (profile_peak(&r->profile) == before && profile_where(&r->profile) <= peak)) {
        take_back(r, plan);
        return false;
    }
    *CM_PUSH(&r->arena, &r->plans) = plan;
    return true;
}

static void make_plans(struct recompute *r)
{
    const int64_t first = profile_peak(&r->profile);
    bool found = true;

    while (found && r->work) {
        const size_t peak = profile_where(&r->profile);
        found = false;
        for (size_t i = 0; i < r->n_candidates && !found && r->work; i++) {
            r->work--;
            found = try_value(r, r->candidates[i], peak);
        }
    }
    const int64_t last = profile_peak(&r->profile);
    for (size_t i = r->plans.count; i-- > 0;) {
        struct plan *plan = r->plans.items[i];
        const size_t kept_to = life_of(r, plan->value)->kept_to;
        take_back(r, plan);
        if (profile_peak(&r->profile) <= last || last >= first)
            plan->taken_back = true;
        else
            enter(r, plan, kept_to);
    }
}

/* ---- changing the graph ---- */

struct copies {
    struct cm_clone clone;
    cm_value *of; /* by value: what takes its place from the position on where it is copied */
    CM_ARRAY(cm_value) views; /* of one value */
};

/* What stands for value in a node at this position. */
static cm_value at_position(struct recompute *r, const struct copies *copies, cm_value value,
                            size_t position)
{
    const struct life *life = life_of(r, value);
    return life && life->copied_at && position >= life->copied_at && copies->of[value]
               ? copies->of[value]
               : value;
}

/* Copies a node before that at position; operands in the chain are copies already. The results are
 * in copies->clone until forgotten. */
static enum cm_status copy_node(struct recompute *r, struct copies *copies, struct cm_node *node,
                                size_t position)
{
    struct cm_builder builder = {.graph = r->graph, .before = r->nodes[position], .err = r->err};

    for (int i = 0; i < node->n_inputs; i++) {
        const cm_value value = node->inputs[i].value;
        if (value && cm_clone_of(&copies->clone, value) == value)
            cm_clone_map(&copies->clone, value, at_position(r, copies, value, position));
    }
    CM_TRY(cm_clone_node(&copies->clone, &builder, node));
    struct cm_node *made = r->nodes[position]->prev;
    cm_mark_set(&r->marks, made, (uint32_t)position);
    made->phase = r->nodes[position]->phase;
    return CM_OK;
}

static void forget_node(struct copies *copies, const struct cm_node *node)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i].value)
            cm_clone_map(&copies->clone, node->inputs[i].value, 0);
    for (int o = 0; o < node->n_outputs; o++)
        if (node->outputs[o])
            cm_clone_map(&copies->clone, node->outputs[o], 0);
}

/* Makes those that read value from position on read its copy. */
static void redirect(struct recompute *r, cm_value value, cm_value copy, size_t position)
{
    for (struct cm_use *use = cm_value_get(r->module, value)->uses, *next; use; use = next) {
        next = use->next;
        if (use->node && position_of(r, use) >= position)
            cm_node_set_input(use->node, use->index, copy);
    }
}

/* Copies a node that gives views of a copied value; those that are new go to a list. */
static enum cm_status copy_view(struct recompute *r, struct copies *copies, struct cm_node *node,
                                size_t position)
{
    for (int o = 0; o < node->n_outputs; o++) {
        const cm_value view = node->outputs[o];
        if (!view || view >= r->n_values || copies->of[view] || !r->root_of[view] ||
            r->root_of[view] == view)
            continue;
        CM_TRY(copy_node(r, copies, node, position));
        copies->of[view] = cm_clone_of(&copies->clone, view);
        forget_node(copies, node);
        redirect(r, view, copies->of[view], position);
        *CM_PUSH(&r->arena, &copies->views) = view;
    }
    return CM_OK;
}

/* Views of a copied value, and views of those, are taken of the copy. */
static enum cm_status copy_views(struct recompute *r, struct copies *copies, cm_value value,
                                 size_t position)
{
    copies->views.count = 0;
    *CM_PUSH(&r->arena, &copies->views) = value;
    for (size_t i = 0; i < copies->views.count; i++) {
        const cm_value of = copies->views.items[i];
        for (const struct cm_use *use = cm_value_get(r->module, of)->uses; use; use = use->next)
            if (use->node && use->graph == r->graph &&
                cm_mark_get(&r->marks, use->node) < position &&
                viewed_operand(r, use->node, 0) == use->index)
                CM_TRY(copy_view(r, copies, use->node, position));
    }
    return CM_OK;
}

static enum cm_status apply(struct recompute *r, struct copies *copies, const struct plan *plan)
{
    for (size_t i = 0; i < plan->n_chain; i++)
        CM_TRY(copy_node(r, copies, plan->chain[i], plan->position));
    copies->of[plan->value] = cm_clone_of(&copies->clone, plan->value);
    for (size_t i = 0; i < plan->n_chain; i++)
        forget_node(copies, plan->chain[i]);
    redirect(r, plan->value, copies->of[plan->value], plan->position);
    return copy_views(r, copies, plan->value, plan->position);
}

/* Copies that others read come first: by position, then by where the value was first made. */
static int in_order(const void *a, const void *b)
{
    const struct plan *const *x = a, *const *y = b;
    if ((*x)->position != (*y)->position)
        return (*x)->position < (*y)->position ? -1 : 1;
    return (*x)->made < (*y)->made ? -1 : (*x)->made > (*y)->made;
}

static enum cm_status apply_plans(struct recompute *r)
{
    struct copies copies = {.of = CM_NEW_ARRAY(&r->arena, cm_value, r->n_values)};
    size_t count = 0;

    for (size_t i = 0; i < r->plans.count; i++)
        if (!r->plans.items[i]->taken_back)
            r->plans.items[count++] = r->plans.items[i];
    if (!count)
        return CM_OK;
    qsort(r->plans.items, count, sizeof(struct plan *), in_order);
    cm_clone_init(&copies.clone, r->module);
    for (size_t i = 0; i < count; i++)
        CM_TRY(apply(r, &copies, r->plans.items[i]));
    cm_graph_remove_dead(r->graph); /* views that turned out not to be read */
    return cm_graph_retype(r->graph, r->err);
}

enum cm_status cm_pass_recompute(struct cm_graph *graph, const struct cm_pass_options *options,
                                 struct cm_error *err)
{
    struct recompute r = {.module = graph->module, .graph = graph, .err = err, .work = WORK_BUDGET};

    if (!options->training)
        return CM_OK;
    cm_arena_init(&r.arena, cm_module_arena(graph->module)->guard);
    r.marks = cm_marks_begin(graph->module);
    measure(&r);
    make_plans(&r);
    const enum cm_status status = apply_plans(&r);
    cm_arena_release(&r.arena);
    return status;
}
