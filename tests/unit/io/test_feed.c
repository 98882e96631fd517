/* Batches: their order, their ends, going on from a position, reading ahead. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "io/dataset_case.h"
#include "io/shuffle.h"

/* What a test looks at: the samples of each batch, told by y. */
struct taken {
    int64_t n[400];
    int64_t samples[400][64];
    struct cm_feed_position after[400];
};

static struct folder folder;
static struct cm_dataset *dataset;

static void open_set(int64_t samples)
{
    char path[FOLDER_PATH_SIZE];

    folder_make(&folder);
    dataset = dataset_open(dataset_pair(&folder, "d.npz", samples, path), NULL);
}

static void close_set(void)
{
    cm_dataset_close(dataset);
    folder_remove(&folder);
}

static struct cm_feed *feed_of(const struct cm_feed_options *options)
{
    struct cm_feed *feed;
    struct cm_error err;

    CHECK_OK(cm_feed_new(dataset, options, &feed, &err), &err);
    return feed;
}

static void take_one(struct cm_feed *feed, struct taken *taken, int i)
{
    const struct cm_tensor *batch;
    struct cm_error err;

    CHECK_OK(cm_feed_next(feed, &batch, &taken->n[i], &err), &err);
    CHECK(taken->n[i] <= 64);
    taken->after[i] = cm_feed_position(feed);
    for (int64_t k = 0; k < taken->n[i]; k++) {
        const float *x = batch[0].data;
        const int64_t *y = batch[1].data;

        CHECK_INT(batch[0].shape.dims[0], taken->n[i]);
        CHECK_INT(batch[0].shape.dims[1], 2);
        CHECK_INT(batch[1].shape.dims[0], taken->n[i]);
        taken->samples[i][k] = y[k] / 10;
        CHECK(x[2 * k] == (float)taken->samples[i][k] && x[2 * k + 1] == -x[2 * k]);
    }
}

static void take(struct cm_feed *feed, struct taken *taken, int count)
{
    for (int i = 0; i < count; i++)
        take_one(feed, taken, i);
}

static void check_same(const struct taken *a, int from, const struct taken *b, int count)
{
    for (int i = 0; i < count; i++) {
        CHECK_INT(a->n[from + i], b->n[i]);
        CHECK_INT(a->after[from + i].epoch, b->after[i].epoch);
        CHECK_INT(a->after[from + i].sample, b->after[i].sample);
        for (int64_t k = 0; k < b->n[i]; k++)
            CHECK_INT(a->samples[from + i][k], b->samples[i][k]);
    }
}

static struct taken first, second;

void test_feed__gives_samples_in_order_and_then_an_end(void)
{
    const struct cm_feed_options options = {.batch_size = 3};

    open_set(7);
    struct cm_feed *feed = feed_of(&options);
    CHECK_INT(cm_feed_batches(feed), 3);
    take(feed, &first, 5);
    CHECK_INT(first.n[0], 3);
    CHECK_INT(first.n[2], 1);
    CHECK_INT(first.samples[2][0], 6);
    CHECK_INT(first.after[2].epoch, 0);
    CHECK_INT(first.after[2].sample, 7);
    CHECK_INT(first.n[3], 0);
    CHECK_INT(first.after[3].epoch, 1);
    CHECK_INT(first.after[3].sample, 0);
    CHECK_INT(first.samples[4][0], 0);
    cm_feed_free(feed);
    close_set();
}

void test_feed__drops_or_fills_the_last_batch(void)
{
    struct cm_feed_options options = {.batch_size = 3, .last = CM_LAST_DROP};

    open_set(7);
    struct cm_feed *feed = feed_of(&options);
    CHECK_INT(cm_feed_batches(feed), 2);
    take(feed, &first, 4);
    CHECK_INT(first.n[1], 3);
    CHECK_INT(first.n[2], 0);
    CHECK_INT(first.samples[3][0], 0);
    cm_feed_free(feed);

    options.last = CM_LAST_WRAP;
    feed = feed_of(&options);
    CHECK_INT(cm_feed_batches(feed), 3);
    take(feed, &first, 5);
    CHECK_INT(first.n[2], 3);
    CHECK_INT(first.samples[2][0], 6);
    CHECK_INT(first.samples[2][1], 0);
    CHECK_INT(first.samples[2][2], 1);
    CHECK_INT(first.n[3], 0);
    CHECK_INT(first.samples[4][0], 0);
    cm_feed_free(feed);
    close_set();
}

