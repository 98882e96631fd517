/* Convolutions of codes whose channels are groups of their own: no product, but a sum over the taps
 * for each channel. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_CPU_INT8_DEPTHWISE_H
#define CM_BACKENDS_CPU_INT8_DEPTHWISE_H

#include "backends/cpu/int8_product.h"

/* Bytes of packed weights of these sizes, without the sums of channels; false: too many. */
bool cm_int8_taps_bytes(int64_t taps, int64_t channels, int64_t *out);
/* Packs weights: that of a channel and a tap is at column_stride and tap_stride; of a packing
 * `by_tap`, whose batch is sums and weights. */
void cm_int8_taps_pack(const struct cm_int8_packing *p, const uint8_t *from, void *to);
/* cm_int8_multiply for such weights. */
void cm_int8_taps_sum(const struct cm_int8_block *block, int64_t from, int64_t to);

#endif
