# Counts how often each line of the target's sources runs, if FOLDER is below one of TENON_COVERAGE. Only
# the folders of interest are counted: everything else, tests included, is compiled as in the dev preset.
function(tenon_measure_coverage target folder)
  foreach(measured ${TENON_COVERAGE})
    if("${folder}/" MATCHES "^${measured}/")
      # Threads count, too.
      target_compile_options(${target} PRIVATE --coverage -fprofile-update=atomic)
      return()
    endif()
  endforeach()
endfunction()
