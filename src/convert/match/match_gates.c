/* Recurrent layers: frameworks order gates otherwise, turn weights and keep biases apart.
 *
 *   ONNX     LSTM i o f c, GRU z r h; W [directions, gates * H, I], R [.., H], B [.., 2 * gates *
 * H] PyTorch  LSTM i f c o, GRU r z h; weight_ih_l0 [gates * H, I], weight_hh_l0, bias_ih_l0,
 *            bias_hh_l0; the other direction is ..._reverse
 *   Keras    LSTM i f c o, GRU z r h; kernel [I, gates * H], recurrent_kernel, bias [2, gates * H]
 *            where GRU resets after the product; forward_.. and backward_..  */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "convert/match/match.h"

#include "graph/graph_messages.h"
#include "graph/registry.h"
#include "onnx/tensor_data.h"

enum { W, R, B, B2, TENSORS, SETS_MAX = 10000 };

/* One direction of a layer of the framework. */
struct set {
    struct cm_match_source *tensors[TENSORS];
    bool is_turned; /* as Keras has it */
};

struct sets {
    CM_ARRAY(struct set);
};

static const int lstm_order[] = {0, 3, 1, 2}, torch_gru_order[] = {1, 0, 2}, plain[] = {0, 1, 2};

const int *cm_gate_order(int gates, bool is_turned)
{
    return gates == 4 ? lstm_order : gates == 3 && !is_turned ? torch_gru_order : plain;
}

/* The source whose name is that of `one` with a piece replaced; NULL: there is none. */
static struct cm_match_source *sibling(const struct cm_matching *m,
                                       const struct cm_match_source *one, const char *piece,
                                       const char *by)
{
    for (size_t i = 0; i + strlen(piece) <= one->name.size; i++)
        if (memcmp(one->name.data + i, piece, strlen(piece)) == 0)
            return cm_match_find_source(
                m, cm_arena_printf(m->arena, "%.*s%s%.*s", (int)i, one->name.data, by,
                                   (int)(one->name.size - i - strlen(piece)),
                                   one->name.data + i + strlen(piece)));
    return NULL;
}

static void gather_sets(struct cm_matching *m, struct sets *sets)
{
    for (size_t i = 0; i < m->sources.count && sets->count < SETS_MAX; i++) {
        struct cm_match_source *one = &m->sources.items[i];
        struct set set = {.tensors = {one}};

        if (one->tensor->shape.rank != 2)
            continue;
        set.tensors[R] = sibling(m, one, "weight_ih", "weight_hh");
        set.tensors[B] = sibling(m, one, "weight_ih", "bias_ih");
        set.tensors[B2] = sibling(m, one, "weight_ih", "bias_hh");
        if (!set.tensors[R] && cm_str_ends(one->name, "kernel")) {
            set.is_turned = true;
            set.tensors[R] = sibling(m, one, "kernel", "recurrent_kernel");
            set.tensors[B] = sibling(m, one, "kernel", "bias");
        }
        if (set.tensors[R])
            *CM_PUSH(m->arena, sets) = set;
    }
}

/* The other direction of a set; NULL: there is none. */
static const struct set *other_direction(const struct cm_matching *m, const struct sets *sets,
                                         const struct set *one)
{
    const struct cm_match_source *w = one->tensors[W];
    const struct cm_match_source *other =
        one->is_turned ? sibling(m, w, "forward", "backward")
                       : cm_match_find_source(
                             m, cm_arena_printf(m->arena, "%.*s_reverse", CM_STR_ALL(w->name)));

    for (size_t i = 0; other && i < sets->count; i++)
        if (sets->items[i].tensors[W] == other)
            return &sets->items[i];
    return NULL;
}

/* A layer of the model. */
struct layer {
    struct cm_match_target *targets[3]; /* NULL: it has none */
    int gates;
    int64_t directions, width, inputs;
};

static bool find_layer(const struct cm_matching *m, const struct cm_node_proto *node,
                       struct layer *out)
{
    *out = (struct layer){.gates = cm_builtin_op(node)->layer.gates};
    for (size_t i = 1; out->gates && i <= 3 && i < node->input.count; i++)
        out->targets[i - 1] = cm_match_find_target(m, node->input.items[i]);
    const struct cm_match_target *w = out->targets[W], *r = out->targets[R];
    if (!w || !r || w->parts.count || w->shape.rank != 3 || r->shape.rank != 3)
        return false;
    out->directions = w->shape.dims[0];
    out->width = r->shape.dims[2];
    out->inputs = w->shape.dims[2];
    return out->directions >= 1 && out->directions <= 2 && out->width > 0;
}

