# cmake --install: the program, the libraries and find_package(vpp).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
get_property(_modules GLOBAL PROPERTY VPP_MODULES)
list(TRANSFORM _modules PREPEND vpp_)
install(TARGETS ${_modules} vpp_options EXPORT vppTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/vpp)
if(TARGET vpp)
  install(TARGETS vpp vpp_tokenizer RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  # What vpp says of itself: completion of shells, the manual page, the schema of plans.
  function(vpp_install_said arguments file folder)
    set(made ${CMAKE_BINARY_DIR}/said/${folder}/${file})
    install(CODE "
      file(MAKE_DIRECTORY [[${CMAKE_BINARY_DIR}/said/${folder}]])
      execute_process(COMMAND [[$<TARGET_FILE:vpp>]] ${arguments} OUTPUT_FILE [[${made}]] COMMAND_ERROR_IS_FATAL ANY)")
    install(FILES ${made} DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/${folder})
  endfunction()
  vpp_install_said("completion bash" vpp bash-completion/completions)
  vpp_install_said("completion zsh" _vpp zsh/site-functions)
  vpp_install_said("completion fish" vpp.fish fish/vendor_completions.d)
  vpp_install_said("man" vpp.1 man/man1)
  vpp_install_said("schema" plan.schema.json vpp)
endif()
install(DIRECTORY lib/ DESTINATION include/vpp FILES_MATCHING PATTERN "*.hpp")
install(EXPORT vppTargets NAMESPACE vpp:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/vpp)
configure_package_config_file(scripts/cmake/vppConfig.cmake.in ${CMAKE_BINARY_DIR}/vppConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/vpp)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/vppConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/vppConfig.cmake ${CMAKE_BINARY_DIR}/vppConfigVersion.cmake
  scripts/cmake/FindTorch.cmake scripts/cmake/Dependencies.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/vpp)
