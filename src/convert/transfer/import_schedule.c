/* The learning rates of a training that goes on: the checkpoint's schedule, one by name, or a table
 * of coming rates. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/saved_item.h"
#include "convert/transfer/import_parts.h"

#include <math.h>

static const char *const names[] = {"constant", "step", "cosine", "linear"};

/* As prepare's flags say it. */
struct wanted {
    int schedule; /* enum cm_schedule; -1: none is wanted */
    int64_t warmup, steps;
    double factor;
};

static void read_set(struct cm_importing *in, const struct cm_item *set, struct wanted *out)
{
    const struct cm_item *schedule = cm_item_get(set, "schedule");
    struct cm_str word = CM_STR_NONE;

    if (cm_item_is_text(schedule, &word)) {
        out->schedule = cm_str_place(word, names, CM_COUNT(names));
        if (out->schedule < 0)
            cm_import_block(in,
                            "--set: schedule '%.*s' is not known, expected 'constant', 'step', "
                            "'cosine', 'linear' or an object with phases",
                            CM_STR_FMT(word));
    }
    const struct cm_item *warmup = cm_item_get(set, "warmup"),
                         *steps = cm_item_get(set, "schedule_steps");
    if (warmup && out->schedule < 0)
        out->schedule = CM_SCHEDULE_CONSTANT;
    if ((warmup && (!cm_item_is_int(warmup, &out->warmup) || out->warmup < 0)) ||
        (steps && (!cm_item_is_int(steps, &out->steps) || out->steps < 1)))
        cm_import_block(in, "--set: warmup and schedule_steps must be whole numbers of steps");
    out->factor = cm_item_get_real(set, "schedule_factor", out->factor);
}

static void read_flags(struct cm_importing *in, struct wanted *out)
{
    const struct cm_prepare_options *o = &in->options->prepare;

    if (!in->options->has_schedule)
        return;
    if (o->schedule >= (int)CM_COUNT(names)) {
        cm_import_block(in, "--schedule plateau does not apply to a checkpoint: constant, step, "
                            "cosine and linear do");
        return;
    }
    if ((o->warmup_epochs != 0 || o->schedule_epochs != 0) && !(o->updates_per_epoch > 0))
        cm_import_block(in, "--warmup-epochs and --schedule-epochs need --updates-per-epoch");
    *out = (struct wanted){(int)o->schedule, cm_schedule_updates(o, o->warmup, o->warmup_epochs),
                           cm_schedule_updates(o, o->schedule_steps, o->schedule_epochs),
                           o->schedule_factor};
}

static struct cm_phase *add_phase(struct cm_importing *in, enum cm_phase_shape shape, int64_t first,
                                  double length)
{
    struct cm_rate_schedule *schedule = &in->saved->schedule;
    struct cm_phase *phases = CM_NEW_ARRAY(in->arena, struct cm_phase, schedule->count + 1);

    if (schedule->count)
        memcpy(phases, schedule->items, schedule->count * sizeof *phases);
    schedule->items = phases;
    schedule->capacity = schedule->count + 1;
    phases[schedule->count] = (struct cm_phase){.shape = shape, .first = first, .length = length};
    return &phases[schedule->count++];
}

/* Each group's base rate times a number. */
static const double *rates_of(struct cm_importing *in, double factor)
{
    const size_t count = in->saved->groups.count;
    double *rates = CM_NEW_ARRAY(in->arena, double, count);

    for (size_t g = 0; g < count; g++)
        rates[g] = in->saved->groups.items[g].settings.initial_lr * factor;
    return rates;
}

/* The base rates: what the user says, else what the schedule of the checkpoint began with. */
static bool set_bases(struct cm_importing *in, const bool *given)
{
    for (size_t g = 0; g < in->saved->groups.count; g++) {
        struct cm_plan_group *group = &in->saved->groups.items[g].settings;

        if (given[g] || isnan(group->initial_lr))
            group->initial_lr = group->lr;
        if (isnan(group->initial_lr)) {
            cm_import_block(in,
                            "the checkpoint does not say: lr; give it with --lr, or with --set");
            return false;
        }
    }
    return true;
}

static void forget(struct cm_saved *saved)
{
    saved->schedule = (struct cm_rate_schedule){0};
    saved->schedule_known = CM_SCHEDULE_NONE;
    saved->schedule_name = CM_STR_NONE;
}

