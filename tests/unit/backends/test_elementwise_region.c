/* The kernel that computes an elementwise region as one step, against the plain interpreter on the
 * region's body: the same bits. */
// SPDX-License-Identifier: Apache-2.0
#include "exec/exec_case.h"
#include "exec/random_graph.h"
#include "ops/element_case.h"

enum { MOST = 24 /* values of a body and operands of a region */, RESULTS = 3 };

/* A body, its operands, and what it gives. */
struct trial {
    struct cm_arena *arena;
    uint64_t state;
    struct cm_graph *main, *body;
    struct cm_builder build; /* in the body */
    struct cm_error err;
    struct cm_shape shape; /* of the results */
    cm_value values[MOST];
    size_t n_values, n_operands;
    struct cm_datum operands[MOST];
    cm_value results[RESULTS];
    size_t n_results;
    struct cm_datum expected[RESULTS];
};

static size_t below(struct trial *t, size_t n)
{
    return (size_t)random_below(&t->state, n);
}

static void begin(struct trial *t, struct cm_arena *arena, uint64_t seed)
{
    memset(t, 0, sizeof *t);
    t->arena = arena;
    t->state = seed * 2 + 1;
    t->main = graph_new(arena);
    t->body = cm_graph_new(t->main->module, NULL, CM_STR("group"));
    t->build = (struct cm_builder){.graph = t->body, .err = &t->err};
}

static const struct cm_type *type_of(const struct trial *t, cm_value value)
{
    return cm_value_get(t->main->module, value)->fact.type;
}

static struct cm_tensor some_tensor(struct trial *t, enum cm_dtype type,
                                    const struct cm_shape *shape)
{
    struct cm_tensor tensor;
    CHECK_OK(cm_tensor_new(type, shape, &tensor, &t->err), &t->err);
    element_fill(&t->state, &tensor);
    return tensor;
}

static void add_operand(struct trial *t, enum cm_dtype type, const struct cm_shape *shape)
{
    struct cm_dim dims[CM_MAX_RANK];
    for (int i = 0; i < shape->rank; i++)
        dims[i] = CM_DIM(shape->dims[i]);
    t->operands[t->n_operands++] =
        (struct cm_datum){.kind = CM_KIND_TENSOR, .tensor = some_tensor(t, type, shape)};
    t->values[t->n_values++] =
        cm_graph_add_input(t->body, CM_STR_NONE, cm_type_tensor(t->arena, type, shape->rank, dims));
}

static void add_constant(struct trial *t, enum cm_dtype type, const struct cm_shape *shape)
{
    struct cm_tensor tensor = some_tensor(t, type, shape);
    t->values[t->n_values++] = cm_build_tensor(&t->build, &tensor);
    cm_tensor_drop(&tensor);
}

/* ---- running ---- */

/* Around the region stand nodes that copy, so that it may overwrite its operands; mask is always
 * true. */
static cm_value copied(struct trial *t, struct cm_builder *build, cm_value mask, cm_value x)
{
    (void)t;
    return cm_build(build, &(struct cm_emission){.op = "Where", CM_INPUTS(mask, x, x)});
}

static void wrap(struct trial *t)
{
    struct cm_builder build = {.graph = t->main, .err = &t->err};
    const cm_value mask =
        cm_graph_add_input(t->main, CM_STR_NONE, cm_type_tensor(t->arena, CM_BOOL, 0, NULL));
    cm_value operands[MOST], results[RESULTS];
    for (size_t i = 0; i < t->n_operands; i++)
        operands[i] =
            copied(t, &build, mask,
                   cm_graph_add_input(t->main, CM_STR_NONE, type_of(t, t->body->inputs[i])));
    results[0] = cm_build(&build, &(struct cm_emission){.op = "ai.cameo::ElementwiseRegion",
                                                        .inputs = operands,
                                                        .n_inputs = t->n_operands,
                                                        .body_graphs = &t->body,
                                                        .body_names = (const char *const[]){"body"},
                                                        .n_bodies = 1,
                                                        .n_outputs = t->n_results,
                                                        .outputs = results});
    for (size_t o = 0; o < t->n_results; o++)
        results[o] = copied(t, &build, mask, results[o]);
    CHECK_OK(build.status, &t->err);
    cm_graph_set_outputs(t->main, results, t->n_results);
}

