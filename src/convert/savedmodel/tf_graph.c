/* TensorFlow graphs and their bytes. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/savedmodel/tf_graph.h"

#include "base/number.h"
#include "onnx/wire.h"
#include "tensor/bits.h"

#include <string.h>

/* ---- types ---- */

static const struct {
    const char *name;
    enum cm_tf_type type;
    enum cm_dtype dtype;
} types[] = {
    {"f32", CM_TF_F32, CM_FLOAT},
    {"f64", CM_TF_F64, CM_DOUBLE},
    {"i32", CM_TF_I32, CM_INT32},
    {"u8", CM_TF_U8, CM_UINT8},
    {"i16", CM_TF_I16, CM_INT16},
    {"i8", CM_TF_I8, CM_INT8},
    {"string", CM_TF_STRING, CM_STRING},
    {"c64", CM_TF_C64, CM_COMPLEX64},
    {"i64", CM_TF_I64, CM_INT64},
    {"bool", CM_TF_BOOL, CM_BOOL},
    {"bf16", CM_TF_BF16, CM_BFLOAT16},
    {"u16", CM_TF_U16, CM_UINT16},
    {"c128", CM_TF_C128, CM_COMPLEX128},
    {"f16", CM_TF_F16, CM_FLOAT16},
    {"u32", CM_TF_U32, CM_UINT32},
    {"u64", CM_TF_U64, CM_UINT64},
    {"resource", CM_TF_RESOURCE, CM_UNDEFINED},
    {"variant", CM_TF_VARIANT, CM_UNDEFINED},
    {"u8", CM_TF_U8, CM_UINT4},
    {"i8", CM_TF_I8, CM_INT4},
    {"u8", CM_TF_U8, CM_UINT2},
    {"i8", CM_TF_I8, CM_INT2},
    {"f32", CM_TF_F32, CM_FLOAT8E4M3FN},
    {"f32", CM_TF_F32, CM_FLOAT8E4M3FNUZ},
    {"f32", CM_TF_F32, CM_FLOAT8E5M2},
    {"f32", CM_TF_F32, CM_FLOAT8E5M2FNUZ},
    {"f32", CM_TF_F32, CM_FLOAT8E8M0},
    {"f32", CM_TF_F32, CM_FLOAT4E2M1},
    {"f32", CM_TF_F32, CM_FLOAT6E2M3},
    {"f32", CM_TF_F32, CM_FLOAT6E3M2},
};

const char *cm_tf_type_name(enum cm_tf_type type)
{
    for (size_t i = 0; i < CM_COUNT(types); i++)
        if (types[i].type == type)
            return types[i].name;
    return "none";
}

enum cm_tf_type cm_tf_type_named(struct cm_str name)
{
    for (size_t i = 0; i < CM_COUNT(types); i++)
        if (cm_str_is(name, types[i].name))
            return types[i].type;
    return CM_TF_NONE;
}

enum cm_tf_type cm_tf_type_of(enum cm_dtype dtype)
{
    for (size_t i = 0; i < CM_COUNT(types); i++)
        if (types[i].dtype == dtype && dtype != CM_UNDEFINED)
            return types[i].type;
    return CM_TF_NONE;
}

static uint64_t bit(enum cm_tf_type type)
{
    return UINT64_C(1) << (unsigned)type;
}

enum cm_tf_type cm_tf_type_widened(enum cm_tf_type type, uint64_t allowed)
{
    static const struct {
        enum cm_tf_type from, to[6];
    } wider[] = {
        {CM_TF_I8, {CM_TF_I16, CM_TF_I32, CM_TF_I64}},
        {CM_TF_U8, {CM_TF_I16, CM_TF_U16, CM_TF_I32, CM_TF_U32, CM_TF_I64}},
        {CM_TF_I16, {CM_TF_I32, CM_TF_I64}},
        {CM_TF_U16, {CM_TF_I32, CM_TF_U32, CM_TF_I64}},
        {CM_TF_I32, {CM_TF_I64}},
        {CM_TF_U32, {CM_TF_I64, CM_TF_U64}},
        {CM_TF_U64, {CM_TF_I64}}, /* the same bits */
        {CM_TF_BF16, {CM_TF_F32, CM_TF_F64}},
        {CM_TF_F16, {CM_TF_F32, CM_TF_F64}},
        {CM_TF_F32, {CM_TF_F64}},
        {CM_TF_BOOL, {CM_TF_U8, CM_TF_I32, CM_TF_I64}},
    };

