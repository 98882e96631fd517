/* Rows of features sent through the trees of a compiled forest.
 *
 * Rows are copied into groups of CM_FOREST_LANES, a column's values of a group side by side, and
 * groups into chunks that stay in the first-level cache. A block of trees that stays in the second
 * one is walked by all chunks, which the threads share, before the next: so every row meets the
 * trees in their order, and gets the same sum however many threads there are. The rows of a group
 * take their steps together: each step waits for two loads, and those of different rows overlap. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/ml/forest_form.h"
#include "base/number.h"
#include "base/parallel.h"

#include <math.h>

enum {
    LANES = CM_FOREST_LANES,
    CHUNK_BYTES = 24 * 1024,      /* of columns: most of a first-level cache */
    SPAN_BYTES = 8 * 1024 * 1024, /* of scratch memory, if one chunk is not larger */
    CHUNK_WALKS = 4096,           /* fewer are not worth another thread */
    BLOCK_WALKS = 32 * 1024,      /* fewer are not worth waiting for all threads */
    CHUNKS = 32,                  /* of a run of many rows, at least: to share among threads */
};

/* ---- how a run is cut up ---- */

static size_t group_bytes(const struct cm_forest *f)
{
    return (f->n_columns + 1) * LANES * (f->single ? sizeof(float) : sizeof(double));
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Sums and marks of a row. */
static size_t row_bytes(const struct cm_forest *f)
{
    return (size_t)f->n_targets * (sizeof(double) + (f->direct ? 0 : sizeof(bool)));
}

struct cm_forest_plan cm_forest_plan(const struct cm_forest *f, int64_t rows)
{
    const bool by_tree = rows < LANES;
    const int64_t unit = by_tree ? 1 : LANES; /* rows of a group */
    const int64_t groups = (rows + unit - 1) / unit;
    const int64_t bytes = (int64_t)(group_bytes(f) + (size_t)unit * row_bytes(f));
    const int64_t enough = CHUNK_WALKS / (unit * (int64_t)(f->n_trees + 1)) + 1;
    const int64_t fitting = clamp(CHUNK_BYTES / (int64_t)group_bytes(f), 1, 64);
    const int64_t most = clamp(SPAN_BYTES / bytes, 1, groups + 1);
    const int64_t wanted = clamp(groups / CHUNKS, enough, fitting > enough ? fitting : enough);
    const int64_t in_chunk = wanted < most ? wanted : most;
    return (struct cm_forest_plan){
        .rows = rows,
        .by_tree = by_tree,
        .chunk = in_chunk * unit,
        .span = clamp(SPAN_BYTES / (in_chunk * bytes), 1, (groups + in_chunk - 1) / in_chunk + 1),
        .chunk_bytes = (size_t)in_chunk * group_bytes(f)};
}

size_t cm_forest_scratch(const struct cm_forest *f, int64_t rows)
{
    const struct cm_forest_plan plan = cm_forest_plan(f, rows);
    size_t columns, sums;
    if (!cm_size_mul((size_t)plan.span, plan.chunk_bytes, &columns) ||
        !cm_size_mul((size_t)(plan.span * plan.chunk), row_bytes(f), &sums) ||
        !cm_size_add(columns, sums, &sums))
        return SIZE_MAX;
    return sums;
}

/* ---- columns and walks ---- */

struct forest_run {
    const struct cm_forest *forest;
    struct cm_forest_plan plan;
    const struct cm_tensor *x;
    int64_t features;
    int64_t first;     /* row of the chunks at hand */
    size_t begin, end; /* trees at hand */
    char *columns;
    double *sums;
    bool *has_score;
    cm_forest_finish_fn *finish;
    void *arg;
};

#define EACH_LANE(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
_Static_assert(LANES == 8, "EACH_LANE is for 8");
#define LANE_BEGIN(l) WORD a##l = at[l];
#define LANE_NEXT(l)                                                                               \
    ((entries[a##l].next & mask) +                                                                 \
     (x[(size_t)(entries[a##l].next >> bits) * LANES + (l)] <= entries[a##l].value ? 0u : 1u))
#define LANE_STEP(l) a##l = LANE_NEXT(l);
#define LANE_STEP_NOTED(l)                                                                         \
    {                                                                                              \
        const WORD next = LANE_NEXT(l);                                                            \
        moved |= next ^ a##l;                                                                      \
        a##l = next;                                                                               \
    }
#define LANE_END(l) at[l] = a##l;

#define FOR(name) name##_f32
#define ENTRY     cm_entry_f32
#define T         float
#define WORD      uint32_t
#include "backends/cpu/ml/forest_walk.inc"
#define FOR(name) name##_f64
#define ENTRY     cm_entry_f64
#define T         double
#define WORD      uint64_t
#include "backends/cpu/ml/forest_walk.inc"

static void load_group(const struct forest_run *r, int64_t row, int64_t step, void *to)
{
    if (r->forest->single)
        load_f32(r, row, step, to);
    else
        load_f64(r, row, step, to);
}

/* Where the walks of a group ended: the weights, or the numbers of the leaves. */
struct landing {
    double weight[LANES];
    uint32_t leaf[LANES];
};

/* roots: the entries at which the lanes begin. */
static void walk_group(const struct cm_forest *f, const void *x, const uint32_t *roots,
                       unsigned least, struct landing *out)
{
    if (f->single) {
        const struct cm_entry_f32 *entries = f->entries;
        uint32_t at[LANES];
        memcpy(at, roots, sizeof at);
        walk_f32(entries, f->bits, x, least, at);
        for (int l = 0; l < LANES && f->direct; l++)
            out->weight[l] = (double)entries[at[l]].value;
        for (int l = 0; l < LANES && !f->direct; l++)
            memcpy(&out->leaf[l], &entries[at[l]].value, sizeof out->leaf[l]);
        return;
    }
    const struct cm_entry_f64 *entries = f->entries;
    uint64_t at[LANES];
    for (int l = 0; l < LANES; l++)
        at[l] = roots[l];
    walk_f64(entries, f->bits, x, least, at);
    for (int l = 0; l < LANES && f->direct; l++)
        out->weight[l] = entries[at[l]].value;
    for (int l = 0; l < LANES && !f->direct; l++)
        memcpy(&out->leaf[l], &entries[at[l]].value, sizeof out->leaf[l]);
}

/* ---- sums ---- */

static double joined(enum cm_tree_join join, double a, double b)
{
    if (join == CM_TREE_MIN)
        return b < a ? b : a;
    return join == CM_TREE_MAX ? (b > a ? b : a) : a + b;
}

/* Adds what a tree gave for a row to its sums. */
static void take_leaf(const struct cm_forest *f, size_t tree, const struct landing *landing,
                      int lane, double *sums, bool *has_score)
{
    if (f->direct) {
        double *sum = &sums[f->targets[tree]];
        *sum = joined(f->join, *sum, landing->weight[lane]);
        return;
    }
    const uint32_t end = f->first[landing->leaf[lane] + 1];
    for (uint32_t i = f->first[landing->leaf[lane]]; i < end; i++) {
        const struct cm_tree_weight *w = &f->weights[i];
        sums[w->target] = joined(f->join, sums[w->target], w->weight);
        has_score[w->target] = true;
    }
}

static void begin_row(const struct cm_forest *f, double *sums, bool *has_score)
{
    const double start = f->join == CM_TREE_MIN   ? (double)INFINITY
                         : f->join == CM_TREE_MAX ? (double)-INFINITY
                                                  : 0;
    for (int32_t t = 0; t < f->n_targets; t++)
        sums[t] = start;
    if (!f->direct)
        memset(has_score, 0, (size_t)f->n_targets);
}

static void end_row(const struct forest_run *r, int64_t row, double *sums, const bool *has_score)
{
    const struct cm_forest *f = r->forest;
    for (int32_t t = 0; t < f->n_targets; t++) {
        if (!has_score[t])
            sums[t] = 0;
        else if (f->join == CM_TREE_AVERAGE)
            sums[t] /= (double)f->n_trees;
    }
    r->finish(r->arg, row, sums, has_score);
}

/* ---- chunks ---- */

/* Rows [first, end) of the tensor, in the lanes of groups; sums and marks are those of `first`. */
static void walk_rows(const struct forest_run *r, int64_t first, int64_t end, const char *columns,
                      double *sums, bool *has_score)
{
    const struct cm_forest *f = r->forest;
    const size_t targets = (size_t)f->n_targets;
    for (size_t tree = r->begin; tree < r->end; tree++) {
        uint32_t roots[LANES];
        for (int l = 0; l < LANES; l++)
            roots[l] = (uint32_t)(1 + tree);
        for (int64_t row = first; row < end; row += LANES) {
            const int lanes = end - row < LANES ? (int)(end - row) : LANES;
            struct landing landing;
            walk_group(f, columns + (size_t)((row - first) / LANES) * group_bytes(f), roots,
                       f->least[tree], &landing);
            for (int l = 0; l < lanes; l++) {
                const size_t at = (size_t)(row - first + l) * targets;
                take_leaf(f, tree, &landing, l, sums + at, f->direct ? NULL : has_score + at);
            }
        }
    }
}

/* One row, LANES trees at a time. */
static void walk_row(const struct forest_run *r, const char *columns, double *sums, bool *has_score)
{
    const struct cm_forest *f = r->forest;
    for (size_t tree = r->begin; tree < r->end; tree += LANES) {
        const int lanes = r->end - tree < LANES ? (int)(r->end - tree) : LANES;
        uint32_t roots[LANES];
        struct landing landing;
        for (int l = 0; l < LANES; l++)
            roots[l] = (uint32_t)(1 + tree) + (uint32_t)(l < lanes ? l : lanes - 1);
        walk_group(f, columns, roots, 0, &landing);
        for (int l = 0; l < lanes; l++)
            take_leaf(f, tree + (size_t)l, &landing, l, sums, has_score);
    }
}

static void walk_chunk(const struct forest_run *r, int64_t chunk)
{
    const struct cm_forest *f = r->forest;
    const int64_t step = r->plan.by_tree ? 0 : 1, unit = r->plan.by_tree ? 1 : LANES;
    const int64_t first = r->first + chunk * r->plan.chunk;
    const int64_t end = first + r->plan.chunk < r->plan.rows ? first + r->plan.chunk : r->plan.rows;
    const size_t targets = (size_t)f->n_targets, place = (size_t)(chunk * r->plan.chunk) * targets;
    const bool starts = r->begin == 0, ends = r->end == f->n_trees;
    char *columns = r->columns + (size_t)chunk * r->plan.chunk_bytes;
    double *sums = r->sums + place;
    bool *has_score = f->direct ? f->has_score : r->has_score + place;
    const size_t stride = f->direct ? 0 : targets; /* of has_score */

    for (int64_t row = first; row < end && starts; row += unit)
        load_group(r, row, step, columns + (size_t)((row - first) / unit) * group_bytes(f));
    for (int64_t row = first; row < end && starts; row++)
        begin_row(f, sums + (size_t)(row - first) * targets,
                  has_score + (size_t)(row - first) * stride);
    if (!r->plan.by_tree)
        walk_rows(r, first, end, columns, sums, has_score);
    for (int64_t i = 0; i < end - first && r->plan.by_tree; i++)
        walk_row(r, columns + (size_t)i * group_bytes(f), sums + (size_t)i * targets,
                 has_score + (size_t)i * stride);
    for (int64_t row = first; row < end && ends; row++)
        end_row(r, row, sums + (size_t)(row - first) * targets,
                has_score + (size_t)(row - first) * stride);
}

static void walk_chunks(void *arg, int64_t begin, int64_t end)
{
    for (int64_t chunk = begin; chunk < end; chunk++)
        walk_chunk(arg, chunk);
}

void cm_forest_run(struct cm_call *call, const struct cm_forest *forest,
                   cm_forest_finish_fn *finish, void *arg)
{
    const struct cm_tensor *x = call->in[0];
    const int rank = x->shape.rank;
    struct forest_run r = {.forest = forest, .x = x, .finish = finish, .arg = arg};
    r.plan = cm_forest_plan(forest, rank > 1 ? x->shape.dims[0] : 1);
    r.features = rank ? x->shape.dims[rank - 1] : 1;
    r.columns = call->scratch;
    r.sums = (double *)(void *)(r.columns + (size_t)r.plan.span * r.plan.chunk_bytes);
    r.has_score =
        (bool *)(r.sums + (size_t)(r.plan.span * r.plan.chunk) * (size_t)forest->n_targets);
    for (; r.first < r.plan.rows; r.first += r.plan.span * r.plan.chunk) {
        const int64_t left = (r.plan.rows - r.first + r.plan.chunk - 1) / r.plan.chunk;
        const int64_t chunks = left < r.plan.span ? left : r.plan.span;
        r.end = 0;
        for (size_t block = 0; block < forest->n_blocks;) {
            r.begin = r.end;
            do
                r.end = forest->ends[block++];
            while (block < forest->n_blocks &&
                   (int64_t)(r.end - r.begin) * chunks * r.plan.chunk < BLOCK_WALKS);
            cm_parallel(chunks, 1, walk_chunks, &r);
        }
    }
}
