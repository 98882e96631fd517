# ONNX's own backend test cases, made once per version of the onnx package and shared by all presets.
# SPDX-License-Identifier: Apache-2.0
set(ONNX_SUITE ${PROJECT_SOURCE_DIR}/build/onnx-suite)

# The virtual environment may appear after configuring, so it is looked for when the test runs.
cameo_add_test(suite/make suite sh ${TESTS_DIR}/suite/make.sh ${PROJECT_SOURCE_DIR} ${ONNX_SUITE})
set_tests_properties(suite/make PROPERTIES FIXTURES_SETUP onnx_suite)

add_executable(suite_roundtrip ${TESTS_DIR}/suite/roundtrip.c)
target_include_directories(suite_roundtrip PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(suite_roundtrip PRIVATE cameo_flags cameo_static)
set_target_properties(suite_roundtrip PROPERTIES OUTPUT_NAME roundtrip RUNTIME_OUTPUT_DIRECTORY
                                                 ${CMAKE_BINARY_DIR}/suite)
add_dependencies(tests suite_roundtrip)

# 1,884 node cases and 149 stored ones at onnx 1.23.1.
cameo_add_test(suite/roundtrip suite $<TARGET_FILE:suite_roundtrip> 2033 ${ONNX_SUITE})
set_tests_properties(suite/roundtrip PROPERTIES FIXTURES_REQUIRED onnx_suite)
