/* Every operator that says it is elementwise: the loop it names gives, on any block of elements,
 * what its own kernel gives. */
// SPDX-License-Identifier: Apache-2.0
#include "element_case.h"
#include "exec/random_graph.h"
#include "graph/graph_case.h"
#include "tensor/half.h"

enum { COUNT = 1101, CUT = 13, WIDEST = 16 }; /* elements, of the first block, bytes of one */

enum { ROUNDS = 4 }; /* of other elements and other single ones */

struct trial {
    const struct cm_op *op;
    const struct cm_schema *schema;
    const struct element_use *use;
    enum cm_dtype to; /* what attribute `to` is, for casts */
    size_t n_in;
    size_t absent;                     /* this operand is; 0: none */
    enum cm_dtype types[ELEMENT_MOST]; /* of operands */
    unsigned single;                   /* bit i: operand i is one element */
    uint64_t state;
    size_t *compared;
};

struct operands {
    struct cm_datum data[ELEMENT_MOST];
    const struct cm_datum *in[ELEMENT_MOST];
};

static enum cm_dtype block_type(enum cm_dtype type)
{
    return cm_dtype_is_narrow(type) ? CM_FLOAT : type;
}

static struct cm_node *make_node(struct cm_arena *arena, const struct trial *t)
{
    struct cm_graph *graph = graph_new(arena);
    struct cm_error err = {0};
    cm_value inputs[ELEMENT_MOST];
    struct cm_attribute_proto attributes[1];
    for (size_t i = 0; i < t->n_in; i++) {
        const struct cm_dim dim = CM_DIM(t->single >> i & 1 ? 1 : COUNT);
        inputs[i] = t->absent && i == t->absent
                        ? 0
                        : cm_graph_add_input(graph, CM_STR_NONE,
                                             cm_type_tensor(arena, t->types[i], 1, &dim));
    }
    if (t->use->attribute)
        attributes[0] =
            t->use->text
                ? cm_attr_str(arena, t->use->attribute, cm_str(t->use->text))
                : cm_attr_int(arena, t->use->attribute,
                              t->use->number == ELEMENT_ANY_TYPE ? (int64_t)t->to : t->use->number);
    struct cm_builder build = {.graph = graph, .err = &err};
    const cm_value y =
        cm_build(&build, &(struct cm_emission){.op = element_name(arena, t->op),
                                               .inputs = inputs,
                                               .n_inputs = t->n_in,
                                               .attributes = attributes,
                                               .n_attributes = t->use->attribute != NULL});
    CHECK_OK(build.status, &err);
    return cm_value_get(graph->module, y)->node;
}

static void make_operands(struct trial *t, struct operands *out)
{
    struct cm_error err = {0};
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < t->n_in; i++) {
        if (t->absent && i == t->absent)
            continue;
        struct cm_datum *datum = &out->data[i];
        CHECK_OK(cm_tensor_new(t->types[i], &CM_SHAPE(t->single >> i & 1 ? 1 : COUNT),
                               &datum->tensor, &err),
                 &err);
        datum->kind = CM_KIND_TENSOR;
        element_fill(&t->state, &datum->tensor);
        out->in[i] = datum;
    }
}

/* Operands as the loop sees them: narrow floats as float. */
static void *widened(struct cm_arena *arena, const struct cm_tensor *x)
{
    const size_t count = (size_t)cm_tensor_count(x);
    char *block = cm_arena_alloc(arena, count * WIDEST);
    if (cm_dtype_is_narrow(x->type))
        cm_narrow_load(x->type, x->data, 0, (int64_t)count, (float *)(void *)block);
    else
        memcpy(block, x->data, cm_tensor_bytes(x));
    return block;
}

