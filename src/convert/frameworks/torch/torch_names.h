/* Names for the parameters of an optimizer that PyTorch stored by number. Numbers count through the
 * groups, in the order in which the weights were given to the optimizer; names are not stored. What
 * tells them is the order of the weights in the file, the shapes of what the optimizer keeps, and
 * how people group weights. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_TORCH_NAMES_H
#define CM_CONVERT_TORCH_NAMES_H

#include "convert/saved.h"

struct cm_torch_weight {
    struct cm_str name;
    const struct cm_shape *shape;
};

struct cm_torch_naming {
    struct cm_arena *arena;
    const struct cm_torch_weight *weights; /* that may be parameters, in the order of the file */
    size_t n_weights;
    const struct cm_shape *const *shapes; /* of parameters, group by group; NULL: not known */
    const size_t *sizes;                  /* parameters of each group */
    const double *decays;                 /* weight decay of each group */
    size_t n_groups, count;               /* parameters in all */
};

/* The order in which the modules of a network were made, for weights that a file lists by their
 * names in alphabetical order. Where names tell nothing there are several orders, of which `turn`
 * takes one; the first is the one that names suggest. It is usual where all names were known, and
 * complete where all orders are tried. */
struct cm_torch_order;
struct cm_torch_order *cm_torch_order_new(struct cm_arena *arena,
                                          const struct cm_torch_weight *weights, size_t count);
size_t cm_torch_orders(const struct cm_torch_order *order);
bool cm_torch_order_is_usual(const struct cm_torch_order *order);
bool cm_torch_order_is_complete(const struct cm_torch_order *order);
void cm_torch_order_get(const struct cm_torch_order *order, size_t turn,
                        struct cm_torch_weight *out);

/* The name of each parameter. *by_names: the order of the weights was taken from their names.
 * false: several ways are left, or none. */
bool cm_torch_name(const struct cm_torch_naming *naming, struct cm_str *out, bool *by_names);

#endif
