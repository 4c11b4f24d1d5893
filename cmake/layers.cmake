# Makes a static library per line of layers.txt, named after its folder
# (src/vm/isa -> tenon_vm_isa), and a test program per folder that has
# *_test.cc files (tenon_vm_isa_test). FOLDER/layer.cmake, read with
# TARGET_NAME set, adds link libraries and generated sources.
#
# Every header must compile alone. A header with a source of its name is included first there
# (test/layers checks that); others get a generated source in TARGET_headers, which tenon_headers builds.

# In a Release build, the runtime's sources are compiled for size, except for these, in which programs
# spend their time: they are compiled with CMAKE_CXX_FLAGS_RELEASE like everything else. GCC also
# optimises the runtime's shared library as a whole when it links it, which makes it a twelfth smaller.
# bench/vm and scripts/runtime-size measure the result.
set(TENON_FAST_SOURCES
  src/c_api/lifetime.cc src/library/argument/argument.cc src/vm/interp/values.cc
  src/object/cell.cc src/object/function.cc src/object/object.cc src/object/shape.cc src/object/tensor.cc
  src/support/keyed_hash.cc src/vm/executable/hash.cc
  src/vm/interp/call_path.cc src/vm/interp/dispatch.cc src/vm/interp/machine.cc
  src/vm/interp/machine_call.cc src/vm/interp/pool.cc src/vm/interp/slow_path_cells.cc
  src/vm/interp/slow_path_shapes.cc src/vm/interp/slow_path_tensors.cc)
set(TENON_SIZE_OPTIONS -Os)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12)
  # Together these save a tenth more than -Os: GCC 12 calls even the constructor of a view of a literal
  # unless small functions may be inlined, moving expressions around lengthens code that runs once, and
  # unwind tables are a seventh smaller with a frame pointer.
  set(TENON_SIZE_OPTIONS -Oz --param=max-inline-insns-size=2 -fno-omit-frame-pointer
    -fno-expensive-optimizations -fno-shrink-wrap -fno-gcse -fno-move-loop-invariants -fno-tree-loop-im)
endif()
set(TENON_SPEED_OPTIONS)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Inlining the beginnings of functions takes 1 KB, aligned functions and jump targets 4 KB; neither moves
  # a row of bench/vm.
  list(APPEND TENON_SIZE_OPTIONS -fno-partial-inlining -fno-plt)
  set(TENON_SPEED_OPTIONS -fno-partial-inlining -fno-plt -fno-align-functions -fno-align-jumps -fno-align-labels -fno-align-loops)
endif()
# Of those, the sources whose rare code stays apart and that have no frame pointer. Elsewhere these take
# 3 KB and 1 KB and move no row.
set(TENON_HOT_SOURCES src/vm/interp/call_path.cc src/vm/interp/dispatch.cc src/vm/interp/slow_path_cells.cc
  src/vm/interp/slow_path_shapes.cc)
# Whether the runtime's shared library is made of objects for link-time optimisation (LTO) instead of the
# layers' archives, which other programs link.
set(TENON_LTO OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT TENON_SANITIZE)
  set(TENON_LTO ON)
endif()
# LTO would split the labels of the dispatch loop, whose distances it needs, between two sections.
set(TENON_SOURCES_WITHOUT_LTO src/vm/interp/dispatch.cc)

# Sources of the runtime without process-wide state that the libraries of tenon_add_shared contain
# themselves, so that the runtime needn't export them.
set(TENON_COPIED_SOURCES
  src/support/input_file.cc src/support/memory_file.cc src/support/output_file.cc src/support/text.cc
  src/support/trace_recording.cc src/support/utf8.cc
  src/object/device_name.cc src/object/dtype.cc src/object/field.cc
  src/object/narrow_float.cc src/object/string_tensor.cc src/object/structural.cc src/object/walk.cc)
list(JOIN TENON_COPIED_SOURCES "|" TENON_COPIED_OBJECTS)
string(REPLACE "." "\\." TENON_COPIED_OBJECTS "${TENON_COPIED_OBJECTS}")
set(TENON_COPIED_OBJECTS
  "$<FILTER:$<TARGET_OBJECTS:tenon_support>;$<TARGET_OBJECTS:tenon_object>,INCLUDE,${TENON_COPIED_OBJECTS}>")

function(tenon_layer_target folder out)
  string(REGEX REPLACE "^src/" "" name "${folder}")
  string(REPLACE "/" "_" name "${name}")
  set(${out} "tenon_${name}" PARENT_SCOPE)
endfunction()

foreach(source ${TENON_FAST_SOURCES})
  if(NOT EXISTS "${PROJECT_SOURCE_DIR}/${source}")
    message(FATAL_ERROR "TENON_FAST_SOURCES names ${source}, which doesn't exist")
  endif()
