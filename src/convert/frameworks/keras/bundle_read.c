/* TensorFlow checkpoints: the bundle of a folder, its variables as weights, slots and settings. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/leveldb.h"
#include "convert/frameworks/keras/bundle.h"
#include "convert/frameworks/keras/keras_optimizer.h"

#define KIND "a TensorFlow checkpoint"

/* ---- which bundle ---- */

static struct cm_str without(struct cm_str name, size_t size)
{
    return (struct cm_str){name.data, name.size - size};
}

/* "ckpt-10" of "ckpt-10.index" and "ckpt-10.data-00000-of-00001"; empty: it is neither. */
static struct cm_str prefix_of(struct cm_str name)
{
    enum { TAIL = sizeof ".data-00000-of-00001" - 1 };

    if (cm_str_ends(name, ".index"))
        return without(name, sizeof ".index" - 1);
    if (name.size > TAIL && memcmp(name.data + name.size - TAIL, ".data-", 6) == 0)
        return without(name, TAIL);
    return CM_STR_NONE;
}

static bool is_state(struct cm_saved_place *place, struct cm_str name)
{
    const struct cm_str head = cm_place_head(place, name);

    return cm_str_starts(head, "model_checkpoint_path:");
}

/* What the text file "checkpoint" says was saved last: the name without its folder. */
static struct cm_str latest(struct cm_saved_place *place, struct cm_str name)
{
    struct cm_str text;

    if (!is_state(place, name) || cm_place_map(place, name, &text, NULL))
        return CM_STR_NONE;
    const char *begin = memchr(text.data, '"', text.size);
    if (!begin)
        return CM_STR_NONE;
    begin++;
    const char *end = memchr(begin, '"', text.size - (size_t)(begin - text.data));
    if (!end)
        return CM_STR_NONE;
    return cm_str_after_last((struct cm_str){begin, (size_t)(end - begin)}, '/');
}

static bool has_index(struct cm_saved_place *place, struct cm_str prefix)
{
    const struct cm_str name = cm_arena_printf(place->arena, "%.*s.index", CM_STR_ALL(prefix));
    struct cm_str bytes;

    if (!prefix.size || (!place->file.size && !cm_place_has(place, name)))
        return false;
    return cm_place_map(place, name, &bytes, NULL) == CM_OK && cm_table_is(bytes);
}

/* Of a folder: what "checkpoint" says, or the bundle with the largest number. */
static struct cm_str find_prefix(struct cm_saved_place *place)
{
    struct cm_str best = CM_STR_NONE;

    if (place->file.size) {
        const struct cm_str prefix =
            is_state(place, place->file) ? latest(place, place->file) : prefix_of(place->file);
        return has_index(place, prefix) ? prefix : CM_STR_NONE;
    }
    if (cm_place_has(place, CM_STR("checkpoint")))
        best = latest(place, CM_STR("checkpoint"));
    if (has_index(place, best))
        return best;
    best = CM_STR_NONE;
    for (size_t i = 0; i < place->names.count; i++) {
        const struct cm_str name = place->names.items[i];
        const struct cm_str prefix = cm_str_ends(name, ".index") ? prefix_of(name) : CM_STR_NONE;

        if (prefix.size &&
            (!best.size || cm_str_number_at_end(prefix) > cm_str_number_at_end(best)) &&
            has_index(place, prefix))
            best = prefix;
    }
    return best;
}

static int recognize(struct cm_saved_place *place)
{
    return find_prefix(place).size ? 2 : 0;
}

/* ---- entries ---- */

struct reading {
    struct cm_saved *saved;
    struct cm_bundle bundle;
    struct cm_bundle_graph graph;
    struct cm_bundle_roles roles;
    struct cm_item *numbers; /* variables that are a few numbers, by key */
};

static bool number_in(const struct reading *r, struct cm_str key, double *out)
{
    const struct cm_bundle_entry *entry = cm_bundle_find(&r->bundle, key);

    return entry && entry->tensor && cm_saved_tensor_number(entry->tensor, out);
}

static bool is_buffer(struct cm_str name)
{
    static const char *const ends[] = {"moving_mean", "moving_variance", "moving_var"};

    for (size_t i = 0; i < CM_COUNT(ends); i++)
        if (cm_str_ends(name, ends[i]))
            return true;
    return false;
}

