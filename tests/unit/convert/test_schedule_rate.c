/* Rates of schedules, beside what the frameworks give. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "convert/schedule.h"

#include <math.h>

static bool is_near(double actual, double expected)
{
    return fabs(actual - expected) <= 1e-12 * fmax(1, fabs(expected));
}

static double rate(struct cm_phase *phases, size_t count, int64_t position)
{
    const struct cm_rate_schedule schedule = {.items = phases, .count = count};

    return cm_schedule_rate(&schedule, 1, 0, position);
}

static const double high[] = {0.4}, low[] = {0.1}, zero[] = {0};

void test_schedule_rate__without_phases_nothing_is_known(void)
{
    CHECK(isnan(rate(NULL, 0, 3)));
}

void test_schedule_rate__a_line_goes_down_and_stays(void)
{
    struct cm_phase phase = {.shape = CM_PHASE_LINEAR, .length = 10, .from = high, .to = low};

    CHECK(is_near(rate(&phase, 1, 0), 0.4));
    CHECK(is_near(rate(&phase, 1, 5), 0.25));
    CHECK(is_near(rate(&phase, 1, 10), 0.1));
    CHECK(is_near(rate(&phase, 1, 99), 0.1));
}

void test_schedule_rate__a_cosine_swings_back_where_pytorch_does(void)
{
    struct cm_phase phase = {.shape = CM_PHASE_COSINE, .length = 10, .from = high, .to = zero};

    CHECK(is_near(rate(&phase, 1, 5), 0.2));
    CHECK(is_near(rate(&phase, 1, 15), 0));
    phase.swings_back = true;
    CHECK(is_near(rate(&phase, 1, 15), 0.2));
}

void test_schedule_rate__powers_and_fractions_go_by_whole_periods_if_stepped(void)
{
    struct cm_phase phase = {.shape = CM_PHASE_EXPONENTIAL,
                             .length = 4,
                             .factor = 0.5,
                             .is_stepped = true,
                             .from = high};

    CHECK(is_near(rate(&phase, 1, 3), 0.4));
    CHECK(is_near(rate(&phase, 1, 9), 0.1));
    phase.is_stepped = false;
    CHECK(is_near(rate(&phase, 1, 2), 0.4 * sqrt(0.5)));
    phase.shape = CM_PHASE_INVERSE;
    CHECK(is_near(rate(&phase, 1, 8), 0.2));
    phase.shape = CM_PHASE_ROOT;
    CHECK(is_near(rate(&phase, 1, 12), 0.2));
}

void test_schedule_rate__a_later_phase_counts_from_its_own_beginning(void)
{
    static const double rates[] = {0.3, 0.2, 0.1};
    struct cm_phase phases[] = {
        {.shape = CM_PHASE_LINEAR, .length = 4, .from = zero, .to = high},
        {.shape = CM_PHASE_POLYNOMIAL,
         .first = 4,
         .length = 4,
         .factor = 2,
         .from = high,
         .to = zero},
        {.shape = CM_PHASE_TABLE, .first = 8, .rates = rates, .n_rates = 3}};

    CHECK(is_near(rate(phases, 3, 3), 0.3));
    CHECK(is_near(rate(phases, 3, 4), 0.4));
    CHECK(is_near(rate(phases, 3, 6), 0.1));
    CHECK(is_near(rate(phases, 3, 9), 0.2));
    CHECK(is_near(rate(phases, 3, 50), 0.1));
}
