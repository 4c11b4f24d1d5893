find_package(dnnl REQUIRED)
target_link_libraries(${TARGET_NAME} PUBLIC DNNL::dnnl)
# oneDNN's threads are OpenMP's; their number is set where a primitive runs.
find_package(OpenMP REQUIRED COMPONENTS CXX)
target_link_libraries(${TARGET_NAME} PUBLIC OpenMP::OpenMP_CXX)
