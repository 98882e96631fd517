# Every command that writes, with each of its system calls on files failing in turn.
# SPDX-License-Identifier: Apache-2.0
if(NOT TARGET cameo_command OR NOT Python3_FOUND OR CMAKE_CROSSCOMPILING OR CAMEO_SANITIZE OR CAMEO_COVERAGE)
  return()
endif()
add_library(fail_call MODULE ${TESTS_DIR}/faults/fail_call.c)
target_compile_options(fail_call PRIVATE -fno-builtin -Wno-missing-prototypes -Wno-missing-declarations)
set_target_properties(fail_call PROPERTIES PREFIX "" C_VISIBILITY_PRESET default LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/faults)
target_link_libraries(fail_call PRIVATE ${CMAKE_DL_LIBS})
add_dependencies(tests fail_call)
cameo_add_test(faults/commands cli ${Python3_EXECUTABLE} ${TESTS_DIR}/faults/run_commands.py $<TARGET_FILE:fail_call>)
