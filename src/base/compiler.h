/* What we ask of the compiler beyond C17, and the functions nobody may call. Included by every
 * other header of base/, so every file of the library is under the ban. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_COMPILER_H
#define CM_BASE_COMPILER_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Cameo reads little-endian data in place and supports little-endian hosts only"
#endif

#if defined(__GNUC__)
#define CM_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define CM_MUST_CHECK          __attribute__((warn_unused_result))
#define CM_NORETURN            __attribute__((noreturn))
#define CM_SMALL_CODE          __attribute__((cold)) /* of a function: built small, not fast */
#define CM_LIKELY(x)           __builtin_expect(!!(x), 1)
#undef alloca  /* a macro where GNU extensions are asked for */
#undef sprintf /* and these where clang compiles with FORTIFY_SOURCE */
#undef vsprintf
/* Unbounded, locale-dependent or stack-eating; each has a checked counterpart in base/. */
#pragma GCC poison sprintf vsprintf strcpy strcat strtok atoi atol atof gets alloca
#else
#define CM_PRINTF(text, first)
#define CM_MUST_CHECK
#define CM_NORETURN
#define CM_SMALL_CODE
#define CM_LIKELY(x) (x)
#endif

/* Of a type: its values may lie at any address, as those in a file do. */
#if defined(__GNUC__)
#define CM_LOOSE __attribute__((aligned(1)))
#else
#define CM_LOOSE
#endif
typedef float cm_loose_float CM_LOOSE;

#define CM_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
