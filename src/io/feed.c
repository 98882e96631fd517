/* Batches in the order of epochs, read ahead by a thread where asked.
 *
 * A ring of slots stands between the reader and the caller: the caller holds one, the reader fills
 * the others. Without a thread the caller fills the next one itself, so both ways give the same. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "base/forks.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/thread.h"
#include "io/dataset_sets.h"
#include "io/shuffle.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SLOTS = 3 };

/* A batch, or the end of an epoch (n is 0), or the failure to read one. */
struct slot {
    struct cm_tensor *tensors;
    int64_t n;
    struct cm_feed_position after;
    enum cm_status status;
    struct cm_error err;
};

struct cm_feed {
    struct cm_feed_options options;
    struct cm_rows *rows; /* with the views of the time the feed was made */
    size_t *row_bytes;
    size_t n_fields;
    int64_t samples;
    struct slot slots[SLOTS];
    size_t n_slots; /* that have memory: all, or one without prefetching */

    /* The reader's, while it runs. */
    struct cm_feed_position reading;
    struct cm_shuffle shuffle;
    uint64_t shuffled_epoch;
    bool is_shuffled;
    int64_t *indices; /* of the batch being read */

    /* The caller's. */
    struct cm_feed_position given;
    bool in_hand; /* slots[first] was given out */
    bool running; /* there is a reader thread */
    pthread_t thread;
    unsigned forks; /* of the process that the thread is in */

    /* Shared, under lock. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t first, filled; /* slots that hold something, the one in hand included */
    bool stop;
};

/* ---- reading ---- */

static int64_t order(struct cm_feed *feed, struct cm_feed_position at)
{
    if (!feed->options.shuffle)
        return at.sample;
    if (!feed->is_shuffled || feed->shuffled_epoch != at.epoch)
        cm_shuffle_init(&feed->shuffle, feed->samples, feed->options.seed, at.epoch);
    feed->is_shuffled = true;
    feed->shuffled_epoch = at.epoch;
    return cm_shuffle_at(&feed->shuffle, at.sample);
}

/* The samples of the next batch, and where it leaves the reader. Returns how many. */
static int64_t plan(struct cm_feed *feed, struct cm_feed_position *at)
{
    const int64_t samples = feed->samples, size = feed->options.batch_size;
    const int64_t left = samples - at->sample;

    if (feed->options.endless) {
        for (int64_t k = 0; k < size; k++) {
            feed->indices[k] = order(feed, *at);
            if (++at->sample == samples)
                *at = (struct cm_feed_position){at->epoch + 1, 0};
        }
        return size;
    }
    if (left == 0 || (feed->options.last == CM_LAST_DROP && left < size)) {
        *at = (struct cm_feed_position){at->epoch + 1, 0};
        return 0;
    }
    const int64_t n = feed->options.last == CM_LAST_WRAP || left > size ? size : left;
    for (int64_t k = 0; k < n; k++) {
        const int64_t position = k < left ? at->sample + k : (k - left) % samples;
        feed->indices[k] = order(feed, (struct cm_feed_position){at->epoch, position});
    }
    at->sample += n < left ? n : left;
    return n;
}

static void read_batch(struct cm_feed *feed, struct slot *slot)
{
    slot->status = CM_OK;
    slot->n = plan(feed, &feed->reading);
    slot->after = feed->reading;
    for (size_t i = 0; i < feed->n_fields; i++) {
        uint8_t *to = slot->tensors[i].data;

        slot->tensors[i].shape.dims[0] = slot->n;
        for (int64_t k = 0; k < slot->n && slot->status == CM_OK; k++)
            slot->status = cm_rows_read(&feed->rows[i], feed->indices[k],
                                        to + (size_t)k * feed->row_bytes[i], &slot->err);
    }
}

static void *reader_main(void *arg)
{
    struct cm_feed *feed = arg;
    bool failed = false;

    pthread_mutex_lock(&feed->lock);
    while (!failed) {
        while (!feed->stop && feed->filled == feed->n_slots)
            pthread_cond_wait(&feed->changed, &feed->lock);
        if (feed->stop)
            break;
        struct slot *slot = &feed->slots[(feed->first + feed->filled) % feed->n_slots];
        pthread_mutex_unlock(&feed->lock);
        read_batch(feed, slot);
        failed = slot->status != CM_OK;
        pthread_mutex_lock(&feed->lock);
        feed->filled++;
        pthread_cond_broadcast(&feed->changed);
    }
    pthread_mutex_unlock(&feed->lock);
    return NULL;
}

