/* What the files about trainers share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CAMEO_EXT_TRAINING_H
#define CAMEO_EXT_TRAINING_H

#include "ext.h"

#include <stdint.h>

struct ext_trainer {
    PyObject_HEAD struct cameo_trainer *trainer;
    PyObject *model;
    double *scalars;
    struct ext_slots inputs;
    _Atomic uintptr_t owner; /* the thread that uses it; 0: none does */
    bool running;            /* in a callback of a whole run, which may look, but not train */
};

/* One use of a trainer, from ext_trainer_enter to ext_trainer_leave. */
struct ext_use {
    struct ext_watch watch;
    bool inner;                            /* in a callback of a run */
    const struct cameo_findings *findings; /* of a failure; NULL: its message is all */
};

/* One thread at a time; false after an exception. trains: it changes what a run under way goes by.
 */
bool ext_trainer_enter(struct ext_trainer *self, bool trains, struct ext_use *use);
/* The same with a batch for it; after it the feeds are the caller's to end. */
bool ext_trainer_feed(struct ext_trainer *self, PyObject *inputs, bool trains,
                      struct ext_feeds *feeds, struct ext_use *use);
/* Whether all is well; otherwise an exception is set. */
bool ext_trainer_leave(struct ext_trainer *self, struct ext_use *use, enum cameo_status status,
                       const struct cameo_error *err);
struct ext_trainer *ext_trainer_of(struct ext_state *state, PyObject *object);

/* Dicts of numbers. */
bool ext_put_real(PyObject *dict, const char *name, double number);
bool ext_put_whole(PyObject *dict, const char *name, uint64_t number);
/* A dict of what there is to tell: loss, accuracy, or errors. */
PyObject *ext_measure(const struct cameo_measure *measure);
/* The scalars of a step by name. */
PyObject *ext_scalars(const struct cameo_trainer *trainer, const double *values);

/* trainer_state.c: methods of a trainer. */
PyObject *ext_trainer_memory(PyObject *self, PyObject *args);
PyObject *ext_trainer_inputs(PyObject *self, PyObject *args);
PyObject *ext_trainer_variables(PyObject *self, PyObject *args);
PyObject *ext_trainer_parameters(PyObject *self, PyObject *args);
PyObject *ext_trainer_facts(PyObject *self, PyObject *args);
PyObject *ext_trainer_steps(PyObject *self, PyObject *args);
PyObject *ext_trainer_add_validation(PyObject *self, PyObject *args);
PyObject *ext_trainer_read(PyObject *self, PyObject *args);
PyObject *ext_trainer_set(PyObject *self, PyObject *args);
PyObject *ext_trainer_save(PyObject *self, PyObject *args);
PyObject *ext_trainer_to_model(PyObject *self, PyObject *args);
PyObject *ext_trainer_checkpoint_save(PyObject *self, PyObject *args);
PyObject *ext_trainer_checkpoint_resume(PyObject *self, PyObject *args);

/* A data set and the memory it is of. */
struct ext_data {
    PyObject_HEAD struct cameo_dataset *dataset;
    struct ext_feeds arrays;
    PyObject *kept; /* the dict they are of */
};
/* A kernel kept memory of a call: it may be that of the arrays. NULL is fine. */
void ext_data_kept(struct ext_data *data, bool kept);
struct ext_data *ext_data_of(struct ext_state *state, PyObject *object);

#endif
