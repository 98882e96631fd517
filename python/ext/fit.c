/* Whole runs, over data sets or batches of Python's, and the checkpoints that they leave. */
// SPDX-License-Identifier: Apache-2.0
#include "training.h"

#include <stdlib.h>
#include <string.h>

/* ---- batches of Python's ---- */

/* A whole run. While it lasts the interpreter lock is not held, but in what it calls back. An
 * exception that comes up there stays set, and ends the run. */
struct run {
    struct ext_trainer *trainer;
    struct ext_state *state;
    PyThreadState *thread;
    PyObject *progress; /* a callable */
    bool raised, kept;  /* kept: memory of a batch, by a kernel */
    struct source {
        struct run *run;
        PyObject *object; /* with begin(epoch, skip) and next() */
        struct ext_feeds feeds;
        PyObject *batch; /* that they are of */
    } training, validation;
};

/* Before anything else computes on this thread. */
static void note_kept(struct run *run)
{
    if (ext_take_kept())
        run->kept = run->training.feeds.kept = run->validation.feeds.kept = true;
}

static void take_lock(struct run *run)
{
    PyEval_RestoreThread(run->thread);
    note_kept(run);
    run->trainer->running = true;
}

/* What was called back went well, or not. */
static bool drop_lock(struct run *run, bool well)
{
    run->raised = run->raised || !well;
    run->trainer->running = false;
    run->thread = PyEval_SaveThread();
    return well;
}

/* The message is not seen: the exception is raised instead. */
static enum cameo_status call_ended(bool well)
{
    return well ? CAMEO_OK : CAMEO_CANCELLED;
}

static enum cameo_status begin_epoch(void *arg, uint64_t epoch, int64_t skip,
                                     struct cameo_error *err)
{
    struct source *source = arg;

    (void)err;
    if (source->run->raised)
        return CAMEO_CANCELLED;
    take_lock(source->run);
    PyObject *done = PyObject_CallMethod(source->object, "begin", "KL", (unsigned long long)epoch,
                                         (long long)skip);
    Py_XDECREF(done);
    return call_ended(drop_lock(source->run, done != NULL));
}

static void drop_batch(struct source *source)
{
    ext_feeds_end(&source->feeds);
    Py_CLEAR(source->batch);
}

/* next() gives (rows, feeds), or None at the end of an epoch. */
static bool take_batch(struct source *source, int64_t *rows)
{
    PyObject *batch = PyObject_CallMethod(source->object, "next", NULL), *feeds;
    long long count = 0;
    bool well = batch != NULL;

    drop_batch(source); /* not before: the next one may be made of it */
    if (batch && batch != Py_None)
        well =
            PyTuple_Check(batch) && PyArg_ParseTuple(batch, "LO", &count, &feeds) &&
            ext_feeds_for(source->run->state, feeds, &source->run->trainer->inputs, &source->feeds);
    if (batch && !well && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "a batch is a tuple of a number of rows and a dict");
    source->batch = batch;
    *rows = count;
    return well;
}

static enum cameo_status next_batch(void *arg, const struct cameo_feed **feeds, size_t *count,
                                    int64_t *rows, struct cameo_error *err)
{
    struct source *source = arg;

    (void)err;
    if (source->run->raised)
        return CAMEO_CANCELLED;
    take_lock(source->run);
    const bool well = drop_lock(source->run, take_batch(source, rows));
    *feeds = source->feeds.feeds;
    *count = (size_t)source->feeds.count;
    return call_ended(well);
}

/* ---- the run ---- */

static PyObject *or_none(PyObject *item, bool there)
{
    if (there)
        return item;
    Py_INCREF(Py_None);
    return Py_None;
}

/* progress(moment, step, steps, epoch, loss, scalars, means, measure, best, best loss, checkpoint);
 * False ends the run. */
static bool tell(struct run *run, const struct cameo_progress *p)
{
    const struct cameo_trainer *trainer = run->trainer->trainer;
    PyObject *scalars = ext_scalars(trainer, p->scalars), *means = ext_scalars(trainer, p->means);
    PyObject *measure = or_none(p->measure ? ext_measure(p->measure) : NULL, p->measure != NULL);
    PyObject *answer = NULL;

    if (scalars && means && measure)
        answer = PyObject_CallFunction(
            run->progress, "iKKKdOOOOdz", (int)p->moment, (unsigned long long)p->step,
            (unsigned long long)p->steps, (unsigned long long)p->epoch, p->loss, scalars, means,
            measure, p->best ? Py_True : Py_False, p->best_loss, p->checkpoint);
    Py_XDECREF(scalars);
    Py_XDECREF(means);
    Py_XDECREF(measure);
    run->raised = run->raised || !answer;
    const bool goes_on = answer && answer != Py_False;
    Py_XDECREF(answer);
    return goes_on;
}

static bool pass_on(void *arg, const struct cameo_progress *progress)
{
    struct run *run = arg;

    if (run->raised)
        return false;
    take_lock(run);
    const bool goes_on = tell(run, progress);
    (void)drop_lock(run, true);
    return goes_on;
}

