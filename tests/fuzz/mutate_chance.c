/* Chance, and pieces of inputs: what all mutators use. */
// SPDX-License-Identifier: Apache-2.0
#include "mutate.h"
#include "schema/schema.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* libFuzzer's; replay.c has a small one. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* ---- chance ---- */

static uint64_t next(struct chance *c)
{
    c->random += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    uint64_t z = c->random;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

size_t chance_draw(struct chance *c, size_t below)
{
    return (size_t)(next(c) % below);
}

bool chance_percent(struct chance *c, unsigned percent)
{
    return chance_draw(c, 100) < percent;
}

int64_t chance_number(struct chance *c)
{
    static const int16_t near[] = {-4, -3, -2, 7, 8, 10, 16, 1000, 4096};
    static const int edges[] = {6, 7, 8, 15, 16, 31, 32, 40, 62, 63};

    if (chance_percent(c, 70))
        return (int64_t)chance_draw(c, 7) - 1;
    if (chance_percent(c, 30))
        return near[chance_draw(c, CM_COUNT(near))];
    const uint64_t power = UINT64_C(1) << edges[chance_draw(c, CM_COUNT(edges))];
    const uint64_t number = power + chance_draw(c, 3) - 1;
    return (int64_t)(chance_percent(c, 25) ? 0 - number : number);
}

float chance_real(struct chance *c)
{
    static const float edges[] = {-0.0f,   NAN,    INFINITY, -INFINITY, FLT_MAX, -FLT_MAX,
                                  FLT_MIN, 1e-30f, 1e10f,    -1e10f,    3e9f,    1e19f};

    if (chance_percent(c, 70))
        return (float)chance_draw(c, 13) * 0.5f - 2;
    return edges[chance_draw(c, CM_COUNT(edges))];
}

/* ---- words ---- */

/* What values of attributes, and fields of formats, are called. Operators, their attributes and
 * operands come from the schema table. */
static const char *const words[] = {
    "NOTSET",
    "SAME_UPPER",
    "SAME_LOWER",
    "VALID",
    "constant",
    "reflect",
    "edge",
    "wrap",
    "nearest",
    "linear",
    "cubic",
    "bilinear",
    "half_pixel",
    "asymmetric",
    "align_corners",
    "tf_crop_and_resize",
    "floor",
    "ceil",
    "none",
    "mean",
    "sum",
    "add",
    "mul",
    "max",
    "min",
    "avg",
    "forward",
    "reverse",
    "bidirectional",
    "DCR",
    "CRD",
    "tanh",
    "Relu",
    "Sigmoid",
    "Tanh",
    "HardSigmoid",
    "Affine",
    "ij,jk->ik",
    "ii->i",
    "...i->...",
    "i,i->",
    "ij->ji",
    "TF",
    "IDF",
    "TFIDF",
    "LOWER",
    "UPPER",
    "NONE",
    "BRANCH_LEQ",
    "LEAF",
    "SUM",
    "AVERAGE",
    "SOFTMAX",
    "LINEAR",
    "RBF",
    "POLY",
    "L1",
    "L2",
    "MAX",
    "zeros",
    "border",
    "reflection",
    "delta",
    "gated",
    "gated_delta",
    "Nesterov",
    "standard",
    "[a-z]+",
    "a",
    "",
    "\xff",
    "ai.onnx",
    "ai.onnx.ml",
    "com.microsoft",
    "ai.cameo",
    "ai.onnx.preview.training",
    "\xe2\x80\xae",
    "../x",
    "/dev/zero",
    /* the text forms */
    "ir_version",
    "opset_import",
    "producer_name",
    "model_version",
    "metadata_props",
    "domain",
    "seq",
    "map",
    "optional",
    "sparse_tensor",
    "body",
    "then_branch",
    "else_branch",
    "value",
    "func.func",
    "return",
    "module",
    "module attributes",
    "onnx.Constant",
    "onnx.EntryPoint",
    "onnx.Return",
    "onnx.Yield",
    "onnx.NoValue",
    "onnx_node_name",
    "dense",
    "dense_resource",
    "tensor",
    "none",
    "f32",
    "f16",
    "bf16",
    "f64",
    "f8E4M3FN",
    "i1",
    "i8",
    "i32",
    "i64",
    "ui8",
    "ui64",
    "complex<f32>",
    "!onnx.String",
    "!onnx.Seq",
    "!onnx.Opt",
    "unit",
    "value_properties",
    "affine_map",
    "loc",
    "unknown",
    "onnx.name",
    "onnx.dim_params",
    "onnx.opset",
    "true",
    "false",
    /* checkpoints */
    "dtype",
    "shape",
    "data_offsets",
    "__metadata__",
    "F32",
    "I64",
    "BF16",
    "U8",
    "BOOL",
    "F8_E4M3",
    "descr",
    "fortran_order",
    "<f4",
    "<i8",
    "|b1",
    ">f8",
    "<U4",
    "state",
    "param_groups",
    "params",
    "lr",
    "betas",
    "eps",
    "weight_decay",
    "momentum",
    "step",
    "exp_avg",
    "exp_avg_sq",
    "momentum_buffer",
    "initial_lr",
    "state_dict",
    "optimizer_states",
    "lr_schedulers",
    "epoch",
    "global_step",
    "last_epoch",
    "base_lrs",
    "torch._utils",
    "_rebuild_tensor_v2",
    "_rebuild_parameter",
    "collections",
    "OrderedDict",
    "torch",
    "FloatStorage",
    "LongStorage",
    "storage",
    "cpu",
    "numpy.core.multiarray",
    "_reconstruct",
    "scalar",
    "ndarray",
    "chunks",
    "compressor",
    "zstd",
    "zlib",
    "gzip",
    "fill_value",
    "order",
    "filters",
    "zarr_format",
    "dimension_separator",
    "optimizer",
    "vars",
    "layers",
    "name",
    "class_name",
    "config",
    "weight_names",
    "layer_names",
    "training_config",
    "_strings.json",
    "T_max",
    "gamma",
    "milestones",
    "_schedulers",
    "total_steps",
    "NaN",
    "Infinity",
    "null",
    "nan",
    "inf",
    "e",
};

struct cm_str chance_word(struct chance *c)
{
    const struct cm_schema *schema = cm_schema_at(chance_draw(c, cm_schema_count()));

    switch (chance_draw(c, 7)) {
    case 0:
        return cm_str(schema->name);
    case 1:
        return cm_arena_printf(c->arena, "onnx.%s", schema->name);
    case 2:
        if (schema->attr_count)
            return cm_str(schema->attrs[chance_draw(c, schema->attr_count)].name);
        break;
    case 3:
        return cm_str(cm_dtype_name((enum cm_dtype)chance_draw(c, CM_DTYPE_COUNT)));
    default:
        break;
    }
    return cm_str(words[chance_draw(c, CM_COUNT(words))]);
}

/* ---- bytes ---- */

struct cm_str mutate_bytes(struct chance *c, struct cm_str bytes)
{
    const size_t room = bytes.size + 64;
    char *copy = cm_arena_alloc(c->arena, room);

    if (bytes.size)
        memcpy(copy, bytes.data, bytes.size);
    return (struct cm_str){copy, LLVMFuzzerMutate((uint8_t *)copy, bytes.size, room)};
}

void sheet_add(struct sheet *sheet, struct cm_str bytes)
{
    while (sheet->capacity - sheet->count < bytes.size)
        sheet->items = cm_arena_grow(sheet->arena, sheet->items, &sheet->capacity, 1);
    if (bytes.size)
        memcpy(sheet->items + sheet->count, bytes.data, bytes.size);
    sheet->count += bytes.size;
}

void sheet_add_number(struct sheet *sheet, uint64_t number, size_t size)
{
    char bytes[8];

    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(number >> 8 * i & 255);
    sheet_add(sheet, (struct cm_str){bytes, size});
}

uint64_t bytes_number(const void *bytes, size_t size)
{
    uint64_t number = 0;

    for (size_t i = size; i-- > 0;)
        number = number << 8 | ((const uint8_t *)bytes)[i];
    return number;
}

struct cm_str str_part(struct cm_str bytes, size_t from, size_t size)
{
    if (from > bytes.size)
        from = bytes.size;
    if (size > bytes.size - from)
        size = bytes.size - from;
    return from ? (struct cm_str){bytes.data + from, size} : (struct cm_str){bytes.data, size};
}

/* ---- pieces ---- */

struct cm_str *pieces_some(struct chance *c, const struct pieces *pieces)
{
    return pieces->count ? &pieces->items[chance_draw(c, pieces->count)] : NULL;
}

bool pieces_change(struct chance *c, struct pieces *pieces)
{
    if (!pieces->count)
        return false;
    const size_t at = chance_draw(c, pieces->count), other = chance_draw(c, pieces->count);
    const struct cm_str piece = pieces->items[at];

    switch (chance_draw(c, 4)) {
    case 0:
        memmove(pieces->items + at, pieces->items + at + 1,
                (pieces->count - at - 1) * sizeof *pieces->items);
        pieces->count--;
        break;
    case 1:
        *CM_PUSH(c->arena, pieces) = piece;
        memmove(pieces->items + other + 1, pieces->items + other,
                (pieces->count - other - 1) * sizeof *pieces->items);
        pieces->items[other] = piece;
        break;
    case 2:
        pieces->items[at] = pieces->items[other];
        pieces->items[other] = piece;
        break;
    default:
        pieces->items[at] = pieces->items[other];
        break;
    }
    return true;
}

struct cm_str pieces_join(struct chance *c, const struct pieces *pieces)
{
    struct sheet sheet = {.arena = c->arena};

    for (size_t i = 0; i < pieces->count; i++)
        sheet_add(&sheet, pieces->items[i]);
    return sheet_text(&sheet);
}
