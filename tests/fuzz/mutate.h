/* Changes of inputs that keep their format, for libFuzzer. Changes of single bytes are refused by
 * the first check of a reader; these changes pass it and test what comes after it. A mutator takes
 * an input apart, changes one or a few things in it and puts it together again, with sizes and
 * check sums that fit. All chance comes from struct chance, so a seed gives one result. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_FUZZ_MUTATE_H
#define CM_FUZZ_MUTATE_H

#include "base/arena.h"
#include "base/array.h"

struct chance {
    struct cm_arena *arena; /* results live in it */
    uint64_t random;
    struct cm_str other; /* another input, whose parts may be taken; may be empty */
};

/* The changed input; data NULL: this mutator cannot change these bytes. */
typedef struct cm_str mutate_fn(struct chance *c, struct cm_str bytes);

mutate_fn mutate_model;                  /* ONNX models, by their messages */
mutate_fn mutate_text;                   /* JSON, YAML, CSV, by their tokens */
mutate_fn mutate_syntax, mutate_dialect; /* ONNX text, MLIR, by tokens and by messages */
mutate_fn mutate_file;   /* whatever the first bytes say that it is; archives by their members */
mutate_fn mutate_pickle; /* opcodes */
mutate_fn mutate_msgpack;
mutate_fn mutate_wire;    /* any message of protobuf */
mutate_fn mutate_offsets; /* HDF5, flatbuffers: numbers and addresses of 1, 2, 4 and 8 bytes */
mutate_fn mutate_bytes;   /* libFuzzer's own changes */

/* Inputs of targets that write a folder: see in_folder.h and fuzz_bundle.c. */
mutate_fn mutate_records;
mutate_fn mutate_entries;

/* ---- chance ---- */

size_t chance_draw(struct chance *c, size_t below); /* a number below `below`, which is not 0 */
bool chance_percent(struct chance *c, unsigned percent);
int64_t chance_number(struct chance *c); /* mostly small, now and then at an edge */
float chance_real(struct chance *c);
struct cm_str chance_word(struct chance *c); /* of operators, attributes, types, formats */

/* ---- pieces ---- */

/* Bytes that grow at their end. */
struct sheet {
    struct cm_arena *arena;
    CM_ARRAY(char);
};

void sheet_add(struct sheet *sheet, struct cm_str bytes);
void sheet_add_number(struct sheet *sheet, uint64_t number, size_t size); /* little-endian */

static inline struct cm_str sheet_text(const struct sheet *sheet)
{
    return (struct cm_str){sheet->items ? sheet->items : "", sheet->count};
}

/* Parts of an input that follow each other. */
struct pieces {
    CM_ARRAY(struct cm_str);
};

/* One piece gone, twice, moved, or in the place of another. False: there is none. */
bool pieces_change(struct chance *c, struct pieces *pieces);
/* The piece that is not of another input's turn. */
struct cm_str *pieces_some(struct chance *c, const struct pieces *pieces);
struct cm_str pieces_join(struct chance *c, const struct pieces *pieces);

/* Little-endian, 1 to 8 bytes. */
uint64_t bytes_number(const void *bytes, size_t size);
struct cm_str str_part(struct cm_str bytes, size_t from, size_t size); /* cut to what there is */

#endif
