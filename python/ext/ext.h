/* What the files of the extension share: the module's state, errors, and values on their way between
 * Python and the library. Compiled against CPython's limited API alone. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CAMEO_EXT_H
#define CAMEO_EXT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h> /* Py_LIMITED_API comes from cmake/python.cmake; free-threaded builds have none */

#include "cameo.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { EXT_STATUS_COUNT = 10 };

/* One per interpreter. */
struct ext_state {
    PyObject *errors[EXT_STATUS_COUNT]; /* exceptions by status; [0]: cameo.Error */
    PyObject *value_type, *model_type, *session_type, *trainer_type;
    PyObject *events_type, *registry_type, *call_type, *operand_type;
    PyObject *dlpack_name; /* "__dlpack__" */
};

struct ext_state *ext_state(PyObject *module);
struct ext_state *ext_state_of(PyTypeObject *type); /* of a type of ours, or of one derived from it */

/* Raises the exception of err's status with its sentence; returns NULL. */
PyObject *ext_raise(const struct ext_state *state, const struct cameo_error *err);

/* Whether err came of an exception in a function of the user's: then that is raised. */
bool ext_raise_held(const struct cameo_error *err);

PyObject *ext_text(struct cameo_text text); /* bytes that are no UTF-8 are replaced */

/* ---- values ---- */

struct ext_value {
    PyObject_HEAD
    struct cameo_value *value;
    PyObject *owner;    /* a Model in use, whose memory it is; or NULL */
    Py_ssize_t *shape;  /* for buffers: dims, then strides in bytes */
};

/* Takes value and owner (of ext_model_use, or NULL) over, also where it fails. */
PyObject *ext_value_new(struct ext_state *state, struct cameo_value *value, PyObject *owner);
/* The same as what Python would have: tensors as Value, sequences as list, maps as dict, an optional
 * without content as None, strings as (shape, list of texts). */
PyObject *ext_from_value(struct ext_state *state, const struct cameo_value *value);
/* Borrows from a Value, or from anything with a buffer or __dlpack__, for as long as the lease lasts.
 * dtype: of what has only bytes (a narrow type), or CAMEO_UNDEFINED. */
struct ext_lease {
    struct cameo_value *made;         /* to be freed */
    const struct cameo_value *value;  /* fed as value, where not NULL */
    struct cameo_tensor tensor;       /* fed as memory otherwise */
    int64_t dims[64], strides[64];
    Py_buffer buffer;
    bool has_buffer;
    PyObject *kept;
};
bool ext_lease(struct ext_state *state, PyObject *object, struct ext_lease *out);
void ext_lease_end(struct ext_lease *lease);

/* Feeds out of a dict of names to objects; leases has as many. NULL after an exception. */
struct ext_feeds {
    struct cameo_feed *feeds;
    struct ext_lease *leases;
    Py_ssize_t count;
};
bool ext_feeds(struct ext_state *state, PyObject *dict, struct ext_feeds *out);
void ext_feeds_end(struct ext_feeds *feeds);

PyObject *ext_value_info(const struct cameo_value_info *info); /* (name, type, dtype, shape, default) */

/* ---- types ---- */

/* A model as the library holds it. It never changes once others refer to it: what changes a model
 * makes a copy, changes that and gives it back, so that sessions, views and trainers of the old one
 * go on. cameo.Model, in Python, is a name for whichever is the newest. */
struct ext_model {
    PyObject_HEAD
    struct cameo_model *model;
    PyObject *parent; /* what must outlive it: the bytes it was loaded from, the model it was made of */
    atomic_size_t users; /* sessions, trainers, views, models made of it */
};

extern PyType_Spec ext_value_spec, ext_model_spec, ext_session_spec, ext_trainer_spec;
extern PyType_Spec ext_events_spec, ext_registry_spec, ext_call_spec, ext_operand_spec;

/* Takes model over, also where it fails. parent: a Model, whose user it becomes, bytes, or NULL. */
PyObject *ext_model_new(struct ext_state *state, struct cameo_model *model, PyObject *parent);
/* object as a model; NULL after a TypeError. */
struct ext_model *ext_model_of(struct ext_state *state, PyObject *object);
/* Refers to it for as long as it lives: counts, and keeps alive. */
PyObject *ext_model_use(struct ext_model *model);
void ext_model_leave(PyObject *model); /* NULL is fine */
/* A copy of a model to be changed; NULL after an exception. */
struct cameo_model *ext_model_edit(struct ext_state *state, struct ext_model *model);
/* The end of an edit: a new Model, or the exception that err tells of. */
PyObject *ext_model_edited(struct ext_state *state, struct ext_model *from,
                           struct cameo_model *edited, enum cameo_status status,
                           const struct cameo_error *err);

/* Small things to build results from; each takes over what it is given. */
PyObject *ext_texts(const struct cameo_text *texts, size_t count);   /* a list of str */
bool ext_append(PyObject *list, PyObject *item);                     /* drops item; false: failed */
/* A list of texts as C has it, good until ext_names_end; None is no list. False after an exception. */
struct ext_names {
    const char **items;
    size_t count;
    PyObject *kept;
};
bool ext_names(PyObject *list, struct ext_names *out);
void ext_names_end(struct ext_names *names);
/* Bytes that the library writes piece by piece. Free bytes with free(). */
struct ext_pieces {
    char *bytes;
    size_t size, room;
};
int ext_take_piece(void *to, const void *bytes, size_t size);

/* Ctrl-C while the library computes on the main thread: Python's handler only notes the signal, so
 * one of ours is put before it for as long as the call lasts and sets the cancel. cancel is NULL on
 * other threads. After the call ext_watch_end tells whether a KeyboardInterrupt, or whatever the
 * handler of the program raises, is now set; status is the outcome of the call. */
struct ext_watch {
    struct cameo_cancel *cancel;
    struct sigaction before;
    bool armed;
};
void ext_watch_begin(struct ext_watch *watch);
bool ext_watch_end(struct ext_watch *watch, enum cameo_status status);

/* Functions of the module, by file; all take a Model first where they are about one. */
extern PyMethodDef ext_value_functions[], ext_model_functions[], ext_describe_functions[],
    ext_edit_functions[];
extern PyMethodDef ext_operator_functions[];

#endif
