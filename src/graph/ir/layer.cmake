# The standard library, whose text the parser contains.
file(GLOB std_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/graph/ir/std/*.tn")
set(TENON_STD_FILES)
foreach(file ${std_files})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
  get_filename_component(name "${file}" NAME)
  file(READ "${file}" text)
  string(APPEND TENON_STD_FILES "    {\"std/${name}\", R\"tenon(${text})tenon\"},\n")
endforeach()
configure_file("${PROJECT_SOURCE_DIR}/src/graph/ir/std_files.cc.in"
  "${PROJECT_BINARY_DIR}/generated/graph/ir/std_files.cc" @ONLY)
target_sources(${TARGET_NAME} PRIVATE "${PROJECT_BINARY_DIR}/generated/graph/ir/std_files.cc")
