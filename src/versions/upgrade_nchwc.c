/* Operators of com.microsoft.nchwc, which ONNX Runtime's last optimization writes: convolutions and
 * pools over tensors whose channels are padded to blocks, stored block by block. Here such a tensor
 * is an ordinary one with padded channels: what else the file does with it (sums, activations,
 * concatenations of whole blocks) means the same in both forms. Weights are reordered, and that is
 * computed once. The nodes never go back to a file as they were: others would read blocks. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/nchwc_blocks.h"
#include "versions/upgrade.h"
#include "versions/upgrade_step.h"

enum { IMAGE_RANK = 4 };

static cm_value transposed(struct cm_upgrade *up, cm_value x, size_t rank, const int64_t *perm)
{
    return cm_emit_with(up, "Transpose",
                        CM_ATTRIBUTES(cm_attr_ints(cm_upgrade_arena(up), "perm", rank, perm)), x);
}

static enum cm_status block_size(struct cm_upgrade *up, int64_t *out)
{
    struct cm_module *module = up->build.graph->module;
    const struct cm_model_proto *model = cm_module_model(module);
    if (!cm_module_channel_block(module) && model) {
        const struct cm_channel_blocks blocks = cm_channel_blocks_find(cm_upgrade_arena(up), model);
        if (blocks.is_at_odds)
            return cm_upgrade_fail(up, CM_BAD_MODEL,
                                   "some weights are in blocks of 8 channels, others in blocks of "
                                   "16; save the model again with ONNX Runtime");
        cm_module_set_channel_block(module, blocks.size);
    }
    *out = cm_module_channel_block(module);
    return *out ? CM_OK : cm_upgrade_fail(up, CM_UNSUPPORTED, "the block size is not known");
}

/* The dimensions of input i, all known. */
static enum cm_status image_sizes(struct cm_upgrade *up, size_t i, int64_t sizes[IMAGE_RANK])
{
    const struct cm_type *type = cm_upgrade_type(up, i);
    if (type->rank != IMAGE_RANK)
        return cm_upgrade_fail(up, type->rank < 0 ? CM_UNSUPPORTED : CM_BAD_MODEL,
                               "input %zu must have rank 4", i);
    for (size_t d = 0; d < IMAGE_RANK; d++)
        sizes[d] = type->dims[d].value;
    return CM_OK;
}

/* Weights with fewer input channels than a block are (O/b, I, H, W, b); others are (O/b, I/b, H, W,
 * b, b), input channels first. */
static enum cm_status plain_weights(struct cm_upgrade *up, cm_value *out)
{
    static const int64_t single[] = {0, 4, 1, 2, 3}, both[] = {0, 5, 1, 4, 2, 3};
    const cm_value w = cm_upgrade_input(up, 1);
    int64_t n[IMAGE_RANK], block;
    CM_TRY(block_size(up, &block));
    CM_TRY(image_sizes(up, 1, n));
    for (size_t d = 0; d < IMAGE_RANK; d++)
        if (n[d] < 1)
            return cm_upgrade_fail(up, CM_UNSUPPORTED, "the shape of the weights must be known");
    const bool one = n[1] < block;
    if (n[0] % block || (!one && n[1] % block))
        return cm_upgrade_fail(up, CM_BAD_MODEL,
                               "the weights are %lld x %lld channels, not whole blocks of %lld",
                               (long long)n[0], (long long)n[1], (long long)block);
    const cm_value blocks =
        one ? cm_emit_int64s(up, n[0] / block, n[1], n[2], n[3], block)
            : cm_emit_int64s(up, n[0] / block, n[1] / block, n[2], n[3], block, block);
    const cm_value apart = cm_emit(up, "Reshape", w, blocks);
    const cm_value turned = one ? transposed(up, apart, CM_COUNT(single), single)
                                : transposed(up, apart, CM_COUNT(both), both);
    *out = cm_emit(up, "Reshape", turned, cm_emit_int64s(up, n[0], n[1], n[2], n[3]));
    return CM_OK;
}

/* The same attributes, bias, sum and activation as com.microsoft's FusedConv. */
static enum cm_status conv(struct cm_upgrade *up)
{
    cm_value w = 0;
    CM_TRY(plain_weights(up, &w));
    const cm_value operands[] = {cm_upgrade_input(up, 0), w, cm_upgrade_input(up, 2),
                                 cm_upgrade_input(up, 3)};
    const size_t count = operands[3] ? 4 : operands[2] ? 3 : 2;
    return cm_upgrade_give(
        up, cm_build(&up->build, &(struct cm_emission){.op = "com.microsoft::FusedConv",
                                                       .inputs = operands,
                                                       .n_inputs = count,
                                                       .attributes = up->spec->attributes,
                                                       .n_attributes = up->spec->n_attributes}));
}

