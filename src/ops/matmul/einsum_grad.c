/* The gradient of Einsum is an Einsum: the other operands times the incoming gradient, summed down
 * to the operand's labels.
 *
 * What the plain form cannot say is said by more operands: a label that only this operand has (it
 * was summed away) brings a vector of ones, and a label it has twice (a diagonal) brings an
 * identity matrix between its two places. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/einsum.h"

#include "base/number.h"

struct backward {
    struct cm_grad *g;
    const struct cm_einsum_term *terms; /* of the forward node; the last is the result */
    size_t n_operands;
    char letter[CM_EINSUM_LABELS]; /* what each label is written as; 0: not used */
    int next_letter;               /* the first that may still be free */
    char *equation;
    size_t size;
    cm_value *inputs; /* of the node to emit */
    size_t n_inputs;
};

static char letter_number(int i)
{
    return (char)(i < 26 ? 'a' + i : 'A' + (i - 26));
}

static char new_letter(struct backward *b)
{
    if (b->next_letter == CM_EINSUM_LETTERS) {
        cm_builder_fail(&b->g->build, CM_UNSUPPORTED,
                        "the gradient needs more than %d different axes", CM_EINSUM_LETTERS);
        return 'a';
    }
    return letter_number(b->next_letter++);
}

static void write_letter(struct backward *b, char c)
{
    b->equation[b->size++] = c;
}

/* Begins another operand; its letters follow. */
static void begin_operand(struct backward *b, cm_value value)
{
    if (b->n_inputs)
        write_letter(b, ',');
    b->inputs[b->n_inputs++] = value;
}

static void add_operand(struct backward *b, cm_value value, const struct cm_einsum_term *term)
{
    begin_operand(b, value);
    for (int i = 0; i < term->rank; i++)
        write_letter(b, b->letter[term->labels[i]]);
}

/* The length of axis i of x, as a tensor of one number. */
static cm_value axis_length(struct cm_grad *g, cm_value x, int axis)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    const struct cm_type *type = cm_builder_type(&g->build, x);
    if (type && cm_dim_known(type->dims[axis]))
        return cm_emit_int64s(g, type->dims[axis].value);
    return cm_emit_with(
        g, "Shape",
        CM_ATTRIBUTES(cm_attr_int(arena, "start", axis), cm_attr_int(arena, "end", axis + 1)), x);
}

static void add_ones(struct backward *b, cm_value x, int axis, char letter)
{
    struct cm_grad *g = b->g;
    begin_operand(b, cm_emit(g, "Expand", cm_emit_scalar_like(g, x, 1.0), axis_length(g, x, axis)));
    write_letter(b, letter);
}

static void add_identity(struct backward *b, cm_value x, int axis, char first, char second)
{
    struct cm_grad *g = b->g;
    struct cm_arena *arena = cm_builder_arena(&g->build);
    const cm_value n = axis_length(g, x, axis);
    const cm_value sides =
        cm_emit_with(g, "Concat", CM_ATTRIBUTES(cm_attr_int(arena, "axis", 0)), n, n);
    const cm_value square = cm_emit(g, "Expand", cm_emit_scalar_like(g, x, 0.0), sides);
    begin_operand(b, cm_emit(g, "EyeLike", square));
    write_letter(b, first);
    write_letter(b, second);
}

/* Is the label in the result or in an operand other than i? */
static bool elsewhere(const struct backward *b, size_t i, int label)
{
    for (size_t t = 0; t <= b->n_operands; t++)
        for (int d = 0; t != i && d < b->terms[t].rank; d++)
            if (b->terms[t].labels[d] == label)
                return true;
    return false;
}

/* Was axis d of operand i, of length 1, repeated along its label? */
static bool was_repeated(const struct backward *b, size_t i, int d)
{
    const struct cm_builder *build = &b->g->build;
    if (cm_builder_type(build, cm_grad_input(b->g, (int)i))->dims[d].value != 1)
        return false;
    for (size_t t = 0; t < b->n_operands; t++) {
        const struct cm_type *type = cm_builder_type(build, cm_grad_input(b->g, (int)t));
        for (int e = 0; e < b->terms[t].rank; e++)
            if (b->terms[t].labels[e] == b->terms[i].labels[d] && type->dims[e].value != 1)
                return true;
    }
    return false;
}

