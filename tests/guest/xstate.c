/*
 * Lets user-mode Linux run on processors with more registers than it knows.
 *
 * Its kernel keeps the first bytes of each thread's floating point state (x87, SSE, AVX) and gives them
 * back with ptrace(PTRACE_SETREGSET). A machine whose processor has more, AVX-512 or AMX, takes only the
 * whole, and the guest's first process would die. Preloaded into it, this library reads and writes the
 * whole: the rest of a thread's state is kept here, under the address where the guest's kernel keeps the
 * beginning of it.
 *
 *     guest's kernel    [ legacy 512 | header 64 | AVX 256 ]            at B, one per thread
 *     here                                      B -> [ the rest ]
 *
 * A thread for which nothing was kept has just been forked, in a system call, where no code counts on
 * those registers: they start empty.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

enum { WHOLE_MAX = 32 << 10, SLOTS = 4096, BITS_AT = 512, KNOWN_BITS = 7 };

static struct slot {
    const void *base;
    unsigned char *rest;
} slots[SLOTS];
static unsigned char whole[WHOLE_MAX];

static struct slot *slot_of(const void *base)
{
    size_t at = ((uintptr_t)base >> 6) % SLOTS;
    for (size_t i = 0; i < SLOTS; i++, at = (at + 1) % SLOTS) {
        if (!slots[at].base)
            slots[at].base = base;
        if (slots[at].base == base)
            return &slots[at];
    }
    abort(); /* threads' memory is used again: so many there never are */
}

static long call(long request, long pid, void *address, void *data)
{
    static long (*real)(long, ...);
    if (!real)
        real = (long (*)(long, ...))dlsym(RTLD_NEXT, "ptrace");
    return real(request, pid, address, data);
}

long ptrace(enum __ptrace_request request, ...)
{
    va_list ap;
    va_start(ap, request);
    long pid = va_arg(ap, int);
    void *address = va_arg(ap, void *), *data = va_arg(ap, void *);
    va_end(ap);
    struct iovec *asked = data, all = {whole, sizeof(whole)};
    bool set = request == PTRACE_SETREGSET;
    if ((!set && request != PTRACE_GETREGSET) || (uintptr_t)address != NT_X86_XSTATE)
        return call(request, pid, address, data);
    long status = call(PTRACE_GETREGSET, pid, address, &all);
    if (status < 0 || all.iov_len <= asked->iov_len)
        return status < 0 ? status : call(request, pid, address, data);
    struct slot *slot = slot_of(asked->iov_base);
    size_t rest = all.iov_len - asked->iov_len;
    if (!set) {
        memcpy(asked->iov_base, whole, asked->iov_len);
        if (!slot->rest && !(slot->rest = malloc(rest)))
            abort();
        memcpy(slot->rest, whole + asked->iov_len, rest);
        return 0;
    }
    memcpy(whole, asked->iov_base, asked->iov_len);
    if (slot->rest) {
        memcpy(whole + asked->iov_len, slot->rest, rest);
    } else {
        uint64_t bits;
        memcpy(&bits, whole + BITS_AT, sizeof(bits));
        bits &= KNOWN_BITS;
        memcpy(whole + BITS_AT, &bits, sizeof(bits));
    }
    return call(PTRACE_SETREGSET, pid, address, &all);
}
