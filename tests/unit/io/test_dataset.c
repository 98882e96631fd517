/* Data sets of every format, fine and broken. */
// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "check.h"
#include "io/dataset_case.h"

#define ARRAYS TESTS_DIR "/models/arrays/"

static void check_pair(const char *path)
{
    struct cm_dataset *dataset = dataset_open(path, NULL);
    double x[14], y[7];

    CHECK_INT(cm_dataset_field_count(dataset), 2);
    CHECK_INT(cm_dataset_samples(dataset), 7);
    const int at_x = cm_dataset_find(dataset, CM_STR("x"));
    const int at_y = cm_dataset_find(dataset, CM_STR("y"));
    CHECK(at_x >= 0 && at_y >= 0 && at_x != at_y);
    CHECK_INT(cm_dataset_find(dataset, CM_STR("z")), -1);
    const struct cm_dataset_field *field = cm_dataset_field(dataset, (size_t)at_x);
    CHECK_INT(field->type, CM_FLOAT);
    CHECK(cm_shape_equal(&field->sample, &CM_SHAPE(2)));
    CHECK_INT(cm_dataset_field(dataset, (size_t)at_y)->type, CM_INT64);
    CHECK_INT(cm_dataset_field(dataset, (size_t)at_y)->sample.rank, 0);
    dataset_values(dataset, (size_t)at_x, x, 14);
    dataset_values(dataset, (size_t)at_y, y, 7);
    for (int i = 0; i < 7; i++)
        CHECK(x[2 * i] == i && x[2 * i + 1] == -i && y[i] == 10 * i);
    cm_dataset_close(dataset);
}

void test_dataset__reads_npz_and_safetensors(void)
{
    char path[FOLDER_PATH_SIZE];
    struct folder folder;

    folder_make(&folder);
    check_pair(dataset_pair(&folder, "d.npz", 7, path));
    check_pair(dataset_pair(&folder, "d.safetensors", 7, path));
    folder_remove(&folder);
}

void test_dataset__reads_deflated_npz(void)
{
    struct cm_dataset *dataset;
    struct cm_error err;
    double values[6];

    const enum cm_status status =
        cm_dataset_open(&(const char *){ARRAYS "deflated.npz"}, 1, NULL, &dataset, &err);
    if (status == CM_UNSUPPORTED) { /* without zlib it says so */
        CHECK(strstr(err.text, "zlib is not available"));
        return;
    }
    CHECK_OK(status, &err);
    CHECK_INT(cm_dataset_samples(dataset), 2);
    dataset_values(dataset, 0, values, 6);
    for (int i = 0; i < 6; i++)
        CHECK(values[i] == i);
    cm_dataset_close(dataset);
}

static void copy_file(const struct folder *folder, const char *from, const char *to)
{
    char bytes[4096], path[FOLDER_PATH_SIZE];
    FILE *file = fopen(from, "rb");

    CHECK(file != NULL);
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    dataset_file(folder, to, bytes, size, path);
}

void test_dataset__reads_a_folder_of_npy_sorted_by_name(void)
{
    struct folder folder;
    double values[6];

    folder_make(&folder);
    copy_file(&folder, ARRAYS "i4.npy", "b.npy");
    copy_file(&folder, ARRAYS "columns.npy", "a.npy");
    folder_write(&folder, "README", "not ours");
    folder_write(&folder, ".hidden.npy", "not ours");
    struct cm_dataset *dataset = dataset_open(folder.path, NULL);
    CHECK_INT(cm_dataset_field_count(dataset), 2);
    CHECK_STR(cm_dataset_field(dataset, 0)->name, "a");
    CHECK_STR(cm_dataset_field(dataset, 1)->name, "b");
    dataset_values(dataset, 0, values, 6); /* column-major in the file */
    for (int i = 0; i < 6; i++)
        CHECK(values[i] == i);
    cm_dataset_close(dataset);
    folder_remove(&folder);
}

void test_dataset__reads_column_major_arrays_of_higher_rank(void)
{
    struct cm_dataset *dataset = dataset_open(ARRAYS "cube.npy", NULL);
    double values[24];

    CHECK_STR(cm_dataset_field(dataset, 0)->name, "cube");
    CHECK(cm_shape_equal(&cm_dataset_field(dataset, 0)->sample, &CM_SHAPE(3, 4)));
    dataset_values(dataset, 0, values, 24);
    for (int i = 0; i < 24; i++)
        CHECK(values[i] == i);
    cm_dataset_close(dataset);
}

static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0,  0,
                                 0, 3, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255};
static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 7, 9};

