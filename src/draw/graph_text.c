/* What is written into boxes: types, weights, attributes, kinds of operators. */
// SPDX-License-Identifier: Apache-2.0
#include "graph_panel.h"

#include <stdlib.h>
#include <string.h>

#define TIMES "\xc3\x97"

const struct graph_family graph_families[] = {
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
const int graph_family_count = sizeof graph_families / sizeof *graph_families;

/* ---- texts ---- */

void graph_put_text(char to[GRAPH_TEXT], const char *text)
{
    size_t size = strlen(text), room = GRAPH_TEXT - 3;

    if (size < GRAPH_TEXT) {
        memcpy(to, text, size + 1);
        return;
    }
    while (room && ((unsigned char)text[room] & 0xc0) == 0x80)
        room--;
    memcpy(to, text, room);
    memcpy(to + room, "..", 3);
}

void graph_put_name(char to[GRAPH_TEXT], const char *name)
{
    enum { SHOWN = 36 };
    size_t size = strlen(name);

    if (size <= SHOWN) {
        graph_put_text(to, name);
        return;
    }
    name += size - SHOWN;
    while (((unsigned char)*name & 0xc0) == 0x80)
        name++;
    snprintf(to, GRAPH_TEXT, "..%s", name);
}

/* Inference calls what it does not know unk__0, unk__1 and so on. */
static bool is_named(struct cameo_text symbol)
{
    return symbol.size && strncmp(symbol.data, "unk__", 5) != 0;
}

void graph_put_type(char to[GRAPH_TEXT], const struct cameo_value_info *info)
{
    char text[400];
    size_t used = 0;

    to[0] = 0;
    if (!info || info->kind == CAMEO_KIND_NONE)
        return;
    if (info->kind != CAMEO_KIND_TENSOR || info->rank < 0) {
        graph_put_text(to, info->type.data);
        return;
    }
    if (info->dtype != CAMEO_FLOAT || !info->rank)
        used = (size_t)snprintf(text, sizeof text, "%s%s", cameo_dtype_name(info->dtype),
                                info->rank ? " " : "");
    for (int i = 0; i < info->rank && used + 64 < sizeof text; i++) {
        const char *times = i ? TIMES : "";
        if (info->dims[i].size >= 0)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld", times,
                                     (long long)info->dims[i].size);
        else
            used +=
                (size_t)snprintf(text + used, sizeof text - used, "%s%.24s", times,
                                 is_named(info->dims[i].symbol) ? info->dims[i].symbol.data : "?");
    }
    text[used] = 0;
    graph_put_text(to, text);
}

static void put_ints(char *to, size_t room, const int64_t *numbers, size_t count)
{
    size_t used = 0;

    for (size_t i = 0; i < count && used + 24 < room; i++)
        used += (size_t)snprintf(to + used, room - used, "%s%lld", i ? TIMES : "",
                                 (long long)numbers[i]);
}

/* Attributes that say what most nodes of their kind do are left out. */
static bool is_usual(const struct cameo_node_attribute *a)
{
    static const char ones[] = " dilations strides group alpha beta ",
                      zeros[] = " ceil_mode pads storage_order allowzero ";
    char name[80];
    bool one = a->int_count > 0 || a->i == 1 || a->f == 1, zero = true;

    snprintf(name, sizeof name, " %.70s ", a->name.data);
    for (size_t i = 0; i < a->int_count; i++) {
        one = one && a->ints[i] == 1;
        zero = zero && a->ints[i] == 0;
    }
    return (strstr(ones, name) && one) || (strstr(zeros, name) && zero && a->i == 0) ||
           strcmp(a->s.data, "NOTSET") == 0;
}

/* Pads and strides are mostly the same all around: then one number says it. */
static bool all_alike(const struct cameo_node_attribute *a)
{
    const bool around = strcmp(a->name.data, "pads") == 0 || strcmp(a->name.data, "strides") == 0;

    for (size_t i = 1; around && i < a->int_count; i++)
        if (a->ints[i] != a->ints[0])
            return false;
    return around;
}

void graph_add_line(struct graph_vertex *v, const char *text)
{
    if (text[0] && v->line_count < GRAPH_LINES)
        graph_put_text(v->lines[v->line_count++], text);
}

void graph_add_attributes(struct graph_vertex *v, const struct cameo_node *node)
{
    char text[GRAPH_TEXT] = "", one[160], value[80];

    for (size_t i = 0; i < node->attribute_count; i++) {
        const struct cameo_node_attribute *a = node->attributes[i];

        value[0] = 0;
        if (a->kind == CAMEO_ATTRIBUTE_INT)
            snprintf(value, sizeof value, "%lld", (long long)a->i);
        else if (a->kind == CAMEO_ATTRIBUTE_FLOAT)
            snprintf(value, sizeof value, "%.4g", (double)a->f);
        else if (a->kind == CAMEO_ATTRIBUTE_STRING)
            snprintf(value, sizeof value, "%.20s", a->s.data);
        else if (a->kind == CAMEO_ATTRIBUTE_INTS && a->int_count <= 4)
            put_ints(value, sizeof value, a->ints, all_alike(a) ? 1 : a->int_count);
        if (!value[0] || is_usual(a))
            continue;
        snprintf(one, sizeof one, "%s%.24s %s", text[0] ? ", " : "", a->name.data, value);
        if (strlen(text) + strlen(one) > 40 && text[0])
            break;
        snprintf(text + strlen(text), sizeof text - strlen(text), "%.47s", one);
    }
    graph_add_line(v, text);
}

void graph_add_weights(struct graph_vertex *v, const struct cameo_model *model,
                       const struct cameo_node *node)
{
    char text[200] = "";
    size_t index, used = 0;

    for (size_t i = 0; i < node->input_count && used < 36; i++) {
        if (!node->inputs[i].size ||
            !cameo_model_find_initializer(model, node->inputs[i].data, &index))
            continue;
        const struct cameo_initializer *t = cameo_model_initializer(model, index);
        if (t->rank == 0 || t->rank > 6)
            continue;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", used ? ", " : "[");
        put_ints(text + used, sizeof text - used, t->dims, t->rank);
        used = strlen(text);
    }
    if (used)
        snprintf(text + used, sizeof text - used, "]");
    graph_add_line(v, text);
}

int graph_family_of(const struct cameo_node *node)
{
    char name[80];

    snprintf(name, sizeof name, " %.70s ", node->op_type.data);
    for (int f = 1; f < graph_family_count; f++)
        if (strstr(graph_families[f].operators, name))
            return f;
    return 0;
}
