/* Which curves of a training are drawn, and which share a panel. The last panel takes what is asked
 * for by name and fits nowhere else. */
// SPDX-License-Identifier: Apache-2.0
#include "draw/curve.h"

/* The part of a name after the log it comes from. */
static const char *base_name(const struct cm_curve *curve)
{
    const char *name = cm_str_text(curve->name), *colon = strrchr(name, ':');

    return colon ? colon + 1 : name;
}

static bool is_named(const struct cm_curve *curve, const char *list)
{
    const char *name = base_name(curve);
    const size_t size = strlen(name);

    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, size) == 0 && (at[size] == ',' || !at[size]))
            return true;
    }
    return false;
}

static bool varies(const struct cm_curve *curve)
{
    for (size_t i = 1; i < curve->x.count; i++)
        if (curve->y.items[i] != curve->y.items[0])
            return true;
    return false;
}

/* The panel of a curve, or -1 when it is not shown unless asked for. */
static int panel_of(const struct cm_curve *curve, const char *only)
{
    static const char *const measures[] = {"accuracy", "r2", "mae", "error", "f1"};
    const char *name = base_name(curve);

    if (only && !is_named(curve, only))
        return -1;
    if (strstr(name, "loss"))
        return 0;
    for (size_t i = 0; i < sizeof measures / sizeof *measures; i++)
        if (strstr(name, measures[i]))
            return 1;
    if (strcmp(name, "lr") == 0)
        return only || varies(curve) ? 2 : -1;
    return only ? 3 : -1;
}

static bool same_log(const struct cm_curve *a, const struct cm_curve *b)
{
    const size_t size = (size_t)(base_name(a) - a->name.data);

    return size == (size_t)(base_name(b) - b->name.data) &&
           memcmp(a->name.data, b->name.data, size) == 0;
}

/* Sparse is what the same log has much more of. */
static void describe(struct cm_curves *curves)
{
    for (size_t i = 0; i < curves->count; i++) {
        struct cm_curve *curve = &curves->items[i];

        curve->exact = strcmp(base_name(curve), "lr") == 0;
        for (size_t k = 0; k < curves->count; k++)
            if (same_log(curve, &curves->items[k]) && curve->x.count * 3 < curves->items[k].x.count)
                curve->sparse = true;
    }
}

/* The panel of this title, made when it is not there. */
static struct cm_curve_panel *get_panel(struct cm_curve_picture *picture, struct cm_arena *arena,
                                        const char *title)
{
    for (size_t i = 0; i < picture->panels.count; i++)
        if (strcmp(picture->panels.items[i].title, title) == 0)
            return &picture->panels.items[i];
    struct cm_curve_panel *panel = CM_PUSH(arena, &picture->panels);
    *panel = (struct cm_curve_panel){.title = title};
    return panel;
}

static void add_to(struct cm_curve_panel *panel, struct cm_arena *arena,
                   const struct cm_curve *curve)
{
    *CM_PUSH(arena, &panel->curves) = curve;
}

void cm_curves_arrange(struct cm_curves *curves, const char *only, bool log_scale,
                       struct cm_arena *arena, struct cm_curve_picture *out)
{
    static const char *const titles[] = {"loss", "accuracy", "learning rate", "values"};
    enum { CURVES_MAX = 64 }; /* of a panel */

    describe(curves);
    for (int panel = 0; panel < (int)CM_COUNT(titles); panel++) {
        struct cm_curve_panel *made = NULL;

        for (size_t i = 0; i < curves->count; i++)
            if (panel_of(&curves->items[i], only) == panel &&
                (!made || made->curves.count < CURVES_MAX)) {
                made = made ? made : get_panel(out, arena, titles[panel]);
                add_to(made, arena, &curves->items[i]);
            }
        if (!made)
            continue;
        made->log_scale = log_scale && panel == 0;
        if (made->curves.count == 1)
            made->title = base_name(made->curves.items[0]);
    }
}

/* "loss" of "val_loss". */
static const char *quantity(const struct cm_curve *curve)
{
    static const char *const prefixes[] = {"val_", "validation_"};
    const char *name = cm_str_text(curve->name);

    for (size_t i = 0; i < CM_COUNT(prefixes); i++)
        if (cm_str_starts(curve->name, prefixes[i]))
            return name + strlen(prefixes[i]);
    return name;
}

void cm_curves_arrange_each(struct cm_curves *curves, bool log_scale, struct cm_arena *arena,
                            struct cm_curve_picture *out)
{
    describe(curves);
    for (size_t i = 0; i < curves->count; i++) {
        struct cm_curve_panel *panel = get_panel(out, arena, quantity(&curves->items[i]));

        panel->log_scale = log_scale && strstr(panel->title, "loss");
        add_to(panel, arena, &curves->items[i]);
    }
}