/* Runs the loop on [begin, end); over >= 0: the result takes the place of that operand. */
static void run_block(const struct cm_element_loop *loop, const struct trial *t,
                      char *const *blocks, char *results, size_t width, int64_t begin, int64_t end)
{
    const void *in[ELEMENT_MOST];
    int64_t step[ELEMENT_MOST];
    for (size_t i = 0; i < t->n_in; i++) {
        step[i] = !(t->single >> i & 1);
        in[i] = blocks[i]
                    ? blocks[i] + (size_t)(begin * step[i]) * cm_dtype_size(block_type(t->types[i]))
                    : NULL;
    }
    const struct cm_elements elements = {.count = end - begin,
                                         .n_in = (int)t->n_in,
                                         .in = in,
                                         .step = step,
                                         .out = results + (size_t)begin * width};
    loop->run(loop, &elements);
}

static void compare(struct cm_arena *arena, const struct trial *t, const struct operands *operands,
                    const struct cm_element_loop *loop, const struct cm_tensor *expected, int over)
{
    const size_t width = cm_dtype_size(block_type(expected->type));
    struct cm_tensor found = *expected;
    char *blocks[ELEMENT_MOST], *results = cm_arena_alloc(arena, COUNT * WIDEST);
    const int64_t count = cm_tensor_count(expected);
    for (size_t i = 0; i < t->n_in; i++)
        blocks[i] = operands->in[i] ? widened(arena, &operands->in[i]->tensor) : NULL;
    if (over >= 0)
        results = blocks[over];
    run_block(loop, t, blocks, results, width, 0, count < CUT ? count : CUT);
    if (count > CUT)
        run_block(loop, t, blocks, results, width, CUT, count);
    found.data = cm_arena_alloc(arena, cm_tensor_bytes(expected));
    if (cm_dtype_is_narrow(expected->type))
        cm_narrow_store(expected->type, found.data, 0, count, (float *)(void *)results);
    else
        memcpy(found.data, results, cm_tensor_bytes(expected));
    if (!element_same(&found, expected))
        fail_msg("%s of %s to %s: the loop and the kernel differ (singles %x, over %d)",
                 t->op->name, cm_dtype_name(t->types[0]), cm_dtype_name(expected->type), t->single,
                 over);
    ++*t->compared;
}

/* One node: its kernel, then its loop, then its loop over each operand that it may overwrite. */
static void try_node(struct cm_arena *arena, struct trial *t)
{
    struct cm_node *node = make_node(arena, t);
    struct cm_element_loop loop;
    struct cm_error err = {0};
    struct operands operands;
    struct cm_datum out = {0};
    enum cm_dtype types[ELEMENT_MOST];
    bool common = true;
    const enum cm_dtype result = cm_value_get(node->module, node->outputs[0])->fact.type->dtype;

    for (size_t i = 0; i < t->n_in; i++) {
        types[i] = t->absent && i == t->absent ? CM_UNDEFINED : t->types[i];
        common = common && (!types[i] || element_is_common(types[i]));
    }
    if (!t->op->elementwise(node, types, result, &loop)) {
        if (common && element_is_common(result) && t->use->shapes != ELEMENT_NUMBERS)
            fail_msg("%s has no loop for %s to %s", t->op->name, cm_dtype_name(t->types[0]),
                     cm_dtype_name(result));
        return;
    }
    make_operands(t, &operands);
    CHECK_OK(cm_op_eval(node, operands.in, &out, &err), &err);
    compare(arena, t, &operands, &loop, &out.tensor, -1);
    for (size_t i = 0; i < t->n_in; i++)
        if (operands.in[i] && cm_tensor_count(&operands.data[i].tensor) == COUNT &&
            cm_dtype_size(block_type(t->types[i])) == cm_dtype_size(block_type(result)))
            compare(arena, t, &operands, &loop, &out.tensor, (int)i);
    for (size_t i = 0; i < t->n_in; i++)
        cm_datum_drop(&operands.data[i]);
    cm_datum_drop(&out);
}

static unsigned some_singles(struct trial *t)
{
    switch (t->use->shapes) {
    case ELEMENT_SCALARS:
    case ELEMENT_NUMBERS:
        return ~1U;
    case ELEMENT_EQUAL:
        return 0;
    case ELEMENT_FIRST:
        return (unsigned)random_below(&t->state, 2) << 1;
    default:
        return (unsigned)random_below(&t->state, 64);
    }
}

