/* Functions of floats over whole arrays, built per machine. */
// SPDX-License-Identifier: Apache-2.0
#include "tensor/vector_math.h"

#define OVER_ARRAYS(name)                                                                          \
    static CM_ALWAYS_INLINE void name##_all_on(enum cm_machine machine, int64_t count,             \
                                               const float *x, float *y)                           \
    {                                                                                              \
        CM_ANY_ORDER                                                                               \
        for (int64_t i = 0; i < count; i++)                                                        \
            y[i] = cm_##name##_on(machine, x[i]);                                                  \
    }                                                                                              \
    CM_BUILDS(name##_all, (int64_t count, const float *x, float *y), (machine, count, x, y))       \
    void cm_##name##_floats(int64_t count, const float *x, float *y)                               \
    {                                                                                              \
        name##_all_builds[cm_this_machine()](count, x, y);                                         \
    }

OVER_ARRAYS(exp)
OVER_ARRAYS(log)
OVER_ARRAYS(tanh)
OVER_ARRAYS(sigmoid)
OVER_ARRAYS(erf)