/* The operator of ai.onnx of the same name and attributes. */
static enum cm_status pool(struct cm_upgrade *up)
{
    const cm_value x = cm_upgrade_input(up, 0);
    const char *op = cm_arena_str(cm_upgrade_arena(up), up->spec->op_type).data;
    return cm_upgrade_give(
        up, cm_build(&up->build, &(struct cm_emission){.op = op,
                                                       CM_INPUTS(x),
                                                       .attributes = up->spec->attributes,
                                                       .n_attributes = up->spec->n_attributes}));
}

/* Channels are padded with zeros to whole blocks. */
static enum cm_status reorder_input(struct cm_upgrade *up)
{
    static const int64_t channels_first[] = {0, 3, 1, 2};
    const bool last = cm_node_int(&up->node, "channels_last") != 0;
    int64_t n[IMAGE_RANK], block;
    CM_TRY(block_size(up, &block));
    CM_TRY(image_sizes(up, 0, n));
    const int64_t channels = n[last ? 3 : 1];
    if (channels < 1)
        return cm_upgrade_fail(up, CM_UNSUPPORTED, "the number of channels must be known");
    const cm_value x = cm_upgrade_input(up, 0);
    const cm_value images =
        last ? transposed(up, x, IMAGE_RANK, channels_first) : cm_emit(up, "Identity", x);
    const int64_t missing = (block - channels % block) % block;
    return cm_upgrade_give(
        up, missing ? cm_emit(up, "Pad", images, cm_emit_int64s(up, 0, 0, 0, 0, 0, missing, 0, 0))
                    : images);
}

static enum cm_status reorder_output(struct cm_upgrade *up)
{
    static const int64_t channels_last[] = {0, 2, 3, 1};
    const int64_t channels = cm_node_int(&up->node, "channels");
    if (channels < 1)
        return cm_upgrade_fail(up, CM_BAD_MODEL, "attribute 'channels' is %lld, must be positive",
                               (long long)channels);
    const cm_value kept = cm_emit(up, "Slice", cm_upgrade_input(up, 0), cm_emit_int64s(up, 0),
                                  cm_emit_int64s(up, channels), cm_emit_int64s(up, 1));
    return cm_upgrade_give(up, cm_node_int(&up->node, "channels_last")
                                   ? transposed(up, kept, IMAGE_RANK, channels_last)
                                   : kept);
}

/* Resize with whole factors; the nearest element is the one before. */
static enum cm_status upsample(struct cm_upgrade *up)
{
    struct cm_arena *arena = cm_upgrade_arena(up);
    const struct cm_int64s given = cm_node_ints(&up->node, "scales");
    const struct cm_str mode =
        cm_upgrade_given(up, "mode") ? cm_node_str(&up->node, "mode") : CM_STR("nearest");
    const struct cm_str coordinates = cm_upgrade_given(up, "coordinate_transformation_mode")
                                          ? cm_node_str(&up->node, "coordinate_transformation_mode")
                                          : CM_STR("asymmetric");
    float scales[IMAGE_RANK];
    if (given.count != IMAGE_RANK)
        return cm_upgrade_fail(up, CM_BAD_MODEL, "attribute 'scales' has %zu numbers, needs 4",
                               given.count);
    for (size_t i = 0; i < IMAGE_RANK; i++)
        scales[i] = (float)given.items[i];
    const cm_value factors = cm_build(
        &up->build, &(struct cm_emission){
                        .op = "Constant",
                        CM_ATTRIBUTES(cm_attr_floats(arena, "value_floats", IMAGE_RANK, scales))});
    return cm_upgrade_give(
        up, cm_emit_with(
                up, "Resize",
                CM_ATTRIBUTES(cm_attr_str(arena, "mode", mode),
                              cm_attr_str(arena, "coordinate_transformation_mode", coordinates),
                              cm_attr_str(arena, "nearest_mode", CM_STR("floor"))),
                cm_upgrade_input(up, 0), 0, factors));
}

const struct cm_adoption cm_upgrade_nchwc[] = {
    {"AveragePool", 1, NULL, pool},
    {"Conv", 2, NULL, conv},
    {"GlobalAveragePool", 1, NULL, pool},
    {"GlobalMaxPool", 1, NULL, pool},
    {"MaxPool", 1, NULL, pool},
    {"ReorderInput", 1, NULL, reorder_input},
    {"ReorderOutput", 1, NULL, reorder_output},
    {"Upsample", 1, NULL, upsample},
};
const size_t cm_upgrade_nchwc_count = CM_COUNT(cm_upgrade_nchwc);
