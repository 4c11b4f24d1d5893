find_package(dnnl REQUIRED)
target_link_libraries(${TARGET_NAME} PUBLIC DNNL::dnnl)
# oneDNN uses OpenMP's threads; their number is set when a primitive runs.
find_package(OpenMP REQUIRED COMPONENTS CXX)
target_link_libraries(${TARGET_NAME} PUBLIC OpenMP::OpenMP_CXX)
