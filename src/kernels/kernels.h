/* Products and convolutions that compiled models call. The sources beside this header are compiled
 * for the target together with the model, so they need nothing but memcpy and memset: they do not
 * allocate, keep no state, start no threads. Each compiles alone and includes files of this folder
 * only. The vectors and tiles follow from what the compiler says of the target. */
// SPDX-License-Identifier: Apache-2.0

/* Addresses and sizes are intptr_t: what MLIR calls `index`. Sizes, rows and columns count
 * elements, never bytes. Any size may be 0: a sum over nothing is 0 (then bias, residual and
 * activation). Operands are aligned to their elements; results do not overlap operands, except
 * that a residual may lie where the result does.
 *
 * Scratch: every function that has `scratch, scratch_bytes` wants memory aligned to 64 bytes, at
 * least CAMEO_SCRATCH_LEAST bytes and for speed CAMEO_SCRATCH_BYTES, whatever the shapes. Its
 * contents before do not matter and after have no meaning: one block serves a whole model. More
 * than that is not used, and the results do depend on its size, in the last bits.
 *
 * Epilogue: every product and convolution of floats ends with
 *
 *     y = activation(sum + bias + residual)
 *
 * where bias is an address or 0, residual is the address of a tensor like y or 0, and activation is
 *
 *     CAMEO_NO_ACTIVATION   low and high do not matter
 *     CAMEO_RELU            x < 0 ? 0 : x           low and high do not matter
 *     CAMEO_CLIP            x < low ? low : x, then x > high ? high : x
 *
 * so that NaN stays NaN. Any other number is CAMEO_CLIP and the address of a cameo_finish (which
 * may be 1 in WebAssembly). cameo_product_* and cameo_conv_* of f32 and f64, not those of
 * gradients, call it instead for each part of y that is otherwise done, as soon as it is: it gets
 * the residual, which is not added, and lies apart from y. */
#ifndef CM_KERNELS_KERNELS_H
#define CM_KERNELS_KERNELS_H

#include <stdint.h>

enum { CAMEO_NO_ACTIVATION = 0, CAMEO_RELU = 1, CAMEO_CLIP = 2 };

/* Changes `columns` elements of each of `rows` rows of y, which lie `step` elements apart. `other`
 * is the address of the elements of the residual that lie where these do, or 0. It is generated,
 * and so its numbers have 64 bits on every target. */
typedef void cameo_finish(int64_t y, int64_t other, int64_t rows, int64_t step, int64_t columns);

#define CAMEO_EPILOGUE                                                                             \
    intptr_t bias, intptr_t residual, intptr_t activation, float low, float high,                  \
        intptr_t scratch, intptr_t scratch_bytes

enum {
    CAMEO_SCRATCH_LEAST = 16384,
    CAMEO_SCRATCH_BYTES = 262144,
    CAMEO_PANEL_COLUMNS = 16, /* of a packed matrix */
    CAMEO_PANEL_ROWS = 12,    /* of packed weights of a convolution */
};

/* ---- matrix products ---- */

#define CAMEO_PRODUCT_SIZES                                                                        \
    intptr_t m, intptr_t n, intptr_t k, intptr_t a_row, intptr_t a_column, intptr_t b_row,         \
        intptr_t b_column

/* C = activation(A B + bias + residual): A is m x k, B is k x n, C and the residual are m x n with
 * rows one after the other, bias is one row of n. Element (i, j) of A lies at a + i * a_row +
 * j * a_column, and likewise in B: strides may be 0 or negative, so either may be transposed or
 * repeated. f16 and bf16 are added up in f32 and rounded once. */
void cameo_product_f32(intptr_t a, intptr_t b, intptr_t c, CAMEO_PRODUCT_SIZES, CAMEO_EPILOGUE);
void cameo_product_f64(intptr_t a, intptr_t b, intptr_t c, CAMEO_PRODUCT_SIZES, CAMEO_EPILOGUE);
void cameo_product_f16(intptr_t a, intptr_t b, intptr_t c, CAMEO_PRODUCT_SIZES, CAMEO_EPILOGUE);
void cameo_product_bf16(intptr_t a, intptr_t b, intptr_t c, CAMEO_PRODUCT_SIZES, CAMEO_EPILOGUE);

/* Packs lines of k elements: lines lie `line` elements apart, elements of a line `step`. Each group
 * of `lines` lines goes to ceil(lines / wide) panels one after the other, each k rows of `wide`
 * lines, with zeros where there is no line: groups * ceil(lines / wide) * wide * k floats in all.
 * In a group element i of line j lies at j / wide * wide * k + i * wide + j % wide. The layout is
 * the same for all targets. */
void cameo_pack_f32(intptr_t from, intptr_t packed, intptr_t groups, intptr_t lines, intptr_t k,
                    intptr_t line, intptr_t step, intptr_t wide);

/* The product with the columns of B packed beforehand, CAMEO_PANEL_COLUMNS wide. */
void cameo_product_packed_f32(intptr_t a, intptr_t packed, intptr_t c, intptr_t m, intptr_t n,
                              intptr_t k, intptr_t a_row, intptr_t a_column, CAMEO_EPILOGUE);

