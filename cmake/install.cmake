# What `make install` puts where: headers, libraries, package files, command, manual, completions.
# SPDX-License-Identifier: Apache-2.0
include(CMakePackageConfigHelpers)

install(TARGETS cameo cameo_static EXPORT cameo-targets)
file(GLOB PUBLIC_HEADERS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/*.h)
install(FILES ${PUBLIC_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

foreach(module cameo_codecs cameo_mlir)
  if(TARGET ${module})
    install(TARGETS ${module} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endforeach()
if(TARGET cameo_command)
  install(TARGETS cameo_command)
endif()
if(TARGET descriptions)
  install(FILES ${CMAKE_BINARY_DIR}/share/cameo.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${CMAKE_BINARY_DIR}/share/cameo.bash RENAME cameo
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${CMAKE_BINARY_DIR}/share/_cameo
          DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endif()

set(PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/cameo)
install(EXPORT cameo-targets NAMESPACE cameo:: DESTINATION ${PACKAGE_DIR})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/cameo-config.cmake.in
                              ${CMAKE_BINARY_DIR}/cameo-config.cmake
                              INSTALL_DESTINATION ${PACKAGE_DIR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(COMPATIBILITY SameMinorVersion)
else()
  set(COMPATIBILITY SameMajorVersion)
endif()
write_basic_package_version_file(${CMAKE_BINARY_DIR}/cameo-config-version.cmake
                                 COMPATIBILITY ${COMPATIBILITY})
install(FILES ${CMAKE_BINARY_DIR}/cameo-config.cmake ${CMAKE_BINARY_DIR}/cameo-config-version.cmake
        DESTINATION ${PACKAGE_DIR})

# Relative to the file itself where the folders allow it, so that the tree can be moved.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(PC_PREFIX ${CMAKE_INSTALL_PREFIX})
  set(PC_LIBDIR ${CMAKE_INSTALL_FULL_LIBDIR})
  set(PC_INCLUDEDIR ${CMAKE_INSTALL_FULL_INCLUDEDIR})
else()
  file(RELATIVE_PATH up ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  set(PC_PREFIX "\${pcfiledir}/${up}")
  set(PC_LIBDIR "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
  set(PC_INCLUDEDIR "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/cameo.pc.in ${CMAKE_BINARY_DIR}/cameo.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/cameo.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
