/*
 * Load on an HTTP server of loopback, for benchmarks: one thread, many connections, no library in
 * the way, so that the server and not the client is measured.
 *
 *     apiload load PORT CLIENTS COUNT FIRST REQUEST     COUNT requests over CLIENTS connections
 *     apiload watch PORT WATCHERS COUNT FIRST REQUEST TARGET
 *                                                       each of COUNT requests, one after the other,
 *                                                       until all watchers of TARGET had their line
 *     apiload hold PORT CLIENTS COUNT FIRST REQUEST     sends all requests and reads no answer until
 *                                                       its input ends: what waiting answers cost
 *
 * REQUEST is a file, "METHOD TARGET" in the first line, the body behind it. "@@@@@@@@" anywhere in
 * it becomes the request's number, eight digits, counted from FIRST. The figures are printed as JSON.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"

enum { DIGITS = 8, READ_BLOCK = 256 << 10, HEAD_MAX = 8192 };

static const char mark[] = "@@@@@@@@";

enum state { HEAD, LENGTH, CHUNK_SIZE, CHUNK, CHUNK_END, TRAILER };

struct connection {
    int fd;
    enum state state;
    bool over;           /* the answer is complete */
    unsigned status;     /* of the answer */
    uint64_t left;       /* bytes of the body or chunk that are still to come */
    char line[HEAD_MAX]; /* of the head, or of a chunk's size */
    size_t line_size;
    uint64_t sent_ns;
    uint64_t lines, bytes; /* of the body so far */
};

static struct {
    uint16_t port;
    size_t clients, count, first;
    struct str request;  /* as sent, with marks */
    VEC(size_t) marks;   /* where */
    VEC(uint64_t) times; /* ns of each */
    uint64_t bytes, errors;
    unsigned last_error;
    int epoll;
} load;

