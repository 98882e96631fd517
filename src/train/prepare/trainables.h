/* Which tensors of a model are trained: what a user of the framework that made the model would call
 * a parameter. Each candidate carries the reason of the decision for people. Not for other folders.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_TRAINABLES_H
#define CM_TRAIN_TRAINABLES_H

#include "base/array.h"
#include "graph/graph.h"
#include "train/prepare/preparation.h"

/* What the file says of an initializer; PyTorch's newer exporter does. */
enum cm_recorded { CM_RECORDED_NOTHING, CM_RECORDED_PARAMETER, CM_RECORDED_OTHER };

struct cm_trainable {
    const struct cm_tensor_proto *tensor;
    struct cm_str name;
    cm_value value;   /* in the inference graph */
    bool is_constant; /* held in a Constant node */
    bool named;       /* --train matches it */
    bool trained;
    bool is_learned; /* a layer reads it as something it learns */
    bool is_applied; /* or it is added, multiplied or the like, to something that is not learned */
    bool has_no_gradient;
    const char *reason; /* why it is, or is not, trained */
    const char *use;    /* how the graph reads it, for the reason; NULL: it does not */
    enum cm_recorded recorded;
};

struct cm_trainables {
    CM_ARRAY(struct cm_trainable);
    bool records_kinds;   /* the file says of some tensors what they are .. */
    bool numbers_apart;   /* it holds its numbers in Constant nodes, apart from its weights */
    size_t named, frozen; /* names that the patterns match */
    bool followed;        /* it is known where gradients go */
    bool is_quantized;    /* nodes make or read quantized values */
};

/* choose.c: all tensors of the model, with what patterns, types and records say of them; then
 * what layers do with them, while the inference graph is all there is; then, with the loss, where
 * gradients go; and the report. */
void cm_trainables_gather(struct cm_preparation *p, struct cm_trainables *list);
/* quantized.c: says of tensors that are quantized that they are, and refuses a model with such
 * tensors unless the user names what to train. */
void cm_trainables_leave_quantized(struct cm_preparation *p, struct cm_trainables *list);
void cm_trainables_choose(struct cm_preparation *p, struct cm_trainables *list);
enum cm_status cm_trainables_follow(struct cm_preparation *p) CM_MUST_CHECK;
void cm_trainables_report(struct cm_preparation *p, struct cm_trainables *list);

/* learned.c: sets is_learned and use of those candidates whose is_constant is `constants`, or of
 * all. */
void cm_trainables_look(struct cm_preparation *p, struct cm_trainables *list, bool constants);

#endif
