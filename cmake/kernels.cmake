# The kernels of compiled models, src/kernels. A model that is compiled brings its own build of them; the library has
# no more than what packs weights. Here they are built for tests, once for each instruction set that this machine runs,
# and for the benchmark.
# SPDX-License-Identifier: Apache-2.0
include(CheckCSourceRuns)
file(GLOB KERNEL_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/kernels/*.c)
list(FILTER KERNEL_SOURCES EXCLUDE REGEX "/pack\\.c$")

function(cameo_kernels machine)
  add_library(kernels_${machine} OBJECT EXCLUDE_FROM_ALL ${KERNEL_SOURCES})
  target_include_directories(kernels_${machine} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(kernels_${machine} PRIVATE -O3 -ffreestanding -ffp-contract=fast ${ARGN})
  target_link_libraries(kernels_${machine} PRIVATE cameo_flags)
endfunction()

set(KERNEL_MACHINES plain)
cameo_kernels(plain)
if(NOT CMAKE_CROSSCOMPILING AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  check_c_source_runs("int main(void){return !__builtin_cpu_supports(\"avx2\") || !__builtin_cpu_supports(\"fma\");}"
                      CAMEO_RUNS_AVX2)
  check_c_source_runs("int main(void){return !__builtin_cpu_supports(\"avx512dq\");}" CAMEO_RUNS_AVX512)
  if(CAMEO_RUNS_AVX2)
    cameo_kernels(avx2 -mavx2 -mfma)
    list(APPEND KERNEL_MACHINES avx2)
  endif()
  if(CAMEO_RUNS_AVX512)
    cameo_kernels(avx512 -mavx512f -mavx512dq -mfma)
    list(APPEND KERNEL_MACHINES avx512)
  endif()
endif()

# The benchmark measures what `cameo compile` makes: clang builds them for this machine. Without clang the compiler of
# the build does.
find_program(CAMEO_CLANG NAMES clang-19 clang)
if(CAMEO_CLANG AND NOT CMAKE_CROSSCOMPILING)
  file(GLOB KERNEL_PARTS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/kernels/*.inc
       ${PROJECT_SOURCE_DIR}/src/kernels/*.h)
  foreach(source ${KERNEL_SOURCES})
    get_filename_component(name ${source} NAME_WE)
    set(object ${CMAKE_BINARY_DIR}/bench/kernels_${name}.o)
    add_custom_command(OUTPUT ${object} DEPENDS ${source} ${KERNEL_PARTS}
                       COMMAND ${CAMEO_CLANG} -std=c17 -O3 -march=native -ffreestanding -fPIC
                               -I${PROJECT_SOURCE_DIR}/src -c ${source} -o ${object})
    set_property(SOURCE ${object} PROPERTY EXTERNAL_OBJECT TRUE)
    target_sources(bench_run_kernels PRIVATE ${object})
  endforeach()
else()
  list(GET KERNEL_MACHINES -1 best)
  target_link_libraries(bench_run_kernels PRIVATE kernels_${best})
endif()
