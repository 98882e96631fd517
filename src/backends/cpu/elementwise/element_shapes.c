/* How the operands of a region lie under its results: shapes, layouts, and the walk over all. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/elementwise/element_builder.h"

#include "backends/cpu/channel_blocks.h"

enum {
    SHORT_RUN = 256,      /* elements below which a run is not worth its instructions .. */
    SHORT_PERIOD = 2048,  /* .. where all that repeats does so with the run .. */
    SHORT_SHARED_RUN = 8, /* .. and where something is computed once for all of it */
};

static const struct cm_tensor *tensor_of(const struct cm_element_builder *b,
                                         const struct cm_element_source *source)
{
    return source->constant ? source->constant : b->call->in[source->operand];
}

static bool is_single(const struct cm_shape *shape)
{
    return cm_shape_elements(shape) == 1;
}

static bool broadcasts(const struct cm_shape *from, const struct cm_shape *to)
{
    const int lead = to->rank - from->rank;
    if (is_single(from))
        return true;
    for (int i = 0; lead >= 0 && i < from->rank; i++)
        if (from->dims[i] != 1 && from->dims[i] != to->dims[lead + i])
            return false;
    return lead >= 0;
}

bool cm_element_check_shapes(struct cm_element_builder *b)
{
    for (int o = 0; o < b->call->n_out; o++) {
        const struct cm_tensor *out = b->call->out[o];
        if (out && b->shape && !cm_shape_equal(&out->shape, b->shape))
            return cm_call_decline(b->call, "the results have different shapes");
        b->shape = out ? &out->shape : b->shape;
    }
    if (!b->shape)
        return cm_call_decline(b->call, "none of the results is wanted");
    for (int s = 0; s < b->n_sources; s++)
        if (b->last_read[b->sources[s].value] >= 0 &&
            !broadcasts(&tensor_of(b, &b->sources[s])->shape, b->shape))
            return cm_call_decline(b->call, "a value is larger than the results");
    return true;
}

/* ---- layouts ---- */

/* The operand whose layout the results get; NULL: none has one. */
static const struct cm_tensor *find_lead(const struct cm_element_builder *b)
{
    for (int i = 0; i < b->call->n_in; i++)
        if (b->call->in[i]->layout && cm_shape_equal(&b->call->in[i]->shape, b->shape))
            return b->call->in[i];
    for (int i = 0; i < b->call->n_in; i++)
        if (b->call->in[i]->layout)
            return b->call->in[i];
    return NULL;
}

static bool check_source(struct cm_element_builder *b, int s)
{
    const struct cm_tensor *x = tensor_of(b, &b->sources[s]), *lead = b->lead;
    const bool whole = cm_shape_equal(&x->shape, b->shape);
    if (is_single(&x->shape) && (!x->layout || b->seen)) {
        if (b->seen)
            b->seen[s + 1] = (struct cm_shape){.rank = 0};
        return true;
    }
    if (!b->seen)
        return (whole && cm_layout_equal(x->layout, lead->layout)) ||
               cm_call_decline(b->call, "the operands have different layouts");
    if (whole && (x->type != lead->type || b->sources[s].constant))
        return cm_call_decline(b->call, "an operand cannot take the layout of another operand");
    return channel_blocks_see(&x->shape, b->shape, lead->layout, &b->seen[s + 1]) ||
           cm_call_decline(b->call, "an operand does not repeat by batch, channel or place");
}

/* Where operands have a layout, the results get it: all of them lie the same there, in blocks of
 * channels without padding, or all operands lie so and each element is at the same place in all. */
bool cm_element_check_layouts(struct cm_element_builder *b)
{
    const struct cm_tensor *lead = b->lead = find_lead(b);
    b->seen = NULL;
    if (!lead)
        return true;
    if (!cm_shape_equal(&lead->shape, b->shape))
        return cm_call_decline(b->call, "the operands have different layouts");
    if (cm_tensor_bytes(lead) != lead->layout->bytes)
        return cm_call_decline(b->call, "the layout of the operands has padding");
    for (int o = 0; o < b->call->n_out; o++)
        if (b->call->out[o] && b->call->out[o]->type != lead->type)
            return cm_call_decline(b->call, "the results have other types than the operands");
    if (lead->layout->channel_block > 0) {
        b->seen = cm_call_state(b->call, ((size_t)b->n_sources + 1) * sizeof *b->seen);
        (void)channel_blocks_see(b->shape, b->shape, lead->layout, &b->seen[0]);
    }
    for (int s = 0; s < b->n_sources; s++)
        if (!check_source(b, s))
            return false;
    return true;
}

/* How the walk sees the results, and source s. */
static const struct cm_shape *seen_results(const struct cm_element_builder *b)
{
    return b->seen ? &b->seen[0] : b->shape;
}

