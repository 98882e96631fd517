/* How a graph reads its tensors: as something that a layer learns, or as a constant of the
 * computation. Operators say where weights enter (struct cm_op: weights, entry); this file follows
 * tensors to them, through whatever is computed from tensors alone. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "train/prepare/trainables.h"

#include "graph/function.h"
#include "graph/op.h"
#include "train/training_graph.h"

#include <math.h>

/* No layer has more operands than OPERANDS_MAX: each is compared with the others. */
enum { CARRIED_MAX = 8, DEPTH_MAX = 64, SCORES_MAX = 64, OPERANDS_MAX = 256 };

/* A candidate that a value is computed from, and from no data. */
struct carried {
    struct cm_trainable *who;
    struct carried *next;
};

struct state {
    bool is_data;    /* depends on an input of the model */
    bool is_learned; /* depends on something learned */
    bool is_rows;    /* rows that were looked up in what it carries */
    struct carried *carried;
};

struct norm {
    const struct cm_node *node;
    struct cm_trainable *scale, *shift;
};

struct look {
    struct cm_preparation *p;
    struct cm_trainables *list;
    struct cm_module *module;
    struct state *states;
    size_t n_states;
    CM_ARRAY(struct norm) norms;
};

static struct state *state_of(struct look *look, cm_value value)
{
    if (value >= look->n_states) { /* calls make values as they are looked into */
        const size_t count = 2 * cm_module_value_count(look->module) + value;
        struct state *states = CM_NEW_ARRAY(look->p->arena, struct state, count);

        if (look->n_states)
            memcpy(states, look->states, look->n_states * sizeof *states);
        look->states = states;
        look->n_states = count;
    }
    return &look->states[value];
}

/* Of an operand of a node; NULL: it is absent. */
static const struct state *operand_state(struct look *look, const struct cm_node *node, int i)
{
    const cm_value value = cm_node_input(node, i);

    return value ? state_of(look, value) : NULL;
}

static bool is_weight(const struct cm_node *node, int index)
{
    return node->op &&
           (node->op->layer.weights & CM_OPERAND(index < 31 ? index : 31)); /* of many: all */
}

static const struct cm_type *type_of(const struct look *look, cm_value value)
{
    return value ? cm_value_get(look->module, value)->fact.type : NULL;
}

static bool is_float(const struct look *look, cm_value value)
{
    const struct cm_type *type = type_of(look, value);

    return type && type->kind == CM_KIND_TENSOR && cm_dtype_is_float(type->dtype);
}

/* ---- verdicts ---- */

static void count_as_learned(const struct carried *carried, const char *use)
{
    for (; carried; carried = carried->next) {
        if (!carried->who->is_learned)
            carried->who->use = use;
        carried->who->is_learned = true;
    }
}

static void count_as_constant(const struct carried *carried, const char *use)
{
    for (; carried; carried = carried->next)
        if (!carried->who->use)
            carried->who->use = use;
}

/* Dimensions of an initializer that are not 1. */
static int own_axes(const struct cm_trainable *candidate)
{
    int count = 0;

    for (size_t i = 0; i < candidate->tensor->dims.count; i++)
        count += candidate->tensor->dims.items[i] != 1;
    return count;
}

static bool is_folded(const struct look *look, const struct cm_trainable *candidate)
{
    return look->list->records_kinds && candidate->recorded == CM_RECORDED_NOTHING;
}

static bool is_one(struct cm_dim dim)
{
    return dim.value == 1;
}

/* Do the values of a tensor differ along the first axis of what it is combined with? */
static bool differs_by_sample(const struct cm_type *type, const struct cm_type *data)
{
    return data->rank >= 2 && type->rank == data->rank && !is_one(type->dims[0]);
}

/* Does the sum go into a Softmax, on a way that keeps its elements apart? */
static bool becomes_scores(const struct look *look, cm_value value, int *visits)
{
    for (const struct cm_use *use = cm_value_get(look->module, value)->uses; use; use = use->next) {
        const struct cm_op *op = use->node ? use->node->op : NULL;

        if (!op || ++*visits > SCORES_MAX)
            continue;
        if (op->scores.probability_axis)
            return true;
        if ((op->values.kept || op->elementwise) && cm_node_output(use->node, 0) &&
            becomes_scores(look, use->node->outputs[0], visits))
            return true;
    }
    return false;
}

