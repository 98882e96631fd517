/* Writing training info piece by piece. */
// SPDX-License-Identifier: Apache-2.0
#include "train/draft.h"

#include "graph/builder.h"
#include "graph/registry.h"
#include "onnx/syntax.h"
#include "onnx/tensor_data.h"
#include "tensor/half.h"

enum { DEPTH_MAX = 64 };

/* ---- names ---- */

static void take(struct cm_draft *draft, struct cm_str name)
{
    if (name.size)
        cm_map_insert(&draft->taken, draft->arena, name, NULL);
}

struct cm_graph_proto *cm_node_subgraph(const struct cm_node_proto *node, size_t index)
{
    for (size_t a = 0; a < node->attribute.count; a++) {
        const struct cm_attribute_proto *attribute = &node->attribute.items[a];

        if (attribute->g && index-- == 0)
            return attribute->g;
        if (index < attribute->graphs.count)
            return &attribute->graphs.items[index];
        index -= attribute->graphs.count;
    }
    return NULL;
}

static void take_graph(struct cm_draft *draft, const struct cm_graph_proto *graph, int depth)
{
    for (size_t i = 0; i < graph->input.count; i++)
        take(draft, graph->input.items[i].name);
    for (size_t i = 0; i < graph->initializer.count; i++)
        take(draft, graph->initializer.items[i].name);
    for (size_t i = 0; i < graph->node.count; i++) {
        const struct cm_node_proto *node = &graph->node.items[i];
        struct cm_graph_proto *body;

        for (size_t o = 0; o < node->output.count; o++)
            take(draft, node->output.items[o]);
        for (size_t b = 0; depth < DEPTH_MAX && (body = cm_node_subgraph(node, b)); b++)
            take_graph(draft, body, depth + 1);
    }
}

struct cm_str cm_draft_name(struct cm_draft *draft, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    struct cm_str name = cm_arena_str(draft->arena, cm_str(text));
    for (size_t n = 1;; n++) {
        bool added;
        cm_map_insert(&draft->taken, draft->arena, name, &added);
        if (added)
            return name;
        name = cm_arena_printf(draft->arena, "%s_%zu", text, n);
    }
}

static struct cm_tensor_proto new_tensor(struct cm_draft *draft, struct cm_str name,
                                         enum cm_dtype dtype, const struct cm_int64s *dims,
                                         struct cm_str bytes);

/* ---- what there is ---- */

static struct cm_draft_source *add_source(struct cm_draft *draft, struct cm_str name)
{
    bool added;
    uint64_t *slot = cm_map_insert(&draft->sources, draft->arena, name, &added);
    if (added)
        *slot = (uint64_t)(uintptr_t)CM_NEW(draft->arena, struct cm_draft_source);
    return (struct cm_draft_source *)(uintptr_t)*slot;
}

const struct cm_draft_source *cm_draft_source(const struct cm_draft *draft, struct cm_str name)
{
    return (const struct cm_draft_source *)(uintptr_t)cm_map_get(&draft->sources, name, 0);
}

bool cm_node_reads_statistic(const struct cm_node_proto *node, size_t input)
{
    const struct cm_training_form *training = cm_builtin_op(node)->training;
    const size_t first = training ? (size_t)training->statistics_input : 0;

    return training && input >= first && input - first < (size_t)training->n_statistics &&
           input < node->input.count && node->input.items[input].size;
}

const struct cm_attribute_proto *cm_node_find_attribute(const struct cm_node_proto *node,
                                                        const char *name)
{
    for (size_t i = 0; i < node->attribute.count; i++)
        if (cm_str_is(node->attribute.items[i].name, name))
            return &node->attribute.items[i];
    return NULL;
}

void cm_draft_survey(struct cm_draft *draft)
{
    struct cm_graph_proto *graph = draft->model->graph;

    draft->sources = (struct cm_map){0};
    for (size_t i = 0; i < graph->input.count; i++)
        add_source(draft, graph->input.items[i].name)->is_input = true;
    for (size_t i = 0; i < graph->initializer.count; i++)
        add_source(draft, graph->initializer.items[i].name)->tensor = &graph->initializer.items[i];
    for (size_t i = 0; i < graph->node.count; i++) {
        struct cm_node_proto *node = &graph->node.items[i];

        for (size_t o = 0; o < node->output.count; o++) {
            if (!node->output.items[o].size)
                continue;
            struct cm_draft_source *source = add_source(draft, node->output.items[o]);
            source->node = node;
            source->index = i;
            source->tensor = cm_draft_constant(draft, node);
        }
        for (size_t in = 0; in < node->input.count; in++)
            if (cm_node_reads_statistic(node, in))
                cm_map_insert(&draft->statistics, draft->arena, node->input.items[in], NULL);
    }
}

