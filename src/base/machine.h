/* The same source compiled again for what the processor has. A function that is written for any
 * machine and always inlined becomes one build per instruction set; which one runs is found at run
 * time. Vectors are left to the compiler. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BASE_MACHINE_H
#define CM_BASE_MACHINE_H

#include "base/compiler.h"

enum cm_machine { CM_PLAIN, CM_AVX2, CM_AVX512, CM_MACHINES };

#if defined(__GNUC__)
#define CM_ALWAYS_INLINE inline __attribute__((always_inline))
#else
#define CM_ALWAYS_INLINE inline
#endif

#if defined(__GNUC__) && defined(__x86_64__)
#define CM_FOR_AVX2 __attribute__((target("avx2,fma")))
#if defined(__clang__)
#define CM_FOR_AVX512 __attribute__((target("avx512f,avx512dq,fma"), min_vector_width(512)))
#else
#define CM_FOR_AVX512 __attribute__((target("avx512f,avx512dq,fma,prefer-vector-width=512")))
/* For processors older than most: it need only be right, and small. */
#define CM_FOR_PLAIN  __attribute__((optimize("Os")))
#endif
#endif
#ifndef CM_FOR_PLAIN
#define CM_FOR_PLAIN
#endif

/* The best that this processor can run, of those below the limit. */
enum cm_machine cm_this_machine(void);
/* For tests: nothing better than this is used from now on. */
void cm_machine_limit(enum cm_machine most);

/* Before a loop whose iterations may run in any order: what it writes is what it has read in the
 * same iteration, or nothing that it reads. */
#if defined(__clang__)
#define CM_ANY_ORDER _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define CM_ANY_ORDER _Pragma("GCC ivdep")
#else
#define CM_ANY_ORDER
#endif

/* The same said to gcc alone, before loops that not every processor has vectors for: of clang it is
 * a demand, which must not fail. */
#if defined(__GNUC__) && !defined(__clang__)
#define CM_NO_OVERLAP CM_ANY_ORDER
#else
#define CM_NO_OVERLAP
#endif

/* What there is of one name for each machine: name_plain, name_avx2, name_avx512. */
#ifdef CM_FOR_AVX2
#define CM_BUILDS_OF(name)                                                                         \
    {                                                                                              \
        name##_plain, name##_avx2, name##_avx512                                                   \
    }
#else
#define CM_BUILDS_OF(name)                                                                         \
    {                                                                                              \
        name##_plain, name##_plain, name##_plain                                                   \
    }
#endif

/* Defines name_builds, the builds of name_on by machine. parameters are those of the builds, in
 * parentheses; arguments those that name_on is called with: (machine, ..). */
#define CM_BUILD(name, attribute, suffix, which, parameters, arguments)                            \
    attribute static void name##_##suffix parameters                                               \
    {                                                                                              \
        const enum cm_machine machine = which;                                                     \
        name##_on arguments;                                                                       \
    }
#ifdef CM_FOR_AVX2
#define CM_BUILDS(name, parameters, arguments)                                                     \
    CM_BUILD(name, CM_FOR_PLAIN, plain, CM_PLAIN, parameters, arguments)                           \
    CM_BUILD(name, CM_FOR_AVX2, avx2, CM_AVX2, parameters, arguments)                              \
    CM_BUILD(name, CM_FOR_AVX512, avx512, CM_AVX512, parameters, arguments)                        \
    static void(*const name##_builds[CM_MACHINES]) parameters = CM_BUILDS_OF(name);
/* The same without one for AVX-512, which takes that for AVX2: for loops that wait for memory. */
#define CM_TWO_BUILDS(name, parameters, arguments)                                                 \
    CM_BUILD(name, , plain, CM_PLAIN, parameters, arguments)                                       \
    CM_BUILD(name, CM_FOR_AVX2, avx2, CM_AVX2, parameters, arguments)                              \
    static void(*const name##_builds[CM_MACHINES])                                                 \
        parameters = {name##_plain, name##_avx2, name##_avx2};
#else
#define CM_TWO_BUILDS CM_BUILDS
#define CM_BUILDS(name, parameters, arguments)                                                     \
    CM_BUILD(name, , plain, CM_PLAIN, parameters, arguments)                                       \
    static void(*const name##_builds[CM_MACHINES]) parameters = CM_BUILDS_OF(name);
#endif

/* a * b + c, rounded once where the machine can */
static CM_ALWAYS_INLINE float cm_muladd(enum cm_machine machine, float a, float b, float c)
{
#if defined(__GNUC__)
    if (machine != CM_PLAIN)
        return __builtin_fmaf(a, b, c);
#endif
    (void)machine;
    return a * b + c;
}

/* Defines name, which calls the build for this machine of what CM_BUILDS defined; arguments are
 * those of the builds, in parentheses. */
#define CM_CALL_BUILDS(name, parameters, arguments)                                                \
    static void name parameters                                                                    \
    {                                                                                              \
        name##_builds[cm_this_machine()] arguments;                                                \
    }

#endif
