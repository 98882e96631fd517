/* Folding: nodes whose operands are all constant are run once, before anything else runs.
 *
 * Nobody can cancel this, and no run's limit counts it, so it keeps to a budget of its own: of
 * bytes that folded results hold at once, and of work, by an estimate that never says less than a
 * kernel does. What would pass the budget is left for the runs, where limits and cancelling hold.
 */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "rewrite/pass.h"

#include "base/number.h"
#include "graph/eval.h"
#include "graph/function.h"

/* Models do make their weights in the graph, hundreds of MiB of them. */
enum { FOLD_BYTES = 1 << 30 };
/* Elements read and written, products added up: about a second. */
static const double FOLD_WORK = 5e8;
/* Bytes of operands, where only a run tells how large the results are. */
enum { SMALL = 4096 };
/* Bytes that a result may always add to a file. */
enum { BLOAT = 1 << 16 };
/* Bytes of floats that quantized values may always become in a file: scalars, small tables. */
enum { BLOAT_QUANTIZED = 1024 };

struct folder {
    struct cm_module *module;
    struct cm_arena scratch; /* for one node */
    struct cm_arena arena;
    size_t bytes; /* what is left of them */
    double work;  /* what is left of it */
    bool for_file;
    cm_value first;           /* the number after those that were there before */
    CM_ARRAY(size_t) charged; /* by value from first on: bytes that its contents are charged with */
};

/* One node that might be folded. */
struct candidate {
    struct cm_node *node;
    const struct cm_datum **operands;
    size_t bytes; /* of the operands */
    double in;    /* elements of the operands */
    double all;   /* the product of their numbers */
    double two;   /* the product of the two largest numbers */
    double chars; /* of the strings among them */
    size_t out_bytes;
    double out;
};

/* ---- how much work ---- */

/* What may write over an operand goes element by element. */
static bool is_linear(const struct cm_node *node)
{
    for (int i = 0; node->op->memory.share && i < node->n_inputs; i++)
        if (node->inputs[i].value && node->op->memory.share(node, 0, i) != CM_SHARE_NOTHING)
            return true;
    return node->op->elementwise != NULL;
}

static double work_of(const struct candidate *c)
{
    const struct cm_amount amount = {
        .in = c->in, .out = c->out, .chars = c->chars, .all = c->all, .two = c->two};
    cm_work_fn *work = is_linear(c->node) ? cm_work_linear : c->node->op->cost.work;
    return work ? work(c->node, &amount) : cm_work_any(c->node, &amount);
}

/* ---- may it be folded? ---- */

/* Bytes and elements of its results by the inference rule; false when they are not known. */
static bool measure_results(struct candidate *c)
{
    const struct cm_node *node = c->node;
    for (int o = 0; o < node->n_outputs; o++) {
        if (!node->outputs[o])
            continue;
        const struct cm_type *type = cm_value_get(node->module, node->outputs[o])->fact.type;
        struct cm_shape shape;
        int64_t count;
        size_t bytes;
        if (!cm_type_shape(type, &shape) || !cm_shape_count(&shape, &count) ||
            !cm_dtype_bytes(type->dtype, count, &bytes) ||
            !cm_size_add(c->out_bytes, bytes, &c->out_bytes))
            return false;
        c->out += (double)count;
        /* An element may be all that the operands say. */
        const double chars = type->dtype == CM_STRING ? (double)count * c->chars : 0;
        if (chars > (double)FOLD_BYTES || !cm_size_add(c->out_bytes, (size_t)chars, &c->out_bytes))
            return false;
    }
    return true;
}

/* Would a file grow out of proportion? A few bytes can say "a gigabyte of zeros". */
static bool bloats(const struct folder *folder, const struct candidate *c)
{
    return folder->for_file && c->out_bytes > BLOAT && c->out_bytes / 4 > c->bytes;
}

/* Values that are quantized, or as narrow as quantized values are. */
static bool is_quantized(enum cm_dtype type)
{
    const struct cm_dtype_info *info = cm_dtype_info(type);

    return info->bits > 0 && info->bits <= 8 && type != CM_BOOL;
}

