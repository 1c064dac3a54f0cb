/* An engine under test that is kept running: a program a line on standard input, an answer a line on standard output
   (docs/reference/formats.md, section 3). It has one op, Negate of F64, and refuses everything else; a real engine
   would read JSON with a library.   cc -O2 -o engine engine.c
   tenferro-ref check PROGRAM --executors external-served:./engine */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void refuse(const char *why) {
    printf("{\"error\":{\"kind\":\"UnsupportedOp\",\"op\":\"program\",\"reason\":\"%s\",\"message\":\"%s\"}}\n", why, why);
}

/* The hexadecimal digit with the sign bit of its nibble flipped. */
static char flipped(char digit) {
    int value = digit <= '9' ? digit - '0' : digit - 'a' + 10;
    return "0123456789abcdef"[value ^ 8];
}

int main(void) {
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) {
        const char *one = "\"instructions\":[{\"op\":\"Negate\",\"attrs\":{},\"inputs\":[0],\"outputs\":[1]}],\"outputs\":[1]}";
        char *tensor = strstr(line, "\"inputs\":[{\"dtype\":\"F64\"");
        if (!strstr(line, one) || !tensor) {
            refuse("only Negate of F64");
        } else {
            tensor += strlen("\"inputs\":");                     /* [{"dtype":"F64","shape":[2],"data":"..."}]} */
            char *data = strstr(tensor, "\"data\":\"") + strlen("\"data\":\"");
            char *end = strchr(data, '"');
            for (char *element = data; element < end; element += 16)
                element[14] = flipped(element[14]);              /* little-endian: the sign is in the last byte */
            end[strlen("\"}]")] = '\0';
            printf("{\"outputs\":%s}\n", tensor);
        }
        fflush(stdout);                                          /* an answer in a buffer is no answer */
    }
    free(line);
    return 0;
}
