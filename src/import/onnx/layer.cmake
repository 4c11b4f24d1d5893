# The schema's code is generated into the build folder. Only this layer sees protobuf's headers, whose
# warnings are disabled.
find_package(Protobuf REQUIRED)
set(schema_dir "${PROJECT_BINARY_DIR}/generated/import/onnx")
file(MAKE_DIRECTORY "${schema_dir}")
add_custom_command(
  OUTPUT "${schema_dir}/onnx.pb.cc" "${schema_dir}/onnx.pb.h"
  COMMAND protobuf::protoc "--cpp_out=${schema_dir}" "--proto_path=${dir}" "${dir}/onnx.proto"
  DEPENDS "${dir}/onnx.proto"
  VERBATIM)
add_library(${TARGET_NAME}_schema STATIC "${schema_dir}/onnx.pb.cc" "${schema_dir}/onnx.pb.h")
target_include_directories(${TARGET_NAME}_schema SYSTEM PUBLIC
  "${PROJECT_BINARY_DIR}/generated" "${schema_dir}")
target_link_libraries(${TARGET_NAME}_schema PUBLIC protobuf::libprotobuf-lite)
target_compile_options(${TARGET_NAME}_schema PRIVATE -w)
target_link_libraries(${TARGET_NAME} PRIVATE ${TARGET_NAME}_schema)
if(TARGET ${TARGET_NAME}_test)
  target_link_libraries(${TARGET_NAME}_test PRIVATE ${TARGET_NAME}_schema)
endif()
