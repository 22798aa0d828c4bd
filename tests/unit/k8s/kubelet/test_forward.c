#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "k8s/kubelet/forward.h"
#include "unit.h"

enum { PATIENCE_MS = 20000, LARGE = 5 << 20, MANY = 200 };

static struct sockaddr_in address(const char *ip, uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, ip, &a.sin_addr);
    return a;
}

/* A socket that listens, or only has an address that nobody listens at; *a gets its port. */
static int bound(struct sockaddr_in *a, bool listens)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = sizeof(*a);
    assert_int_equal(bind(fd, (struct sockaddr *)a, sizeof(*a)), 0);
    if (listens)
        assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)a, &size), 0);
    return fd;
}

static int dial(const struct sockaddr_in *a)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (const struct sockaddr *)a, sizeof(*a)) == 0)
        return fd;
    close(fd);
    return -1;
}

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, PATIENCE_MS) == 1;
}

/* An address that is free, for a listener. */
static struct sockaddr_in front(void)
{
    struct sockaddr_in a = address("127.0.0.1", 0);
    close(bound(&a, false));
    return a;
}

static void assert_reads(int fd, const char *text)
{
    char got[64] = {0};
    size_t n = 0;
    while (n < strlen(text)) {
        assert_true(readable(fd));
        ssize_t more = read(fd, got + n, sizeof(got) - 1 - n);
        assert_true(more > 0);
        n += (size_t)more;
    }
    assert_string_equal(got, text);
}

static struct node_forward *make(void)
{
    struct node_forward *f = NULL;
    struct err e = {0};
    if (node_forward_new(&f, &e) < 0)
        fail_msg("%s", e.msg);
    return f;
}

static void goes_both_ways_and_ends(void **state)
{
    (void)state;
    _cleanup_(node_forward_freep) struct node_forward *f = make();
    struct sockaddr_in to = address("127.0.0.1", 0), from = front();
    int server = bound(&to, true);
    assert_int_equal(node_forward_set(f, &from, &to, 1, NULL), 0);
    int client = dial(&from), there = accept(server, NULL, NULL);
    assert_true(client >= 0 && there >= 0);
    assert_int_equal(write(client, "question", 8), 8);
    assert_reads(there, "question");
    shutdown(client, SHUT_WR); /* the answer comes all the same */
    assert_true(readable(there));
    assert_int_equal(read(there, (char[1]){0}, 1), 0);
    assert_int_equal(write(there, "answer", 6), 6);
    assert_reads(client, "answer");
    close(there);
    assert_true(readable(client));
    assert_int_equal(read(client, (char[1]){0}, 1), 0);
    close(client);
    close(server);
}

static void passes_over_who_is_not_there(void **state)
{
    (void)state;
    _cleanup_(node_forward_freep) struct node_forward *f = make();
    struct sockaddr_in to[2] = {address("127.0.0.1", 0), address("127.0.0.1", 0)}, from = front();
    int nobody = bound(&to[0], false), server = bound(&to[1], true);
    assert_int_equal(node_forward_set(f, &from, to, 2, NULL), 0);
    for (int i = 0; i < 4; i++) {
        int client = dial(&from), there = accept(server, NULL, NULL);
        assert_int_equal(write(there, "here", 4), 4);
        assert_reads(client, "here");
        close(there);
        close(client);
    }
    /* Nobody at all: a reset, and no listener once there is nothing behind it. */
    assert_int_equal(node_forward_set(f, &from, to, 1, NULL), 0);
    int client = dial(&from);
    assert_true(readable(client));
    assert_int_equal(read(client, (char[1]){0}, 1), -1);
    assert_int_equal(errno, ECONNRESET);
    close(client);
    assert_int_equal(node_forward_set(f, &from, NULL, 0, NULL), 0);
    assert_int_equal(dial(&from), -1);
    close(nobody);
    close(server);
}

