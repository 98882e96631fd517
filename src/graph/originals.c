/* What the framework calls the tensors of a model: records of PyTorch's exporters. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/originals.h"

#include "base/array.h"
#include "graph/registry.h"
#include "tensor/dtype.h"

static const char signature_key[] = "pkg.torch.export.ExportedProgram.graph_signature";
static const char fx_key[] = "pkg.torch.onnx.fx_node";
static const char rule_key[] = "pkg.onnxscript.rewriter.rule_name";
const char cm_folded_key[] = "pkg.onnxscript.optimizer.folded_from";

enum { OPERANDS_MAX = 16 }; /* of a node whose record is read for each of them */

/* How an initializer is read, as far as its folding depends on it. */
struct reads {
    const struct cm_node_proto *node; /* the first that does */
    int operand;
    size_t count;
    bool only_products;   /* each as the second operand of a product */
    struct cm_str module; /* what the modules of all readers share */
    bool at_home;         /* the module that the tensor is called after reads it */
    size_t told_in;       /* number + 1 of the last node whose operation is recorded to read it */
    size_t listed;        /* names that it was folded from, .. */
    size_t steps;         /* .. and those of them that are values of the framework's program */
};

/* A tensor that was equal to another one when the older exporter wrote it: a node copies the
 * initializer under the name that this one had. */
struct copied {
    struct cm_str name;
    size_t of; /* the initializer */
    struct reads reads;
};

struct reading {
    struct cm_arena *arena;
    const struct cm_graph_proto *graph;
    struct cm_originals *out;
    struct cm_map targets; /* names of recorded tensors to index + 1 */
    struct cm_map folded;  /* names of values to where their record is */
    struct reads *reads;   /* by initializer */
    CM_ARRAY(struct copied) copied;
    struct cm_map copies;           /* names of copied tensors to index + 1 */
    struct cm_map nodes_in, nested; /* modules to how many nodes they have; those with children */
};

/* ---- text ---- */

