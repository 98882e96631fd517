/* Values of a graph as MLIR has them: types, names, constants. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/lowering/glue.h"
#include "mlir/lowering/lowering_state.h"
#include "template/template_run.h"

#include "base/map.h"
#include "tensor/bits.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void cm_mlir_put(struct cm_mlir_lowering *l, struct cm_mlir_text *to, struct cm_str text)
{
    CM_PUSH_ALL(l->arena, to, text.data, text.size);
}

void cm_mlir_line(struct cm_mlir_lowering *l, const char *format, ...)
{
    char text[CM_MLIR_LINE];
    va_list args;

    va_start(args, format);
    const int size = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (size < 0 || (size_t)size >= sizeof text) {
        if (l->err && l->err->status == CM_OK)
            cm_fail(l->err, CM_LIMIT, "a line of the program is too long");
        return;
    }
    for (int i = 0; i < l->indent; i++)
        cm_mlir_put(l, &l->body, CM_STR("  "));
    cm_mlir_put(l, &l->body, (struct cm_str){text, (size_t)size});
    cm_mlir_put(l, &l->body, CM_STR("\n"));
}

/* Types that arithmetic does not know travel as bytes, for Cast and DequantizeLinear to read. */
static const struct {
    const char *mlir, *element;
} scalars[CM_DTYPE_COUNT] = {
    [CM_FLOAT] = {"f32", "f32"},
    [CM_UINT8] = {"i8", "u8"},
    [CM_INT8] = {"i8", "i8"},
    [CM_UINT16] = {"i16", "u16"},
    [CM_INT16] = {"i16", "i16"},
    [CM_INT32] = {"i32", "i32"},
    [CM_INT64] = {"i64", "i64"},
    [CM_BOOL] = {"i1", "i1"},
    [CM_FLOAT16] = {"f16", "f16"},
    [CM_DOUBLE] = {"f64", "f64"},
    [CM_UINT32] = {"i32", "u32"},
    [CM_UINT64] = {"i64", "u64"},
    [CM_BFLOAT16] = {"bf16", "bf16"},
    [CM_FLOAT8E4M3FN] = {"i8", "f8e4m3fn"},
    [CM_FLOAT8E4M3FNUZ] = {"i8", "f8e4m3fnuz"},
    [CM_FLOAT8E5M2] = {"i8", "f8e5m2"},
    [CM_FLOAT8E5M2FNUZ] = {"i8", "f8e5m2fnuz"},
    [CM_UINT4] = {"i8", "u4"},
    [CM_INT4] = {"i8", "i4"},
    [CM_FLOAT4E2M1] = {"i8", "f4e2m1"},
    [CM_FLOAT8E8M0] = {"i8", "f8e8m0"},
    [CM_UINT2] = {"i8", "u2"},
    [CM_INT2] = {"i8", "i2"},
};

const char *cm_mlir_scalar(enum cm_dtype type)
{
    return type < CM_DTYPE_COUNT ? scalars[type].mlir : NULL;
}

const char *cm_mlir_element(enum cm_dtype type)
{
    return type < CM_DTYPE_COUNT ? scalars[type].element : NULL;
}

const struct cm_type *cm_mlir_type(const struct cm_mlir_lowering *l, cm_value value)
{
    return cm_value_get(l->module, value)->fact.type;
}

struct cm_str cm_mlir_type_text(struct cm_arena *arena, const char *word, enum cm_dtype type,
                                int rank, const struct cm_dim *dims)
{
    char text[1024];
    size_t at = (size_t)snprintf(text, sizeof text, "%s<", word);

    for (int i = 0; i < rank && at < sizeof text - 40; i++)
        at += cm_dim_known(dims[i])
                  ? (size_t)snprintf(text + at, sizeof text - at, "%" PRId64 "x", dims[i].value)
                  : (size_t)snprintf(text + at, sizeof text - at, "?x");
    return cm_arena_printf(arena, "%s%s>", text, cm_mlir_scalar(type));
}

struct cm_str cm_mlir_value_type(struct cm_mlir_lowering *l, cm_value value)
{
    const struct cm_type *type = cm_mlir_type(l, value);

    return cm_mlir_type_text(l->arena, "tensor", type->dtype, type->rank, type->dims);
}

/* What stands for a group of nodes has values that no file names. */
static struct cm_str told_name(struct cm_mlir_lowering *l, const struct cm_value_def *def)
{
    return def->name.size ? cm_arena_printf(l->arena, "'%.*s'", CM_STR_FMT(def->name))
                          : CM_STR("a value in it");
}

