# Operator cases: text under tests/ops/<family>/, one test per family.
# SPDX-License-Identifier: Apache-2.0
file(GLOB OP_CASE_SOURCES CONFIGURE_DEPENDS ${TESTS_DIR}/ops/*.c)
add_executable(run_cases ${OP_CASE_SOURCES})
target_include_directories(run_cases PRIVATE ${PROJECT_SOURCE_DIR}/src ${GENERATED} ${TESTS_DIR}/ops)
target_link_libraries(run_cases PRIVATE cameo_flags cameo_static m)
set_target_properties(run_cases PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/ops)
add_dependencies(tests run_cases)

file(GLOB OP_CASES CONFIGURE_DEPENDS ${TESTS_DIR}/ops/*/*.txt)
set(families)
foreach(file ${OP_CASES})
  get_filename_component(folder ${file} DIRECTORY)
  get_filename_component(family ${folder} NAME)
  list(APPEND families ${family})
endforeach()
list(REMOVE_DUPLICATES families)
foreach(family ${families})
  cameo_add_test(ops/${family} ops $<TARGET_FILE:run_cases> ${TESTS_DIR}/ops/${family})
endforeach()

# The cases of ONNX Runtime's own operators, run by ONNX Runtime. Needs the virtual environment.
cameo_add_test(suite/microsoft suite sh ${TESTS_DIR}/ops/judge_microsoft.sh ${PROJECT_SOURCE_DIR})