void test_feed__endless_batches_wrap_around(void)
{
    struct cm_feed_options options = {.batch_size = 16, .endless = true};

    open_set(50);
    for (int prefetch = 0; prefetch < 2; prefetch++) {
        options.prefetch = prefetch;
        struct cm_feed *feed = feed_of(&options);
        take(feed, &first, 40);
        for (int i = 0; i < 40; i++) {
            CHECK_INT(first.n[i], 16);
            for (int k = 0; k < 16; k++)
                CHECK_INT(first.samples[i][k], (i * 16 + k) % 50);
            CHECK_INT(first.after[i].epoch, (i + 1) * 16 / 50);
            CHECK_INT(first.after[i].sample, (i + 1) * 16 % 50);
        }
        cm_feed_free(feed);
    }
    close_set();
}

void test_feed__a_batch_may_be_larger_than_the_data(void)
{
    struct cm_feed_options options = {.batch_size = 16, .endless = true};
    struct cm_error err;

    open_set(5);
    struct cm_feed *feed = feed_of(&options);
    take(feed, &first, 3);
    for (int k = 0; k < 48; k++)
        CHECK_INT(first.samples[k / 16][k % 16], k % 5);
    cm_feed_free(feed);
    options = (struct cm_feed_options){.batch_size = 16, .last = CM_LAST_WRAP};
    feed = feed_of(&options);
    take(feed, &first, 2);
    CHECK_INT(first.n[0], 16);
    CHECK_INT(first.samples[0][15], 0);
    CHECK_INT(first.n[1], 0);
    cm_feed_free(feed);
    options.last = CM_LAST_SHORT;
    feed = feed_of(&options);
    take(feed, &first, 2);
    CHECK_INT(first.n[0], 5);
    CHECK_INT(first.n[1], 0);
    cm_feed_free(feed);
    options.last = CM_LAST_DROP;
    CHECK_FAILS(cm_feed_new(dataset, &options, &feed, &err), CM_BAD_ARGUMENT, &err,
                "a batch of 16 is larger than the data set of 5 samples");
    options.batch_size = 0;
    CHECK_FAILS(cm_feed_new(dataset, &options, &feed, &err), CM_BAD_ARGUMENT, &err,
                "the batch size is 0, expected 1 to 2147483647");
    options = (struct cm_feed_options){.batch_size = INT64_MAX, .endless = true};
    CHECK(cm_feed_new(dataset, &options, &feed, &err) != CM_OK);
    close_set();
}

void test_feed__shuffled_epochs_hold_every_sample_once(void)
{
    const struct cm_feed_options options = {.batch_size = 10, .shuffle = true, .seed = 7};
    int moved = 0, differ = 0;

    open_set(97);
    struct cm_feed *feed = feed_of(&options);
    take(feed, &first, 22);
    for (int epoch = 0; epoch < 2; epoch++) {
        bool seen[97] = {false};

        for (int i = 0; i < 97; i++) {
            const int64_t sample = first.samples[epoch * 11 + i / 10][i % 10];
            CHECK(sample >= 0 && sample < 97 && !seen[sample]);
            seen[sample] = true;
            moved += sample != i;
            differ += sample != first.samples[i / 10][i % 10];
        }
        CHECK_INT(first.n[epoch * 11 + 10], 0);
    }
    CHECK(moved > 150 && differ > 80);
    cm_feed_free(feed);
    close_set();
}

/* From every position on, the same batches follow; whether a thread reads ahead or not, whatever
 * happens to the last batch. */
