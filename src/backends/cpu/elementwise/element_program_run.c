/* Running the program of a region block by block. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/elementwise/element_program.h"

#include "base/parallel.h"
#include "tensor/finite.h"
#include "tensor/half.h"

enum { PIECE = 1 << 14 }; /* elements worth a thread */

/* What one thread works with, and where it is. */
struct lane {
    const struct cm_element_program *program;
    const struct cm_call *call;
    int64_t at[CM_ELEMENT_VALUES];     /* by source: where its run begins */
    int64_t done, to;                  /* where the block begins, in the run and in the result */
    char *elements[CM_ELEMENT_VALUES]; /* by value */
    double singles[CM_ELEMENT_VALUES];
    _Alignas(64) char blocks[CM_ELEMENT_BYTES];
    _Alignas(64) char periods[CM_PERIOD_BYTES];
    _Alignas(64) char stored[CM_ELEMENT_BLOCK * sizeof(float)]; /* elements as tensors have them */
};

static const char *data_of(const struct lane *lane, const struct cm_element_source *source)
{
    return source->constant ? source->constant->data : lane->call->in[source->operand]->data;
}

/* ---- loading ---- */

/* One element, repeated; the compiler sees stores of one width. */
#define FILL(type)                                                                                 \
    static void fill_##type(char *to, const char *from, int64_t count)                             \
    {                                                                                              \
        type one, *all = (type *)(void *)to;                                                       \
        memcpy(&one, from, sizeof one);                                                            \
        for (int64_t i = 0; i < count; i++)                                                        \
            all[i] = one;                                                                          \
    }
FILL(uint8_t)
FILL(uint16_t)
FILL(uint32_t)
FILL(uint64_t)

static void copy_run(char *to, const char *from, int64_t step, int64_t count, size_t width)
{
    if (step)
        memcpy(to, from, (size_t)count * width);
    else if (width == sizeof(uint32_t))
        fill_uint32_t(to, from, count);
    else if (width == sizeof(uint64_t))
        fill_uint64_t(to, from, count);
    else if (width == sizeof(uint16_t))
        fill_uint16_t(to, from, count);
    else
        fill_uint8_t(to, from, count);
}

/* count elements of a source that repeats, from place `to` of the result on, in its order. */
static void gather(const struct cm_walk *walk, const char *from, int64_t to, int64_t count,
                   size_t width, char *out)
{
    int64_t index[CM_MAX_RANK], at, begin = to % walk->run;
    cm_walk_seek(walk, to / walk->run, index, &at);
    while (count > 0) {
        const int64_t n = walk->run - begin < count ? walk->run - begin : count;
        copy_run(out, from + (size_t)(at + begin * walk->step[0]) * width, walk->step[0], n, width);
        out += (size_t)n * width;
        count -= n;
        begin = 0;
        cm_walk_next(walk, index, &at);
    }
}

/* What repeats, as often as a block needs it wherever in a period it begins. */
static void fill_periods(struct lane *lane)
{
    const struct cm_element_program *program = lane->program;
    for (int v = 0; v < program->n_values; v++) {
        const struct cm_element_value *value = &program->values[v];
        if (value->place != CM_IN_PERIODS)
            continue;
        const struct cm_element_source *source = &program->sources[value->source];
        const size_t width = cm_dtype_size(value->type), period = (size_t)source->period * width;
        const size_t all = period + (size_t)program->block * width;
        char *to = lane->periods + value->at;
        memcpy(to, data_of(lane, source), period);
        for (size_t done = period, n; done < all; done += n) {
            n = all - done < done ? all - done : done;
            memcpy(to + done, to, n);
        }
    }
}

static void load(struct lane *lane, int v, int64_t count)
{
    const struct cm_element_value *value = &lane->program->values[v];
    const struct cm_element_source *source = &lane->program->sources[value->source];
    const char *from = data_of(lane, source);
    const size_t width = cm_dtype_size(value->type);
    int64_t at = lane->at[value->source];
    if (value->level == CM_EACH_BLOCK)
        at += lane->done;
    if (source->gather) {
        gather(source->gather, from, lane->to, count, width,
               value->narrow ? lane->stored : lane->elements[v]);
        from = lane->stored;
        at = 0;
    }
    if (value->narrow)
        cm_narrow_load(value->type, from, at, count, (float *)(void *)lane->elements[v]);
}

/* ---- computing ---- */

/* What every operator does with narrow results: to their type, and back for those who read them. */
static void round_narrow(struct lane *lane, const struct cm_element_instruction *what,
                         int64_t count)
{
    const struct cm_element_value *value = &lane->program->values[what->value];
    float *floats = (float *)(void *)lane->elements[what->value];
    void *to = lane->stored;
    int64_t at = 0;
    if (value->output >= 0) {
        to = lane->call->out[value->output]->data;
        at = lane->to;
    }
    cm_narrow_store(value->type, to, at, count, floats);
    if (what->is_read)
        cm_narrow_load(value->type, to, at, count, floats);
}

static void run_instruction(struct lane *lane, const struct cm_element_instruction *what,
                            int64_t count)
{
    const void *in[CM_ELEMENT_OPERANDS];
    if (!what->loop.run) {
        load(lane, what->value, count);
        return;
    }
    for (int i = 0; i < what->n_in; i++)
        in[i] = what->in[i] < 0 ? NULL : lane->elements[what->in[i]];
    const struct cm_elements elements = {.count = count,
                                         .n_in = what->n_in,
                                         .in = in,
                                         .step = what->step,
                                         .out = lane->elements[what->value]};
    what->loop.run(&what->loop, &elements);
    if (lane->program->values[what->value].narrow)
        round_narrow(lane, what, count);
}

