/* Matching: a list of goals, each a term that a value must be, solved one after the other. Where a
 * term can be met in several ways, the rest of the list is tried under each: that is all of the
 * backtracking, and a budget of steps ends it. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/pattern_match.h"

#include "graph/registry.h"
#include "rewrite/pass.h"

#include <assert.h>
#include <math.h>

enum {
    MAX_TERMS = 256,
    MAX_NEEDS = 8,
    MAX_PARTS = 6,
    MAX_TESTS = 2,
    STEP_BUDGET = 1000,
    NUMBER_DEPTH = 12
};

enum term_kind { TERM_NAME, TERM_NUMBER, TERM_NODE, TERM_CHOICE };

struct attribute_test {
    const char *name;
    int64_t value;
};

struct term {
    enum term_kind kind;
    int name;      /* number of the name, of a node too; -1: none */
    bool optional; /* a name that may be absent */
    bool shown;    /* a node whose result may be read outside */
    double number;
    const struct cm_op *op;
    bool commutes;
    struct attribute_test tests[MAX_TESTS];
    int n_tests;
    const struct term *parts[MAX_PARTS]; /* operands, or what to choose from */
    int n_parts;
};

/* Operators of which one must be there, for a first look. */
struct needs {
    const struct cm_op *ops[MAX_NEEDS];
    int count;
};

struct cm_pattern {
    const struct cm_pattern_row *row;
    struct needs needs;
    const struct term *root;
    struct cm_str names[CM_PATTERN_NAMES];
    int n_names;
};

/* ---- Reading the text. It is ours: what is wrong in it is a mistake of this program. ---- */

struct pattern_reader {
    struct cm_arena *arena;
    const struct cm_registry *registry;
    struct cm_pattern *pattern;
    const char *at;
    int n_terms;
    bool lacks_operator;
};

static void skip_blanks(struct pattern_reader *r)
{
    while (*r->at == ' ')
        r->at++;
}

static bool in_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

static struct cm_str read_word(struct pattern_reader *r)
{
    const char *begin = r->at;
    while (in_word(*r->at))
        r->at++;
    assert(r->at > begin);
    return (struct cm_str){begin, (size_t)(r->at - begin)};
}

static int number_of_name(struct cm_pattern *pattern, struct cm_str name)
{
    for (int i = 0; i < pattern->n_names; i++)
        if (cm_str_equal(pattern->names[i], name))
            return i;
    assert(pattern->n_names < CM_PATTERN_NAMES);
    pattern->names[pattern->n_names] = name;
    return pattern->n_names++;
}

static const struct term *read_term(struct pattern_reader *r);

static void read_parts(struct pattern_reader *r, struct term *term, char end)
{
    for (skip_blanks(r); *r->at != end; skip_blanks(r)) {
        assert(*r->at && term->n_parts < MAX_PARTS);
        term->parts[term->n_parts++] = read_term(r);
    }
    r->at++;
}

/* "axis=1" where a term could stand */
static bool read_test(struct pattern_reader *r, struct attribute_test *out)
{
    const char *begin = r->at;
    while (in_word(*r->at))
        r->at++;
    const bool is_test = *r->at == '=' && r->at > begin;
    r->at = begin;
    if (!is_test)
        return false;
    out->name = cm_arena_str(r->arena, read_word(r)).data;
    r->at++;
    return cm_str_to_int64(read_word(r), &out->value);
}

static void read_node(struct pattern_reader *r, struct term *term)
{
    const struct cm_str op = read_word(r);
    term->kind = TERM_NODE;
    term->op = cm_registry_op(r->registry, CM_STR_NONE, op);
    r->lacks_operator = r->lacks_operator || !term->op;
    term->commutes = cm_str_is(op, "Add") || cm_str_is(op, "Mul");
    if (*r->at == '@' || *r->at == '!') {
        term->shown = *r->at++ == '!';
        term->name = number_of_name(r->pattern, read_word(r));
    }
    for (skip_blanks(r); term->n_tests < MAX_TESTS && read_test(r, &term->tests[term->n_tests]);
         skip_blanks(r))
        term->n_tests++;
    read_parts(r, term, ')');
}

