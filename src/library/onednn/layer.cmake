find_package(dnnl REQUIRED)
target_link_libraries(${TARGET_NAME} PUBLIC DNNL::dnnl)
# oneDNN uses OpenMP's threads; their number is set when a primitive runs.
find_package(OpenMP REQUIRED COMPONENTS CXX)
target_link_libraries(${TARGET_NAME} PUBLIC OpenMP::OpenMP_CXX)
# Loops are compiled for each kind of processor in kernel_sets.def, and chosen when they run. A build for debugging needs
# their speed, too: tests compute with them.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(loops_options -O2 -ffp-contract=fast)
  set_property(SOURCE "${dir}/kernels_avx2.cc" APPEND PROPERTY COMPILE_OPTIONS ${loops_options} -mavx2 -mfma)
  set_property(SOURCE "${dir}/kernels_avx512.cc" APPEND PROPERTY COMPILE_OPTIONS ${loops_options} -mavx512f -mfma)
endif()
# oneDNN chooses other implementations for other processors.
if(TARGET ${TARGET_NAME}_test)
  foreach(instructions SSE41 AVX2)
    set(name "${folder}/with_${instructions}")
    add_test(NAME "${name}" COMMAND ${TARGET_NAME}_test --gtest_filter=Convolution*:MatMul*)
    set_tests_properties("${name}" PROPERTIES ENVIRONMENT "ONEDNN_MAX_CPU_ISA=${instructions}" TIMEOUT 300)
  endforeach()
endif()
