/* What stops a call while the library computes: Ctrl-C, and a Cancel of the caller's. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "ext.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of the main thread alone, where Python handles signals; calls may be nested, by way of callbacks.
 * The handler runs on whichever thread the system picks. */
static struct cameo_cancel *own;
static struct cameo_cancel *_Atomic current;
static void (*_Atomic python_handler)(int);
static struct cameo_cancel *_Atomic noted; /* the one that the handler set last */
static int depth;

/* A thread that forks is the main thread of the new process, where nothing is being computed: asked
 * again, in a system call, only then. */
static atomic_uint forks;
static pthread_once_t counting = PTHREAD_ONCE_INIT;
static _Thread_local int known_main = -1;
static _Thread_local unsigned known_at;

static void count_fork(void)
{
    atomic_fetch_add(&forks, 1);
    if (known_main == 1)
        return; /* it goes on with the calls that it is in */
    depth = 0;
    atomic_store(&current, NULL);
}

static void count_forks(void)
{
    pthread_atfork(NULL, NULL, count_fork);
}

static bool is_main_thread(void)
{
    if (known_main < 0 || known_at != atomic_load(&forks)) {
        pthread_once(&counting, count_forks);
        known_at = atomic_load(&forks);
        known_main = syscall(SYS_gettid) == (long)getpid();
    }
    return known_main == 1;
}

static void note(int signal)
{
    struct cameo_cancel *cancel = atomic_load(&current);
    void (*const before)(int) = atomic_load(&python_handler);

    if (cancel) {
        cameo_cancel_set(cancel);
        atomic_store(&noted, cancel);
    }
    if (before)
        before(signal); /* it notes the signal for the interpreter, and does nothing else */
}

/* Nobody's: the process ends, or goes on. With more arguments: not Python's. */
static bool is_pythons(const struct sigaction *action)
{
    return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN &&
           !(action->sa_flags & SA_SIGINFO);
}

/* Two system calls for each run, which is what most of a small one's time would go to. */
static void arm(struct ext_watch *watch)
{
    const struct sigaction ours = {.sa_handler = note, .sa_flags = SA_ONSTACK};

    if (!atomic_load(&python_handler)) {
        if (sigaction(SIGINT, NULL, &watch->before) != 0 || !is_pythons(&watch->before))
            return;
        atomic_store(&python_handler, watch->before.sa_handler);
    }
    if (sigaction(SIGINT, &ours, &watch->before) != 0)
        return;
    watch->armed = is_pythons(&watch->before);
    if (watch->before.sa_handler == note) /* left by a thread that was not forked */
        watch->before.sa_handler = atomic_load(&python_handler);
    if (watch->armed)
        atomic_store(&python_handler, watch->before.sa_handler);
    else
        sigaction(SIGINT, &watch->before, NULL);
}

void ext_watch_begin_with(struct ext_watch *watch, struct cameo_cancel *cancel)
{
    watch->cancel = cancel;
    watch->armed = false;
    watch->is_callers = cancel != NULL;
    watch->is_main = is_main_thread();
    if (!watch->is_main)
        return;
    if (!own && cameo_cancel_new(&own, NULL) != CAMEO_OK)
        own = NULL; /* then Ctrl-C waits for the end of the call */
    if (depth++ == 0 && own)
        cameo_cancel_clear(own);
    if (!cancel)
        watch->cancel = own;
    watch->outer = atomic_exchange(&current, watch->cancel);
    if (depth == 1)
        arm(watch);
}

void ext_watch_begin(struct ext_watch *watch)
{
    ext_watch_begin_with(watch, NULL);
}

bool ext_watch_end(struct ext_watch *watch, enum cameo_status status)
{
    if (!watch->is_main)
        return false;
    depth--;
    if (watch->armed) {
        struct sigaction now;
        if (sigaction(SIGINT, &watch->before, &now) == 0 && now.sa_handler != note)
            sigaction(SIGINT, &now, NULL); /* a callback set one of its own */
    }
    atomic_store(&current, watch->outer);
    /* What a signal set is not the caller's wish, and may have come too late to be noticed. */
    struct cameo_cancel *by_signal = watch->cancel;
    if (watch->is_callers && atomic_compare_exchange_strong(&noted, &by_signal, NULL))
        cameo_cancel_clear(watch->cancel);
    return status == CAMEO_CANCELLED && PyErr_CheckSignals() < 0;
}

/* ---- the caller's ---- */

struct ext_cancel {
    PyObject_HEAD struct cameo_cancel *cancel;
};

static PyObject *cancel_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    struct cameo_error err;
    struct cameo_cancel *cancel;

    if ((args && PyTuple_Size(args)) || (keywords && PyDict_Size(keywords))) {
        PyErr_SetString(PyExc_TypeError, "Cancel takes no arguments");
        return NULL;
    }
    if (cameo_cancel_new(&cancel, &err) != CAMEO_OK)
        return ext_raise(ext_state_of(type), &err);
    const allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct ext_cancel *self = (struct ext_cancel *)alloc(type, 0);
    if (!self) {
        cameo_cancel_free(cancel);
        return NULL;
    }
    self->cancel = cancel;
    return (PyObject *)self;
}

static void cancel_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    cameo_cancel_free(((struct ext_cancel *)object)->cancel);
    release(object);
    Py_DECREF(type);
}

static PyObject *cancel_set(PyObject *object, PyObject *unused)
{
    (void)unused;
    cameo_cancel_set(((struct ext_cancel *)object)->cancel);
    Py_RETURN_NONE;
}

static PyObject *cancel_clear(PyObject *object, PyObject *unused)
{
    (void)unused;
    cameo_cancel_clear(((struct ext_cancel *)object)->cancel);
    Py_RETURN_NONE;
}

bool ext_cancel_of(struct ext_state *state, PyObject *object, struct cameo_cancel **out)
{
    *out = NULL;
    if (object == Py_None)
        return true;
    if (!PyObject_TypeCheck(object, (PyTypeObject *)state->cancel_type)) {
        PyErr_SetString(PyExc_TypeError, "cancel is a cameo.Cancel or None");
        return false;
    }
    *out = ((struct ext_cancel *)object)->cancel;
    return true;
}

static PyMethodDef cancel_methods[] = {
    {"set", cancel_set, METH_NOARGS, "Runs that were given it end with CancelledError."},
    {"clear", cancel_clear, METH_NOARGS, "It may serve again."},
    {0},
};

static PyType_Slot cancel_slots[] = {
    {Py_tp_doc, "Stops runs from another thread: Session.run(.., cancel=it), then it.set()."},
    {Py_tp_new, cancel_new},
    {Py_tp_dealloc, cancel_dealloc},
    {Py_tp_methods, cancel_methods},
    {0, NULL},
};

PyType_Spec ext_cancel_spec = {"cameo.Cancel", sizeof(struct ext_cancel), 0, Py_TPFLAGS_DEFAULT,
                               cancel_slots};
