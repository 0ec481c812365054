# Every outside library, as an imported target. All are Debian packages (see tools/dev).
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)

pkg_check_modules(URCU REQUIRED IMPORTED_TARGET liburcu-qsbr liburcu-cds)
pkg_check_modules(CK REQUIRED IMPORTED_TARGET ck)
pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)
pkg_check_modules(JEMALLOC REQUIRED IMPORTED_TARGET jemalloc)
pkg_check_modules(UV REQUIRED IMPORTED_TARGET libuv)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(MICROHTTPD REQUIRED IMPORTED_TARGET libmicrohttpd)
find_program(PROTOC_C protoc-c REQUIRED)

# Two that come without a pkg-config file.
function(sluice_import name header library)
  find_path(${name}_INCLUDE ${header} REQUIRED)
  find_library(${name}_LIBRARY ${library} REQUIRED)
  add_library(Sluice::${name} UNKNOWN IMPORTED)
  set_target_properties(Sluice::${name} PROPERTIES IMPORTED_LOCATION ${${name}_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${${name}_INCLUDE})
endfunction()
sluice_import(wslay wslay/wslay.h wslay)
sluice_import(http_parser http_parser.h http_parser)
