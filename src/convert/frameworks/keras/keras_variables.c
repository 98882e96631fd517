/* The variables of a Keras optimizer, which are stored without names: iteration, learning rate
 * (unless a schedule gives it), then one run after the other of slots for all trained weights. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/keras/keras_optimizer.h"

enum { RUNS_MAX = 5 };

/* A run that an optimizer may have. */
struct run {
    struct cm_keras_run is;
    const char *setting; /* it is there when this setting is; NULL: always */
};

struct runs {
    struct run items[RUNS_MAX];
    size_t count;
};

/* Moves *at past the text up to one of `ends`. */
static const char *cut(struct cm_arena *arena, const char **at, const char *ends)
{
    const size_t size = strcspn(*at, ends);
    const char *text = cm_arena_str(arena, (struct cm_str){*at, size}).data;

    *at += size;
    return text;
}

/* All runs that an optimizer may have, in their order: two that all have, those of its file. */
static struct runs list_runs(const struct cm_saved *saved)
{
    struct runs runs = {
        .items = {{{{"average"}, {"_model_variables_moving_average"}}, "use_ema"},
                  {{{"gradient_accumulator"}, {"_slots"}}, "gradient_accumulation_steps"}},
        .count = 2};
    const char *at = cm_optimizer_rules[saved->rule].keras_runs;

    while (at && *at && runs.count < RUNS_MAX) {
        struct run *run = &runs.items[runs.count++];

        for (size_t word = 0; word < 2; word++) {
            run->is.words[word] = cut(saved->arena, &at, "/");
            at++;
            run->is.lists[word] = cut(saved->arena, &at, "+= ");
            if (*at != '+')
                break;
            at++;
        }
        if (*at == '=') {
            at++;
            run->setting = cut(saved->arena, &at, " ");
        }
        at += *at == ' ';
    }
    return runs;
}

struct fitting {
    struct cm_saved *saved;
    struct cm_saved_tensor *const *slots;
    size_t n_slots;
    const struct cm_keras_weight *weights;
    size_t n_weights;
    struct cm_keras_run runs[RUNS_MAX];
    size_t n_runs;
    size_t *chosen; /* weights, by position */
    size_t n_chosen;
    bool by_shape; /* the order does not fit, shapes alone decided */
};

static size_t words_in(const struct cm_keras_run *run)
{
    size_t count = 0;

    while (count < CM_COUNT(run->words) && run->words[count])
        count++;
    return count;
}

/* The runs of saved's rule; of the optional ones those whose bit is in mask. Returns how many are
 * optional. */
static unsigned choose_runs(struct fitting *f, unsigned mask)
{
    const struct runs runs = list_runs(f->saved);
    unsigned optional = 0;

    f->n_runs = 0;
    for (size_t i = 0; i < runs.count; i++)
        if (!runs.items[i].setting || mask >> optional++ & 1)
            f->runs[f->n_runs++] = runs.items[i].is;
    return optional;
}

/* The mask that a configuration says. */
static unsigned configured(const struct fitting *f, const struct cm_item *config)
{
    const struct runs runs = list_runs(f->saved);
    unsigned mask = 0, bit = 0;

    for (size_t i = 0; i < runs.count; i++)
        if (runs.items[i].setting) {
            const struct cm_item *value = cm_item_get(config, runs.items[i].setting);
            mask |= (unsigned)(cm_item_real_or(value, 0) != 0) << bit++;
        }
    return mask;
}

static bool same_shape(const struct cm_saved_tensor *a, const struct cm_saved_tensor *b)
{
    return cm_shape_equal(&a->shape, &b->shape);
}

/* Which weights the slots of the first run are for: in order, leaving out those that do not fit. */
static bool choose_in_order(struct fitting *f)
{
    const size_t step = words_in(&f->runs[0]);
    size_t at = 0;

    for (size_t i = 0; i < f->n_chosen; i++, at++) {
        while (at < f->n_weights &&
               (f->weights[at].is_frozen || !same_shape(f->weights[at].tensor, f->slots[i * step])))
            at++;
        if (at == f->n_weights)
            return false;
        f->chosen[i] = at;
    }
    return true;
}

static bool choose_by_shape(struct fitting *f)
{
    const size_t step = words_in(&f->runs[0]);
    bool *taken = CM_NEW_ARRAY(f->saved->arena, bool, f->n_weights + 1);

    if (f->n_weights > 2000)
        return false;
    for (size_t i = 0; i < f->n_chosen; i++) {
        size_t at = 0;

        while (at < f->n_weights && (taken[at] || f->weights[at].is_frozen ||
                                     !same_shape(f->weights[at].tensor, f->slots[i * step])))
            at++;
        if (at == f->n_weights)
            return false;
        taken[at] = true;
        f->chosen[i] = at;
    }
    return true;
}

