/* Function bodies written by us as ONNX text under data/bodies/, embedded by the build. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_BODIES_H
#define CM_GRAPH_BODIES_H

#include <stddef.h>

struct cm_embedded_body {
    const char *name; /* of the file, without its ending: for messages */
    const char *text; /* one function in ONNX's text form */
    size_t size;
};

extern const struct cm_embedded_body cm_embedded_bodies[];
extern const size_t cm_embedded_body_count;

#endif
