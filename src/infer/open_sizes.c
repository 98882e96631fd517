/* The search for sizes that inference accepts. How good a choice is, is how far along the graph the
 * first refused node stands. */
// SPDX-License-Identifier: Apache-2.0
#include "infer/open_sizes.h"

#include "base/number.h"

#include <math.h>
#include <string.h>

enum {
    TRIES_MAX = 600,        /* choices that are looked at */
    VISITS_MAX = 500000,    /* nodes that are typed for that, bodies included; each leaves a type */
    TRIES_MIN = 8,          /* however large the graph is */
    ROUNDS_MAX = 40,        /* steps towards a choice that fits */
    ELEMENTS_MAX = 1 << 26, /* of one input */
};

/* Sizes that people give to images. */
static const int64_t usual_sides[] = {224, 256, 320, 416, 512, 640, 299, 384, 448, 192, 160,
                                      128, 112, 96,  64,  56,  48,  32,  28,  16,  800, 1024};

struct sizing {
    struct cm_graph *graph;
    struct cm_arena *arena;
    const struct cm_size_options *options;
    struct cm_open_sizes *sizes;
    const struct cm_type **types; /* per input: as the model has it */
    int *ranks;     /* per input, of its innermost tensor; -1: not open, or no tensor */
    size_t **slots; /* per input and axis: which open size, or CLOSED */
    size_t tries, tries_max;
    const struct cm_node *refused; /* by the last choice */
    bool is_over;                  /* something failed that no other size mends */
    struct cm_error refusal;
};

static const size_t CLOSED = SIZE_MAX;

/* The tensor inside optionals and sequences; NULL: there is none, or it is inside a map. */
static const struct cm_type *type_innermost(const struct cm_type *type)
{
    while (type && (type->kind == CM_KIND_SEQUENCE || type->kind == CM_KIND_OPTIONAL))
        type = type->elem;
    return type && type->kind == CM_KIND_TENSOR ? type : NULL;
}

static const struct cm_value_def *input_at(const struct sizing *s, size_t i)
{
    return cm_value_get(s->graph->module, s->graph->inputs[i]);
}

/* ---- which sizes are open ---- */

static size_t open_size(struct sizing *s, size_t input, const struct cm_type *type, int axis)
{
    const struct cm_dim dim = type->dims[axis];
    const struct cm_str symbol =
        dim.symbol ? cm_symbol_name(cm_module_symbols(s->graph->module), dim.symbol) : CM_STR_NONE;

    for (size_t i = 0; dim.symbol && i < s->sizes->count; i++)
        if (s->sizes->items[i].number == dim.symbol)
            return i;
    const enum cm_size_role role = cm_size_role(symbol, input_at(s, input)->name, type, axis);
    *CM_PUSH(s->arena, s->sizes) = (struct cm_open_size){
        .symbol = symbol,
        .number = dim.symbol,
        .input = input,
        .axis = axis,
        .role = role,
        .size = cm_size_guess(role, type->rank, s->options->batch),
    };
    return s->sizes->count - 1;
}

static void open_input(struct sizing *s, size_t input, const struct cm_type *type)
{
    s->ranks[input] = type->rank;
    s->slots[input] = CM_NEW_ARRAY(s->arena, size_t, (size_t)type->rank);
    for (int axis = 0; axis < type->rank; axis++)
        s->slots[input][axis] =
            cm_dim_known(type->dims[axis]) ? CLOSED : open_size(s, input, type, axis);
}

/* A tensor of unknown rank, taken as of this one. */
static const struct cm_type *with_rank(struct sizing *s, const struct cm_type *type, int rank)
{
    struct cm_dim dims[CM_MAX_RANK];

    for (int i = 0; i < rank; i++)
        dims[i] = CM_DIM_ANY;
    return cm_type_tensor(s->arena, type->dtype, rank, dims);
}

/* The innermost tensor of an input, its rank known: from the shape it is given, or guessed. */
static const struct cm_type *tensor_at(struct sizing *s, size_t input, int rank_guess)
{
    const struct cm_type *type = type_innermost(s->types[input]);
    const struct cm_shape *shape = s->options->inputs[input].shape;

    if (type && type->rank == CM_RANK_UNKNOWN)
        return with_rank(s, type, shape ? shape->rank : rank_guess);
    return type;
}

/* ---- what the caller says ---- */