struct seen {
    size_t regions, others;
    char declined[400];
};

static void count_steps(void *arg, const struct cm_step_report *report)
{
    struct seen *seen = arg;
    const bool is_region =
        strcmp(report->kernel, "cpu") == 0 && cm_str_is(report->node->op_type, "ElementwiseRegion");
    *(is_region ? &seen->regions : &seen->others) += 1;
    if (*report->declined)
        snprintf(seen->declined, sizeof seen->declined, "%s", report->declined);
}

static void expect(struct trial *t)
{
    const struct cm_datum *in[MOST];
    CHECK_OK(t->build.status, &t->err);
    for (size_t i = 0; i < t->n_operands; i++)
        in[i] = &t->operands[i];
    cm_graph_set_outputs(t->body, t->results, t->n_results);
    CHECK_OK(cm_graph_eval(t->body, in, t->n_operands, t->expected, NULL, &t->err), &t->err);
}

/* The region as one step and as its body's steps, on one thread and on several; says what was seen
 * of the first. */
static struct seen compare(struct trial *t, struct cm_session *session)
{
    const struct cm_datum *in[MOST + 1] = {graph_bool(t->arena, true)};
    struct seen first = {0};
    for (size_t i = 0; i < t->n_operands; i++)
        in[i + 1] = &t->operands[i];
    for (int apart = 0; apart < 2; apart++) {
        struct seen seen = {0};
        struct cm_datum out[RESULTS] = {0};
        const struct cm_run_options options = {
            .step = count_steps, .step_arg = &seen, .apart = apart};
        CHECK_OK(
            cm_session_run(session, in, t->n_operands + 1, out, t->n_results, &options, &t->err),
            &t->err);
        for (size_t o = 0; o < t->n_results; o++) {
            if (!element_same(&out[o].tensor, &t->expected[o].tensor))
                fail_msg("result %zu of the region differs from its body's (apart %d)", o, apart);
            cm_datum_drop(&out[o]);
        }
        first = apart ? first : seen;
    }
    return first;
}

static struct seen check(struct trial *t)
{
    const struct cm_session_options options = {.backend = "cpu", .threads = below(t, 2) ? 1 : 3};
    expect(t);
    wrap(t);
    const struct seen seen = compare(t, exec_open(t->arena, t->main, &options));
    for (size_t i = 0; i < t->n_operands; i++)
        cm_datum_drop(&t->operands[i]);
    for (size_t o = 0; o < t->n_results; o++)
        cm_datum_drop(&t->expected[o]);
    return seen;
}

static void check_taken(struct trial *t)
{
    const struct seen seen = check(t);
    if (seen.regions != 1)
        fail_msg("the kernel declined: %s", seen.declined);
}

/* ---- random bodies ---- */

static enum cm_dtype some_type(struct trial *t, uint64_t allowed)
{
    for (;;) {
        const enum cm_dtype type = (enum cm_dtype)below(t, CM_DTYPE_COUNT);
        if (element_is_common(type) && allowed & CM_TYPE_BIT(type))
            return type;
    }
}

static struct cm_shape some_shape(struct trial *t)
{
    static const int64_t dims[] = {1, 2, 3, 4, 7, 16, 63, 64, 65, 130, 1100, 2100};
    struct cm_shape shape = {.rank = (int)below(t, 5)};
    int64_t count = 1;
    for (int i = 0; i < shape.rank; i++) {
        shape.dims[i] = below(t, 40) ? dims[below(t, CM_COUNT(dims))] : 0;
        if (count * shape.dims[i] > 40000)
            shape.dims[i] = 1;
        count *= shape.dims[i] ? shape.dims[i] : 1;
    }
    return shape;
}