static const struct term *read_term(struct pattern_reader *r)
{
    struct term *term = CM_NEW(r->arena, struct term);
    term->name = -1;
    skip_blanks(r);
    r->n_terms++;
    assert(r->n_terms < MAX_TERMS);
    if (*r->at == '(' || *r->at == '[') {
        term->kind = TERM_CHOICE;
        if (*r->at++ == '[')
            read_parts(r, term, ']');
        else
            read_node(r, term);
        return term;
    }
    const struct cm_str word = read_word(r);
    term->kind = cm_str_to_double(word, &term->number) ? TERM_NUMBER : TERM_NAME;
    if (term->kind == TERM_NAME)
        term->name = number_of_name(r->pattern, word);
    if (*r->at == '?') {
        term->optional = true;
        r->at++;
    }
    return term;
}

static bool add_needs(const struct term *term, struct needs *out);

static bool add_needs_of_choice(const struct term *term, struct needs *out)
{
    const int before = out->count;
    for (int i = 0; i < term->n_parts; i++)
        if (!add_needs(term->parts[i], out)) {
            out->count = before;
            return false;
        }
    return out->count > before;
}

/* Adds operators, one of them in every match of the term; adds none and returns false if there are
 * no such operators. The further in, the rarer; sums and products are everywhere. */
static bool add_needs(const struct term *term, struct needs *out)
{
    if (term->kind == TERM_CHOICE)
        return add_needs_of_choice(term, out);
    for (int i = 0; term->kind == TERM_NODE && i < term->n_parts; i++)
        if (add_needs(term->parts[i], out))
            return true;
    if (term->kind != TERM_NODE || term->commutes || out->count == MAX_NEEDS)
        return false;
    out->ops[out->count++] = term->op;
    return true;
}

struct cm_pattern *cm_pattern_new(struct cm_arena *arena, const struct cm_registry *registry,
                                  const struct cm_pattern_row *row)
{
    struct cm_pattern *pattern = CM_NEW(arena, struct cm_pattern);
    struct pattern_reader reader = {
        .arena = arena, .registry = registry, .pattern = pattern, .at = row->text};
    pattern->row = row;
    pattern->root = read_term(&reader);
    assert(*reader.at == '\0' && pattern->root->kind == TERM_NODE);
    add_needs(pattern->root, &pattern->needs);
    return reader.lacks_operator ? NULL : pattern;
}

int cm_pattern_needs(const struct cm_pattern *pattern, const struct cm_op *const **out)
{
    *out = pattern->needs.ops;
    return pattern->needs.count;
}

const struct cm_op *cm_pattern_last(const struct cm_registry *registry,
                                    const struct cm_pattern_row *row)
{
    struct pattern_reader reader = {.at = row->text + 1}; /* after the parenthesis */
    return cm_registry_op(registry, CM_STR_NONE, read_word(&reader));
}

/* ---- Constants ---- */

static bool is_real(enum cm_dtype dtype)
{
    const enum cm_dtype_class kind = cm_dtype_info(dtype)->kind;
    return kind == CM_CLASS_FLOAT || kind == CM_CLASS_SIGNED || kind == CM_CLASS_UNSIGNED;
}

static double root(double a, double b)
{
    (void)b;
    return sqrt(a);
}

static double inverse(double a, double b)
{
    (void)b;
    return 1 / a;
}

static double same(double a, double b)
{
    (void)b;
    return a;
}

static double product(double a, double b)
{
    return a * b;
}

static double quotient(double a, double b)
{
    return a / b;
}

/* How exporters write numbers that they could have computed: `head size ** -0.5`. */
static const struct arithmetic {
    const char *op;
    int operands;
    double (*of)(double a, double b);
} arithmetic[] = {
    {"Sqrt", 1, root},    {"Reciprocal", 1, inverse}, {"Mul", 2, product},   {"Div", 2, quotient},
    {"Pow", 2, pow},      {"Cast", 1, same},          {"CastLike", 1, same}, {"Identity", 1, same},
    {"Squeeze", 1, same}, {"Unsqueeze", 1, same},
};

static bool number_within(const struct cm_module *module, cm_value value, int depth, double *out);