    if (allowed & bit(type))
        return type;
    for (size_t i = 0; i < CM_COUNT(wider); i++)
        for (size_t k = 0; wider[i].from == type && wider[i].to[k]; k++)
            if (allowed & bit(wider[i].to[k]))
                return wider[i].to[k];
    return CM_TF_NONE;
}

/* ---- names ---- */

enum { NAME_MAX_SIZE = 160 };

static bool is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* A copy in small letters: to TensorFlow names that differ in case only are taken. */
static struct cm_str in_small(struct cm_arena *arena, struct cm_str name)
{
    char *text = CM_NEW_ARRAY(arena, char, name.size + 1);

    for (size_t i = 0; i < name.size; i++)
        text[i] = name.data[i] >= 'A' && name.data[i] <= 'Z' ? (char)(name.data[i] + ('a' - 'A'))
                                                             : name.data[i];
    return (struct cm_str){text, name.size};
}

/* [A-Za-z0-9.][A-Za-z0-9_.\/>-]* less '\\' and '>', which paths and shells dislike. */
struct cm_str cm_tf_safe_name(struct cm_arena *arena, struct cm_map *taken, struct cm_str wanted)
{
    char *text = CM_NEW_ARRAY(arena, char, NAME_MAX_SIZE + 1);
    struct cm_str name = {text, 0};

    for (size_t i = 0; i < wanted.size && name.size < NAME_MAX_SIZE; i++) {
        const char c = wanted.data[i];
        const bool is_first = !name.size || text[name.size - 1] == '/';

        if (c == '/' && is_first) /* no empty part of a path */
            continue;
        if (!name.size && !is_alphanumeric(c))
            text[name.size++] = 'n';
        text[name.size++] = is_alphanumeric(c) || strchr("_.-/", c ? c : '?') ? c : '_';
    }
    while (name.size && text[name.size - 1] == '/')
        name.size--;
    if (!name.size)
        text[name.size++] = 'n';
    struct cm_str free_name = name;
    for (size_t number = 1; !cm_map_add(taken, arena, in_small(arena, free_name)); number++)
        free_name = cm_arena_printf(arena, "%.*s_%zu", CM_STR_ALL(name), number);
    return free_name;
}

/* ---- nodes ---- */

struct cm_tf_node *cm_tf_add(struct cm_tf_graph *graph, const char *op, struct cm_str name)
{
    struct cm_tf_node *node = CM_NEW(graph->arena, struct cm_tf_node);

    node->op = cm_str(op);
    node->name = cm_tf_safe_name(graph->arena, &graph->names, name);
    node->attributes.arena = graph->arena;
    *CM_PUSH(graph->arena, &graph->nodes) = node;
    return node;
}

void cm_tf_input(struct cm_tf_graph *graph, struct cm_tf_node *node, struct cm_tf_tensor tensor)
{
    *CM_PUSH(graph->arena, &node->inputs) = tensor;
    tensor.node->uses++;
}

void cm_tf_after(struct cm_tf_graph *graph, struct cm_tf_node *node, struct cm_tf_node *before)
{
    *CM_PUSH(graph->arena, &node->controls) = before;
    before->uses++;
}

struct cm_tf_tensor cm_tf_output(struct cm_tf_graph *graph, struct cm_tf_node *node,
                                 const char *arg, enum cm_tf_type type)
{
    const size_t count = node->outputs.count;
    const bool goes_on = count && cm_str_is(node->outputs.items[count - 1].arg, arg);

    *CM_PUSH(graph->arena, &node->outputs) =
        (struct cm_tf_output){cm_str(arg), goes_on ? node->outputs.items[count - 1].index + 1 : 0};
    return (struct cm_tf_tensor){.node = node, .output = count, .type = type};
}

struct cm_tf_tensor cm_tf_argument(struct cm_tf_graph *graph, enum cm_tf_type type)
{
    struct cm_tf_node *node =
        cm_tf_add(graph, "", cm_arena_printf(graph->arena, "arg%zu", graph->arguments.count));

    node->is_argument = true;
    return *CM_PUSH(graph->arena, &graph->arguments) = cm_tf_output(graph, node, "", type);
}

/* ---- attributes ---- */

enum { /* fields of AttrValue and of its lists */
       VALUE_LIST = 1,
       VALUE_TEXT = 2,
       VALUE_INT = 3,
       VALUE_FLOAT = 4,
       VALUE_BOOL = 5,
       VALUE_TYPE = 6,
       VALUE_SHAPE = 7,
       VALUE_TENSOR = 8,
       VALUE_FUNCTION = 10,
};

