/* Values for inputs that nobody gave. */
// SPDX-License-Identifier: Apache-2.0
#include "infer/invent.h"

#include "base/random.h"
#include "graph/op.h"

enum {
    USES_MAX = 4096,     /* readers of an input that are looked at */
    SEQUENCE_LENGTH = 2, /* items of a sequence */
    SAMPLE_RATE = 16000,
    READERS_MAX = 64, /* of strings, each with words of its own */
};

struct inventing {
    struct cm_graph *graph;
    const struct cm_invent_options *options;
    const struct cm_open_sizes *sizes;
    struct cm_random random;
    size_t bytes; /* of the values made so far */
    struct cm_error *err;
};

/* ---- what an input is used for ---- */

struct purpose {
    int64_t below;                     /* elements point at something of this size; 0: at nothing */
    struct cm_strs words[READERS_MAX]; /* what readers of strings know */
    int n_words;
    int uses_left;
};

static void note_size(struct purpose *p, struct cm_dim dim)
{
    const int64_t size = cm_dim_known(dim) && dim.value > 0 ? dim.value : 1;

    if (p->below == 0 || size < p->below)
        p->below = size;
}

static void note_table(struct purpose *p, const struct cm_node *node,
                       const struct cm_indexing *indexing)
{
    const cm_value value = cm_node_input(node, indexing->table);
    const struct cm_type *table = value ? cm_value_get(node->module, value)->fact.type : NULL;
    int axis;

    if (!table || table->kind != CM_KIND_TENSOR || table->rank < 1)
        note_size(p, CM_DIM_ANY);
    else if (indexing->axis && cm_axis_fix(cm_node_int(node, indexing->axis), table->rank, &axis))
        note_size(p, table->dims[axis]);
    else
        for (int i = 0; i < table->rank; i++)
            note_size(p, table->dims[i]);
}

static void note_classes(struct purpose *p, const struct cm_node *node,
                         const struct cm_class_labels *labels)
{
    const cm_value value = cm_node_input(node, labels->scores);
    const struct cm_type *scores = value ? cm_value_get(node->module, value)->fact.type : NULL;

    if (scores && scores->kind == CM_KIND_TENSOR && scores->rank > labels->class_axis)
        note_size(p, scores->dims[labels->class_axis]);
}

static void note_words(struct purpose *p, const struct cm_node *node)
{
    for (size_t i = 0; i < node->n_attributes && p->n_words < READERS_MAX; i++)
        if (node->attributes[i].strings.count)
            p->words[p->n_words++] = node->attributes[i].strings;
}

static bool passes_on(const struct cm_op *op, int operand)
{
    return (op->values.kept && operand == 0) ||
           (operand < 32 && op->values.picked_from >> operand & 1);
}

static void note_uses(struct purpose *p, const struct cm_module *module, cm_value value)
{
    for (const struct cm_use *use = cm_value_get(module, value)->uses; use && p->uses_left > 0;
         use = use->next) {
        const struct cm_node *node = use->node;

        p->uses_left--;
        if (!node || !node->op)
            continue;
        if (node->op->values.indexing && node->op->values.indexing->indices == use->index)
            note_table(p, node, node->op->values.indexing);
        if (node->op->scores.labels && node->op->scores.labels->labels == use->index)
            note_classes(p, node, node->op->scores.labels);
        note_words(p, node);
        for (int o = 0; o < node->n_outputs && passes_on(node->op, use->index); o++)
            if (node->outputs[o])
                note_uses(p, module, node->outputs[o]);
    }
}

/* ---- numbers ---- */

static int64_t draw_below(struct inventing *v, int64_t below)
{
    return (int64_t)(cm_random_uniform(&v->random) * (double)below);
}

/* The largest size of what has a length: what a count of frames or samples may be. */
static int64_t longest(const struct cm_open_sizes *sizes)
{
    int64_t most = 1;

    for (size_t i = 0; i < sizes->count; i++) {
        const struct cm_open_size *open = &sizes->items[i];
        if (open->role != CM_SIZE_BATCH && open->role != CM_SIZE_CHANNELS && open->size > most)
            most = open->size;
    }
    return most;
}

static bool is_mask(struct cm_str name)
{
    for (size_t i = 0; i + 4 <= name.size; i++)
        if (cm_str_starts((struct cm_str){name.data + i, name.size - i}, "mask"))
            return true;
    return false;
}

/* One element of an integer input whose elements point at nothing. */
static int64_t draw_integer(struct inventing *v, struct cm_str name, const struct cm_tensor *tensor)
{
    const unsigned attempt = v->options->sizes.attempt;

    if (is_mask(name))
        return 1;
    if (cm_str_is(name, "sr") || cm_name_has_word(name, "rate"))
        return SAMPLE_RATE;
    if (cm_name_has_word(name, "len") && attempt == 0)
        return longest(v->sizes);
    if (tensor->type == CM_UINT8 && tensor->shape.rank > 2)
        return draw_below(v, 256); /* an image */
    if (tensor->type == CM_BOOL || attempt > 3)
        return draw_below(v, 2);
    if (cm_tensor_count(tensor) == 1 || cm_name_has_word(name, "size") ||
        cm_name_has_word(name, "shape"))
        return attempt < 3 ? 1 + (int64_t)attempt : 1; /* how many of something: 0 may be too few */
    return draw_below(v, 2);
}

static double draw_float(struct inventing *v)
{
    const double x = cm_random_uniform(&v->random);

    if (!v->options->both_signs)
        return x;
    return x < 0.5 ? 2 * x - 1.05 : 2 * x - 0.95;
}

