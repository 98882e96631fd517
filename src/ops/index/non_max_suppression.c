/* NonMaxSuppression: of boxes that overlap, the ones with the best scores. */
// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "graph/op.h"

enum { BOXES, SCORES, MOST, IOU, SCORE };

static enum cm_status check_shapes(struct cm_infer *in)
{
    const struct cm_type *boxes = cm_infer_type(in, BOXES), *scores = cm_infer_type(in, SCORES);
    struct cm_dim both;
    if (boxes->rank != CM_RANK_UNKNOWN && boxes->rank != 3)
        return cm_infer_fail(in, "boxes have rank %d, need 3", boxes->rank);
    if (scores->rank != CM_RANK_UNKNOWN && scores->rank != 3)
        return cm_infer_fail(in, "scores have rank %d, need 3", scores->rank);
    if (boxes->rank == 3 && cm_dim_known(boxes->dims[2]) && boxes->dims[2].value != 4)
        return cm_infer_fail(in, "a box has %lld numbers, needs 4",
                             (long long)boxes->dims[2].value);
    if (boxes->rank == 3 && scores->rank == 3 &&
        (!cm_dim_unify(boxes->dims[0], scores->dims[0], &both) ||
         !cm_dim_unify(boxes->dims[1], scores->dims[2], &both)))
        return cm_infer_fail(in, "boxes and scores differ in batch size or in the number of boxes");
    return CM_OK;
}

static enum cm_status nms_infer(struct cm_infer *in)
{
    CM_TRY(check_shapes(in));
    return cm_infer_set_tensor(in, 0, CM_INT64, 2, (const struct cm_dim[]){CM_DIM_ANY, CM_DIM(3)});
}

struct box {
    float x_low, x_high, y_low, y_high;
};

struct candidate {
    float score;
    int64_t index;
};

