# cmake --install: the program, the libraries and find_package(vpp).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
get_property(_modules GLOBAL PROPERTY VPP_MODULES)
list(TRANSFORM _modules PREPEND vpp_)
install(TARGETS ${_modules} vpp_options EXPORT vppTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/vpp)
if(TARGET vpp)
  install(TARGETS vpp RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY lib/ DESTINATION include/vpp FILES_MATCHING PATTERN "*.hpp")
install(EXPORT vppTargets NAMESPACE vpp:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/vpp)
configure_package_config_file(scripts/cmake/vppConfig.cmake.in ${CMAKE_BINARY_DIR}/vppConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/vpp)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/vppConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/vppConfig.cmake ${CMAKE_BINARY_DIR}/vppConfigVersion.cmake
  scripts/cmake/FindTorch.cmake scripts/cmake/Dependencies.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/vpp)
