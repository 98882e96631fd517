/* Any bytes as a model, checked: whatever the decoder lets through, the checker survives, and says
 * the same twice. */
// SPDX-License-Identifier: Apache-2.0
#include "check/check.h"
#include "onnx/decode.h"
#include "target.h"

struct input {
    struct cm_str bytes;
    struct cm_error err;
};

static void require_sound(const struct cm_findings *findings)
{
    size_t violations = 0;

    fuzz_require(findings->count <= CM_FINDINGS_MAX);
    for (size_t i = 0; i < findings->count; i++) {
        fuzz_require(findings->items[i].place.size && findings->items[i].reason.size);
        fuzz_require(cm_str_is_utf8(findings->items[i].reason));
        violations += findings->items[i].severity == CM_VIOLATION;
    }
    fuzz_require(findings->total > findings->count ? violations <= findings->violations
                                                   : violations == findings->violations);
}

/* In an arena of its own, so that findings of two checks are not held at once. */
static void count_findings(struct cm_guard *guard, const struct cm_model_proto *model,
                           unsigned flags, struct cm_error *err, size_t *count, size_t *violations)
{
    struct cm_arena arena;
    struct cm_findings findings;

    cm_arena_init(&arena, guard);
    fuzz_require(cm_check_model(model, NULL, flags, &arena, &findings, err) == CM_OK);
    require_sound(&findings);
    *count = findings.count;
    *violations = findings.violations;
    cm_arena_release(&arena);
}

static enum cm_status check(struct cm_guard *guard, void *arg)
{
    struct input *const input = arg;
    struct cm_arena arena;
    struct cm_model_proto model = {0};

    cm_arena_init(&arena, guard);
    const enum cm_status status =
        cm_decode(&cm_model_info, input->bytes, &arena, &model, &input->err);
    if (status == CM_OK) {
        size_t plain, plain_violations, strict, strict_violations;

        count_findings(guard, &model, 0, &input->err, &plain, &plain_violations);
        count_findings(guard, &model, CM_CHECK_STRICT, &input->err, &strict, &strict_violations);
        fuzz_require(plain == strict && plain_violations <= strict_violations);
    }
    cm_arena_release(&arena);
    return status;
}

static void run_input(const uint8_t *data, size_t size)
{
    struct input input = {.bytes = {(const char *)data, size}};
    const enum cm_status status = cm_guarded((size_t)256 << 20, &input.err, check, &input);

    fuzz_require(status == CM_OK || input.err.text[0]);
}

const struct fuzz_target fuzz_target = {
    .run = run_input,
    .mutate = mutate_model,
    .most_bytes = 8 * FUZZ_KIB,
    .memory_base = 2 * FUZZ_MIB,
    .memory_per_byte = 1024,
};
