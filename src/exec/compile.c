/* Compiling: what cannot run is expanded or reported, the rest becomes steps over slots. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "exec/program.h"

#include "base/diagnostics.h"
#include "graph/function.h"

#include <stdlib.h>

/* ---- what runs how ---- */

static bool needs_expansion(const struct cm_node *node, void *arg)
{
    (void)arg;
    return !cm_node_has_kernel(node);
}

static void list_blockers(struct cm_findings *findings, const struct cm_graph *graph)
{
    for (const struct cm_node *node = graph->first; node; node = node->next) {
        for (size_t i = 0; i < node->n_bodies; i++)
            if (node->bodies[i].graph)
                list_blockers(findings, node->bodies[i].graph);
        if (cm_node_has_kernel(node))
            continue;
        const bool old = node->op && node->op->run;
        const struct cm_node_text text = cm_node_describe(node);
        if (old)
            cm_findings_unsupported(findings, cm_str(text.text), "version %lld cannot be upgraded",
                                    (long long)node->original_version);
        else
            cm_findings_unsupported(findings, cm_str(text.text), "no kernel and no function body");
    }
}

static enum cm_status expand(struct cm_session *session, struct cm_graph *graph,
                             struct cm_error *err)
{
    CM_TRY(cm_graph_inline_all(graph, needs_expansion, NULL, err));
    struct cm_findings own = {.arena = cm_module_arena(graph->module)};
    struct cm_findings *findings = session->options.findings ? session->options.findings : &own;
    list_blockers(findings, graph);
    session->options.findings = NULL; /* lent for this call */
    return cm_findings_fail(findings, err);
}

/* ---- steps and slots ---- */

/* Blocks that are known to capture a slot, inner ones first. */
struct capture {
    struct cm_block *block;
    struct capture *outer;
};

struct compiler {
    struct cm_session *session;
    struct cm_arena *arena;
    cm_slot_id *slot_of;        /* by value number */
    struct cm_step **last_user; /* by slot: the step of its block that reads it last */
    struct capture **captures;  /* by slot */
    struct cm_marks steps_of;   /* of nodes: which step of their block they are */
    CM_ARRAY(const struct cm_tensor *) constants; /* by slot */
    CM_ARRAY(struct cm_block *) blocks;
    struct cm_error *err;
};

static cm_slot_id define(struct compiler *c, const struct cm_block *block, cm_value value)
{
    const cm_slot_id slot = (cm_slot_id)c->session->n_slots++;
    c->slot_of[value] = slot;
    c->session->block_of[slot] = block->number;
    c->session->result_of[slot] = CM_NO_SLOT;
    *CM_PUSH(c->arena, &c->constants) = NULL;
    return slot;
}

/* Does it read the value as a weight, which a kernel of a backend may want packed, or as a table of
 * rows? */
static bool reads_weight(const struct cm_use *use)
{
    const struct cm_op *op = use->node ? use->node->op : NULL;
    return op && !op->elementwise && use->index >= 0 && use->index < 32 &&
           op->layer.weights & CM_OPERAND(use->index) &&
           (op->layer.entry == CM_ENTERS_BY_PLACE || op->layer.entry == CM_ENTERS_AS_TABLE);
}

static bool are_weights(const struct cm_module *module, cm_value value)
{
    const struct cm_use *use = cm_value_get(module, value)->uses;
    for (; use; use = use->next) {
        const struct cm_node *node = use->node;
        if (node && node->op && node->op->effects & CM_REGION) {
            const struct cm_graph *body = node->bodies[0].graph;
            if (!body || !are_weights(module, body->inputs[use->index]))
                return false;
        } else if (!reads_weight(use)) {
            return false;
        }
    }
    return true;
}

/* Those that nobody but such nodes reads stay where they lie until it is known who wants them how.
 */
static enum cm_status find_constant(struct compiler *c, cm_value value,
                                    const struct cm_tensor **out)
{
    struct cm_module *module = c->session->module;
    return are_weights(module, value) ? cm_value_constant_in_place(module, value, out, c->err)
                                      : cm_value_constant(module, value, out, c->err);
}

