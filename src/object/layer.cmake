# kBuildId (library.h) is a hash of the runtime's sources.
set(runtime_folders include)
foreach(line ${TENON_RUNTIME_LINES})
  if(line MATCHES "^([a-z0-9_/]+):")
    list(APPEND runtime_folders "${CMAKE_MATCH_1}")
  endif()
endforeach()
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
set(build_id "${PROJECT_BINARY_DIR}/generated/object/build_id.cc")
set_property(GLOBAL PROPERTY TENON_BUILD_ID_SOURCE "${build_id}")
add_custom_target(tenon_build_id
  COMMAND "${CMAKE_COMMAND}" "-DROOT=${PROJECT_SOURCE_DIR}" "-DFOLDERS=${runtime_folders}"
    "-DFACTS=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}} ${TENON_SANITIZE}"
    "-DOUTPUT=${build_id}" -P "${PROJECT_SOURCE_DIR}/cmake/build_id.cmake"
  BYPRODUCTS "${build_id}"
  COMMENT "Hashing the runtime's sources" VERBATIM)
set_source_files_properties("${build_id}" PROPERTIES GENERATED ON)
target_sources(${TARGET_NAME} PRIVATE "${build_id}")
add_dependencies(${TARGET_NAME} tenon_build_id)
target_link_libraries(${TARGET_NAME} PUBLIC ${CMAKE_DL_LIBS})
