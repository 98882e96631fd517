/* The part of a compiled model that is the same for all: the caller's tensors are checked, memory
 * is handed out of the arena, outputs whose size was not known are copied out. It is compiled for
 * the target as the end of a source that mlir/lowering/glue.c writes, which declares before it
 *
 *     struct cm_compiled_port inputs[], outputs[]    with the sentences for what does not fit
 *     equal_dims[][4]                                dimensions of one name: input, axis, twice
 *     checks[]                                       the sentences of the program's own checks
 *     N_INPUTS, N_OUTPUTS, N_EQUAL, N_CHECKS, PLANNED_BYTES, WEIGHT_BYTES, WEIGHTS_INSIDE,
 *     STATE_BYTES, CHANGED_BYTES (of it, by a step)
 *     call_main(const struct cm_compiled_call *, cm_index context, void *arena, void *next)
 *
 * and it may use no library: memcpy and memset are all that a compiler makes calls to. */
// SPDX-License-Identifier: Apache-2.0

/* ---- memory inside the arena ----
 *
 * Behind what is planned lie blocks, each with a head of one alignment. Free ones are listed by
 * address, and neighbours are joined. */

struct cm_heap_block {
    size_t size; /* with the head */
    struct cm_heap_block *next;
};

struct cm_run {
    const struct cm_compiled_call *call;
    int status;
    unsigned char *begin, *end;
    struct cm_heap_block *free;
};

void *memcpy(void *to, const void *from, size_t size);

cm_index cm_times(cm_index a, cm_index b);
cm_index cm_allocate(cm_index context, cm_index bytes);
void cm_release(cm_index context, cm_index address);
cm_index cm_require(cm_index context, cm_index holds, cm_index number);
cm_index cm_output(cm_index context, cm_index index, cm_index data, cm_index rank, cm_index shape);

static cm_index number_of(const void *address)
{
    return (cm_index)(uintptr_t)address;
}

static void *address_of(cm_index number)
{
    return (void *)(uintptr_t)number;
}

static size_t round_up(size_t bytes)
{
    return (bytes + CM_COMPILED_ALIGNMENT - 1) & ~(size_t)(CM_COMPILED_ALIGNMENT - 1);
}

/* The size of a buffer, which is the largest number where it is none that can be allocated. */
cm_index cm_times(cm_index a, cm_index b)
{
    if (a == 0 || b == 0)
        return 0;
    return a < 0 || b < 0 || a > INT64_MAX / b ? INT64_MAX : a * b;
}

static void open_heap(struct cm_run *run, unsigned char *begin, unsigned char *end)
{
    run->begin = begin;
    run->end = end;
    run->free = NULL;
    if (end > begin && (size_t)(end - begin) >= 2 * CM_COMPILED_ALIGNMENT) {
        run->free = (struct cm_heap_block *)(void *)begin;
        run->free->size = (size_t)(end - begin) & ~(size_t)(CM_COMPILED_ALIGNMENT - 1);
        run->free->next = NULL;
    }
}

cm_index cm_allocate(cm_index context, cm_index bytes)
{
    struct cm_run *run = address_of(context);
    struct cm_heap_block **at = &run->free;
    size_t need;

    if (bytes >= 0 && bytes <= PTRDIFF_MAX - 3 * CM_COMPILED_ALIGNMENT) {
        need = CM_COMPILED_ALIGNMENT + round_up(bytes ? (size_t)bytes : 1);
        for (; *at; at = &(*at)->next) {
            struct cm_heap_block *block = *at;

            if (block->size < need)
                continue;
            if (block->size - need >= 2 * CM_COMPILED_ALIGNMENT) {
                struct cm_heap_block *rest =
                    (struct cm_heap_block *)(void *)((unsigned char *)block + need);

                rest->size = block->size - need;
                rest->next = block->next;
                block->size = need;
                *at = rest;
            } else {
                *at = block->next;
            }
            return number_of(block) + CM_COMPILED_ALIGNMENT;
        }
    }
    run->status = CM_COMPILED_ARENA;
    return 0;
}

/* Puts two free blocks together where nothing lies between them. */
static void join(struct cm_heap_block *block)
{
    struct cm_heap_block *next = block->next;

    if (next && (unsigned char *)block + block->size == (unsigned char *)next) {
        block->size += next->size;
        block->next = next->next;
    }
}

void cm_release(cm_index context, cm_index address)
{
    struct cm_run *run = address_of(context);
    struct cm_heap_block *block = address_of(address - CM_COMPILED_ALIGNMENT);
    struct cm_heap_block *before = NULL, *after = run->free;

    if (!address)
        return;
    while (after && after < block) {
        before = after;
        after = after->next;
    }
    block->next = after;
    join(block);
    if (before) {
        before->next = block;
        join(before);
    } else {
        run->free = block;
    }
}

/* ---- what the program asks for ---- */

cm_index cm_require(cm_index context, cm_index holds, cm_index number)
{
    struct cm_run *run = address_of(context);

    if (!holds)
        run->status = CM_COMPILED_CHECK + (int)number;
    return holds;
}

/* Bytes of a tensor of this shape; 0 in *ok where that is more than memory has. */
static size_t bytes_of(const int64_t *shape, int32_t rank, int32_t element_bytes, int *ok)
{
    size_t bytes = (size_t)element_bytes;
    int32_t axis;
    int empty = 0;

    for (axis = 0; axis < rank; axis++)
        empty |= shape[axis] == 0;
    for (axis = 0; axis < rank && !empty; axis++)
        if (shape[axis] < 0 || (uint64_t)shape[axis] > (uint64_t)PTRDIFF_MAX / bytes)
            return *ok = 0, (size_t)0;
        else
            bytes *= (size_t)shape[axis];
    return empty ? 0 : bytes;
}

