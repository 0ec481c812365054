# One call a target, so that each folder's CMakeLists.txt is a list of files.

# sluice_library(NAME SOURCES ... LINKS ...): the static library sluice_NAME.
function(sluice_library name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;LINKS")
  add_library(sluice_${name} STATIC ${ARG_SOURCES})
  target_include_directories(sluice_${name} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(sluice_${name} PUBLIC ${ARG_LINKS})
  set_property(GLOBAL APPEND PROPERTY SLUICE_LIBRARIES sluice_${name})
endfunction()

# sluice_program(NAME SOURCES ... LINKS ...): a program; jemalloc unless a sanitizer owns malloc.
function(sluice_program name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;LINKS")
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LINKS})
  if(SLUICE_SANITIZE)
    target_compile_definitions(${name} PRIVATE SLUICE_JEMALLOC=0)
  else()
    target_compile_definitions(${name} PRIVATE SLUICE_JEMALLOC=1)
    target_link_libraries(${name} PRIVATE PkgConfig::JEMALLOC)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
endfunction()

set(SLUICE_TEST_ENVIRONMENT
  "TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/tsan.supp:halt_on_error=1:second_deadlock_stack=1"
  "ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1"
  "UBSAN_OPTIONS=print_stacktrace=1")

# sluice_test(KIND FOLDER MODULE LINKS ...): builds tests/KIND/FOLDER/{test,stress}_MODULE.c and
# registers it as KIND/FOLDER/MODULE with the label KIND (unit, stress), run from the source root.
function(sluice_test kind folder module)
  cmake_parse_arguments(PARSE_ARGV 3 ARG "" "TIMEOUT" "LINKS")
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  set(prefix test)
  if(kind STREQUAL stress)
    set(prefix stress)
  endif()
  string(REPLACE "/" "_" flat_folder ${folder}) # net/muxer is a folder, no part of a target name
  set(target ${prefix}_${flat_folder}_${module})
  add_executable(${target} ${CMAKE_SOURCE_DIR}/tests/${kind}/${folder}/${prefix}_${module}.c)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE ${ARG_LINKS} PkgConfig::CMOCKA)
  add_test(NAME ${kind}/${folder}/${module} COMMAND ${target}
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${kind}/${folder}/${module} PROPERTIES LABELS "${kind};quick"
    TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT "${SLUICE_TEST_ENVIRONMENT}")
endfunction()

# sluice_fuzz(FOLDER PARSER LINKS ...): tests/fuzz/FOLDER/fuzz_PARSER.c defines
# LLVMFuzzerTestOneInput. Always built; without libFuzzer a small driver replays the seeds of
# tests/fuzz/FOLDER/seeds_PARSER/ as the test fuzz/FOLDER/PARSER.
function(sluice_fuzz folder parser)
  cmake_parse_arguments(PARSE_ARGV 2 ARG "" "" "LINKS")
  string(REPLACE "/" "_" flat_folder ${folder})
  set(target fuzz_${flat_folder}_${parser})
  set(source ${CMAKE_SOURCE_DIR}/tests/fuzz/${folder}/fuzz_${parser}.c)
  set(seeds ${CMAKE_SOURCE_DIR}/tests/fuzz/${folder}/seeds_${parser})
  if(SLUICE_FUZZ)
    add_executable(${target} ${source})
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    add_test(NAME fuzz/${folder}/${parser} COMMAND ${target} -runs=0 ${seeds})
  else()
    add_executable(${target} ${source} ${CMAKE_SOURCE_DIR}/tests/support/replay_seeds.c)
    add_test(NAME fuzz/${folder}/${parser} COMMAND ${target} ${seeds})
  endif()
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE ${ARG_LINKS})
  set_tests_properties(fuzz/${folder}/${parser} PROPERTIES LABELS "fuzz;quick" TIMEOUT 120
    ENVIRONMENT "${SLUICE_TEST_ENVIRONMENT}")
endfunction()