static bool rest_fits(const struct fitting *f)
{
    size_t at = 0;

    for (size_t r = 0; r < f->n_runs; r++)
        for (size_t i = 0; i < f->n_chosen; i++)
            for (size_t w = 0; w < words_in(&f->runs[r]); w++, at++)
                if (!same_shape(f->weights[f->chosen[i]].tensor, f->slots[at]))
                    return false;
    return true;
}

static bool fits(struct fitting *f, unsigned mask, bool in_order)
{
    size_t each = 0;

    choose_runs(f, mask);
    for (size_t r = 0; r < f->n_runs; r++)
        each += words_in(&f->runs[r]);
    if (each == 0 ? f->n_slots > 0 : f->n_slots % each != 0)
        return false;
    f->n_chosen = each ? f->n_slots / each : 0;
    if (f->n_chosen > f->n_weights)
        return false;
    f->by_shape = each && !choose_in_order(f);
    if (f->by_shape && (in_order || !choose_by_shape(f)))
        return false;
    return rest_fits(f);
}

/* Without a configuration the fewest runs are tried first, and sums of gradients, which look like
 * moving averages, last. */
static bool fit_any(struct fitting *f, bool in_order)
{
    enum { SUMS = 2 }; /* the bit of their row */
    const unsigned masks = 1U << choose_runs(f, 0);

    for (unsigned sums = 0; sums <= SUMS; sums += SUMS)
        for (int bits = 0; 1U << bits <= masks; bits++)
            for (unsigned mask = masks; mask-- > 0;)
                if ((mask & SUMS) == sums && __builtin_popcount(mask) == bits &&
                    fits(f, mask, in_order))
                    return true;
    return false;
}

static bool fit(struct fitting *f, const struct cm_item *config)
{
    if (!config)
        return fit_any(f, true) || fit_any(f, false);
    const unsigned mask = configured(f, config);
    return fits(f, mask, true) || fits(f, mask, false);
}

static void add_slots(struct fitting *f)
{
    struct cm_saved *saved = f->saved;
    size_t at = 0;

    for (size_t r = 0; r < f->n_runs; r++)
        for (size_t i = 0; i < f->n_chosen; i++)
            for (size_t w = 0; w < words_in(&f->runs[r]); w++) {
                const struct cm_str word = cm_str(f->runs[r].words[w]);
                const struct cm_str name = f->weights[f->chosen[i]].name;

                if (cm_str_is(word, "average"))
                    cm_saved_add(saved, CM_SAVED_AVERAGE, name, f->slots[at++]);
                else
                    cm_saved_add_slot(saved, name, word, cm_keras_meaning(saved->rule, word),
                                      f->slots[at++]);
            }
}

static void set_names(struct fitting *f)
{
    struct cm_saved *saved = f->saved;
    struct cm_saved_group *group = &saved->groups.items[0];
    const bool has_slots = f->n_chosen > 0;

    for (size_t i = 0; i < (has_slots ? f->n_chosen : f->n_weights); i++)
        if (has_slots || !f->weights[i].is_frozen)
            *CM_PUSH(saved->arena, &group->names) = f->weights[has_slots ? f->chosen[i] : i].name;
}

void cm_keras_take_variables(struct cm_saved *saved, struct cm_saved_tensor *const *variables,
                             size_t count, const struct cm_keras_weight *weights, size_t n_weights,
                             const struct cm_item *config)
{
    struct cm_plan_group *group = &saved->groups.items[0].settings;
    struct fitting f = {.saved = saved, .weights = weights, .n_weights = n_weights};
    size_t first = 0;
    double value;

    if (count > 0 && variables[0]->shape.rank == 0 &&
        cm_saved_tensor_number(variables[0], &value)) {
        saved->step = value >= 0 && value < 1e18 ? (int64_t)value : -1;
        first = 1;
    }
    if (count > first && variables[first]->shape.rank == 0 &&
        cm_dtype_is_float(variables[first]->dtype) &&
        cm_saved_tensor_number(variables[first], &value)) {
        group->lr = group->initial_lr = value;
        first++;
    } else
        saved->schedule_known = CM_SCHEDULE_UNKNOWN;
    f.slots = variables + first;
    f.n_slots = count - first;
    f.chosen = CM_NEW_ARRAY(saved->arena, size_t, n_weights + 1);
    if (saved->rule != CM_RULE_UNKNOWN && fit(&f, config)) {
        add_slots(&f);
        set_names(&f);
        if (f.by_shape)
            cm_saved_unknown(saved, "the order of the optimizer's variables is not that of the "
                                    "weights: they were told apart by their shapes");
        return;
    }
    f.n_chosen = f.n_runs = f.n_slots = 0;
    set_names(&f);
    for (size_t i = first; i < count; i++)
        cm_saved_add_slot(saved, cm_arena_printf(saved->arena, "optimizer/vars/%zu", i),
                          CM_STR("variable"), NULL, variables[i]);
    cm_saved_missing(saved,
                     "which weights the %zu variables of the optimizer belong to: their shapes are "
                     "not those of %zu weights in any order that Keras has",
                     count - first, n_weights);
}

