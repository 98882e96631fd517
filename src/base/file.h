/* Files: mapped for reading, replaced atomically when written. A path is the user's; a name inside
 * a folder that came from a model goes through cm_file_open_beneath. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_FILE_H
#define CM_BASE_FILE_H

#include "base/arena.h"

#include <stdatomic.h>

/* A whole file in memory, read only. Zeroed is none. */
struct cm_mapping {
    const uint8_t *data; /* NULL when size is 0 */
    size_t size;
    bool copied; /* read into memory instead of mapped */
};

/* Maps path. With copy the bytes are read into memory instead, for files that others may truncate.
 */
enum cm_status cm_file_map(const char *path, bool copy, struct cm_mapping *out,
                           struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_fd_map(int fd, const char *path, bool copy, struct cm_mapping *out,
                         struct cm_error *err) CM_MUST_CHECK;
void cm_mapping_release(struct cm_mapping *mapping);
void cm_mapping_defer(struct cm_arena *arena, struct cm_mapping *mapping); /* when arena ends */
/* The bytes have been read and are copied elsewhere: the memory they take is given back, as far as
 * they lie in one of the n ranges, which must be those of mapped files. Reading them again brings
 * them back from the file. */
void cm_mapped_forget(const struct cm_str *ranges, size_t n, const void *bytes, size_t size);

enum { CM_FOLLOW_LINKS = 1 }; /* symbolic links and hard links are accepted */

/* Opens a regular file for reading whose relative name came from a model. Refuses absolute names,
 * "..", and (unless CM_FOLLOW_LINKS, with which links may lead anywhere) symbolic links on the way
 * and files with more than one hard link. folder is "" for the current one. *fd is the caller's to
 * close. */
enum cm_status cm_file_open_beneath(const char *folder, struct cm_str name, unsigned flags, int *fd,
                                    struct cm_error *err) CM_MUST_CHECK;
/* The lexical half of that: is name a relative path that stays inside? Says why not. */
enum cm_status cm_file_name_is_inside(struct cm_str name, struct cm_error *err) CM_MUST_CHECK;

/* A file that comes into being whole or not at all: written under a temporary name beside path,
 * synced, renamed over path, its folder synced. A symbolic link is followed: the file that it leads
 * to is replaced, and the link stays. An existing file keeps its permissions. */
struct cm_save {
    int fd;
    char *path, *temporary; /* owned */
    bool direct;            /* path is not a regular file: no temporary file, no renaming */
    uint8_t *pending;       /* buffered bytes */
    size_t n_pending;
    uint64_t written;          /* bytes so far, the pending ones included */
    const atomic_bool *cancel; /* set after cm_save_begin; looked at between writes. NULL: none */
};

enum cm_status cm_save_begin(struct cm_save *save, const char *path,
                             struct cm_error *err) CM_MUST_CHECK;
/* The same for a file whose name inside a folder is not the user's: a symbolic link there, which
 * somebody else may have made, is refused, never followed. Folders on the way are made. */
enum cm_status cm_save_begin_inside(struct cm_save *save, const char *folder, struct cm_str name,
                                    struct cm_error *err) CM_MUST_CHECK;
/* As cm_save_begin, and a pipe, a terminal or another device is written directly, as is what the
 * process has open under a number: /dev/stdout, /dev/fd/3. */
enum cm_status cm_save_begin_any(struct cm_save *save, const char *path,
                                 struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_save_write(struct cm_save *save, const void *bytes, size_t size,
                             struct cm_error *err) CM_MUST_CHECK;
/* Zeros up to a multiple of alignment. */
enum cm_status cm_save_align(struct cm_save *save, size_t alignment,
                             struct cm_error *err) CM_MUST_CHECK;
/* Syncs and renames; on failure nothing of the old file is lost, or the sentence says that the new
 * one is there. Ends the save either way. */
enum cm_status cm_save_commit(struct cm_save *save, struct cm_error *err) CM_MUST_CHECK;
/* Of several files that belong together: all are complete before the first takes its name. */
enum cm_status cm_save_commit_all(struct cm_save *const *saves, size_t count,
                                  struct cm_error *err) CM_MUST_CHECK;
/* Removes the temporary file. Harmless after a commit and on a zeroed struct. */
void cm_save_abandon(struct cm_save *save);
void cm_save_defer(struct cm_arena *arena, struct cm_save *save); /* abandons it when arena ends */
/* Commits if status, that of writing the contents, is CM_OK; else abandons and returns it. */
enum cm_status cm_save_end(struct cm_save *save, enum cm_status status,
                           struct cm_error *err) CM_MUST_CHECK;

/* A file that grows record by record: a log, TensorBoard's events. A record is in the file whole or
 * not at all when cm_stream_append returns; it is synced by cm_stream_finish. This and cm_save are
 * the only ways in which files are written: lint refuses others. */
struct cm_stream {
    int fd;
    char *path;           /* owned */
    struct cm_save fresh; /* of a new file, which takes its place with its first record */
    uint64_t size;        /* of whole records in the file */
};

/* The first keep bytes of the file at path stay; 0: the first record replaces what is there, so
 * that a disk that is full costs nobody an old log. A pipe or a device is written directly. */
enum cm_status cm_stream_open(struct cm_stream *stream, const char *path, uint64_t keep,
                              struct cm_error *err) CM_MUST_CHECK;
/* Makes a file that was not there; *exists: it is, and nothing was done. */
enum cm_status cm_stream_create(struct cm_stream *stream, const char *path, bool *exists,
                                struct cm_error *err) CM_MUST_CHECK;
/* After a failure the next record may be tried all the same: the disk may have room again. */
enum cm_status cm_stream_append(struct cm_stream *stream, const void *bytes, size_t size,
                                struct cm_error *err) CM_MUST_CHECK;
/* Syncs and closes, which is where some file systems say that records could not be kept. Harmless
 * on a closed one. */
enum cm_status cm_stream_finish(struct cm_stream *stream, struct cm_error *err) CM_MUST_CHECK;
/* Without asking. Harmless on a closed one. */
void cm_stream_close(struct cm_stream *stream);

/* The folder part of path ("." when there is none) and the rest; both live in arena. */
struct cm_str cm_path_folder(struct cm_arena *arena, const char *path);
const char *cm_path_name(const char *path);
struct cm_str cm_path_join(struct cm_arena *arena, struct cm_str folder, struct cm_str name);

#endif
