/* What the files of the extension share: the module's state, errors, and values on their way between
 * Python and the library. Compiled against CPython's limited API alone. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CAMEO_EXT_H
#define CAMEO_EXT_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>

#include "cameo.h"

#include <stdbool.h>

enum { EXT_STATUS_COUNT = 10 };

/* One per interpreter. */
struct ext_state {
    PyObject *errors[EXT_STATUS_COUNT]; /* exceptions by status; [0]: cameo.Error */
    PyObject *value_type, *model_type, *session_type, *trainer_type;
    PyObject *dlpack_name; /* "__dlpack__" */
};

struct ext_state *ext_state(PyObject *module);
struct ext_state *ext_state_of(PyTypeObject *type); /* of a type of ours, or of one derived from it */

/* Raises the exception of err's status with its sentence; returns NULL. */
PyObject *ext_raise(const struct ext_state *state, const struct cameo_error *err);

PyObject *ext_text(struct cameo_text text); /* bytes that are no UTF-8 are replaced */

/* ---- values ---- */

struct ext_value {
    PyObject_HEAD
    struct cameo_value *value;
    PyObject *owner;    /* what the memory belongs to, where it is not the value's; may be NULL */
    Py_ssize_t *shape;  /* for buffers: dims, then strides in bytes */
};

/* Takes value over, also where it fails. */
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

struct ext_model {
    PyObject_HEAD
    struct cameo_model *model;
    PyObject *bytes;    /* what it was loaded from, where that was memory */
    Py_ssize_t users;   /* sessions and trainers: it must not change while there are some */
};

extern PyType_Spec ext_value_spec, ext_model_spec, ext_session_spec, ext_trainer_spec;
PyObject *ext_load(PyObject *module, PyObject *args, PyObject *keywords);

/* Ctrl-C while the library works: a run is cancelled by a signal handler of Python's main thread only
 * after it returns to the interpreter, so a watcher looks for it. */
struct ext_watch {
    struct cameo_cancel *cancel;
};

#endif