/* Where no thread can be had the batches are read by the caller. */
static void start_reader(struct cm_feed *feed)
{
    feed->stop = false;
    feed->forks = cm_forks();
    feed->running = cm_thread_start(&feed->thread, reader_main, feed);
}

/* In a child of fork the thread is not there: what it had read ahead is read again. */
static void forget_lost_reader(struct cm_feed *feed)
{
    if (!feed->running || feed->forks == cm_forks())
        return;
    pthread_mutex_init(&feed->lock, NULL);
    pthread_cond_init(&feed->changed, NULL);
    feed->running = false;
    feed->filled = feed->in_hand ? 1 : 0;
    feed->reading = feed->given;
}

static void stop_reader(struct cm_feed *feed)
{
    forget_lost_reader(feed);
    if (!feed->running)
        return;
    pthread_mutex_lock(&feed->lock);
    feed->stop = true;
    pthread_cond_broadcast(&feed->changed);
    pthread_mutex_unlock(&feed->lock);
    pthread_join(feed->thread, NULL);
    feed->running = false;
}

/* ---- the caller's side ---- */

enum cm_status cm_feed_next(struct cm_feed *feed, const struct cm_tensor **batch, int64_t *n,
                            struct cm_error *err)
{
    struct slot *slot = &feed->slots[feed->first];

    *n = 0;
    forget_lost_reader(feed);
    if (!(feed->in_hand && slot->status != CM_OK)) {
        if (feed->options.prefetch && !feed->running)
            start_reader(feed);
        pthread_mutex_lock(&feed->lock);
        if (feed->in_hand) {
            feed->first = (feed->first + 1) % feed->n_slots;
            feed->filled--;
            pthread_cond_broadcast(&feed->changed);
        }
        slot = &feed->slots[feed->first];
        while (feed->running && feed->filled == 0)
            pthread_cond_wait(&feed->changed, &feed->lock);
        if (!feed->running) {
            read_batch(feed, slot);
            feed->filled = 1;
        }
        pthread_mutex_unlock(&feed->lock);
        feed->in_hand = true;
    }
    if (slot->status != CM_OK)
        return cm_fail(err, slot->status, "%s", slot->err.text);
    *batch = slot->tensors;
    *n = slot->n;
    feed->given = slot->after;
    return CM_OK;
}

struct cm_feed_position cm_feed_position(const struct cm_feed *feed)
{
    return feed->given;
}

enum cm_status cm_feed_seek(struct cm_feed *feed, struct cm_feed_position position,
                            struct cm_error *err)
{
    if (position.sample < 0 || position.sample > feed->samples)
        return cm_fail(err, CM_BAD_ARGUMENT, "there is no sample %lld in a data set of %lld",
                       (long long)position.sample, (long long)feed->samples);
    stop_reader(feed);
    if (feed->options.endless && position.sample == feed->samples)
        position = (struct cm_feed_position){position.epoch + 1, 0};
    feed->reading = feed->given = position;
    feed->first = feed->filled = 0;
    feed->in_hand = false;
    return CM_OK;
}

int64_t cm_feed_batches(const struct cm_feed *feed)
{
    const int64_t size = feed->options.batch_size;
    const bool drop = feed->options.last == CM_LAST_DROP && !feed->options.endless;

    return feed->samples / size + (!drop && feed->samples % size != 0);
}

/* ---- making ---- */

static enum cm_status check_options(const struct cm_dataset *dataset,
                                    const struct cm_feed_options *options, struct cm_error *err)
{
    if (options->batch_size < 1 || options->batch_size > INT32_MAX)
        return cm_fail(err, CM_BAD_ARGUMENT, "the batch size is %lld, expected 1 to %d",
                       (long long)options->batch_size, (int)INT32_MAX);
    if (!options->endless && options->last == CM_LAST_DROP &&
        options->batch_size > dataset->samples)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "a batch of %lld is larger than the data set of %lld samples, and short "
                       "batches are dropped",
                       (long long)options->batch_size, (long long)dataset->samples);
    return CM_OK;
}

static enum cm_status make_tensor(const struct cm_feed *feed, size_t i, int64_t room,
                                  struct cm_tensor *out, struct cm_error *err)
{
    const struct cm_dataset_view *view = &feed->rows[i].view;
    struct cm_shape shape = {view->sample.rank + 1, {room}};
    int64_t count;
    size_t bytes;

    if (shape.rank > CM_MAX_RANK)
        return cm_fail(err, CM_LIMIT, "array '%.*s' has too many dimensions",
                       CM_STR_FMT(feed->rows[i].name));
    memcpy(shape.dims + 1, view->sample.dims, sizeof shape.dims - sizeof shape.dims[0]);
    if (!cm_shape_count(&shape, &count) || !cm_dtype_bytes(view->type, count, &bytes))
        return cm_fail(err, CM_LIMIT, "batches of %lld samples of array '%.*s' are too large",
                       (long long)room, CM_STR_FMT(feed->rows[i].name));
    return cm_tensor_new(view->type, &shape, out, err);
}

