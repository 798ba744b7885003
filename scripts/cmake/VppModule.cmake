# The modules that need neither LibTorch nor MPI.
set(VPP_TORCH_FREE base plan mesh schedule data checkpoint help report compare launch)

# vpp_module(NAME SOURCES a.cpp ... DEPS base torch ...)
# makes the static library vpp_NAME (alias vpp::NAME) of lib/NAME. A dependency is another module or a library target.
function(vpp_module name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  add_library(vpp_${name} STATIC ${arg_SOURCES})
  add_library(vpp::${name} ALIAS vpp_${name})
  set_target_properties(vpp_${name} PROPERTIES EXPORT_NAME ${name})
  vpp_link(vpp_${name} PUBLIC ${arg_DEPS})
  target_link_libraries(vpp_${name} PUBLIC vpp_options)
  set_property(GLOBAL APPEND PROPERTY VPP_MODULES ${name})
endfunction()

# Links modules by their short names and other targets as they are.
function(vpp_link target visibility)
  foreach(dep ${ARGN})
    if(TARGET vpp_${dep} OR IS_DIRECTORY ${CMAKE_SOURCE_DIR}/lib/${dep})
      target_link_libraries(${target} ${visibility} vpp_${dep})
    else()
      target_link_libraries(${target} ${visibility} ${dep})
    endif()
  endforeach()
endfunction()

# vpp_unit_tests(MODULE SOURCES a_test.cpp ... [DEPS ...] [SHARDS n])
# makes one binary for all unit tests of a module and a CTest entry with the label unit, n of them where that many run
# beside each other; suites named ...Full are an entry with the label full.
function(vpp_unit_tests module)
  cmake_parse_arguments(arg "" "SHARDS" "SOURCES;DEPS" ${ARGN})
  add_executable(vpp_${module}_test ${arg_SOURCES})
  vpp_link(vpp_${module}_test PRIVATE ${module} ${arg_DEPS})
  target_include_directories(vpp_${module}_test PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  # What the tests themselves do is compiled more often than it runs; the module is optimized as ever.
  target_compile_options(vpp_${module}_test PRIVATE -O0)
  if(VPP_SANITIZE)
    # It takes a third of the time of their compiler; what it looks for is looked for in the module.
    target_compile_options(vpp_${module}_test PRIVATE -fno-sanitize=undefined)
  endif()
  target_link_libraries(vpp_${module}_test PRIVATE GTest::gtest_main)
  if(NOT arg_SHARDS)
    vpp_unit_entry(unit.${module} unit ${module} -*Full.*)
  else()
    foreach(shard RANGE 1 ${arg_SHARDS})
      math(EXPR index "${shard} - 1")
      vpp_unit_entry(unit.${module}.${shard} unit ${module} -*Full.*)
      set_tests_properties(unit.${module}.${shard} PROPERTIES
        ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_SHARDS};GTEST_SHARD_INDEX=${index}")
    endforeach()
  endif()
  foreach(source ${arg_SOURCES})
    file(STRINGS ${source} suites REGEX "^TEST.*Full,")
    if(suites AND NOT TEST full.${module})
      vpp_unit_entry(full.${module} full ${module} *Full.*)
    endif()
  endforeach()
endfunction()

function(vpp_unit_entry name label module filter)
  add_test(NAME ${name} COMMAND vpp_${module}_test --gtest_brief=1 --gtest_filter=${filter})
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT 600)
endfunction()
