/* What an exporter made of the network's parameters, said once before training: normalizations that
 * are part of convolutions by now, parameters that are gone, and those that others were computed
 * from; with the way to export that keeps them. */
// SPDX-License-Identifier: Apache-2.0
#include "train/trainables.h"

enum { NAMES_MAX = 3 };

struct telling {
    struct cm_preparation *p;
    struct cm_str text; /* the facts so far */
    bool is_newer;      /* the exporter whose way out is named */
};

static void tell(struct telling *t, struct cm_str fact)
{
    t->text = cm_arena_printf(t->p->arena, "%s%s%s", cm_str_text(t->text), t->text.size ? "; " : "",
                              cm_str_text(fact));
}

/* "a, b, c and 4 more". */
static struct cm_str few(struct cm_arena *arena, const struct cm_str_list *names)
{
    struct cm_str text = CM_STR("");

    for (size_t i = 0; i < names->count && i < NAMES_MAX; i++)
        text = cm_arena_printf(arena, "%s%s'%.*s'", cm_str_text(text),
                               !i                                            ? ""
                               : i + 1 == names->count && i + 1 <= NAMES_MAX ? " and "
                                                                             : ", ",
                               CM_STR_FMT(names->items[i]));
    if (names->count > NAMES_MAX)
        text =
            cm_arena_printf(arena, "%s and %zu more", cm_str_text(text), names->count - NAMES_MAX);
    return text;
}

static struct cm_str before_dot(struct cm_str name)
{
    while (name.size && name.data[name.size - 1] != '.')
        name.size--;
    return name.size ? (struct cm_str){name.data, name.size - 1} : name;
}

/* ---- the newer exporter ---- */

static void tell_missing(struct telling *t)
{
    struct cm_arena *arena = t->p->arena;
    const struct cm_originals *originals = t->p->originals;
    struct cm_str_list dropped = {0};
    struct cm_map norms = {0};

    for (size_t i = 0; i < originals->norms.count; i++)
        cm_map_insert(&norms, arena, originals->norms.items[i], NULL);
    for (size_t i = 0; i < originals->missing.count; i++)
        if (!cm_map_find(&norms, before_dot(originals->missing.items[i])))
            *CM_PUSH(arena, &dropped) = originals->missing.items[i];
    t->is_newer = t->is_newer || originals->norms.count || dropped.count;
    if (originals->norms.count)
        tell(t, cm_arena_printf(arena,
                                "BatchNormalization %s is folded into other layers and is not "
                                "trained",
                                cm_str_text(few(arena, &originals->norms))));
    if (dropped.count)
        tell(t, cm_arena_printf(
                    arena, "%s %s missing (biases of zeros are dropped) and %s not trained",
                    cm_str_text(few(arena, &dropped)), dropped.count == 1 ? "is" : "are",
                    dropped.count == 1 ? "is" : "are"));
}

static void tell_computed(struct telling *t, const struct cm_trainables *list)
{
    struct cm_arena *arena = t->p->arena;
    struct cm_str_list trained = {0}, left = {0};

    for (size_t i = 0; i < list->count; i++) {
        const struct cm_trainable *one = &list->items[i];
        const struct cm_original *original = cm_originals_find(t->p->originals, one->name);

        if (!original || !original->is_parameter || t->p->train ||
            (original->folding != CM_FOLDED_COMPUTED && original->folding != CM_FOLDED_ROWS) ||
            cm_preparation_matches(t->p, t->p->freeze, one->name))
            continue;
        for (size_t n = 0; n < original->names.count; n++)
            *CM_PUSH(arena, one->trained ? &trained : &left) = original->names.items[n];
    }
    t->is_newer = t->is_newer || trained.count || left.count;
    if (trained.count)
        tell(t, cm_arena_printf(arena, "constants computed from %s are trained in %s place",
                                cm_str_text(few(arena, &trained)),
                                trained.count == 1 ? "its" : "their"));
    if (left.count)
        tell(t, cm_arena_printf(arena, "%s %s part of constants and %s not trained",
                                cm_str_text(few(arena, &left)), left.count == 1 ? "is" : "are",
                                left.count == 1 ? "is" : "are"));
}

/* ---- the older exporter ---- */

/* It renames weight and bias of a convolution when it folds a normalization into them. */
static void tell_convolutions(struct telling *t)
{
    const struct cm_nodes *nodes = &t->p->model->graph->node;
    struct cm_str_list names = {0};

    for (size_t n = 0; n < nodes->count; n++) {
        const struct cm_strs *input = &nodes->items[n].input;

        if (input->count == 3 && cm_str_starts(input->items[1], "onnx::Conv_") &&
            cm_str_starts(input->items[2], "onnx::Conv_"))
            *CM_PUSH(t->p->arena, &names) = nodes->items[n].name;
    }
    if (names.count)
        tell(t,
             cm_arena_printf(t->p->arena, "BatchNormalization is folded into %s and is not trained",
                             cm_str_text(few(t->p->arena, &names))));
}

void cm_tell_folding(struct cm_preparation *p, const struct cm_trainables *list)
{
    struct telling t = {.p = p, .text = CM_STR("")};

    tell_missing(&t);
    tell_computed(&t, list);
    if (!t.is_newer)
        tell_convolutions(&t);
    if (t.text.size)
        cm_preparation_note(
            p, "the exporter changed the network: %s. %s keeps all parameters", cm_str_text(t.text),
            t.is_newer ? "torch.onnx.export(.., dynamo=True, optimize=False)"
                       : "torch.onnx.export(.., dynamo=False, do_constant_folding=False, "
                         "training=torch.onnx.TrainingMode.PRESERVE)");
}