static void die(const char *what)
{
    fprintf(stderr, "apiload: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void connection_open(struct connection *c)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons(load.port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (const void *)&in, sizeof(in)) < 0)
        die("cannot connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(load.epoll, EPOLL_CTL_ADD, c->fd, &event) < 0)
        die("cannot watch a connection");
}

static void send_all(int fd, const char *bytes, size_t n)
{
    while (n) {
        ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
        if (sent < 0)
            die("cannot send");
        bytes += sent;
        n -= (size_t)sent;
    }
}

static void answer_begin(struct connection *c)
{
    c->state = HEAD;
    c->over = false;
    c->line_size = 0;
    c->sent_ns = now();
}

static void send_request(struct connection *c, size_t number)
{
    char digits[DIGITS + 1];
    snprintf(digits, sizeof(digits), "%0*zu", DIGITS, number % 100000000);
    vec_for_each(&load.marks, at)
        memcpy(load.request.p + *at, digits, DIGITS);
    answer_begin(c);
    send_all(c->fd, load.request.p, load.request.len);
}

static void read_head(struct connection *c)
{
    c->line[c->line_size] = '\0';
    c->status = (unsigned)strtoul(c->line + strlen("HTTP/1.1 "), NULL, 10);
    const char *length = strcasestr(c->line, "\r\nContent-Length:");
    if (strcasestr(c->line, "\r\nTransfer-Encoding: chunked")) {
        c->state = CHUNK_SIZE;
    } else {
        c->state = LENGTH;
        c->left = length ? strtoull(length + strlen("\r\nContent-Length:"), NULL, 10) : 0;
        c->over = c->left == 0;
    }
    c->line_size = 0;
}

/* A byte of what is no body. */
static void take_byte(struct connection *c, char byte)
{
    if (c->line_size + 1 == HEAD_MAX) {
        errno = E2BIG;
        die("head");
    }
    c->line[c->line_size++] = byte;
    if (c->state == HEAD && byte == '\n' && c->line_size >= 4 &&
        memcmp(c->line + c->line_size - 4, "\r\n\r\n", 4) == 0) {
        read_head(c);
    } else if (c->state == CHUNK_SIZE && byte == '\n') {
        c->line[c->line_size] = '\0';
        c->left = strtoull(c->line, NULL, 16);
        c->state = c->left ? CHUNK : TRAILER;
        c->line_size = 0;
    } else if (c->state == CHUNK_END && byte == '\n') {
        c->state = CHUNK_SIZE;
        c->line_size = 0;
    } else if (c->state == TRAILER && byte == '\n') {
        c->over = c->line_size == 2;
        c->line_size = 0;
    }
}

static void take(struct connection *c, const char *p, size_t n)
{
    while (n) {
        if (c->state != LENGTH && c->state != CHUNK) {
            take_byte(c, *p++);
            n--;
            continue;
        }
        size_t part = n < c->left ? n : (size_t)c->left;
        for (const char *at = p, *end = p + part; load.clients && at < end; at++) {
            at = memchr(at, '\n', (size_t)(end - at));
            if (!at)
                break;
            c->lines++;
        }
        c->bytes += part;
        c->left -= part;
        p += part;
        n -= part;
        if (!c->left && c->state == LENGTH)
            c->over = true;
        else if (!c->left)
            c->state = CHUNK_END;
    }
}

static void receive(struct connection *c)
{
    static char buf[READ_BLOCK];
    ssize_t n = recv(c->fd, buf, sizeof(buf), 0);
    if (n <= 0) {
        errno = n ? errno : ECONNRESET;
        die("the server has closed");
    }
    take(c, buf, (size_t)n);
}

static void answered(const struct connection *c)
{
    vec_push(&load.times, now() - c->sent_ns);
    if (c->status < 200 || c->status > 299) {
        load.errors++;
        load.last_error = c->status;
    }
}

static void run_load(struct connection *connections)
{
    size_t sent = 0;
    for (size_t i = 0; i < load.clients && sent < load.count; i++)
        send_request(&connections[i], load.first + sent++);
    while (load.times.len < load.count) {
        struct epoll_event events[64];
        int n = epoll_wait(load.epoll, events, ARRAY_SIZE(events), -1);
        for (int i = 0; i < n; i++) {
            struct connection *c = events[i].data.ptr;
            receive(c);
            if (!c->over)
                continue;
            answered(c);
            load.bytes += c->bytes;
            c->bytes = 0;
            if (sent < load.count)
                send_request(c, load.first + sent++);
        }
    }
}

/* Until every watcher has had so many lines, and the writer its answer. */
static void await(struct connection *watchers, const struct connection *writer, uint64_t lines)
{
    size_t late = 0;
    for (size_t i = 0; i < load.clients; i++)
        late += watchers[i].lines < lines;
    while (late || !writer->over) {
        struct epoll_event events[256];
        int n = epoll_wait(load.epoll, events, ARRAY_SIZE(events), -1);
        for (int i = 0; i < n; i++) {
            struct connection *c = events[i].data.ptr;
            uint64_t before = c->lines;
            receive(c);
            if (c == writer || before >= lines || c->lines < lines)
                continue;
            vec_push(&load.times, now() - writer->sent_ns);
            late--;
        }
    }
    if (writer->status > 299) {
        load.errors++;
        load.last_error = writer->status;
    }
}

/* Each asks as soon as it is there: servers do not suffer many connections that say nothing. */
static void run_watch(struct connection *watchers, const char *target)
{
    struct connection writer = {.state = HEAD};
    struct str get = {0};
    str_appendf(&get, "GET %s HTTP/1.1\r\nHost: x\r\nAccept: application/json\r\n\r\n", target);
    for (size_t i = 0; i < load.clients; i++) {
        connection_open(&watchers[i]);
        answer_begin(&watchers[i]);
        send_all(watchers[i].fd, get.p, get.len);
        while (watchers[i].state == HEAD)
            receive(&watchers[i]);
    }
    str_done(&get);
    connection_open(&writer);
    for (size_t i = 0; i < load.count; i++) {
        send_request(&writer, load.first + i);
        await(watchers, &writer, i + 1);
    }
}

static void run_hold(struct connection *connections)
{
    for (size_t i = 0; i < load.clients; i++)
        send_request(&connections[i], load.first + i);
    puts("held");
    fflush(stdout);
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static double percentile(double part)
{
    return (double)load.times.p[(size_t)(part * (double)(load.times.len - 1))] / 1e6;
}

static void report(uint64_t ns)
{
    if (!load.times.len)
        return;
    qsort(load.times.p, load.times.len, sizeof(*load.times.p), by_size);
    printf("{\"seconds\": %.4f, \"per_second\": %.1f, \"p50_ms\": %.3f, \"p99_ms\": %.3f, "
           "\"max_ms\": %.3f, \"bytes\": %llu, \"errors\": %llu, \"last_error\": %u}\n",
           (double)ns / 1e9, (double)load.count * 1e9 / (double)ns, percentile(.5), percentile(.99),
           percentile(1), (unsigned long long)load.bytes, (unsigned long long)load.errors,
           load.last_error);
}

static void read_request(const char *path)
{
    struct str text = {0};
    struct err e = {0};
    if (file_read(path, 64 << 20, &text, &e) < 0) {
        fprintf(stderr, "apiload: %s\n", e.msg);
        exit(1);
    }
    size_t line = strcspn(str_get(&text), "\n");
    const char *body = text.len > line ? text.p + line + 1 : "";
    str_appendf(&load.request,
                "%.*s HTTP/1.1\r\nHost: x\r\nAccept: application/json\r\n"
                "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                (int)line, str_get(&text), strlen(body), body);
    for (char *at = load.request.p; (at = strstr(at, mark)); at += DIGITS)
        vec_push(&load.marks, (size_t)(at - load.request.p));
    str_done(&text);
}

int main(int argc, char **argv)
{
    if (argc < 7) {
        fputs("usage: apiload load|watch|hold PORT CLIENTS COUNT FIRST REQUEST [TARGET]\n", stderr);
        return 2;
    }
    load.port = (uint16_t)strtoul(argv[2], NULL, 10);
    load.clients = strtoul(argv[3], NULL, 10);
    load.count = strtoul(argv[4], NULL, 10);
    load.first = strtoul(argv[5], NULL, 10);
    read_request(argv[6]);
    struct rlimit files = {.rlim_cur = load.clients + 64, .rlim_max = load.clients + 64};
    struct rlimit are;
    if (getrlimit(RLIMIT_NOFILE, &are) == 0 && are.rlim_cur < files.rlim_cur)
        setrlimit(RLIMIT_NOFILE, &files);
    load.epoll = epoll_create1(EPOLL_CLOEXEC);
    struct connection *connections = mem_zalloc(load.clients * sizeof(*connections));
    bool watch = str_eq(argv[1], "watch");
    for (size_t i = 0; !watch && i < load.clients; i++)
        connection_open(&connections[i]);
    uint64_t start = now();
    if (str_eq(argv[1], "load"))
        run_load(connections);
    else if (watch)
        run_watch(connections, argc > 7 ? argv[7] : "/");
    else
        run_hold(connections);
    report(now() - start);
    for (size_t i = 0; i < load.clients; i++)
        close(connections[i].fd);
    free(connections);
    return load.errors ? 1 : 0;
}