endforeach()

function(tenon_add_layer folder)
  set(dir "${PROJECT_SOURCE_DIR}/${folder}")
  file(GLOB sources CONFIGURE_DEPENDS "${dir}/*.cc")
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  tenon_layer_target(${folder} TARGET_NAME)

  # A folder with only headers still gets a target for its edges.
  if(sources)
    add_library(${TARGET_NAME} STATIC ${sources})
    tenon_measure_coverage(${TARGET_NAME} ${folder})
    set(scope PUBLIC)
    if(TENON_LAYER_OF_RUNTIME)
      # The runtime's version script defines its exports, which can't be interposed.
      target_compile_options(${TARGET_NAME} PRIVATE -fvisibility=default -fno-semantic-interposition)
      set_property(GLOBAL APPEND PROPERTY TENON_RUNTIME_LAYERS ${TARGET_NAME})
      foreach(source ${sources})
        file(RELATIVE_PATH path "${PROJECT_SOURCE_DIR}" "${source}")
        if(CMAKE_BUILD_TYPE STREQUAL "Release")
          set(options ${TENON_SIZE_OPTIONS})
          if(path IN_LIST TENON_FAST_SOURCES)
            set(options ${TENON_SPEED_OPTIONS})
            if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT path IN_LIST TENON_HOT_SOURCES)
              list(APPEND options -fno-reorder-blocks-and-partition -fno-omit-frame-pointer)
            endif()
          endif()
          set_property(SOURCE "${source}" APPEND PROPERTY COMPILE_OPTIONS ${options})
        endif()
      endforeach()
    else()
      set_property(GLOBAL APPEND PROPERTY TENON_OTHER_LAYERS ${TARGET_NAME})
    endif()
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
    foreach(dep ${TENON_TEST_EDGES_${TARGET_NAME}})
      tenon_layer_target(${dep} dep_target)
      if(EXISTS "${PROJECT_SOURCE_DIR}/${dep}")
        target_link_libraries(${TARGET_NAME}_test PRIVATE ${dep_target})
      endif()
    endforeach()
    gtest_discover_tests(${TARGET_NAME}_test DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 300
      TEST_PREFIX "${folder}/" WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  endif()
  if(EXISTS "${dir}/layer.cmake")
    include("${dir}/layer.cmake")
  endif()
  if(sources AND TENON_LAYER_OF_RUNTIME AND TENON_LTO)
    tenon_add_lto_objects(${TARGET_NAME})
  endif()
  if(TENON_BUILD_TESTS)
    tenon_check_headers(${folder} ${TARGET_NAME})
  endif()
endfunction()

# Compiles the layer's sources for LTO, as TARGET_lto, and adds the objects to TENON_LTO_OBJECTS.
function(tenon_add_lto_objects target)
  get_target_property(sources ${target} SOURCES)
  set(objects $<TARGET_OBJECTS:${target}_lto>)
  foreach(source ${TENON_SOURCES_WITHOUT_LTO})
    if("${PROJECT_SOURCE_DIR}/${source}" IN_LIST sources)
      list(REMOVE_ITEM sources "${PROJECT_SOURCE_DIR}/${source}")
      string(REPLACE "." "\\." pattern "${source}")
      list(APPEND objects "$<FILTER:$<TARGET_OBJECTS:${target}>,INCLUDE,${pattern}>")
    endif()
  endforeach()
  add_library(${target}_lto OBJECT EXCLUDE_FROM_ALL ${sources})
  # The thread's waiting error is at a known distance from its pointer, instead of behind a call that costs
  # every packed call a quarter more. That takes about 130 bytes of the memory that glibc keeps for this.
  target_compile_options(${target}_lto PRIVATE $<TARGET_PROPERTY:${target},COMPILE_OPTIONS> -flto
    -ftls-model=initial-exec)
  target_compile_definitions(${target}_lto PRIVATE $<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>)
  target_include_directories(${target}_lto PRIVATE $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
  set_property(GLOBAL APPEND PROPERTY TENON_LTO_OBJECTS ${objects})
endfunction()

function(tenon_check_headers folder target)
  file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.h")
  set(sources)
  foreach(header ${headers})
    string(REGEX REPLACE "\\.h$" ".cc" source "${header}")
    if(NOT EXISTS "${source}")
      file(RELATIVE_PATH path "${PROJECT_SOURCE_DIR}/src" "${header}")
      set(source "${PROJECT_BINARY_DIR}/headers/${path}.cc")
      file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"${path}\"\n")
      list(APPEND sources "${source}")
    endif()
  endforeach()
  if(sources)
    add_library(${target}_headers OBJECT EXCLUDE_FROM_ALL ${sources})
    target_link_libraries(${target}_headers PRIVATE ${target})
    target_compile_options(${target}_headers PRIVATE -O0 -g0)
    set_property(GLOBAL APPEND PROPERTY TENON_HEADER_TARGETS ${target}_headers)
  endif()
endfunction()

# Reads layers.txt; with RUNTIME_ONLY, only its layers of the runtime and the runtime's libraries.
function(tenon_add_layers)
  cmake_parse_arguments(PARSE_ARGV 0 arg "RUNTIME_ONLY" "" "")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/layers.txt")
  file(STRINGS "${PROJECT_SOURCE_DIR}/layers.txt" lines)
  foreach(line ${lines})
    if(line MATCHES "^([a-z0-9_/]+)\\+test: *(.*)$")
      separate_arguments(deps UNIX_COMMAND "${CMAKE_MATCH_2}")
      tenon_layer_target(${CMAKE_MATCH_1} target)
      set(TENON_TEST_EDGES_${target} ${deps})
    endif()
  endforeach()
  set(end_of_runtime "end of runtime")
  set(end_of_libraries "end of the runtime's libraries")
  foreach(mark "${end_of_runtime}" "${end_of_libraries}")
    if(NOT mark IN_LIST lines)
      message(FATAL_ERROR "layers.txt lacks the line '${mark}'")
    endif()
  endforeach()
  if(arg_RUNTIME_ONLY)
    list(FIND lines "${end_of_libraries}" end)
    list(SUBLIST lines 0 ${end} lines)
  endif()
  set(TENON_LAYER_OF_RUNTIME ON)
  foreach(line ${lines})
    if(line STREQUAL end_of_runtime)
      set(TENON_LAYER_OF_RUNTIME OFF)
    elseif(line MATCHES "^([a-z0-9_/]+): *(.*)$")
      set(folder "${CMAKE_MATCH_1}")
      separate_arguments(deps UNIX_COMMAND "${CMAKE_MATCH_2}")
      if(folder MATCHES "^src/" AND EXISTS "${PROJECT_SOURCE_DIR}/${folder}")
        tenon_add_layer(${folder} ${deps})
      endif()
    endif()
  endforeach()
  if(TENON_BUILD_TESTS)
    get_property(headers GLOBAL PROPERTY TENON_HEADER_TARGETS)
    add_custom_target(tenon_headers)
    if(headers)
      add_dependencies(tenon_headers ${headers})
    endif()
  endif()
endfunction()

# Makes a shared library that uses the object layer of tenon_runtime: SOURCES and the layers LAYERS with
# the libraries that these link to, which stay hidden. It exports only its entry point
# (src/object/library.h). What the runtime doesn't export, it takes from TENON_COPIED_SOURCES and from the
# archives of the layers WITHOUT_STATE, so none of these may have variables that must exist only once per
# process.
function(tenon_add_shared target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LAYERS;WITHOUT_STATE")
  add_library(${target} SHARED ${arg_SOURCES})
  get_property(layers GLOBAL PROPERTY TENON_RUNTIME_LAYERS)
  get_property(others GLOBAL PROPERTY TENON_OTHER_LAYERS)
  list(APPEND layers ${others})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
  target_sources(${target} PRIVATE ${TENON_COPIED_OBJECTS})
  target_link_libraries(${target} PRIVATE tenon_runtime)
  foreach(layer ${arg_LAYERS})
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${layer}>)
    get_target_property(libraries ${layer} LINK_LIBRARIES)
    foreach(library ${libraries})
      if(NOT library IN_LIST layers)
        target_link_libraries(${target} PRIVATE ${library})
      endif()
    endforeach()
  endforeach()
  foreach(layer ${arg_WITHOUT_STATE})
    target_link_libraries(${target} PRIVATE $<TARGET_FILE:${layer}>)
    add_dependencies(${target} ${layer})
  endforeach()
  set(script "${PROJECT_SOURCE_DIR}/cmake/library_exports.map")
  target_link_options(${target} PRIVATE "-Wl,--version-script=${script}" ${TENON_NO_UNDEFINED}
    -Wl,--exclude-libs,ALL)
  set_target_properties(${target} PROPERTIES LINK_DEPENDS "${script}" INSTALL_RPATH "$ORIGIN"
    LIBRARY_OUTPUT_DIRECTORY "$<TARGET_FILE_DIR:tenon_runtime>")
  set_property(GLOBAL APPEND PROPERTY TENON_LAYERS_OF_LIBRARIES ${arg_LAYERS})
endfunction()