void test_feed__goes_on_from_any_position(void)
{
    open_set(23);
    for (int kind = 0; kind < 16; kind++) {
        const struct cm_feed_options options = {.batch_size = 4,
                                                .shuffle = kind & 1,
                                                .seed = 99,
                                                .endless = kind / 4 == 3,
                                                .last = (enum cm_last_batch)(kind / 4 % 3),
                                                .prefetch = kind & 2};
        struct cm_error err;

        struct cm_feed *feed = feed_of(&options);
        take(feed, &first, 30);
        for (int from = 0; from < 20; from += 3) {
            struct cm_feed *other = feed_of(&options);
            CHECK_OK(cm_feed_seek(other, first.after[from], &err), &err);
            take(other, &second, 9);
            check_same(&first, from + 1, &second, 9);
            CHECK_OK(cm_feed_seek(other, first.after[2], &err), &err); /* and back again */
            CHECK_INT(cm_feed_position(other).sample, first.after[2].sample);
            take(other, &second, 3);
            check_same(&first, 3, &second, 3);
            cm_feed_free(other);
        }
        CHECK_FAILS(cm_feed_seek(feed, (struct cm_feed_position){0, 24}, &err), CM_BAD_ARGUMENT,
                    &err, "there is no sample 24");
        cm_feed_free(feed);
    }
    close_set();
}

void test_feed__reading_ahead_changes_nothing(void)
{
    struct cm_feed_options options = {.batch_size = 7, .shuffle = true, .seed = 3};

    open_set(100);
    struct cm_feed *feed = feed_of(&options);
    take(feed, &first, 300);
    cm_feed_free(feed);
    options.prefetch = true;
    feed = feed_of(&options);
    take(feed, &second, 300);
    check_same(&first, 0, &second, 300);
    cm_feed_free(feed);
    feed = feed_of(&options); /* freed while the thread still reads */
    take(feed, &second, 1);
    cm_feed_free(feed);
    feed = feed_of(&options);
    cm_feed_free(feed);
    close_set();
}

void test_feed__several_read_one_set(void)
{
    const struct cm_feed_options options = {
        .batch_size = 7, .shuffle = true, .seed = 3, .prefetch = true};

    open_set(100);
    struct cm_feed *one = feed_of(&options), *other = feed_of(&options);
    for (int i = 0; i < 40; i++) {
        take_one(one, &first, i);
        take_one(other, &second, i);
    }
    check_same(&first, 0, &second, 40);
    cm_feed_free(one);
    cm_feed_free(other);
    close_set();
}

void test_shuffle__is_a_permutation_for_every_count(void)
{
    static bool seen[5000];

    for (int64_t count = 1; count < 5000; count = count < 70 ? count + 1 : count * 2 + 1) {
        struct cm_shuffle shuffle;

        cm_shuffle_init(&shuffle, count, 5, 11);
        memset(seen, 0, sizeof seen);
        for (int64_t i = 0; i < count; i++) {
            const int64_t at = cm_shuffle_at(&shuffle, i);
            CHECK(at >= 0 && at < count && !seen[at]);
            seen[at] = true;
        }
    }
    struct cm_shuffle large;
    cm_shuffle_init(&large, INT64_MAX, 1, 2);
    for (int64_t i = 0; i < 1000; i++)
        CHECK(cm_shuffle_at(&large, INT64_MAX - 1 - i) >= 0);
}

/* Where a sample lands must not depend on where it was: chi-squared over 64 cells, 63 degrees of
 * freedom, whose mean is 63 and standard deviation 11. */
void test_shuffle__spreads_every_place_evenly(void)
{
    static int cells[8][8];
    double chi = 0;

    for (uint64_t epoch = 0; epoch < 6400; epoch++) {
        struct cm_shuffle shuffle;

        cm_shuffle_init(&shuffle, 8, 42, epoch);
        for (int64_t i = 0; i < 8; i++)
            cells[i][cm_shuffle_at(&shuffle, i)]++;
    }
    for (int i = 0; i < 64; i++)
        chi += (cells[i / 8][i % 8] - 800.0) * (cells[i / 8][i % 8] - 800.0) / 800.0;
    CHECK(chi < 130);
}
