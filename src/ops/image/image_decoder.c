/* ImageDecoder: an encoded image to its pixels, (height, width, channels). What cannot be decoded
 * gives a result without pixels, as ONNX asks; a codec that is not installed and an image beyond a
 * limit are failures. */
// SPDX-License-Identifier: Apache-2.0
#include "codec/image.h"
#include "graph/op.h"

static bool is_format(const struct cm_node *node, const char *name)
{
    return cm_str_is(cm_node_str(node, "pixel_format"), name);
}

static int64_t channels_of(const struct cm_node *node)
{
    return is_format(node, "Grayscale") ? 1 : 3;
}

static enum cm_status decoder_infer(struct cm_infer *in)
{
    const struct cm_dim dims[3] = {CM_DIM_ANY, CM_DIM_ANY, CM_DIM(channels_of(in->node))};
    if (!is_format(in->node, "RGB") && !is_format(in->node, "BGR") &&
        !is_format(in->node, "Grayscale"))
        return cm_infer_fail(
            in, "attribute 'pixel_format' is '%.*s', expected 'RGB', 'BGR' or 'Grayscale'",
            CM_STR_FMT(cm_node_str(in->node, "pixel_format")));
    CM_TRY(cm_infer_rank(in, 0, 1, 1));
    return cm_infer_set_tensor(in, 0, CM_UINT8, 3, dims);
}

/* ITU-R 601-2 in 16 bits, as ONNX's reference computes it. */
static void to_gray(const uint8_t *rgb, int64_t pixels, uint8_t *out)
{
    for (int64_t i = 0; i < pixels; i++, rgb += 3)
        out[i] = (uint8_t)((rgb[0] * 19595U + rgb[1] * 38470U + rgb[2] * 7471U + 0x8000U) >> 16);
}

static void swap_ends(uint8_t *rgb, int64_t pixels)
{
    for (int64_t i = 0; i < pixels; i++, rgb += 3) {
        const uint8_t red = rgb[0];
        rgb[0] = rgb[2];
        rgb[2] = red;
    }
}

/* Decodes into the result, or beside it where that has another form. */
static enum cm_status decode_to(struct cm_call *call, const struct cm_image *image, uint8_t *out,
                                bool *broken)
{
    const int64_t pixels = image->size.width * image->size.height;
    struct cm_buffer *wide = NULL;
    uint8_t *rgb = out;
    if (is_format(call->node, "Grayscale")) {
        CM_TRY(cm_buffer_new((size_t)pixels * 3, &wide, call->err));
        rgb = cm_buffer_data(wide);
    }
    const enum cm_status status = cm_image_decode(image, rgb, broken, call->err);
    if (!status && !*broken && wide)
        to_gray(rgb, pixels, out);
    else if (!status && !*broken && is_format(call->node, "BGR"))
        swap_ends(rgb, pixels);
    cm_buffer_drop(wide);
    return status;
}

/* What the codec itself will need is asked for and given back after it, so that a run's limit on
 * memory is asked before anything is decoded. */
static enum cm_status decode(struct cm_call *call, const struct cm_image *image, bool *broken)
{
    const struct cm_shape shape =
        CM_SHAPE(image->size.height, image->size.width, channels_of(call->node));
    struct cm_buffer *work;
    CM_TRY(cm_buffer_new((size_t)image->size.work, &work, call->err));
    enum cm_status status = cm_call_allocate(call, 0, CM_UINT8, &shape);
    if (!status)
        status = decode_to(call, image, call->out_datum[0]->tensor.data, broken);
    cm_buffer_drop(work);
    return status;
}

static enum cm_status decoder_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    struct cm_image image;
    bool broken = true;
    if (x->shape.rank != 1)
        return cm_call_fail(call, CM_BAD_ARGUMENT, "input 0 has rank %d, needs 1", x->shape.rank);
    CM_TRY(cm_image_open(x->data, cm_tensor_bytes(x), &image, call->err));
    if (!call->out_datum[0])
        return CM_OK;
    if (image.codec)
        CM_TRY(decode(call, &image, &broken));
    if (!broken)
        return CM_OK;
    cm_datum_drop(call->out_datum[0]);
    return cm_call_allocate(call, 0, CM_UINT8, &CM_SHAPE(0, 0, channels_of(call->node)));
}

/* An image holds more pixels than bytes, but not without end. */
static double decoder_work(const struct cm_node *node, const struct cm_amount *amount)
{
    (void)node;
    return amount->in * 1000;
}

CM_OP(ImageDecoder, .infer = decoder_infer, .run = decoder_run, .grad = cm_grad_none,
      .effects = CM_OUTPUT_SIZE_AT_RUN, .cost.work = decoder_work);
