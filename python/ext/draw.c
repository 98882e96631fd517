/* Pictures of models, as `cameo graph` draws them. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "ext.h"

#include "drawing.h"

#include <setjmp.h>
#include <stdlib.h>

/* Where drawing ends when there is no memory; what it has by then is lost. */
static _Thread_local jmp_buf no_memory;

void *graph_memory(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    if (!memory)
        longjmp(no_memory, 1);
    return memory;
}

void *graph_grow(void *items, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return items;
    *room = *room * 2 + 16;
    items = realloc(items, *room * size);
    if (!items)
        longjmp(no_memory, 1);
    return items;
}

struct picture {
    char *svg;
    size_t size, boxes;
};

/* False when there is no memory. */
static bool draw_model(struct cameo_model *model, const struct cli_texts *folds,
                       struct picture *out)
{
    struct graph_drawing drawing = {.model = model};

    cameo_model_infer(model, NULL, NULL, NULL); /* where it fails, there are fewer shapes */
    if (setjmp(no_memory))
        return false;
    graph_build(&drawing, folds);
    FILE *to = open_memstream(&out->svg, &out->size);
    if (to)
        graph_write_svg(to, &drawing);
    const bool written = to && fclose(to) == 0;
    for (size_t p = 0; p < drawing.panel_count; p++) {
        if (p < drawing.shown)
            out->boxes += drawing.panels[p].vertex_count;
        free(drawing.panels[p].vertices);
        free(drawing.panels[p].edges);
        free(drawing.panels[p].bends);
    }
    free(drawing.panels);
    free(drawing.names);
    return written;
}

/* draw(model, folds): (SVG, number of boxes) */
static PyObject *draw(PyObject *module, PyObject *args)
{
    struct ext_state *state = ext_state(module);
    struct picture picture = {0};
    struct cli_texts folds = {0};
    struct ext_names names;
    PyObject *object, *list, *out = NULL;
    bool drawn;

    if (!PyArg_ParseTuple(args, "OO", &object, &list) || !ext_names(list, &names))
        return NULL;
    const size_t room = sizeof folds.items / sizeof *folds.items;
    if (names.count > room)
        PyErr_Format(PyExc_ValueError, "%zu prefixes are more than %zu", names.count, room);
    for (; folds.count < names.count && folds.count < room; folds.count++)
        folds.items[folds.count] = names.items[folds.count];
    struct ext_model *self = PyErr_Occurred() ? NULL : ext_model_of(state, object);
    struct cameo_model *copy = self ? ext_model_edit(state, self) : NULL;
    if (copy) {
        PyObject *used = ext_model_use(self);
        Py_BEGIN_ALLOW_THREADS;
        drawn = draw_model(copy, &folds, &picture);
        Py_END_ALLOW_THREADS;
        cameo_model_free(copy);
        ext_model_leave(used);
        out = drawn
                  ? Py_BuildValue("(Nn)", ext_text((struct cameo_text){picture.svg, picture.size}),
                                  (Py_ssize_t)picture.boxes)
                  : PyErr_NoMemory();
        free(picture.svg);
    }
    ext_names_end(&names);
    return out;
}

PyMethodDef ext_draw_functions[] = {
    {"draw", draw, METH_VARARGS, "draw(model, folds): (SVG, number of boxes)"},
    {0},
};