/* An entry of a map from texts to messages. */
static void put_entry(struct cm_bytes *to, unsigned field, struct cm_str key, struct cm_str value)
{
    struct cm_bytes entry = {.arena = to->arena};

    cm_bytes_field_text(&entry, 1, key);
    cm_bytes_field_text(&entry, 2, value);
    cm_bytes_field_text(to, field, cm_bytes_str(&entry));
}

static void put_attr(struct cm_tf_node *node, struct cm_str name, const struct cm_bytes *value)
{
    put_entry(&node->attributes, 5, name, cm_bytes_str(value));
}

static void attr_number(struct cm_tf_node *node, struct cm_str name, unsigned field,
                        uint64_t number)
{
    struct cm_bytes value = {.arena = node->attributes.arena};

    cm_bytes_field(&value, field, number);
    put_attr(node, name, &value);
}

static void attr_text(struct cm_tf_node *node, struct cm_str name, unsigned field,
                      struct cm_str text)
{
    struct cm_bytes value = {.arena = node->attributes.arena};

    cm_bytes_field_text(&value, field, text);
    put_attr(node, name, &value);
}

void cm_tf_attr_int(struct cm_tf_node *node, struct cm_str name, int64_t value)
{
    attr_number(node, name, VALUE_INT, (uint64_t)value);
}

void cm_tf_attr_bool(struct cm_tf_node *node, struct cm_str name, bool value)
{
    attr_number(node, name, VALUE_BOOL, value);
}

void cm_tf_attr_type(struct cm_tf_node *node, struct cm_str name, enum cm_tf_type value)
{
    attr_number(node, name, VALUE_TYPE, (uint64_t)value);
}

void cm_tf_attr_float(struct cm_tf_node *node, struct cm_str name, float number)
{
    struct cm_bytes value = {.arena = node->attributes.arena};

    cm_bytes_varint(&value, VALUE_FLOAT << 3 | CM_WIRE_FIXED32);
    cm_bytes_put(&value, &number, sizeof number);
    put_attr(node, name, &value);
}

void cm_tf_attr_text(struct cm_tf_node *node, struct cm_str name, struct cm_str value)
{
    attr_text(node, name, VALUE_TEXT, value);
}

void cm_tf_attr_types(struct cm_tf_node *node, struct cm_str name, const enum cm_tf_type *values,
                      size_t count)
{
    struct cm_bytes list = {.arena = node->attributes.arena};

    for (size_t i = 0; i < count; i++)
        cm_bytes_field(&list, VALUE_TYPE, (uint64_t)values[i]);
    attr_text(node, name, VALUE_LIST, cm_bytes_str(&list));
}

void cm_tf_attr_ints(struct cm_tf_node *node, struct cm_str name, const int64_t *values,
                     size_t count)
{
    struct cm_bytes list = {.arena = node->attributes.arena};

    for (size_t i = 0; i < count; i++)
        cm_bytes_field(&list, VALUE_INT, (uint64_t)values[i]);
    attr_text(node, name, VALUE_LIST, cm_bytes_str(&list));
}

struct cm_str cm_tf_shape(struct cm_arena *arena, const int64_t *dims, int rank)
{
    struct cm_bytes shape = {.arena = arena};

    if (rank < 0)
        cm_bytes_field(&shape, 3, 1);
    for (int i = 0; i < rank; i++) {
        struct cm_bytes dim = {.arena = arena};

        cm_bytes_field(&dim, 1, (uint64_t)dims[i]);
        cm_bytes_field_text(&shape, 2, cm_bytes_str(&dim));
    }
    return cm_bytes_str(&shape);
}

void cm_tf_attr_shape(struct cm_tf_node *node, struct cm_str name, const int64_t *dims, int rank)
{
    attr_text(node, name, VALUE_SHAPE, cm_tf_shape(node->attributes.arena, dims, rank));
}

void cm_tf_attr_shapes(struct cm_tf_node *node, struct cm_str name, const struct cm_str *shapes,
                       size_t count)
{
    struct cm_bytes list = {.arena = node->attributes.arena};

    for (size_t i = 0; i < count; i++)
        cm_bytes_field_text(&list, VALUE_SHAPE, shapes[i]);
    attr_text(node, name, VALUE_LIST, cm_bytes_str(&list));
}

void cm_tf_attr_function(struct cm_tf_node *node, struct cm_str name, struct cm_str function)
{
    struct cm_bytes value = {.arena = node->attributes.arena};

    cm_bytes_field_text(&value, 1, function);
    attr_text(node, name, VALUE_FUNCTION, cm_bytes_str(&value));
}

