# Gradients of the operator cases, run by other runtimes, and what is claimed of kinks. Needs the virtual environment.
# SPDX-License-Identifier: Apache-2.0
file(GLOB GRADIENT_FAMILIES CONFIGURE_DEPENDS LIST_DIRECTORIES true ${TESTS_DIR}/ops/*)
list(FILTER GRADIENT_FAMILIES EXCLUDE REGEX "\\.[a-z]+$")
cameo_add_test(grad/portable slow sh ${TESTS_DIR}/grad/check_portable.sh ${PROJECT_SOURCE_DIR}
               $<TARGET_FILE:run_cases> ${GRADIENT_FAMILIES})
if(TARGET cameo_command)
  cameo_add_test(grad/claims grad sh ${TESTS_DIR}/grad/check_claims.sh ${PROJECT_SOURCE_DIR}
                 $<TARGET_FILE:cameo_command>)
endif()