void test_dataset__reads_idx_files_as_a_pair_or_a_folder(void)
{
    char first[FOLDER_PATH_SIZE], second[FOLDER_PATH_SIZE], both[2 * FOLDER_PATH_SIZE];
    struct folder folder;
    double values[12];

    folder_make(&folder);
    dataset_file(&folder, "train-images-idx3-ubyte", images, sizeof images, first);
    dataset_file(&folder, "train-labels-idx1-ubyte", labels, sizeof labels, second);
    snprintf(both, sizeof both, "%s:%s", first, second);
    struct cm_dataset *dataset = dataset_open(both, NULL);
    CHECK_STR(cm_dataset_field(dataset, 0)->name, "x");
    CHECK_STR(cm_dataset_field(dataset, 1)->name, "y");
    CHECK(cm_shape_equal(&cm_dataset_field(dataset, 0)->sample, &CM_SHAPE(2, 3)));
    dataset_values(dataset, 0, values, 12);
    CHECK(values[0] == 0 && values[10] == 10 && values[11] == 255);
    cm_dataset_close(dataset);

    dataset_file(&folder, "t10k-images-idx3-ubyte", "bad", 3, first);
    dataset_file(&folder, "t10k-labels-idx1-ubyte", "bad", 3, first);
    dataset = dataset_open(folder.path, "digit=labels image=images");
    CHECK_INT(cm_dataset_find(dataset, CM_STR("image")), 0);
    dataset_values(dataset, 1, values, 2);
    CHECK(values[0] == 7 && values[1] == 9);
    cm_dataset_close(dataset);
    folder_remove(&folder);
}

void test_dataset__turns_big_endian_idx_numbers(void)
{
    static const uint8_t shorts[] = {0, 0, 0x0b, 2, 0, 0, 0, 2, 0, 0, 0, 1, 0x01, 0x02, 0xff, 0xfe};
    char first[FOLDER_PATH_SIZE], second[FOLDER_PATH_SIZE], both[2 * FOLDER_PATH_SIZE];
    struct folder folder;
    double values[2];

    folder_make(&folder);
    dataset_file(&folder, "a", shorts, sizeof shorts, first);
    dataset_file(&folder, "b", labels, sizeof labels, second);
    snprintf(both, sizeof both, "%s:%s", first, second);
    struct cm_dataset *dataset = dataset_open(both, NULL);
    dataset_values(dataset, 0, values, 2);
    CHECK(values[0] == 258 && values[1] == -2);
    cm_dataset_close(dataset);
    folder_remove(&folder);
}

void test_dataset__gives_fields_as_a_model_wants_them(void)
{
    char first[FOLDER_PATH_SIZE], second[FOLDER_PATH_SIZE], both[2 * FOLDER_PATH_SIZE];
    struct folder folder;
    struct cm_error err;
    double values[12];

    folder_make(&folder);
    dataset_file(&folder, "a", images, sizeof images, first);
    dataset_file(&folder, "b", labels, sizeof labels, second);
    snprintf(both, sizeof both, "%s:%s", first, second);
    struct cm_dataset *dataset = dataset_open(both, NULL);
    struct cm_dataset_view view = {CM_FLOAT, CM_SHAPE(1, 2, 3), 5, 2};
    CHECK_OK(cm_dataset_present(dataset, 0, &view, &err), &err);
    CHECK(cm_shape_equal(&cm_dataset_field(dataset, 0)->sample, &CM_SHAPE(1, 2, 3)));
    dataset_values(dataset, 0, values, 12);
    CHECK(values[0] == -2.5 && values[11] == 125);
    view = (struct cm_dataset_view){.type = CM_INT64};
    CHECK_OK(cm_dataset_present(dataset, 1, &view, &err), &err);
    CHECK_INT(cm_dataset_field(dataset, 1)->type, CM_INT64);
    dataset_values(dataset, 1, values, 2);
    CHECK(values[0] == 7 && values[1] == 9);
    view = (struct cm_dataset_view){CM_FLOAT, CM_SHAPE(7), 0, 0};
    CHECK_FAILS(cm_dataset_present(dataset, 0, &view, &err), CM_BAD_ARGUMENT, &err,
                "array 'x': its samples of shape 2x3 cannot be given as shape 7");
    view = (struct cm_dataset_view){.type = CM_STRING};
    CHECK_FAILS(cm_dataset_present(dataset, 1, &view, &err), CM_BAD_ARGUMENT, &err,
                "array 'y': its uint8 cannot be converted to string");
    cm_dataset_close(dataset);
    folder_remove(&folder);
}