static const struct cm_shape *seen_source(const struct cm_element_builder *b, int s)
{
    return b->seen ? &b->seen[s + 1] : &tensor_of(b, &b->sources[s])->shape;
}

enum cm_element_level cm_element_source_level(const struct cm_walk *walk, int s)
{
    if (walk->step[s])
        return CM_EACH_BLOCK;
    for (int axis = 0; axis < walk->rank; axis++)
        if (walk->strides[axis * walk->n_operands + s])
            return CM_EACH_RUN;
    return CM_ONCE;
}

/* Is there a node whose result is the same for all elements of a run? */
static bool computes_once_per_run(struct cm_element_builder *b, const struct cm_walk *walk)
{
    enum cm_element_level levels[CM_ELEMENT_VALUES] = {CM_ONCE};
    for (int s = 0; s < b->n_sources; s++)
        levels[b->sources[s].value] = cm_element_source_level(walk, s);
    for (const struct cm_node *node = b->graph->first; node; node = node->next) {
        enum cm_element_level level = CM_ONCE;
        for (int i = 0; i < node->n_inputs; i++) {
            const int v =
                cm_node_input(node, i) ? cm_element_find_value(b, cm_node_input(node, i)) : -1;
            level = v >= 0 && levels[v] > level ? levels[v] : level;
        }
        if (level == CM_EACH_RUN)
            return true;
        levels[cm_element_find_value(b, cm_node_output(node, 0))] = level;
    }
    return false;
}

/* Of a source that repeats: its elements, if they follow each other along the last axes and repeat
 * along all others; else 0. */
static int64_t period_of(const struct cm_element_builder *b, int s, const struct cm_shape *shape)
{
    const struct cm_shape *results = seen_results(b);
    const struct cm_element_value *value = &b->values[b->sources[s].value];
    const int64_t period = cm_shape_elements(shape);
    int64_t last = 1;
    for (int i = 1; i <= shape->rank && last < period; i++) {
        if (shape->dims[shape->rank - i] != results->dims[results->rank - i])
            return 0;
        last *= results->dims[results->rank - i];
    }
    return last == period && period < SHORT_PERIOD && !value->narrow ? period : 0;
}

/* Does the source repeat, in more than one element? */
static bool is_repeated(const struct cm_element_builder *b, const struct cm_shape *shape)
{
    return shape && !is_single(shape) && cm_shape_elements(shape) != cm_shape_elements(b->shape);
}

/* Sets the periods of all sources that repeat; false, and none is set: one has none, or there is no
 * room. */
static bool find_periods(struct cm_element_builder *b, const struct cm_shape *const *shapes)
{
    size_t bytes = 0;
    for (int s = 0; s < b->n_sources; s++) {
        if (!is_repeated(b, shapes[s]))
            continue;
        const int64_t period = period_of(b, s, shapes[s]);
        if (!period)
            return false;
        bytes += cm_period_bytes(period, b->values[b->sources[s].value].type);
    }
    if (bytes > CM_PERIOD_BYTES)
        return false;
    for (int s = 0; s < b->n_sources; s++)
        if (is_repeated(b, shapes[s]))
            b->program->sources[s].period = period_of(b, s, shapes[s]);
    return true;
}

/* One walk over all sources. Where its runs would be short, what is repeated in between is kept as
 * often as a block needs it, or gathered into blocks, and the rest is one long run. */
void cm_element_plan_walk(struct cm_element_builder *b)
{
    const struct cm_shape *shapes[CM_ELEMENT_VALUES];
    struct cm_element_program *program = b->program;
    const struct cm_shape *results = seen_results(b);

    for (int s = 0; s < b->n_sources; s++)
        shapes[s] = b->last_read[b->sources[s].value] >= 0 ? seen_source(b, s) : NULL;
    void *memory = cm_call_state(b->call, cm_walk_size(b->n_sources, results->rank));
    program->walk = cm_walk_plan(memory, results, b->n_sources, shapes);
    const int64_t run = program->walk->run;
    if (run >= SHORT_PERIOD || program->walk->rank == 0 ||
        (run >= SHORT_SHARED_RUN && computes_once_per_run(b, program->walk)))
        return;
    const bool periodic = find_periods(b, shapes);
    if (run >= SHORT_RUN && !periodic)
        return;
    for (int s = 0; s < b->n_sources; s++) {
        if (!is_repeated(b, shapes[s]))
            continue;
        if (!periodic) {
            void *own = cm_call_state(b->call, cm_walk_size(1, results->rank));
            program->sources[s].gather = cm_walk_plan(own, results, 1, &shapes[s]);
        }
        shapes[s] = results;
    }
    program->walk = cm_walk_plan(memory, results, b->n_sources, shapes);
}
