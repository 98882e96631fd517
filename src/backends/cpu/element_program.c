/* From the body of a region to its program. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/element_program.h"

#include "backends/cpu/channel_blocks.h"
#include "tensor/half.h"

enum {
    TABLE = 4 * CM_ELEMENT_VALUES, /* places to find values by number */
    LEAST_BLOCK = 64,              /* elements below which a block is not worth its instructions */
    SHORT_RUN = 256,               /* elements below which a run is not .. */
    SHORT_SHARED_RUN = 8,          /* .. where something is computed once for all of it */
    WIDTHS = 4,                    /* of registers: 1, 2, 4 and 8 bytes an element */
};

struct builder {
    struct cm_call *call;
    const struct cm_graph *graph;
    struct cm_element_program *program;
    const struct cm_shape *shape; /* of all results */
    const struct cm_tensor *lead; /* an operand whose layout the results get; NULL: all is plain */
    struct cm_shape *seen;        /* as they lie there: the results, then each source; or NULL */
    cm_value numbers[TABLE];      /* open addressing: value numbers, 0 for none .. */
    int16_t places[TABLE];        /* .. and their places in values */
    struct cm_element_value values[CM_ELEMENT_VALUES];
    struct cm_element_source sources[CM_ELEMENT_VALUES];
    int last_read[CM_ELEMENT_VALUES]; /* by value: number of the node that reads it last; -1 */
    bool is_loaded[CM_ELEMENT_VALUES];
    int n_values, n_sources, n_operands;       /* operands of all nodes */
    size_t free_at[WIDTHS][CM_ELEMENT_VALUES]; /* registers that nobody needs, by width */
    int n_free[WIDTHS];
    size_t width; /* bytes per element of all registers */
};

/* ---- values ---- */

static int find(const struct builder *b, cm_value number, uint32_t *slot)
{
    uint32_t at = number * UINT32_C(2654435761) % TABLE;
    while (b->numbers[at] && b->numbers[at] != number)
        at = (at + 1) % TABLE;
    *slot = at;
    return b->numbers[at] ? b->places[at] : -1;
}

static int find_value(const struct builder *b, cm_value number)
{
    uint32_t slot;
    return find(b, number, &slot);
}

static const struct cm_type *type_of(const struct builder *b, cm_value number)
{
    return cm_value_get(b->graph->module, number)->fact.type;
}

/* Adds a value that is not there yet; false after declining. */
static bool add_value(struct builder *b, cm_value number, int source)
{
    uint32_t slot;
    const struct cm_type *type = type_of(b, number);
    if (b->n_values == CM_ELEMENT_VALUES)
        return cm_call_decline(b->call, "its body has more than %d values", CM_ELEMENT_VALUES);
    const enum cm_dtype dtype = type->kind == CM_KIND_TENSOR ? type->dtype : CM_UNDEFINED;
    const enum cm_dtype_class kind = cm_dtype_info(dtype)->kind;
    if (kind == CM_CLASS_NONE || kind == CM_CLASS_COMPLEX || cm_dtype_size(dtype) == 0)
        return cm_call_decline(b->call, "its body computes with %s", cm_dtype_name(dtype));
    (void)find(b, number, &slot);
    b->numbers[slot] = number;
    b->places[slot] = (int16_t)b->n_values;
    b->last_read[b->n_values] = -1;
    b->values[b->n_values++] = (struct cm_element_value){
        .type = dtype, .narrow = cm_dtype_is_narrow(dtype), .source = source, .output = -1};
    return true;
}

static bool add_source(struct builder *b, cm_value number, int operand,
                       const struct cm_tensor *constant)
{
    if (!add_value(b, number, b->n_sources))
        return false;
    b->sources[b->n_sources++] = (struct cm_element_source){
        .value = b->n_values - 1, .operand = operand, .constant = constant};
    return true;
}

/* What a node reads: values so far, or constants of the body. */
static bool add_operand(struct builder *b, cm_value number)
{
    const struct cm_tensor *constant = NULL;
    b->n_operands++;
    if (!number || find_value(b, number) >= 0)
        return true;
    if (cm_value_constant(b->graph->module, number, &constant, NULL) || !constant)
        return cm_call_decline(b->call, "its body reads a value from outside");
    return add_source(b, number, -1, constant);
}

