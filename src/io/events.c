/* TensorBoard's event files. A message is encoded from its last byte to its first: what stands
 * before nested fields is their length, which is then known. Numbers of fields are those of
 * tensorboard/compat/proto/{event,summary,tensor,tensor_shape}.proto. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "io/events.h"

#include "base/crc32c.h"
#include "base/file.h"
#include "base/memory.h"
#include "onnx/wire.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BEGINNING "events.out.tfevents."

enum {
    FRAME_BEFORE = 12, /* of a record: length and its check sum */
    FRAME_AFTER = 4,   /* check sum of the message */
    FIELDS_ROOM = 256, /* all that a message holds beside texts */
    TEXT_LIMIT = 1 << 28
};

struct cm_events {
    pthread_mutex_t lock;
    struct cm_stream file;
    char path[4096];
};

/* ---- encoding ---- */

/* A record on its way: bytes from at to the end are written. */
struct record {
    uint8_t *memory, *at, *end;
};

static void put(struct record *r, const void *bytes, size_t size)
{
    r->at -= size;
    if (size)
        memcpy(r->at, bytes, size);
}

static void put_fixed(struct record *r, uint64_t number, size_t size)
{
    while (size-- > 0) /* little endian, the last byte first */
        *--r->at = (uint8_t)(number >> (8 * size));
}

static void put_varint(struct record *r, uint64_t number)
{
    uint8_t bytes[10];

    put(r, bytes, cm_varint_put(bytes, number));
}

static void put_key(struct record *r, unsigned field, enum cm_wire_type type)
{
    put_varint(r, (uint64_t)field << 3 | (unsigned)type);
}

static void put_number(struct record *r, unsigned field, uint64_t number)
{
    put_varint(r, number);
    put_key(r, field, CM_WIRE_VARINT);
}

static void put_double(struct record *r, unsigned field, double number)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof bits);
    put_fixed(r, bits, sizeof bits);
    put_key(r, field, CM_WIRE_FIXED64);
}

static void put_float(struct record *r, unsigned field, float number)
{
    uint32_t bits;

    memcpy(&bits, &number, sizeof bits);
    put_fixed(r, bits, sizeof bits);
    put_key(r, field, CM_WIRE_FIXED32);
}

static void put_text(struct record *r, unsigned field, struct cm_str text)
{
    put(r, text.data, text.size);
    put_varint(r, text.size);
    put_key(r, field, CM_WIRE_BYTES);
}

/* What was written since the end was at `end` becomes the content of a field. */
static void wrap(struct record *r, unsigned field, const uint8_t *end)
{
    put_varint(r, (uint64_t)(end - r->at));
    put_key(r, field, CM_WIRE_BYTES);
}

/* ---- writing ---- */

static enum cm_status begin(struct record *r, size_t texts, struct cm_error *err)
{
    const size_t room = FIELDS_ROOM + texts + FRAME_BEFORE + FRAME_AFTER;

    r->memory = cm_malloc(room);
    if (!r->memory)
        return cm_fail(err, CM_NO_MEMORY, "no memory for an event of %zu bytes", room);
    r->end = r->memory + room - FRAME_AFTER;
    r->at = r->end;
    return CM_OK;
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_REALTIME, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* The Event's own fields before what r holds of it, then the record. Frees r. */
static enum cm_status finish(struct cm_events *events, struct record *r, int64_t step, double time,
                             struct cm_error *err)
{
    if (step)
        put_number(r, 2, (uint64_t)step);
    put_double(r, 1, time > 0 ? time : now());

    const size_t size = (size_t)(r->end - r->at);
    const uint32_t sum = cm_crc32c_masked(cm_crc32c(0, r->at, size));
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)((uint64_t)size >> (8 * i));
    for (int i = 0; i < FRAME_AFTER; i++)
        r->end[i] = (uint8_t)(sum >> (8 * i));
    put_fixed(r, cm_crc32c_masked(cm_crc32c(0, length, sizeof length)), 4);
    put(r, length, sizeof length);
    pthread_mutex_lock(&events->lock);
    const enum cm_status status =
        cm_stream_append(&events->file, r->at, size + FRAME_BEFORE + FRAME_AFTER, err);
    pthread_mutex_unlock(&events->lock);
    cm_free(r->memory);
    return status;
}

enum cm_status cm_events_restart(struct cm_events *events, int64_t step, double time,
                                 struct cm_error *err)
{
    struct record r = {0};

    if (step < 0)
        return cm_fail(err, CM_BAD_ARGUMENT, "step %" PRId64 " is negative", step);
    CM_TRY(begin(&r, 0, err));
    put_number(&r, 1, 1); /* SessionLog: START */
    wrap(&r, 7, r.end);
    return finish(events, &r, step, time, err);
}

static enum cm_status check_place(const struct cm_event_place *place, struct cm_error *err)
{
    if (!place->tag.size || !cm_str_is_utf8(place->tag) || place->tag.size > TEXT_LIMIT)
        return cm_fail(err, CM_BAD_ARGUMENT, "the tag '%.*s' is not a name in UTF-8",
                       CM_STR_FMT(place->tag));
    if (place->step < 0)
        return cm_fail(err, CM_BAD_ARGUMENT, "step %" PRId64 " of '%.*s' is negative", place->step,
                       CM_STR_FMT(place->tag));
    return CM_OK;
}

/* The value whose content r holds, as the only one of a summary. */
static enum cm_status finish_value(struct cm_events *events, struct record *r,
                                   const struct cm_event_place *place, struct cm_error *err)
{
    put_text(r, 1, place->tag);
    wrap(r, 1, r->end);
    wrap(r, 5, r->end);
    return finish(events, r, place->step, place->time, err);
}

