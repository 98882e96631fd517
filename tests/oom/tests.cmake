# Every subcommand with failing allocations, and under limits of memory.
# SPDX-License-Identifier: Apache-2.0
if(NOT TARGET cameo_command OR NOT Python3_FOUND OR CMAKE_CROSSCOMPILING OR CAMEO_SANITIZE OR CAMEO_COVERAGE)
  return()
endif()
add_library(fail_allocation MODULE ${TESTS_DIR}/oom/fail_allocation.c)
target_compile_options(fail_allocation PRIVATE -fno-builtin -Wno-missing-prototypes)
set_target_properties(fail_allocation PROPERTIES PREFIX "" C_VISIBILITY_PRESET default LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/oom)
target_link_libraries(fail_allocation PRIVATE ${CMAKE_DL_LIBS})
add_dependencies(tests fail_allocation)
cameo_add_test(oom/commands cli ${Python3_EXECUTABLE} ${TESTS_DIR}/oom/run_commands.py $<TARGET_FILE:fail_allocation>)