/* One that broadcasts to the shape of the results. */
static struct cm_shape some_part(struct trial *t)
{
    const struct cm_shape *whole = &t->shape;
    struct cm_shape shape = {.rank = whole->rank};
    if (below(t, 3) == 0)
        return *whole;
    if (below(t, 3) == 0)
        return CM_SCALAR;
    shape.rank = (int)below(t, (size_t)whole->rank + 1);
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = below(t, 2) ? whole->dims[whole->rank - shape.rank + i] : 1;
    return shape;
}

static bool same_dims(const struct cm_type *a, const struct cm_type *b)
{
    struct cm_shape x, y;
    return cm_type_shape(a, &x) && cm_type_shape(b, &y) && cm_shape_equal(&x, &y);
}

static bool is_single(const struct cm_type *type)
{
    struct cm_shape shape;
    return cm_type_shape(type, &shape) && cm_shape_elements(&shape) == 1;
}

static bool shape_suits(const struct trial *t, const struct element_use *use, cm_value first,
                        cm_value value)
{
    const struct cm_type *type = type_of(t, value);
    if (!first || use->shapes == ELEMENT_BROADCAST)
        return true;
    if (use->shapes == ELEMENT_SCALARS || use->shapes == ELEMENT_NUMBERS)
        return is_single(type) && (use->shapes == ELEMENT_SCALARS || type->rank <= 1);
    return same_dims(type, type_of(t, first)) || (use->shapes == ELEMENT_FIRST && is_single(type) &&
                                                  type->rank <= type_of(t, first)->rank);
}

/* A value that may be operand i; 0 when there is none. */
static cm_value some_value(struct trial *t, const struct cm_schema *schema,
                           const struct element_use *use, const cm_value *inputs, size_t i)
{
    const uint64_t allowed = element_types(schema, i);
    enum cm_dtype type = CM_UNDEFINED;
    for (size_t k = 0; k < i; k++)
        if (element_param(schema, k)->type == element_param(schema, i)->type)
            type = type_of(t, inputs[k])->dtype;
    for (int tries = 0; tries < 40; tries++) {
        const cm_value value = t->values[below(t, t->n_values)];
        const enum cm_dtype own = type_of(t, value)->dtype;
        if (allowed & CM_TYPE_BIT(own) && (!type || own == type) &&
            shape_suits(t, use, i ? inputs[0] : 0, value))
            return value;
    }
    return 0;
}

/* Removes the last node where it has no loop for its types. */
static void take_back_unless_loop(struct trial *t)
{
    struct cm_node *node = cm_value_get(t->body->module, t->values[t->n_values - 1])->node;
    enum cm_dtype types[ELEMENT_MOST];
    struct cm_element_loop loop;
    for (int i = 0; i < node->n_inputs; i++)
        types[i] = type_of(t, node->inputs[i].value)->dtype;
    if (node->op->elementwise(node, types, type_of(t, node->outputs[0])->dtype, &loop))
        return;
    cm_graph_remove_node(node);
    t->n_values--;
}

static void add_node(struct trial *t, const struct cm_op *const *ops, size_t n_ops)
{
    const struct cm_op *op = ops[below(t, n_ops)];
    const struct cm_schema *schema = cm_schema_newest(cm_str(op->domain), cm_str(op->name));
    size_t n_uses, n_in = (size_t)schema->min_inputs;
    const struct element_use *use = element_uses(op, &n_uses);
    struct cm_attribute_proto attributes[1];
    cm_value inputs[ELEMENT_MOST];

    use += below(t, n_uses);
    while (n_in < ELEMENT_MOST && (int)n_in < schema->max_inputs && below(t, 3))
        n_in++;
    for (size_t i = 0; i < n_in; i++) {
        inputs[i] = some_value(t, schema, use, inputs, i);
        if (!inputs[i])
            return;
    }
    if (use->attribute && use->text)
        attributes[0] = cm_attr_str(t->arena, use->attribute, cm_str(use->text));
    else if (use->attribute)
        attributes[0] = cm_attr_int(
            t->arena, use->attribute,
            use->number == ELEMENT_ANY_TYPE ? (int64_t)some_type(t, UINT64_MAX) : use->number);
    t->values[t->n_values++] =
        cm_build(&t->build, &(struct cm_emission){.op = element_name(t->arena, op),
                                                  .inputs = inputs,
                                                  .n_inputs = n_in,
                                                  .attributes = attributes,
                                                  .n_attributes = use->attribute != NULL});
    CHECK_OK(t->build.status, &t->err);
    if (use->shapes == ELEMENT_NUMBERS)
        take_back_unless_loop(t);
}

