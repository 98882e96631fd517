/* Trains LeNet from a bare object: no C library, no operating system but for one call that writes
 * text and one that ends. The pictures are drawn here: a bright square whose place says which class
 * it is, in noise. run.sh compiles the training step for the board, links this with it and runs it.
 */
// SPDX-License-Identifier: Apache-2.0
#include "lenet.h"

enum { BATCH = 16, EDGE = 28, SQUARE = 6, STEPS = 60 };

static unsigned char state[LENET_STATE_BYTES] __attribute__((aligned(64)));
static unsigned char arena[LENET_ARENA_BYTES];
static float images[BATCH][EDGE][EDGE];
static int64_t labels[BATCH];

/* ---- what a C library would have ---- */

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    unsigned char *t = to;
    const unsigned char *f = from;

    for (size_t i = 0; i < size; i++)
        t[i] = f[i];
    return to;
}

void *memset(void *to, int value, size_t size)
{
    volatile unsigned char *t = to; /* not a call of memset again */

    for (size_t i = 0; i < size; i++)
        t[i] = (unsigned char)value;
    return to;
}

/* Linux takes the number of a call and its arguments in registers. */
#if defined(__riscv)
static long call(long number, long a, long b, long c)
{
    register long a7 __asm__("a7") = number;
    register long a0 __asm__("a0") = a;
    register long a1 __asm__("a1") = b;
    register long a2 __asm__("a2") = c;

    __asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2) : "memory");
    return a0;
}
#else /* aarch64 */
static long call(long number, long a, long b, long c)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;

    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
}
#endif

static void put(const char *text)
{
    size_t size = 0;

    while (text[size])
        size++;
    call(64, 1, (long)text, (long)size);
}

/* Three digits behind the point. */
static void put_number(float number)
{
    char text[16];
    unsigned thousandths = (unsigned)(number * 1000 + 0.5F);
    int at = sizeof text;

    text[--at] = 0;
    for (int digit = 0; digit < 3; digit++, thousandths /= 10)
        text[--at] = (char)('0' + thousandths % 10);
    text[--at] = '.';
    do {
        text[--at] = (char)('0' + thousandths % 10);
        thousandths /= 10;
    } while (thousandths);
    put(text + at);
}

/* ---- pictures ---- */

static unsigned noise(void)
{
    static unsigned seed = 1;

    seed = seed * 1664525 + 1013904223;
    return seed >> 16;
}

static void draw(int which)
{
    const int label = (int)(noise() % 10);
    const int row = label / 4 * 9 + (int)(noise() % 3), column = label % 4 * 6 + (int)(noise() % 3);

    labels[which] = label;
    for (int i = 0; i < EDGE; i++)
        for (int j = 0; j < EDGE; j++) {
            const int inside = i >= row && i < row + SQUARE && j >= column && j < column + SQUARE;

            images[which][i][j] = (float)inside + (float)(noise() % 1000) / 2000;
        }
}

/* ---- training ---- */

static int train(void)
{
    float loss = 0, accuracy = 0;
    double rate = 0;
    struct lenet_tensor inputs[LENET_INPUTS], outputs[LENET_OUTPUTS];

    inputs[LENET_IN_X] = (struct lenet_tensor){images, NULL, sizeof images};
    inputs[LENET_IN_TARGET] = (struct lenet_tensor){labels, NULL, sizeof labels};
    outputs[LENET_OUT_LOSS] = (struct lenet_tensor){&loss, NULL, sizeof loss};
    outputs[LENET_OUT_ACCURACY] = (struct lenet_tensor){&accuracy, NULL, sizeof accuracy};
    outputs[LENET_OUT_LR] = (struct lenet_tensor){&rate, NULL, sizeof rate};
    lenet_initialize(state);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < BATCH; i++)
            draw(i);
        const int code = lenet_step(state, inputs, outputs, arena, sizeof arena);
        if (code) {
            put(lenet_error(code));
            put("\n");
            return 1;
        }
        if (step % 10 == 0 || step == STEPS - 1) {
            put("loss ");
            put_number(loss);
            put(", accuracy ");
            put_number(accuracy);
            put("\n");
        }
    }
    return loss < 0.5F ? 0 : 1;
}

void _start(void);
void _start(void)
{
    call(94, train(), 0, 0);
}