/* What prepare makes of the same flags. */
static void build(struct cm_importing *in, const struct wanted *wanted, const bool *given)
{
    struct cm_saved *saved = in->saved;
    const int64_t span = wanted->steps - wanted->warmup;
    const bool decays =
        wanted->schedule == CM_SCHEDULE_COSINE || wanted->schedule == CM_SCHEDULE_LINEAR;

    if (wanted->schedule != CM_SCHEDULE_CONSTANT && wanted->steps <= 0)
        cm_import_block(in,
                        "schedule '%s' needs a number of steps (--schedule-steps, "
                        "'schedule_steps' of --set)",
                        names[wanted->schedule]);
    else if (decays && span <= 0)
        cm_import_block(in, "the warmup is as long as the whole schedule or longer");
    forget(saved);
    if (!set_bases(in, given))
        return;
    if (wanted->schedule == CM_SCHEDULE_CONSTANT && wanted->warmup == 0) {
        for (size_t g = 0; g < saved->groups.count; g++)
            saved->groups.items[g].settings.lr = saved->groups.items[g].settings.initial_lr;
        return;
    }
    saved->schedule_known = CM_SCHEDULE_KNOWN;
    saved->schedule_name = cm_str(names[wanted->schedule]);
    if (wanted->warmup > 0) {
        struct cm_phase *phase =
            add_phase(in, wanted->warmup > 1 ? CM_PHASE_LINEAR : CM_PHASE_CONSTANT, 0,
                      (double)(wanted->warmup - 1));
        phase->from = rates_of(in, 1.0 / (double)wanted->warmup);
        phase->to = rates_of(in, 1);
    }
    struct cm_phase *phase = add_phase(
        in,
        decays ? (wanted->schedule == CM_SCHEDULE_COSINE ? CM_PHASE_COSINE : CM_PHASE_LINEAR)
        : wanted->schedule == CM_SCHEDULE_STEP ? CM_PHASE_EXPONENTIAL
                                               : CM_PHASE_CONSTANT,
        wanted->warmup, (double)(decays ? span : wanted->steps));
    phase->from = rates_of(in, 1);
    phase->to = rates_of(in, 0);
    phase->factor = wanted->factor;
    phase->is_stepped = wanted->schedule == CM_SCHEDULE_STEP;
}

/* "rates": [[one per group], .. one list per coming step] */
static void build_table(struct cm_importing *in, const struct cm_item *rates)
{
    struct cm_saved *saved = in->saved;
    const size_t rows = cm_item_count(rates), groups = saved->groups.count;
    double *table = CM_NEW_ARRAY(in->arena, double, rows *groups + 1);

    for (size_t r = 0; r < rows; r++) {
        const struct cm_item *row = cm_item_at(rates, r);

        for (size_t g = 0; g < groups; g++) {
            const struct cm_item *one = row->kind == CM_ITEM_LIST ? cm_item_at(row, g) : row;

            if ((row->kind == CM_ITEM_LIST && cm_item_count(row) != groups) ||
                !cm_item_is_real(one, &table[r * groups + g])) {
                cm_import_block(in,
                                "--set: rates of coming step %zu: expected one number for each of "
                                "%zu groups",
                                r, groups);
                return;
            }
        }
    }
    if (rows == 0) {
        cm_import_block(in, "--set: rates must be a list, one entry for each coming step");
        return;
    }
    forget(saved);
    saved->schedule_known = CM_SCHEDULE_KNOWN;
    saved->schedule_name = CM_STR("table");
    saved->schedule.offset = -(saved->step > 0 ? saved->step : 0);
    struct cm_phase *phase = add_phase(in, CM_PHASE_TABLE, 0, (double)rows);
    phase->rates = table;
    phase->n_rates = rows;
    for (size_t g = 0; g < groups; g++)
        saved->groups.items[g].settings.lr = table[g];
}

void cm_import_schedule(struct cm_importing *in, const struct cm_item *set, const bool *given)
{
    struct cm_saved *saved = in->saved;
    struct wanted wanted = {.schedule = -1, .factor = 0.1};
    const struct cm_item *phases = cm_item_get(set, "schedule");
    struct cm_error why;
    bool any = false;

    for (size_t g = 0; g < saved->groups.count; g++)
        any = any || given[g];
    read_set(in, set, &wanted);
    read_flags(in, &wanted);
    if (cm_item_get(set, "rates")) {
        build_table(in, cm_item_get(set, "rates"));
    } else if (wanted.schedule >= 0) {
        build(in, &wanted, given);
    } else if (phases && phases->kind == CM_ITEM_MAP) {
        forget(saved);
        saved->schedule_known = CM_SCHEDULE_KNOWN;
        if (cm_schedule_from_item(in->arena, phases, saved->groups.count, &saved->schedule, &why))
            cm_import_block(in, "--set: %s", why.text);
    } else if (any) {
        if (saved->schedule_known != CM_SCHEDULE_NONE)
            cm_import_note(in, "the rate is constant from here on: lr was given, a schedule not");
        forget(saved);
    } else if (saved->schedule_known == CM_SCHEDULE_UNKNOWN) {
        cm_import_block(in,
                        "the checkpoint does not say how the learning rate goes on%s%.*s%s: give "
                        "--schedule (constant, step, cosine, linear), or 'rates' with --set",
                        saved->schedule_name.size ? " (" : "", CM_STR_FMT(saved->schedule_name),
                        saved->schedule_name.size ? ")" : "");
    }
}
