# ONNX's own backend test cases, made once per version of the onnx package and shared by all presets.
# SPDX-License-Identifier: Apache-2.0
set(ONNX_SUITE ${PROJECT_SOURCE_DIR}/build/onnx-suite)

# The virtual environment may appear after configuring, so it is looked for when the test runs.
cameo_add_test(suite/make suite sh ${TESTS_DIR}/suite/make.sh ${PROJECT_SOURCE_DIR} ${ONNX_SUITE})
set_tests_properties(suite/make PROPERTIES FIXTURES_SETUP onnx_suite)

add_executable(suite_roundtrip ${TESTS_DIR}/suite/roundtrip.c)
target_include_directories(suite_roundtrip PRIVATE ${PROJECT_SOURCE_DIR}/src ${GENERATED})
target_link_libraries(suite_roundtrip PRIVATE cameo_flags cameo_static)
set_target_properties(suite_roundtrip PROPERTIES OUTPUT_NAME roundtrip RUNTIME_OUTPUT_DIRECTORY
                                                 ${CMAKE_BINARY_DIR}/suite)
add_dependencies(tests suite_roundtrip)

# 1,884 node cases and 149 stored ones at onnx 1.23.1.
cameo_add_test(suite/roundtrip suite $<TARGET_FILE:suite_roundtrip> 2033 ${ONNX_SUITE})
set_tests_properties(suite/roundtrip PROPERTIES FIXTURES_REQUIRED onnx_suite)

# The command runs ONNX's own cases; its closing line counts them. What is known to fail is listed, with the reason, in tests/known_failures.txt.
function(cameo_suite name)
  cameo_add_test(suite/${name} suite ${VENV_PYTHON} ${TESTS_DIR}/suite/run_suite.py ${TESTS_DIR}/known_failures.txt ${ARGN})
  set_tests_properties(suite/${name} PROPERTIES FIXTURES_REQUIRED onnx_suite)
endfunction()
cameo_suite(node ${ONNX_SUITE}/node)
if(CMAKE_CROSSCOMPILING) # what needs libraries of that processor is left out
  cameo_suite(sample --half-without image_decoder ${ONNX_SUITE}/node)
  set_tests_properties(suite/sample PROPERTIES LABELS sample)
endif()
cameo_suite(node_expanded --expanded ${ONNX_SUITE}/node)
cameo_suite(node_core --core ${ONNX_SUITE}/node)
# Nobody declares a shape: what cannot do without would fail here.
cameo_suite(node_dims_erased --erase dims ${ONNX_SUITE}/node)
cameo_suite(node_ranks_erased --erase ranks ${ONNX_SUITE}/node)
# What is inferred is what a run gives. A process for each case, so not under sanitizers.
if(NOT CAMEO_SANITIZE)
  cameo_add_test(suite/inferred suite ${VENV_PYTHON} ${TESTS_DIR}/suite/inferred_shapes.py $<TARGET_FILE:cameo_command> ${ONNX_SUITE})
  set_tests_properties(suite/inferred PROPERTIES FIXTURES_REQUIRED onnx_suite COST 100)
endif()
cameo_suite(stored ${ONNX_SUITE}/simple ${ONNX_SUITE}/pytorch-operator ${ONNX_SUITE}/pytorch-converted)
cameo_suite(light --tolerance-scaled 1e-3 ${ONNX_SUITE}/light)

# One network at five opsets, and every older operator version.
cameo_add_test(suite/make_opsets suite sh ${TESTS_DIR}/suite/make_judged.sh ${PROJECT_SOURCE_DIR} make_opset_cases.py
               ${CMAKE_BINARY_DIR}/opset-cases)
set_tests_properties(suite/make_opsets PROPERTIES FIXTURES_SETUP opset_cases)
cameo_add_test(suite/opsets suite ${VENV_PYTHON} ${TESTS_DIR}/suite/run_suite.py ${TESTS_DIR}/known_failures.txt ${CMAKE_BINARY_DIR}/opset-cases)
set_tests_properties(suite/opsets PROPERTIES FIXTURES_REQUIRED opset_cases)
cameo_add_test(suite/make_upgrades suite sh ${TESTS_DIR}/suite/make_judged.sh ${PROJECT_SOURCE_DIR} make_upgrade_cases.py
               ${CMAKE_BINARY_DIR}/upgrade-cases)
set_tests_properties(suite/make_upgrades PROPERTIES FIXTURES_SETUP upgrade_cases)
cameo_add_test(suite/upgrades suite ${VENV_PYTHON} ${TESTS_DIR}/suite/run_suite.py ${TESTS_DIR}/known_failures.txt ${CMAKE_BINARY_DIR}/upgrade-cases)
set_tests_properties(suite/upgrades PROPERTIES FIXTURES_REQUIRED upgrade_cases)
# The same cases, converted to the newest opset and back to their own.
cameo_add_test(suite/converted suite ${VENV_PYTHON} ${TESTS_DIR}/suite/run_converted.py ${CMAKE_BINARY_DIR}/upgrade-cases/shaped
               ${TESTS_DIR}/suite/refused_conversions.txt)
set_tests_properties(suite/converted PROPERTIES FIXTURES_REQUIRED upgrade_cases COST 100) # long: not at the very end

# Networks that ONNX Runtime's optimizer fused.
cameo_add_test(suite/make_fused suite sh ${TESTS_DIR}/suite/make_judged.sh ${PROJECT_SOURCE_DIR} make_fused_cases.py
               ${CMAKE_BINARY_DIR}/fused-cases)
set_tests_properties(suite/make_fused PROPERTIES FIXTURES_SETUP fused_cases)
cameo_add_test(suite/fused suite ${VENV_PYTHON} ${TESTS_DIR}/suite/run_suite.py ${TESTS_DIR}/known_failures.txt ${CMAKE_BINARY_DIR}/fused-cases)
set_tests_properties(suite/fused PROPERTIES FIXTURES_REQUIRED fused_cases)

# A sample through compiled code, and models of our own with open sizes; `make test-compiled` runs them all.
find_program(CAMEO_CLANG_19 NAMES clang-19 PATHS /usr/lib/llvm-19/bin)
find_program(CAMEO_LLD_19 NAMES ld.lld-19 PATHS /usr/lib/llvm-19/bin)
mark_as_advanced(CAMEO_CLANG_19 CAMEO_LLD_19)
if(TARGET cameo_mlir AND CAMEO_CLANG_19 AND CAMEO_LLD_19)
  cameo_add_test(suite/compiled suite ${VENV_PYTHON} ${PROJECT_SOURCE_DIR}/tools/test_compiled.py ${CMAKE_BINARY_DIR} --suite ${ONNX_SUITE}/node
                 --match "test_*_default" --random 10)
  set_tests_properties(suite/compiled PROPERTIES FIXTURES_REQUIRED onnx_suite COST 200)
  # Values and sizes that no model should be given; all of them in `make test-compiled`.
  if(NOT CAMEO_SANITIZE)
    cameo_add_test(suite/hostile suite ${VENV_PYTHON} ${PROJECT_SOURCE_DIR}/tools/hostile_compiled.py ${CMAKE_BINARY_DIR} --match "s[lp]*,one_hot,quantize_axis,reduce_sum_squeezed,nll,hann" --pairs 4)
    set_tests_properties(suite/hostile PROPERTIES COST 100)
  endif()
endif()