/* The slot of a value that is read; a constant gets one when it is first read. */
static enum cm_status slot_for(struct compiler *c, cm_value value, cm_slot_id *out)
{
    *out = CM_NO_SLOT;
    if (!value)
        return CM_OK;
    if (c->slot_of[value] == CM_NO_SLOT) {
        const struct cm_tensor *constant;
        CM_TRY(find_constant(c, value, &constant));
        if (!constant)
            return cm_fail(c->err, CM_BAD_MODEL, "value '%.*s' is read before it is computed",
                           CM_STR_FMT(cm_value_get(c->session->module, value)->name));
        const cm_slot_id slot = define(c, c->session->main, value); /* moves the list */
        c->constants.items[slot] = constant;
    }
    *out = c->slot_of[value];
    return CM_OK;
}

/* Notes that block captures slot. If it does, so do the blocks between it and the slot's own, and
 * of blocks that are complete nothing more will be asked: so the list is never longer than nesting
 * is deep. */
static void note_capture(struct compiler *c, struct cm_block *block, cm_slot_id slot)
{
    struct capture **captures = &c->captures[slot];
    while (*captures && (*captures)->block->built)
        *captures = (*captures)->outer;
    for (const struct capture *capture = *captures; capture; capture = capture->outer)
        if (capture->block == block)
            return;
    struct capture *capture = CM_NEW(c->arena, struct capture);
    *capture = (struct capture){block, *captures};
    *captures = capture;
    *CM_PUSH(c->arena, &block->captured) = slot;
    c->session->is_captured[slot] = true;
}

/* Notes that step reads slot: the slot's own block learns its last reader, blocks in between that
 * they capture it. */
static void note_use(struct compiler *c, struct cm_block *block, struct cm_step *step,
                     cm_slot_id slot)
{
    if (slot == CM_NO_SLOT || c->constants.items[slot])
        return;
    while (c->session->block_of[slot] != block->number) {
        note_capture(c, block, slot);
        /* From outside it is the step that owns the body who reads. */
        step = &block->outer->steps[cm_mark_get(&c->steps_of, block->graph->owner)];
        block = block->outer;
    }
    if (step)
        c->last_user[slot] = step;
}

static enum cm_status build_block(struct compiler *c, struct cm_graph *graph,
                                  struct cm_block *outer, struct cm_block **out);

static void list_kernels(struct compiler *c, struct cm_step *step)
{
    const struct cm_session *session = c->session;
    for (size_t i = 0; i < session->kernels.count; i++) {
        const struct cm_kernel *kernel = session->kernels.items[i];
        if (cm_str_is(step->node->op_type, kernel->name) &&
            cm_str_is(step->node->domain, kernel->domain))
            *CM_PUSH(c->arena, &step->kernels) = kernel;
    }
}

static void begin_step(struct compiler *c, struct cm_step *step, struct cm_node *node)
{
    *step = (struct cm_step){.node = node, .n_in = node->n_inputs, .n_out = node->n_outputs};
    c->session->n_steps++;
    if (node->op->effects & CM_RANDOM)
        *CM_PUSH(c->arena, &c->session->random) = step;
    list_kernels(c, step);
    step->in = CM_NEW_ARRAY(c->arena, cm_slot_id, (size_t)step->n_in);
    step->out = CM_NEW_ARRAY(c->arena, cm_slot_id, (size_t)step->n_out);
    for (int o = 0; o < step->n_out; o++)
        step->out[o] = CM_NO_SLOT;
}

/* A node of a region's body, over slots of the block that the region is in. */
static enum cm_status build_part(struct compiler *c, const struct cm_block *block,
                                 struct cm_step *part, struct cm_node *node)
{
    begin_step(c, part, node);
    for (int i = 0; i < part->n_in; i++)
        CM_TRY(slot_for(c, node->inputs[i].value, &part->in[i]));
    for (int o = 0; o < part->n_out; o++) {
        const cm_value value = node->outputs[o];
        if (value)
            part->out[o] =
                c->slot_of[value] == CM_NO_SLOT ? define(c, block, value) : c->slot_of[value];
    }
    return CM_OK;
}

/* Operands and results of the body have the slots that the region's have. Passes make regions so
 * that each result is made by a node of the body, and no two are the same. */
static enum cm_status build_parts(struct compiler *c, const struct cm_block *block,
                                  struct cm_step *step)
{
    const struct cm_graph *body = step->node->bodies[0].graph;
    for (size_t i = 0; i < body->n_inputs; i++)
        c->slot_of[body->inputs[i]] = step->in[i];
    for (size_t o = 0; o < body->n_outputs; o++)
        if (step->out[o] != CM_NO_SLOT)
            c->slot_of[body->outputs[o].value] = step->out[o];
    step->parts = CM_NEW_ARRAY(c->arena, struct cm_step, body->n_nodes);
    for (struct cm_node *node = body->first; node; node = node->next)
        CM_TRY(build_part(c, block, &step->parts[step->n_parts++], node));
    return CM_OK;
}