static bool add_node(struct builder *b, const struct cm_node *node, int number)
{
    if (!node->op || !node->op->elementwise || node->n_bodies || !cm_node_is_current(node))
        return cm_call_decline(b->call, "%s is not elementwise", cm_node_describe(node).text);
    if (node->n_inputs > CM_ELEMENT_OPERANDS)
        return cm_call_decline(b->call, "%s has more than %d operands", cm_node_describe(node).text,
                               CM_ELEMENT_OPERANDS);
    for (int o = 1; o < node->n_outputs; o++)
        if (node->outputs[o])
            return cm_call_decline(b->call, "%s has several results", cm_node_describe(node).text);
    for (int i = 0; i < node->n_inputs; i++) {
        if (!add_operand(b, cm_node_input(node, i)))
            return false;
        if (cm_node_input(node, i))
            b->last_read[find_value(b, cm_node_input(node, i))] = number;
    }
    return add_value(b, cm_node_output(node, 0), -1);
}

static bool add_values(struct builder *b)
{
    int number = 0;
    for (size_t i = 0; i < b->graph->n_inputs; i++) {
        if (!b->call->in[i])
            return cm_call_decline(b->call, "operand %zu is absent", i);
        if (!add_source(b, b->graph->inputs[i], (int)i, NULL))
            return false;
    }
    for (const struct cm_node *node = b->graph->first; node; node = node->next)
        if (!add_node(b, node, number++))
            return false;
    for (size_t o = 0; o < b->graph->n_outputs; o++) {
        if (!b->call->out[o])
            continue;
        const int v = find_value(b, b->graph->outputs[o].value);
        if (v < 0 || b->values[v].source >= 0 || b->values[v].output >= 0)
            return cm_call_decline(b->call, "result %zu is not computed in the body for itself", o);
        b->values[v].output = (int)o;
    }
    return true;
}

/* ---- shapes ---- */

static const struct cm_tensor *tensor_of(const struct builder *b,
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

static bool check_shapes(struct builder *b)
{
    for (int o = 0; o < b->call->n_out; o++) {
        const struct cm_tensor *out = b->call->out[o];
        if (out && b->shape && !cm_shape_equal(&out->shape, b->shape))
            return cm_call_decline(b->call, "its results have different shapes");
        b->shape = out ? &out->shape : b->shape;
    }
    if (!b->shape)
        return cm_call_decline(b->call, "none of its results is wanted");
    for (int s = 0; s < b->n_sources; s++)
        if (b->last_read[b->sources[s].value] >= 0 &&
            !broadcasts(&tensor_of(b, &b->sources[s])->shape, b->shape))
            return cm_call_decline(b->call, "a value is larger than the results");
    return true;
}

/* ---- layouts ---- */

/* The operand whose layout the results get; NULL: none has one. */
static const struct cm_tensor *find_lead(const struct builder *b)
{
    for (int i = 0; i < b->call->n_in; i++)
        if (b->call->in[i]->layout && cm_shape_equal(&b->call->in[i]->shape, b->shape))
            return b->call->in[i];
    for (int i = 0; i < b->call->n_in; i++)
        if (b->call->in[i]->layout)
            return b->call->in[i];
    return NULL;
}

static bool check_source(struct builder *b, int s)
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
               cm_call_decline(b->call, "its operands lie in different layouts");
    if (whole && (x->type != lead->type || b->sources[s].constant))
        return cm_call_decline(b->call, "an operand cannot lie like another");
    return channel_blocks_see(&x->shape, b->shape, lead->layout, &b->seen[s + 1]) ||
           cm_call_decline(b->call, "an operand does not repeat by batch, channel or place");
}

/* Where operands have a layout, the results get it: all of them lie the same there, in blocks of
 * channels without padding, or all operands lie so and each element is at the same place in all. */