enum cm_status cm_mlir_check_value(struct cm_mlir_lowering *l, cm_value value, struct cm_error *err)
{
    const struct cm_value_def *def = cm_value_get(l->module, value);
    const struct cm_type *type = def->fact.type;
    const struct cm_str name = told_name(l, def);

    if (type->kind != CM_KIND_TENSOR)
        return cm_fail(err, CM_UNSUPPORTED, "%.*s is %s, and only tensors are compiled",
                       CM_STR_FMT(name),
                       type->kind == CM_KIND_SEQUENCE   ? "a sequence"
                       : type->kind == CM_KIND_OPTIONAL ? "an optional value"
                       : type->kind == CM_KIND_MAP      ? "a map"
                                                        : "not a tensor");
    if (!cm_mlir_scalar(type->dtype))
        return cm_fail(err, CM_UNSUPPORTED, "%.*s is of type %s, which is not compiled",
                       CM_STR_FMT(name), cm_dtype_name(type->dtype));
    if (type->rank == CM_RANK_UNKNOWN)
        return cm_fail(err, CM_UNSUPPORTED,
                       "the rank of %.*s is not known: cameo set-shape may help", CM_STR_FMT(name));
    if (type->rank > CM_MLIR_RANK)
        return cm_fail(err, CM_UNSUPPORTED, "%.*s has %d axes, more than the %d that are compiled",
                       CM_STR_FMT(name), type->rank, CM_MLIR_RANK);
    return CM_OK;
}

const struct cm_tensor *cm_mlir_contents(struct cm_mlir_lowering *l, cm_value value)
{
    const struct cm_tensor *tensor = cm_value_get(l->module, value)->fact.constant;
    struct cm_error err = {0};

    if (!tensor && cm_value_constant(l->module, value, &tensor, &err) != CM_OK) {
        if (l->err && l->err->status == CM_OK)
            *l->err = err;
        return NULL;
    }
    return tensor;
}

/* The name of a node, or else of what it makes, or of what the node of the file makes that an
 * upgrade made it of. */
static struct cm_str name_of(const struct cm_node *node)
{
    const struct cm_node_proto *proto = node->origin ? node->origin->proto : NULL;
    struct cm_str name = node->name;

    for (int i = 0; i < node->n_outputs && !name.size; i++)
        if (node->outputs[i])
            name = cm_value_get(node->module, node->outputs[i])->name;
    for (size_t i = 0; proto && i < proto->output.count && !name.size; i++)
        name = proto->output.items[i];
    return name;
}

/* What stands in the place of a node is called after it: "cost/t11", "rnn/loop/h". */
static const struct cm_mlir_origin *find_origin(const struct cm_mlir_lowering *l,
                                                struct cm_str name)
{
    const struct cm_mlir_origin *found = NULL;

    while (l->options->origin && name.size && !found) {
        found = l->options->origin(l->options->origin_arg, name);
        while (name.size && name.data[--name.size] != '/')
            ;
    }
    return found;
}

/* As the model has it, where it is a part of something else: the node of which it is one. */
struct cm_str cm_mlir_describe(struct cm_mlir_lowering *l, const struct cm_node *node)
{
    const struct cm_mlir_origin *origin = find_origin(l, name_of(node));

    if (!origin)
        return cm_arena_str(l->arena, cm_str(cm_node_describe(node).text));
    if (cm_str_equal(origin->op_type, node->op_type) || cm_mlir_is_region(node))
        return origin->place;
    return cm_arena_printf(l->arena, "%.*s, its %.*s", CM_STR_FMT(origin->place),
                           CM_STR_FMT(node->op_type));
}

struct cm_str cm_mlir_place(struct cm_mlir_lowering *l, const struct cm_node *node)
{
    const struct cm_str of = cm_mlir_describe(l, node);
    char *text = CM_NEW_ARRAY(l->arena, char, of.size + 1);
    size_t size = 0;

    for (; size < of.size && size < 180; size++) {
        const char c = of.data[size];
        text[size] = c >= ' ' && c <= '~' && c != '"' && c != '\\' ? c : '?';
    }
    return (struct cm_str){text, size};
}

/* ---- constants ---- */