static enum cm_status give(struct sizing *s, struct cm_open_size *open, int64_t size, size_t input,
                           int axis, struct cm_error *err)
{
    if (open->is_given && open->size != size)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "input '%.*s': dimension %d ('%.*s') would be %lld, which is %lld elsewhere",
                       CM_STR_FMT(input_at(s, input)->name), axis, CM_STR_FMT(open->symbol),
                       (long long)size, (long long)open->size);
    open->is_given = true;
    open->size = size;
    return CM_OK;
}

static enum cm_status give_shape(struct sizing *s, size_t input, const struct cm_type *type,
                                 const struct cm_shape *shape, struct cm_error *err)
{
    const struct cm_str name = input_at(s, input)->name;

    if (shape->rank != type->rank)
        return cm_fail(err, CM_BAD_ARGUMENT, "input '%.*s' has rank %d, the shape given has %d",
                       CM_STR_FMT(name), type->rank, shape->rank);
    for (int axis = 0; axis < shape->rank; axis++) {
        const size_t slot = s->slots[input][axis];

        if (slot != CLOSED)
            CM_TRY(give(s, &s->sizes->items[slot], shape->dims[axis], input, axis, err));
        else if (type->dims[axis].value != shape->dims[axis])
            return cm_fail(err, CM_BAD_ARGUMENT,
                           "input '%.*s': dimension %d is %lld in the model, the shape given has "
                           "%lld",
                           CM_STR_FMT(name), axis, (long long)type->dims[axis].value,
                           (long long)shape->dims[axis]);
    }
    return CM_OK;
}

static enum cm_status refuse_setting(struct sizing *s, struct cm_str symbol, struct cm_error *err)
{
    char known[300] = "";
    size_t used = 0;

    for (size_t i = 0; i < s->sizes->count && used < sizeof known - 1; i++)
        if (s->sizes->items[i].symbol.size)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%.*s", used ? ", " : "",
                                     CM_STR_FMT(s->sizes->items[i].symbol));
    if (!used)
        return cm_fail(err, CM_NOT_FOUND,
                       "no open dimension is called '%.*s': none of the inputs that are made up "
                       "has a dimension with a name",
                       CM_STR_FMT(symbol));
    return cm_fail(err, CM_NOT_FOUND,
                   "no open dimension is called '%.*s'; of the inputs that are made up there are "
                   "%s",
                   CM_STR_FMT(symbol), known);
}

static enum cm_status apply_settings(struct sizing *s, struct cm_error *err)
{
    for (size_t k = 0; k < s->options->n_settings; k++) {
        const struct cm_size_setting *setting = &s->options->settings[k];
        bool found = false;

        for (size_t i = 0; i < s->sizes->count; i++) {
            struct cm_open_size *open = &s->sizes->items[i];

            if (!cm_str_equal(open->symbol, setting->symbol))
                continue;
            CM_TRY(give(s, open, setting->size, open->input, open->axis, err));
            found = true;
        }
        if (!found)
            return refuse_setting(s, setting->symbol, err);
    }
    return CM_OK;
}

static enum cm_status open_all(struct sizing *s, int rank_guess, struct cm_error *err)
{
    s->sizes->count = 0;
    for (size_t i = 0; i < s->graph->n_inputs; i++) {
        const struct cm_type *type =
            s->options->inputs[i].is_open ? tensor_at(s, i, rank_guess) : NULL;
        s->ranks[i] = -1;
        if (!type)
            continue;
        open_input(s, i, type);
        if (s->options->inputs[i].shape)
            CM_TRY(give_shape(s, i, type, s->options->inputs[i].shape, err));
    }
    CM_TRY(apply_settings(s, err));
    for (size_t i = 0; i < s->sizes->count; i++) {
        struct cm_open_size *open = &s->sizes->items[i];
        int64_t size;

        open->is_formula = !open->is_given && cm_size_formula(s->sizes, i, &size);
    }
    return CM_OK;
}

/* ---- trying sizes ---- */

/* The type with every size known; wrapped is a tensor, or sequences and optionals around it. */
static const struct cm_type *closed(struct sizing *s, size_t input, const struct cm_type *wrapped)
{
    struct cm_dim dims[CM_MAX_RANK];

    if (wrapped->kind != CM_KIND_TENSOR)
        return cm_type_wrap(s->arena, wrapped->kind, closed(s, input, wrapped->elem));
    for (int axis = 0; axis < s->ranks[input]; axis++) {
        const size_t slot = s->slots[input][axis];
        dims[axis] = slot == CLOSED ? wrapped->dims[axis] : CM_DIM(s->sizes->items[slot].size);
    }
    return cm_type_tensor(s->arena, wrapped->dtype, s->ranks[input], dims);
}