cm_index cm_output(cm_index context, cm_index index, cm_index data, cm_index rank, cm_index shape)
{
    struct cm_run *run = address_of(context);
    const struct cm_compiled_call *call = run->call;
    const struct cm_compiled_port *port = &outputs[index];
    const struct cm_compiled_tensor *out = &call->outputs[index];
    const int64_t *from = address_of(shape);
    int ok = 1;
    const size_t bytes = bytes_of(from, (int32_t)rank, port->element_bytes, &ok);
    void *to = out->data;
    size_t room = out->size;
    cm_index axis;

    if (call->place) {
        to = ok ? call->place(call->place_arg, (size_t)index, from, bytes) : NULL;
        room = to ? bytes : 0;
    } else if (rank) {
        for (axis = 0; out->shape && axis < rank; axis++)
            out->shape[axis] = from[axis];
        ok &= out->shape != NULL;
    }
    if (!ok || bytes > room || (bytes && !to)) {
        run->status = CM_COMPILED_OUTPUT + (int)index;
        return 0;
    }
    if (bytes)
        memcpy(to, address_of(data), bytes);
    return 1;
}

/* ---- a run ---- */

/* Has the tensor the shape that the port declares, and memory for it? */
static int fits(const struct cm_compiled_port *port, const struct cm_compiled_tensor *tensor)
{
    const int64_t *shape = tensor->shape ? tensor->shape : port->dims;
    int32_t axis;
    int ok = tensor->shape || port->is_fixed;

    for (axis = 0; ok && axis < port->rank; axis++)
        ok = shape[axis] >= 0 && (port->dims[axis] < 0 || port->dims[axis] == shape[axis]);
    if (ok) {
        const size_t bytes = bytes_of(shape, port->rank, port->element_bytes, &ok);
        const size_t align = (size_t)port->element_bytes < 16 ? (size_t)port->element_bytes : 16;

        ok &= bytes <= tensor->size && (!bytes || tensor->data) &&
              (uintptr_t)tensor->data % align == 0;
    }
    return ok;
}

static int is_aligned(const void *address)
{
    return address && (uintptr_t)address % CM_COMPILED_ALIGNMENT == 0;
}

static int check(const struct cm_compiled_call *call)
{
    int i;

    if (WEIGHTS_INSIDE == 0 && WEIGHT_BYTES != 0 && !is_aligned(call->weights))
        return CM_COMPILED_WEIGHTS;
    if (STATE_BYTES > 0 && !is_aligned(call->state))
        return CM_COMPILED_STATE;
    for (i = 0; i < N_INPUTS; i++)
        if (!fits(&inputs[i], &call->inputs[i]))
            return CM_COMPILED_INPUT + i;
    for (i = 0; i < N_EQUAL; i++)
        if (call->inputs[equal_dims[i][0]].shape[equal_dims[i][1]] !=
            call->inputs[equal_dims[i][2]].shape[equal_dims[i][3]])
            return CM_COMPILED_INPUT + equal_dims[i][2];
    for (i = 0; i < N_OUTPUTS; i++)
        if (outputs[i].is_fixed && !fits(&outputs[i], &call->outputs[i]))
            return CM_COMPILED_OUTPUT + i;
    return 0;
}

/* The new state of a training step is made in the arena, in front of the rest, and becomes the
 * state when all of it is there: a step that fails changes nothing. */
static int run(const struct cm_compiled_call *call)
{
    struct cm_run now;
    unsigned char *arena = call->arena;
    const size_t skip = (size_t) - (uintptr_t)arena % CM_COMPILED_ALIGNMENT;
    const size_t room = arena && call->arena_bytes > skip ? call->arena_bytes - skip : 0;
    const int wrong = check(call);

    if (wrong)
        return wrong;
    if (room < CHANGED_BYTES + PLANNED_BYTES)
        return CM_COMPILED_ARENA;
    now.call = call;
    now.status = 0;
    open_heap(&now, arena + skip + CHANGED_BYTES + PLANNED_BYTES, arena + skip + room);
    call_main(call, number_of(&now), arena + skip + CHANGED_BYTES, arena + skip);
    if (now.status == 0 && CHANGED_BYTES > 0)
        memcpy(call->state, arena + skip, CHANGED_BYTES);
    return now.status;
}

/* A number as an index of one of the kinds of sentences. */
static const char *error_text(int code)
{
    if (code >= CM_COMPILED_CHECK && code - CM_COMPILED_CHECK < N_CHECKS)
        return checks[code - CM_COMPILED_CHECK];
    if (code >= CM_COMPILED_OUTPUT && code - CM_COMPILED_OUTPUT < N_OUTPUTS)
        return outputs[code - CM_COMPILED_OUTPUT].wrong;
    if (code >= CM_COMPILED_INPUT && code - CM_COMPILED_INPUT < N_INPUTS)
        return inputs[code - CM_COMPILED_INPUT].wrong;
    return code == 0                     ? "it ran"
           : code == CM_COMPILED_ARENA   ? "the arena is too small"
           : code == CM_COMPILED_WEIGHTS ? "the weights are missing or not aligned to 64 bytes"
           : code == CM_COMPILED_STATE   ? "the state is missing or not aligned to 64 bytes"
                                         : "this number is not the result of a run";
}
