/* The body of an elementwise region as a small program over blocks of elements: one instruction per
 * node, values in registers of one block each, so that only operands and results of the region
 * touch memory. Every instruction is the loop that its operator names, and narrow floats are
 * rounded after each, so results have the bits that the body's nodes would give one by one. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_CPU_ELEMENTWISE_ELEMENT_PROGRAM_H
#define CM_BACKENDS_CPU_ELEMENTWISE_ELEMENT_PROGRAM_H

#include "graph/op.h"
#include "tensor/walk.h"

enum {
    CM_ELEMENT_VALUES = 256,    /* operands, constants and results of nodes */
    CM_ELEMENT_OPERANDS = 32,   /* of one node */
    CM_ELEMENT_BLOCK = 1024,    /* elements of a block at most */
    CM_ELEMENT_BYTES = 1 << 15, /* of all registers: stays in the first-level cache */
    CM_PERIOD_BYTES = 1 << 15,  /* of all elements that repeat */
};

/* Bytes that elements which repeat take, with as many more as a block needs: multiples of the
 * alignment of any element. */
static inline size_t cm_period_bytes(int64_t period, enum cm_dtype type)
{
    const size_t bytes = (size_t)(period + CM_ELEMENT_BLOCK) * cm_dtype_size(type);
    return (bytes + 63) / 64 * 64;
}

/* How often something is computed: what comes from elements that repeat is known for longer. */
enum cm_element_level { CM_ONCE, CM_EACH_RUN, CM_EACH_BLOCK };

enum cm_element_place {
    CM_AT_OPERAND, /* where the operand or constant has it */
    CM_AT_OUTPUT,  /* where the result goes */
    CM_IN_BLOCKS,  /* a register: a block of elements */
    CM_IN_PERIODS, /* elements that repeat, as often as a block needs them */
    CM_IN_SINGLES, /* one element */
};

struct cm_element_value {
    enum cm_dtype type;
    enum cm_element_level level;
    enum cm_element_place place;
    bool narrow; /* computed as float, rounded after each instruction */
    size_t at;   /* of a register: bytes per element before it; of singles: which one; of what
                    repeats: bytes before it */
    int source;  /* which operand or constant it is; -1: computed */
    int output;  /* which result of the region it is; -1: none */
};

/* An operand of the region or a constant of its body. */
struct cm_element_source {
    int value, operand;               /* operand -1: the constant */
    const struct cm_tensor *constant; /* of the body */
    int64_t period; /* elements, one after the other, that repeat all along the results; 0: none */
    struct cm_walk *gather; /* NULL, or how its elements are brought in the order of the result */
};

struct cm_element_instruction {
    struct cm_element_loop loop; /* run NULL: the value is loaded from its source */
    int value;
    int n_in;
    const int *in; /* values; -1: absent */
    const int64_t *step;
    bool is_read; /* some instruction after it reads the value */
};

struct cm_element_program {
    struct cm_element_value *values;
    struct cm_element_source *sources;
    struct cm_element_instruction *instructions;
    int n_values, n_sources, n_instructions;
    size_t n_singles;
    struct cm_walk *walk;           /* of the sources, over the results */
    int64_t block;                  /* elements at a time */
    const struct cm_layout *layout; /* of the results and of operands as large; NULL: rows */
};

/* In accepts: the program of a region's body for the operands at hand, in memory of the call; NULL
 * after declining. */
struct cm_element_program *cm_element_program_build(struct cm_call *call);
/* In prepare: says how operands and results lie. */
void cm_element_program_choose_layouts(const struct cm_element_program *program,
                                       struct cm_call *call);
void cm_element_program_run(const struct cm_element_program *program, const struct cm_call *call);
/* The same in pieces: see struct cm_kernel. */
int64_t cm_element_program_pieces(const struct cm_element_program *program);
bool cm_element_program_run_pieces(const struct cm_element_program *program,
                                   const struct cm_call *call, int64_t begin, int64_t end,
                                   bool check);

#endif
