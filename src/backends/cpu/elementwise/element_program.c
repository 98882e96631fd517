/* From the body of a region to its program. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/elementwise/element_builder.h"

#include "tensor/half.h"

enum { LEAST_BLOCK = 64 }; /* elements below which a block is not worth its instructions */

/* ---- values ---- */

static int find(const struct cm_element_builder *b, cm_value number, uint32_t *slot)
{
    uint32_t at = number * UINT32_C(2654435761) % CM_ELEMENT_TABLE;
    while (b->numbers[at] && b->numbers[at] != number)
        at = (at + 1) % CM_ELEMENT_TABLE;
    *slot = at;
    return b->numbers[at] ? b->places[at] : -1;
}

int cm_element_find_value(const struct cm_element_builder *b, cm_value number)
{
    uint32_t slot;
    return find(b, number, &slot);
}

static const struct cm_type *type_of(const struct cm_element_builder *b, cm_value number)
{
    return cm_value_get(b->graph->module, number)->fact.type;
}

/* Adds a value that is not there yet; false after declining. */
static bool add_value(struct cm_element_builder *b, cm_value number, int source)
{
    uint32_t slot;
    const struct cm_type *type = type_of(b, number);
    if (b->n_values == CM_ELEMENT_VALUES)
        return cm_call_decline(b->call, "the body has more than %d values", CM_ELEMENT_VALUES);
    const enum cm_dtype dtype = type->kind == CM_KIND_TENSOR ? type->dtype : CM_UNDEFINED;
    const enum cm_dtype_class kind = cm_dtype_info(dtype)->kind;
    if (kind == CM_CLASS_NONE || kind == CM_CLASS_COMPLEX || cm_dtype_size(dtype) == 0)
        return cm_call_decline(b->call, "the body computes with %s", cm_dtype_name(dtype));
    (void)find(b, number, &slot);
    b->numbers[slot] = number;
    b->places[slot] = (int16_t)b->n_values;
    b->last_read[b->n_values] = -1;
    b->values[b->n_values++] = (struct cm_element_value){
        .type = dtype, .narrow = cm_dtype_is_narrow(dtype), .source = source, .output = -1};
    return true;
}

static bool add_source(struct cm_element_builder *b, cm_value number, int operand,
                       const struct cm_tensor *constant)
{
    if (!add_value(b, number, b->n_sources))
        return false;
    b->sources[b->n_sources++] = (struct cm_element_source){
        .value = b->n_values - 1, .operand = operand, .constant = constant};
    return true;
}

/* What a node reads: values so far, or constants of the body. */
static bool add_operand(struct cm_element_builder *b, cm_value number)
{
    const struct cm_tensor *constant = NULL;
    b->n_operands++;
    if (!number || cm_element_find_value(b, number) >= 0)
        return true;
    if (cm_value_constant(b->graph->module, number, &constant, NULL) || !constant)
        return cm_call_decline(b->call, "the body reads a value from outside");
    return add_source(b, number, -1, constant);
}

static bool add_node(struct cm_element_builder *b, const struct cm_node *node, int number)
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
            b->last_read[cm_element_find_value(b, cm_node_input(node, i))] = number;
    }
    return add_value(b, cm_node_output(node, 0), -1);
}

static bool add_values(struct cm_element_builder *b)
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
        const int v = cm_element_find_value(b, b->graph->outputs[o].value);
        if (v < 0 || b->values[v].source >= 0 || b->values[v].output >= 0)
            return cm_call_decline(b->call, "result %zu is not computed in the body for itself", o);
        b->values[v].output = (int)o;
    }
    return true;
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

static void take_register(struct cm_element_builder *b, struct cm_element_value *value)
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

static void leave_register(struct cm_element_builder *b, const struct cm_element_value *value)
{
    const int number = width_number(value);
    if (value->place == CM_IN_BLOCKS)
        b->free_at[number][b->n_free[number]++] = value->at;
}

/* ---- instructions ---- */

