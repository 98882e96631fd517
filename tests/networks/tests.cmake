# Networks exported by PyTorch, with its results: on the default backend, on our own kernels, by function bodies.
# SPDX-License-Identifier: Apache-2.0
foreach(way "" "--backend reference" "--backend plain" --expanded)
  string(REGEX REPLACE "[^a-z]+" "_" name "networks/run${way}")
  string(REPLACE "networks_" "networks/" name ${name})
  separate_arguments(flags UNIX_COMMAND "${way}")
  cameo_add_test(${name} ops $<TARGET_FILE:cameo_command> test ${TESTS_DIR}/networks --tolerance-scaled 1e-3 ${flags})
endforeach()
