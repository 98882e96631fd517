/* Which weights the numbered parameters of an optimizer are. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/torch/torch_names.h"

static bool has(struct cm_str name, const char *part)
{
    const size_t size = strlen(part);

    for (size_t i = 0; i + size <= name.size; i++) {
        size_t k = 0;
        while (k < size && (name.data[i + k] | 0x20) == part[k])
            k++;
        if (k == size)
            return true;
    }
    return false;
}

/* What people give weight decay to. */
static bool is_wide(const struct cm_torch_weight *weight)
{
    return weight->shape->rank >= 2;
}

static bool is_no_bias(const struct cm_torch_weight *weight)
{
    return !has(weight->name, "bias");
}

static bool is_no_bias_or_norm(const struct cm_torch_weight *weight)
{
    return is_no_bias(weight) && !has(weight->name, "norm") && !has(weight->name, "bn") &&
           !has(weight->name, "ln_");
}

/* As the Trainer has it: modules called "norm", "x_norm" or with "layernorm" in their names. */
static bool is_decayed_by_trainer(const struct cm_torch_weight *weight)
{
    struct cm_str name = weight->name;

    for (size_t i = 0; i + 4 <= name.size; i++) {
        const bool begins = i == 0 || name.data[i - 1] == '.' || name.data[i - 1] == '_';
        const bool ends = i + 4 == name.size || name.data[i + 4] == '.';
        if (begins && ends && memcmp(name.data + i, "norm", 4) == 0)
            return false;
    }
    return is_no_bias(weight) && !has(name, "layernorm") && !has(name, "rmsnorm");
}

typedef bool part_fn(const struct cm_torch_weight *weight);
static part_fn *const parts[] = {is_wide, is_decayed_by_trainer, is_no_bias_or_norm, is_no_bias};

static bool fits(const struct cm_torch_naming *naming, size_t parameter,
                 const struct cm_torch_weight *weight)
{
    const struct cm_shape *shape = naming->shapes[parameter];

    return !shape || cm_shape_equal(shape, weight->shape);
}

/* A way of grouping: groups take weights in turn (from the end, if backwards), or every two take
 * some and part them by `part`, the ones it holds for going to the first (second) of the two. */
struct way {
    part_fn *part;
    bool second, backwards;
};

static bool try_way(const struct cm_torch_naming *naming, const struct cm_torch_weight *weights,
                    const struct way *way, struct cm_str *out)
{
    const size_t step = way->part ? 2 : 1;
    size_t first = way->backwards ? naming->n_weights : 0, parameter = 0;

    if (naming->n_groups % step || naming->n_weights != naming->count)
        return false;
    for (size_t group = 0; group < naming->n_groups; group += step) {
        const size_t size = naming->sizes[group] + (step == 2 ? naming->sizes[group + 1] : 0);
        size_t at[2] = {parameter, parameter + naming->sizes[group]};
        const size_t end[2] = {at[1], parameter + size};

        first -= way->backwards ? size : 0;
        for (size_t i = first; i < first + size; i++) {
            const bool holds = !way->part || way->part(&weights[i]);
            const int which = way->part && holds == way->second;
            if (at[which] == end[which] || !fits(naming, at[which], &weights[i]))
                return false;
            out[at[which]++] = weights[i].name;
        }
        first += way->backwards ? 0 : size;
        parameter += size;
    }
    return true;
}

/* Some weights are no parameters (frozen, or buffers): those that are follow one another in each
 * group, and are taken where the first and the last way to find them are the same. `part` tells
 * which weights may be in a group. */
static bool try_some(const struct cm_torch_naming *naming, const struct cm_torch_weight *weights,
                     part_fn *part, struct cm_str *out)
{
    size_t begin = 0;

    if (naming->n_groups != (part ? 2 : 1) || naming->n_weights <= naming->count)
        return false;
    for (size_t group = 0; group < naming->n_groups; group++) {
        const size_t end = begin + naming->sizes[group];
        size_t parameter = begin;

        for (size_t i = 0; i < naming->n_weights && parameter < end; i++)
            if ((!part || part(&weights[i]) == (group == 0)) &&
                fits(naming, parameter, &weights[i]))
                out[parameter++] = weights[i].name;
        if (parameter < end)
            return false;
        for (size_t i = naming->n_weights; i > 0 && parameter > begin; i--)
            if ((!part || part(&weights[i - 1]) == (group == 0)) &&
                fits(naming, parameter - 1, &weights[i - 1]) &&
                !cm_str_equal(out[--parameter], weights[i - 1].name))
                return false;
        begin = end;
    }
    return true;
}

