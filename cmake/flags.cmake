# Flags of everything we compile for the target; build-time tools are not sanitized.
# SPDX-License-Identifier: Apache-2.0
set(CAMEO_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wvla -Wmissing-prototypes -Wconversion -Werror)

add_library(cameo_flags INTERFACE)
if(CAMEO_DEV)
  target_compile_options(cameo_flags INTERFACE ${CAMEO_WARNINGS})
endif()
# What ends the process instead of letting a mistake be used: files of strangers are read here.
# FORTIFY needs optimisation; sanitizers do more than both.
option(CAMEO_HARDEN "Stack protector, control-flow protection, FORTIFY and full RELRO in release builds" ON)
if(CAMEO_HARDEN AND NOT CAMEO_SANITIZE)
  target_compile_options(cameo_flags INTERFACE
                         $<$<CONFIG:Release>:-fstack-protector-strong>
                         $<$<CONFIG:Release>:-U_FORTIFY_SOURCE> $<$<CONFIG:Release>:-D_FORTIFY_SOURCE=2>)
  # A frame never steps over the guard page; the processor checks where calls and returns go. Compilers that do not know
  # one of these, or know it for another processor only, do without.
  include(CheckCCompilerFlag)
  foreach(flag -fstack-clash-protection -fcf-protection=full -mbranch-protection=standard)
    string(MAKE_C_IDENTIFIER CAMEO_HAS${flag} known)
    check_c_compiler_flag(${flag} ${known})
    if(${known})
      target_compile_options(cameo_flags INTERFACE $<$<CONFIG:Release>:${flag}>)
    endif()
  endforeach()
  target_link_options(cameo_flags INTERFACE
                      $<$<CONFIG:Release>:LINKER:-z,relro,-z,now,-z,noexecstack>)
endif()
if(CAMEO_SANITIZE)
  target_compile_options(cameo_flags INTERFACE -fsanitize=${CAMEO_SANITIZE}
                         -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(cameo_flags INTERFACE -fsanitize=${CAMEO_SANITIZE})
endif()
if(CAMEO_FUZZ)
  target_compile_options(cameo_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(CAMEO_COVERAGE)
  target_compile_options(cameo_flags INTERFACE --coverage)
  target_link_options(cameo_flags INTERFACE --coverage)
endif()
