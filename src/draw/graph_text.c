/* What is written into boxes: types, weights, attributes, kinds of operators. */
// SPDX-License-Identifier: Apache-2.0
#include "draw/graph_panel.h"

#include "onnx/type_text.h"
#include "tensor/dtype.h"

#define TIMES "\xc3\x97"

const struct cm_draw_family cm_draw_families[] = {
    {"other", "#f4f4f4", ""},
    {"convolution", "#cfe2fb", " Conv ConvTranspose ConvInteger QLinearConv DeformConv FusedConv "},
    {"product", "#c4d7f5",
     " MatMul Gemm MatMulInteger QLinearMatMul Einsum MatMulNBits FusedMatMul Attention "
     "MultiHeadAttention GroupQueryAttention "},
    {"recurrent", "#c3e4ea", " LSTM GRU RNN "},
    {"normalization", "#e6dbf5",
     " BatchNormalization LayerNormalization InstanceNormalization GroupNormalization "
     "RMSNormalization LpNormalization LRN SkipLayerNormalization SimplifiedLayerNormalization "
     "MeanVarianceNormalization "},
    {"activation", "#fde0cb",
     " Relu LeakyRelu PRelu Elu Selu Celu Gelu Sigmoid HardSigmoid Tanh Softmax LogSoftmax "
     "Softplus Softsign HardSwish Mish Swish Clip Erf ThresholdedRelu Hardmax FastGelu QuickGelu "},
    {"pooling", "#d5efdb",
     " MaxPool AveragePool GlobalAveragePool GlobalMaxPool LpPool GlobalLpPool MaxUnpool "},
    {"elementwise", "#fdf3c8",
     " Add Sub Mul Div Pow Sqrt Exp Log Neg Abs Max Min Mean Sum Where Equal Greater Less And Or "
     "Not Xor GreaterOrEqual LessOrEqual Reciprocal Floor Ceil Round Sign Mod Sin Cos Cast "
     "CastLike Dropout Identity IsNaN IsInf "},
    {"shape", "#e9e9ec",
     " Reshape Transpose Flatten Squeeze Unsqueeze Concat Split Slice Gather GatherElements "
     "GatherND Scatter ScatterElements ScatterND Expand Tile Pad Shape Size ConstantOfShape "
     "Constant Range Resize Upsample DepthToSpace SpaceToDepth OneHot NonZero Trilu "},
    {"reduction", "#d8f0ee",
     " ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare "
     "ReduceLogSum ReduceLogSumExp ArgMax ArgMin TopK CumSum "},
    {"quantization", "#ecdfcb",
     " QuantizeLinear DequantizeLinear DynamicQuantizeLinear FakeQuantize "},
    {"control flow", "#f9d5e3", " If Loop Scan SequenceMap "},
    {"training", "#fad2d0",
     " Gradient Adam Adagrad Momentum SoftmaxCrossEntropyLoss NegativeLogLikelihoodLoss "},
    {"function", "#ffffff", ""},
};
const int cm_draw_family_count = CM_COUNT(cm_draw_families);

/* ---- texts ---- */

void cm_draw_put_text(char to[CM_DRAW_TEXT], struct cm_str text)
{
    size_t room = CM_DRAW_TEXT - 3;

    if (text.size < CM_DRAW_TEXT) {
        if (text.size)
            memcpy(to, text.data, text.size);
        to[text.size] = 0;
        return;
    }
    while (room && ((unsigned char)text.data[room] & 0xc0) == 0x80)
        room--;
    memcpy(to, text.data, room);
    memcpy(to + room, "..", 3);
}

void cm_draw_put_name(char to[CM_DRAW_TEXT], struct cm_str name)
{
    enum { SHOWN = 36 };

    if (name.size <= SHOWN) {
        cm_draw_put_text(to, name);
        return;
    }
    name.data += name.size - SHOWN;
    name.size = SHOWN;
    while (name.size && ((unsigned char)*name.data & 0xc0) == 0x80) {
        name.data++;
        name.size--;
    }
    snprintf(to, CM_DRAW_TEXT, "..%.*s", CM_STR_FMT(name));
}

/* Inference calls what it does not know unk__0, unk__1 and so on. */
static bool is_named(struct cm_str symbol)
{
    return symbol.size && !cm_str_starts(symbol, "unk__");
}