static void add_weight(struct reading *r, struct cm_str name, struct cm_saved_tensor *tensor)
{
    const enum cm_saved_role role = cm_str_ends(name, "seed_generator_state") ? CM_SAVED_RANDOM
                                    : is_buffer(name)                         ? CM_SAVED_BUFFER
                                    : cm_dtype_is_float(tensor->dtype)        ? CM_SAVED_WEIGHT
                                                                              : CM_SAVED_OTHER;

    cm_saved_add(r->saved, role, name, tensor);
}

/* Numbers that stand beside weights: kept by key, and some of them are known. */
static void add_number(struct reading *r, struct cm_str key, struct cm_str name, double value)
{
    const bool whole = value == floor(value) && fabs(value) < 1e15;
    int64_t *where = cm_str_is(name, "epoch")                                    ? &r->saved->epoch
                     : cm_str_is(name, "step") || cm_str_is(name, "global_step") ? &r->saved->step
                                                                                 : NULL;

    cm_item_set(r->saved->arena, r->numbers, cm_item_text(r->saved->arena, key),
                whole ? cm_item_int(r->saved->arena, (int64_t)value)
                      : cm_item_real(r->saved->arena, value));
    if (where && whole && value >= 0 && *where < 0)
        *where = (int64_t)value;
}

static void add_variable(struct reading *r, size_t i)
{
    const struct cm_bundle_variable *variable = &r->roles.variables[i];
    const struct cm_str key = r->graph.nodes[i].key;
    struct cm_plan_group *group =
        r->saved->groups.count ? &r->saved->groups.items[0].settings : NULL;
    struct cm_saved_tensor *tensor = cm_bundle_find(&r->bundle, key)->tensor;
    const struct cm_item *kept;
    double value = NAN;

    (void)cm_saved_tensor_number(tensor, &value);
    switch (variable->use) {
    case CM_USE_WEIGHT:
        add_weight(r, variable->name, tensor);
        kept = cm_keras_keep(r->saved->arena, tensor);
        if (kept)
            cm_item_set(r->saved->arena, r->numbers, cm_item_text(r->saved->arena, key), kept);
        break;
    case CM_USE_AVERAGE:
        cm_saved_add(r->saved, CM_SAVED_AVERAGE, variable->name, tensor);
        break;
    case CM_USE_SLOT:
        cm_saved_add_slot(r->saved, variable->name, variable->slot,
                          cm_keras_meaning(r->saved->rule, variable->slot), tensor);
        break;
    case CM_USE_STEP:
        if (value >= 0 && value < 1e18)
            r->saved->step = (int64_t)value;
        break;
    case CM_USE_RATE:
        group->lr = group->initial_lr = value;
        break;
    case CM_USE_SETTING:
        if (cm_str_ends(r->graph.nodes[i].path, "beta_1"))
            group->beta1 = value;
        else if (cm_str_ends(r->graph.nodes[i].path, "momentum"))
            group->momentum = value;
        else if (cm_str_ends(r->graph.nodes[i].path, "decay")) {
            if (value != 0) {
                r->saved->schedule_known = CM_SCHEDULE_UNKNOWN;
                cm_saved_unknown(r->saved, "the optimizer's 'decay' of %g", value);
            }
        } else
            group->beta2 = value;
        break;
    default:
        if (!isnan(value))
            add_number(r, key, variable->name, value);
        else
            cm_saved_add(r->saved, CM_SAVED_OTHER, variable->name, tensor);
    }
}

/* ---- the optimizer ---- */

static bool has_slot(const struct reading *r, const char *word)
{
    for (size_t i = 0; i < r->graph.count; i++)
        if (r->roles.variables[i].use == CM_USE_SLOT && cm_str_is(r->roles.variables[i].slot, word))
            return true;
    return false;
}

static bool has_negative(const struct cm_saved_tensor *tensor)
{
    enum { LOOKED_AT = 1024 };
    float values[LOOKED_AT];
    struct cm_saved_reader reader = {0};
    const int64_t count = cm_shape_elements(&tensor->shape);
    const int64_t some = count < LOOKED_AT ? count : LOOKED_AT;

    if (tensor->dtype != CM_FLOAT ||
        cm_saved_tensor_read(&reader, tensor, 0, some, values, NULL) != CM_OK)
        return false;
    for (int64_t i = 0; i < some; i++)
        if (values[i] < 0)
            return true;
    return false;
}