/* Writes what operand i's gradient looks like into wanted; axes to put back afterwards go to
 * repeated. */
static int describe_result(struct backward *b, size_t i, char *wanted, int64_t *repeated,
                           size_t *n_repeated)
{
    const cm_value x = cm_grad_input(b->g, (int)i);
    const struct cm_einsum_term *term = &b->terms[i];
    bool seen[CM_EINSUM_LABELS] = {false};
    int n = 0;
    for (int d = 0; d < term->rank; d++) {
        const int label = term->labels[d];
        char letter = b->letter[label];
        if (was_repeated(b, i, d)) {
            repeated[(*n_repeated)++] = d;
            continue;
        }
        if (seen[label]) {
            letter = new_letter(b);
            add_identity(b, x, d, b->letter[label], letter);
        } else if (!elsewhere(b, i, label)) {
            add_ones(b, x, d, letter);
        }
        seen[label] = true;
        wanted[n++] = letter;
    }
    return n;
}

static enum cm_status operand_gradient(struct backward *b, size_t i)
{
    struct cm_grad *g = b->g;
    struct cm_arena *arena = cm_builder_arena(&g->build);
    char wanted[CM_MAX_RANK];
    int64_t repeated[CM_MAX_RANK];
    size_t n_repeated = 0;
    const int letters_before = b->next_letter;
    b->size = b->n_inputs = 0;
    for (size_t t = 0; t < b->n_operands; t++)
        if (t != i)
            add_operand(b, cm_grad_input(g, (int)t), &b->terms[t]);
    add_operand(b, cm_grad_incoming(g, 0), &b->terms[b->n_operands]);
    const int n = describe_result(b, i, wanted, repeated, &n_repeated);
    write_letter(b, '-');
    write_letter(b, '>');
    for (int d = 0; d < n; d++)
        write_letter(b, wanted[d]);
    b->next_letter = letters_before;

    const struct cm_attribute_proto equation =
        cm_attr_str(arena, "equation", (struct cm_str){b->equation, b->size});
    cm_value dx = cm_build(&g->build, &(struct cm_emission){.op = "Einsum",
                                                            .inputs = b->inputs,
                                                            .n_inputs = b->n_inputs,
                                                            .attributes = &equation,
                                                            .n_attributes = 1});
    if (n_repeated)
        dx = cm_emit(g, "Unsqueeze", dx, cm_build_int64s(&g->build, n_repeated, repeated));
    return cm_grad_set(g, (int)i, dx);
}

/* Every label gets a letter of its own, the axes of dots too: the emitted equations have no dots.
 */
static void assign_letters(struct backward *b)
{
    for (size_t t = 0; t <= b->n_operands; t++)
        for (int d = 0; d < b->terms[t].rank; d++)
            if (!b->letter[b->terms[t].labels[d]])
                b->letter[b->terms[t].labels[d]] = new_letter(b);
}

enum cm_status cm_einsum_grad(struct cm_grad *g)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    const size_t n = (size_t)g->node->n_inputs;
    struct cm_einsum_term *terms = CM_NEW_ARRAY(arena, struct cm_einsum_term, n + 1);
    int *ranks = CM_NEW_ARRAY(arena, int, n);
    size_t length = 2;
    bool vague;
    for (size_t i = 0; i < n; i++) {
        ranks[i] = cm_builder_type(&g->build, cm_grad_input(g, (int)i))->rank;
        if (ranks[i] == CM_RANK_UNKNOWN)
            return cm_builder_fail(&g->build, CM_UNSUPPORTED,
                                   "the gradient needs to know the rank of input %zu", i);
    }
    CM_TRY(
        cm_einsum_parse(cm_node_str(g->node, "equation"), n, ranks, terms, &vague, g->build.err));
    for (size_t i = 0; i <= n; i++)
        length += (size_t)terms[i].rank + 1;
    struct backward b = {.g = g, .terms = terms, .n_operands = n};
    /* An operand's own axes may add up to three characters and one input each. */
    b.equation = CM_NEW_ARRAY(arena, char, length + 4 * CM_MAX_RANK);
    b.inputs = CM_NEW_ARRAY(arena, cm_value, n + 1 + CM_MAX_RANK);
    assign_letters(&b);
    for (size_t i = 0; i < n; i++)
        if (cm_grad_wants(g, (int)i))
            CM_TRY(operand_gradient(&b, i));
    return g->build.status;
}