struct cm_tensor_proto *cm_draft_constant(struct cm_draft *draft, const struct cm_node_proto *node)
{
    if (!cm_builtin_op(node)->is_constant || node->output.count != 1)
        return NULL;
    const struct cm_attribute_proto *value = cm_node_find_attribute(node, "value");
    const struct cm_attribute_proto *floats = cm_node_find_attribute(node, "value_floats");
    if (value && !value->ref_attr_name.size)
        return value->t;
    if (!floats || floats->ref_attr_name.size || !floats->floats.count)
        return NULL;
    int64_t count = (int64_t)floats->floats.count;
    struct cm_tensor_proto *tensor = CM_NEW(draft->arena, struct cm_tensor_proto);
    *tensor = new_tensor(
        draft, CM_STR_NONE, CM_FLOAT, &(struct cm_int64s){&count, 1},
        (struct cm_str){(const char *)floats->floats.items, floats->floats.count * sizeof(float)});
    return tensor;
}

void cm_draft_init(struct cm_draft *draft)
{
    take_graph(draft, draft->model->graph, 0);
    cm_draft_survey(draft);
}

struct cm_str cm_draft_moved(const struct cm_draft *draft, struct cm_str name)
{
    const uint64_t *found = cm_map_find(&draft->moved, name);
    return found ? *(const struct cm_str *)(uintptr_t)*found : name;
}

/* ---- sentences ---- */

static void add_sentence(struct cm_draft *draft, struct cm_draft_sentences *list,
                         const char *format, va_list args)
{
    char text[CM_ERROR_SIZE];
    vsnprintf(text, sizeof text, format, args);
    *CM_PUSH(draft->arena, list) = cm_arena_str(draft->arena, cm_str(text));
}

void cm_draft_note(struct cm_draft *draft, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_sentence(draft, &draft->changes, format, args);
    va_end(args);
}

void cm_draft_block(struct cm_draft *draft, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_sentence(draft, &draft->blockers, format, args);
    va_end(args);
}

enum cm_status cm_draft_verdict(struct cm_draft *draft)
{
    const struct cm_draft_sentences *list = &draft->blockers;
    const enum cm_status status = draft->is_misused ? CM_BAD_ARGUMENT : CM_UNSUPPORTED;
    char text[CM_ERROR_SIZE];
    size_t used = 0;

    if (list->count == 0)
        return CM_OK;
    if (list->count == 1)
        return cm_fail(draft->err, status, "%s", list->items[0].data);
    for (size_t i = 0; i < list->count && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s(%zu) %s", i ? "; " : "",
                                 i + 1, list->items[i].data);
    return cm_fail(draft->err, status, "%zu things stand in the way: %s", list->count, text);
}

/* ---- nodes ---- */

static struct cm_strs copy_names(struct cm_arena *arena, size_t count, const struct cm_str *from)
{
    struct cm_strs list = {CM_NEW_ARRAY(arena, struct cm_str, count), count};
    for (size_t i = 0; i < count; i++)
        list.items[i] = from[i];
    return list;
}

static void fill_node(struct cm_draft *draft, struct cm_node_proto *node, const char *domain,
                      const char *op, struct cm_strs inputs, struct cm_strs outputs)
{
    *node = (struct cm_node_proto){.op_type = cm_arena_str(draft->arena, cm_str(op)),
                                   .domain = cm_arena_str(draft->arena, cm_str(domain)),
                                   .input = inputs,
                                   .output = outputs};
    cm_msg_set(&node->msg, CM_NODE_OP_TYPE);
    if (*domain)
        cm_msg_set(&node->msg, CM_NODE_DOMAIN);
    if (inputs.count)
        cm_msg_set(&node->msg, CM_NODE_INPUT);
    cm_msg_set(&node->msg, CM_NODE_OUTPUT);
}

