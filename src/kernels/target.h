/* What a target offers to the kernels: the width of its vectors and the tiles that its registers
 * hold, from what the compiler defines. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_KERNELS_TARGET_H
#define CM_KERNELS_TARGET_H

#include <stddef.h>
#include <stdint.h>

/* The two functions that a freestanding compiler asks for anyway. */
void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);

/* Vectors wider than the target's own are split by the compiler; they pass between functions that
 * are inlined only. Loops of one turn have nothing to unroll, and none has 2^62 turns. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"
#else
#pragma GCC diagnostic ignored "-Waggressive-loop-optimizations"
#endif
#pragma GCC diagnostic ignored "-Wpsabi"

#define KERNEL_INLINE static inline __attribute__((always_inline, unused))
/* A function of which vectors are KERNEL_VECTOR wide even where clang would rather have two halves.
 */
#if defined(__clang__) && defined(__AVX512F__)
#define KERNEL_WIDE __attribute__((min_vector_width(512)))
#else
#define KERNEL_WIDE
#endif
#if defined(__clang__)
#define KERNEL_UNROLL _Pragma("clang loop unroll(full)")
#else
#define KERNEL_UNROLL _Pragma("GCC unroll 16")
#endif

/* KERNEL_HEIGHTS(X): tiles X(rows, vectors of columns, vectors of a narrow tile), highest first,
 * down to one row. The heights that fit after each other in CAMEO_PANEL_ROWS rows come first. Their
 * sums, the vectors of B and an element of A are in registers.
 *
 * Of convolutions whose vectors lie along channels, direct.inc: tiles are two runs of KERNEL_RUN
 * places (one less than a multiple of four) by KERNEL_ACROSS vectors. */
#if defined(__AVX512F__)
#define KERNEL_VECTOR     64
#define KERNEL_HEIGHTS(X) X(12, 2, 1) X(8, 2, 1) X(4, 4, 1) X(2, 4, 1) X(1, 4, 1)
#define KERNEL_RUN        7
#define KERNEL_ACROSS     2
#elif defined(__AVX2__) || defined(__AVX__)
#define KERNEL_VECTOR     32
#define KERNEL_HEIGHTS(X) X(6, 2, 1) X(4, 2, 1) X(2, 4, 1) X(1, 4, 1)
#define KERNEL_RUN        3
#define KERNEL_ACROSS     2
#elif defined(__ARM_NEON) || defined(__riscv_vector)
#define KERNEL_VECTOR     16
#define KERNEL_HEIGHTS(X) X(6, 4, 1) X(4, 4, 1) X(2, 4, 1) X(1, 4, 1)
#define KERNEL_RUN        3
#define KERNEL_ACROSS     4
#elif defined(__SSE2__) || defined(__wasm_simd128__)
#define KERNEL_VECTOR     16
#define KERNEL_HEIGHTS(X) X(4, 2, 1) X(2, 4, 1) X(1, 4, 1)
#define KERNEL_RUN        3
#define KERNEL_ACROSS     2
#else /* registers of one element: four are a vector */
#define KERNEL_VECTOR     16
#define KERNEL_HEIGHTS(X) X(4, 1, 1) X(2, 2, 1) X(1, 2, 1)
#define KERNEL_RUN        3
#define KERNEL_ACROSS     1
#endif

#endif
