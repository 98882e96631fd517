#!/bin/sh
# Runs make targets one after the other and adds up their counts: tools/sum_steps.sh TARGET...
# SPDX-License-Identifier: Apache-2.0
#
# Each target ends with `N passed, N failed`. One that ends badly without such a line, or with
# nothing failed in it, counts as one failed. A target that fails does not keep the next from running.
set -u
cd "$(dirname "$0")/.." || exit 3
mkdir -p build/steps

passed=0
failed=0
summary=
failures=
for step in "$@"; do
    log=build/steps/$step.log
    echo "==== make $step"
    started=$(date +%s)
    {
        ${MAKE:-make} --no-print-directory "$step" 2>&1
        echo $? >"build/steps/$step.status"
    } | tee "$log"
    counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1)
    step_passed=0
    step_failed=0
    if [ -n "$counts" ]; then
        step_passed=${counts%% *}
        step_failed=${counts#*, }
        step_failed=${step_failed%% *}
    fi
    if [ "$(cat "build/steps/$step.status")" -ne 0 ] && [ "$step_failed" -eq 0 ]; then
        step_failed=1
    fi
    passed=$((passed + step_passed))
    failed=$((failed + step_failed))
    # What failed, again at the end, where whoever looks at the last lines finds it.
    if [ "$step_failed" -ne 0 ]; then
        failures="$failures$(grep -E '^(FAIL|fail|---- )' "$log" | sed "s/^/$step: /" | tail -n 20)
"
    fi
    summary="$summary$step: $step_passed passed, $step_failed failed, $(($(date +%s) - started)) s
"
done

echo "===="
printf '%s' "$failures$summary"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
