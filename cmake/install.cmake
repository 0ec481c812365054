# What `cmake --install` puts where: programs, library and header, manual page, unit, documents.
include(GNUInstallDirs)
set(UNIT_DIR lib/systemd/system CACHE STRING "folder of systemd units, below the prefix")
set(SYSUSERS_DIR lib/sysusers.d CACHE STRING "folder of systemd's users, below the prefix")

set(out ${CMAKE_BINARY_DIR}/packaging)
# Paths as they are when it runs, not where a package is put together.
set(bin_path ${CMAKE_INSTALL_FULL_BINDIR})
set(config_path ${CMAKE_INSTALL_FULL_SYSCONFDIR}/sluice/sluice.toml)
configure_file(packaging/sluice.service.in ${out}/sluice.service @ONLY)
configure_file(packaging/sluice.pc.in ${out}/sluice.pc @ONLY)
configure_file(packaging/sluice-static.pc.in ${out}/sluice-static.pc @ONLY)

add_custom_command(OUTPUT ${out}/sluice.1
  COMMAND sluice man > ${out}/sluice.1
  DEPENDS sluice VERBATIM)
add_custom_target(manual_page ALL DEPENDS ${out}/sluice.1)
# All that is installed, without what only the tests need.
add_custom_target(installed DEPENDS sluice flood sluice_shared sluice_static manual_page)

install(TARGETS sluice flood RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS sluice_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${CMAKE_BINARY_DIR}/lib/libsluice.a DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/sluice.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${out}/sluice.pc ${out}/sluice-static.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${out}/sluice.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${out}/sluice.service DESTINATION ${UNIT_DIR})
install(FILES packaging/sluice.sysusers DESTINATION ${SYSUSERS_DIR} RENAME sluice.conf)
install(FILES packaging/sluice.logrotate DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR}/logrotate.d
  RENAME sluice)
install(FILES packaging/sluice.toml DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/sluice/examples)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/sluice)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/sluice)
