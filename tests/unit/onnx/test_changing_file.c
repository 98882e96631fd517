/* Decoding a mapped file that another program writes to meanwhile. Any answer is right, but nothing
 * may be stored past what was made room for, which the sanitizers and the heap's own checks see. */
// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "onnx/wire_case.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TOTAL = 2400 };

/* In memory that two processes share: within one, changing what another thread reads is a race that
 * a sanitizer would report, and rightly. */
struct changing {
    char bytes[TOTAL];
    atomic_size_t changes;
};

/* From the end to the start, so that the end changes before a reader gets there; until killed. */
static void keep_changing(struct changing *file, struct cm_str one, struct cm_str two)
{
    for (size_t i = 0;; i++) {
        for (size_t k = TOTAL; k-- > 0;)
            ((volatile char *)file->bytes)[k] = (i % 2 ? two : one).data[k];
        atomic_fetch_add(&file->changes, 1);
    }
}

static enum cm_status decode_once(struct cm_guard *guard, void *arg)
{
    const struct changing *const file = arg;
    struct cm_arena arena;
    struct cm_error err = {0};

    cm_arena_init(&arena, guard);
    struct cm_tensor_proto *const tensor = CM_NEW(&arena, struct cm_tensor_proto);
    const enum cm_status status =
        cm_decode(&cm_tensor_info, (struct cm_str){file->bytes, TOTAL}, &arena, tensor, &err);
    CHECK(status == CM_OK || status == CM_BAD_MODEL || status == CM_LIMIT || status == CM_IO);
    CHECK((status == CM_OK) == (err.text[0] == '\0'));
    cm_arena_release(&arena);
    return CM_OK;
}

static void read_while_changing(struct cm_str one, struct cm_str two)
{
    struct cm_error err = {0};
    struct changing *const file =
        mmap(NULL, sizeof *file, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(file != MAP_FAILED);
    CHECK_INT(one.size, TOTAL);
    CHECK_INT(two.size, TOTAL);
    memcpy(file->bytes, one.data, TOTAL);
    const pid_t writer = fork();
    CHECK(writer >= 0);
    if (writer == 0) {
        alarm(60); /* should the test end before it does */
        keep_changing(file, one, two);
    }
    for (int reads = 0; reads < 500 || atomic_load(&file->changes) < 20; reads++)
        CHECK_OK(cm_guarded(0, &err, decode_once, file), &err);
    CHECK(kill(writer, SIGKILL) == 0);
    CHECK(waitpid(writer, NULL, 0) == writer);
    CHECK(munmap(file, sizeof *file) == 0);
}

/* The same number of bytes as few long or as many short appearances of a field. Whatever holds
 * messages gets one with a field that nobody knows. */
static struct cm_str in_pieces(struct cm_arena *arena, uint32_t field, size_t length)
{
    const struct cm_str piece =
        wire_field(arena, field, wire_repeat(arena, CM_STR("\x78\x01"), (length - 2) / 2));

    CHECK_INT(piece.size, length);
    return wire_repeat(arena, piece, TOTAL / length);
}

static void body_changing(struct cm_arena *arena)
{
    /* dims, float_data, string_data, raw_data, double_data, external_data */
    static const uint32_t fields[] = {1, 4, 6, 9, 10, 13};

    for (size_t i = 0; i < CM_COUNT(fields); i++)
        for (size_t k = 0; k < CM_COUNT(fields); k++)
            read_while_changing(in_pieces(arena, fields[i], 50), in_pieces(arena, fields[k], 10));
}

void test_changing_file__a_file_that_changes_between_passes_corrupts_nothing(void)
{
    check_in_arena(body_changing);
}
