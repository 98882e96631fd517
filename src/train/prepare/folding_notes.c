/* What an exporter made of the network's parameters, said once before training: normalizations that
 * are part of convolutions by now, parameters that are gone, and those that others were computed
 * from; with the way to export that keeps them. */
// SPDX-License-Identifier: Apache-2.0
#include "train/prepare/trainables.h"

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
        if (!cm_map_find(&norms, cm_str_before_last(originals->missing.items[i], '.')))
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

/* ---- what the exporter does not record ---- */

/* The older exporter lists parameters and buffers alike. How the graph reads a tensor decides,
 * which may not be what the user means: tensors are named where the decision is not plain. */
static void tell_undecided(struct cm_preparation *p, const struct cm_trainables *list)
{
    struct cm_arena *arena = p->arena;
    struct cm_str_list trained = {0}, left = {0};

    if (!p->originals->is_older || p->originals->n_recorded || p->train || p->options->plan)
        return;
    for (size_t i = 0; i < list->count; i++) {
        const struct cm_trainable *one = &list->items[i];

        if (one->is_constant || !cm_dtype_is_float(one->tensor->data_type) ||
            cm_original_is_made_up(one->name) || cm_str_contains(one->name, "running_") ||
            cm_preparation_matches(p, p->freeze, one->name))
            continue;
        if (!one->trained)
            *CM_PUSH(arena, &left) = one->name;
        else if (!cm_str_contains(one->name, "weight") && !cm_str_contains(one->name, "bias"))
            *CM_PUSH(arena, &trained) = one->name;
    }
    if (trained.count)
        cm_preparation_note(p,
                            "the exporter did not record whether %s %s; %s trained (--freeze "
                            "leaves a buffer as it is)",
                            cm_str_text(few(arena, &trained)),
                            trained.count == 1 ? "is a parameter or a buffer"
                                               : "are parameters or buffers",
                            trained.count == 1 ? "it is" : "they are");
    if (left.count)
        cm_preparation_note(p,
                            "the exporter did not record whether %s %s; %s not trained (--train "
                            "names all that shall be)",
                            cm_str_text(few(arena, &left)),
                            left.count == 1 ? "is a parameter or a buffer"
                                            : "are parameters or buffers",
                            left.count == 1 ? "it is" : "they are");
}

/* The third argument of "..aten.embedding.default](args = (%p_e_weight, %x, 0), ..": the row that
 * the framework does not train; -1: there is none. */
static long padding_row(const struct cm_node_proto *node)
{
    static const char call[] = "aten.embedding.default](args = (";
    const struct cm_str text = cm_entries_find(&node->metadata_props, "pkg.torch.onnx.fx_node");
    size_t at = 0, commas = 0;
    long row = 0;

    while (at + sizeof call <= text.size && memcmp(text.data + at, call, sizeof call - 1) != 0)
        at++;
    if (at + sizeof call > text.size)
        return -1;
    for (at += sizeof call - 1; at < text.size && commas < 2 && text.data[at] != ')'; at++)
        commas += text.data[at] == ',';
    if (commas < 2 || at + 1 >= text.size || text.data[at] != ' ')
        return -1;
    const size_t begin = ++at;
    for (; at < text.size && text.data[at] >= '0' && text.data[at] <= '9' && row < 1000000000; at++)
        row = row * 10 + (text.data[at] - '0');
    return at > begin ? row : -1;
}

static void tell_padding(struct cm_preparation *p, const struct cm_trainables *list)
{
    const struct cm_nodes *nodes = &p->model->graph->node;
    struct cm_map trained = {0};

    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].trained)
            cm_map_insert(&trained, p->arena, list->items[i].name, NULL);
    for (size_t n = 0; n < nodes->count; n++) {
        const struct cm_node_proto *node = &nodes->items[n];
        const long row = padding_row(node);

        if (row < 0 || !node->input.count || !cm_map_remove(&trained, node->input.items[0]))
            continue;
        cm_preparation_note(p,
                            "PyTorch does not train row %ld of '%.*s' (padding_idx), here it is "
                            "trained like the others",
                            row, CM_STR_FMT(node->input.items[0]));
    }
}

enum cm_status cm_tell_folding(struct cm_preparation *p)
{
    struct telling t = {.p = p, .text = CM_STR("")};
    const struct cm_trainables *list = p->candidates;

    if (p->options->plan)
        return CM_OK;
    tell_undecided(p, list);
    tell_padding(p, list);
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
    return CM_OK;
}