static bool is_too_large(const struct sizing *s)
{
    for (size_t i = 0; i < s->graph->n_inputs; i++) {
        double elements = 1;

        for (int axis = 0; axis < s->ranks[i]; axis++)
            if (s->slots[i][axis] != CLOSED)
                elements *= (double)s->sizes->items[s->slots[i][axis]].size;
        if (elements > ELEMENTS_MAX)
            return true;
    }
    return false;
}

/* How many nodes come before the first that is refused: all, if none is. */
static size_t try_sizes(struct sizing *s)
{
    struct cm_module *module = s->graph->module;
    size_t done = 0;

    for (size_t i = 0; i < s->sizes->count; i++)
        if (s->sizes->items[i].is_formula)
            (void)cm_size_formula(s->sizes, i, &s->sizes->items[i].size);
    s->tries++;
    s->refused = NULL;
    for (size_t i = 0; i < s->graph->n_inputs; i++) {
        if (s->ranks[i] < 0)
            continue;
        const struct cm_fact fact = {.type = closed(s, i, s->types[i])};
        s->sizes->types[i] = fact.type;
        cm_value_set_fact(module, s->graph->inputs[i], &fact);
    }
    for (struct cm_node *node = s->graph->first; node; node = node->next, done++) {
        s->refusal = (struct cm_error){0};
        const enum cm_status status = cm_node_retype(node, &s->refusal);

        if (status == CM_OK)
            continue;
        s->is_over = s->is_over || (status != CM_BAD_MODEL && status != CM_BAD_ARGUMENT);
        s->refused = node;
        return done;
    }
    return done;
}

static bool may_go_on(const struct sizing *s)
{
    return !s->is_over && s->tries < s->tries_max;
}

/* Keeps a choice that comes further than before. */
struct best {
    size_t done;
    int64_t *sizes; /* NULL: none is better */
};

static void keep_if_better(struct sizing *s, struct best *best)
{
    if (is_too_large(s))
        return;
    const size_t done = try_sizes(s);
    if (done <= best->done)
        return;
    best->done = done;
    if (!best->sizes)
        best->sizes = CM_NEW_ARRAY(s->arena, int64_t, s->sizes->count);
    for (size_t i = 0; i < s->sizes->count; i++)
        best->sizes[i] = s->sizes->items[i].size;
}

static bool is_free(const struct cm_open_size *open)
{
    return !open->is_given && !open->is_formula;
}

/* One size after the other, the rest as it is. */
static void try_each(struct sizing *s, const struct cm_node *refused, struct best *best)
{
    for (size_t i = 0; i < s->sizes->count; i++) {
        struct cm_open_size *open = &s->sizes->items[i];
        const int64_t before = open->size;
        struct cm_size_candidates list;

        if (!is_free(open))
            continue;
        cm_size_candidates(refused, before, &list);
        for (size_t k = 0; k < list.count && may_go_on(s); k++) {
            if (list.items[k] == before)
                continue;
            open->size = list.items[k];
            keep_if_better(s, best);
            if (best->done == s->graph->n_nodes)
                return;
        }
        open->size = before;
        (void)try_sizes(s); /* operands as they were, for the next list */
    }
}

static void set_role(struct sizing *s, enum cm_size_role role, int64_t size)
{
    for (size_t i = 0; i < s->sizes->count; i++)
        if (is_free(&s->sizes->items[i]) &&
            (s->sizes->items[i].role == role || role == CM_SIZE_OTHER))
            s->sizes->items[i].size = size;
}

/* Square images, coloured or grey; then everything alike. */
static void try_together(struct sizing *s, struct best *best)
{
    static const int64_t colours[] = {3, 1};

    for (size_t c = 0; c < CM_COUNT(colours); c++) {
        for (size_t i = 0; i < CM_COUNT(usual_sides) && may_go_on(s); i++) {
            set_role(s, CM_SIZE_CHANNELS, colours[c]);
            set_role(s, CM_SIZE_SPATIAL, usual_sides[i]);
            keep_if_better(s, best);
            if (best->done == s->graph->n_nodes)
                return;
        }
    }
    for (int64_t size = 1; size <= 64 && may_go_on(s); size *= 2) {
        set_role(s, CM_SIZE_OTHER, size); /* stands for all of them */
        keep_if_better(s, best);
        if (best->done == s->graph->n_nodes)
            return;
    }
}

