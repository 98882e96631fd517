/* Event files of TensorBoard: bytes as its protocol says, names that sort, refusals. */
// SPDX-License-Identifier: Apache-2.0
#include "io/events.h"

#include "base/crc32c.h"
#include "base/file.h"
#include "base/folder.h"
#include "check.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>

static struct cm_event_place at(const char *tag, int64_t step)
{
    return (struct cm_event_place){cm_str(tag), step, 1.5};
}

static uint32_t unmasked(const uint8_t *bytes)
{
    uint32_t sum;

    memcpy(&sum, bytes, sizeof sum);
    sum -= UINT32_C(0xa282ead8);
    return sum >> 17 | sum << 15;
}

/* The message of the record at *from, which is moved behind it; check sums hold. */
static struct cm_str next(struct cm_mapping file, size_t *from)
{
    const uint8_t *record = file.data + *from;
    uint64_t size;

    CHECK(*from + 16 <= file.size);
    memcpy(&size, record, sizeof size);
    CHECK(*from + 16 + size <= file.size);
    CHECK_INT(unmasked(record + 8), cm_crc32c(0, record, 8));
    CHECK_INT(unmasked(record + 12 + size), cm_crc32c(0, record + 12, (size_t)size));
    *from += 16 + (size_t)size;
    return (struct cm_str){(const char *)record + 12, (size_t)size};
}

static void check_message(struct cm_str message, const void *bytes, size_t size)
{
    CHECK_INT(message.size, size);
    CHECK(memcmp(message.data, bytes, size) == 0);
}

void test_events__bytes_are_those_of_the_protocol(void)
{
    struct folder folder;
    struct cm_error err = {0};
    struct cm_events *events;
    struct cm_mapping file;
    char path[FOLDER_PATH_SIZE];
    size_t from = 0;

    folder_make(&folder);
    CHECK_OK(cm_events_new(folder_path(&folder, "a/b", path), &events, &err), &err);
    CHECK_OK(cm_events_restart(events, 300, 1.5, &err), &err);
    CHECK_FAILS(cm_events_restart(events, -1, 1.5, &err), CM_BAD_ARGUMENT, &err, "step -1");
    const struct cm_event_place loss = at("train/loss", 7), note = at("t", 0);
    CHECK_OK(cm_events_scalar(events, &loss, 0.25, &err), &err);
    CHECK_OK(cm_events_text(events, &note, CM_STR("hi"), &err), &err);
    CHECK_OK(cm_file_map(cm_events_path(events), false, &file, &err), &err);

    const struct cm_str version = next(file, &from);
    CHECK_INT(version.size, 9 + 2 + 13); /* wall time, then field 3 */
    CHECK(memcmp(version.data + 9,
                 "\x1a\x0d"
                 "brain.Event:2",
                 15) == 0);
#define TIME "\x09\0\0\0\0\0\0\xf8\x3f" /* 1.5 */
    static const char restart[] = TIME "\x10\xac\x02\x3a\x02\x08\x01";
    check_message(next(file, &from), restart, sizeof restart - 1);
    static const char scalar[] = TIME "\x10\x07\x2a\x13\x0a\x11\x0a\x0a"
                                      "train/loss\x15\0\0\x80\x3e";
    check_message(next(file, &from), scalar, sizeof scalar - 1);
    static const char text[] = TIME "\x2a\x1b\x0a\x19\x0a\x01t"
                                    "\x42\x08\x08\x07\x12\0\x42\x02hi"
                                    "\x4a\x0a\x0a\x06\x0a\x04text\x20\x02";
    check_message(next(file, &from), text, sizeof text - 1);
    CHECK_INT(from, file.size);
    cm_mapping_release(&file);
    cm_events_free(events);
    folder_remove(&folder);
}

void test_events__a_later_file_sorts_behind(void)
{
    struct folder folder;
    struct cm_error err = {0};
    struct cm_events *events[3];

    folder_make(&folder);
    for (int i = 0; i < 3; i++)
        CHECK_OK(cm_events_new(folder.path, &events[i], &err), &err);
    CHECK(strstr(cm_events_path(events[0]), "events.out.tfevents.") != NULL);
    CHECK(strcmp(cm_events_path(events[0]), cm_events_path(events[1])) < 0);
    CHECK(strcmp(cm_events_path(events[1]), cm_events_path(events[2])) < 0);
    for (int i = 0; i < 3; i++)
        cm_events_free(events[i]);
    folder_remove(&folder);
}

void test_events__refuses_what_readers_cannot_take(void)
{
    struct folder folder;
    struct cm_error err = {0};
    struct cm_events *events;

    folder_make(&folder);
    CHECK_OK(cm_events_new(folder.path, &events, &err), &err);
    const struct cm_event_place none = at("", 1), bytes = at("\xff", 1), before = at("x", -1),
                                good = at("x", 1);
    CHECK_FAILS(cm_events_scalar(events, &none, 1, &err), CM_BAD_ARGUMENT, &err, "tag");
    CHECK_FAILS(cm_events_scalar(events, &bytes, 1, &err), CM_BAD_ARGUMENT, &err, "UTF-8");
    CHECK_FAILS(cm_events_scalar(events, &before, 1, &err), CM_BAD_ARGUMENT, &err, "step -1");
    CHECK_FAILS(cm_events_text(events, &good, CM_STR("\xff"), &err), CM_BAD_ARGUMENT, &err,
                "UTF-8");
    struct cm_events *second;
    CHECK_FAILS(cm_events_new(cm_events_path(events), &second, &err), CM_IO, &err,
                "Not a directory");
    CHECK_FAILS(cm_events_new("", &second, &err), CM_BAD_ARGUMENT, &err, "folder");
    cm_events_free(events);
    folder_remove(&folder);
}

/* A disk that is full in the middle of a record leaves the records before it. */
void test_events__a_failed_write_leaves_whole_records(void)
{
    struct folder folder;
    struct cm_error err = {0};
    struct cm_events *events;
    struct rlimit before;
    struct cm_mapping file;
    size_t from = 0;

    folder_make(&folder);
    CHECK_OK(cm_events_new(folder.path, &events, &err), &err);
    CHECK_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit limit = {100, before.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
    const struct cm_event_place loss = at("train/loss", 7);
    const enum cm_status first = cm_events_scalar(events, &loss, 1, &err);
    const enum cm_status second = cm_events_scalar(events, &loss, 2, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    CHECK_INT(first, CM_OK);
    CHECK_INT(second, CM_IO);
    CHECK_OK(cm_events_scalar(events, &loss, 3, &err), &err); /* there is room again */
    CHECK_OK(cm_file_map(cm_events_path(events), false, &file, &err), &err);
    next(file, &from);
    next(file, &from);
    const struct cm_str last = next(file, &from);
    const float three = 3;
    CHECK(memcmp(last.data + last.size - 4, &three, 4) == 0);
    CHECK_INT(from, file.size);
    cm_mapping_release(&file);
    cm_events_free(events);
    folder_remove(&folder);
}