size_t cm_keras_runs(const struct cm_saved *saved, struct cm_keras_run *out)
{
    struct fitting f = {.saved = (struct cm_saved *)saved};
    const struct runs runs = list_runs(saved);
    unsigned mask = 0, bit = 0;

    for (size_t i = 0; i < runs.count; i++) {
        const struct run *run = &runs.items[i];
        const char *meaning = cm_keras_meaning(saved->rule, cm_str(run->is.words[0]));
        bool there = false;

        for (size_t e = 0; run->setting && e < saved->entries.count && !there; e++) {
            const struct cm_saved_entry *entry = &saved->entries.items[e];

            there = entry->role == CM_SAVED_AVERAGE
                        ? strcmp(run->is.words[0], "average") == 0
                        : entry->role == CM_SAVED_SLOT && meaning && entry->meaning &&
                              strcmp(entry->meaning, meaning) == 0;
        }
        if (run->setting)
            mask |= (unsigned)there << bit++;
    }
    choose_runs(&f, mask);
    memcpy(out, f.runs, f.n_runs * sizeof *out);
    return f.n_runs;
}

bool cm_keras_has_rate(const struct cm_saved *saved)
{
    return saved->schedule_known == CM_SCHEDULE_NONE ||
           (saved->schedule_known == CM_SCHEDULE_KNOWN && saved->schedule.count == 0);
}

/* ---- small facts ---- */

enum { KEPT_MAX = 16 };

const struct cm_item *cm_keras_keep(struct cm_arena *arena, const struct cm_saved_tensor *tensor)
{
    const int64_t count = cm_shape_elements(&tensor->shape);
    struct cm_saved_reader reader = {0};
    uint64_t room[KEPT_MAX] = {0};

    if (count > KEPT_MAX || tensor->shape.rank != 1 || cm_dtype_is_float((int)tensor->dtype) ||
        !cm_dtype_is_real((int)tensor->dtype) || cm_dtype_size(tensor->dtype) > 8 ||
        cm_saved_tensor_read(&reader, tensor, 0, count, room, NULL) != CM_OK)
        return NULL;
    const struct cm_tensor view = cm_tensor_borrow(tensor->dtype, &tensor->shape, room);
    struct cm_item *item = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_item *values = cm_item_new(arena, CM_ITEM_LIST);
    for (int64_t i = 0; i < count; i++)
        cm_item_append(arena, values, cm_item_int(arena, cm_tensor_int(&view, i)));
    cm_item_put(arena, item, "type", cm_item_text(arena, cm_str(cm_dtype_name(tensor->dtype))));
    cm_item_put(arena, item, "values", values);
    return item;
}

const struct cm_saved_tensor *cm_keras_kept(struct cm_arena *arena, const struct cm_item *kept)
{
    const struct cm_item *values = cm_item_get(kept, "values");
    const size_t count = cm_item_count(values);
    struct cm_saved_tensor *tensor = NULL;
    struct cm_str type = CM_STR_NONE;
    enum cm_dtype dtype;

    if (!cm_item_is_text(cm_item_get(kept, "type"), &type) || !cm_dtype_parse(type, &dtype) ||
        count == 0 || cm_dtype_size(dtype) == 0 || cm_dtype_size(dtype) > 8)
        return NULL;
    const size_t width = cm_dtype_size(dtype);
    char *bytes = cm_arena_alloc(arena, count * width);
    for (size_t i = 0; i < count; i++) {
        int64_t value = 0;

        (void)cm_item_is_int(cm_item_at(values, i), &value);
        memcpy(bytes + i * width, &value, width);
    }
    return cm_saved_tensor_new(arena, dtype, &CM_SHAPE((int64_t)count),
                               (struct cm_str){bytes, count * width}, CM_STR("memory"), &tensor,
                               NULL)
               ? NULL
               : tensor;
}