/* Somebody's own optimizer with one nameless slot: sums of squares are not negative, so that what
 * is, is a momentum. */
static void guess_momentum(struct reading *r)
{
    bool negative = false;

    for (size_t i = 0; i < r->graph.count; i++) {
        const struct cm_bundle_variable *variable = &r->roles.variables[i];

        if (variable->use == CM_USE_SLOT && variable->slot.size)
            return;
        if (variable->use == CM_USE_SLOT && !negative)
            negative = has_negative(cm_bundle_find(&r->bundle, r->graph.nodes[i].key)->tensor);
    }
    if (!negative)
        return;
    r->saved->rule = cm_optimizer_stateless();
    for (size_t i = 0; i < r->graph.count; i++)
        if (r->roles.variables[i].use == CM_USE_SLOT)
            r->roles.variables[i].slot = CM_STR("momentum");
}

/* Is the state there under any of Keras's words for it? */
static bool has_state(const struct reading *r, const struct cm_optimizer_state *state)
{
    for (const char *at = state->keras ? state->keras : ""; *at;) {
        at += *at == '*';
        const size_t size = strcspn(at, ",");
        if (has_slot(r, cm_arena_str(r->saved->arena, (struct cm_str){at, size}).data))
            return true;
        at += size + (at[size] == ',');
    }
    return false;
}

/* The rule that has the most of the slots, and needs no other. */
static enum cm_update_rule rule_of_slots(const struct reading *r)
{
    enum cm_update_rule best = CM_RULE_UNKNOWN;
    size_t most = 0;

    for (enum cm_update_rule rule = CM_RULE_UNKNOWN + 1; rule < CM_RULES; rule++) {
        const struct cm_optimizer_state *state = cm_optimizer_rules[rule].states;
        size_t found = 0;

        for (; state->name; state++) {
            const bool is_there = has_state(r, state);

            if (!is_there && !state->when)
                break;
            found += is_there ? state->when ? 1 : 2 : 0; /* what it always has tells more */
        }
        if (!state->name && found > most) {
            most = found;
            best = rule;
        }
    }
    return best;
}

static void begin_optimizer(struct reading *r)
{
    struct cm_saved *saved = r->saved;

    cm_saved_add_group(saved);
    cm_keras_set_optimizer(saved, r->roles.by_hand ? CM_STR_NONE : r->roles.optimizer_name);
    if (r->roles.by_hand)
        guess_momentum(r);
    else if (saved->rule == CM_RULE_UNKNOWN && !saved->optimizer.size)
        saved->rule = rule_of_slots(r);
    struct cm_plan_group *group = &saved->groups.items[0].settings;
    enum cm_update_rule rule;
    const struct cm_optimizer_keras *found = cm_keras_optimizer(saved->optimizer, &rule);
    if (!found || !found->decays)
        group->weight_decay = 0;
    group->decoupled = 1;
    if (r->roles.by_hand)
        group->nesterov = 0; /* what somebody writes by hand is the plain form */
    if (r->roles.optimizers > 1)
        cm_saved_unknown(saved, "%zu optimizers: only the first is taken", r->roles.optimizers);
}

static bool has_rate(const struct reading *r)
{
    for (size_t i = 0; i < r->graph.count; i++)
        if (r->roles.variables[i].use == CM_USE_RATE)
            return true;
    return false;
}

/* The weights that are trained: those in the optimizer's list, or with slots, or all. */
static void set_trained(struct reading *r)
{
    struct cm_saved *saved = r->saved;
    struct cm_saved_group *group = &saved->groups.items[0];
    struct cm_map with_slots = {0};
    bool any = false;

    for (size_t i = 0; i < r->graph.count; i++)
        any |= r->roles.variables[i].position != SIZE_MAX;
    for (size_t i = 0; i < saved->entries.count; i++)
        if (saved->entries.items[i].role == CM_SAVED_SLOT)
            cm_map_insert(&with_slots, saved->arena, saved->entries.items[i].name, NULL);
    if (any) {
        struct cm_str *names = CM_NEW_ARRAY(saved->arena, struct cm_str, r->graph.count);

        for (size_t i = 0; i < r->graph.count; i++)
            if (r->roles.variables[i].position < r->graph.count)
                names[r->roles.variables[i].position] = r->roles.variables[i].name;
        for (size_t i = 0; i < r->graph.count; i++)
            if (names[i].size)
                *CM_PUSH(saved->arena, &group->names) = names[i];
        return;
    }
    for (size_t i = 0; i < saved->entries.count; i++) {
        const struct cm_saved_entry *entry = &saved->entries.items[i];

        if (entry->role == CM_SAVED_WEIGHT &&
            (!with_slots.count || cm_map_find(&with_slots, entry->name)))
            *CM_PUSH(saved->arena, &group->names) = entry->name;
    }
}