/* Why a tensor that is added or multiplied is none of a layer's; NULL: it is. */
static const char *not_affine(const struct look *look, const struct cm_node *node, cm_value value,
                              cm_value other, const struct cm_trainable *candidate)
{
    const struct cm_type *type = type_of(look, value), *data = type_of(look, other);
    int axes = 0, visits = 0;
    bool repeats = false;

    if (!look->states[other].is_learned)
        return "it is applied to an input of the model, as a normalization is";
    if (type->rank == CM_RANK_UNKNOWN || data->rank == CM_RANK_UNKNOWN)
        return NULL;
    if (type->rank > data->rank || (look->states[other].is_data && differs_by_sample(type, data)))
        return "it differs from sample to sample";
    for (int i = 0; i < type->rank; i++) {
        axes += !is_one(type->dims[i]);
        repeats = repeats || !is_one(data->dims[data->rank - type->rank + i]);
    }
    if (axes == 0 && repeats && !look->list->numbers_apart)
        return "a single number, applied to all elements";
    if (axes > 1 && is_folded(look, candidate))
        return "the exporter computed it from parameters or constants";
    if (node->op->layer.entry == CM_ENTERS_AS_SHIFT && type->rank >= 2 && data->rank >= 3 &&
        becomes_scores(look, node->outputs[0], &visits))
        return "it is added to attention scores";
    return NULL;
}

/* ---- one node ---- */

/* The operand that a tensor is combined with: data if there is one, else something learned. */
static cm_value find_other(struct look *look, const struct cm_node *node, int index)
{
    cm_value found = 0;

    for (int i = 0; i < node->n_inputs; i++) {
        const cm_value value = node->inputs[i].value;
        const struct state *state = value ? state_of(look, value) : NULL;

        if (i == index || !state || !is_float(look, value))
            continue;
        if (state->is_data || (state->is_learned && !found))
            found = value;
    }
    return found;
}

static bool is_matrix(const struct cm_type *type)
{
    for (int i = 0; i + 2 < type->rank; i++)
        if (!is_one(type->dims[i]))
            return false;
    return true;
}

/* A weight by its place. Of products a vector counts only beside something learned: a table of
 * frequencies multiplies positions in the same way. */
static const char *not_by_place(struct look *look, const struct cm_node *node, int index,
                                const struct cm_trainable *candidate)
{
    const bool is_product = node->op->layer.weights & CM_OPERAND(0);
    const struct cm_type *type = type_of(look, node->inputs[index].value);

    if (!is_product)
        return NULL;
    if (is_folded(look, candidate) && !is_matrix(type))
        return "the exporter computed it from parameters or constants";
    if (candidate->tensor->dims.count == 2 || own_axes(candidate) > 1)
        return NULL;
    for (int i = 0; i < node->n_inputs; i++) {
        const struct state *state = operand_state(look, node, i);

        if (i != index && state && (state->is_learned || state->carried))
            return NULL;
    }
    return "it is applied to an input of the model, as a normalization is";
}

static void note_norm(struct look *look, const struct cm_node *node)
{
    const struct state *scale = operand_state(look, node, 1);
    const struct state *shift = operand_state(look, node, 2);

    *CM_PUSH(look->p->arena, &look->norms) =
        (struct norm){node, scale && scale->carried ? scale->carried->who : NULL,
                      shift && shift->carried ? shift->carried->who : NULL};
}

static const char *const entry_names[] = {
    [CM_ENTERS_BY_PLACE] = "a weight or bias by its place",
    [CM_ENTERS_AS_SHIFT] = "a bias or shift",
    [CM_ENTERS_AS_SCALE] = "a scale",
    [CM_ENTERS_AS_TABLE] = "an embedding table",
    [CM_ENTERS_AS_PART] = "a learned part of a sequence",
    [CM_ENTERS_AFTER_NORM] = "scale or shift of a normalization",
};

static const char *reads_otherwise(struct look *look, const struct cm_node *node)
{
    return cm_arena_printf(look->p->arena,
                           "%.*s reads it, not as a weight, bias, scale, shift or table",
                           CM_STR_FMT(node->op_type))
        .data;
}