/* Up to RESULTS computed values of the full shape, each once. */
static void choose_results(struct trial *t, size_t first)
{
    for (size_t v = t->n_values; v-- > first && t->n_results < RESULTS;) {
        struct cm_shape shape;
        if (cm_type_shape(type_of(t, t->values[v]), &shape) && cm_shape_equal(&shape, &t->shape) &&
            (t->n_results == 0 || below(t, 2)))
            t->results[t->n_results++] = t->values[v];
    }
}

static void random_bodies(struct cm_arena *arena)
{
    const struct cm_op *ops[200];
    size_t n_ops = 0, taken = 0, nodes = 0;
    for (size_t i = 0; i < cm_op_count; i++)
        if (cm_op_list[i]->elementwise)
            ops[n_ops++] = cm_op_list[i];
    for (uint64_t seed = 1; seed <= 1500; seed++) {
        struct trial t;
        begin(&t, arena, seed);
        t.shape = some_shape(&t);
        const size_t n_operands = 1 + below(&t, 5), n_nodes = 2 + below(&t, 13);
        const enum cm_dtype usual = some_type(&t, UINT64_MAX); /* so that some go together */
        for (size_t i = 0; i < n_operands; i++) {
            const struct cm_shape shape = i ? some_part(&t) : t.shape;
            add_operand(&t, i && below(&t, 3) ? some_type(&t, UINT64_MAX) : usual, &shape);
        }
        for (size_t i = below(&t, 3); i > 0; i--) {
            const struct cm_shape shape = some_part(&t);
            add_constant(&t, below(&t, 2) ? usual : some_type(&t, UINT64_MAX), &shape);
        }
        const size_t first = t.n_values;
        for (int tries = 0; tries < 100 && t.n_values < first + n_nodes; tries++)
            add_node(&t, ops, n_ops);
        choose_results(&t, first);
        if (t.n_results) {
            check_taken(&t);
            taken++;
            nodes += t.body->n_nodes;
        } else {
            for (size_t i = 0; i < t.n_operands; i++)
                cm_datum_drop(&t.operands[i]);
        }
        cm_arena_reset(arena);
    }
    print_message("%zu regions of %zu nodes\n", taken, nodes);
    CHECK(taken > 1000);
    CHECK(nodes > 3 * taken);
}

void test_elementwise_region__random_bodies_give_their_bits(void)
{
    check_in_arena(random_bodies);
}

/* ---- bodies written by hand ---- */

static cm_value emit(struct trial *t, const char *op, cm_value a, cm_value b)
{
    return cm_build(
        &t->build,
        &(struct cm_emission){.op = op, .inputs = (const cm_value[]){a, b}, .n_inputs = b ? 2 : 1});
}

/* x * a + b, through Sigmoid, times x; the product is a result too. */
static void chain(struct trial *t, enum cm_dtype type, const struct cm_shape *x,
                  const struct cm_shape *a)
{
    t->shape = *x;
    add_operand(t, type, x);
    add_operand(t, type, a);
    add_operand(t, type, a);
    const cm_value product = emit(t, "Mul", t->values[0], t->values[1]);
    const cm_value s = emit(t, "Sigmoid", emit(t, "Add", product, t->values[2]), 0);
    t->results[t->n_results++] = emit(t, "Mul", s, t->values[0]);
    t->results[t->n_results++] = product;
}

