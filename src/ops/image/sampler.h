/* Reading an image between its pixels: where the neighbours of a place are and how much each
 * counts, as numbers and as a graph of simpler operators. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_IMAGE_SAMPLER_H
#define CM_OPS_IMAGE_SAMPLER_H

#include "graph/op.h"

enum cm_sampling { CM_SAMPLE_NEAREST, CM_SAMPLE_LINEAR, CM_SAMPLE_CUBIC };
enum cm_outside { CM_OUTSIDE_ZEROS, CM_OUTSIDE_BORDER, CM_OUTSIDE_REFLECTION };

struct cm_sampler {
    enum cm_sampling mode;
    enum cm_outside outside;
    bool align_corners; /* reflection happens at the outer pixels' centres, not at their edges */
};

enum { CM_SAMPLER_TAPS = 4 };

/* Neighbours along one axis; index -1: outside, counts as zero. */
struct cm_taps {
    int count;
    int64_t index[CM_SAMPLER_TAPS];
    double weight[CM_SAMPLER_TAPS];
};

/* The pixels around a place of an image with these sizes, one number per axis: where they are
 * (row-major; -1: outside) and how much each counts. There is room for 4 to the power of axes.
 * Returns how many there are. */
int64_t cm_sampler_locate(const struct cm_sampler *sampler, int axes, const double *place,
                          const int64_t *sizes, int64_t *offsets, double *weights);

/* As a graph. image is (N, C, S), the spatial axes flat; places are `axes` values (N, P) in pixels;
 * lengths are scalars of the same float type, and sizes the same as int64. Gives (N, C, P) of the
 * image's type, which must be that of the places unless the mode is nearest. */
cm_value cm_sampler_build(struct cm_builder *build, const struct cm_sampler *sampler,
                          cm_value image, int axes, const cm_value *places, const cm_value *lengths,
                          const cm_value *sizes);

#endif