/* C = (A - zero of A) (B - zero of B) in i32, modulo 2^32: elements of 8 bits, unsigned or (the
 * flag is not 0) signed. a_zero is the address of zero points of A's type, or 0: that of row i lies
 * at a_zero + i * a_zero_step (0: one for all rows); that of column j of B at b_zero + j *
 * b_zero_step. */
void cameo_product_i8(intptr_t a, intptr_t b, intptr_t c, CAMEO_PRODUCT_SIZES, intptr_t a_signed,
                      intptr_t b_signed, intptr_t a_zero, intptr_t a_zero_step, intptr_t b_zero,
                      intptr_t b_zero_step, intptr_t scratch, intptr_t scratch_bytes);

/* ---- convolutions ---- */

/* Sizes of a convolution of x (batch, in_channels, in_0, in_1, in_2) with w (out_channels,
 * in_channels / groups, kernel_0, kernel_1, kernel_2) to y (batch, out_channels, out_0, out_1,
 * out_2). Fewer than three spatial axes: the first ones have in, out, kernel, stride and dilation 1
 * and pad 0. `pad` is what lies before the image and may be negative; what lies after it follows
 * from `out`. Both channels are multiples of groups. */
#define CAMEO_CONV_SIZES                                                                           \
    intptr_t batch, intptr_t groups, intptr_t in_channels, intptr_t out_channels, intptr_t in_0,   \
        intptr_t in_1, intptr_t in_2, intptr_t out_0, intptr_t out_1, intptr_t out_2,              \
        intptr_t kernel_0, intptr_t kernel_1, intptr_t kernel_2, intptr_t stride_0,                \
        intptr_t stride_1, intptr_t stride_2, intptr_t dilation_0, intptr_t dilation_1,            \
        intptr_t dilation_2, intptr_t pad_0, intptr_t pad_1, intptr_t pad_2

/* y = activation(x * w + bias + residual); bias has out_channels elements. */
void cameo_conv_f32(intptr_t x, intptr_t w, intptr_t y, CAMEO_CONV_SIZES, CAMEO_EPILOGUE);
void cameo_conv_f64(intptr_t x, intptr_t w, intptr_t y, CAMEO_CONV_SIZES, CAMEO_EPILOGUE);
void cameo_conv_f16(intptr_t x, intptr_t w, intptr_t y, CAMEO_CONV_SIZES, CAMEO_EPILOGUE);
void cameo_conv_bf16(intptr_t x, intptr_t w, intptr_t y, CAMEO_CONV_SIZES, CAMEO_EPILOGUE);

/* The same with weights packed beforehand, CAMEO_PANEL_ROWS wide: the lines of a group are its
 * output channels, each of k = in_channels / groups * kernel_0 * kernel_1 * kernel_2 elements.
 * Depthwise convolutions (groups == in_channels) are slow this way: cameo_conv_f32 has a loop of
 * its own for them. */
void cameo_conv_packed_f32(intptr_t x, intptr_t packed, intptr_t y, CAMEO_CONV_SIZES,
                           CAMEO_EPILOGUE);

/* The same with weights packed CAMEO_PANEL_COLUMNS wide. It is the faster one where each result
 * adds up many terms (about a hundred or more), the image has one or two spatial axes and rows of
 * results are about as long as a multiple of 7; rows of the image that a row of results reads, of
 * all channels, should fit in the scratch memory. */
void cameo_conv_direct_f32(intptr_t x, intptr_t packed, intptr_t y, CAMEO_CONV_SIZES,
                           CAMEO_EPILOGUE);

/* The gradient by x, dx, from that of y, dy; with the sizes of the convolution. ConvTranspose is
 * this: its input is dy (out_channels are its input channels), its result dx, its weights are laid
 * out alike. dx = activation(sum + bias + residual); bias has in_channels elements, the residual is
 * like dx. */
void cameo_conv_input_f32(intptr_t dy, intptr_t w, intptr_t dx, CAMEO_CONV_SIZES, CAMEO_EPILOGUE);
void cameo_conv_input_f64(intptr_t dy, intptr_t w, intptr_t dx, CAMEO_CONV_SIZES, CAMEO_EPILOGUE);

/* The gradient by w, dw, from x and dy. (That by the bias is a sum over dy.) */
void cameo_conv_weights_f32(intptr_t x, intptr_t dy, intptr_t dw, CAMEO_CONV_SIZES,
                            intptr_t scratch, intptr_t scratch_bytes);
void cameo_conv_weights_f64(intptr_t x, intptr_t dy, intptr_t dw, CAMEO_CONV_SIZES,
                            intptr_t scratch, intptr_t scratch_bytes);

/* y = (x - zero of x) * (w - zero of w) in i32, modulo 2^32; outside of the image x is its zero
 * point. x_zero is the address of one zero point or 0; that of output channel o lies at w_zero +
 * o * w_zero_step. */
void cameo_conv_i8(intptr_t x, intptr_t w, intptr_t y, CAMEO_CONV_SIZES, intptr_t x_signed,
                   intptr_t w_signed, intptr_t x_zero, intptr_t w_zero, intptr_t w_zero_step,
                   intptr_t scratch, intptr_t scratch_bytes);

#endif