static enum cm_status build_step(struct compiler *c, struct cm_block *block, struct cm_step *step,
                                 struct cm_node *node)
{
    const bool is_region = node->op->effects & CM_REGION;
    const size_t n_bodies = is_region ? 0 : node->n_bodies;
    begin_step(c, step, node);
    for (int i = 0; i < step->n_in; i++) {
        CM_TRY(slot_for(c, node->inputs[i].value, &step->in[i]));
        note_use(c, block, step, step->in[i]);
    }
    step->bodies = CM_NEW_ARRAY(c->arena, struct cm_block *, n_bodies);
    for (size_t i = 0; i < n_bodies; i++)
        CM_TRY(build_block(c, node->bodies[i].graph, block, &step->bodies[i]));
    for (int o = 0; o < step->n_out; o++) {
        if (!node->outputs[o])
            continue;
        step->out[o] = define(c, block, node->outputs[o]);
        c->last_user[step->out[o]] = step; /* at least, if nobody reads it */
    }
    return is_region ? build_parts(c, block, step) : CM_OK;
}

/* Turns "who reads it last" into "what ends here". */
static void list_last(struct compiler *c, const struct cm_block *block)
{
    for (size_t s = 0; s < block->n_steps; s++)
        for (int o = 0; o < block->steps[s].n_out; o++) {
            const cm_slot_id slot = block->steps[s].out[o];
            struct cm_step *user = slot == CM_NO_SLOT ? NULL : c->last_user[slot];
            if (user)
                *CM_PUSH(c->arena, &user->last) = slot;
        }
}

/* ---- what ends within a region ---- */

/* Notes for each slot that the part touches. */
static void touch(const struct cm_step *part, uint32_t note, uint32_t *by_slot)
{
    for (int i = 0; i < part->n_in; i++)
        if (part->in[i] != CM_NO_SLOT)
            by_slot[part->in[i]] = note;
    for (int o = 0; o < part->n_out; o++)
        if (part->out[o] != CM_NO_SLOT)
            by_slot[part->out[o]] = note;
}

static void end_in_part(struct compiler *c, struct cm_step *step, cm_slot_id slot,
                        const uint32_t *last_part)
{
    const size_t at = last_part[slot] == UINT32_MAX ? step->n_parts - 1 : last_part[slot];
    *CM_PUSH(c->arena, &step->parts[at].last) = slot;
}

static bool is_result(const struct cm_step *step, cm_slot_id slot)
{
    for (int o = 0; o < step->n_out; o++)
        if (step->out[o] == slot)
            return true;
    return false;
}

/* What ends with the region ends with the part that touches it last, and so does what only parts
 * know. last_part: by slot, UINT32_MAX throughout, also afterwards. */
static void list_last_of_parts(struct compiler *c, struct cm_step *step, uint32_t *last_part)
{
    for (uint32_t at = 0; at < step->n_parts; at++)
        touch(&step->parts[at], at, last_part);
    for (size_t i = 0; i < step->last.count; i++)
        end_in_part(c, step, step->last.items[i], last_part);
    for (size_t at = 0; at < step->n_parts; at++)
        for (int o = 0; o < step->parts[at].n_out; o++) {
            const cm_slot_id slot = step->parts[at].out[o];
            if (slot != CM_NO_SLOT && !is_result(step, slot))
                end_in_part(c, step, slot, last_part);
        }
    for (size_t at = 0; at < step->n_parts; at++)
        touch(&step->parts[at], UINT32_MAX, last_part);
}

static void list_all_last_of_parts(struct compiler *c)
{
    uint32_t *last_part = NULL;
    for (size_t b = 0; b < c->blocks.count; b++)
        for (size_t s = 0; s < c->blocks.items[b]->n_steps; s++) {
            struct cm_step *step = &c->blocks.items[b]->steps[s];
            if (!step->n_parts)
                continue;
            if (!last_part) {
                last_part = CM_NEW_ARRAY(c->arena, uint32_t, c->session->n_slots);
                memset(last_part, 0xff, c->session->n_slots * sizeof *last_part);
            }
            list_last_of_parts(c, step, last_part);
        }
}

