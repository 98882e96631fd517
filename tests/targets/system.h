/* What a program without a C library asks of Linux: text goes out, and it ends. */
// SPDX-License-Identifier: Apache-2.0
#ifndef TESTS_TARGETS_SYSTEM_H
#define TESTS_TARGETS_SYSTEM_H

#include <stddef.h>

#if defined(__x86_64__)
enum { SYSTEM_WRITE = 1, SYSTEM_EXIT = 231 };

static long system_call(long number, long a, long b, long c)
{
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
    return result;
}

#elif defined(__aarch64__)
enum { SYSTEM_WRITE = 64, SYSTEM_EXIT = 94 };

static long system_call(long number, long a, long b, long c)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;

    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
}

#elif defined(__riscv)
enum { SYSTEM_WRITE = 64, SYSTEM_EXIT = 94 };

static long system_call(long number, long a, long b, long c)
{
    register long a7 __asm__("a7") = number;
    register long a0 __asm__("a0") = a;
    register long a1 __asm__("a1") = b;
    register long a2 __asm__("a2") = c;

    __asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2) : "memory");
    return a0;
}

#elif defined(__arm__)
enum { SYSTEM_WRITE = 4, SYSTEM_EXIT = 248 };

/* r7 may be the frame pointer of Thumb code, so it is kept. */
static long system_call(long number, long a, long b, long c)
{
    register long r0 __asm__("r0") = a;
    register long r1 __asm__("r1") = b;
    register long r2 __asm__("r2") = c;

    __asm__ volatile("mov r12, r7\n\tmov r7, %3\n\tsvc 0\n\tmov r7, r12"
                     : "+r"(r0)
                     : "r"(r1), "r"(r2), "r"(number)
                     : "r12", "memory");
    return r0;
}
#endif

static void system_put(const void *data, size_t size)
{
    const unsigned char *at = data;

    while (size) {
        const long written = system_call(SYSTEM_WRITE, 1, (long)at, (long)size);

        if (written <= 0)
            system_call(SYSTEM_EXIT, 3, 0, 0);
        at += written;
        size -= (size_t)written;
    }
}

#if defined(__arm__)
/* Names that the ARM's ABI for bare machines has for functions of memory. */
void *memcpy(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);

#define SYSTEM_MEMORY(width)                                                                       \
    void __aeabi_memcpy##width(void *to, const void *from, size_t size);                           \
    void __aeabi_memcpy##width(void *to, const void *from, size_t size)                            \
    {                                                                                              \
        memcpy(to, from, size);                                                                    \
    }                                                                                              \
    void __aeabi_memset##width(void *to, size_t size, int value);                                  \
    void __aeabi_memset##width(void *to, size_t size, int value)                                   \
    {                                                                                              \
        memset(to, value, size);                                                                   \
    }                                                                                              \
    void __aeabi_memclr##width(void *to, size_t size);                                             \
    void __aeabi_memclr##width(void *to, size_t size)                                              \
    {                                                                                              \
        memset(to, 0, size);                                                                       \
    }
SYSTEM_MEMORY()
SYSTEM_MEMORY(4)
SYSTEM_MEMORY(8)

/* Where the compiler's library goes when an integer is divided by 0. */
int raise(int number);
int raise(int number)
{
    return (int)system_call(SYSTEM_EXIT, number, 0, 0);
}
#endif

/* The whole program; the stack is aligned as functions expect it. */
int run_all(void);

void begin(void);
void begin(void)
{
    system_call(SYSTEM_EXIT, run_all(), 0, 0);
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tand $-16, %rsp\n\tcall begin\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n\tb begin\n");
#elif defined(__riscv)
__asm__(".globl _start\n_start:\n\tcall begin\n");
#elif defined(__arm__)
__asm__(".globl _start\n.thumb_func\n_start:\n\tbl begin\n");
#endif

#endif
