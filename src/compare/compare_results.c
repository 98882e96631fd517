/* What models compute: the same runs, and where they part. */
// SPDX-License-Identifier: Apache-2.0
#include "compare/compare_results.h"

#include <stdlib.h>

/* ---- judging ---- */

/* "float[2,3]", "sequence of 2". */
static const char *describe(char *text, size_t size, const struct cm_datum *datum)
{
    const struct cm_shape *shape = &datum->tensor.shape;
    size_t used;

    if (datum->kind == CM_KIND_SEQUENCE || datum->kind == CM_KIND_MAP) {
        snprintf(text, size, "%s of %zu", datum->kind == CM_KIND_MAP ? "map" : "sequence",
                 datum->n_items);
        return text;
    }
    if (datum->kind != CM_KIND_TENSOR)
        return "nothing";
    used = (size_t)snprintf(text, size, "%s", cm_dtype_name(datum->tensor.type));
    for (int i = 0; i < shape->rank && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld%s", i ? "," : "[",
                                 (long long)shape->dims[i], i + 1 == shape->rank ? "]" : "");
    return text;
}

/* Adds a row where a is not what is expected, b; false: there is one. where: who computes it. */
static bool judge(struct cm_comparison *c, const struct cm_compare_runs *runs,
                  enum cm_compare_kind kind, struct cm_str name, struct cm_str where,
                  const struct cm_datum *a, const struct cm_datum *b)
{
    struct cm_difference d;
    char is[200], wanted[200];

    if (cm_datum_difference(a, b, runs->tolerance, &d, NULL) != CM_OK) {
        cm_compare_add(c, CM_COMPARE_RESULTS, kind, name, NULL, "%.*s%sis %s, expected %s",
                       CM_STR_FMT(where), where.size ? ", " : "", describe(is, sizeof is, a),
                       describe(wanted, sizeof wanted, b));
        return false;
    }
    if (!d.differing)
        return true;
    cm_compare_add(c, CM_COMPARE_RESULTS, kind, name, &d, "%.*s", CM_STR_FMT(where));
    return false;
}

static const struct cm_outline_value *value_of(const struct cm_compare_runs *runs,
                                               struct cm_str name)
{
    const struct cm_outline *graph = runs->models[CM_COMPARE_A].outlines->main;

    return graph ? cm_outline_find(graph, name) : NULL;
}

static struct cm_str maker_of(const struct cm_comparison *c, const struct cm_outline_value *value)
{
    return value && value->maker ? cm_compare_node(c->scratch, value->maker) : CM_STR_NONE;
}

/* ---- two models ---- */

static const struct cm_value_infos *outputs_of(const struct cm_compared *model)
{
    static const struct cm_value_infos none;

    return model->model->graph ? &model->model->graph->output : &none;
}

static const char *kept(const struct cm_comparison *c, struct cm_str name)
{
    return cm_str_text(cm_arena_str(c->scratch, name));
}

/* Outputs by name, or by position where no name is in both. */
static void pair_outputs(struct cm_comparison *c, const struct cm_compare_runs *runs,
                         struct cm_compare_names *a, struct cm_compare_names *b)
{
    const struct cm_value_infos *x = outputs_of(&runs->models[CM_COMPARE_A]);
    const struct cm_value_infos *y = outputs_of(&runs->models[CM_COMPARE_B]);

    for (int named = 1; named >= 0 && !a->count; named--)
        for (size_t i = 0; i < x->count; i++)
            for (size_t k = 0; k < y->count; k++)
                if (named ? cm_str_equal(x->items[i].name, y->items[k].name) : i == k) {
                    *CM_PUSH(c->scratch, a) = kept(c, x->items[i].name);
                    *CM_PUSH(c->scratch, b) = kept(c, y->items[k].name);
                    break;
                }
}

/* Values that nodes of both compute, in the order of the first. */
static void common_values(struct cm_comparison *c, const struct cm_compare_runs *runs,
                          struct cm_compare_names *names)
{
    const struct cm_outline *a = runs->models[CM_COMPARE_A].outlines->main;
    const struct cm_outline *b = runs->models[CM_COMPARE_B].outlines->main;

    for (size_t n = 0; a && b && n < a->node_count; n++) {
        const struct cm_strs *outputs = &a->nodes[n].proto->output;

        for (size_t o = 0; o < outputs->count; o++) {
            const struct cm_outline_value *value =
                outputs->items[o].size ? cm_outline_find(b, outputs->items[o]) : NULL;
            if (value && value->maker)
                *CM_PUSH(c->scratch, names) = kept(c, outputs->items[o]);
        }
    }
}

/* Runs both models again with all values that they have in common as outputs. Models that
 * cannot run that way have no first value; their outputs were compared before. */
static void find_first(struct cm_comparison *c, const struct cm_compare_runs *runs)
{
    const struct cm_datum *const *a, *const *b;
    struct cm_error ignored = {0};
    struct cm_compare_names names = {0};

    common_values(c, runs, &names);
    if (!names.count || runs->run(runs->arg, CM_COMPARE_A, &names, true, &a, &ignored) != CM_OK ||
        runs->run(runs->arg, CM_COMPARE_B, &names, true, &b, &ignored) != CM_OK)
        return;
    for (size_t i = 0; i < names.count; i++) {
        const struct cm_str name = cm_str(names.items[i]);

        if (!judge(c, runs, CM_COMPARE_FIRST, name, maker_of(c, value_of(runs, name)), b[i], a[i]))
            return;
    }
}

enum cm_status cm_compare_results(struct cm_comparison *c, const struct cm_compare_runs *runs,
                                  struct cm_error *err)
{
    size_t *differing = &c->differing[CM_COMPARE_RESULTS];
    const struct cm_datum *const *x, *const *y;
    struct cm_compare_names a = {0}, b = {0};
    struct cm_error why = {0};

    pair_outputs(c, runs, &a, &b);
    CM_TRY(runs->run(runs->arg, CM_COMPARE_A, &a, false, &x, err));
    if (runs->run(runs->arg, CM_COMPARE_B, &b, false, &y, &why) != CM_OK) {
        ++*differing;
        cm_compare_add(c, CM_COMPARE_RESULTS, CM_COMPARE_CHANGED, CM_STR("second model"), NULL,
                       "does not run: %s", why.text);
        return CM_OK;
    }
    for (size_t i = 0; i < a.count; i++)
        *differing +=
            !judge(c, runs, CM_COMPARE_VALUE, cm_str(a.items[i]), CM_STR_NONE, y[i], x[i]);
    c->compared[CM_COMPARE_RESULTS] += a.count;
    if (*differing)
        find_first(c, runs);
    return CM_OK;
}

/* ---- recorded values ---- */

struct recorded {
    const struct cm_recorded_value *given;
    struct cm_str maker;
    size_t order; /* 1 + the number of the node; 0: no node computes it */
};

static int in_order(const void *a, const void *b)
{
    const struct recorded *x = a, *y = b;

    return x->order != y->order ? (x->order > y->order) - (x->order < y->order)
                                : strcmp(x->given->name, y->given->name);
}

enum cm_status cm_compare_recorded(struct cm_comparison *c, const struct cm_compare_runs *runs,
                                   const struct cm_recorded_value *recorded, size_t count,
                                   struct cm_error *err)
{
    struct recorded *items = CM_NEW_ARRAY(c->scratch, struct recorded, count);
    size_t *differing = &c->differing[CM_COMPARE_RESULTS], n = 0;
    struct cm_compare_names names = {0};
    const struct cm_datum *const *values;

    for (size_t i = 0; i < count; i++) {
        const struct cm_outline_value *value = value_of(runs, cm_str(recorded[i].name));

        if (value)
            items[n++] = (struct recorded){&recorded[i], maker_of(c, value),
                                           value->maker ? value->maker->index + 1 : 0};
        else
            cm_compare_add(c, CM_COMPARE_RESULTS, CM_COMPARE_NOTE, cm_str(recorded[i].name), NULL,
                           "is not a value of the model");
    }
    if (!n)
        return cm_fail(err, CM_NOT_FOUND, "nothing recorded is named after a value of the model");
    qsort(items, n, sizeof *items, in_order);
    for (size_t i = 0; i < n; i++)
        *CM_PUSH(c->scratch, &names) = items[i].given->name;
    CM_TRY(runs->run(runs->arg, CM_COMPARE_A, &names, true, &values, err));
    for (size_t i = 0; i < n; i++)
        *differing +=
            !judge(c, runs, *differing ? CM_COMPARE_VALUE : CM_COMPARE_FIRST,
                   cm_str(names.items[i]), items[i].maker, values[i], items[i].given->value);
    c->compared[CM_COMPARE_RESULTS] = n;
    return CM_OK;
}
