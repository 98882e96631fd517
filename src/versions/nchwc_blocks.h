/* In files that ONNX Runtime saved with all of its optimizations, weights of convolutions are
 * stored in blocks of 8 or 16 channels, by the processor that saved the file (domain
 * com.microsoft.nchwc). The file does not state the block size. This module derives it from the
 * file: channel counts that are no multiple of 16 mean blocks of 8, and padding by 8 or more
 * channels means blocks of 16. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_VERSIONS_NCHWC_BLOCKS_H
#define CM_VERSIONS_NCHWC_BLOCKS_H

#include "graph/graph.h"

struct cm_channel_blocks {
    bool is_used;    /* the model has such nodes */
    bool is_known;   /* the file tells the size; otherwise it is what ONNX Runtime takes here */
    bool is_at_odds; /* parts of the file tell different sizes */
    int64_t size;    /* 8 or 16 */
};

extern const char cm_nchwc_domain[];

/* scratch is free for reuse on return. */
struct cm_channel_blocks cm_channel_blocks_find(struct cm_arena *scratch,
                                                const struct cm_model_proto *model);

#endif
