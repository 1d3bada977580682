/* The server of the benches: as little as can be, so that what is measured is the launcher.
 *
 *   speak                 writes one frame, then reads stdin to its end
 *   frames COUNT LENGTH   for each line of stdin: COUNT frames of LENGTH bytes, newline included
 *   lines LENGTH TOTAL    for each line of stdin: TOTAL bytes of stderr in lines of LENGTH bytes, then one frame
 *
 * On Linux it is made of system calls alone: starting a C library would cost more than the launch. */

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#define READ_CALL 63
#define WRITE_CALL 64
#define EXIT_CALL 93
#if defined(__x86_64__)
#undef READ_CALL
#undef WRITE_CALL
#undef EXIT_CALL
#define READ_CALL 0
#define WRITE_CALL 1
#define EXIT_CALL 60
static long call(long number, long a, long b, long c) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}
__asm__(".globl _start\n_start:\n xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call begin\n");
#else
static long call(long number, long a, long b, long c) {
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
}
__asm__(".globl _start\n_start:\n mov x29, #0\n mov x0, sp\n bl begin\n");
#endif
static long read_some(char *to, long size) { return call(READ_CALL, 0, (long)to, size); }
static long write_some(int fd, const char *from, long size) { return call(WRITE_CALL, fd, (long)from, size); }
static void quit(int status) { for (;;) call(EXIT_CALL, status, 0, 0); }
static void run(int argc, char **argv);
__attribute__((used)) void begin(long *stack) { run((int)stack[0], (char **)(stack + 1)); }
#else
#include <unistd.h>
static long read_some(char *to, long size) { return read(0, to, size); }
static long write_some(int fd, const char *from, long size) { return write(fd, from, size); }
static void quit(int status) { _exit(status); }
static void run(int argc, char **argv);
int main(int argc, char **argv) { run(argc, argv); }
#endif

#define CHUNK 65536
static char input[4096];
static char output[CHUNK];

static void write_all(int fd, const char *from, long size) {
    while (size > 0) {
        long count = write_some(fd, from, size);
        if (count <= 0) quit(1);
        from += count;
        size -= count;
    }
}

static const char FRAME[] = "{\"jsonrpc\":\"2.0\",\"method\":\"ready\"}\n";
static const char BEFORE[] = "{\"jsonrpc\":\"2.0\",\"method\":\"data\",\"params\":{\"x\":\"";
static const char AFTER[] = "\"}}\n";

static long number(const char *text) {
    long value = 0;
    while (*text >= '0' && *text <= '9') value = value * 10 + (*text++ - '0');
    return value;
}

static void frame(long length) {
    write_all(1, BEFORE, sizeof BEFORE - 1);
    for (long left = length - (long)(sizeof BEFORE + sizeof AFTER - 2); left > 0; left -= CHUNK)
        write_all(1, output, left < CHUNK ? left : CHUNK);
    write_all(1, AFTER, sizeof AFTER - 1);
}

static void lines(long length, long total) {
    long whole = CHUNK / length * length;
    for (long at = 0; at < CHUNK; at++) output[at] = at % length == length - 1 ? '\n' : 'x';
    for (long left = total; left > 0; left -= whole) write_all(2, output, left < whole ? left : whole);
    write_all(1, FRAME, sizeof FRAME - 1);
}

static void run(int argc, char **argv) {
    char mode = argc > 1 ? argv[1][0] : 's';
    if (mode != 's' && argc < 4) quit(2);
    long first = argc > 3 ? number(argv[2]) : 0, second = argc > 3 ? number(argv[3]) : 0;
    for (long at = 0; at < CHUNK; at++) output[at] = 'x';
    if (mode == 's') write_all(1, FRAME, sizeof FRAME - 1);
    for (;;) {
        long count = read_some(input, sizeof input);
        if (count <= 0) quit(0);
        for (long at = 0; at < count; at++) {
            if (input[at] != '\n') continue;
            if (mode == 'f')
                for (long made = 0; made < first; made++) frame(second);
            if (mode == 'l') lines(first, second);
        }
    }
}