static bool check_layouts(struct builder *b)
{
    const struct cm_tensor *lead = b->lead = find_lead(b);
    b->seen = NULL;
    if (!lead)
        return true;
    if (!cm_shape_equal(&lead->shape, b->shape))
        return cm_call_decline(b->call, "its operands lie in different layouts");
    if (cm_tensor_bytes(lead) != lead->layout->bytes)
        return cm_call_decline(b->call, "the layout of its operands has padding");
    for (int o = 0; o < b->call->n_out; o++)
        if (b->call->out[o] && b->call->out[o]->type != lead->type)
            return cm_call_decline(b->call, "its results have other types than its operands");
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
static const struct cm_shape *seen_results(const struct builder *b)
{
    return b->seen ? &b->seen[0] : b->shape;
}

static const struct cm_shape *seen_source(const struct builder *b, int s)
{
    return b->seen ? &b->seen[s + 1] : &tensor_of(b, &b->sources[s])->shape;
}

static enum cm_element_level source_level(const struct cm_walk *walk, int s)
{
    if (walk->step[s])
        return CM_EACH_BLOCK;
    for (int axis = 0; axis < walk->rank; axis++)
        if (walk->strides[axis * walk->n_operands + s])
            return CM_EACH_RUN;
    return CM_ONCE;
}

/* Is there a node whose result is the same for all elements of a run? */
static bool computes_once_per_run(struct builder *b, const struct cm_walk *walk)
{
    enum cm_element_level levels[CM_ELEMENT_VALUES] = {CM_ONCE};
    for (int s = 0; s < b->n_sources; s++)
        levels[b->sources[s].value] = source_level(walk, s);
    for (const struct cm_node *node = b->graph->first; node; node = node->next) {
        enum cm_element_level level = CM_ONCE;
        for (int i = 0; i < node->n_inputs; i++) {
            const int v = cm_node_input(node, i) ? find_value(b, cm_node_input(node, i)) : -1;
            level = v >= 0 && levels[v] > level ? levels[v] : level;
        }
        if (level == CM_EACH_RUN)
            return true;
        levels[find_value(b, cm_node_output(node, 0))] = level;
    }
    return false;
}

/* One walk over all sources. Where its runs would be short, what is repeated in between is gathered
 * into blocks instead, and the rest is one long run. */
static void plan_walk(struct builder *b)
{
    const struct cm_shape *shapes[CM_ELEMENT_VALUES];
    struct cm_element_program *program = b->program;
    const struct cm_shape *results = seen_results(b);
    const int64_t count = cm_shape_elements(b->shape);

    for (int s = 0; s < b->n_sources; s++)
        shapes[s] = b->last_read[b->sources[s].value] >= 0 ? seen_source(b, s) : NULL;
    void *memory = cm_call_state(b->call, cm_walk_size(b->n_sources, results->rank));
    program->walk = cm_walk_plan(memory, results, b->n_sources, shapes);
    const int64_t run = program->walk->run;
    if (run >= SHORT_RUN || program->walk->rank == 0 ||
        (run >= SHORT_SHARED_RUN && computes_once_per_run(b, program->walk)))
        return;
    for (int s = 0; s < b->n_sources; s++) {
        if (!shapes[s] || is_single(shapes[s]) || cm_shape_elements(shapes[s]) == count)
            continue;
        void *own = cm_call_state(b->call, cm_walk_size(1, results->rank));
        program->sources[s].gather = cm_walk_plan(own, results, 1, &shapes[s]);
        shapes[s] = results;
    }
    program->walk = cm_walk_plan(memory, results, b->n_sources, shapes);
}

/* ---- registers ---- */

/* Narrow floats are computed as float. */
static int width_number(const struct cm_element_value *value)
{
    const size_t width = value->narrow ? sizeof(float) : cm_dtype_size(value->type);
    int number = 0;
    while ((size_t)1 << number < width)
        number++;
    return number;
}

static void take_register(struct builder *b, struct cm_element_value *value)
{
    const int number = width_number(value);
    if (value->level != CM_EACH_BLOCK) {
        value->place = CM_IN_SINGLES;
        value->at = b->program->n_singles++;
        return;
    }
    value->place = CM_IN_BLOCKS;
    if (b->n_free[number] > 0) {
        value->at = b->free_at[number][--b->n_free[number]];
        return;
    }
    value->at = b->width;
    b->width += (size_t)1 << number;
}

static void leave_register(struct builder *b, const struct cm_element_value *value)
{
    const int number = width_number(value);
    if (value->place == CM_IN_BLOCKS)
        b->free_at[number][b->n_free[number]++] = value->at;
}

/* ---- instructions ---- */

static struct cm_element_instruction *new_instruction(struct builder *b, int value)
{
    struct cm_element_instruction *new = &b->program->instructions[b->program->n_instructions++];
    *new = (struct cm_element_instruction){.value = value, .is_read = b->last_read[value] >= 0};
    return new;
}

/* Brings a source into a register before its first use, if it cannot be read where it is. */
static void load_source(struct builder *b, int v)
{
    struct cm_element_value *value = &b->program->values[v];
    if (value->source < 0 || b->is_loaded[v])
        return;
    b->is_loaded[v] = true;
    value->place = CM_AT_OPERAND;
    if (!b->program->sources[value->source].gather && !value->narrow)
        return;
    take_register(b, value);
    (void)new_instruction(b, v);
}

/* The operands of a node, as values; those read for the last time give up their registers. Returns
 * how often the node is computed. */
static enum cm_element_level take_operands(struct builder *b, const struct cm_node *node,
                                           int number, int *in, int64_t *step)
{
    struct cm_element_value *values = b->program->values;
    enum cm_element_level level = CM_ONCE;
    for (int i = 0; i < node->n_inputs; i++) {
        in[i] = cm_node_input(node, i) ? find_value(b, cm_node_input(node, i)) : -1;
        if (in[i] < 0)
            continue;
        load_source(b, in[i]);
        step[i] = values[in[i]].level == CM_EACH_BLOCK;
        level = values[in[i]].level > level ? values[in[i]].level : level;
    }
    for (int i = 0; i < node->n_inputs; i++) {
        if (in[i] < 0 || b->last_read[in[i]] != number)
            continue;
        leave_register(b, &values[in[i]]);
        b->last_read[in[i]] = -2; /* an operand may be there twice */
    }
    return level;
}

static bool add_instruction(struct builder *b, const struct cm_node *node, int number, int *in,
                            int64_t *step)
{
    const int v = find_value(b, cm_node_output(node, 0));
    struct cm_element_value *value = &b->program->values[v];
    enum cm_dtype types[CM_ELEMENT_OPERANDS] = {CM_UNDEFINED};
    struct cm_element_loop loop;

    value->level = take_operands(b, node, number, in, step);
    for (int i = 0; i < node->n_inputs; i++)
        types[i] = in[i] < 0 ? CM_UNDEFINED : b->program->values[in[i]].type;
    if (!node->op->elementwise(node, types, value->type, &loop))
        return cm_call_decline(b->call, "%s has no loop for its types",
                               cm_node_describe(node).text);
    if (value->output >= 0 && value->level != CM_EACH_BLOCK)
        return cm_call_decline(b->call, "result %d repeats its elements", value->output);
    if (value->output >= 0 && !value->narrow)
        value->place = CM_AT_OUTPUT;
    else
        take_register(b, value);
    struct cm_element_instruction *new = new_instruction(b, v);
    new->loop = loop;
    new->n_in = node->n_inputs;
    new->in = in;
    new->step = step;
    if (!new->is_read)
        leave_register(b, value);
    return true;
}

static bool add_instructions(struct builder *b)
{
    struct cm_element_program *program = b->program;
    const size_t n_operands = (size_t)b->n_operands;
    int *in = cm_call_state(b->call, n_operands * sizeof *in);
    int64_t *step = cm_call_state(b->call, n_operands * sizeof *step);
    int number = 0;

    for (int s = 0; s < b->n_sources; s++)
        program->values[b->sources[s].value].level = source_level(program->walk, s);
    for (const struct cm_node *node = b->graph->first; node; node = node->next, number++) {
        if (!add_instruction(b, node, number, in, step))
            return false;
        in += node->n_inputs;
        step += node->n_inputs;
    }
    const size_t fits = b->width ? CM_ELEMENT_BYTES / b->width : CM_ELEMENT_BLOCK;
    if (fits < LEAST_BLOCK)
        return cm_call_decline(b->call, "its body has too many values at a time");
    program->block =
        fits > CM_ELEMENT_BLOCK ? CM_ELEMENT_BLOCK : (int64_t)(fits / LEAST_BLOCK * LEAST_BLOCK);
    return true;
}

static void *copy(struct cm_call *call, const void *from, size_t size)
{
    void *to = cm_call_state(call, size);
    memcpy(to, from, size);
    return to;
}

struct cm_element_program *cm_element_program_build(struct cm_call *call)
{
    struct builder b;

    b.call = call;
    b.graph = call->node->bodies[0].graph;
    b.shape = NULL;
    b.n_values = b.n_sources = b.n_operands = 0;
    b.width = 0;
    memset(b.numbers, 0, sizeof b.numbers);
    memset(b.is_loaded, 0, sizeof b.is_loaded);
    memset(b.n_free, 0, sizeof b.n_free);
    if (!add_values(&b) || !check_shapes(&b) || !check_layouts(&b))
        return NULL;
    const size_t n_values = (size_t)b.n_values, n_sources = (size_t)b.n_sources;
    struct cm_element_program *program = cm_call_state(call, sizeof *program);
    b.program = program;
    program->n_values = b.n_values;
    program->n_sources = b.n_sources;
    program->layout = b.lead ? b.lead->layout : NULL;
    program->values = copy(call, b.values, n_values * sizeof b.values[0]);
    program->sources = copy(call, b.sources, n_sources * sizeof b.sources[0]);
    program->instructions = cm_call_state(call, n_values * sizeof program->instructions[0]);
    plan_walk(&b);
    if (!add_instructions(&b))
        return NULL;
    call->state = program;
    return program;
}

void cm_element_program_choose_layouts(const struct cm_element_program *program,
                                       struct cm_call *call)
{
    const struct cm_shape *results = NULL;
    for (int o = 0; o < call->n_out; o++)
        if (call->out[o]) {
            results = &call->out[o]->shape;
            cm_call_give_layout(call, o, program->layout);
        }
    for (int i = 0; i < call->n_in; i++)
        if (program->layout && cm_shape_equal(&call->in[i]->shape, results))
            cm_call_want_layout(call, i, program->layout);
}