void cm_draw_put_type(struct cm_arena *arena, char to[CM_DRAW_TEXT],
                      const struct cm_value_info_proto *info)
{
    const struct cm_type_proto *type = info ? info->type : NULL;
    const struct cm_tensor_type_proto *tensor = type ? type->tensor_type : NULL;
    char text[400];
    size_t used = 0;

    to[0] = 0;
    if (!type)
        return;
    if (!tensor || !tensor->shape) {
        const struct cm_str name = cm_type_text(arena, type, ",");
        if (!cm_str_is(name, "?")) /* a type of no kind */
            cm_draw_put_text(to, name);
        return;
    }
    const size_t rank = tensor->shape->dim.count;
    if (tensor->elem_type != CM_FLOAT || !rank)
        used = (size_t)snprintf(text, sizeof text, "%s%s",
                                cm_dtype_name(cm_dtype_is_valid(tensor->elem_type)
                                                  ? (enum cm_dtype)tensor->elem_type
                                                  : CM_UNDEFINED),
                                rank ? " " : "");
    for (size_t i = 0; i < rank && used + 64 < sizeof text; i++) {
        const struct cm_dim_proto *dim = &tensor->shape->dim.items[i];
        const char *times = i ? TIMES : "";
        if (cm_msg_has(&dim->msg, CM_DIM_VALUE) && dim->dim_value >= 0)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld", times,
                                     (long long)dim->dim_value);
        else
            used += (size_t)snprintf(
                text + used, sizeof text - used, "%s%.*s", times,
                CM_DRAW_CUT(is_named(dim->dim_param) ? dim->dim_param : CM_STR("?"), 24));
    }
    text[used] = 0;
    cm_draw_put_text(to, cm_str(text));
}

static void put_ints(char *to, size_t room, const int64_t *numbers, size_t count)
{
    size_t used = 0;

    for (size_t i = 0; i < count && used + 24 < room; i++)
        used += (size_t)snprintf(to + used, room - used, "%s%lld", i ? TIMES : "",
                                 (long long)numbers[i]);
}

/* Attributes that say what most nodes of their kind do are left out. */
static bool is_usual(const struct cm_attribute_proto *a)
{
    static const char ones[] = " dilations strides group alpha beta ",
                      zeros[] = " ceil_mode pads storage_order allowzero ";
    char name[80];
    bool one = a->ints.count > 0 || a->i == 1 || a->f == 1, zero = true;

    snprintf(name, sizeof name, " %.*s ", CM_DRAW_CUT(a->name, 70));
    for (size_t i = 0; i < a->ints.count; i++) {
        one = one && a->ints.items[i] == 1;
        zero = zero && a->ints.items[i] == 0;
    }
    return (strstr(ones, name) && one) || (strstr(zeros, name) && zero && a->i == 0) ||
           cm_str_is(a->s, "NOTSET");
}

/* Pads and strides are mostly the same all around: then one number says it. */
static bool all_alike(const struct cm_attribute_proto *a)
{
    const bool around = cm_str_is(a->name, "pads") || cm_str_is(a->name, "strides");

    for (size_t i = 1; around && i < a->ints.count; i++)
        if (a->ints.items[i] != a->ints.items[0])
            return false;
    return around;
}

void cm_draw_add_line(struct cm_draw_vertex *v, const char *text)
{
    if (text[0] && v->line_count < CM_DRAW_LINES)
        cm_draw_put_text(v->lines[v->line_count++], cm_str(text));
}

void cm_draw_add_attributes(struct cm_draw_vertex *v, const struct cm_node_proto *node)
{
    char text[CM_DRAW_TEXT] = "", one[160], value[80];

    for (size_t i = 0; i < node->attribute.count; i++) {
        const struct cm_attribute_proto *a = &node->attribute.items[i];

        value[0] = 0;
        if (a->type == CM_ATTR_INT)
            snprintf(value, sizeof value, "%lld", (long long)a->i);
        else if (a->type == CM_ATTR_FLOAT)
            cm_format(value, sizeof value, "%.4g", (double)a->f);
        else if (a->type == CM_ATTR_STRING)
            snprintf(value, sizeof value, "%.*s", CM_DRAW_CUT(a->s, 20));
        else if (a->type == CM_ATTR_INTS && a->ints.count <= 4)
            put_ints(value, sizeof value, a->ints.items, all_alike(a) ? 1 : a->ints.count);
        if (!value[0] || is_usual(a))
            continue;
        snprintf(one, sizeof one, "%s%.*s %s", text[0] ? ", " : "", CM_DRAW_CUT(a->name, 24),
                 value);
        if (strlen(text) + strlen(one) > 40 && text[0])
            break;
        snprintf(text + strlen(text), sizeof text - strlen(text), "%.47s", one);
    }
    cm_draw_add_line(v, text);
}

void cm_draw_add_weights(struct cm_draw_vertex *v, const struct cm_drawing *drawing,
                         const struct cm_node_proto *node)
{
    char text[200] = "";
    size_t used = 0;

    for (size_t i = 0; i < node->input.count && used < 36; i++) {
        const struct cm_int64s *dims = cm_draw_find_weight(drawing, node->input.items[i]);

        if (!dims || dims->count == 0 || dims->count > 6)
            continue;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", used ? ", " : "[");
        put_ints(text + used, sizeof text - used, dims->items, dims->count);
        used = strlen(text);
    }
    if (used)
        snprintf(text + used, sizeof text - used, "]");
    cm_draw_add_line(v, text);
}

int cm_draw_family_of(const struct cm_node_proto *node)
{
    char name[80];

    snprintf(name, sizeof name, " %.*s ", CM_DRAW_CUT(node->op_type, 70));
    for (int f = 1; f < cm_draw_family_count; f++)
        if (strstr(cm_draw_families[f].operators, name))
            return f;
    return 0;
}
