#include "base/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

/* A peer that is silent is asked after 30 s, then 3 times every 10 s. */
enum {
    KEEP_IDLE_SECONDS = 30,
    KEEP_INTERVAL_SECONDS = 10,
    KEEP_COUNT = 3,
    UNACKNOWLEDGED_MS = 60000,
    TRY_AGAIN_NS = 10 * 1000 * 1000, /* for two seconds in all */
    TRIES = 200,
};

static int parse_address(const char *text, uint16_t port, struct sockaddr_storage *ret_address,
                         socklen_t *ret_size, struct err *e)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
        memcpy(ret_address, &v4, sizeof(v4));
        *ret_size = sizeof(v4);
        return 0;
    }
    if (inet_pton(AF_INET6, text, &v6.sin6_addr) == 1) {
        memcpy(ret_address, &v6, sizeof(v6));
        *ret_size = sizeof(v6);
        return 0;
    }
    return err_set(e, ERR_INVALID_ARGUMENT, "InvalidAddress",
                   "'%s' is no address: write a numeric IPv4 or IPv6 one", text);
}

static int set_option(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof(value));
}

/* Closes it, with errno as it was; -1. */
static int give_up(int fd)
{
    int errnum = errno;
    close(fd);
    errno = errnum;
    return -1;
}

/* A socket that notices vanished peers, or whose connections do: they inherit what is set here. */
static int open_socket(const struct sockaddr_storage *address)
{
    int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1) == 0 &&
        set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_SECONDS) == 0 &&
        set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEP_INTERVAL_SECONDS) == 0 &&
        set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEP_COUNT) == 0 &&
        set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS) == 0)
        return fd;
    return give_up(fd);
}

static int open_listener(const struct sockaddr_storage *address, socklen_t size)
{
    int fd = open_socket(address);
    if (fd < 0)
        return -1;
    if (set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1) == 0 &&
        (address->ss_family != AF_INET6 || set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0) == 0) &&
        bind(fd, (const void *)address, size) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    return give_up(fd);
}

int net_dial(const char *address, uint16_t port, const char *source, int *ret_fd, struct err *e)
{
    struct sockaddr_storage storage = {0}, own = {0};
    socklen_t size = 0, own_size = 0;
    if (parse_address(address, port, &storage, &size, e) < 0 ||
        (source && parse_address(source, 0, &own, &own_size, e) < 0))
        return -1;
    int fd = open_socket(&storage);
    /* Without a port: that is chosen when both ends are known, so that one serves many connections. */
    if (fd >= 0 && set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1) == 0 &&
        (!source || (set_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1) == 0 &&
                     bind(fd, (const void *)&own, own_size) == 0)) &&
        (connect(fd, (const void *)&storage, size) == 0 || errno == EINPROGRESS)) {
        *ret_fd = fd;
        return 0;
    }
    err_errno(e, errno, "cannot reach %s port %d", address, port);
    if (fd >= 0)
        close(fd);
    return -1;
}

static int listen_within(const char *address, uint16_t port, int tries, int *ret_fd,
                         uint16_t *ret_port, struct err *e)
{
    const struct timespec pause = {.tv_nsec = TRY_AGAIN_NS};
    struct sockaddr_storage storage = {0};
    socklen_t size = 0;
    if (parse_address(address, port, &storage, &size, e) < 0)
        return -1;
    int fd = open_listener(&storage, size);
    while (fd < 0 && errno == EADDRINUSE && --tries > 0) {
        nanosleep(&pause, NULL);
        fd = open_listener(&storage, size);
    }
    if (fd < 0)
        return err_errno(e, errno, "cannot listen on %s port %d", address, port);
    getsockname(fd, (void *)&storage, &size);
    /* Both families have the port in the same place. */
    struct sockaddr_in in;
    memcpy(&in, &storage, sizeof(in));
    *ret_port = ntohs(in.sin_port);
    *ret_fd = fd;
    return 0;
}

int net_listen(const char *address, uint16_t port, int *ret_fd, uint16_t *ret_port, struct err *e)
{
    return listen_within(address, port, 1, ret_fd, ret_port, e);
}

int net_listen_again(const char *address, uint16_t port, int *ret_fd, uint16_t *ret_port,
                     struct err *e)
{
    return listen_within(address, port, TRIES, ret_fd, ret_port, e);
}

int net_parse(const char *text, uint16_t default_port, char **ret_address, uint16_t *ret_port,
              struct err *e)
{
    bool bracket = *text == '[';
    const char *begin = text + bracket, *end = bracket ? strchr(text, ']') : strchr(text, ':');
    const char *port = NULL;
    if (!bracket && end && strchr(end + 1, ':'))
        end = NULL; /* an IPv6 address alone */
    if (end)
        port = bracket ? end + 1 : end;
    unsigned long n = default_port;
    bool good = !bracket || end;
    if (good && port && *port) {
        char *rest = NULL;
        good = *port == ':' && port[1] >= '0' && port[1] <= '9';
        n = good ? strtoul(port + 1, &rest, 10) : 0;
        good = good && !*rest && n <= UINT16_MAX;
    }
    char *address = end ? mem_strndup(begin, (size_t)(end - begin)) : mem_strdup(begin);
    struct in6_addr bytes;
    if (!good ||
        (inet_pton(AF_INET, address, &bytes) != 1 && inet_pton(AF_INET6, address, &bytes) != 1)) {
        free(address);
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidAddress",
                       "'%s': write a numeric address and a port, such as 127.0.0.1:%u", text,
                       default_port);
    }
    *ret_address = address;
    *ret_port = (uint16_t)n;
    return 0;
}

static bool is_loopback_v4(const void *bytes)
{
    return *(const unsigned char *)bytes == 127;
}

bool net_is_loopback(const char *address)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, address, &v4) == 1)
        return is_loopback_v4(&v4);
    if (inet_pton(AF_INET6, address, &v6) != 1)
        return false;
    return IN6_IS_ADDR_LOOPBACK(&v6) ||
           (IN6_IS_ADDR_V4MAPPED(&v6) && is_loopback_v4(&v6.s6_addr[12]));
}

void net_address_text(const struct sockaddr *address, char *text, size_t size)
{
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    *text = '\0';
    if (address->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)address)->sin_addr, text,
                  (socklen_t)size);
    else if (address->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(v6))
        inet_ntop(AF_INET, &v6->s6_addr[12], text, (socklen_t)size);
    else if (address->sa_family == AF_INET6)
        inet_ntop(AF_INET6, v6, text, (socklen_t)size);
}