/* The best first, among equal scores the first box. NaN is worse than all. */
static int compare_candidates(const void *first, const void *second)
{
    const struct candidate *a = first, *b = second;
    const bool a_is = a->score == a->score, b_is = b->score == b->score;
    if (a_is && b_is && a->score != b->score)
        return a->score > b->score ? -1 : 1;
    if (a_is != b_is)
        return a_is ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static struct box read_box(const float *b, bool by_center)
{
    if (by_center) {
        const float w = b[2] / 2, h = b[3] / 2;
        return (struct box){b[0] - w, b[0] + w, b[1] - h, b[1] + h};
    }
    const bool x = b[1] < b[3], y = b[0] < b[2]; /* any two opposite corners */
    return (struct box){x ? b[1] : b[3], x ? b[3] : b[1], y ? b[0] : b[2], y ? b[2] : b[0]};
}

static float area(const struct box *b)
{
    return (b->x_high - b->x_low) * (b->y_high - b->y_low);
}

static bool overlap(const struct box *a, const struct box *b, float threshold)
{
    const struct box common = {
        a->x_low > b->x_low ? a->x_low : b->x_low, a->x_high < b->x_high ? a->x_high : b->x_high,
        a->y_low > b->y_low ? a->y_low : b->y_low, a->y_high < b->y_high ? a->y_high : b->y_high};
    if (!(common.x_high > common.x_low) || !(common.y_high > common.y_low))
        return false;
    const float inside = area(&common), all = area(a) + area(b) - inside;
    return area(a) > 0 && area(b) > 0 && all > 0 && inside / all > threshold;
}

/* Numbers that steer it, and room for one class of one sample. */
struct nms {
    int64_t most;
    float iou, least;
    bool has_least, by_center;
    struct candidate *candidates;
    struct box *chosen;
    int64_t *results; /* triples */
    size_t n_results, capacity;
};

static enum cm_status begin(struct cm_call *call, int64_t n, struct nms *nms)
{
    int64_t limit = 0;
    double iou = 0, least = 0;
    CM_TRY(cm_call_int(call, MOST, &limit));
    CM_TRY(cm_call_real(call, IOU, &iou));
    CM_TRY(cm_call_real(call, SCORE, &least));
    nms->most = limit < 0 ? 0 : limit < n ? limit : n;
    nms->iou = (float)iou;
    nms->least = (float)least;
    nms->has_least = SCORE < call->n_in && call->in[SCORE];
    nms->by_center = cm_node_int(call->node, "center_point_box") != 0;
    nms->candidates = cm_calloc((size_t)n + 1, sizeof *nms->candidates);
    nms->chosen = cm_calloc((size_t)nms->most + 1, sizeof *nms->chosen);
    if (!nms->candidates || !nms->chosen)
        return cm_call_fail(call, CM_NO_MEMORY, "no memory for %lld boxes", (long long)n);
    return CM_OK;
}

static enum cm_status keep(struct cm_call *call, struct nms *nms, int64_t sample, int64_t class,
                           int64_t box)
{
    if (nms->n_results == nms->capacity) {
        const size_t capacity = nms->capacity ? 2 * nms->capacity : 64;
        int64_t *more = cm_realloc(nms->results, capacity * 3 * sizeof *more);
        if (!more)
            return cm_call_fail(call, CM_NO_MEMORY, "no memory for %zu results", capacity);
        nms->results = more;
        nms->capacity = capacity;
    }
    int64_t *triple = nms->results + 3 * nms->n_results++;
    triple[0] = sample;
    triple[1] = class;
    triple[2] = box;
    return CM_OK;
}

static enum cm_status choose(struct cm_call *call, struct nms *nms, int64_t sample, int64_t class)
{
    const struct cm_tensor *scores = call->in[SCORES];
    const int64_t n = scores->shape.dims[2], classes = scores->shape.dims[1];
    const float *boxes = (const float *)call->in[BOXES]->data + sample * n * 4;
    const float *score = (const float *)scores->data + (sample * classes + class) * n;
    int64_t count = 0, chosen = 0;
    for (int64_t i = 0; i < n; i++)
        if (!nms->has_least || score[i] > nms->least)
            nms->candidates[count++] = (struct candidate){score[i], i};
    qsort(nms->candidates, (size_t)count, sizeof *nms->candidates, compare_candidates);
    for (int64_t i = 0; i < count && chosen < nms->most; i++) {
        const struct box box = read_box(boxes + nms->candidates[i].index * 4, nms->by_center);
        bool alone = true;
        for (int64_t k = 0; k < chosen && alone; k++)
            alone = !overlap(&box, &nms->chosen[k], nms->iou);
        if (!alone)
            continue;
        nms->chosen[chosen++] = box;
        CM_TRY(keep(call, nms, sample, class, nms->candidates[i].index));
    }
    return CM_OK;
}

static enum cm_status nms_run(struct cm_call *call)
{
    const struct cm_shape *boxes = &call->in[BOXES]->shape, *scores = &call->in[SCORES]->shape;
    struct nms nms = {0};
    if (boxes->rank != 3 || scores->rank != 3 || boxes->dims[2] != 4 ||
        boxes->dims[0] != scores->dims[0] || boxes->dims[1] != scores->dims[2])
        return cm_call_fail(call, CM_BAD_ARGUMENT, "the shapes of boxes and scores do not match");
    enum cm_status status = begin(call, boxes->dims[1], &nms);
    const int64_t samples = nms.most > 0 ? boxes->dims[0] : 0;
    for (int64_t s = 0; s < samples && !status; s++)
        for (int64_t c = 0; c < scores->dims[1] && !status; c++)
            status = choose(call, &nms, s, c);
    if (!status)
        status = cm_call_allocate(call, 0, CM_INT64, &CM_SHAPE((int64_t)nms.n_results, 3));
    if (!status && nms.n_results)
        memcpy(call->out_datum[0]->tensor.data, nms.results,
               3 * nms.n_results * sizeof *nms.results);
    cm_free(nms.candidates);
    cm_free(nms.chosen);
    cm_free(nms.results);
    return status;
}

CM_OP(NonMaxSuppression, .infer = nms_infer, .run = nms_run, .grad = cm_grad_none,
      .effects = CM_OUTPUT_SIZE_AT_RUN);