/* Would a file hold floats in place of quantized weights? It would grow fourfold, and a runtime
 * that computes with quantized values where it finds QuantizeLinear and DequantizeLinear would
 * compute something else. So these stay even where all their operands are known, and so does
 * whatever else makes floats of quantized weights, such as the Cast before a subtraction and a
 * product. */
static bool dequantizes(const struct folder *folder, const struct candidate *c)
{
    static const char *const ops[] = {"QuantizeLinear", "DequantizeLinear",
                                      "DynamicQuantizeLinear"};
    const struct cm_node *node = c->node;
    const struct cm_value_def *result =
        node->outputs[0] ? cm_value_get(node->module, node->outputs[0]) : NULL;

    for (size_t i = 0; folder->for_file && i < sizeof ops / sizeof *ops; i++)
        if (cm_str_is(node->op_type, ops[i]))
            return true;
    if (!folder->for_file || !result || c->out_bytes <= BLOAT_QUANTIZED ||
        c->out_bytes <= c->bytes || !cm_dtype_is_float(result->fact.type->dtype))
        return false;
    for (int i = 0; i < node->n_inputs; i++)
        if (c->operands[i] && is_quantized(c->operands[i]->tensor.type))
            return true;
    return false;
}

static bool may_fold(const struct folder *folder, struct candidate *c)
{
    const struct cm_node *node = c->node;
    for (int o = 0; o < node->n_outputs; o++)
        if (node->outputs[o] &&
            cm_value_get(node->module, node->outputs[o])->fact.type->kind != CM_KIND_TENSOR)
            return false; /* constants are tensors */
    if (node->op->effects & CM_OUTPUT_SIZE_AT_RUN)
        return c->bytes + (size_t)c->chars <= SMALL;
    return measure_results(c) && c->out_bytes <= folder->bytes && !bloats(folder, c) &&
           !dequantizes(folder, c) && work_of(c) <= folder->work;
}

static double characters(const struct cm_tensor *tensor)
{
    const struct cm_str *texts = tensor->data;
    double total = 0;
    for (int64_t i = 0, n = cm_tensor_count(tensor); tensor->type == CM_STRING && i < n; i++)
        total += (double)texts[i].size;
    return total;
}

/* The operands of a node when all of them are constant; NULL otherwise. */
static enum cm_status constant_operands(struct folder *folder, struct candidate *c,
                                        struct cm_error *err)
{
    const struct cm_node *node = c->node;
    const size_t n_in = (size_t)node->n_inputs;
    for (size_t i = 0; i < n_in; i++) {
        const struct cm_value_def *def =
            node->inputs[i].value ? cm_value_get(node->module, node->inputs[i].value) : NULL;
        if (def && !def->fact.constant && def->role != CM_ROLE_INITIALIZER)
            return CM_OK;
    }
    struct cm_datum *in = CM_NEW_ARRAY(&folder->scratch, struct cm_datum, n_in);
    const struct cm_datum **args = CM_NEW_ARRAY(&folder->scratch, const struct cm_datum *, n_in);
    double largest = 1;
    c->all = c->two = 1;
    for (size_t i = 0; i < n_in; i++) {
        const struct cm_tensor *constant = NULL;
        if (!node->inputs[i].value)
            continue;
        CM_TRY(cm_value_constant(node->module, node->inputs[i].value, &constant, err));
        if (!constant)
            return CM_OK;
        in[i] = (struct cm_datum){.kind = CM_KIND_TENSOR, .tensor = *constant};
        args[i] = &in[i];
        const double count = (double)cm_tensor_count(constant);
        c->bytes += cm_tensor_bytes(constant);
        c->chars += characters(constant);
        c->in += count;
        c->all *= count;
        c->two = c->two > largest * count ? c->two : largest * count;
        largest = largest > count ? largest : count;
    }
    c->operands = args;
    return CM_OK;
}

/* ---- folding ---- */

static void charge(struct folder *folder, cm_value value, size_t bytes)
{
    while (folder->charged.count <= value - folder->first)
        *CM_PUSH(&folder->arena, &folder->charged) = 0;
    bytes = cm_min_size(bytes, folder->bytes);
    folder->charged.items[value - folder->first] = bytes;
    folder->bytes -= bytes;
}

