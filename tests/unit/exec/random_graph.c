/* Writing random models as text. Every value's dimensions are sums over symbols, so that what goes
 * together is known before there is data. */
// SPDX-License-Identifier: Apache-2.0
#include "random_graph.h"

#include "check.h"

#include <stdarg.h>

enum { SYMBOLS = 96, RANK = 3, VALUES = 96, DEEPEST = 3 };

/* c + sum of coefficient * symbol; symbols below SURE are at least 1, the others may be 0. */
enum { SURE = 2 };
struct size {
    int constant;
    int8_t times[SYMBOLS];
};

enum type { REAL, WHOLE, TRUTH };

struct value {
    char name[16];
    enum type type;
    int rank;
    struct size dims[RANK];
};

struct maker {
    uint64_t state;
    char nodes[1 << 15], constants[1 << 13];
    size_t n_nodes, n_constants;
    struct value values[VALUES];
    int n_values, n_symbols, n_names, depth;
    int budget; /* operators still to be written */
};

uint64_t random_below(uint64_t *state, uint64_t below)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (*state >> 11) % below;
}

static int pick(struct maker *m, int below)
{
    return (int)random_below(&m->state, (uint64_t)below);
}

static void put(char *text, size_t *at, size_t room, const char *format, va_list args)
{
    const int n = vsnprintf(text + *at, room - *at, format, args);
    if (n > 0 && (size_t)n < room - *at)
        *at += (size_t)n;
}

static CM_PRINTF(2, 3) void node(struct maker *m, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put(m->nodes, &m->n_nodes, sizeof m->nodes, format, args);
    va_end(args);
}

static CM_PRINTF(2, 3) void constant(struct maker *m, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put(m->constants, &m->n_constants, sizeof m->constants, format, args);
    va_end(args);
}

/* ---- sizes and values ---- */

static struct size fresh(struct maker *m)
{
    struct size size = {0};
    if (m->n_symbols < SYMBOLS)
        size.times[m->n_symbols++] = 1;
    return size;
}