struct run_options {
    struct cameo_loop_options loop;
    struct cameo_batches_options batches;
    struct cameo_batch_source source;
    struct cameo_resume_options resuming;
};

static enum cameo_status ask_for_batches(struct run *run, struct source *source,
                                         struct cameo_batch_source from, struct cameo_batches **out,
                                         struct cameo_error *err)
{
    source->run = run;
    from.begin = begin_epoch;
    from.next = next_batch;
    from.arg = source;
    return cameo_batches_from_function(run->trainer->trainer, &from, out, err);
}

static enum cameo_status make_validation(struct run *run, struct ext_data *judge,
                                         const struct run_options *o,
                                         const struct cameo_batches *batches,
                                         struct cameo_batches **out, struct cameo_error *err)
{
    const struct cameo_batch_source source = CAMEO_BATCH_SOURCE_INIT;
    struct cameo_batches_options options = o->batches;

    if (!judge)
        return ask_for_batches(run, &run->validation, source, out, err);
    if (!run->training.object)
        options.batch_size = cameo_batches_size(batches);
    options.shuffle = options.endless = options.prefetch = false;
    options.last = CAMEO_LAST_AUTO;
    return cameo_batches_new(judge->dataset, run->trainer->trainer, &options, out, err);
}

/* Without the interpreter lock. */
static enum cameo_status run_whole(struct run *run, struct ext_data *data, struct ext_data *judge,
                                   struct run_options *o, struct cameo_loop_result *result,
                                   struct cameo_error *err)
{
    struct cameo_batches *batches = NULL, *validation = NULL;
    enum cameo_status status =
        data ? cameo_batches_new(data->dataset, run->trainer->trainer, &o->batches, &batches, err)
             : ask_for_batches(run, &run->training, o->source, &batches, err);

    if (status == CAMEO_OK && (judge || run->validation.object))
        status = make_validation(run, judge, o, batches, &validation, err);
    if (status == CAMEO_OK) {
        o->loop.validation = validation;
        status = cameo_trainer_run(run->trainer->trainer, batches, &o->loop, result, err);
    }
    cameo_batches_free(batches);
    cameo_batches_free(validation);
    return status;
}

/* A Data, or anything with begin and next; None is neither. */
static struct ext_data *data_or_source(struct ext_state *state, PyObject *object,
                                       struct source *source)
{
    if (object != Py_None && PyObject_TypeCheck(object, (PyTypeObject *)state->data_type))
        return (struct ext_data *)object;
    source->object = object == Py_None ? NULL : object;
    return NULL;
}

static PyObject *finish(struct run *run, struct ext_use *use, enum cameo_status status,
                        const struct cameo_loop_result *result, const struct cameo_error *err)
{
    drop_batch(&run->training);
    drop_batch(&run->validation);
    if (run->raised) {
        ext_trainer_leave(run->trainer, use, CAMEO_OK, err);
        return NULL;
    }
    if (!ext_trainer_leave(run->trainer, use, status, err))
        return NULL;
    return Py_BuildValue(
        "(dddOOKK)", result->loss, result->first_loss, result->best_loss,
        result->stopped ? Py_True : Py_False, result->out_of_patience ? Py_True : Py_False,
        (unsigned long long)result->best_step, (unsigned long long)result->best_epoch);
}

static const char *path_of(PyObject *bytes)
{
    return bytes ? PyBytes_AsString(bytes) : NULL;
}

/* A path or None; *out is a new reference, or NULL. */
static int take_path(PyObject *object, void *out)
{
    if (object == NULL) { /* others failed: it is to be dropped */
        Py_CLEAR(*(PyObject **)out);
        return 1;
    }
    if (object == Py_None)
        return 1;
    return PyUnicode_FSConverter(object, out) ? Py_CLEANUP_SUPPORTED : 0;
}

/* run(trainer, data, progress, **options): (loss, first loss, best loss, stopped, out of
 * patience, best step, best epoch) */