struct cm_node_proto *cm_draft_node(struct cm_draft *draft, const char *domain, const char *op,
                                    size_t n_inputs, const struct cm_str *inputs, size_t n_outputs,
                                    const struct cm_str *outputs)
{
    struct cm_node_proto *node = CM_PUSH(draft->arena, &draft->nodes);
    fill_node(draft, node, domain, op, copy_names(draft->arena, n_inputs, inputs),
              copy_names(draft->arena, n_outputs, outputs));
    return node;
}

void cm_draft_attribute(struct cm_draft *draft, struct cm_node_proto *node,
                        struct cm_attribute_proto attribute)
{
    *CM_LIST_ADD(draft->arena, &node->attribute) = attribute;
    cm_msg_set(&node->msg, CM_NODE_ATTRIBUTE);
}

static struct cm_str actual_of(struct cm_draft *draft, struct cm_map *names, struct cm_str hint,
                               struct cm_str formal)
{
    bool added;

    if (!formal.size)
        return formal;
    uint64_t *slot = cm_map_insert(names, draft->arena, formal, &added);
    if (added) {
        struct cm_str *name = CM_NEW(draft->arena, struct cm_str);
        *name = cm_draft_name(draft, "%.*s.%.*s", CM_STR_FMT(hint), CM_STR_FMT(formal));
        *slot = (uint64_t)(uintptr_t)name;
    }
    return *(const struct cm_str *)(uintptr_t)*slot;
}

struct cm_str cm_draft_apply(struct cm_draft *draft, const char *text, struct cm_str hint,
                             const struct cm_draft_pair *pairs, size_t n_pairs)
{
    struct cm_function_proto function = {0};
    struct cm_error err = {0};
    struct cm_map names = {0};

    /* The texts are ours: what does not parse is a mistake of this file's neighbours. */
    if (cm_syntax_parse_function(cm_str(text), draft->arena, &function, &err)) {
        cm_draft_block(draft, "formula of '%.*s': %s", CM_STR_FMT(hint), err.text);
        return hint;
    }
    for (size_t i = 0; i < n_pairs; i++)
        *cm_map_insert(&names, draft->arena, cm_str(pairs[i].formal), NULL) =
            (uint64_t)(uintptr_t)&pairs[i].actual;
    for (size_t n = 0; n < function.node.count; n++) {
        struct cm_node_proto node = function.node.items[n];
        node.input = copy_names(draft->arena, node.input.count, node.input.items);
        node.output = copy_names(draft->arena, node.output.count, node.output.items);
        for (size_t i = 0; i < node.input.count; i++)
            node.input.items[i] = actual_of(draft, &names, hint, node.input.items[i]);
        for (size_t o = 0; o < node.output.count; o++)
            node.output.items[o] = actual_of(draft, &names, hint, node.output.items[o]);
        *CM_PUSH(draft->arena, &draft->nodes) = node;
    }
    return actual_of(draft, &names, hint, function.output.items[0]);
}

/* ---- tensors ---- */

enum cm_dtype cm_draft_wide(enum cm_dtype dtype)
{
    return dtype == CM_FLOAT16 || dtype == CM_BFLOAT16 ? CM_FLOAT : dtype;
}

static void name_tensor(struct cm_tensor_proto *tensor, struct cm_str name)
{
    tensor->name = name;
    cm_msg_set(&tensor->msg, CM_TENSOR_NAME);
}

static struct cm_tensor_proto new_tensor(struct cm_draft *draft, struct cm_str name,
                                         enum cm_dtype dtype, const struct cm_int64s *dims,
                                         struct cm_str bytes)
{
    struct cm_tensor_proto tensor = {.data_type = (int32_t)dtype, .raw_data = bytes};
    if (dims) {
        tensor.dims.items = CM_NEW_ARRAY(draft->arena, int64_t, dims->count);
        tensor.dims.count = dims->count;
        for (size_t i = 0; i < dims->count; i++)
            tensor.dims.items[i] = dims->items[i];
    }
    if (tensor.dims.count)
        cm_msg_set(&tensor.msg, CM_TENSOR_DIMS);
    cm_msg_set(&tensor.msg, CM_TENSOR_DATA_TYPE);
    cm_msg_set(&tensor.msg, CM_TENSOR_RAW_DATA);
    if (name.size)
        name_tensor(&tensor, name);
    return tensor;
}