/* As many as there may be, who say nothing: who speaks gets through all the same, and stays. */
static void silent_connections_make_room(void **state)
{
    (void)state;
    _cleanup_(node_forward_freep) struct node_forward *f = make();
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_max < 5 * FORWARD_MOST)
        skip();
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    struct sockaddr_in to = address("127.0.0.1", 0), from = front();
    int server = bound(&to, true), silent[FORWARD_MOST + 100], there[ARRAY_SIZE(silent)];
    assert_int_equal(node_forward_set(f, &from, &to, 1, NULL), 0);
    int first = dial(&from), first_there = accept(server, NULL, NULL);
    assert_int_equal(write(first, "first", 5), 5);
    assert_reads(first_there, "first");
    for (size_t i = 0; i < ARRAY_SIZE(silent); i++) {
        silent[i] = dial(&from);
        assert_true(readable(server));
        there[i] = accept(server, NULL, NULL);
    }
    int client = dial(&from);
    assert_true(readable(server));
    int there_too = accept(server, NULL, NULL);
    assert_int_equal(write(client, "hello", 5), 5);
    assert_reads(there_too, "hello");
    assert_int_equal(write(first, "still here", 10), 10);
    assert_reads(first_there, "still here");
    for (size_t i = 0; i < ARRAY_SIZE(silent); i++) {
        close(silent[i]);
        close(there[i]);
    }
    close(client);
    close(there_too);
    close(first);
    close(first_there);
    close(server);
}

static void says_when_somebody_else_listens(void **state)
{
    (void)state;
    _cleanup_(node_forward_freep) struct node_forward *f = make();
    struct sockaddr_in from = address("127.0.0.1", 0), to = address("127.0.0.1", 9);
    struct err e = {0};
    int other = bound(&from, true);
    assert_int_equal(node_forward_set(f, &from, &to, 1, &e), -1);
    assert_int_equal(e.code, ERR_ALREADY_EXISTS);
    close(other);
    assert_int_equal(node_forward_set(f, &from, &to, 1, &e), 0);
}

/* Reads all of it, slowly at first. */
static void *swallow(void *context)
{
    int fd = *(int *)context;
    char block[65536];
    size_t *total = mem_zalloc(sizeof(*total));
    ssize_t n;
    while ((n = read(fd, block, *total ? sizeof(block) : 100)) > 0)
        *total += (size_t)n;
    return total;
}

static void large_amounts_wait_for_their_reader(void **state)
{
    (void)state;
    _cleanup_(node_forward_freep) struct node_forward *f = make();
    struct sockaddr_in to = address("127.0.0.1", 0), from = front();
    int server = bound(&to, true);
    assert_int_equal(node_forward_set(f, &from, &to, 1, NULL), 0);
    int client = dial(&from), there = accept(server, NULL, NULL);
    pthread_t reader;
    assert_int_equal(pthread_create(&reader, NULL, swallow, &there), 0);
    char *block = mem_zalloc(LARGE);
    for (size_t done = 0; done < LARGE;) {
        ssize_t n = write(client, block + done, LARGE - done);
        assert_true(n > 0);
        done += (size_t)n;
    }
    close(client);
    size_t *total;
    pthread_join(reader, (void **)&total);
    assert_int_equal(*total, LARGE);
    free(total);
    free(block);
    close(there);
    close(server);
}

static void many_at_once_and_left_alone(void **state)
{
    (void)state;
    struct node_forward *f = make();
    struct sockaddr_in to = address("127.0.0.1", 0), from = front();
    int server = bound(&to, true), clients[MANY], theirs[MANY];
    assert_int_equal(node_forward_set(f, &from, &to, 1, NULL), 0);
    for (int i = 0; i < MANY; i++) {
        clients[i] = dial(&from);
        theirs[i] = accept(server, NULL, NULL);
        assert_true(clients[i] >= 0 && theirs[i] >= 0);
    }
    assert_int_equal(node_forward_set(f, &from, NULL, 0, NULL), 0); /* they outlive it */
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(write(theirs[i], "x", 1), 1);
        assert_reads(clients[i], "x");
        if (i % 2)
            close(theirs[i]);
    }
    node_forward_free(f); /* with connections */
    for (int i = 0; i < MANY; i++) {
        assert_true(readable(clients[i]));
        close(clients[i]);
        if (i % 2 == 0)
            close(theirs[i]);
    }
    close(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_both_ways_and_ends),
        cmocka_unit_test(passes_over_who_is_not_there),
        cmocka_unit_test(says_when_somebody_else_listens),
        cmocka_unit_test(silent_connections_make_room),
        cmocka_unit_test(large_amounts_wait_for_their_reader),
        cmocka_unit_test(many_at_once_and_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
