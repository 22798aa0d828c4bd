/*
 * Bytes on a connection to the HTTP server, as a client may send them: whatever they are, it answers
 * with HTTP or closes, and what reaches the handler is as its header says. All goes over a loopback
 * socket, since the library that reads requests wants one.
 */
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/str.h"
#include "fuzz.h"
#include "http/server.h"

static bool is_text(const char *s)
{
    size_t n = strlen(s), width;
    uint32_t c;
    for (size_t i = 0; i < n; i += width) {
        width = str_utf8(s + i, n - i, &c);
        if (width == 0)
            return false;
    }
    return true;
}

static void answer(void *context, struct http_request *r)
{
    (void)context;
    for (size_t i = 0; i < r->n_segments; i++)
        CHECK(is_text(r->segments[i]));
    CHECK(r->method && r->path && r->body && r->body[r->body_size] == '\0');
    const char *q = http_request_query(r, "q"), *h = http_request_header(r, "X-Test");
    http_reply_header(r, "X-Reply", h ? h : "");
    http_reply(r, 200, q, r->body, 0, NULL, NULL);
}

static void handle(void *context, struct http_request *r)
{
    if (strlen(r->method) % 2) /* both ways */
        http_defer(r, answer, context);
    else
        answer(context, r);
}

static uint16_t port(void)
{
    static struct http_server *server;
    struct err e = {0};
    struct http_server_options o = {
        .handle = handle, .threads = 1, .body_bytes = 4096, .idle_seconds = 5};
    if (!server)
        CHECK(http_server_start(&o, &server, &e) == 0);
    return http_server_port(server);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(port()),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0);
    ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
    shutdown(fd, SHUT_WR);
    char reply[4096];
    ssize_t n = sent < 0 ? 0 : recv(fd, reply, sizeof(reply), 0);
    CHECK(n <= 0 || (n >= 5 && memcmp(reply, "HTTP/", 5) == 0));
    close(fd);
    return 0;
}