static struct cm_str scalar_bytes(struct cm_draft *draft, enum cm_dtype dtype, double value)
{
    unsigned char *room = cm_arena_alloc(draft->arena, 8);
    const float narrow = (float)value;
    const int64_t whole = (int64_t)value;

    if (dtype == CM_DOUBLE)
        memcpy(room, &value, sizeof value);
    else if (dtype == CM_FLOAT)
        memcpy(room, &narrow, sizeof narrow);
    else if (cm_dtype_info(dtype)->kind == CM_CLASS_FLOAT)
        cm_narrow_store(dtype, room, 0, 1, &narrow);
    else
        memcpy(room, &whole, sizeof whole); /* little-endian: narrower types are its first bytes */
    return (struct cm_str){(const char *)room, cm_dtype_size(dtype)};
}

struct cm_str cm_draft_scalar(struct cm_draft *draft, const char *name, enum cm_dtype dtype,
                              double value)
{
    const struct cm_str key = cm_arena_printf(draft->arena, "%s %d", name, (int)dtype);
    bool added;
    uint64_t *slot = cm_map_insert(&draft->scalars, draft->arena, key, &added);
    if (added) {
        struct cm_str *made = CM_NEW(draft->arena, struct cm_str);
        *slot = (uint64_t)(uintptr_t)made;
        *made = dtype == CM_FLOAT
                    ? cm_draft_name(draft, "training.%s", name)
                    : cm_draft_name(draft, "training.%s.%s", name, cm_dtype_name(dtype));
        *CM_PUSH(draft->arena, &draft->initializers) =
            new_tensor(draft, *made, dtype, NULL, scalar_bytes(draft, dtype, value));
        return *made;
    }
    return *(const struct cm_str *)(uintptr_t)*slot;
}

void cm_draft_value(struct cm_draft *draft, struct cm_draft_infos *list, struct cm_str name,
                    const struct cm_type *type)
{
    struct cm_value_info_proto *info = CM_PUSH(draft->arena, list);

    *info = (struct cm_value_info_proto){.name = name,
                                         .type = CM_NEW(draft->arena, struct cm_type_proto)};
    cm_msg_set(&info->msg, CM_VALUE_INFO_NAME);
    cm_msg_set(&info->msg, CM_VALUE_INFO_TYPE);
    cm_type_to_proto(draft->arena, draft->symbols, type, info->type);
}

void cm_draft_info(struct cm_draft *draft, struct cm_draft_infos *list, struct cm_str name,
                   enum cm_dtype dtype, const struct cm_int64s *dims)
{
    struct cm_dim known[CM_MAX_RANK];
    const size_t rank = dims ? dims->count : 0;

    for (size_t i = 0; i < rank && i < CM_MAX_RANK; i++)
        known[i] = CM_DIM(dims->items[i]);
    cm_draft_value(draft, list, name, cm_type_tensor(draft->arena, dtype, (int)rank, known));
}

static void add_binding(struct cm_draft *draft, struct cm_draft_bindings *list, struct cm_str key,
                        struct cm_str value)
{
    struct cm_entry_proto *entry = CM_PUSH(draft->arena, list);
    *entry = (struct cm_entry_proto){.key = key, .value = value};
    cm_msg_set(&entry->msg, CM_ENTRY_KEY);
    cm_msg_set(&entry->msg, CM_ENTRY_VALUE);
}

void cm_draft_bind(struct cm_draft *draft, struct cm_str key, struct cm_str value,
                   enum cm_dtype dtype, const struct cm_int64s *dims)
{
    add_binding(draft, &draft->updates, key, value);
    cm_draft_info(draft, &draft->outputs, value, dtype, dims);
}