enum cm_status cm_events_scalar(struct cm_events *events, const struct cm_event_place *place,
                                double value, struct cm_error *err)
{
    struct record r = {0};

    CM_TRY(check_place(place, err));
    CM_TRY(begin(&r, place->tag.size, err));
    put_float(&r, 2, (float)value);
    return finish_value(events, &r, place, err);
}

/* A tensor of one string, which the metadata gives to the plugin "text". */
enum cm_status cm_events_text(struct cm_events *events, const struct cm_event_place *place,
                              struct cm_str text, struct cm_error *err)
{
    struct record r = {0};

    CM_TRY(check_place(place, err));
    if (!cm_str_is_utf8(text) || text.size > TEXT_LIMIT)
        return cm_fail(err, CM_BAD_ARGUMENT, "the text of '%.*s' is not UTF-8, or too long",
                       CM_STR_FMT(place->tag));
    CM_TRY(begin(&r, place->tag.size + text.size, err));
    put_number(&r, 4, 2); /* data_class: tensors */
    const uint8_t *plugin = r.at;
    put_text(&r, 1, CM_STR("text"));
    wrap(&r, 1, plugin);
    wrap(&r, 9, r.end);

    const uint8_t *tensor = r.at;
    put_text(&r, 8, text);
    put_text(&r, 2, CM_STR("")); /* a shape without dimensions */
    put_number(&r, 1, 7);        /* DT_STRING */
    wrap(&r, 8, tensor);
    return finish_value(events, &r, place, err);
}

/* ---- the file ---- */

static enum cm_status make_folders(const char *folder, struct cm_error *err)
{
    char path[sizeof((struct cm_events *)0)->path];
    const size_t size = strlen(folder);
    struct stat facts;

    if (!size || size >= sizeof path - 512) /* the file's name comes behind it */
        return cm_fail(err, CM_BAD_ARGUMENT, "'%.300s' cannot be the name of a folder", folder);
    memcpy(path, folder, size + 1);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        (void)!mkdir(path, 0777); /* the last one tells what is wrong */
        *slash = '/';
    }
    if (mkdir(path, 0777) == 0)
        return CM_OK;
    if (errno == EEXIST && stat(path, &facts) == 0) {
        if (S_ISDIR(facts.st_mode))
            return CM_OK;
        errno = ENOTDIR;
    }
    return cm_fail(err, CM_IO, "cannot make the folder '%.300s': %s", folder, strerror(errno));
}

/* The seconds in the name of the last event file there, or 0. */
static int64_t last_seconds(const char *folder)
{
    DIR *open = opendir(folder);
    const struct dirent *entry;
    int64_t last = 0;

    while (open && (entry = readdir(open)))
        if (strncmp(entry->d_name, BEGINNING, sizeof BEGINNING - 1) == 0) {
            const int64_t seconds = strtoll(entry->d_name + sizeof BEGINNING - 1, NULL, 10);
            if (seconds > last && seconds < INT32_MAX)
                last = seconds;
        }
    if (open)
        closedir(open);
    return last;
}

/* Seconds count on where others wrote in this very second. */
static enum cm_status make_file(struct cm_events *events, const char *folder, struct cm_error *err)
{
    char host[128] = "";
    const int64_t last = last_seconds(folder);
    int64_t seconds = (int64_t)now();

    if (gethostname(host, sizeof host) != 0 || !host[0])
        snprintf(host, sizeof host, "localhost");
    host[sizeof host - 1] = 0;
    for (char *at = host; *at; at++)
        if (*at == '/')
            *at = '-';
    if (seconds <= last)
        seconds = last + 1;
    for (bool exists = true; exists;) {
        snprintf(events->path, sizeof events->path, "%.3500s/" BEGINNING "%010lld.%s.%ld.cameo",
                 folder, (long long)seconds++, host, (long)getpid());
        CM_TRY(cm_stream_create(&events->file, events->path, &exists, err));
    }
    return CM_OK;
}

static enum cm_status write_version(struct cm_events *events, struct cm_error *err)
{
    struct record r = {0};

    CM_TRY(begin(&r, 0, err));
    put_text(&r, 3, CM_STR("brain.Event:2"));
    return finish(events, &r, 0, 0, err);
}

enum cm_status cm_events_new(const char *folder, struct cm_events **out, struct cm_error *err)
{
    *out = NULL;
    CM_TRY(make_folders(folder, err));
    struct cm_events *events = cm_calloc(1, sizeof *events);
    if (!events)
        return cm_fail(err, CM_NO_MEMORY, "no memory for an event file");
    if (pthread_mutex_init(&events->lock, NULL) != 0) {
        cm_free(events);
        return cm_fail(err, CM_NO_MEMORY, "no memory for a lock");
    }
    enum cm_status status = make_file(events, folder, err);
    if (status == CM_OK) {
        status = write_version(events, err);
        if (status != CM_OK)
            unlink(events->path);
    }
    if (status != CM_OK) {
        cm_events_free(events);
        return status;
    }
    *out = events;
    return CM_OK;
}

enum cm_status cm_events_finish(struct cm_events *events, struct cm_error *err)
{
    pthread_mutex_lock(&events->lock);
    const enum cm_status status = cm_stream_finish(&events->file, err);
    pthread_mutex_unlock(&events->lock);
    return status;
}

void cm_events_free(struct cm_events *events)
{
    if (!events)
        return;
    cm_stream_close(&events->file);
    pthread_mutex_destroy(&events->lock);
    cm_free(events);
}

const char *cm_events_path(const struct cm_events *events)
{
    return events->path;
}