static void fill_numbers(struct inventing *v, struct cm_str name, const struct purpose *purpose,
                         const struct cm_tensor *tensor)
{
    const bool is_float = cm_dtype_info(tensor->type)->kind == CM_CLASS_FLOAT;
    const int64_t count = cm_tensor_count(tensor);

    for (int64_t i = 0; i < count; i++) {
        const double value = purpose->below ? (double)draw_below(v, purpose->below)
                             : is_float     ? draw_float(v)
                                            : (double)draw_integer(v, name, tensor);
        cm_tensor_set_real(tensor, i, value);
    }
}

static void fill_complex(struct inventing *v, const struct cm_tensor *tensor)
{
    const struct cm_tensor parts = {.type = tensor->type == CM_COMPLEX64 ? CM_FLOAT : CM_DOUBLE,
                                    .data = tensor->data};

    for (int64_t i = 0, n = 2 * cm_tensor_count(tensor); i < n; i++)
        cm_tensor_set_real(&parts, i, draw_float(v));
}

/* Where there is a reader for each column, each column has words of its own. */
static void fill_words(struct inventing *v, const struct purpose *purpose,
                       const struct cm_tensor *tensor)
{
    static const struct cm_str any[] = {{"a", 1}, {"few words", 9}, {"of text", 7}};
    const int rank = tensor->shape.rank;
    const bool by_column = rank > 1 && tensor->shape.dims[rank - 1] == purpose->n_words;
    struct cm_str *to = tensor->data;

    for (int64_t i = 0, n = cm_tensor_count(tensor); i < n; i++) {
        /* Readers are found from the last to the first. */
        const int64_t reader = by_column ? purpose->n_words - 1 - i % purpose->n_words : 0;
        const struct cm_strs *words = &purpose->words[reader];

        to[i] = purpose->n_words ? words->items[draw_below(v, (int64_t)words->count)]
                                 : any[draw_below(v, (int64_t)CM_COUNT(any))];
    }
}

/* ---- values ---- */

static enum cm_status charge(struct inventing *v, enum cm_dtype dtype, const struct cm_shape *shape)
{
    const size_t limit = v->options->memory_limit ? v->options->memory_limit : SIZE_MAX;
    size_t bytes;

    if (!cm_dtype_bytes(dtype, cm_shape_elements(shape), &bytes) || bytes > limit - v->bytes)
        return cm_fail(v->err, CM_LIMIT, "the inputs would pass the memory limit of %zu bytes",
                       limit);
    v->bytes += bytes;
    return CM_OK;
}

static enum cm_status make_tensor(struct inventing *v, size_t input, const struct cm_type *type,
                                  struct cm_datum *out)
{
    const cm_value value = v->graph->inputs[input];
    struct purpose purpose = {.uses_left = USES_MAX};
    struct cm_shape shape;

    if (!cm_type_shape(type, &shape))
        return cm_fail(v->err, CM_BAD_ARGUMENT, "its shape is not known");
    CM_TRY(charge(v, type->dtype, &shape));
    out->kind = CM_KIND_TENSOR;
    CM_TRY(cm_tensor_new(type->dtype, &shape, &out->tensor, v->err));
    memset(out->tensor.data, 0, cm_tensor_bytes(&out->tensor));
    note_uses(&purpose, v->graph->module, value);
    if (type->dtype == CM_STRING)
        fill_words(v, &purpose, &out->tensor);
    else if (cm_dtype_info(type->dtype)->kind == CM_CLASS_COMPLEX)
        fill_complex(v, &out->tensor);
    else
        fill_numbers(v, cm_value_get(v->graph->module, value)->name, &purpose, &out->tensor);
    return CM_OK;
}

static enum cm_status make(struct inventing *v, size_t input, const struct cm_type *type,
                           struct cm_datum *out)
{
    if (type->kind == CM_KIND_OPTIONAL) /* one with content is the content */
        return make(v, input, type->elem, out);
    if (type->kind == CM_KIND_TENSOR)
        return make_tensor(v, input, type, out);
    if (type->kind != CM_KIND_SEQUENCE)
        return cm_fail(v->err, CM_BAD_ARGUMENT, "only tensors and sequences of them are made up");
    CM_TRY(cm_sequence_new(SEQUENCE_LENGTH, out, v->err));
    for (int i = 0; i < SEQUENCE_LENGTH; i++) {
        const enum cm_status status = make(v, input, type->elem, &out->items[out->n_items]);

        out->n_items++;
        CM_TRY(status);
    }
    return CM_OK;
}

enum cm_status cm_invent(struct cm_graph *graph, const struct cm_invent_options *options,
                         struct cm_open_sizes *sizes, struct cm_datum *values, struct cm_error *err)
{
    struct inventing v = {.graph = graph, .options = options, .sizes = sizes, .err = err};

    CM_TRY(cm_open_sizes_find(graph, &options->sizes, sizes, err));
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const struct cm_value_def *def = cm_value_get(graph->module, graph->inputs[i]);

        if (!options->wanted[i])
            continue;
        cm_random_seed_philox(&v.random, options->seed, i);
        const struct cm_type *type = sizes->types[i] ? sizes->types[i] : def->fact.type;
        CM_TRY(cm_error_context(err, make(&v, i, type, &values[i]),
                                "input '%.*s' cannot be made up, it must be given",
                                CM_STR_FMT(def->name)));
    }
    return CM_OK;
}