static bool number_of_node(const struct cm_module *module, const struct cm_node *node, int depth,
                           double *out)
{
    const struct arithmetic *how = arithmetic, *end = arithmetic + CM_COUNT(arithmetic);
    double operands[2] = {0, 0};
    while (how < end && !cm_str_is(node->op_type, how->op))
        how++;
    if (how == end || node->domain.size)
        return false;
    for (int i = 0; i < how->operands; i++)
        if (!cm_node_input(node, i) ||
            !number_within(module, cm_node_input(node, i), depth - 1, &operands[i]))
            return false;
    *out = how->of(operands[0], operands[1]);
    return true;
}

/* Integers come as constants or known dimensions; arithmetic is done for floats only, where it
 * neither truncates nor wraps. */
static bool number_within(const struct cm_module *module, cm_value value, int depth, double *out)
{
    const struct cm_value_def *def = cm_value_get(module, value);
    const struct cm_tensor *tensor = cm_small_constant(module, value, 1);
    const struct cm_known *known = def->fact.known;
    if (tensor) {
        if (!is_real(tensor->type) || cm_tensor_count(tensor) != 1)
            return false;
        *out = cm_tensor_real(tensor, 0);
        return isfinite(*out);
    }
    if (known && known->count == 1 && known->items[0].is_number) {
        *out = (double)known->items[0].number;
        return true;
    }
    if (!def->node || depth == 0 || def->fact.type->kind != CM_KIND_TENSOR ||
        cm_dtype_info(def->fact.type->dtype)->kind != CM_CLASS_FLOAT ||
        !number_of_node(module, def->node, depth, out))
        return false;
    return isfinite(*out);
}

bool cm_constant_number(const struct cm_module *module, cm_value value, double *out)
{
    return number_within(module, value, NUMBER_DEPTH, out);
}

bool cm_constant_axes(const struct cm_module *module, cm_value value, size_t *count, int64_t *out)
{
    const struct cm_tensor *tensor = cm_small_constant(module, value, CM_MAX_RANK);
    if (!tensor || (tensor->type != CM_INT64 && tensor->type != CM_INT32))
        return false;
    *count = (size_t)cm_tensor_count(tensor);
    for (size_t i = 0; i < *count; i++)
        out[i] = cm_tensor_int(tensor, (int64_t)i);
    return true;
}

/* How far a constant may be from the number it is written for. */
static double tolerance(enum cm_dtype dtype)
{
    return dtype == CM_FLOAT16 ? 1e-3 : dtype == CM_BFLOAT16 ? 8e-3 : 1e-6;
}

/* Is it that number, and of a rank that does not add axes to the result of its reader? */
static bool is_number(const struct cm_group *m, const struct cm_node *reader, cm_value value,
                      double number)
{
    const struct cm_tensor *tensor = cm_small_constant(m->graph->module, value, 1);
    if (!tensor || cm_tensor_count(tensor) != 1 || !is_real(tensor->type) ||
        !(fabs(cm_tensor_real(tensor, 0) - number) <= tolerance(tensor->type) * fabs(number)))
        return false;
    bool fits = tensor->shape.rank == 0;
    for (int i = 0; !fits && i < reader->n_inputs; i++) {
        const cm_value other = reader->inputs[i].value;
        fits = other && other != value &&
               cm_value_type(m->graph->module, other)->rank >= tensor->shape.rank;
    }
    return fits;
}

/* ---- Matching ---- */

/* What has to be met, in this order. Goals live on the stack of whoever added them. */
struct goal {
    const struct term *term;
    cm_value value;
    const struct cm_node *reader;
    const struct goal *next;
};

struct pattern_search {
    struct cm_group *match;
    const struct term *terms[CM_GROUP_NODES]; /* of the nodes of the match */
    int steps;
};

static bool solve(struct pattern_search *s, const struct goal *goal);

static bool is_in(const struct cm_group *m, const struct cm_node *node)
{
    for (size_t i = 0; i < m->n_nodes; i++)
        if (m->nodes[i] == node)
            return true;
    return false;
}

/* Does nobody outside of the match read this node? Its other outputs are nobody's. */
static bool is_inside(const struct cm_group *m, const struct cm_node *node)
{
    for (int o = 0; o < node->n_outputs; o++) {
        if (!node->outputs[o])
            continue;
        for (const struct cm_use *use = cm_value_get(m->graph->module, node->outputs[o])->uses; use;
             use = use->next)
            if (!use->node || !is_in(m, use->node))
                return false;
    }
    return true;
}

