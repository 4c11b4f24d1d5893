# It measures the machine, whatever the preset.
set_source_files_properties(src/report/peak.cc PROPERTIES COMPILE_OPTIONS -O3)

# page/ as text.
set(text "#include \"report/page.h\"\n\nnamespace tenon::report {\n")
foreach(part Html Css Js)
  string(TOLOWER "${part}" extension)
  set(source "${PROJECT_SOURCE_DIR}/src/report/page/page.${extension}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
  file(READ "${source}" content)
  string(APPEND text "const char kPage${part}[] = R\"tenon_page(${content})tenon_page\";\n")
endforeach()
string(APPEND text "}  // namespace tenon::report\n")
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/report/page.cc" CONTENT "${text}" @ONLY)
target_sources(${TARGET_NAME} PRIVATE "${PROJECT_BINARY_DIR}/generated/report/page.cc")