/* Finds what is read and written in place, then computes all values of one level. */
static void run_level(struct lane *lane, enum cm_element_level level, int64_t count)
{
    const struct cm_element_program *program = lane->program;
    for (int v = 0; v < program->n_values; v++) {
        const struct cm_element_value *value = &program->values[v];
        const size_t width = cm_dtype_size(value->type);
        if (value->level != level)
            continue;
        if (value->place == CM_AT_OPERAND)
            lane->elements[v] =
                (char *)(uintptr_t)data_of(lane, &program->sources[value->source]) +
                (size_t)(lane->at[value->source] + (level == CM_EACH_BLOCK ? lane->done : 0)) *
                    width;
        else if (value->place == CM_IN_PERIODS)
            lane->elements[v] = lane->periods + value->at +
                                (size_t)(lane->to % program->sources[value->source].period) * width;
        else if (value->place == CM_AT_OUTPUT)
            lane->elements[v] =
                (char *)lane->call->out[value->output]->data + (size_t)lane->to * width;
    }
    for (int k = 0; k < program->n_instructions; k++)
        if (program->values[program->instructions[k].value].level == level)
            run_instruction(lane, &program->instructions[k], count);
}

static void place_registers(struct lane *lane)
{
    const struct cm_element_program *program = lane->program;
    for (int v = 0; v < program->n_values; v++) {
        const struct cm_element_value *value = &program->values[v];
        if (value->place == CM_IN_BLOCKS)
            lane->elements[v] = lane->blocks + value->at * (size_t)program->block;
        else if (value->place == CM_IN_SINGLES)
            lane->elements[v] = (char *)&lane->singles[value->at];
    }
}

/* ---- walking ---- */

/* Runs are cut into pieces; pieces are counted through all runs. */
static int64_t pieces_per_run(const struct cm_walk *walk)
{
    return walk->run / PIECE + (walk->run % PIECE != 0);
}

/* Were all floats of the block that was computed last finite? */
static bool block_is_finite(const struct lane *lane, int64_t count)
{
    bool finite = true;
    for (int v = 0; v < lane->program->n_values; v++) {
        const struct cm_element_value *value = &lane->program->values[v];
        if (value->output < 0)
            continue;
        const char *written = (const char *)lane->call->out[value->output]->data +
                              (size_t)(lane->to - count) * cm_dtype_size(value->type);
        finite = finite && cm_elements_are_finite(value->type, written, count);
    }
    return finite;
}

/* Pieces of runs from begin to end. */
static bool run_some(const struct cm_element_program *program, const struct cm_call *call,
                     int64_t begin, int64_t end, bool check)
{
    const struct cm_walk *walk = program->walk;
    const int64_t per_run = pieces_per_run(walk);
    int64_t index[CM_MAX_RANK], piece = begin % per_run;
    bool finite = true;
    struct lane lane;

    lane.program = program;
    lane.call = call;
    lane.to = begin / per_run * walk->run + piece * PIECE;
    cm_walk_seek(walk, begin / per_run, index, lane.at);
    place_registers(&lane);
    fill_periods(&lane);
    run_level(&lane, CM_ONCE, 1);
    for (int64_t p = begin; p < end; p++) {
        const int64_t stop = (piece + 1) * PIECE < walk->run ? (piece + 1) * PIECE : walk->run;
        if (piece == 0 || p == begin)
            run_level(&lane, CM_EACH_RUN, 1);
        for (lane.done = piece * PIECE; lane.done < stop;) {
            const int64_t left = stop - lane.done;
            const int64_t count = left < program->block ? left : program->block;
            run_level(&lane, CM_EACH_BLOCK, count);
            lane.done += count;
            lane.to += count;
            if (check)
                finite = block_is_finite(&lane, count) && finite;
        }
        if (++piece == per_run) {
            piece = 0;
            cm_walk_next(walk, index, lane.at);
        }
    }
    return finite;
}

/* Runs that are short go together, as many as are worth a thread. */
static int64_t together(const struct cm_walk *walk)
{
    return walk->run < PIECE ? PIECE / walk->run : 1;
}

static int64_t count_all(const struct cm_walk *walk)
{
    return walk->count ? walk->count / walk->run * pieces_per_run(walk) : 0;
}

int64_t cm_element_program_pieces(const struct cm_element_program *program)
{
    const struct cm_walk *walk = program->walk;
    return walk->count ? (count_all(walk) - 1) / together(walk) + 1 : 0;
}

bool cm_element_program_run_pieces(const struct cm_element_program *program,
                                   const struct cm_call *call, int64_t begin, int64_t end,
                                   bool check)
{
    const int64_t all = count_all(program->walk), grain = together(program->walk);
    return run_some(program, call, begin * grain, end * grain < all ? end * grain : all, check);
}

struct job {
    const struct cm_element_program *program;
    const struct cm_call *call;
};

static void run_chunk(void *arg, int64_t begin, int64_t end)
{
    const struct job *job = arg;
    (void)cm_element_program_run_pieces(job->program, job->call, begin, end, false);
}

void cm_element_program_run(const struct cm_element_program *program, const struct cm_call *call)
{
    struct job job = {program, call};
    cm_parallel(cm_element_program_pieces(program), 1, run_chunk, &job);
}