static PyObject *run(PyObject *module, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"trainer",  "data",       "progress",  "epochs",     "steps",
                            "validate", "patience",   "best",      "checkpoint", "checkpoint_every",
                            "resume",   "keep",       "anyway",    "batch_size", "shuffle",
                            "seed",     "last",       "raw_bytes", "target",     "batches",
                            "samples",  "conditions", NULL};
    struct ext_state *state = ext_state(module);
    struct run_options o = {CAMEO_LOOP_OPTIONS_INIT, CAMEO_BATCHES_OPTIONS_INIT,
                            CAMEO_BATCH_SOURCE_INIT, CAMEO_RESUME_OPTIONS_INIT};
    struct cameo_loop_result result = CAMEO_LOOP_RESULT_INIT;
    struct run whole = {.state = state};
    struct ext_use use;
    struct cameo_findings *findings = NULL;
    struct cameo_error err;
    PyObject *object, *data, *judge = Py_None, *best = NULL, *folder = NULL;
    unsigned long long epochs = 0, steps = 0, patience = 0, every = 0, keep = 0, seed = 0;
    long long size = 0, batches = 0, samples = 0;
    int resume = 0, anyway = 0, shuffle = 0, last = CAMEO_LAST_AUTO, raw = 0;
    enum cameo_status status;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OOO|$KKOKO&O&KpKpLpKipzLLz", names, &object,
                                     &data, &whole.progress, &epochs, &steps, &judge, &patience,
                                     take_path, &best, take_path, &folder, &every, &resume, &keep,
                                     &anyway, &size, &shuffle, &seed, &last, &raw,
                                     &o.batches.target, &batches, &samples, &o.source.conditions))
        return NULL;
    whole.trainer = ext_trainer_of(state, object);
    if (!whole.trainer || !ext_trainer_enter(whole.trainer, true, &use)) {
        Py_XDECREF(best);
        Py_XDECREF(folder);
        return NULL;
    }
    struct ext_data *set = data_or_source(state, data, &whole.training);
    struct ext_data *judged = data_or_source(state, judge, &whole.validation);
    o.loop.epochs = epochs;
    o.loop.steps = steps;
    o.loop.further = true;
    o.loop.patience = patience;
    o.loop.best = path_of(best);
    o.loop.checkpoint = path_of(folder);
    o.loop.checkpoint_every = every;
    o.loop.resume = resume;
    o.loop.keep = keep;
    o.resuming.anyway = anyway;
    o.loop.resuming = &o.resuming;
    o.loop.progress = pass_on;
    o.loop.progress_arg = &whole;
    o.batches.batch_size = size;
    o.batches.shuffle = shuffle;
    o.batches.seed = seed;
    o.batches.last = (enum cameo_last_batch)last;
    o.batches.endless = steps > 0;
    o.batches.prefetch = true;
    o.batches.raw_bytes = raw;
    o.batches.findings = o.loop.findings = &findings;
    o.source.batches = batches;
    o.source.samples = samples;
    whole.thread = PyEval_SaveThread();
    status = run_whole(&whole, set, judged, &o, &result, &err);
    PyEval_RestoreThread(whole.thread);
    note_kept(&whole);
    ext_data_kept(set, whole.kept);
    ext_data_kept(judged, whole.kept);
    Py_XDECREF(best);
    Py_XDECREF(folder);
    use.findings = findings;
    PyObject *out = finish(&whole, &use, status, &result, &err);
    cameo_findings_free(findings);
    return out;
}

/* ---- checkpoints as files ---- */

/* Notes as they come: key, 0, value, 0. */
static void take_note(void *arg, const char *key, const char *value)
{
    struct ext_pieces *pieces = arg;

    if (ext_take_piece(pieces, key, strlen(key) + 1) == 0)
        (void)ext_take_piece(pieces, value, strlen(value) + 1);
}

/* checkpoint_notes(path): a dict */
static PyObject *checkpoint_notes(PyObject *module, PyObject *object)
{
    struct ext_pieces pieces = {0};
    struct cameo_error err;
    PyObject *path = NULL;
    enum cameo_status status;

    if (!PyUnicode_FSConverter(object, &path))
        return NULL;
    const char *text = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_checkpoint_notes(text, take_note, &pieces, &err);
    Py_END_ALLOW_THREADS;
    Py_DECREF(path);
    PyObject *dict = status == CAMEO_OK ? PyDict_New() : ext_raise(ext_state(module), &err);
    for (size_t at = 0; dict && at < pieces.size;) {
        const char *key = pieces.bytes + at, *value = key + strlen(key) + 1;
        PyObject *made = ext_text((struct cameo_text){value, strlen(value)});

        if (!made || PyDict_SetItemString(dict, key, made) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(made);
        at += strlen(key) + strlen(value) + 2;
    }
    free(pieces.bytes);
    return dict;
}

/* checkpoint_newest(folder): a path, or None */
static PyObject *checkpoint_newest(PyObject *module, PyObject *object)
{
    char newest[8192];
    struct cameo_error err;
    PyObject *folder = NULL;
    enum cameo_status status;

    if (!PyUnicode_FSConverter(object, &folder))
        return NULL;
    const char *text = PyBytes_AsString(folder);
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_checkpoint_newest(text, newest, sizeof newest, &err);
    Py_END_ALLOW_THREADS;
    Py_DECREF(folder);
    if (status != CAMEO_OK)
        return ext_raise(ext_state(module), &err);
    return *newest ? PyUnicode_DecodeFSDefault(newest) : or_none(NULL, false);
}

PyMethodDef ext_fit_functions[] = {
    {"run", (PyCFunction)(void (*)(void))run, METH_VARARGS | METH_KEYWORDS,
     "run(trainer, data, progress, **options): (loss, first loss, best loss, stopped, out of "
     "patience, best step, best epoch)"},
    {"checkpoint_notes", checkpoint_notes, METH_O, "checkpoint_notes(path): a dict"},
    {"checkpoint_newest", checkpoint_newest, METH_O, "checkpoint_newest(folder): a path, or None"},
    {0},
};
