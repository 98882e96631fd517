/* A program in the making: what element_program.c and element_shapes.c share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_CPU_ELEMENTWISE_ELEMENT_BUILDER_H
#define CM_BACKENDS_CPU_ELEMENTWISE_ELEMENT_BUILDER_H

#include "backends/cpu/elementwise/element_program.h"

enum {
    CM_ELEMENT_TABLE = 4 * CM_ELEMENT_VALUES, /* places to find values by number */
    CM_ELEMENT_WIDTHS = 4,                    /* of registers: 1, 2, 4 and 8 bytes an element */
};

struct cm_element_builder {
    struct cm_call *call;
    const struct cm_graph *graph;
    struct cm_element_program *program;
    const struct cm_shape *shape; /* of all results */
    const struct cm_tensor *lead; /* an operand whose layout the results get; NULL: all is plain */
    struct cm_shape *seen;        /* as they lie there: the results, then each source; or NULL */
    cm_value numbers[CM_ELEMENT_TABLE]; /* open addressing: value numbers, 0 for none .. */
    int16_t places[CM_ELEMENT_TABLE];   /* .. and their places in values */
    struct cm_element_value values[CM_ELEMENT_VALUES];
    struct cm_element_source sources[CM_ELEMENT_VALUES];
    int last_read[CM_ELEMENT_VALUES]; /* by value: number of the node that reads it last; -1 */
    bool is_loaded[CM_ELEMENT_VALUES];
    int n_values, n_sources, n_operands; /* operands of all nodes */
    size_t free_at[CM_ELEMENT_WIDTHS]
                  [CM_ELEMENT_VALUES]; /* registers that nobody needs, by width */
    int n_free[CM_ELEMENT_WIDTHS];
    size_t width; /* bytes per element of all registers */
    size_t period_bytes;
};

/* The place of a value in values; -1: it is not there. */
int cm_element_find_value(const struct cm_element_builder *b, cm_value number);

/* Do the operands broadcast to the results, which have one shape? */
bool cm_element_check_shapes(struct cm_element_builder *b);
/* Where operands have a layout, can the results have it? Sets lead and seen. */
bool cm_element_check_layouts(struct cm_element_builder *b);
/* The walk over all sources. */
void cm_element_plan_walk(struct cm_element_builder *b);
/* How often an element of source s is needed. */
enum cm_element_level cm_element_source_level(const struct cm_walk *walk, int s);

#endif