/* Is a tensor multiplied by a table of constants, as frequencies are by positions? */
static bool scales_constants(struct look *look, const struct cm_node *node, int index)
{
    for (int i = 0; i < node->n_inputs; i++) {
        const cm_value value = node->inputs[i].value;

        if (i == index || !is_float(look, value) || state_of(look, value)->carried)
            continue;
        const struct cm_type *type = type_of(look, value);
        for (int d = 0; d < type->rank; d++)
            if (!is_one(type->dims[d]))
                return true;
    }
    return false;
}

/* Why operand `index`, which carries candidates, is not learned; NULL: it is. Sets *passes when the
 * result is still computed from tensors alone. */
static const char *judge(struct look *look, const struct cm_node *node, int index, bool *passes)
{
    const cm_value value = node->inputs[index].value;
    const struct cm_trainable *candidate = look->states[value].carried->who;
    const cm_value other = find_other(look, node, index);
    const bool as_weight = is_weight(node, index);
    const enum cm_entry entry = as_weight ? node->op->layer.entry : CM_ENTERS_BY_PLACE;

    if (entry == CM_ENTERS_AS_TABLE) { /* one row that is known is a part of a tensor */
        const cm_value rows = cm_node_input(node, 1);
        const struct cm_type *type = type_of(look, rows);

        *passes = !type || (type->rank == 0 && !state_of(look, rows)->is_data);
        return *passes ? reads_otherwise(look, node) : NULL;
    }
    if (as_weight && (entry == CM_ENTERS_BY_PLACE || entry == CM_ENTERS_AFTER_NORM))
        return not_by_place(look, node, index, candidate);
    *passes = !other && !(entry == CM_ENTERS_AS_SCALE && scales_constants(look, node, index));
    if (!as_weight || !other)
        return reads_otherwise(look, node);
    if (entry != CM_ENTERS_AS_PART)
        return not_affine(look, node, value, other, candidate);
    if (is_folded(look, candidate))
        return "the exporter computed it from parameters or constants";
    return look->states[other].is_learned && look->list->numbers_apart
               ? NULL
               : reads_otherwise(look, node);
}

/* Rows of a table are embeddings, unless all that is done with them is to multiply something else
 * that was learned: rotary angles. */
static bool is_angle(struct look *look, const struct cm_node *node, int index)
{
    if (!node->op || node->op->layer.entry != CM_ENTERS_AS_SCALE)
        return false;
    for (int i = 0; i < node->n_inputs; i++) {
        const struct state *state = operand_state(look, node, i);

        if (i != index && state && state->is_learned && !state->is_rows)
            return true;
    }
    return false;
}

static bool carries(const struct state *state, const struct cm_trainable *who)
{
    const struct carried *c = state->carried;

    while (c && c->who != who)
        c = c->next;
    return c != NULL;
}

/* A tensor counts once, however many parts of it are put together: gates of a recurrent layer in
 * another order. */
static void carry(struct look *look, struct state *to, const struct carried *from)
{
    size_t count = 0;

    for (const struct carried *c = to->carried; c; c = c->next)
        count++;
    for (; from; from = from->next) {
        if (carries(to, from->who))
            continue;
        if (count++ >= CARRIED_MAX) {
            count_as_constant(from, "it is one of many tensors that a value is computed from");
            return;
        }
        struct carried *copy = CM_NEW(look->p->arena, struct carried);
        *copy = (struct carried){from->who, to->carried};
        to->carried = copy;
    }
}

static void look_at_graph(struct look *look, struct cm_graph *graph, int depth);

/* A call hands its operands in and its results out. */
static void look_at_call(struct look *look, struct cm_node *node, int depth)
{
    struct cm_graph *body = node->instance;
    size_t k = 0;

    for (int i = 0; i < node->n_inputs && k < body->n_inputs; i++)
        if (node->inputs[i].value) {
            const struct state given = *state_of(look, node->inputs[i].value);
            *state_of(look, body->inputs[k++]) = given;
        }
    look_at_graph(look, body, depth + 1);
    for (int o = 0; o < node->n_outputs && (size_t)o < body->n_outputs; o++)
        if (node->outputs[o]) {
            const struct state given = *state_of(look, body->outputs[o].value);
            *state_of(look, node->outputs[o]) = given;
        }
}

static bool is_call(struct look *look, struct cm_node *node, int depth)
{
    struct cm_error err = {0};
    bool carries = false;

    if (depth >= DEPTH_MAX || node->n_bodies || (node->op && node->op->layer.weights))
        return false;
    for (int i = 0; i < node->n_inputs && !carries; i++)
        carries = node->inputs[i].value && state_of(look, node->inputs[i].value)->carried &&
                  !(node->op && node->op->elementwise);
    if (node->function || carries)
        return cm_node_has_function(node) &&
               (node->instance || cm_node_instantiate(node, &err) == CM_OK);
    return false;
}