static void shapes(struct cm_arena *arena)
{
    static const enum cm_dtype types[] = {CM_FLOAT, CM_DOUBLE, CM_FLOAT16, CM_BFLOAT16};
    const struct cm_shape pairs[][2] = {
        {CM_SCALAR, CM_SCALAR},
        {CM_SHAPE(1), CM_SCALAR},
        {CM_SHAPE(0), CM_SCALAR},
        {CM_SHAPE(3, 0, 2), CM_SHAPE(2)},
        {CM_SHAPE(1, 1, 1), CM_SHAPE(1)},
        {CM_SHAPE(1023), CM_SHAPE(1023)},
        {CM_SHAPE(70000), CM_SCALAR},
        {CM_SHAPE(3, 30001), CM_SHAPE(3, 1)},
        {CM_SHAPE(3, 30001), CM_SHAPE(30001)},
        {CM_SHAPE(20000, 3), CM_SHAPE(3)},
        {CM_SHAPE(20000, 3), CM_SHAPE(20000, 1)},
        {CM_SHAPE(2, 1, 5, 300), CM_SHAPE(2, 1, 1, 300)},
        {CM_SHAPE(4, 5, 6, 7), CM_SHAPE(5, 1, 7)},
        {CM_SHAPE(16, 33, 64), CM_SHAPE(33, 1)},
    };
    for (size_t p = 0; p < CM_COUNT(pairs); p++) {
        for (size_t i = 0; i < CM_COUNT(types); i++) {
            struct trial t;
            begin(&t, arena, 100 * p + i);
            chain(&t, types[i], &pairs[p][0], &pairs[p][1]);
            check_taken(&t);
            cm_arena_reset(arena);
        }
    }
}

void test_elementwise_region__any_shapes(void)
{
    check_in_arena(shapes);
}

/* A result may only take the place of an operand that nothing reads afterwards: here each result is
 * computed before its operand was read for the last time, and after. */
static void overwriting(struct cm_arena *arena)
{
    static const enum cm_dtype types[] = {CM_FLOAT, CM_FLOAT16, CM_INT32};
    for (int order = 0; order < 4; order++) {
        for (size_t i = 0; i < CM_COUNT(types); i++) {
            struct trial t;
            begin(&t, arena, (uint64_t)order + 1);
            t.shape = CM_SHAPE(3001);
            add_operand(&t, types[i], &t.shape);
            add_operand(&t, types[i], &t.shape);
            const cm_value x = t.values[order % 2], y = t.values[1 - order % 2];
            const cm_value sum = emit(&t, "Add", x, y);
            const cm_value more = emit(&t, "Mul", sum, order < 2 ? x : y);
            t.results[t.n_results++] = sum;
            t.results[t.n_results++] = emit(&t, "Sub", more, order < 2 ? y : sum);
            check_taken(&t);
            cm_arena_reset(arena);
        }
    }
}

void test_elementwise_region__operands_are_overwritten_when_read(void)
{
    check_in_arena(overwriting);
}

static void check_declined(struct trial *t, const char *reason)
{
    const struct seen seen = check(t);
    CHECK_INT(seen.regions, 0);
    if (!strstr(seen.declined, reason))
        fail_msg("expected '%s', got: %s", reason, seen.declined);
    cm_arena_reset(t->arena);
}

static void declines(struct cm_arena *arena)
{
    struct trial t;

    begin(&t, arena, 1);
    add_operand(&t, CM_FLOAT, &CM_SHAPE(4, 5));
    add_operand(&t, CM_FLOAT, &CM_SHAPE(5));
    t.results[t.n_results++] = emit(&t, "Neg", t.values[1], 0);
    t.results[t.n_results++] = emit(&t, "Add", t.values[0], t.values[1]);
    check_declined(&t, "the results have different shapes");

    begin(&t, arena, 2);
    add_operand(&t, CM_FLOAT, &CM_SHAPE(4, 5));
    t.results[t.n_results++] = emit(&t, "Neg", emit(&t, "Hardmax", t.values[0], 0), 0);
    check_declined(&t, "(Hardmax) is not elementwise");
}

void test_elementwise_region__declines_with_a_reason(void)
{
    check_in_arena(declines);
}
