# One static library per line of layers.txt, named after its folder
# (src/vm/isa -> tenon_vm_isa), and one test program per folder that holds
# *_test.cc (tenon_vm_isa_test). A folder's own link libraries and generated
# sources stand in FOLDER/layer.cmake, read with TARGET_NAME set.

function(tenon_layer_target folder out)
  string(REGEX REPLACE "^src/" "" name "${folder}")
  string(REPLACE "/" "_" name "${name}")
  set(${out} "tenon_${name}" PARENT_SCOPE)
endfunction()

function(tenon_add_layer folder)
  set(dir "${PROJECT_SOURCE_DIR}/${folder}")
  file(GLOB sources CONFIGURE_DEPENDS "${dir}/*.cc")
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  tenon_layer_target(${folder} TARGET_NAME)

  # A folder of headers alone still gets a target for its edges.
  if(sources)
    add_library(${TARGET_NAME} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(${TARGET_NAME} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${TARGET_NAME} ${scope}
    "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
  foreach(dep ${ARGN})
    tenon_layer_target(${dep} dep_target)
    if(TARGET ${dep_target})
      target_link_libraries(${TARGET_NAME} ${scope} ${dep_target})
    endif()
  endforeach()

  if(tests AND TENON_BUILD_TESTS)
    add_executable(${TARGET_NAME}_test ${tests})
    target_link_libraries(${TARGET_NAME}_test PRIVATE ${TARGET_NAME} GTest::gmock GTest::gtest_main)
    gtest_discover_tests(${TARGET_NAME}_test DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 300
      TEST_PREFIX "${folder}/" WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  endif()
  if(EXISTS "${dir}/layer.cmake")
    include("${dir}/layer.cmake")
  endif()
endfunction()

# Reads layers.txt; with RUNTIME_ONLY it stops at the dividing line.
function(tenon_add_layers)
  cmake_parse_arguments(PARSE_ARGV 0 arg "RUNTIME_ONLY" "" "")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/layers.txt")
  file(STRINGS "${PROJECT_SOURCE_DIR}/layers.txt" lines)
  foreach(line ${lines})
    if(line MATCHES "^# ----" AND arg_RUNTIME_ONLY)
      break()
    elseif(line MATCHES "^([a-z0-9_/]+): *(.*)$")
      set(folder "${CMAKE_MATCH_1}")
      separate_arguments(deps UNIX_COMMAND "${CMAKE_MATCH_2}")
      if(folder MATCHES "^src/" AND EXISTS "${PROJECT_SOURCE_DIR}/${folder}")
        tenon_add_layer(${folder} ${deps})
      endif()
    endif()
  endforeach()
endfunction()
