# Models compiled for other processors, run by emulators; what is missing there is told by the test.
# SPDX-License-Identifier: Apache-2.0
find_program(CAMEO_CLANG clang-19)
find_program(CAMEO_LLD ld.lld-19)
mark_as_advanced(CAMEO_CLANG CAMEO_LLD)
if(NOT TARGET cameo_mlir OR NOT CAMEO_CLANG OR NOT CAMEO_LLD)
  message(STATUS "MLIR, clang-19 or lld-19 not found: no models for other processors")
  return()
endif()
cameo_add_test(targets/models suite ${VENV_PYTHON} ${TESTS_DIR}/targets/check_targets.py ${CMAKE_BINARY_DIR}/cameo
               --target aarch64 --target riscv64 --target wasm32)
set_tests_properties(targets/models PROPERTIES COST 100) # long: not at the very end
# make test-compiled runs a sample of ONNX's cases for every target.
