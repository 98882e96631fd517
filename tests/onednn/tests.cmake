# Tests that run again on oneDNN 3.x, which tools/setup.sh fetches, and without oneDNN.
# SPDX-License-Identifier: Apache-2.0
if(NOT TARGET cameo_command OR NOT TARGET unit_backends_test_onednn OR CMAKE_CROSSCOMPILING)
  return()
endif()
set(ONEDNN_3 ${PROJECT_SOURCE_DIR}/build/onednn3/lib/libdnnl.so.3)

# cameo_other_onednn(NAME LABEL COMMAND..)
function(cameo_other_onednn name label)
  cameo_add_test(onednn_3/${name} ${label} sh ${TESTS_DIR}/onednn/with.sh 3 ${ONEDNN_3} ${ARGN})
  cameo_add_test(onednn_none/${name} ${label} sh ${TESTS_DIR}/onednn/with.sh none - ${ARGN})
endfunction()

cameo_other_onednn(backend unit $<TARGET_FILE:unit_backends_test_onednn>)
cameo_other_onednn(late unit $<TARGET_FILE:unit_exec_test_late>)
cameo_other_onednn(networks ops $<TARGET_FILE:cameo_command> test ${TESTS_DIR}/networks
                   --tolerance-scaled 1e-3)
foreach(family conv matmul norm pool)
  cameo_other_onednn(ops_${family} slow $<TARGET_FILE:run_cases> ${TESTS_DIR}/ops/${family})
endforeach()
cameo_other_onednn(suite slow ${VENV_PYTHON} ${TESTS_DIR}/suite/run_suite.py
                   ${TESTS_DIR}/known_failures.txt ${PROJECT_SOURCE_DIR}/build/onnx-suite/node)
set_tests_properties(onednn_3/suite onednn_none/suite PROPERTIES FIXTURES_REQUIRED onnx_suite)