static struct cm_element_instruction *new_instruction(struct cm_element_builder *b, int value)
{
    struct cm_element_instruction *new = &b->program->instructions[b->program->n_instructions++];
    *new = (struct cm_element_instruction){.value = value, .is_read = b->last_read[value] >= 0};
    return new;
}

/* Brings a source into a register before its first use, if it cannot be read where it is. */
static void load_source(struct cm_element_builder *b, int v)
{
    struct cm_element_value *value = &b->program->values[v];
    if (value->source < 0 || b->is_loaded[v])
        return;
    b->is_loaded[v] = true;
    const struct cm_element_source *source = &b->program->sources[value->source];
    value->place = CM_AT_OPERAND;
    if (source->period) {
        value->place = CM_IN_PERIODS;
        value->at = b->period_bytes;
        b->period_bytes += cm_period_bytes(source->period, value->type);
    }
    if (source->period || (!source->gather && !value->narrow))
        return;
    take_register(b, value);
    (void)new_instruction(b, v);
}

/* The operands of a node, as values; those read for the last time give up their registers. Returns
 * how often the node is computed. */
static enum cm_element_level take_operands(struct cm_element_builder *b, const struct cm_node *node,
                                           int number, int *in, int64_t *step)
{
    struct cm_element_value *values = b->program->values;
    enum cm_element_level level = CM_ONCE;
    for (int i = 0; i < node->n_inputs; i++) {
        in[i] = cm_node_input(node, i) ? cm_element_find_value(b, cm_node_input(node, i)) : -1;
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

static bool add_instruction(struct cm_element_builder *b, const struct cm_node *node, int number,
                            int *in, int64_t *step)
{
    const int v = cm_element_find_value(b, cm_node_output(node, 0));
    struct cm_element_value *value = &b->program->values[v];
    enum cm_dtype types[CM_ELEMENT_OPERANDS] = {CM_UNDEFINED};
    struct cm_element_loop loop;

    value->level = take_operands(b, node, number, in, step);
    for (int i = 0; i < node->n_inputs; i++)
        types[i] = in[i] < 0 ? CM_UNDEFINED : b->program->values[in[i]].type;
    if (!node->op->elementwise(node, types, value->type, &loop))
        return cm_call_decline(b->call, "%s has no loop for the types",
                               cm_node_describe(node).text);
    if (value->output >= 0 && value->level != CM_EACH_BLOCK)
        return cm_call_decline(b->call, "result %d repeats the elements", value->output);
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

static bool add_instructions(struct cm_element_builder *b)
{
    struct cm_element_program *program = b->program;
    const size_t n_operands = (size_t)b->n_operands;
    int *in = cm_call_state(b->call, n_operands * sizeof *in);
    int64_t *step = cm_call_state(b->call, n_operands * sizeof *step);
    int number = 0;

    for (int s = 0; s < b->n_sources; s++)
        program->values[b->sources[s].value].level = cm_element_source_level(program->walk, s);
    for (const struct cm_node *node = b->graph->first; node; node = node->next, number++) {
        if (!add_instruction(b, node, number, in, step))
            return false;
        in += node->n_inputs;
        step += node->n_inputs;
    }
    const size_t fits = b->width ? CM_ELEMENT_BYTES / b->width : CM_ELEMENT_BLOCK;
    if (fits < LEAST_BLOCK)
        return cm_call_decline(b->call, "the body has too many values at a time");
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
    struct cm_element_builder b;

    b.call = call;
    b.graph = call->node->bodies[0].graph;
    b.shape = NULL;
    b.n_values = b.n_sources = b.n_operands = 0;
    b.width = b.period_bytes = 0;
    memset(b.numbers, 0, sizeof b.numbers);
    memset(b.is_loaded, 0, sizeof b.is_loaded);
    memset(b.n_free, 0, sizeof b.n_free);
    if (!add_values(&b) || !cm_element_check_shapes(&b) || !cm_element_check_layouts(&b))
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
    cm_element_plan_walk(&b);
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