/* Around each small sample taken by chance the system would read a lot that is not asked for; with
 * arrays that do not fit in memory that is most of the time. */
static void expect_jumps(const struct cm_rows *rows)
{
    const size_t large = (size_t)1 << 30, small = (size_t)1 << 17;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = ((uintptr_t)rows->data + page - 1) / page * page;
    size_t size;

    if (rows->stride >= small || !cm_size_mul(rows->stride, (size_t)rows->count, &size) ||
        size < large)
        return;
    const uintptr_t end = ((uintptr_t)rows->data + size) / page * page;
    (void)posix_madvise((void *)begin, end - begin, POSIX_MADV_RANDOM); /* no more than a hint */
}

static enum cm_status make_slots(struct cm_feed *feed, const struct cm_dataset *dataset,
                                 struct cm_error *err)
{
    const bool whole = feed->options.endless || feed->options.last == CM_LAST_WRAP;
    const int64_t size = feed->options.batch_size;
    const int64_t room = whole || size < feed->samples ? size : feed->samples;
    const size_t n = feed->n_fields;

    feed->rows = cm_calloc(n, sizeof *feed->rows);
    feed->row_bytes = cm_calloc(n, sizeof *feed->row_bytes);
    feed->indices = cm_calloc((size_t)room, sizeof *feed->indices);
    bool enough = feed->rows && feed->row_bytes && feed->indices;
    for (size_t s = 0; s < feed->n_slots; s++) {
        feed->slots[s].tensors = cm_calloc(n, sizeof *feed->slots[s].tensors);
        enough = enough && feed->slots[s].tensors;
    }
    if (!enough)
        return cm_fail(err, CM_NO_MEMORY, "no memory for batches of %lld samples", (long long)size);
    memcpy(feed->rows, dataset->rows.items, n * sizeof *feed->rows);
    for (size_t i = 0; i < n; i++) {
        for (const struct cm_rows *rows = &feed->rows[i]; rows; rows = rows->next)
            if (feed->options.shuffle && !rows->column_major)
                expect_jumps(rows);
        if (!cm_rows_view_bytes(&feed->rows[i], &feed->row_bytes[i]))
            return cm_fail(err, CM_LIMIT, "samples of array '%.*s' are too large",
                           CM_STR_FMT(feed->rows[i].name));
        for (size_t s = 0; s < feed->n_slots; s++)
            CM_TRY(make_tensor(feed, i, room, &feed->slots[s].tensors[i], err));
    }
    return CM_OK;
}

enum cm_status cm_feed_new(struct cm_dataset *dataset, const struct cm_feed_options *options,
                           struct cm_feed **out, struct cm_error *err)
{
    *out = NULL;
    CM_TRY(check_options(dataset, options, err));
    struct cm_feed *feed = cm_calloc(1, sizeof *feed);
    if (!feed)
        return cm_fail(err, CM_NO_MEMORY, "no memory for a feed");
    if (pthread_mutex_init(&feed->lock, NULL) != 0) {
        cm_free(feed);
        return cm_fail(err, CM_NO_MEMORY, "no memory for a lock");
    }
    if (pthread_cond_init(&feed->changed, NULL) != 0) {
        pthread_mutex_destroy(&feed->lock);
        cm_free(feed);
        return cm_fail(err, CM_NO_MEMORY, "no memory for a lock");
    }
    feed->options = *options;
    feed->n_slots = options->prefetch ? SLOTS : 1;
    feed->n_fields = dataset->rows.count;
    feed->samples = dataset->samples;
    const enum cm_status status = make_slots(feed, dataset, err);
    if (status)
        cm_feed_free(feed);
    else
        *out = feed;
    return status;
}

void cm_feed_free(struct cm_feed *feed)
{
    if (!feed)
        return;
    stop_reader(feed);
    for (size_t s = 0; s < SLOTS; s++) {
        for (size_t i = 0; feed->slots[s].tensors && i < feed->n_fields; i++)
            cm_tensor_drop(&feed->slots[s].tensors[i]);
        cm_free(feed->slots[s].tensors);
    }
    cm_free(feed->rows);
    cm_free(feed->row_bytes);
    cm_free(feed->indices);
    pthread_cond_destroy(&feed->changed);
    pthread_mutex_destroy(&feed->lock);
    cm_free(feed);
}