/* ---- constants ---- */

enum { TENSOR_TYPE = 1, TENSOR_SHAPE = 2, TENSOR_CONTENT = 4, TENSOR_TEXT = 8 };

static struct cm_tf_tensor add_constant(struct cm_tf_graph *graph, struct cm_str name,
                                        enum cm_tf_type type, const int64_t *dims, int rank,
                                        const struct cm_bytes *proto)
{
    struct cm_tf_node *node = cm_tf_add(graph, "Const", name);
    int64_t *kept = CM_NEW_ARRAY(graph->arena, int64_t, (size_t)rank + 1);

    for (int i = 0; i < rank; i++)
        kept[i] = dims[i];
    node->dims = kept;
    node->rank = rank;

    node->is_pure = true;
    cm_tf_attr_type(node, CM_STR("dtype"), type);
    attr_text(node, CM_STR("value"), VALUE_TENSOR, cm_bytes_str(proto));
    return cm_tf_output(graph, node, "output", type);
}

static struct cm_bytes begin_tensor(struct cm_tf_graph *graph, enum cm_tf_type type,
                                    const int64_t *dims, int rank)
{
    struct cm_bytes proto = {.arena = graph->arena};

    cm_bytes_field(&proto, TENSOR_TYPE, (uint64_t)type);
    cm_bytes_field_text(&proto, TENSOR_SHAPE, cm_tf_shape(graph->arena, dims, rank));
    return proto;
}

/* The bytes of a tensor: floats of 8 bits and less as f32, numbers of less than 8 bits as 8. */
static struct cm_str contents(struct cm_arena *arena, const struct cm_tensor *tensor)
{
    const size_t count = (size_t)cm_tensor_count(tensor);
    const struct cm_dtype_info *info = cm_dtype_info(tensor->type);

    if (info->bits <= 8 && info->kind == CM_CLASS_FLOAT) {
        float *numbers = CM_NEW_ARRAY(arena, float, count + 1);
        for (size_t i = 0; i < count; i++)
            numbers[i] = (float)cm_tensor_real(tensor, (int64_t)i);
        return (struct cm_str){(const char *)numbers, count * sizeof *numbers};
    }
    if (info->bits >= 8 || tensor->type == CM_BOOL)
        return (struct cm_str){tensor->data, cm_tensor_bytes(tensor)};
    char *bytes = CM_NEW_ARRAY(arena, char, count + 1);
    for (size_t i = 0; i < count; i++)
        bytes[i] = (char)cm_tensor_int(tensor, (int64_t)i);
    return (struct cm_str){bytes, count};
}

struct cm_tf_tensor cm_tf_constant(struct cm_tf_graph *graph, struct cm_str name,
                                   const struct cm_tensor *tensor)
{
    const enum cm_tf_type type = cm_tf_type_of(tensor->type);
    struct cm_bytes proto = begin_tensor(graph, type, tensor->shape.dims, tensor->shape.rank);
    const struct cm_str *texts = tensor->data;

    if (tensor->type == CM_STRING)
        for (int64_t i = 0; i < cm_tensor_count(tensor); i++)
            cm_bytes_field_text(&proto, TENSOR_TEXT, texts[i]);
    else
        cm_bytes_field_text(&proto, TENSOR_CONTENT, contents(graph->arena, tensor));
    return add_constant(graph, name, type, tensor->shape.dims, tensor->shape.rank, &proto);
}

struct cm_tf_tensor cm_tf_literal(struct cm_tf_graph *graph, enum cm_tf_type type,
                                  const int64_t *dims, int rank, struct cm_str bytes)
{
    struct cm_bytes proto = begin_tensor(graph, type, dims, rank);
    bool added;

    if (type == CM_TF_STRING)
        cm_bytes_text(&proto, bytes); /* fields already */
    else
        cm_bytes_field_text(&proto, TENSOR_CONTENT, bytes);
    uint64_t *place = cm_map_insert(&graph->literals, graph->arena, cm_bytes_str(&proto), &added);
    if (added) {
        *place = graph->constants.count;
        const struct cm_tf_tensor made =
            add_constant(graph, CM_STR("Const"), type, dims, rank, &proto);
        *CM_PUSH(graph->arena, &graph->constants) = made;
        return made;
    }
    return graph->constants.items[*place];
}

/* ---- bytes ---- */

/* "conv1", "split:2", or as functions have it, "split:output:2". */
static struct cm_str tensor_name(const struct cm_tf_graph *graph, struct cm_tf_tensor tensor)
{
    const struct cm_tf_node *node = tensor.node;
    const struct cm_tf_output *output = &node->outputs.items[tensor.output];