/* The next text in quotes, as Python writes it; names hold no escapes. */
static bool next_quoted(struct cm_str text, size_t *at, struct cm_str *out)
{
    size_t begin = *at;

    while (begin < text.size && text.data[begin] != '\'' && text.data[begin] != '"')
        begin++;
    if (begin == text.size)
        return false;
    size_t end = begin + 1;
    while (end < text.size && text.data[end] != text.data[begin])
        end++;
    *out = (struct cm_str){text.data + begin + 1, end - begin - 1};
    *at = end < text.size ? end + 1 : end;
    return true;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool cm_node_next_parameter(const struct cm_node_proto *node, size_t *at, struct cm_str *name)
{
    const struct cm_str text = cm_entries_find(&node->metadata_props, fx_key);

    for (size_t i = *at; i + 3 < text.size; i++) {
        if (text.data[i] != '%' || (text.data[i + 1] != 'p' && text.data[i + 1] != 'b') ||
            text.data[i + 2] != '_')
            continue;
        const size_t begin = i + 1;
        for (i = begin; i < text.size && is_word(text.data[i]); i++)
            ;
        *name = (struct cm_str){text.data + begin, i - begin};
        *at = i;
        return true;
    }
    *at = text.size;
    return false;
}

/* The last name but one in a list such as ['', 'a', 'a.b', 'add']. */
struct cm_str cm_node_scope(const struct cm_node_proto *node)
{
    const struct cm_str text = cm_entries_find(&node->metadata_props, "pkg.torch.onnx.name_scopes");
    struct cm_str last = CM_STR_NONE, before = CM_STR_NONE, one;

    for (size_t at = 0; next_quoted(text, &at, &one); last = one)
        before = last;
    return before;
}

/* "/enc/layers.0/fc/MatMul" of the older exporter is in enc.layers.0.fc; a container repeats its
 * name in its children's: "/enc/enc.0/Relu" is in enc.0. */
static struct cm_str module_of_path(struct cm_arena *arena, struct cm_str path)
{
    char *text = cm_arena_alloc(arena, path.size + 1);
    size_t size = 0, last = 0; /* where the last part begins in text */
    size_t from = 1;

    for (size_t i = 1; i < path.size; i++) {
        if (path.data[i] != '/')
            continue;
        const struct cm_str part = {path.data + from, i - from},
                            before = {text + last, size - last};
        const bool repeats = before.size && part.size > before.size &&
                             memcmp(part.data, before.data, before.size) == 0 &&
                             part.data[before.size] == '.';

        if (repeats)
            size = last;
        else if (size)
            text[size++] = '.';
        last = size;
        memcpy(text + size, part.data, part.size);
        size += part.size;
        from = i + 1;
    }
    return (struct cm_str){text, size};
}

static struct cm_str module_of(struct cm_arena *arena, const struct cm_node_proto *node)
{
    const struct cm_str scope = cm_node_scope(node);

    if (scope.size)
        return scope;
    return cm_str_starts(node->name, "/") ? module_of_path(arena, node->name) : CM_STR_NONE;
}

/* The part of two module names that is the same, in whole words. */
static struct cm_str shared_module(struct cm_str a, struct cm_str b)
{
    size_t same = 0, whole = 0;

    while (same < a.size && same < b.size && a.data[same] == b.data[same]) {
        if (a.data[same] == '.')
            whole = same;
        same++;
    }
    if ((same == a.size || a.data[same] == '.') && (same == b.size || b.data[same] == '.'))
        whole = same;
    return (struct cm_str){a.data, whole};
}

/* A name that an exporter made up: "val_12", "onnx::MatMul_305"; or, where such a tensor was taken
 * apart, a name that ends so, or begins so: "val_12.node". */
static bool is_made_up(struct cm_str name)
{
    const size_t module = cm_str_before_last(name, '.').size;
    size_t digits = 4;

    while (cm_str_starts(name, "val_") && digits < name.size && name.data[digits] >= '0' &&
           name.data[digits] <= '9')
        digits++;
    if (digits > 4 && digits < name.size && name.data[digits] == '.')
        return true;
    if (module)
        name = (struct cm_str){name.data + module + 1, name.size - module - 1};
    return cm_str_starts(name, "val_") || cm_str_starts(name, "onnx::");
}

bool cm_original_is_made_up(struct cm_str name)
{
    return is_made_up(name) || cm_str_starts(name, "/");
}

const char *cm_operand_duty(const struct cm_op *op, int operand)
{
    const struct cm_training_form *form = op->training;
    const int at = form && form->n_statistics ? operand - form->statistics_input : -1;

    if (at >= 0 && at < form->n_statistics)
        return at == 0 ? "mean" : "var";
    if (!(op->layer.weights & CM_OPERAND(operand < 31 ? operand : 31)))
        return NULL;
    switch (op->layer.entry) {
    case CM_ENTERS_AS_SHIFT:
        return "bias";
    case CM_ENTERS_AS_SCALE:
    case CM_ENTERS_AS_TABLE:
        return "weight";
    default:
        return operand < 2 ? "weight" : "bias";
    }
}

/* ---- what is recorded ---- */

/* Lines such as "p_fc_weight: PARAMETER target='fc.weight'". */
static void read_signature(struct reading *r)
{
    const struct cm_str text = cm_entries_find(&r->graph->metadata_props, signature_key);
    struct {
        CM_ARRAY(struct cm_recorded_tensor);
    } list = {0};

    for (size_t begin = 0; begin < text.size;) {
        size_t end = begin, colon = begin, at = 0;
        bool added;

        while (end < text.size && text.data[end] != '\n')
            end++;
        while (colon < end && text.data[colon] != ':')
            colon++;
        const struct cm_str key = {text.data + begin, colon - begin};
        const struct cm_str rest = {text.data + colon, end - colon};
        struct cm_str target;
        begin = end + 1;
        const bool is_parameter = cm_str_starts(rest, ": PARAMETER target=");
        if ((!is_parameter && !cm_str_starts(rest, ": BUFFER target=")) ||
            !next_quoted(rest, &at, &target) || !target.size)
            continue;
        uint64_t *number = cm_map_insert(&r->targets, r->arena, target, &added);
        if (!added)
            continue;
        *CM_PUSH(r->arena, &list) =
            (struct cm_recorded_tensor){.target = target,
                                        .is_parameter = is_parameter,
                                        .is_transient = cm_str_contains(rest, " persistent=False")};
        *number = list.count;
        *cm_map_insert(&r->out->told, r->arena, key, NULL) = list.count;
    }
    r->out->recorded = list.items;
    r->out->n_recorded = list.count;
}

static struct cm_recorded_tensor *find_recorded(const struct reading *r, struct cm_str target)
{
    const uint64_t number = cm_map_get(&r->targets, target, 0);

    return number ? &r->out->recorded[number - 1] : NULL;
}

/* Values that say what they were folded from. */
static void find_folded(struct reading *r)
{
    const struct cm_graph_proto *graph = r->graph;
    const struct cm_value_infos *const lists[] = {&graph->value_info, &graph->input};

    for (size_t l = 0; l < CM_COUNT(lists); l++)
        for (size_t i = 0; i < lists[l]->count; i++) {
            const struct cm_value_info_proto *info = &lists[l]->items[i];
            const struct cm_str text = cm_entries_find(&info->metadata_props, cm_folded_key);

            if (text.size)
                *cm_map_insert(&r->folded, r->arena, info->name, NULL) = (uint64_t)(uintptr_t)info;
        }
}

static struct cm_str folded_text(const struct reading *r, const struct cm_tensor_proto *tensor)
{
    const struct cm_str own = cm_entries_find(&tensor->metadata_props, cm_folded_key);
    const struct cm_value_info_proto *info =
        (const void *)(uintptr_t)cm_map_get(&r->folded, tensor->name, 0);

    if (own.size || !info)
        return own;
    return cm_entries_find(&info->metadata_props, cm_folded_key);
}

static bool is_float(const struct cm_tensor_proto *tensor)
{
    return cm_dtype_is_valid(tensor->data_type) && cm_dtype_is_float(tensor->data_type);
}

static void add_name(struct reading *r, size_t i, struct cm_str name,
                     struct cm_recorded_tensor *recorded)
{
    struct cm_original *original = &r->out->items[i];

    *CM_PUSH(r->arena, &original->names) = name;
    if (!recorded)
        return;
    original->is_parameter = original->is_parameter || recorded->is_parameter;
    original->is_transient = recorded->is_transient;
    recorded->holder = recorded->holder ? recorded->holder : i + 1;
}

/* Intermediate values are listed too. Without a list of the network's tensors, one name alone may
 * be a tensor's. */
static void read_folded(struct reading *r, size_t i)
{
    const struct cm_tensor_proto *tensor = &r->graph->initializer.items[i];
    const struct cm_str text = folded_text(r, tensor);
    struct cm_original *original = &r->out->items[i];
    struct reads *reads = &r->reads[i];
    struct cm_str name, only = CM_STR_NONE;

    if (!is_float(tensor))
        return;
    for (size_t at = 0; next_quoted(text, &at, &name); reads->listed++) {
        struct cm_recorded_tensor *recorded = find_recorded(r, name);

        only = name;
        if (recorded)
            add_name(r, i, name, recorded);
        else if (!is_made_up(name))
            reads->steps++;
    }
    if (!r->out->n_recorded && reads->listed == 1 && tensor->dims.count && !is_made_up(only)) {
        add_name(r, i, only, NULL);
        reads->steps = 0;
    }
    if (original->names.count)
        original->folding = CM_FOLDED_COMPUTED;
}

static void read_names(struct reading *r)
{
    for (size_t i = 0; i < r->out->count; i++) {
        const struct cm_str name = r->graph->initializer.items[i].name;
        struct cm_recorded_tensor *recorded = find_recorded(r, name);

        *cm_map_insert(&r->out->by_name, r->arena, name, NULL) = i + 1;
        if (recorded)
            add_name(r, i, name, recorded);
    }
    for (size_t i = 0; i < r->out->count; i++)
        if (!r->out->items[i].names.count)
            read_folded(r, i);
}

/* ---- who reads what ---- */

static void note_module(struct reading *r, struct cm_str module)
{
    if (!module.size)
        return;
    ++*cm_map_insert(&r->nodes_in, r->arena, module, NULL);
    while (module.size) {
        while (module.size && module.data[module.size - 1] != '.')
            module.size--;
        if (!module.size || !(--module.size))
            break;
        if (!cm_map_add(&r->nested, r->arena, module))
            break; /* and so are those around it */
    }
}

static void note_read(struct reads *reads, const struct cm_node_proto *node, size_t operand,
                      struct cm_str module)
{
    const struct cm_op *op = cm_builtin_op(node);
    const bool is_product = operand == 1 && op->cost.flops && (op->layer.weights & CM_OPERAND(1));

    if (!reads->count++) {
        reads->node = node;
        reads->operand = (int)operand;
        reads->only_products = true;
        reads->module = module;
    }
    reads->only_products = reads->only_products && is_product;
    reads->module = shared_module(reads->module, module);
}

/* The older exporter calls such nodes Identity_12; a layer of the network would be /layer/Identity.
 */
static bool note_copy(struct reading *r, const struct cm_node_proto *node)
{
    if (!cm_str_starts(node->name, "Identity_") || !cm_builtin_op(node)->values.is_copy ||
        node->input.count != 1 || node->output.count != 1)
        return false;
    const uint64_t i = cm_map_get(&r->out->by_name, node->input.items[0], 0);
    if (!i || !is_float(&r->graph->initializer.items[i - 1]))
        return false;
    *CM_PUSH(r->arena, &r->copied) =
        (struct copied){.name = node->output.items[0], .of = (size_t)i - 1};
    *cm_map_insert(&r->copies, r->arena, node->output.items[0], NULL) = r->copied.count;
    return true;
}

static void read_nodes(struct reading *r)
{
    for (size_t n = 0; n < r->graph->node.count; n++) {
        const struct cm_node_proto *node = &r->graph->node.items[n];
        const struct cm_str module = module_of(r->arena, node);

        if (note_copy(r, node))
            continue;
        note_module(r, module);
        for (size_t k = 0; k < node->input.count; k++) {
            const uint64_t i = cm_map_get(&r->out->by_name, node->input.items[k], 0);
            const uint64_t c = i ? 0 : cm_map_get(&r->copies, node->input.items[k], 0);

            if (i) {
                struct reads *reads = &r->reads[i - 1];

                note_read(reads, node, k, module);
                reads->at_home =
                    reads->at_home ||
                    (module.size &&
                     cm_str_equal(module, cm_str_before_last(node->input.items[k], '.')));
            } else if (c)
                note_read(&r->copied.items[c - 1].reads, node, k, module);
        }
    }
}

/* ---- what was done to them ---- */

/* Values of the framework's program are called after their operation. */
static bool is_called(struct cm_str name, const char *const *words, size_t count)
{
    while (name.size && name.data[name.size - 1] >= '0' && name.data[name.size - 1] <= '9')
        name.size--;
    if (name.size && name.data[name.size - 1] == '_')
        name.size--;
    return cm_str_place(name, words, count) >= 0;
}

static bool is_vector(const struct cm_tensor_proto *tensor)
{
    size_t axes = 0;

    for (size_t i = 0; i < tensor->dims.count; i++)
        axes += tensor->dims.items[i] != 1;
    return axes <= 1 && tensor->dims.count;
}

/* Operations of the framework that change their weight in a way of their own. */
static enum cm_folding folding_within(const struct reads *reads,
                                      const struct cm_tensor_proto *tensor)
{
    static const char *const unsqueezing[] = {"aten.group_norm.", "aten.instance_norm.",
                                              "aten.prelu.", "aten._prelu_kernel."};
    const struct cm_str text = cm_entries_find(&reads->node->metadata_props, fx_key);

    if (reads->operand >= OPERANDS_MAX)
        return CM_FOLDED_COMPUTED;
    if (tensor->dims.count == 2 && reads->only_products && cm_str_contains(text, "aten.linear."))
        return CM_FOLDED_TRANSPOSED;
    for (size_t i = 0; is_vector(tensor) && i < CM_COUNT(unsqueezing); i++)
        if (cm_str_contains(text, unsqueezing[i]))
            return CM_FOLDED_UNSQUEEZED;
    return CM_FOLDED_COMPUTED;
}

static void find_folding(struct reading *r, size_t i)
{
    const struct cm_tensor_proto *tensor = &r->graph->initializer.items[i];
    const struct reads *reads = &r->reads[i];
    struct cm_original *original = &r->out->items[i];

    static const char *const transposing[] = {"t", "transpose", "permute", "numpy_t", "mT", "mt"};
    static const char *const looking_up[] = {"embedding"};

    if (original->folding != CM_FOLDED_COMPUTED)
        return;
    if (reads->count == 1 && cm_builtin_op(reads->node)->layer.gates &&
        cm_operand_duty(cm_builtin_op(reads->node), reads->operand))
        original->folding = CM_FOLDED_GATES;
    if (original->names.count != 1)
        return;
    if (tensor->dims.count >= 2 && is_called(tensor->name, looking_up, CM_COUNT(looking_up)))
        original->folding = CM_FOLDED_ROWS;
    if (reads->steps || original->folding != CM_FOLDED_COMPUTED)
        return;
    if (tensor->dims.count == 2 && reads->listed == 1 &&
        is_called(tensor->name, transposing, CM_COUNT(transposing)))
        original->folding = CM_FOLDED_TRANSPOSED;
    else if (reads->node && is_made_up(tensor->name))
        original->folding = folding_within(reads, tensor);
}

/* ---- tensors that stand for several ---- */

/* Tensors that a node's operation reads and that no initializer holds yet: the only one, and the
 * only one that ends with each duty. */
struct open_tensors {
    struct cm_recorded_tensor *one;
    size_t count;
    struct {
        const char *duty;
        struct cm_recorded_tensor *one;
        size_t count;
    } by_duty[4];
};

static void add_open(struct open_tensors *open, struct cm_recorded_tensor *recorded)
{
    open->one = recorded;
    open->count++;
    for (size_t d = 0; d < CM_COUNT(open->by_duty); d++)
        if (cm_str_ends(recorded->target, open->by_duty[d].duty)) {
            open->by_duty[d].one = recorded;
            open->by_duty[d].count++;
        }
}

static struct cm_recorded_tensor *open_for(const struct open_tensors *open, const char *duty)
{
    if (open->count == 1)
        return open->one;
    for (size_t d = 0; duty && d < CM_COUNT(open->by_duty); d++)
        if (open->by_duty[d].count == 1 && strcmp(open->by_duty[d].duty, duty) == 0)
            return open->by_duty[d].one;
    return NULL;
}

#define NO_OPEN_TENSORS                                                                            \
    ((struct open_tensors){                                                                        \
        .by_duty = {{.duty = "weight"}, {.duty = "bias"}, {.duty = "mean"}, {.duty = "var"}}})

/* The tensor that the module of a node calls so, where no initializer holds it: tensors that are
 * tied are recorded under one name in every operation. */
static struct cm_recorded_tensor *find_in_scope(const struct reading *r,
                                                const struct cm_node_proto *node, const char *duty)
{
    const struct cm_str scope = cm_node_scope(node);

    if (!duty || !scope.size)
        return NULL;
    struct cm_recorded_tensor *recorded =
        find_recorded(r, cm_arena_printf(r->arena, "%.*s.%s", (int)scope.size, scope.data, duty));
    return recorded && !recorded->holder ? recorded : NULL;
}

/* Does a node read an initializer as one that was folded in the way that this one was? */
static bool is_folded_alike(const struct reading *r, size_t i, const struct cm_node_proto *node,
                            size_t operand)
{
    const enum cm_folding folding = r->out->items[i].folding;
    const struct reads as_read = {
        .node = node, .operand = (int)operand, .only_products = r->reads[i].only_products};

    return folding == CM_FOLDED_NOT ||
           (folding < CM_FOLDED_GATES && is_made_up(r->graph->initializer.items[i].name) &&
            folding_within(&as_read, &r->graph->initializer.items[i]) == folding);
}

/* The framework's linear layer transposes its weight in a node of its own, where the exporter does
 * not fold it. */
static const char *duty_of_read(const struct cm_node_proto *node, int operand)
{
    const struct cm_op *op = cm_builtin_op(node);

    if (op->values.kept && operand == 0 &&
        cm_str_contains(cm_entries_find(&node->metadata_props, fx_key), "aten.linear."))
        return "weight";
    return cm_operand_duty(op, operand);
}

/* Tensors that are equal, or tied, are written once, under the name of one of them. A convolution
 * that a normalization was folded into is recorded as the normalization. */
static void read_aliases(struct reading *r, size_t n)
{
    const struct cm_node_proto *node = &r->graph->node.items[n];
    struct open_tensors open = NO_OPEN_TENSORS;
    struct cm_str name;

    if (cm_str_contains(cm_entries_find(&node->metadata_props, rule_key), "FuseBatchNorm"))
        return;
    for (size_t at = 0; cm_node_next_parameter(node, &at, &name);) {
        const uint64_t number = cm_map_get(&r->out->told, name, 0);
        struct cm_recorded_tensor *recorded = number ? &r->out->recorded[number - 1] : NULL;

        if (recorded && recorded->holder)
            r->reads[recorded->holder - 1].told_in = n + 1;
        else if (recorded)
            add_open(&open, recorded);
    }
    for (size_t k = 0; k < node->input.count && k < OPERANDS_MAX; k++) {
        const uint64_t i = cm_map_get(&r->out->by_name, node->input.items[k], 0);

        if (!i || !is_float(&r->graph->initializer.items[i - 1]))
            continue;
        const char *duty = duty_of_read(node, (int)k);
        struct cm_recorded_tensor *recorded =
            r->reads[i - 1].told_in == n + 1 ? find_in_scope(r, node, duty) : open_for(&open, duty);
        if (recorded && !recorded->holder && is_folded_alike(r, (size_t)i - 1, node, k))
            add_name(r, (size_t)i - 1, recorded->target, recorded);
    }
}

struct cm_str cm_originals_meant(const struct cm_originals *originals, struct cm_str name,
                                 const struct cm_node_proto *node, size_t operand)
{
    const uint64_t i = cm_map_get(&originals->by_name, name, 0);
    struct open_tensors open = NO_OPEN_TENSORS;
    struct cm_str told;

    for (size_t at = 0; i && cm_node_next_parameter(node, &at, &told);) {
        const uint64_t number = cm_map_get(&originals->told, told, 0);

        if (number && originals->recorded[number - 1].holder == i)
            add_open(&open, &originals->recorded[number - 1]);
    }
    const struct cm_recorded_tensor *recorded =
        open_for(&open, cm_operand_duty(cm_builtin_op(node), (int)(operand < 31 ? operand : 31)));
    return recorded ? recorded->target : CM_STR_NONE;
}

/* ---- the older exporter ---- */

/* A module that is one layer: no modules in it, and no more nodes than those of a product: it, the
 * transpose of its weight where that was not folded, its bias. */
static bool is_layer(const struct reading *r, struct cm_str module, size_t nodes)
{
    return module.size && !cm_map_find(&r->nested, module) &&
           cm_map_get(&r->nodes_in, module, 0) <= nodes;
}

enum { FOLDED_LAYER = 2, WHOLE_LAYER = 3 }; /* nodes */

static struct cm_str name_in(const struct reading *r, struct cm_str module, const char *duty)
{
    return cm_arena_printf(r->arena, "%.*s.%s", (int)module.size, module.data, duty);
}

/* A tensor that was folded is called after its reader, and nothing else is known of it. The weight
 * of a product was transposed; one of a convolution has a normalization in it. */
static void name_by_reader(struct reading *r, struct cm_original *original, struct cm_str name,
                           const struct cm_tensor_proto *tensor, const struct reads *reads)
{
    if (original->names.count || !reads->node || !is_made_up(name) || !is_float(tensor))
        return;
    const struct cm_op *op = cm_builtin_op(reads->node);
    const char *duty = cm_operand_duty(op, reads->operand);
    if (reads->count != 1 || !duty || !op->cost.flops || op->layer.gates ||
        !is_layer(r, reads->module, FOLDED_LAYER) || !cm_str_starts(name, "onnx::")) {
        original->module = reads->module;
        return;
    }
    *CM_PUSH(r->arena, &original->names) = name_in(r, reads->module, duty);
    original->is_named_by_node = true;
    original->folding =
        tensor->dims.count == 2 && reads->only_products ? CM_FOLDED_TRANSPOSED : CM_FOLDED_COMPUTED;
}

/* Another name for an initializer, beside that which it has. */
static void add_alias(struct reading *r, size_t i, struct cm_str alias)
{
    struct cm_original *original = &r->out->items[i];

    if (!original->names.count)
        *CM_PUSH(r->arena, &original->names) = r->graph->initializer.items[i].name;
    if (!cm_original_has_name(original, alias))
        *CM_PUSH(r->arena, &original->names) = alias;
}

/* A layer that reads the weight of another one, as its own weight. */
static void name_tied_read(struct reading *r, size_t i, const struct cm_node_proto *node,
                           size_t operand, struct cm_str module)
{
    const struct cm_str name = r->graph->initializer.items[i].name,
                        home = cm_str_before_last(name, '.');
    const char *duty = cm_operand_duty(cm_builtin_op(node), (int)operand);

    if (!duty || !r->reads[i].at_home || cm_str_equal(module, home) ||
        !is_layer(r, module, WHOLE_LAYER) || !cm_str_equal(name, name_in(r, home, duty)))
        return;
    const struct cm_str alias = name_in(r, module, duty);
    if (!cm_map_find(&r->out->by_name, alias) && !cm_map_find(&r->copies, alias))
        add_alias(r, i, alias);
}

/* The layer that reads a tensor of another layer has it by a name of its own: the two are tied, and
 * the older exporter writes one of them. What reads it may be a product behind a Transpose node;
 * training makes one of a transpose that the exporter folded. */
static void name_tied(struct reading *r)
{
    struct cm_map turned = {
        0}; /* values to index + 1 of the tensor that they are the transpose of */

    for (size_t n = 0; n < r->graph->node.count; n++) {
        const struct cm_node_proto *node = &r->graph->node.items[n];
        const struct cm_op *op = cm_builtin_op(node);
        const struct cm_str module = module_of(r->arena, node);

        for (size_t k = 0; k < node->input.count && k < OPERANDS_MAX; k++) {
            const uint64_t turn = cm_map_get(&turned, node->input.items[k], 0);
            const uint64_t i = turn ? turn : cm_map_get(&r->out->by_name, node->input.items[k], 0);

            if (!i || !is_float(&r->graph->initializer.items[i - 1]))
                continue;
            const struct cm_tensor_proto *tensor = &r->graph->initializer.items[i - 1];
            if (op->values.kept && !op->values.is_copy && k == 0 && node->output.count &&
                tensor->dims.count == 2 && !turn)
                *cm_map_insert(&turned, r->arena, node->output.items[0], NULL) = i;
            name_tied_read(r, (size_t)i - 1, node, k, module);
        }
    }
}

/* A copy stands for a tensor of its own, which its name or its reader tells. The initializer has
 * this name too, if it was folded in the same way. */
static void name_copies(struct reading *r)
{
    for (size_t c = 0; c < r->copied.count; c++) {
        const struct copied *copied = &r->copied.items[c];
        const struct cm_tensor_proto *tensor = &r->graph->initializer.items[copied->of];
        const bool is_whole = !is_made_up(tensor->name);
        struct cm_original own = {0};

        if (is_made_up(copied->name))
            name_by_reader(r, &own, copied->name, tensor, &copied->reads);
        else
            *CM_PUSH(r->arena, &own.names) = copied->name;
        if (own.names.count && own.folding == r->out->items[copied->of].folding &&
            (is_whole || r->out->items[copied->of].names.count))
            add_alias(r, copied->of, own.names.items[0]);
        *CM_PUSH(r->arena, r->out) = own;
        *cm_map_insert(&r->out->by_name, r->arena, copied->name, NULL) = r->out->count;
    }
}

/* ---- what is not there ---- */

static void list_missing(struct reading *r)
{
    for (size_t i = 0; i < r->out->n_recorded; i++) {
        const struct cm_recorded_tensor *recorded = &r->out->recorded[i];

        if (recorded->holder)
            continue;
        if (recorded->is_parameter)
            *CM_PUSH(r->arena, &r->out->missing) = recorded->target;
        else if (cm_str_ends(recorded->target, ".running_mean"))
            *CM_PUSH(r->arena, &r->out->norms) = cm_str_before_last(recorded->target, '.');
        else if (!recorded->is_transient && !cm_str_ends(recorded->target, ".running_var") &&
                 !cm_str_ends(recorded->target, ".num_batches_tracked"))
            *CM_PUSH(r->arena, &r->out->buffers) = recorded->target;
    }
}

/* Is there anything to find in the nodes? */
static bool is_recorded(const struct reading *r)
{
    for (size_t i = 0; i < r->out->count; i++)
        if (r->out->items[i].folding || is_made_up(r->graph->initializer.items[i].name))
            return true;
    return r->out->n_recorded || r->out->is_older;
}

struct cm_originals *cm_originals_read(struct cm_arena *arena, const struct cm_graph_proto *graph)
{
    struct cm_originals *out = CM_NEW(arena, struct cm_originals);
    struct reading r = {.arena = arena, .graph = graph, .out = out};

    if (!graph)
        return out;
    out->count = out->capacity = graph->initializer.count;
    out->items = CM_NEW_ARRAY(arena, struct cm_original, out->count);
    r.reads = CM_NEW_ARRAY(arena, struct reads, out->count);
    for (size_t n = 0; n < graph->node.count && !out->is_older; n++)
        out->is_older = cm_str_starts(graph->node.items[n].name, "/");
    read_signature(&r);
    find_folded(&r);
    read_names(&r);
    if (!is_recorded(&r))
        return out;
    read_nodes(&r);
    for (size_t i = 0; i < out->count; i++)
        find_folding(&r, i);
    for (size_t n = 0; out->n_recorded && n < graph->node.count; n++)
        read_aliases(&r, n);
    for (size_t i = 0; i < out->count; i++)
        name_by_reader(&r, &out->items[i], graph->initializer.items[i].name,
                       &graph->initializer.items[i], &r.reads[i]);
    if (out->is_older && !out->n_recorded) {
        name_tied(&r);
        name_copies(&r);
    }
    list_missing(&r);
    return out;
}