static const struct cm_shape *shape_in(const void *arg, struct cm_str key)
{
    const struct cm_bundle_entry *entry = cm_bundle_find(arg, key);

    return entry && entry->tensor ? &entry->tensor->shape : NULL;
}

/* Variables that no object of the graph has. */
static void add_orphans(struct reading *r)
{
    struct cm_map known = {0};

    for (size_t i = 0; i < r->graph.count; i++)
        if (r->graph.nodes[i].key.size)
            cm_map_insert(&known, r->saved->arena, r->graph.nodes[i].key, NULL);
    for (size_t i = 0; i < r->bundle.entries.count; i++) {
        const struct cm_bundle_entry *entry = &r->bundle.entries.items[i];

        if (entry->tensor && !cm_map_find(&known, entry->key))
            cm_saved_add(r->saved, CM_SAVED_OTHER, entry->key, entry->tensor);
    }
}

static enum cm_status read_objects(struct reading *r, struct cm_str graph, struct cm_error *err)
{
    struct cm_saved *saved = r->saved;

    CM_TRY(cm_bundle_graph_parse(saved->arena, graph, &r->graph, err));
    cm_bundle_roles(saved->arena, &r->graph, shape_in, &r->bundle, &r->roles);
    if (r->roles.optimizer)
        begin_optimizer(r);
    for (int weights = 1; weights >= 0; weights--)
        for (size_t i = 0; i < r->graph.count; i++)
            if (r->roles.variables[i].use != CM_USE_NONE &&
                (r->roles.variables[i].use == CM_USE_WEIGHT) == weights)
                add_variable(r, i);
    add_orphans(r);
    if (r->roles.optimizer) {
        if (!has_rate(r) && !r->roles.by_hand)
            saved->schedule_known = CM_SCHEDULE_UNKNOWN;
        set_trained(r);
    }
    cm_saved_tell(saved, "tensorflow.objects", cm_bundle_graph_item(saved->arena, &r->graph));
    return CM_OK;
}

/* ---- without objects: names only ---- */

/* A slot is called as its weight, then the optimizer's word for it: "w/Adam_1". */
struct named_slot {
    struct cm_str weight, word;
    enum cm_update_rule rule; /* CM_RULE_UNKNOWN: a mean of the weight */
};

/* Is key a slot of a weight that is there? */
static bool find_slot(const struct reading *r, struct cm_str key, struct named_slot *out)
{
    out->word = cm_str_after_last(key, '/');
    out->weight = cm_str_before_last(key, '/');
    if (!out->weight.size || !out->word.size || *out->word.data < 'A' || *out->word.data > 'Z')
        return false;
    out->rule = cm_keras_rule_of_slot(out->word);
    return (out->rule != CM_RULE_UNKNOWN || cm_str_is(out->word, "ExponentialMovingAverage")) &&
           cm_bundle_find(&r->bundle, out->weight);
}

static void add_named(struct reading *r, const struct cm_bundle_entry *entry)
{
    struct cm_saved *saved = r->saved;
    struct named_slot slot;
    double value;

    if (find_slot(r, entry->key, &slot)) {
        if (slot.rule != CM_RULE_UNKNOWN && !saved->has_optimizer) {
            cm_saved_add_group(saved);
            cm_keras_set_optimizer(saved, cm_str(cm_optimizer_rules[slot.rule].keras->class_name));
            if (cm_optimizer_may(slot.rule, "nesterov")) /* SGD's momentum has no rate in it */
                saved->arithmetic = CM_LIKE_OPTAX;
        }
        if (slot.rule != CM_RULE_UNKNOWN)
            cm_saved_add_slot(saved, slot.weight, slot.word,
                              cm_keras_meaning(saved->rule, slot.word), entry->tensor);
        else
            cm_saved_add(saved, CM_SAVED_AVERAGE, slot.weight, entry->tensor);
    } else if (entry->tensor->shape.rank == 0 && cm_saved_tensor_number(entry->tensor, &value))
        add_number(r, entry->key, entry->key, value);
    else
        add_weight(r, entry->key, entry->tensor);
}