void test_dataset__refuses_numbers_that_a_type_cannot_hold(void)
{
    struct cm_dataset *dataset = dataset_open(ARRAYS "f4.npy", NULL);
    const struct cm_dataset_view view = {CM_INT8, CM_SHAPE(3), 1, 2};
    const struct cm_feed_options options = {.batch_size = 2};
    const struct cm_tensor *batch;
    struct cm_feed *feed;
    struct cm_error err;
    int64_t n;

    CHECK_OK(cm_dataset_present(dataset, 0, &view, &err), &err);
    CHECK_OK(cm_feed_new(dataset, &options, &feed, &err), &err);
    CHECK_FAILS(cm_feed_next(feed, &batch, &n, &err), CM_BAD_MODEL, &err,
                "array 'f4': sample 0 holds -0.5, which int8 cannot hold");
    CHECK_INT(n, 0);
    CHECK_FAILS(cm_feed_next(feed, &batch, &n, &err), CM_BAD_MODEL, &err, "which int8 cannot hold");
    cm_feed_free(feed);
    cm_dataset_close(dataset);
}

void test_dataset__says_what_is_wrong_with_a_file(void)
{
    char path[FOLDER_PATH_SIZE], other[FOLDER_PATH_SIZE], both[2 * FOLDER_PATH_SIZE];
    struct folder folder;

    folder_make(&folder);
    dataset_refused(folder_path(&folder, "none.npz", path), NULL, CM_NOT_FOUND,
                    "none.npz: there is no such file or folder");
    dataset_refused(folder.path, NULL, CM_NOT_FOUND, "the folder has neither .npy nor IDX files");
    dataset_refused(dataset_file(&folder, "d.bin", "1", 1, path), NULL, CM_BAD_ARGUMENT,
                    "a data set is a .npz");
    dataset_refused(dataset_file(&folder, "d.npz", "PK", 2, path), NULL, CM_BAD_MODEL,
                    "it is not a valid zip file");
    dataset_refused(ARRAYS "scalar.npy", NULL, CM_BAD_MODEL, "without an axis of samples");
    dataset_refused(ARRAYS "text.npy", NULL, CM_UNSUPPORTED, "it holds text");
    dataset_refused(ARRAYS "big.npy", NULL, CM_UNSUPPORTED, "big-endian");

    dataset_file(&folder, "images", images, sizeof images - 1, path);
    dataset_file(&folder, "labels", labels, sizeof labels, other);
    snprintf(both, sizeof both, "%s:%s", path, other);
    dataset_refused(both, NULL, CM_BAD_MODEL, "it has 11 bytes of elements, its shape needs 12");
    dataset_file(&folder, "images", "\x1f\x8b\x08", 3, path);
    dataset_refused(both, NULL, CM_UNSUPPORTED, "unpack it with gunzip first");
    snprintf(both, sizeof both, "%s:%s", other, path);
    dataset_refused(both, "x=pixels", CM_BAD_ARGUMENT, "IDX files have images and labels");
    folder_remove(&folder);
}

void test_dataset__arrays_must_have_as_many_samples(void)
{
    struct folder folder;

    folder_make(&folder);
    copy_file(&folder, ARRAYS "i4.npy", "x.npy");
    copy_file(&folder, ARRAYS "bytes.npy", "y.npy");
    dataset_refused(folder.path, NULL, CM_UNSUPPORTED, "array 'y': it holds text");
    static const uint8_t three[] = "\x93NUMPY\x01\x00\x38\x00{'descr': '|u1', 'fortran_order': "
                                   "False, 'shape': (3,)}\n\1\2\3";
    char path[FOLDER_PATH_SIZE];
    dataset_file(&folder, "y.npy", three, sizeof three - 1, path);
    dataset_refused(folder.path, NULL, CM_BAD_MODEL, "array 'x' has 2 samples, array 'y' has 3");
    folder_remove(&folder);
}

void test_oom__a_data_set_and_a_feed(void)
{
    char path[FOLDER_PATH_SIZE];
    struct cm_dataset *dataset;
    struct folder folder;
    struct cm_error err;
    bool done = false;

    folder_make(&folder);
    dataset_pair(&folder, "d.npz", 7, path);
    for (uint64_t n = 1; !done; n++) {
        const struct cm_feed_options options = {.batch_size = 2, .shuffle = true, .prefetch = true};
        const struct cm_tensor *batch;
        struct cm_feed *feed = NULL;
        int64_t got;

        cm_memory_fail_after(n);
        enum cm_status status = cm_dataset_open(&(const char *){path}, 1, NULL, &dataset, &err);
        if (status == CM_OK)
            status = cm_feed_new(dataset, &options, &feed, &err);
        if (status == CM_OK)
            status = cm_feed_next(feed, &batch, &got, &err);
        cm_memory_fail_after(0);
        CHECK(status == CM_OK || status == CM_NO_MEMORY);
        done = status == CM_OK;
        cm_feed_free(feed);
        cm_dataset_close(dataset);
    }
    folder_remove(&folder);
}