struct cm_str cm_mlir_element_text(struct cm_mlir_lowering *l, const struct cm_tensor *tensor,
                                   int64_t i)
{
    const char *scalar = cm_mlir_scalar(tensor->type);
    char text[64];

    if (tensor->type == CM_BOOL) {
        snprintf(text, sizeof text, "%s", cm_tensor_int(tensor, i) ? "true" : "false");
    } else if (scalar[0] == 'i' && cm_dtype_info(tensor->type)->kind != CM_CLASS_FLOAT) {
        /* MLIR takes unsigned numbers by their bits. */
        const int64_t number = cm_tensor_int(tensor, i);
        snprintf(text, sizeof text, "%" PRId64,
                 tensor->type == CM_UINT8    ? (int64_t)(int8_t)number
                 : tensor->type == CM_UINT16 ? (int64_t)(int16_t)number
                 : tensor->type == CM_UINT32 ? (int64_t)(int32_t)number
                                             : number);
    } else {
        /* Floats by their bits, which is exact and holds NaN too. */
        uint64_t bits = 0;
        const size_t size = cm_dtype_size(tensor->type);
        memcpy(&bits, (const char *)tensor->data + (size_t)i * size, size);
        if (scalar[0] == 'i')
            snprintf(text, sizeof text, "%d", (int)(int8_t)bits);
        else
            snprintf(text, sizeof text, "0x%0*" PRIX64, (int)size * 2, bits);
    }
    return cm_arena_str(l->arena, cm_str(text));
}

static void put_dense(struct cm_mlir_lowering *l, const struct cm_tensor *tensor, int axis,
                      int64_t *at)
{
    if (axis == tensor->shape.rank) {
        cm_mlir_put(l, &l->constants, cm_mlir_element_text(l, tensor, (*at)++));
        return;
    }
    cm_mlir_put(l, &l->constants, CM_STR("["));
    for (int64_t i = 0; i < tensor->shape.dims[axis]; i++) {
        if (i)
            cm_mlir_put(l, &l->constants, CM_STR(", "));
        put_dense(l, tensor, axis + 1, at);
    }
    cm_mlir_put(l, &l->constants, CM_STR("]"));
}

/* The tensor with an element a byte, where its type has fewer bits than that. */
static const struct cm_tensor *unpacked(struct cm_mlir_lowering *l, const struct cm_tensor *tensor)
{
    if (cm_dtype_info(tensor->type)->bits >= 8)
        return tensor;
    uint8_t *bytes = CM_NEW_ARRAY(l->arena, uint8_t, (size_t)cm_tensor_count(tensor) + 1);
    cm_mlir_unpack(bytes, tensor);
    struct cm_tensor *out = CM_NEW(l->arena, struct cm_tensor);
    *out = cm_tensor_borrow(CM_UINT8, &tensor->shape, bytes);
    return out;
}

static struct cm_str dense_constant(struct cm_mlir_lowering *l, struct cm_str name,
                                    const struct cm_tensor *tensor, struct cm_str type)
{
    int64_t at = 0;

    cm_mlir_put(l, &l->constants,
                cm_arena_printf(l->arena, "    %.*s = arith.constant dense<", CM_STR_FMT(name)));
    if (cm_tensor_count(tensor)) /* dense<> is the empty one */
        put_dense(l, tensor, 0, &at);
    cm_mlir_put(l, &l->constants, cm_arena_printf(l->arena, "> : %.*s\n", CM_STR_FMT(type)));
    return name;
}

/* label: what people call it. Whether it is read by this name shows at the end. */
static struct cm_str weight_constant(struct cm_mlir_lowering *l, struct cm_str label,
                                     struct cm_str name, const struct cm_tensor *tensor,
                                     struct cm_str memory)
{
    *CM_PUSH(l->arena, &l->asked) = (struct cm_mlir_asked){label, name, memory, tensor};
    return name;
}

static void place_weight(struct cm_mlir_lowering *l, const struct cm_mlir_asked *asked)
{
    const size_t offset = (l->weight_bytes + 63) / 64 * 64;
    const struct cm_tensor *tensor = asked->tensor;
    const struct cm_str name = asked->name, memory = asked->memory;

    l->weight_bytes =
        offset + (size_t)cm_tensor_count(tensor) * cm_mlir_element_bytes(tensor->type);
    *CM_PUSH(l->arena, &l->weights) = (struct cm_mlir_weight){asked->label, tensor, offset};
    cm_mlir_put(l, &l->constants,
                cm_arena_printf(l->arena,
                                "    %.*s_at = arith.constant %zu : index\n"
                                "    %.*s_in = memref.view %%weights[%.*s_at][] : memref<?xi8> to "
                                "%.*s\n"
                                "    %.*s = bufferization.to_tensor %.*s_in restrict : %.*s\n",
                                CM_STR_FMT(name), offset, CM_STR_FMT(name), CM_STR_FMT(name),
                                CM_STR_FMT(memory), CM_STR_FMT(name), CM_STR_FMT(name),
                                CM_STR_FMT(memory)));
}