/* The initialization makes the zeros again from their shape. */
static void add_reset(struct cm_draft *draft, struct cm_str state, enum cm_dtype dtype,
                      const struct cm_int64s *dims)
{
    struct cm_arena *arena = draft->arena;
    const struct cm_str shape = cm_draft_name(draft, "%.*s.shape", CM_STR_FMT(state));
    const struct cm_str fresh = cm_draft_name(draft, "%.*s.reset", CM_STR_FMT(state));
    int64_t rank = dims ? (int64_t)dims->count : 0, one = 1;
    struct cm_attribute_proto value = cm_attr_int(arena, "value", 0);

    value.type = CM_ATTR_TENSOR;
    value.msg.has = value.msg.changed = 0;
    cm_msg_set(&value.msg, CM_ATTRIBUTE_NAME);
    cm_msg_set(&value.msg, CM_ATTRIBUTE_TYPE);
    cm_msg_set(&value.msg, CM_ATTRIBUTE_T);
    struct cm_attribute_proto zero = value;
    value.t = CM_NEW(arena, struct cm_tensor_proto);
    zero.t = CM_NEW(arena, struct cm_tensor_proto);
    *value.t = new_tensor(
        draft, CM_STR_NONE, CM_INT64, &(struct cm_int64s){&rank, 1},
        (struct cm_str){dims ? (const char *)dims->items : "", (size_t)rank * sizeof(int64_t)});
    *zero.t = new_tensor(draft, CM_STR_NONE, dtype, &(struct cm_int64s){&one, 1},
                         scalar_bytes(draft, dtype, 0));
    struct cm_node_proto *node = CM_PUSH(arena, &draft->resets);
    fill_node(draft, node, "", "Constant", (struct cm_strs){0}, copy_names(arena, 1, &shape));
    cm_draft_attribute(draft, node, value);
    node = CM_PUSH(arena, &draft->resets);
    fill_node(draft, node, "", "ConstantOfShape", copy_names(arena, 1, &shape),
              copy_names(arena, 1, &fresh));
    cm_draft_attribute(draft, node, zero);
    cm_draft_info(draft, &draft->reset_outputs, fresh, dtype, dims);
    add_binding(draft, &draft->reset_bindings, state, fresh);
}

struct cm_str cm_draft_state(struct cm_draft *draft, struct cm_str name, enum cm_dtype dtype,
                             const struct cm_int64s *dims)
{
    int64_t count = 1;
    size_t bytes;

    for (size_t i = 0; dims && i < dims->count; i++) /* an initializer's: checked when imported */
        count *= dims->items[i];
    if (!cm_dtype_bytes(dtype, count, &bytes))
        bytes = 0;
    const char *zeros = cm_arena_alloc(draft->arena, bytes ? bytes : 1);
    *CM_PUSH(draft->arena, &draft->initializers) =
        new_tensor(draft, name, dtype, dims, (struct cm_str){zeros, bytes});
    add_reset(draft, name, dtype, dims);
    return name;
}

/* ---- the result ---- */

static struct cm_graph_proto *new_graph(struct cm_arena *arena, const char *name)
{
    struct cm_graph_proto *graph = CM_NEW(arena, struct cm_graph_proto);
    graph->name = cm_arena_str(arena, cm_str(name));
    cm_msg_set(&graph->msg, CM_GRAPH_NAME);
    return graph;
}

#define PUT_LIST(message, member, field, list)                                                     \
    do {                                                                                           \
        (message)->member.items = (list).items;                                                    \
        (message)->member.count = (list).count;                                                    \
        if ((list).count)                                                                          \
            cm_msg_set(&(message)->msg, (field));                                                  \
    } while (0)

struct cm_training_proto *cm_draft_finish(struct cm_draft *draft)
{
    struct cm_training_proto *training = CM_NEW(draft->arena, struct cm_training_proto);
    struct cm_graph_proto *algorithm = new_graph(draft->arena, "training");

    PUT_LIST(algorithm, node, CM_GRAPH_NODE, draft->nodes);
    PUT_LIST(algorithm, initializer, CM_GRAPH_INITIALIZER, draft->initializers);
    PUT_LIST(algorithm, input, CM_GRAPH_INPUT, draft->inputs);
    PUT_LIST(algorithm, output, CM_GRAPH_OUTPUT, draft->outputs);
    training->algorithm = algorithm;
    cm_msg_set(&training->msg, CM_TRAINING_ALGORITHM);
    if (draft->resets.count) {
        struct cm_graph_proto *reset = new_graph(draft->arena, "reset");
        PUT_LIST(reset, node, CM_GRAPH_NODE, draft->resets);
        PUT_LIST(reset, output, CM_GRAPH_OUTPUT, draft->reset_outputs);
        training->initialization = reset;
        cm_msg_set(&training->msg, CM_TRAINING_INITIALIZATION);
        PUT_LIST(training, initialization_binding, CM_TRAINING_INITIALIZATION_BINDING,
                 draft->reset_bindings);
    }
    PUT_LIST(training, update_binding, CM_TRAINING_UPDATE_BINDING, draft->updates);
    return training;
}
