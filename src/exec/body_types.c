/* What the bodies of a step give for the types at hand, found without running them: so that the
 * steps after an If, a Loop or a Scan can be bound before there is data. */
// SPDX-License-Identifier: Apache-2.0
#include "exec/program.h"

#include "base/memory.h"

/* A body is inferred again for each widening of a loop's states, so deep nests are not worth it,
 * nor is going on when a model was made to take long: then the run decides. */
enum { DEEPEST = 4, MOST_RULES = 20000 };

struct search {
    struct cm_context *context;
    const struct cm_block *bound; /* slots of deeper blocks have their facts in context->facts */
    struct cm_arena *arena;
    int depth;
    size_t rules; /* that may still be asked */
};

/* The rule's view of a step; `in` comes first, so that infer_body finds the rest. */
struct asking {
    struct cm_infer in;
    struct search *search;
    const struct cm_step *step;
};

static enum cm_status infer_step(struct search *search, const struct cm_step *step,
                                 struct cm_fact *results, struct cm_error *err);

static struct cm_fact fact_of(const struct search *search, cm_slot_id slot, cm_value value)
{
    const struct cm_context *context = search->context;
    const struct cm_session *session = context->session;
    struct cm_fact fact = {0};
    if (session->blocks[session->block_of[slot]]->depth > search->bound->depth) {
        fact = context->facts[slot];
    } else {
        fact.type = context->slots[slot].type;
        fact.constant = context->slots[slot].known;
    }
    if (!fact.type) /* at least what was known when the graph was built */
        fact.type = cm_value_get(session->module, value)->fact.type;
    return fact;
}

static enum cm_status infer_into_slots(struct search *search, const struct cm_step *step,
                                       struct cm_error *err)
{
    struct cm_fact *results = CM_NEW_ARRAY(search->arena, struct cm_fact, (size_t)step->n_out);
    CM_TRY(infer_step(search, step, results, err));
    for (int o = 0; o < step->n_out; o++)
        if (step->out[o] != CM_NO_SLOT)
            search->context->facts[step->out[o]] = results[o];
    return CM_OK;
}

static enum cm_status infer_block(struct cm_infer *in, size_t body, const struct cm_fact *args,
                                  size_t n_args, struct cm_fact *outs, size_t n_outs)
{
    const struct asking *asking = (const struct asking *)in;
    struct search *search = asking->search;
    const struct cm_block *block = asking->step->bodies[body];
    struct cm_fact *facts = search->context->facts;
    if (search->depth >= DEEPEST || block->n_inputs != n_args || block->n_outputs != n_outs)
        return cm_fail(in->err, CM_UNSUPPORTED, "not looked at");
    for (size_t i = 0; i < n_args; i++)
        facts[block->inputs[i]] = args[i];
    search->depth++;
    enum cm_status status = CM_OK;
    for (size_t s = 0; s < block->n_steps && !status; s++) {
        const struct cm_step *step = &block->steps[s];
        if (!step->n_parts)
            status = infer_into_slots(search, step, in->err);
        for (size_t i = 0; i < step->n_parts && !status; i++)
            status = infer_into_slots(search, &step->parts[i], in->err);
    }
    search->depth--;
    CM_TRY(status);
    for (size_t o = 0; o < n_outs; o++)
        outs[o] = fact_of(search, block->outputs[o], block->graph->outputs[o].value);
    return CM_OK;
}

static enum cm_status infer_step(struct search *search, const struct cm_step *step,
                                 struct cm_fact *results, struct cm_error *err)
{
    const struct cm_node *node = step->node;
    if (search->rules == 0)
        return cm_fail(err, CM_LIMIT, "its bodies are not looked at any longer");
    search->rules--;
    struct cm_fact *facts = CM_NEW_ARRAY(search->arena, struct cm_fact, (size_t)step->n_in);
    for (int i = 0; i < step->n_in; i++)
        if (step->in[i] != CM_NO_SLOT)
            facts[i] = fact_of(search, step->in[i], node->inputs[i].value);
    struct asking asking = {.in = {.node = node,
                                   .arena = search->arena,
                                   .symbols = cm_module_symbols(node->module),
                                   .in = facts,
                                   .out = results,
                                   .n_in = step->n_in,
                                   .n_out = step->n_out,
                                   .infer_body = infer_block,
                                   .err = err},
                            .search = search,
                            .step = step};
    return node->op->infer(&asking.in);
}

void cm_infer_bodies(struct cm_context *context, const struct cm_block *block,
                     const struct cm_step *step, struct cm_arena *arena, struct cm_fact *results)
{
    struct search search = {.context = context,
                            .bound = block,
                            .arena = arena,
                            .rules = MOST_RULES + 8 * context->session->n_steps};
    struct cm_error why;
    if (!context->facts)
        context->facts = cm_calloc(context->session->n_slots + 1, sizeof *context->facts);
    /* A branch that is never taken may be wrong for these types: then the run decides. */
    if (!context->facts || infer_step(&search, step, results, &why))
        memset(results, 0, (size_t)step->n_out * sizeof *results);
}