static bool accept(const struct pattern_search *s)
{
    const struct cm_group *m = s->match;
    for (size_t i = 1; i < m->n_nodes; i++)
        if (!s->terms[i]->shown && !is_inside(m, m->nodes[i]))
            return false;
    return !m->pattern->row->when || m->pattern->row->when(m);
}

/* Binds a name for the goals that follow. */
static bool bind(struct pattern_search *s, int name, cm_value value, const struct goal *next)
{
    cm_value *bound = &s->match->bound[name];
    if (*bound)
        return *bound == value && solve(s, next);
    *bound = value;
    if (solve(s, next))
        return true;
    *bound = 0;
    return false;
}

static bool solve_operands(struct pattern_search *s, const struct term *term,
                           const struct cm_node *node, bool swapped, const struct goal *next)
{
    struct goal goals[MAX_PARTS];
    for (int i = term->n_parts - 1; i >= 0; i--) {
        const int operand = swapped ? term->n_parts - 1 - i : i;
        goals[i] = (struct goal){term->parts[i], cm_node_input(node, operand), node, next};
        next = &goals[i];
    }
    return solve(s, next);
}

static bool passes_tests(const struct term *term, const struct cm_node *node)
{
    for (int i = 0; i < term->n_tests; i++)
        if (cm_node_int(node, term->tests[i].name) != term->tests[i].value)
            return false;
    return true;
}

static bool solve_node(struct pattern_search *s, const struct goal *goal)
{
    struct cm_group *m = s->match;
    const struct term *term = goal->term;
    const struct cm_value_def *def = cm_value_get(m->graph->module, goal->value);
    struct cm_node *node = def->node;
    if (!node || node->op != term->op || node->graph != m->graph || def->output != 0 ||
        node->n_inputs > term->n_parts || m->n_nodes == CM_GROUP_NODES || !passes_tests(term, node))
        return false;
    cm_value none = 0, *name = term->name >= 0 ? &m->bound[term->name] : &none;
    const cm_value before = *name;
    if (before && before != goal->value)
        return false;
    *name = goal->value;
    s->terms[m->n_nodes] = term;
    m->nodes[m->n_nodes++] = node;
    if (solve_operands(s, term, node, false, goal->next) ||
        (term->commutes && solve_operands(s, term, node, true, goal->next)))
        return true;
    m->n_nodes--;
    *name = before;
    return false;
}

static bool solve(struct pattern_search *s, const struct goal *goal)
{
    if (!goal)
        return accept(s);
    const struct term *term = goal->term;
    if (s->steps-- <= 0)
        return false;
    if (!goal->value)
        return term->optional && solve(s, goal->next);
    switch (term->kind) {
    case TERM_NAME:
        return bind(s, term->name, goal->value, goal->next);
    case TERM_NUMBER:
        return is_number(s->match, goal->reader, goal->value, term->number) && solve(s, goal->next);
    case TERM_NODE:
        return solve_node(s, goal);
    case TERM_CHOICE:
        for (int i = 0; i < term->n_parts; i++) {
            const struct goal one = {term->parts[i], goal->value, goal->reader, goal->next};
            if (solve(s, &one))
                return true;
        }
        return false;
    }
    return false;
}

bool cm_pattern_match(const struct cm_pattern *pattern, struct cm_node *root, struct cm_group *out)
{
    struct pattern_search search = {.match = out, .steps = STEP_BUDGET};
    const struct goal goal = {pattern->root, cm_node_output(root, 0), NULL, NULL};
    *out = (struct cm_group){.graph = root->graph, .root = root, .pattern = pattern};
    return goal.value && solve(&search, &goal);
}

cm_value cm_group_value(const struct cm_group *match, const char *name)
{
    for (int i = 0; i < match->pattern->n_names; i++)
        if (cm_str_is(match->pattern->names[i], name))
            return match->bound[i];
    return 0;
}

const struct cm_type *cm_group_type(const struct cm_group *match, const char *name)
{
    const cm_value value = cm_group_value(match, name);
    return value ? cm_value_type(match->graph->module, value) : NULL;
}