static bool has_shape(const struct cm_match_source *source, int64_t a, int64_t b, bool is_turned)
{
    const struct cm_shape *shape = &source->tensor->shape;

    return shape->rank == 2 && shape->dims[is_turned] == a && shape->dims[!is_turned] == b;
}

static bool set_fits(const struct layer *layer, const struct set *set)
{
    const int64_t rows = layer->gates * layer->width;

    return set && !set->tensors[W]->uses &&
           has_shape(set->tensors[W], rows, layer->inputs, set->is_turned) &&
           has_shape(set->tensors[R], rows, layer->width, set->is_turned);
}

/* Gate after gate of W or R. */
static void add_weight(struct cm_matching *m, const struct layer *layer, const struct set *set,
                       int which, int64_t direction, struct cm_parts *parts)
{
    const int *order = cm_gate_order(layer->gates, set->is_turned);

    for (int g = 0; g < layer->gates; g++) {
        struct cm_part *part = cm_part_add(m->arena, parts, set->tensors[which]->name, 2, 3);
        const int rows = set->is_turned;

        part->from[rows] = order[g] * layer->width;
        part->size[rows] = layer->width;
        part->axes[0] = -1;
        part->axes[1] = rows;
        part->axes[2] = !rows;
        part->at[0] = direction;
        part->at[1] = g * layer->width;
    }
}

/* Gate after gate of both biases; false: the framework has but one. */
static bool add_bias(struct cm_matching *m, const struct layer *layer, const struct set *set,
                     int64_t direction, struct cm_parts *parts)
{
    const int *order = cm_gate_order(layer->gates, set->is_turned);
    const bool in_one = !set->tensors[B2];

    if (!set->tensors[B] || (in_one && set->tensors[B]->tensor->shape.rank != 2))
        return false;
    for (int half = 0; half < 2; half++)
        for (int g = 0; g < layer->gates; g++) {
            struct cm_match_source *source = set->tensors[half && !in_one ? B2 : B];
            struct cm_part *part = cm_part_add(m->arena, parts, source->name, 1 + in_one, 2);

            if (in_one) {
                part->from[0] = half;
                part->size[0] = 1;
            }
            part->from[in_one] = order[g] * layer->width;
            part->size[in_one] = layer->width;
            part->axes[0] = -1;
            part->axes[1] = in_one;
            part->at[0] = direction;
            part->at[1] = (half * layer->gates + g) * layer->width;
        }
    return true;
}

/* W or R of all directions. */
static struct cm_parts weights(struct cm_matching *m, const struct layer *layer,
                               const struct set *const set[2], int which)
{
    struct cm_parts parts = {0};

    for (int64_t d = 0; d < layer->directions; d++)
        add_weight(m, layer, set[d], which, d, &parts);
    return parts;
}

/* The set that is most like what the model has now; where that does not tell, the first. */
static const struct set *choose(struct cm_matching *m, const struct sets *sets,
                                const struct layer *layer)
{
    const struct set *best = NULL, *first = NULL;
    double highest = -1, second = -1, least = 0;

    for (size_t i = 0; i < sets->count; i++) {
        const struct set *set[2] = {&sets->items[i], NULL};

        if (!set_fits(layer, set[0]))
            continue;
        if (layer->directions == 2) {
            set[1] = other_direction(m, sets, set[0]);
            if (!set_fits(layer, set[1]))
                continue;
        }
        const struct cm_parts parts = weights(m, layer, set, R);
        const double score = cm_match_score(m, layer->targets[R], &parts, &least);
        if (!first)
            first = set[0];
        if (score > highest) {
            second = highest;
            highest = score;
            best = set[0];
        } else if (score > second) {
            second = score;
        }
    }
    return highest >= least && second < highest - 0.2 ? best : first;
}

/* Keras has one bias where ONNX has two. Trained, the second would move as the first does, so it
 * becomes a constant: B is made of an initializer and zeros. */
struct single {
    struct cm_str name; /* of B */
    struct layer layer;
    const struct set *set[2];
};

struct singles {
    CM_ARRAY(struct single);
};

