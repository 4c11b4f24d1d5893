include(GNUInstallDirs)

# tenon_install_if_built(TARGET [COMPONENT NAME]): installs the target's file where it is built, and otherwise
# says so, so that a build of some targets can be installed.
function(tenon_install_if_built target)
  install(TARGETS ${target} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" ${ARGN} OPTIONAL
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" ${ARGN} OPTIONAL)
  install(CODE "
    if(NOT EXISTS \"$<TARGET_FILE:${target}>\")
      message(STATUS \"Not built, so not installed: $<TARGET_FILE_NAME:${target}> (target ${target})\")
    endif()
  " ${ARGN})
endfunction()
