/* How long buffers live, in a function whose control flow is still regions. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MLIR_MODULE_LIFETIME_H
#define CM_MLIR_MODULE_LIFETIME_H

#include <mlir-c/IR.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Operations in the order they are written: each has the number at which it starts and the one at
 * which it ends, between which lie those in its regions. */
struct cm_mlir_order {
    struct cm_mlir_numbered {
        const void *op;
        int64_t start, end;
    } * slots;
    size_t n_slots;
    int64_t next;
};

/* Numbers all operations in `root`; false where memory runs out. */
bool cm_mlir_order_init(struct cm_mlir_order *order, MlirOperation root);
void cm_mlir_order_release(struct cm_mlir_order *order);

struct cm_mlir_lifetime {
    int64_t first, last;
    bool escapes;        /* a loop carries it to its next turn, or its end is not known */
    bool leaves;         /* it is used behind the operation whose region makes it */
    MlirOperation until; /* the last operation of its own block that uses it; null: none does */
};

/* The lifetime of what `allocation` gives, under all names it has. False: memory ran out. */
bool cm_mlir_lifetime_find(const struct cm_mlir_order *order, MlirOperation allocation,
                           struct cm_mlir_lifetime *out);

#endif
