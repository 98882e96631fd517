/* What a fuzz target is: one constant struct at the end of its file. frame.c gives it to libFuzzer,
 * or to replay.c where there is no libFuzzer. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_FUZZ_TARGET_H
#define CM_FUZZ_TARGET_H

#include "mutate.h"

struct fuzz_target {
    void (*run)(const uint8_t *data, size_t size);
    mutate_fn *mutate;   /* changes an input as its format has it; NULL: changes of bytes only */
    size_t choice_bytes; /* leading bytes that choose what the target does; not part of the file */
    size_t most_bytes;   /* an input grows no further: large ones are slow and reach little more;
                            0: as libFuzzer says */
    /* Memory that the target may hold at once: memory_base + memory_per_byte * size bytes. */
    size_t memory_base, memory_per_byte;
};

extern const struct fuzz_target fuzz_target;

enum { FUZZ_KIB = 1 << 10, FUZZ_MIB = 1 << 20 };

/* Ends the process unless truth holds. Not assert: release builds must notice too. */
void fuzz_require(bool truth);

#endif