/* What was folded before and has no reader left makes room. */
static void forget_unused(struct folder *folder, cm_value value)
{
    if (value < folder->first || value - folder->first >= folder->charged.count ||
        cm_value_get(folder->module, value)->n_uses)
        return;
    folder->bytes += folder->charged.items[value - folder->first];
    folder->charged.items[value - folder->first] = 0;
    cm_value_drop_constant(folder->module, value);
}

/* Contents that inference knows already, as those of a Constant, need no run. */
static bool take_inferred(struct folder *folder, struct cm_node *node)
{
    const cm_value value = node->n_outputs == 1 ? node->outputs[0] : 0;
    const struct cm_tensor *tensor =
        value ? cm_value_get(node->module, value)->fact.constant : NULL;
    if (!tensor)
        return false;
    const cm_value constant = cm_graph_add_constant(node->graph, CM_STR_NONE, tensor);
    charge(folder, constant, 0); /* the graph holds them anyway */
    cm_value_replace(node->module, value, constant);
    return true;
}

/* Runs a node whose operands are all constant, and puts its results in its place. What fails is
 * left to fail when it runs, or never, if it never does. */
static enum cm_status fold(struct folder *folder, struct cm_node *node, bool *folded,
                           struct cm_error *err)
{
    struct candidate c = {.node = node};

    *folded = false;
    if (!cm_node_has_kernel(node) || node->op->effects & CM_RANDOM || node->n_bodies)
        return CM_OK;
    *folded = take_inferred(folder, node);
    if (*folded)
        return CM_OK;
    CM_TRY(constant_operands(folder, &c, err));
    if (!c.operands || !may_fold(folder, &c))
        return CM_OK;
    struct cm_datum *results = cm_data_new(&folder->scratch, (size_t)node->n_outputs);
    folder->work -= work_of(&c);
    if (cm_op_eval(node, c.operands, results, NULL))
        return CM_OK;
    for (int o = 0; o < node->n_outputs; o++) {
        if (!node->outputs[o])
            continue;
        /* A result may be a view of an operand: as a constant it owns its bytes or lives as long as
         * the model. */
        const struct cm_tensor *result = &results[o].tensor;
        const cm_value constant = cm_graph_add_constant(node->graph, CM_STR_NONE, result);
        charge(folder, constant, cm_tensor_bytes(result) + (size_t)characters(result));
        cm_value_replace(node->module, node->outputs[o], constant);
    }
    *folded = true;
    return CM_OK;
}

static enum cm_status fold_all(struct folder *folder, struct cm_graph *graph, struct cm_error *err)
{
    for (struct cm_node *node = graph->first, *next; node; node = next) {
        bool folded = false;
        next = node->next;
        /* A region's results are made by nodes of its body. */
        const bool is_region = node->op && node->op->effects & CM_REGION;
        for (size_t i = 0; i < node->n_bodies && !is_region; i++)
            if (node->bodies[i].graph)
                CM_TRY(fold_all(folder, node->bodies[i].graph, err));
        CM_TRY(fold(folder, node, &folded, err));
        if (folded) {
            cm_value *operands = CM_NEW_ARRAY(&folder->scratch, cm_value, (size_t)node->n_inputs);
            const int n_in = node->n_inputs;
            for (int i = 0; i < n_in; i++)
                operands[i] = node->inputs[i].value;
            cm_graph_remove_node(node);
            for (int i = 0; i < n_in; i++)
                forget_unused(folder, operands[i]);
        }
        cm_arena_reset(&folder->scratch);
    }
    return CM_OK;
}

enum cm_status cm_pass_fold(struct cm_graph *graph, const struct cm_pass_options *options,
                            struct cm_error *err)
{
    struct folder folder = {.module = graph->module,
                            .bytes = FOLD_BYTES,
                            .work = FOLD_WORK,
                            .for_file = options->for_file,
                            .first = (cm_value)cm_module_value_count(graph->module)};
    if (options->memory_limit)
        folder.bytes = cm_min_size(folder.bytes, options->memory_limit);
    cm_arena_init(&folder.scratch, cm_module_arena(graph->module)->guard);
    cm_arena_init(&folder.arena, cm_module_arena(graph->module)->guard);
    const enum cm_status status = fold_all(&folder, graph, err);
    cm_arena_release(&folder.scratch);
    cm_arena_release(&folder.arena);
    return status ? status : cm_graph_retype(graph, err);
}