/* The powers of Adam's betas, which are one ahead of the step. */
static void take_betas(struct reading *r)
{
    struct cm_plan_group *group = &r->saved->groups.items[0].settings;
    double powers[2];

    if (!number_in(r, CM_STR("beta1_power"), &powers[0]) ||
        !number_in(r, CM_STR("beta2_power"), &powers[1]))
        return;
    if (r->saved->step < 0) { /* from the usual beta1; beta2 must agree */
        const double steps = log(powers[0]) / log(0.9) - 1;
        if (!(steps >= -0.01 && steps < 1e6 && fabs(steps - nearbyint(steps)) < 0.01))
            return;
        r->saved->step = (int64_t)nearbyint(steps);
    }
    const double exponent = 1.0 / ((double)r->saved->step + 1);
    group->beta1 = nearbyint(pow(powers[0], exponent) * 1e5) / 1e5;
    group->beta2 = nearbyint(pow(powers[1], exponent) * 1e6) / 1e6;
}

static void read_named(struct reading *r)
{
    for (size_t i = 0; i < r->bundle.entries.count; i++)
        if (r->bundle.entries.items[i].tensor)
            add_named(r, &r->bundle.entries.items[i]);
    if (!r->saved->has_optimizer)
        return;
    struct cm_plan_group *group = &r->saved->groups.items[0].settings;
    group->weight_decay = 0;
    if (cm_optimizer_has(r->saved->rule, "beta1"))
        take_betas(r);
    const struct cm_rule_number *fixed = cm_optimizer_rules[r->saved->rule].tensorflow1;
    for (; fixed && fixed->name; fixed++)
        cm_group_field_set(group, cm_group_field_find(fixed->name), fixed->value);
    r->saved->schedule_known = CM_SCHEDULE_UNKNOWN;
    set_trained(r);
}

/* ---- all ---- */

static void tell_rest(struct reading *r)
{
    struct cm_saved *saved = r->saved;
    struct cm_item *texts = cm_item_new(saved->arena, CM_ITEM_MAP);

    for (size_t i = 0; i < r->bundle.entries.count; i++) {
        const struct cm_bundle_entry *entry = &r->bundle.entries.items[i];

        if (entry->text.data && !cm_str_is(entry->key, CM_BUNDLE_GRAPH_KEY))
            cm_item_set(saved->arena, texts, cm_item_text(saved->arena, entry->key),
                        cm_item_text(saved->arena, entry->text));
        else if (!entry->tensor && !entry->text.data)
            cm_saved_unknown(saved, "'%.*s': tensors of TensorFlow's type %llu are not read",
                             CM_STR_FMT(entry->key), (unsigned long long)entry->type);
    }
    if (cm_item_count(texts))
        cm_saved_tell(saved, "tensorflow.texts", texts);
    if (cm_item_count(r->numbers))
        cm_saved_tell(saved, "tensorflow.variables", r->numbers);
}

static enum cm_status read(struct cm_saved_place *place, struct cm_saved *saved,
                           struct cm_error *err)
{
    struct reading r = {.saved = saved, .numbers = cm_item_new(saved->arena, CM_ITEM_MAP)};

    CM_TRY(cm_bundle_read(place, find_prefix(place), &r.bundle, err));
    const struct cm_bundle_entry *graph = cm_bundle_find(&r.bundle, CM_STR(CM_BUNDLE_GRAPH_KEY));
    if (graph && graph->text.data)
        CM_TRY(read_objects(&r, graph->text, err));
    else
        read_named(&r);
    tell_rest(&r);
    cm_keras_missing(saved, KIND);
    return CM_OK;
}

const struct cm_format cm_format_tensorflow = {
    .name = "tensorflow",
    .system = "TensorFlow",
    .what = "a checkpoint of tf.train.Checkpoint or Saver, or the variables of a SavedModel",
    .recognize = recognize,
    .read = read,
    .write = cm_bundle_write,
};