/* The operand that a body's input holds in every iteration, handed on as it came: weights that a
 * converter of loops keeps among the variables. 0: there is none. */
static cm_value kept_operand(const struct look *look, const struct cm_node *node,
                             const struct cm_graph *body, size_t input)
{
    const int next = node->op && node->op->bodies.next ? node->op->bodies.next(node, input) : -1;

    if (next < 0 || (size_t)next >= body->n_outputs)
        return 0;
    cm_value value = body->outputs[next].value;
    for (const struct cm_node *by = cm_value_get(look->module, value)->node;
         by && by->op && by->op->values.is_copy; by = cm_value_get(look->module, value)->node)
        value = by->inputs[0].value;
    return value == body->inputs[input] ? cm_node_input(node, (int)input) : 0;
}

static void look_into_bodies(struct look *look, struct cm_node *node, int depth)
{
    for (size_t b = 0; b < node->n_bodies && depth < DEPTH_MAX; b++) {
        struct cm_graph *body = node->bodies[b].graph;

        for (size_t i = 0; body && i < body->n_inputs; i++) {
            const cm_value kept = kept_operand(look, node, body, i);
            const struct state given =
                kept ? *state_of(look, kept) : (struct state){.is_data = true, .is_learned = true};

            *state_of(look, body->inputs[i]) = given;
        }
        if (body)
            look_at_graph(look, body, depth + 1);
    }
}

/* The state of a node's results. */
struct result {
    struct state state;
    bool has_floats, any_data;
};

/* Where nothing else is learned, these are what a small model of one factor trains. */
static void note_applied(const struct cm_node *node, int index, const struct carried *carried)
{
    const bool counts = is_weight(node, index) && node->op->layer.entry != CM_ENTERS_AS_PART;

    for (; counts && carried; carried = carried->next)
        carried->who->is_applied = true;
}

static void look_at_operand(struct look *look, struct cm_node *node, int i, struct result *r)
{
    const cm_value value = node->inputs[i].value;
    struct state *state = state_of(look, value);
    bool passes = false;

    r->any_data = r->any_data || state->is_data;
    r->state.is_learned = r->state.is_learned || state->is_learned;
    if (!is_float(look, value))
        return;
    r->has_floats = true;
    r->state.is_data = r->state.is_data || state->is_data;
    if (state->is_rows) {
        if (node->op && node->op->values.kept && i == 0) {
            r->state.is_rows = true;
            carry(look, &r->state, state->carried);
        } else if (node->n_inputs <= OPERANDS_MAX && is_angle(look, node, i)) {
            count_as_constant(state->carried, "its rows only multiply what others have learned");
        } else {
            count_as_learned(state->carried, "an embedding table");
        }
        return;
    }
    if (!state->carried)
        return;
    if (node->n_inputs > OPERANDS_MAX) {
        count_as_constant(state->carried, reads_otherwise(look, node));
        return;
    }
    const char *why_not = judge(look, node, i, &passes);
    state = &look->states[value]; /* judging may have moved it */
    const bool is_table = node->op && node->op->layer.entry == CM_ENTERS_AS_TABLE;
    if (passes) {
        carry(look, &r->state, state->carried);
    } else if (why_not) {
        note_applied(node, i, state->carried);
        count_as_constant(state->carried, why_not);
    } else if (is_table) {
        carry(look, &r->state, state->carried);
        r->state.is_rows = r->state.is_data = r->state.is_learned = true;
    } else {
        r->state.is_learned = true;
        if (node->op->layer.entry != CM_ENTERS_AFTER_NORM)
            count_as_learned(state->carried, entry_names[node->op->layer.entry]);
    }
}