static bool equal(const struct size *a, const struct size *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static bool is_one(const struct size *size)
{
    const struct size one = {.constant = 1};
    return equal(size, &one);
}

static bool surely_positive(const struct size *size)
{
    return size->constant > 0 || size->times[0] > 0 || size->times[1] > 0;
}

static bool same_shape(const struct value *a, const struct value *b)
{
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = equal(&a->dims[i], &b->dims[i]);
    return same;
}

/* May b be repeated along axes to become a? */
static bool spreads(const struct value *a, const struct value *b)
{
    if (b->rank > a->rank)
        return false;
    for (int i = 1; i <= b->rank; i++)
        if (!is_one(&b->dims[b->rank - i]) && !equal(&b->dims[b->rank - i], &a->dims[a->rank - i]))
            return false;
    return true;
}

static struct value named(struct maker *m, enum type type)
{
    struct value value = {.type = type};
    snprintf(value.name, sizeof value.name, "v%d", m->n_names++);
    return value;
}

static struct value like(struct maker *m, const struct value *a)
{
    struct value value = *a;
    snprintf(value.name, sizeof value.name, "v%d", m->n_names++);
    return value;
}

static void add(struct maker *m, struct value value)
{
    if (m->n_values < VALUES)
        m->values[m->n_values++] = value;
}

/* A value of this type, mostly a late one. There always is one: the inputs. */
static const struct value *any(struct maker *m, enum type type)
{
    for (;;) {
        const int i = pick(m, 3) ? m->n_values - 1 - pick(m, m->n_values < 6 ? m->n_values : 6)
                                 : pick(m, m->n_values);
        if (m->values[i].type == type && (m->values[i].rank > 0 || pick(m, 4) == 0))
            return &m->values[i];
    }
}

static const char *element(enum type type)
{
    return type == REAL ? "float" : type == WHOLE ? "int64" : "bool";
}

/* ---- operators ---- */

static void unary(struct maker *m)
{
    static const char *const ops[] = {"Relu", "Neg", "Abs", "Identity", "Sigmoid", "Identity"};
    const struct value *x = any(m, pick(m, 4) ? REAL : WHOLE);
    const char *op = x->type == REAL ? ops[pick(m, 6)] : ops[1 + pick(m, 3)];
    const struct value y = like(m, x);
    node(m, "%s = %s(%s)\n", y.name, op, x->name);
    add(m, y);
}

static void binary(struct maker *m)
{
    static const char *const ops[] = {"Add", "Sub", "Mul", "Max"};
    const struct value *x = any(m, pick(m, 4) ? REAL : WHOLE);
    const struct value *z = x;
    for (int tries = 0; tries < 8; tries++) {
        const struct value *other = any(m, x->type);
        if (spreads(x, other)) {
            z = other;
            break;
        }
    }
    const struct value y = like(m, x);
    const bool turned = pick(m, 2);
    node(m, "%s = %s(%s, %s)\n", y.name, ops[pick(m, 4)], turned ? z->name : x->name,
         turned ? x->name : z->name);
    add(m, y);
}

static void choose(struct maker *m)
{
    const struct value *x = any(m, REAL), *z = x;
    for (int tries = 0; tries < 8 && z == x; tries++) {
        const struct value *other = any(m, REAL);
        if (spreads(x, other))
            z = other;
    }
    struct value bigger = like(m, x), y = like(m, x);
    bigger.type = TRUTH;
    node(m, "%s = Greater(%s, %s)\n%s = Where(%s, %s, %s)\n", bigger.name, x->name, z->name, y.name,
         bigger.name, z->name, x->name);
    add(m, bigger);
    add(m, y);
}

static void cast(struct maker *m)
{
    const struct value *x = any(m, pick(m, 2) ? WHOLE : REAL);
    struct value y = like(m, x);
    y.type = x->type == REAL ? WHOLE : REAL;
    if (x->type == REAL) { /* numbers past int64 have no cast everybody agrees on */
        node(m, "%ss = Sign(%s)\n%s = Cast <to = 7> (%ss)\n", y.name, x->name, y.name, y.name);
    } else {
        node(m, "%s = Cast <to = 1> (%s)\n", y.name, x->name);
    }
    add(m, y);
}

static void flatten(struct maker *m)
{
    const struct value *x = any(m, REAL);
    struct value y = named(m, REAL);
    y.rank = 1;
    y.dims[0] = x->rank == 1 ? x->dims[0] : fresh(m);
    if (x->rank == 0)
        y.dims[0] = (struct size){.constant = 1};
    constant(m, "int64[1] %ss = {-1}, ", y.name);
    node(m, "%s = Reshape(%s, %ss)\n", y.name, x->name, y.name);
    add(m, y);
}

/* Shape arithmetic: there and back by way of one dimension. */
static void reshape_back(struct maker *m)
{
    const struct value *x = any(m, REAL);
    const struct value *z = any(m, REAL);
    if (x->rank == 0 || !same_shape(x, z))
        z = x;
    const struct value y = like(m, x);
    constant(m, "int64[1] %sm = {-1}, ", y.name);
    node(m, "%sf = Reshape(%s, %sm)\n%sr = Relu(%sf)\n", y.name, x->name, y.name, y.name, y.name);
    node(m, "%ss = Shape(%s)\n%s = Reshape <allowzero = 1> (%sr, %ss)\n", y.name, z->name, y.name,
         y.name, y.name);
    struct value s = named(m, WHOLE);
    CHECK(snprintf(s.name, sizeof s.name, "%ss", y.name) < (int)sizeof s.name);
    s.rank = 1;
    s.dims[0] = (struct size){.constant = x->rank};
    add(m, s);
    add(m, y);
}

static void transpose(struct maker *m)
{
    const struct value *x = any(m, pick(m, 3) ? REAL : WHOLE);
    struct value y = like(m, x);
    int perm[RANK] = {0, 1, 2};
    for (int i = x->rank - 1; i > 0; i--) {
        const int j = pick(m, i + 1), kept = perm[i];
        perm[i] = perm[j];
        perm[j] = kept;
    }
    for (int i = 0; i < x->rank; i++)
        y.dims[i] = x->dims[perm[i]];
    node(m, "%s = Transpose", y.name);
    for (int i = 0; i < x->rank; i++)
        node(m, "%s%d%s", i ? ", " : " <perm = [", perm[i], i + 1 == x->rank ? "]>" : "");
    node(m, " (%s)\n", x->name);
    add(m, y);
}

static void unsqueeze(struct maker *m)
{
    const struct value *x = any(m, REAL);
    if (x->rank == RANK)
        return;
    struct value y = like(m, x);
    const int axis = pick(m, x->rank + 1);
    for (int i = x->rank; i > axis; i--)
        y.dims[i] = y.dims[i - 1];
    y.dims[axis] = (struct size){.constant = 1};
    y.rank++;
    constant(m, "int64[1] %sa = {%d}, ", y.name, axis);
    node(m, "%s = Unsqueeze(%s, %sa)\n", y.name, x->name, y.name);
    add(m, y);
}

static void concat(struct maker *m)
{
    const struct value *x = any(m, pick(m, 4) ? REAL : WHOLE), *z = x;
    for (int tries = 0; tries < 6; tries++) {
        const struct value *other = any(m, x->type);
        if (same_shape(x, other))
            z = other;
    }
    if (x->rank == 0)
        return;
    struct value y = like(m, x);
    const int axis = pick(m, x->rank);
    for (int s = 0; s < SYMBOLS; s++)
        if (y.dims[axis].times[s] > 8) /* doubling forever would not end well */
            return;
    if (y.dims[axis].constant > 8)
        return;
    y.dims[axis].constant *= 2;
    for (int s = 0; s < SYMBOLS; s++)
        y.dims[axis].times[s] = (int8_t)(2 * y.dims[axis].times[s]);
    node(m, "%s = Concat <axis = %d> (%s, %s)\n", y.name, axis, x->name, z->name);
    add(m, y);
}

static bool halve(struct size *size)
{
    bool even = size->constant % 2 == 0;
    for (int s = 0; s < SYMBOLS; s++)
        even = even && size->times[s] % 2 == 0;
    size->constant /= 2;
    for (int s = 0; s < SYMBOLS; s++)
        size->times[s] = (int8_t)(size->times[s] / 2);
    return even;
}

static void split(struct maker *m)
{
    const struct value *x = any(m, REAL);
    for (int tries = 0, axis = 0; tries < 24; tries++, axis++) {
        if (axis >= x->rank) {
            x = any(m, REAL);
            axis = -1;
            continue;
        }
        struct value y = like(m, x), z = like(m, x);
        if (!halve(&y.dims[axis]))
            continue;
        z.dims[axis] = y.dims[axis];
        node(m, "%s, %s = Split <axis = %d, num_outputs = 2> (%s)\n", y.name, z.name, axis,
             x->name);
        add(m, y);
        add(m, z);
        return;
    }
}

static void slice(struct maker *m)
{
    const struct value *x = any(m, pick(m, 4) ? REAL : WHOLE);
    if (x->rank == 0)
        return;
    struct value y = like(m, x);
    const int axis = pick(m, x->rank);
    if (!surely_positive(&y.dims[axis]))
        return;
    const bool first = pick(m, 2);
    y.dims[axis] = first ? (struct size){.constant = 1} : fresh(m);
    constant(m, "int64[1] %sb = {%d}, int64[1] %se = {%d}, int64[1] %sa = {%d}, ", y.name,
             first ? 0 : 1, y.name, first ? 1 : 1000000, y.name, axis);
    node(m, "%s = Slice(%s, %sb, %se, %sa)\n", y.name, x->name, y.name, y.name, y.name);
    add(m, y);
}

static void gather(struct maker *m)
{
    const struct value *x = any(m, REAL);
    if (x->rank == 0)
        return;
    struct value y = like(m, x);
    const int axis = pick(m, x->rank);
    if (!surely_positive(&x->dims[axis]))
        return;
    y.dims[axis] = (struct size){.constant = 3};
    constant(m, "int64[3] %si = {0, -1, 0}, ", y.name);
    node(m, "%s = Gather <axis = %d> (%s, %si)\n", y.name, axis, x->name, y.name);
    add(m, y);
}

static void reduce(struct maker *m)
{
    const struct value *x = any(m, REAL);
    if (x->rank == 0)
        return;
    struct value y = like(m, x);
    const int axis = pick(m, x->rank);
    const bool keep = pick(m, 2);
    if (keep)
        y.dims[axis] = (struct size){.constant = 1};
    for (int i = axis; !keep && i + 1 < x->rank; i++)
        y.dims[i] = y.dims[i + 1];
    y.rank -= !keep;
    constant(m, "int64[1] %sa = {%d}, ", y.name, axis);
    node(m, "%s = ReduceSum <keepdims = %d> (%s, %sa)\n", y.name, keep, x->name, y.name);
    add(m, y);
}

static void expand(struct maker *m)
{
    const struct value *x = any(m, REAL);
    for (int tries = 0; tries < 8; tries++) {
        const struct value *small = any(m, REAL);
        if (small == x || !spreads(x, small))
            continue;
        const struct value y = like(m, x);
        node(m, "%ss = Shape(%s)\n%s = Expand(%s, %ss)\n", y.name, x->name, y.name, small->name,
             y.name);
        add(m, y);
        return;
    }
}

/* What is not zero: its number is known when it has run. */
static void nonzero(struct maker *m)
{
    const struct value *x = any(m, REAL);
    if (x->rank != 1) /* of one axis, so that the places can be gathered */
        return;
    struct value places = named(m, WHOLE), found = named(m, REAL);
    places.rank = 2;
    places.dims[0] = (struct size){.constant = 1};
    places.dims[1] = fresh(m);
    found.rank = 2;
    found.dims[0] = places.dims[0];
    found.dims[1] = places.dims[1];
    node(m, "%sr = Relu(%s)\n%s = NonZero(%sr)\n%s = Gather(%s, %s)\n", places.name, x->name,
         places.name, places.name, found.name, x->name, places.name);
    add(m, places);
    add(m, found);
}

/* ---- bodies ---- */

static void operators(struct maker *m, int count);

/* A value of this type and rank that a body can give back; written if there is none. */
static struct value result(struct maker *m, enum type type, int rank, const struct value *shape)
{
    for (int tries = 0; tries < 24; tries++) {
        const struct value *x = any(m, type);
        if (x->rank == rank && (!shape || same_shape(x, shape)))
            return *x;
    }
    return (struct value){.rank = -1};
}

static void declare(struct maker *m, const struct value *value)
{
    node(m, "%s[] %s", element(value->type), value->name);
}

static struct value condition(struct maker *m)
{
    const struct value *x = any(m, REAL);
    struct value truth = named(m, TRUTH);
    constant(m, "float %sz = {0.25}, ", truth.name);
    node(m, "%ss = ReduceSum <keepdims = 0> (%s)\n%s = Greater(%ss, %sz)\n", truth.name, x->name,
         truth.name, truth.name, truth.name);
    return truth;
}

/* Text is written from left to right, but a body's outputs stand before its nodes: so nodes are
 * written first and moved behind the head. */
static void behind(struct maker *m, size_t from, size_t head)
{
    static char kept[sizeof m->nodes];
    const size_t size = head - from;
    memcpy(kept, m->nodes + from, size);
    memmove(m->nodes + from, m->nodes + head, m->n_nodes - head);
    memcpy(m->nodes + m->n_nodes - size, kept, size);
}

static void branch(struct maker *m, const char *name, const struct value *model, bool exact)
{
    const int n_values = m->n_values;
    const size_t from = m->n_nodes;
    operators(m, 1 + pick(m, 4));
    struct value out = result(m, model->type, model->rank, exact ? model : NULL);
    if (out.rank < 0)
        out = *model;
    if (pick(m, 3)) { /* otherwise the result may be a value from outside */
        const struct value copy = like(m, &out);
        node(m, "%s = Identity(%s)\n", copy.name, out.name);
        out = copy;
    }
    const size_t head = m->n_nodes;
    node(m, "%s = %sg%d () => (", name, name, m->n_names++);
    declare(m, &out);
    node(m, ") {\n");
    behind(m, from, head);
    node(m, "}");
    m->n_values = n_values;
}

static void if_(struct maker *m)
{
    const struct value *model = any(m, REAL);
    const struct value shape = *model, truth = condition(m);
    struct value y = like(m, &shape);
    const bool exact = pick(m, 2);
    for (int i = 0; i < y.rank && !exact; i++)
        y.dims[i] = fresh(m);
    node(m, "%s = If (%s) <", y.name, truth.name);
    m->depth++;
    branch(m, "then_branch", &shape, exact);
    node(m, ", ");
    branch(m, "else_branch", &shape, exact);
    m->depth--;
    node(m, ">\n");
    add(m, y);
}

static bool made_before(const struct value *value, int symbols)
{
    for (int i = 0; i < value->rank; i++)
        for (int s = symbols; s < SYMBOLS; s++)
            if (value->dims[i].times[s])
                return false;
    return true;
}

/* One state, and perhaps slices. In half of the loops the state may change its shape. */
static void loop(struct maker *m)
{
    const struct value start = *any(m, REAL);
    struct value state = like(m, &start), number = named(m, WHOLE), go = named(m, TRUTH);
    struct value next_go = named(m, TRUTH), y = like(m, &start), all = named(m, REAL);
    const bool exact = pick(m, 2), data_decides = pick(m, 3) == 0, slices = pick(m, 2);
    const int n_values = m->n_values, before = m->n_symbols;
    for (int i = 0; i < state.rank && !exact; i++)
        state.dims[i] = fresh(m), y.dims[i] = fresh(m);
    if (data_decides)
        node(m, "%s, %s = Loop (n, , %s) <", y.name, all.name, start.name);
    else
        node(m, "%s, %s = Loop (%st, , %s) <", y.name, all.name, y.name, start.name);
    constant(m, "int64 %st = {%d}, int64 %sl = {2}, ", y.name, pick(m, 4), y.name);
    m->depth++;
    const size_t from = m->n_nodes;
    add(m, state);
    add(m, number);
    node(m, "%s = Less(%s, %sl)\n", next_go.name, number.name, y.name);
    operators(m, 1 + pick(m, 4));
    struct value out = result(m, REAL, start.rank, exact ? &start : NULL);
    if (out.rank < 0)
        out = state;
    struct value part = slices ? *any(m, REAL) : state;
    if (!slices || part.rank == RANK || !made_before(&part, before))
        part = number, all.type = WHOLE;
    const size_t head = m->n_nodes;
    node(m, "body = b%d (int64 %s, bool %s, float[] %s) => (bool %s, ", m->n_names++, number.name,
         go.name, state.name, next_go.name);
    declare(m, &out);
    node(m, ", ");
    declare(m, &part);
    node(m, ") {\n");
    behind(m, from, head);
    node(m, "}>\n");
    m->depth--;
    m->n_values = n_values;
    all.rank = part.rank + 1; /* no iteration leaves sizes open, so all are new */
    for (int i = 0; i < all.rank; i++)
        all.dims[i] = fresh(m);
    add(m, y);
    add(m, all);
}

/* Over the first axis of a value, with one state that keeps its shape. */
static void scan(struct maker *m)
{
    const struct value *x = any(m, REAL);
    if (x->rank == 0)
        return;
    const struct value over = *x, start = *any(m, REAL);
    struct value state = like(m, &start), part = named(m, REAL), y = like(m, &start);
    struct value all = like(m, &start);
    const int n_values = m->n_values;
    const bool sure = surely_positive(&over.dims[0]), backwards = pick(m, 2);
    part.rank = over.rank - 1;
    memcpy(part.dims, over.dims + 1, (size_t)part.rank * sizeof part.dims[0]);
    if (start.rank == RANK)
        return;
    node(m, "%s, %s = Scan (%s, %s) <num_scan_inputs = 1, scan_input_directions = [%d], ", y.name,
         all.name, start.name, over.name, backwards);
    m->depth++;
    const size_t from = m->n_nodes;
    add(m, state);
    add(m, part);
    operators(m, 1 + pick(m, 4));
    struct value out = result(m, REAL, start.rank, &start);
    if (out.rank < 0)
        out = state;
    const size_t head = m->n_nodes;
    node(m, "body = b%d (float[] %s, float[] %s) => (", m->n_names++, state.name, part.name);
    declare(m, &out);
    node(m, ", ");
    declare(m, &state);
    node(m, ") {\n");
    behind(m, from, head);
    node(m, "}>\n");
    m->depth--;
    m->n_values = n_values;
    for (int i = start.rank; i > 0; i--)
        all.dims[i] = sure ? start.dims[i - 1] : fresh(m);
    all.dims[0] = over.dims[0];
    all.rank = start.rank + 1;
    add(m, y);
    add(m, all);
}

static void operators(struct maker *m, int count)
{
    typedef void write_fn(struct maker *);
    static write_fn *const writers[] = {unary,  binary, binary, unary,     choose,       cast,
                                        concat, split,  slice,  transpose, reshape_back, flatten,
                                        reduce, gather, expand, unsqueeze, nonzero};
    static write_fn *const nesting[] = {if_, loop, scan};
    for (int i = 0; i < count && m->budget > 0; i++, m->budget--) {
        if (m->n_nodes > sizeof m->nodes / 2 || m->n_constants > sizeof m->constants / 2)
            return;
        if (m->depth < DEEPEST && pick(m, 8) == 0)
            nesting[pick(m, 3)](m);
        else
            writers[pick(m, (int)CM_COUNT(writers))](m);
    }
}

static void add_input(struct maker *m, const char *name, enum type type, int rank, int first)
{
    struct value value = {.type = type, .rank = rank};
    snprintf(value.name, sizeof value.name, "%s", name);
    for (int i = 0; i < rank; i++)
        value.dims[i].times[first + i] = 1;
    add(m, value);
}

void random_graph_make(struct random_graph *graph, uint64_t seed)
{
    static struct maker made;
    struct maker *m = &made;
    memset(m, 0, sizeof *m);
    m->state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    m->n_symbols = SURE;
    m->budget = 60;
    add_input(m, "half", REAL, 0, 0);
    add_input(m, "x", REAL, 2, 0);
    add_input(m, "y", REAL, 2, 0);
    add_input(m, "w", REAL, 1, 1);
    add_input(m, "n", WHOLE, 0, 0);
    operators(m, 4 + pick(m, 16));
    const int length =
        snprintf(graph->text, sizeof graph->text,
                 "<ir_version: 10, opset_import: [\"\" : 28]>\n"
                 "main (float[A,B] x, float[A,B] y, float[B] w, int64 n) => (float[A,B] x)\n"
                 "<%sfloat half = {0.5}> {\n%s}\n",
                 m->constants, m->nodes);
    CHECK(length > 0 && length < (int)sizeof graph->text);
    graph->n_outputs = 2 + (size_t)pick(m, (int)CM_COUNT(graph->outputs) - 1);
    for (size_t o = 0; o < graph->n_outputs; o++) {
        const int i = pick(m, 3) ? m->n_values - 1 - pick(m, m->n_values < 8 ? m->n_values : 8)
                                 : pick(m, m->n_values);
        memcpy(graph->outputs[o], m->values[i].name, sizeof graph->outputs[o]);
    }
}

struct cm_graph *random_graph_import(struct cm_arena *arena, const struct random_graph *sample)
{
    struct cm_graph *graph = graph_of(arena, sample->text, NULL);
    cm_value outputs[sizeof sample->outputs / sizeof sample->outputs[0]];
    for (size_t o = 0; o < sample->n_outputs; o++) {
        outputs[o] = cm_graph_find(graph, cm_str(sample->outputs[o]));
        CHECK(outputs[o]);
    }
    cm_graph_set_outputs(graph, outputs, sample->n_outputs);
    return graph;
}
