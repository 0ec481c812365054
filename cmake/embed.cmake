# cmake -DINPUT=file -DOUTPUT=file.c -DNAME=name -P embed.cmake: a file as bytes of a C program.
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes ${bytes})
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes ${bytes})
get_filename_component(from ${INPUT} NAME)
file(WRITE ${OUTPUT} "/* Made from ${from}. */
#include <stddef.h>

extern const unsigned char ${NAME}[];
extern const size_t ${NAME}_length;
const unsigned char ${NAME}[] = {
${bytes}};
const size_t ${NAME}_length = sizeof(${NAME});
")
