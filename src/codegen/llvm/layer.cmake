# LLVM 19 to 22 and LLD as libraries. llvm-config locates CMake files that a plain
# find_package(LLVM) would miss; LLD's are next to them.
if(NOT LLVM_DIR)
  find_program(TENON_LLVM_CONFIG NAMES llvm-config-22 llvm-config-21 llvm-config-20 llvm-config-19 llvm-config)
  if(TENON_LLVM_CONFIG)
    execute_process(COMMAND "${TENON_LLVM_CONFIG}" --cmakedir OUTPUT_VARIABLE llvm_hint
      OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
endif()
find_package(LLVM 19.1...<23 CONFIG REQUIRED HINTS "${llvm_hint}")
find_package(LLD CONFIG REQUIRED HINTS "${LLVM_DIR}/../lld")
message(STATUS "code generation: LLVM ${LLVM_PACKAGE_VERSION} in ${LLVM_DIR}")

target_include_directories(${TARGET_NAME} SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS} ${LLD_INCLUDE_DIRS})
separate_arguments(llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_definitions(${TARGET_NAME} PRIVATE ${llvm_definitions})
# GCC mistakes LLVM's `new` with room for operands for an ordinary one.
target_compile_options(${TARGET_NAME} PRIVATE -Wno-mismatched-new-delete)
if(TARGET LLVM AND NOT TENON_STATIC_LLVM)
  set(llvm_libraries LLVM)
else()
  # LLVM's names of the back ends, which are also names of all their components.
  file(STRINGS "${dir}/back_ends.def" back_ends REGEX "^TENON_(LINKED_)?BACK_END")
  list(TRANSFORM back_ends REPLACE "^TENON_BACK_END\\([^,]+, ([^,]+),.*" "\\1")
  list(TRANSFORM back_ends REPLACE "^TENON_LINKED_BACK_END\\(([^)]+)\\)" "\\1")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${dir}/back_ends.def")
  llvm_map_components_to_libnames(llvm_libraries ${back_ends} passes target targetparser object
    debuginfodwarf lto option)  # the last three for LLD
  if(TARGET LLVM)  # a build of LLVM with both: LLD's targets name the shared library
    set_target_properties(lldCommon PROPERTIES INTERFACE_LINK_LIBRARIES "")
    set_target_properties(lldELF PROPERTIES INTERFACE_LINK_LIBRARIES lldCommon)
    target_link_options(${TARGET_NAME} INTERFACE -Wl,--as-needed)  # LLVM names libz3, which nothing here uses
  endif()
  # LLD initialises all targets of its LLVM; those that aren't linked need an empty function for it.
  set(functions "// LLVM's targets that Tenon doesn't link.\n")
  foreach(unused ${LLVM_TARGETS_TO_BUILD})
    if(NOT unused IN_LIST back_ends)
      foreach(part TargetInfo Target TargetMC AsmParser AsmPrinter)
        string(APPEND functions "extern \"C\" void LLVMInitialize${unused}${part}() {}\n")
      endforeach()
    endif()
  endforeach()
  set(unused_targets "${PROJECT_BINARY_DIR}/generated/codegen/llvm/unused_targets.cc")
  file(CONFIGURE OUTPUT "${unused_targets}" CONTENT "${functions}")
  target_sources(${TARGET_NAME} PRIVATE "${unused_targets}")
  if(TARGET zstd::libzstd_shared AND TARGET zstd::libzstd_static)
    get_target_property(zstd zstd::libzstd_static IMPORTED_LOCATION)
    set_target_properties(zstd::libzstd_shared PROPERTIES IMPORTED_LOCATION "${zstd}")
  endif()
endif()
target_link_libraries(${TARGET_NAME} PRIVATE lldELF lldCommon ${llvm_libraries} ${CMAKE_DL_LIBS})

# LLVM is built without RTTI and exceptions; files that derive from its classes must match.
set_source_files_properties("${dir}/link.cc" PROPERTIES COMPILE_OPTIONS "-fno-rtti")
if(NOT LLVM_ENABLE_RTTI)  # it derives a class from one of LLVM's
  set_source_files_properties("${dir}/passes.cc" PROPERTIES COMPILE_OPTIONS "-fno-rtti")
endif()

# Headers that expose LLVM's types are private, but must also compile alone.
if(TENON_BUILD_TESTS)
  cmake_language(EVAL CODE "cmake_language(DEFER CALL target_include_directories
    ${TARGET_NAME}_headers SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})")
endif()
