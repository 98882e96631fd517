/* Files that grow record by record, and outputs that are not regular files. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "base/file.h"
#include "base/memory.h"
#include "check.h"
#include "folder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static enum cm_status append(struct cm_stream *stream, const char *text, struct cm_error *err)
{
    return cm_stream_append(stream, text, strlen(text), err);
}

/* No file may grow past so many bytes until room() is called. */
static struct rlimit before;
static void (*handler)(int);

static void no_room(rlim_t bytes)
{
    CHECK_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
    handler = signal(SIGXFSZ, SIG_IGN);
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &(struct rlimit){bytes, before.rlim_max}), 0);
}

static void room(void)
{
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
}

void test_stream__the_first_record_replaces_the_old_file(void)
{
    struct cm_error err = {0};
    struct cm_stream stream;
    struct folder folder;
    char path[FOLDER_PATH_SIZE];

    folder_make(&folder);
    folder_write(&folder, "log", "old");
    CHECK_OK(cm_stream_open(&stream, folder_path(&folder, "log", path), 0, &err), &err);
    CHECK(folder_holds(&folder, "log", "old"));
    CHECK_OK(append(&stream, "one\n", &err), &err);
    CHECK(folder_holds(&folder, "log", "one\n"));
    CHECK_OK(append(&stream, "two\n", &err), &err);
    CHECK(folder_holds(&folder, "log", "one\ntwo\n"));
    cm_stream_close(&stream);
    cm_stream_close(&stream);
    CHECK_OK(cm_stream_open(&stream, path, 4, &err), &err);
    CHECK(folder_holds(&folder, "log", "one\n"));
    CHECK_OK(append(&stream, "three\n", &err), &err);
    cm_stream_close(&stream);
    CHECK(folder_holds(&folder, "log", "one\nthree\n"));
    CHECK_INT(folder_count(&folder), 1);
    folder_remove(&folder);
}

void test_stream__a_record_without_room_leaves_whole_ones(void)
{
    struct cm_error err = {0};
    struct cm_stream stream;
    struct folder folder;
    char path[FOLDER_PATH_SIZE];

    folder_make(&folder);
    folder_write(&folder, "log", "old");
    CHECK_OK(cm_stream_open(&stream, folder_path(&folder, "log", path), 0, &err), &err);
    no_room(6);
    const enum cm_status first = append(&stream, "a first record\n", &err);
    room();
    CHECK_FAILS(first, CM_IO, &err, "log': File too large");
    CHECK(folder_holds(&folder, "log", "old"));
    CHECK_INT(folder_count(&folder), 1);
    CHECK_OK(append(&stream, "one\n", &err), &err);
    no_room(6);
    const enum cm_status second = append(&stream, "two\n", &err);
    room();
    CHECK_FAILS(second, CM_IO, &err, "log': File too large");
    CHECK(folder_holds(&folder, "log", "one\n"));
    CHECK_OK(append(&stream, "three\n", &err), &err);
    CHECK(folder_holds(&folder, "log", "one\nthree\n"));
    cm_stream_close(&stream);
    CHECK_INT(folder_count(&folder), 1);
    folder_remove(&folder);
}

void test_stream__a_new_one_does_not_touch_what_is_there(void)
{
    struct cm_error err = {0};
    struct cm_stream stream = {0};
    struct folder folder;
    char path[FOLDER_PATH_SIZE];
    bool exists = false;

    folder_make(&folder);
    folder_write(&folder, "log", "old");
    folder_path(&folder, "log", path);
    CHECK_OK(cm_stream_create(&stream, path, &exists, &err), &err);
    CHECK(exists && folder_holds(&folder, "log", "old"));
    folder_path(&folder, "nowhere/log", path);
    CHECK_FAILS(cm_stream_create(&stream, path, &exists, &err), CM_NOT_FOUND, &err, "its folder");
    CHECK_FAILS(cm_stream_open(&stream, path, 0, &err), CM_NOT_FOUND, &err, "its folder");
    CHECK_FAILS(cm_stream_open(&stream, path, 9, &err), CM_NOT_FOUND, &err, "its folder");
    folder_remove(&folder);
}

void test_stream__each_failing_allocation_is_reported(void)
{
    struct cm_error err = {0};
    struct cm_stream stream;
    struct folder folder;
    char path[FOLDER_PATH_SIZE];
    enum cm_status status = CM_NO_MEMORY;
    uint64_t nth = 0;

    folder_make(&folder);
    folder_path(&folder, "log", path);
    while (status != CM_OK && nth < 20) {
        cm_memory_fail_after(++nth);
        status = cm_stream_open(&stream, path, 0, &err);
        if (status == CM_OK)
            status = append(&stream, "x", &err);
        cm_stream_close(&stream);
        cm_memory_fail_after(0);
        CHECK(status == CM_OK || (status == CM_NO_MEMORY && folder_count(&folder) == 0));
    }
    CHECK_INT(status, CM_OK);
    CHECK(nth > 2);
    folder_remove(&folder);
}

/* Writes through a save and a stream to path, which leads to the writing end of a pipe. */
static void write_both(const char *path, const int ends[2])
{
    struct cm_error err = {0};
    struct cm_stream stream;
    struct cm_save save;
    char got[8] = "";

    CHECK_OK(cm_save_begin_any(&save, path, &err), &err);
    CHECK_OK(cm_save_write(&save, "abc", 3, &err), &err);
    CHECK_OK(cm_save_commit(&save, &err), &err);
    CHECK_OK(cm_stream_open(&stream, path, 0, &err), &err);
    CHECK_OK(append(&stream, "def", &err), &err);
    cm_stream_close(&stream);
    CHECK_INT(read(ends[0], got, sizeof got), 6);
    CHECK(memcmp(got, "abcdef", 6) == 0);
}

void test_save__pipes_and_open_files_are_written_directly(void)
{
    struct cm_error err = {0};
    struct folder folder;
    struct cm_save save;
    char path[FOLDER_PATH_SIZE], number[40];
    int ends[2];

    CHECK_INT(pipe(ends), 0);
    snprintf(number, sizeof number, "/dev/fd/%d", ends[1]);
    write_both(number, ends);
    snprintf(number, sizeof number, "/proc/self/fd/%d", ends[1]);
    write_both(number, ends);
    close(ends[0]);
    close(ends[1]);

    folder_make(&folder);
    CHECK_INT(mkfifo(folder_path(&folder, "pipe", path), 0600), 0);
    ends[0] = open(path, O_RDONLY | O_NONBLOCK);
    write_both(path, ends);
    close(ends[0]);
    CHECK_FAILS(cm_save_begin(&save, path, &err), CM_BAD_ARGUMENT, &err, "not a regular file");
    CHECK_INT(folder_count(&folder), 1);

    CHECK_OK(cm_save_begin_any(&save, "/dev/full", &err), &err);
    CHECK_OK(cm_save_write(&save, "abc", 3, &err), &err);
    CHECK_FAILS(cm_save_commit(&save, &err), CM_IO, &err, "'/dev/full': No space left");
    folder_remove(&folder);
}
