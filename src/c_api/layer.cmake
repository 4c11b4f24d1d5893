# The C interface as C sees it, compiled as C, is part of the test.
if(TENON_BUILD_TESTS)
  target_sources(${TARGET_NAME}_test PRIVATE "${CMAKE_CURRENT_LIST_DIR}/c_program.c")
endif()
