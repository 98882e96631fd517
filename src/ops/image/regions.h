/* Regions of an image: what RoiAlign and MaxRoiPool share with their gradients. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_IMAGE_REGIONS_H
#define CM_OPS_IMAGE_REGIONS_H

#include "graph/op.h"

/* Is there an image of this number among `limit`? */
enum cm_status cm_regions_check_image(struct cm_call *call, int64_t image,
                                      int64_t limit) CM_MUST_CHECK;

/* A pixel, and how much it counts. */
struct cm_peak {
    double value, weight; /* value: the pixel's, times weight */
    int64_t place;        /* element of X; -1: none, the value is no pixel's */
};

/* ---- RoiAlign: cells of a region, in each of which a grid of samples is taken ---- */

struct cm_align {
    bool half_pixel;
    double scale;
    int64_t ratio; /* samples to a cell and axis; 0: as many as there are pixels */
    int64_t cells[2], lengths[2];
};

/* One axis of one region. */
struct cm_extent {
    double start, bin; /* of the first cell, and the size of one */
    int64_t samples;   /* in a cell */
    int64_t length;    /* of the image */
};

/* The two pixels around a sample and the weight of the second. */
struct cm_between {
    int64_t low, high;
    double t;
};

/* All but the mode, for (image, regions, numbers of images). */
enum cm_status cm_align_infer(struct cm_infer *in, enum cm_dtype dtype) CM_MUST_CHECK;
struct cm_align cm_align_of(const struct cm_node *node, const struct cm_shape *image);
struct cm_extent cm_align_extent(const struct cm_align *align, const struct cm_tensor *rois,
                                 int64_t roi, int axis);
/* Samples [from, to) of a cell lie where the image can be read; the others count as zero. */
void cm_extent_inside(const struct cm_extent *e, int64_t cell, int64_t *from, int64_t *to);
/* Of a sample that is inside. */
struct cm_between cm_extent_pixels(const struct cm_extent *e, int64_t cell, int64_t sample);
/* The largest weighted pixel of a cell, in the channel whose pixels start at element plane. */
struct cm_peak cm_align_peak(const struct cm_tensor *x, int64_t plane, const struct cm_extent *h,
                             const struct cm_extent *w, int64_t ph, int64_t pw);
cm_grad_fn cm_align_grad;

/* ---- MaxRoiPool ---- */

typedef void cm_peak_fn(struct cm_call *call, int64_t at, struct cm_peak peak);

enum cm_status cm_pool_regions_infer(struct cm_infer *in, enum cm_dtype dtype) CM_MUST_CHECK;
/* Calls found for each element of the result, in order. */
enum cm_status cm_pool_regions(struct cm_call *call, cm_peak_fn *found) CM_MUST_CHECK;
cm_grad_fn cm_pool_regions_grad;

/* ---- The bodies of the operators that their gradients use ---- */

cm_body_fn cm_align_grad_body, cm_align_maxima_body, cm_pool_maxima_body;

#endif
