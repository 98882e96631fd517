/* How weights are moved, where a type matters. */
// SPDX-License-Identifier: Apache-2.0
#include "train_case.h"

#include "tensor/half.h"
#include "train/prepare.h"

#include <math.h>

static const char half_line[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"
    "line (float16[n] x) => (float16[n] y) <float16[1] w = {16384}> { y = Mul (x, w) }";

static bool is_near(double actual, double expected)
{
    return fabs(actual - expected) <= 1e-5 * fmax(1, fabs(expected));
}

/* x = 0.0001, w = 2 and t = 1: the gradient is about -0.0002, and a thousandth of its square is
 * nothing in float16. */
static void halves(struct cm_arena *arena)
{
    struct cm_prepare_options options = CM_PREPARE_OPTIONS;
    struct cm_prepare_report report;
    struct cm_trainer_scalar scalars[4];
    struct cm_error err = {0};
    const float number = 1e-4F;
    float target = 1;
    uint16_t x;
    const struct cm_shape shape = CM_SHAPE(1);
    const struct cm_tensor feeds[2] = {cm_tensor_borrow(CM_FLOAT16, &shape, &x),
                                       cm_tensor_borrow(CM_FLOAT, &shape, &target)};
    const struct cm_tensor *in[2];

    options.loss = "mse";
    options.optimizer = "adam";
    options.lr = 0.5;
    cm_narrow_store(CM_FLOAT16, &x, 0, 1, &number);
    struct cm_model_file *file = train_model(arena, half_line);
    CHECK_OK(cm_prepare(arena, file, &options, &report, &err), &err);
    struct cm_trainer *trainer = train_open(arena, file);
    CHECK(cm_trainer_scalar_count(trainer) <= 4);
    for (size_t i = 0; i < 2; i++)
        in[i] = &feeds[cm_str_is(cm_trainer_input(trainer, i)->name, "target")];
    CHECK_OK(cm_trainer_step(trainer, in, scalars, &err), &err);
    CHECK(cm_str_is(scalars[0].name, "loss"));
    CHECK(is_near(scalars[0].value, (2e-4 - 1) * (2e-4 - 1)));
    CHECK(is_near(train_value(trainer, "w", 0), 2.5));
    const int state = cm_trainer_state_find(trainer, CM_STR("w.exp_avg_sq"));
    CHECK_INT(cm_trainer_state(trainer, (size_t)state)->type, CM_FLOAT);
    CHECK(train_value(trainer, "w.exp_avg_sq", 0) > 0);
}

void test_update_rules__float16_is_moved_in_float(void)
{
    check_in_arena(halves);
}
