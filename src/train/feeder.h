/* Data for a trainer, batch by batch: which array of a data set goes to which input, in the type
 * and shape that the input wants; or batches that somebody else makes. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_FEEDER_H
#define CM_TRAIN_FEEDER_H

#include "io/dataset.h"
#include "train/trainer.h"

struct cm_feeder;

struct cm_feeder_options {
    struct cm_feed_options feed; /* batch_size 0: what the model fixes, else 32 */
    bool may_drop; /* a short last batch is dropped where the model fixes the rows of a batch */
    const char *target; /* the array for the one input that no array is named after; NULL: the one
                           that is left over */
    bool raw_bytes;     /* images of bytes are fed as 0 to 255, not as 0 to 1 */
    struct cm_findings *findings; /* receives all that does not fit; or NULL */
};

/* Inputs and arrays meet by name. All that does not fit is listed, labels that no class has
 * included. The data set's views are changed; both must outlive the feeder. */
enum cm_status cm_feeder_new(const struct cm_trainer *trainer, struct cm_dataset *dataset,
                             const struct cm_feeder_options *options, struct cm_feeder **out,
                             struct cm_error *err) CM_MUST_CHECK;
/* The same for inputs that no trainer has, borrowed for the call. One of CM_UNDEFINED elements
 * takes its array as it is. */
enum cm_status cm_feeder_new_for(const struct cm_trainer_input *inputs, size_t n_inputs,
                                 struct cm_dataset *dataset,
                                 const struct cm_feeder_options *options, struct cm_feeder **out,
                                 struct cm_error *err) CM_MUST_CHECK;

/* Batches that somebody else makes. An epoch begins, from 0, with `skip` batches that are not
 * wanted, since a run goes on after them. next gives a batch as cm_feeder_next does, and no rows
 * after the last one of an epoch. */
struct cm_batch_source {
    enum cm_status (*begin)(void *arg, uint64_t epoch, int64_t skip, struct cm_error *err);
    enum cm_status (*next)(void *arg, const struct cm_tensor *const **in, int64_t *n,
                           struct cm_error *err);
    void *arg;
    int64_t batches, samples; /* of an epoch; 0: not known */
    struct cm_str conditions; /* what a run that resumes another must agree on */
};
enum cm_status cm_feeder_of_source(const struct cm_batch_source *source, struct cm_feeder **out,
                                   struct cm_error *err) CM_MUST_CHECK;
void cm_feeder_free(struct cm_feeder *feeder); /* NULL is fine */

/* Type and shape of what each input gets in a full batch, without data; NULL: a source does not
 * say.
 */
const struct cm_tensor *const *cm_feeder_shapes(const struct cm_feeder *feeder);
/* The next batch for cm_trainer_step, borrowed until the next call; *n as for cm_feed_next. */
enum cm_status cm_feeder_next(struct cm_feeder *feeder, const struct cm_tensor *const **in,
                              int64_t *n, struct cm_error *err) CM_MUST_CHECK;
struct cm_feed_position cm_feeder_position(const struct cm_feeder *feeder);
enum cm_status cm_feeder_seek(struct cm_feeder *feeder, struct cm_feed_position position,
                              struct cm_error *err) CM_MUST_CHECK;
struct cm_feeder_facts {
    struct cm_feed_options feed;      /* with the batch size as it was settled */
    int64_t samples;                  /* of the data set */
    int64_t batches;                  /* per epoch */
    const struct cm_dataset *dataset; /* NULL: batches of a source */
    const int *fields;                /* by input: which array of it */
    struct cm_str conditions;         /* of a source */
};
const struct cm_feeder_facts *cm_feeder_facts(const struct cm_feeder *feeder);
/* The epoch that the next batch belongs to, from 0. */
uint64_t cm_feeder_epoch(const struct cm_feeder *feeder);
/* Are the bytes of its array fed to this input as 0 to 1? */
bool cm_feeder_scales(const struct cm_feeder *feeder, size_t input);
/* Was the batch given last the last one of its epoch? A source tells by giving no more. */
bool cm_feeder_ends_epoch(const struct cm_feeder *feeder);

#endif