static void use(struct sizing *s, const int64_t *sizes)
{
    for (size_t i = 0; i < s->sizes->count; i++)
        s->sizes->items[i].size = sizes[i];
}

static bool has_free(const struct sizing *s)
{
    for (size_t i = 0; i < s->sizes->count; i++)
        if (is_free(&s->sizes->items[i]))
            return true;
    return false;
}

/* Leaves the best sizes that were found in place; returns how far they come. */
static size_t search(struct sizing *s)
{
    const size_t n = s->sizes->count;
    int64_t *now = CM_NEW_ARRAY(s->arena, int64_t, n);
    size_t done = try_sizes(s);

    if (!has_free(s))
        return done;
    for (int round = 0; round < ROUNDS_MAX && done < s->graph->n_nodes && may_go_on(s); round++) {
        const struct cm_node *refused = s->refused;
        struct best best = {.done = done};

        for (size_t i = 0; i < n; i++)
            now[i] = s->sizes->items[i].size;
        try_each(s, refused, &best);
        if (best.done < s->graph->n_nodes && !best.sizes)
            try_together(s, &best);
        use(s, best.sizes ? best.sizes : now);
        done = try_sizes(s);
        if (!best.sizes)
            break;
    }
    return done;
}

/* Other first guesses, for a model that refused the usual ones as it ran. */
static void start_elsewhere(struct sizing *s)
{
    static const int64_t times[] = {1, 4, 32}, all[] = {1, 2, 8, 64};
    const unsigned attempt = s->options->attempt;

    for (size_t i = 0; i < s->sizes->count; i++) {
        struct cm_open_size *open = &s->sizes->items[i];
        const bool is_fitting = open->role == CM_SIZE_BATCH || open->role == CM_SIZE_CHANNELS;

        if (attempt < CM_COUNT(times) && is_free(open) && !is_fitting)
            open->size *= times[attempt];
        else if (attempt >= CM_COUNT(times) && is_free(open))
            open->size = all[(attempt - CM_COUNT(times)) % CM_COUNT(all)];
    }
}

enum cm_status cm_open_sizes_find(struct cm_graph *graph, const struct cm_size_options *options,
                                  struct cm_open_sizes *out, struct cm_error *err)
{
    static const int ranks[] = {2, 4, 3, 1, 0};
    struct cm_arena *arena = cm_module_arena(graph->module);
    struct sizing s = {.graph = graph, .arena = arena, .options = options, .sizes = out};
    bool has_rank = true;
    size_t best = 0, best_at = 0;

    s.tries_max = VISITS_MAX / (cm_graph_count(graph) + 1) + TRIES_MIN;
    if (s.tries_max > TRIES_MAX)
        s.tries_max = TRIES_MAX;
    *out = (struct cm_open_sizes){.types =
                                      CM_NEW_ARRAY(arena, const struct cm_type *, graph->n_inputs)};
    s.types = CM_NEW_ARRAY(arena, const struct cm_type *, graph->n_inputs);
    s.ranks = CM_NEW_ARRAY(arena, int, graph->n_inputs);
    s.slots = CM_NEW_ARRAY(arena, size_t *, graph->n_inputs);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        s.types[i] = input_at(&s, i)->fact.type;
        const struct cm_type *type = type_innermost(s.types[i]);

        if (options->inputs[i].is_open && type && type->rank == CM_RANK_UNKNOWN &&
            !options->inputs[i].shape)
            has_rank = false;
    }
    for (size_t r = 0; r < CM_COUNT(ranks) && !has_rank; r++) {
        CM_TRY(open_all(&s, ranks[r], err));
        const size_t done = try_sizes(&s);
        if (done <= best && r > 0)
            continue;
        best = done;
        best_at = r;
    }
    CM_TRY(open_all(&s, ranks[best_at], err));
    start_elsewhere(&s);
    out->fits = search(&s) == graph->n_nodes;
    if (!out->fits)
        snprintf(out->refusal, sizeof out->refusal, "%.390s", s.refusal.text);
    return CM_OK;
}