void cm_mlir_place_weights(struct cm_mlir_lowering *l)
{
    const struct cm_str body = {l->body.items, l->body.count};
    struct cm_map read = {0};

    for (size_t i = 0; i < l->asked.count; i++)
        *cm_map_insert(&read, l->arena, l->asked.items[i].name, NULL) = l->options->keeps_weights;
    for (size_t i = 0; i < body.size; i++) {
        size_t size = 1;
        while (body.data[i] == '%' && i + size < body.size &&
               cm_template_is_name(body.data[i + size]))
            size++;
        uint64_t *found =
            size > 1 ? cm_map_find(&read, (struct cm_str){body.data + i, size}) : NULL;
        if (found)
            *found = true;
        i += size - 1;
    }
    for (size_t i = 0; i < l->asked.count; i++)
        if (cm_map_get(&read, l->asked.items[i].name, false))
            place_weight(l, &l->asked.items[i]);
}

struct cm_str cm_mlir_constant(struct cm_mlir_lowering *l, struct cm_str label,
                               const struct cm_tensor *tensor)
{
    const struct cm_str name = cm_arena_printf(l->arena, "%%c%zu", ++l->n_uses);
    struct cm_dim dims[CM_MAX_RANK];

    for (int i = 0; i < tensor->shape.rank; i++)
        dims[i] = CM_DIM(tensor->shape.dims[i]);
    const bool is_short = cm_tensor_count(tensor) <= CM_MLIR_INLINE;
    const struct cm_str type = cm_mlir_type_text(l->arena, is_short ? "tensor" : "memref",
                                                 tensor->type, tensor->shape.rank, dims);
    return is_short ? dense_constant(l, name, tensor, type)
                    : weight_constant(l, label, name, tensor, type);
}

struct cm_str cm_mlir_name(struct cm_mlir_lowering *l, cm_value value)
{
    if (l->names[value].size)
        return l->names[value];
    const struct cm_tensor *tensor = cm_mlir_contents(l, value);
    const struct cm_str name = cm_arena_printf(l->arena, "%%v%u", (unsigned)value);
    l->names[value] = name;
    /* Results are defined by their nodes, and a constant that a node computes is taken as such. */
    if (!tensor)
        return name;
    const struct cm_value_def *def = cm_value_get(l->module, value);
    const struct cm_type *of = def->fact.type;
    tensor = unpacked(l, tensor);
    const bool is_weight = l->options->keeps_weights && def->name.size && cm_tensor_count(tensor) &&
                           def->role == CM_ROLE_INITIALIZER && cm_dtype_is_float(of->dtype);
    const bool is_short = cm_tensor_count(tensor) <= CM_MLIR_INLINE && !is_weight;
    const struct cm_str type =
        cm_mlir_type_text(l->arena, is_short ? "tensor" : "memref", of->dtype, of->rank, of->dims);
    return is_short ? dense_constant(l, name, tensor, type)
                    : weight_constant(l, def->name, name, tensor, type);
}

/* ---- sizes ---- */

struct cm_str cm_mlir_index(struct cm_mlir_lowering *l, int64_t number)
{
    const struct cm_str name = cm_arena_printf(l->arena, "%%i%zu", ++l->n_uses);

    cm_mlir_line(l, "%.*s = arith.constant %" PRId64 " : index", CM_STR_FMT(name), number);
    return name;
}

struct cm_str cm_mlir_size(struct cm_mlir_lowering *l, cm_value value, int axis)
{
    const struct cm_type *type = cm_mlir_type(l, value);

    if (cm_dim_known(type->dims[axis]))
        return cm_mlir_index(l, type->dims[axis].value);
    const struct cm_str of = cm_mlir_name(l, value), at = cm_mlir_index(l, axis);
    const struct cm_str name = cm_arena_printf(l->arena, "%%s%zu", ++l->n_uses);
    const struct cm_str text = cm_mlir_value_type(l, value);
    cm_mlir_line(l, "%.*s = tensor.dim %.*s, %.*s : %.*s", CM_STR_FMT(name), CM_STR_FMT(of),
                 CM_STR_FMT(at), CM_STR_FMT(text));
    return name;
}
