/* The formats that checkpoints come in, one row each: how a file or folder is recognized, how it is
 * read, how one is written. The rows are in format.c; each is defined in the file of its format. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_FORMAT_H
#define CM_CONVERT_FORMAT_H

#include "base/folder_list.h"
#include "base/folder_save.h"
#include "convert/saved.h"

struct cm_findings;
struct cm_model_file;

/* What PATH is: one file, or a folder with the files in it. Files are mapped when asked for, once;
 * names are relative to the folder, with '/', and never lead out of it: no "..", and no symbolic or
 * hard links unless flags say CM_FOLLOW_LINKS. */
struct cm_saved_place {
    struct cm_arena *arena;
    struct cm_str path;            /* as the user gave it */
    struct cm_str folder;          /* path if that is a folder, else the folder of the file */
    struct cm_str file;            /* name of the one file in folder; empty: path is a folder */
    unsigned flags;                /* CM_FOLLOW_LINKS or none */
    bool named;                    /* the user named path, which may be a link then */
    struct cm_folder_names names;  /* of a folder, down to 6 levels; of one file: that file alone */
    struct cm_place_file **opened; /* place.c's; the same in all parts of a folder */
};

enum cm_status cm_place_open(struct cm_arena *arena, const char *path, unsigned flags,
                             struct cm_saved_place *out, struct cm_error *err) CM_MUST_CHECK;
bool cm_place_has(const struct cm_saved_place *place, struct cm_str name);
/* The bytes of a file, mapped until the end of arena; CM_NOT_FOUND when it is not there. Of a
 * file beside PATH, too (an index beside its data), where PATH is one file. */
enum cm_status cm_place_map(struct cm_saved_place *place, struct cm_str name, struct cm_str *out,
                            struct cm_error *err) CM_MUST_CHECK;
/* A file of JSON as an item; *out is NULL where the place has no such file. */
enum cm_status cm_place_json(struct cm_saved_place *place, struct cm_str name, struct cm_item **out,
                             struct cm_error *err) CM_MUST_CHECK;
/* The first bytes of it, as many as there are up to 64; none when it cannot be read. */
struct cm_str cm_place_head(struct cm_saved_place *place, struct cm_str name);
/* One file of the folder, as a place of its own. */
struct cm_saved_place cm_place_file(struct cm_saved_place *place, struct cm_str name);
/* The part of the folder below `folder`, a name in it, as a place of its own (checkpoints inside
 * run folders). */
struct cm_saved_place cm_place_below(struct cm_saved_place *place, struct cm_str folder);

/* Lists what was mapped in saved->files and saved->mapped, through whichever part of the folder. */
void cm_place_tell(const struct cm_saved_place *place, struct cm_saved *saved);

/* What writers share: a file, or a folder, is written whole or not at all, with the
 * contents that `fill` gives it; and a file of such a folder. */
typedef enum cm_status cm_file_fill_fn(void *arg, struct cm_save *save, struct cm_error *err);
enum cm_status cm_saved_write_file(const struct cm_saved *saved, const char *path,
                                   cm_file_fill_fn *fill, void *arg,
                                   struct cm_error *err) CM_MUST_CHECK;
typedef enum cm_status cm_folder_fill_fn(void *arg, struct cm_folder_save *folder,
                                         struct cm_error *err);
enum cm_status cm_saved_write_folder(const struct cm_saved *saved, const char *path,
                                     cm_folder_fill_fn *fill, void *arg,
                                     struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_saved_put_file(const struct cm_saved *saved, struct cm_folder_save *folder,
                                 const char *name, cm_file_fill_fn *fill, void *arg,
                                 struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_saved_put_json(const struct cm_saved *saved, struct cm_folder_save *folder,
                                 const char *name, const struct cm_item *item,
                                 struct cm_error *err) CM_MUST_CHECK;

struct cm_format {
    const char *name;   /* for --to and for messages: "pytorch", "huggingface", "keras-weights" */
    const char *system; /* "Hugging Face" */
    const char *what;   /* "a folder of the Trainer or of accelerate" */
    /* By content: 0 not this, 1 perhaps (another one that is surer goes before), 2 surely. Must be
     * cheap and read heads of files only; NULL: it is written only. */
    int (*recognize)(struct cm_saved_place *place);
    enum cm_status (*read)(struct cm_saved_place *place, struct cm_saved *saved,
                           struct cm_error *err);
    /* To a path that does not exist yet, or is a file to be replaced: a file or a folder, whole or
     * not at all. NULL: it is read only. */
    enum cm_status (*write)(const struct cm_saved *saved, const char *path, struct cm_error *err);
    /* Instead of write, of a format that holds the network itself and not only tensors. path NULL:
     * only says what cannot be written. */
    enum cm_status (*write_model)(const struct cm_model_file *file, struct cm_saved *saved,
                                  const char *path, struct cm_findings *findings,
                                  struct cm_saved_texts *notes, struct cm_error *err);
};

static inline bool cm_format_is_written(const struct cm_format *format)
{
    return format->write || format->write_model;
}

extern const struct cm_format *const cm_formats[];
extern const size_t cm_format_count;

/* The format that is surest of a place, other than one (NULL: of all); NULL: none recognizes it. */
const struct cm_format *cm_format_of(struct cm_saved_place *place, const struct cm_format *except);

/* Recognizes and reads. Fails with one sentence that says what the path looks like when nobody
 * knows it. Files of a folder may be behind links if flags say CM_FOLLOW_LINKS. */
enum cm_status cm_saved_open(struct cm_arena *arena, const char *path, unsigned flags,
                             struct cm_saved **out, struct cm_error *err) CM_MUST_CHECK;

#endif