    if (node->is_argument || (!graph->is_function && !tensor.output))
        return node->name;
    if (!graph->is_function)
        return cm_arena_printf(graph->arena, "%.*s:%zu", CM_STR_ALL(node->name), tensor.output);
    return cm_arena_printf(graph->arena, "%.*s:%.*s:%zu", CM_STR_ALL(node->name),
                           CM_STR_ALL(output->arg), output->index);
}

static void put_node(struct cm_tf_graph *graph, struct cm_bytes *to, unsigned field,
                     const struct cm_tf_node *node)
{
    struct cm_bytes bytes = {.arena = graph->arena};

    cm_bytes_field_text(&bytes, 1, node->name);
    cm_bytes_field_text(&bytes, 2, node->op);
    for (size_t i = 0; i < node->inputs.count; i++)
        cm_bytes_field_text(&bytes, 3, tensor_name(graph, node->inputs.items[i]));
    for (size_t i = 0; i < node->controls.count; i++)
        cm_bytes_field_text(
            &bytes, 3,
            cm_arena_printf(graph->arena, "^%.*s", CM_STR_ALL(node->controls.items[i]->name)));
    cm_bytes_text(&bytes, cm_bytes_str(&node->attributes));
    cm_bytes_field_text(to, field, cm_bytes_str(&bytes));
}

void cm_tf_remove_dead(struct cm_tf_graph *graph)
{
    size_t kept = graph->nodes.count;

    for (size_t i = graph->nodes.count; i-- > 0;) {
        struct cm_tf_node *node = graph->nodes.items[i];

        if (node->is_pure && !node->uses)
            for (size_t k = 0; k < node->inputs.count; k++)
                node->inputs.items[k].node->uses--;
        else
            graph->nodes.items[--kept] = node;
    }
    graph->nodes.items += kept;
    graph->nodes.count -= kept;
    graph->nodes.capacity -= kept;
}

static void put_nodes(struct cm_tf_graph *graph, struct cm_bytes *to, unsigned field)
{
    cm_tf_remove_dead(graph);
    for (size_t i = 0; i < graph->nodes.count; i++)
        if (!graph->nodes.items[i]->is_argument)
            put_node(graph, to, field, graph->nodes.items[i]);
}

/* FunctionDef: its signature (OpDef), nodes, and where its results come from. */
static struct cm_str encode_function(struct cm_tf_graph *function)
{
    struct cm_bytes bytes = {.arena = function->arena}, head = {.arena = function->arena};

    cm_bytes_field_text(&head, 1, function->name);
    for (size_t kind = 0; kind < 2; kind++) {
        const size_t count = kind ? function->results.count : function->arguments.count;

        for (size_t i = 0; i < count; i++) {
            struct cm_bytes arg = {.arena = function->arena};
            const struct cm_tf_tensor *tensor =
                kind ? &function->results.items[i] : &function->arguments.items[i];

            cm_bytes_field_text(&arg, 1,
                                kind ? cm_arena_printf(function->arena, "result%zu", i)
                                     : tensor->node->name);
            cm_bytes_field(&arg, 3, (uint64_t)tensor->type);
            cm_bytes_field_text(&head, kind ? 3 : 2, cm_bytes_str(&arg));
        }
    }
    cm_bytes_field_text(&bytes, 1, cm_bytes_str(&head));
    put_nodes(function, &bytes, 3);
    for (size_t i = 0; i < function->results.count; i++)
        put_entry(&bytes, 4, cm_arena_printf(function->arena, "result%zu", i),
                  tensor_name(function, function->results.items[i]));
    return cm_bytes_str(&bytes);
}

enum { PRODUCER = 2000 }; /* of the graphs' version: TensorFlow 2.16 and newer write such ones */

struct cm_str cm_tf_encode(struct cm_tf_graph *graph, const struct cm_tf_functions *functions)
{
    struct cm_bytes bytes = {.arena = graph->arena}, library = {.arena = graph->arena};
    struct cm_bytes versions = {.arena = graph->arena};

    put_nodes(graph, &bytes, 1);
    for (size_t i = 0; i < functions->count; i++)
        cm_bytes_field_text(&library, 1, encode_function(functions->items[i]));
    if (functions->count)
        cm_bytes_field_text(&bytes, 2, cm_bytes_str(&library));
    cm_bytes_field(&versions, 1, PRODUCER);
    cm_bytes_field_text(&bytes, 4, cm_bytes_str(&versions));
    return cm_bytes_str(&bytes);
}
