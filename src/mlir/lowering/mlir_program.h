/* A model as a program for MLIR: one function on tensors in linalg, tensor, arith, math and scf,
 * and what is needed to call it. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MLIR_PROGRAM_H
#define CM_MLIR_PROGRAM_H

#include "tensor/tensor.h"

/* The text holds one public function
 *
 *     func.func @cm_main(%context: index, %weights: memref<?xi8>, %arena: memref<?xi8>,
 *                        INPUT.., OUTPUT..)
 *
 * and a training step that draws random numbers takes its random state, %random: memref<?xi64>,
 * behind the arena. INPUT is a memref for each input of the model, OUTPUT one for each output of
 * which all sizes are known (is_fixed), in order. Element types are MLIR's: f16, bf16, f32, f64, i8
 * to i64 for signed and unsigned, i1 for bool (a byte each); types of 8 bits and fewer that MLIR's
 * arithmetic does not know are i8, an element a byte. Other outputs are handed over by
 *
 *     cm_output(context, i, address, rank, address of rank times int64)
 *
 * which copies them. In C cm_main is a function without result that takes, for each memref, its
 * address twice, an offset (0), its sizes and its strides in elements, all but the addresses of
 * type intptr_t; their memory must not overlap. Constants of more than a few elements lie at their
 * offsets in %weights.
 *
 * After bufferization the module (mlir_module.h) puts buffers of fixed size at places in %arena,
 * and calls for others, which the glue (mlir/lowering/glue.h) provides beside cm_output:
 *
 *     intptr_t cm_times(intptr_t a, intptr_t b);    the largest number where it overflows
 *     intptr_t cm_allocate(intptr_t context, intptr_t bytes);    0: the arena is too small
 *     void cm_release(intptr_t context, intptr_t address);
 *     intptr_t cm_require(intptr_t context, intptr_t holds, intptr_t number);   of cf.assert
 *     intptr_t cm_output(intptr_t context, intptr_t i, intptr_t data, intptr_t rank, intptr_t
 * shape);
 *
 * Where one of them gives 0, cm_main returns at once. `index` is as wide as a pointer. Kernels in C
 * (src/kernels) are called the same way: addresses and sizes are of type index. */

/* An input or an output. */
struct cm_mlir_port {
    struct cm_str name;
    enum cm_dtype type;
    int rank;
    const int64_t *dims;        /* -1: not known before it runs */
    const struct cm_str *names; /* of dimensions, "" where there is none */
    bool is_fixed;              /* all dims are known */
    size_t bytes;               /* where it is fixed: elements times bytes of one */
};

/* A constant that the program reads at an offset of its weights, aligned to 64 bytes. */
struct cm_mlir_weight {
    struct cm_str name;
    const struct cm_tensor *tensor;
    size_t offset;
};

struct cm_mlir_program {
    struct cm_str text;
    const struct cm_mlir_port *inputs, *outputs;
    size_t n_inputs, n_outputs;
    const struct cm_mlir_weight *weights;
    size_t n_weights, weight_bytes;
    const struct cm_str *kernels; /* functions of src/kernels that it calls, each once */
    size_t n_kernels;
    /* What the random state begins with, where random numbers go on from run to run: the seed, then
     * where each random node stands. */
    const int64_t *random;
    size_t n_random;
};

#endif