static void note_result(struct compiler *c, struct cm_block *block, size_t o)
{
    const cm_slot_id slot = block->outputs[o];
    if (c->constants.items[slot] || c->session->block_of[slot] != block->number)
        return;
    if (block->n_inputs && slot >= block->inputs[0] && slot - block->inputs[0] < block->n_inputs)
        return;                /* an input, whose slots follow each other */
    c->last_user[slot] = NULL; /* lives on */
    if (c->session->result_of[slot] != CM_NO_SLOT)
        return;
    c->session->result_of[slot] = (uint32_t)o;
    *CM_PUSH(c->arena, &block->results) = slot;
}

static enum cm_status build_block(struct compiler *c, struct cm_graph *graph,
                                  struct cm_block *outer, struct cm_block **out)
{
    struct cm_block *block = CM_NEW(c->arena, struct cm_block);
    block->graph = graph;
    block->outer = outer;
    block->depth = outer ? outer->depth + 1 : 0;
    block->number = (uint32_t)c->blocks.count;
    *CM_PUSH(c->arena, &c->blocks) = block;
    if (!outer)
        c->session->main = block;
    *out = block;
    block->n_inputs = graph->n_inputs;
    block->inputs = CM_NEW_ARRAY(c->arena, cm_slot_id, block->n_inputs);
    for (size_t i = 0; i < block->n_inputs; i++)
        block->inputs[i] = define(c, block, graph->inputs[i]);
    block->steps = CM_NEW_ARRAY(c->arena, struct cm_step, graph->n_nodes);
    for (struct cm_node *node = graph->first; node; node = node->next) {
        cm_mark_set(&c->steps_of, node, (uint32_t)block->n_steps);
        CM_TRY(build_step(c, block, &block->steps[block->n_steps++], node));
    }
    block->n_outputs = graph->n_outputs;
    block->outputs = CM_NEW_ARRAY(c->arena, cm_slot_id, block->n_outputs);
    for (size_t o = 0; o < block->n_outputs; o++) {
        CM_TRY(slot_for(c, graph->outputs[o].value, &block->outputs[o]));
        note_use(c, block, NULL, block->outputs[o]);
        note_result(c, block, o);
    }
    list_last(c, block);
    block->built = true;
    return CM_OK;
}

static int compare_streams(const void *a, const void *b)
{
    const uint32_t left = (*(struct cm_step *const *)a)->node->stream;
    const uint32_t right = (*(struct cm_step *const *)b)->node->stream;
    return (left > right) - (left < right);
}

/* By stream: an order that no pass changes, so that saved states fit. */
static void sort_random(struct cm_session *session)
{
    if (session->random.count)
        qsort(session->random.items, session->random.count, sizeof *session->random.items,
              compare_streams);
    for (size_t i = 0; i < session->random.count; i++)
        session->random.items[i]->random = (uint32_t)i;
}

enum cm_status cm_compile(struct cm_session *session, struct cm_graph *graph, struct cm_error *err)
{
    CM_TRY(expand(session, graph, err));
    cm_graph_number_random(graph);
    cm_updates_move(session, graph);
    const size_t n_values = cm_module_value_count(graph->module);
    struct compiler c = {.session = session,
                         .arena = session->arena,
                         .steps_of = cm_marks_begin(graph->module),
                         .err = err};
    c.slot_of = CM_NEW_ARRAY(c.arena, cm_slot_id, n_values);
    c.last_user = CM_NEW_ARRAY(c.arena, struct cm_step *, n_values);
    c.captures = CM_NEW_ARRAY(c.arena, struct capture *, n_values);
    session->result_of = CM_NEW_ARRAY(c.arena, uint32_t, n_values);
    session->is_captured = CM_NEW_ARRAY(c.arena, bool, n_values);
    session->block_of = CM_NEW_ARRAY(c.arena, uint32_t, n_values);
    for (size_t i = 0; i < n_values; i++)
        c.slot_of[i] = CM_NO_SLOT;
    struct cm_block *main;
    CM_TRY(build_block(&c, graph, NULL, &main));
    list_all_last_of_parts(&c);
    cm_updates_find(session);
    session->constants = c.constants.items;
    session->blocks = c.blocks.items;
    session->n_blocks = c.blocks.count;
    sort_random(session);
    return CM_OK;
}