/* Two groups that interleave in some other way, found where there is only one: how many ways there
 * are (none, one, more) to give the weights from i on, of which the first group has had k. */
static bool try_two(const struct cm_torch_naming *naming, const struct cm_torch_weight *weights,
                    struct cm_str *out)
{
    const size_t count = naming->count, first = naming->n_groups == 2 ? naming->sizes[0] : 0;

    if (naming->n_groups != 2 || naming->n_weights != count || count > 2000)
        return false;
    uint8_t *ways = cm_arena_alloc(naming->arena, (count + 1) * (first + 1));
    ways[count * (first + 1) + first] = 1;
    for (size_t i = count; i-- > 0;) {
        for (size_t k = 0; k <= first && k <= i; k++) {
            const size_t other = first + i - k; /* parameter of the second group */
            unsigned n = 0;
            if (k < first && fits(naming, k, &weights[i]))
                n += ways[(i + 1) * (first + 1) + k + 1];
            if (other < count && fits(naming, other, &weights[i]))
                n += ways[(i + 1) * (first + 1) + k];
            ways[i * (first + 1) + k] = (uint8_t)(n > 2 ? 2 : n);
        }
    }
    if (ways[0] != 1)
        return false;
    for (size_t i = 0, k = 0; i < count; i++) {
        const bool is_first =
            k < first && fits(naming, k, &weights[i]) && ways[(i + 1) * (first + 1) + k + 1];
        out[is_first ? k : first + i - k] = weights[i].name;
        k += is_first;
    }
    return true;
}

/* One order of the weights, in every way of grouping; groups that differ in whether they decay were
 * parted for that. */
static bool try_order(const struct cm_torch_naming *naming, const struct cm_torch_weight *weights,
                      bool is_order_sure, struct cm_str *out)
{
    bool some_decay = false, some_not = false, some_known = naming->n_groups == 1;

    for (size_t i = 0; i < naming->n_groups; i++) {
        some_decay |= naming->decays[i] > 0;
        some_not |= naming->decays[i] == 0;
    }
    for (size_t i = 0; i < naming->count; i++)
        some_known |= naming->shapes[i] != NULL;
    const bool in_turn = !(some_decay && some_not);
    for (int backwards = 0; backwards < 2; backwards++) {
        const struct way plain = {NULL, false, backwards};
        if (some_known && in_turn && try_way(naming, weights, &plain, out))
            return true;
        for (size_t i = 0; i < CM_COUNT(parts); i++)
            for (int second = 0; second < 2; second++)
                if (try_way(naming, weights, &(struct way){parts[i], second, backwards}, out))
                    return true;
        if (some_known && !in_turn && try_way(naming, weights, &plain, out))
            return true;
        if (naming->n_groups == 1)
            break;
    }
    if (try_some(naming, weights, NULL, out))
        return true;
    for (size_t i = 0; i < CM_COUNT(parts); i++)
        if (try_some(naming, weights, parts[i], out))
            return true;
    return is_order_sure && try_two(naming, weights, out);
}

/* safetensors and others list by name: a bias comes before its weight. */
static bool is_sorted(const struct cm_torch_naming *naming)
{
    for (size_t i = 1; i < naming->n_weights; i++)
        if (cm_str_compare(naming->weights[i - 1].name, naming->weights[i].name) > 0)
            return false;
    return naming->n_weights > 1;
}

bool cm_torch_name(const struct cm_torch_naming *naming, struct cm_str *out, bool *by_names)
{
    *by_names = is_sorted(naming);
    if (!*by_names)
        return try_order(naming, naming->weights, true, out);

    struct cm_torch_weight *weights =
        CM_NEW_ARRAY(naming->arena, struct cm_torch_weight, naming->n_weights + 1);
    struct cm_str *names = CM_NEW_ARRAY(naming->arena, struct cm_str, naming->count + 1);
    const struct cm_torch_order *order =
        cm_torch_order_new(naming->arena, naming->weights, naming->n_weights);
    bool found = false, usual_fits = false, several = false;

    for (size_t turn = 0; turn < cm_torch_orders(order); turn++) {
        cm_torch_order_get(order, turn, weights);
        if (!try_order(naming, weights, false, names))
            continue;
        if (!found)
            memcpy(out, names, naming->count * sizeof *out);
        for (size_t i = 0; found && i < naming->count; i++)
            several |= !cm_str_equal(out[i], names[i]);
        usual_fits |= turn == 0;
        found = true;
    }
    return found && ((cm_torch_order_is_complete(order) && !several) ||
                     (usual_fits && cm_torch_order_is_usual(order)));
}