static struct cm_str add_half(struct cm_matching *m, struct cm_str name, const char *word,
                              const struct cm_shape *shape)
{
    struct cm_graph_proto *graph = m->file->model.graph;
    struct cm_tensor_proto *half = CM_LIST_ADD(m->arena, &graph->initializer);
    const struct cm_tensor zeros = cm_tensor_borrow(
        CM_FLOAT, shape, CM_NEW_ARRAY(m->arena, float, (size_t)cm_shape_elements(shape)));

    (void)!cm_tensor_proto_store(half, m->arena, &zeros, NULL); /* plain floats can be stored */
    half->name = cm_arena_printf(m->arena, "%.*s.%s", CM_STR_ALL(name), word);
    cm_msg_set(&half->msg, CM_TENSOR_NAME);
    cm_msg_set(&graph->msg, CM_GRAPH_INITIALIZER);
    return half->name;
}

static void split_bias(struct cm_matching *m, const struct single *single)
{
    const struct layer *layer = &single->layer;
    const int64_t rows = layer->gates * layer->width;
    const struct cm_shape shape = CM_SHAPE(layer->directions, rows);
    struct cm_match_target *whole = layer->targets[B];
    const struct cm_str name = whole->name;
    struct cm_match_target half = {.shape = shape, .read = whole->read};
    struct cm_parts parts = {0};

    whole->is_tied = true;
    whole->is_needed = false;
    cm_graph_proto_drop_initializer(m->arena, m->file->model.graph, name);
    half.name = add_half(m, name, "input", &shape);
    const struct cm_str halves[] = {half.name, add_half(m, name, "recurrence", &shape)};
    const struct cm_node_proto joins =
        cm_node_proto_make(m->arena, "Concat", halves, 2, name, cm_attr_int(m->arena, "axis", 1));
    cm_graph_proto_add_first(m->arena, m->file->model.graph, &joins, 1);
    half.tensor =
        &m->file->model.graph->initializer.items[m->file->model.graph->initializer.count - 2];
    for (int64_t d = 0; d < layer->directions; d++) {
        const int *order = cm_gate_order(layer->gates, true);

        for (int g = 0; g < layer->gates; g++) {
            struct cm_part *part =
                cm_part_add(m->arena, &parts, single->set[d]->tensors[B]->name, 1, 2);

            part->from[0] = order[g] * layer->width;
            part->size[0] = layer->width;
            part->axes[0] = -1;
            part->axes[1] = 0;
            part->at[0] = d;
            part->at[1] = g * layer->width;
        }
    }
    *CM_PUSH(m->arena, &m->targets) = half; /* layer->targets are not good any more */
    *cm_map_insert(&m->target_names, m->arena, half.name, NULL) = m->targets.count;
    cm_match_take(m, &m->targets.items[m->targets.count - 1], &parts,
                  "by its recurrent layer, gates reordered");
}

/* Has each direction one bias, a vector? */
static bool is_single(const struct layer *layer, const struct set *const set[2])
{
    for (int64_t d = 0; d < layer->directions; d++)
        if (!set[d]->is_turned || !set[d]->tensors[B] ||
            set[d]->tensors[B]->tensor->shape.rank != 1)
            return false;
    return layer->targets[B] && !layer->targets[B]->is_constant &&
           layer->targets[B]->tensor->data_type == CM_FLOAT;
}

void cm_match_gates(struct cm_matching *m)
{
    const struct cm_graph_proto *graph = m->file->model.graph;
    struct sets sets = {0};
    struct layer layer;
    struct singles singles = {0};
    bool gathered = false;

    for (size_t n = 0; n < graph->node.count; n++) {
        if (!find_layer(m, &graph->node.items[n], &layer))
            continue;
        if (!gathered)
            gather_sets(m, &sets);
        gathered = true;
        const struct set *set[2] = {choose(m, &sets, &layer), NULL};
        if (!set[0])
            continue;
        set[1] = layer.directions == 2 ? other_direction(m, &sets, set[0]) : NULL;
        for (int which = W; which <= R; which++) {
            const struct cm_parts parts = weights(m, &layer, set, which);
            cm_match_take(m, layer.targets[which], &parts,
                          "by its recurrent layer, gates reordered");
        }
        struct cm_parts parts = {0};
        bool whole = layer.targets[B] != NULL;
        for (int64_t d = 0; whole && d < layer.directions; d++)
            whole = add_bias(m, &layer, set[d], d, &parts);
        if (whole)
            cm_match_take(m, layer.targets[B], &parts, "by its recurrent layer, gates reordered");
        else if (is_single(&layer, set))
            *CM_PUSH(m->arena, &singles) =
                (struct single){layer.targets[B]->name, layer, {set[0], set[1]}};
    }
    for (size_t i = 0; i < singles.count; i++) {
        singles.items[i].layer.targets[B] = cm_match_find_target(m, singles.items[i].name);
        split_bias(m, &singles.items[i]);
    }
    if (singles.count)
        cm_match_read_again(m);
}
