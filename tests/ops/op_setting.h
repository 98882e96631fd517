/* A case among other nodes, as operators stand in models: passes find something to do around it. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_OP_SETTING_H
#define CM_TESTS_OP_SETTING_H

#include "op_graph.h"

struct op_setting {
    const char *name;
    enum telling telling;
    enum {
        AROUND_NOTHING,
        AROUND_CHAIN,      /* float operands are scaled by 1, float results shifted and negated */
        AROUND_TRANSPOSES, /* float operands come from channels last, float results go there */
        AROUND_RESIDUAL,   /* to float results a tensor of their shape is added, and Relu taken */
        AROUND_GRADIENT,   /* the gradients of the first float result are results too */
    } around;
};

/* Can the case be put there? results are those of the case alone, as many as it asks for; NULL when
 * it is refused. */
bool op_setting_fits(const struct op_case *what, const struct op_setting *setting,
                     const struct cm_datum *results);
/* Builds the graph of a case in a setting that fits, with a feed for each of its inputs. */
enum cm_status op_setting_build(const struct op_case *what, const struct op_setting *setting,
                                const struct cm_datum *results, struct cm_arena *arena,
                                struct op_graph *out, struct cm_error *err);

#endif