static void look_at_node(struct look *look, struct cm_node *node, int depth)
{
    struct result r = {0};

    if (node->op && node->op->values.is_constant)
        return;
    if (node->graph == look->p->inference && !cm_node_is_needed(node, look->p->predicts, NULL))
        return;
    if (is_call(look, node, depth)) {
        look_at_call(look, node, depth);
        return;
    }
    look_into_bodies(look, node, depth);
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i].value)
            look_at_operand(look, node, i, &r);
    if (node->op && node->op->layer.entry == CM_ENTERS_AFTER_NORM)
        note_norm(look, node);
    if (!r.has_floats)
        r.state.is_data = r.any_data;
    if (node->n_bodies)
        r.state = (struct state){.is_data = true, .is_learned = true};
    if (r.state.is_data && !r.state.is_rows) {
        count_as_constant(r.state.carried, reads_otherwise(look, node));
        r.state.carried = NULL;
    }
    for (int o = 0; o < node->n_outputs; o++)
        if (node->outputs[o])
            *state_of(look, node->outputs[o]) = r.state;
}

static void look_at_graph(struct look *look, struct cm_graph *graph, int depth)
{
    for (struct cm_node *node = graph->first; node; node = node->next)
        look_at_node(look, node, depth);
    for (size_t o = 0; o < graph->n_outputs; o++) {
        const struct state *state = state_of(look, graph->outputs[o].value);

        if (state->is_rows && !graph->owner)
            count_as_learned(state->carried, "an embedding table");
    }
}

/* ---- normalizations that leave scaling to what follows ---- */

static bool holds(const struct look *look, const struct cm_trainable *candidate, double number)
{
    double held;

    return candidate && cm_tensor_repeats(look->p, candidate->tensor, &held) && held == number;
}

/* The node right behind value, but for views, that combines it with something learned. */
static const struct cm_node *next_affine(struct look *look, cm_value value, enum cm_entry entry)
{
    for (int steps = 0; steps < DEPTH_MAX; steps++) {
        const struct cm_value_def *def = cm_value_get(look->module, value);
        const struct cm_node *node = def->n_uses == 1 ? def->uses->node : NULL;
        const struct cm_op *op = node ? node->op : NULL;

        if (!op || !cm_node_output(node, 0))
            return NULL;
        if (op->values.kept && def->uses->index == 0) {
            value = node->outputs[0];
            continue;
        }
        if (op->layer.entry != entry || node->n_inputs != 2)
            return NULL;
        const struct state *other = state_of(look, node->inputs[1 - def->uses->index].value);
        return other->carried && other->carried->who->is_learned ? node : NULL;
    }
    return NULL;
}

static bool is_scaled_after(struct look *look, const struct norm *norm)
{
    if (!holds(look, norm->scale, 1) || !holds(look, norm->shift, 0))
        return false;
    const struct cm_node *scale = next_affine(look, norm->node->outputs[0], CM_ENTERS_AS_SCALE);

    return scale && next_affine(look, scale->outputs[0], CM_ENTERS_AS_SHIFT);
}

static void settle_norms(struct look *look)
{
    for (size_t i = 0; i < look->norms.count; i++) {
        const struct norm *norm = &look->norms.items[i];
        struct carried scale = {norm->scale, NULL}, shift = {norm->shift, NULL};
        const char *plain = "plain ones and zeros: trained tensors scale and shift right after";
        const bool left = is_scaled_after(look, norm);

        for (int k = 0; k < 2; k++) {
            const struct carried *one = k ? &shift : &scale;

            if (one->who && left)
                count_as_constant(one, plain);
            else if (one->who)
                count_as_learned(one, entry_names[norm->node->op->layer.entry]);
        }
    }
}

/* ---- all ---- */

static void begin(struct look *look, bool constants)
{
    const struct cm_graph *graph = look->p->inference;

    for (size_t i = 0; i < graph->n_inputs; i++)
        state_of(look, graph->inputs[i])->is_data = true;
    for (size_t i = 0; i < look->list->count; i++) {
        struct cm_trainable *candidate = &look->list->items[i];
        const cm_value value = candidate->value;

        if (!look->p->predicts[value] || !is_float(look, value) ||
            (candidate->is_constant && !constants) ||
            (candidate->tensor->dims.count == 0 && !candidate->recorded))
            continue;
        struct state *state = state_of(look, value);
        *state = (struct state){.carried = CM_NEW(look->p->arena, struct carried)};
        state->carried->who = candidate;
    }
}

void cm_trainables_look(struct cm_preparation *p, struct cm_trainables *list, bool constants)
{
    struct look look = {.p = p, .list = list, .module = p->inference->module};

    begin(&look, constants);
    look_at_graph(&look, p->inference, 0);
    settle_norms(&look);
}
