/* Random numbers that are the same everywhere. Two generators: MT19937 seeded as numpy's
 * RandomState does, for nodes that bring a seed (ONNX's reference evaluator draws from that), and
 * the counter-based Philox 4x32-10 for all others, whose whole state is a few numbers that fit in a
 * checkpoint. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_RANDOM_H
#define CM_BASE_RANDOM_H

#include "base/compiler.h"

#include <stdbool.h>

enum cm_random_kind { CM_RANDOM_MT19937, CM_RANDOM_PHILOX };

enum { CM_MT_WORDS = 624 };

struct cm_random {
    enum cm_random_kind kind;
    uint32_t mt[CM_MT_WORDS];
    int mt_next;          /* words of mt handed out */
    uint64_t key, stream; /* Philox: what makes this sequence this one */
    uint64_t counter;     /* Philox: blocks drawn */
    uint32_t block[4];
    int block_next; /* words of block handed out; 4: none left */
    bool has_gauss; /* a normal number left over from the last pair */
    double gauss;
};

void cm_random_seed_numpy(struct cm_random *random, uint32_t seed);
/* Different (seed, stream) pairs give independent sequences. */
void cm_random_seed_philox(struct cm_random *random, uint64_t seed, uint64_t stream);

uint32_t cm_random_bits(struct cm_random *random);
double cm_random_uniform(struct cm_random *random); /* [0, 1), 53 bits */
double
cm_random_normal(struct cm_random *random); /* numpy's legacy polar method, both generators */

#endif
