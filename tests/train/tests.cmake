# What is written for other runtimes, run by them.
# SPDX-License-Identifier: Apache-2.0
cameo_add_test(train/portable suite ${VENV_PYTHON} ${TESTS_DIR}/train/check_portable.py
               ${CMAKE_BINARY_DIR}/cameo ${TESTS_DIR}/models)
cameo_add_test(train/rules suite ${VENV_PYTHON} ${TESTS_DIR}/train/check_rules.py ${CMAKE_BINARY_DIR}/cameo)
if(NOT CMAKE_CROSSCOMPILING)
  cameo_add_test(train/rule_pages suite ${VENV_PYTHON} ${TESTS_DIR}/train/check_rule_pages.py $<TARGET_FILE:tool_gen_training>
                 ${PROJECT_SOURCE_DIR})
endif()

# Steps compiled to native code, where they can be.
find_program(CAMEO_CLANG clang-19)
find_program(CAMEO_LLD ld.lld-19)
mark_as_advanced(CAMEO_CLANG CAMEO_LLD)
if(TARGET cameo_mlir AND CAMEO_CLANG AND CAMEO_LLD)
  cameo_add_test(train/compiled suite ${VENV_PYTHON} ${TESTS_DIR}/train/check_compiled.py
                 ${CMAKE_BINARY_DIR}/cameo ${TESTS_DIR}/models --sample)
  cameo_add_test(train/compiled_training suite ${VENV_PYTHON}
                 ${TESTS_DIR}/train/check_compiled_training.py ${CMAKE_BINARY_DIR}/cameo
                 ${TESTS_DIR}/models)
  cameo_add_test(train/compiled_rules suite ${VENV_PYTHON} ${TESTS_DIR}/train/check_rules.py
                 ${CMAKE_BINARY_DIR}/cameo --compile)
endif()