/* Operand counts that are tried: what the schema asks for, and some more. */
static void try_counts(struct cm_arena *arena, struct trial *t)
{
    const struct cm_schema *schema = t->schema;
    for (t->n_in = (size_t)schema->min_inputs; t->n_in <= ELEMENT_MOST; t->n_in++) {
        if ((int)t->n_in > schema->max_inputs)
            return;
        t->single = some_singles(t);
        try_node(arena, t);
        cm_arena_reset(arena);
        t->absent = t->n_in > 2 && element_param(schema, 1)->kind == CM_PARAM_OPTIONAL ? 1 : 0;
        if (t->absent)
            try_node(arena, t);
        cm_arena_reset(arena);
        t->absent = 0;
    }
}

/* The type of operand i, whose type variable is that of operand 0 (then it is a), the second one
 * (then b), or a third (then any). */
static enum cm_dtype type_of_operand(struct trial *t, size_t i, enum cm_dtype a, enum cm_dtype b)
{
    const uint64_t allowed = element_types(t->schema, i);
    if (element_param(t->schema, i)->type == element_param(t->schema, 0)->type)
        return a;
    while (!(allowed & CM_TYPE_BIT(b)) || cm_dtype_size(b) == 0)
        b = (enum cm_dtype)(1 + random_below(&t->state, CM_DTYPE_COUNT - 1));
    return b;
}

/* All types of operand 0; operands of another type variable have one of their own. */
static void try_types(struct cm_arena *arena, struct trial *t)
{
    const int first = element_param(t->schema, 0)->type;
    size_t other = 1;
    while (other < ELEMENT_MOST && element_param(t->schema, other)->type == first)
        other++;
    const uint64_t others = other < ELEMENT_MOST ? element_types(t->schema, other) : 2;
    for (int a = 1; a < CM_DTYPE_COUNT; a++) {
        if (!(element_types(t->schema, 0) & CM_TYPE_BIT(a)) || cm_dtype_size((enum cm_dtype)a) == 0)
            continue;
        for (int b = 1; b < CM_DTYPE_COUNT; b++) {
            if (!(others & CM_TYPE_BIT(b)) || cm_dtype_size((enum cm_dtype)b) == 0)
                continue;
            if (t->use->shapes == ELEMENT_NUMBERS && b == CM_FLOAT8E8M0)
                continue; /* such scales need an attribute */
            for (size_t i = 0; i < ELEMENT_MOST; i++)
                t->types[i] = type_of_operand(t, i, (enum cm_dtype)a, (enum cm_dtype)b);
            for (int round = 0; round < ROUNDS; round++)
                try_counts(arena, t);
        }
    }
}

static void sweep(struct cm_arena *arena)
{
    size_t compared = 0, operators = 0;
    for (size_t i = 0; i < cm_op_count; i++) {
        const struct cm_op *op = cm_op_list[i];
        size_t n_uses;
        if (!op->elementwise)
            continue;
        const struct element_use *uses = element_uses(op, &n_uses);
        struct trial t = {.op = op, .state = i + 1, .compared = &compared};
        t.schema = cm_schema_newest(cm_str(op->domain), cm_str(op->name));
        operators++;
        for (size_t u = 0; u < n_uses; u++) {
            t.use = &uses[u];
            const bool casts = uses[u].number == ELEMENT_ANY_TYPE;
            for (int to = 1; to < (casts ? (int)CM_DTYPE_COUNT : 2); to++) {
                t.to = (enum cm_dtype)to;
                if (!casts || element_is_common(t.to))
                    try_types(arena, &t);
            }
        }
    }
    print_message("%zu comparisons of %zu operators\n", compared, operators);
    CHECK(operators >= 68);
    CHECK(compared > 5000);
}

void test_elements__loops_give_what_kernels_give(void)
{
    check_in_arena(sweep);
}
