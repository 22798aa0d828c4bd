/*
 * orlop-shim: runs one instance of a container, or a command beside one.
 *
 *     orlop-shim                      reads what to run on stdin; ends when it runs, or could not
 *     orlop-shim --enter PID ARGV...  in the environment and among the mounts of a process
 */
#include "k8s/shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

enum { SPEC_MOST = 8 << 20 };

static int fail(const char *message)
{
    fprintf(stderr, "%s\n", message);
    return 1;
}

static int read_spec(struct str *text)
{
    char buf[4096];
    ssize_t n;
    while ((n = read(STDIN_FILENO, buf, sizeof(buf))) > 0 && text->len < SPEC_MOST)
        str_append_n(text, buf, (size_t)n);
    return n == 0 ? 0 : -1;
}

/* Nothing of whoever asked is held: not the terminal, not a pipe, not a folder. */
static void detach(void)
{
    int null = open("/dev/null", O_RDWR);
    setsid();
    dup2(null, 0);
    dup2(null, 1);
    dup2(null, 2);
    if (null > 2)
        close(null);
    (void)!chdir("/");
}

int main(int argc, char **argv)
{
    struct err e = {0};
    if (argc > 3 && str_eq(argv[1], "--enter")) {
        shim_enter((pid_t)strtol(argv[2], NULL, 10), (const char *const *)argv + 3, &e);
        fail(e.msg);
        return 126;
    }
    _cleanup_(str_done) struct str text = {0};
    _cleanup_(shim_spec_done) struct shim_spec spec = {0};
    int report[2];
    if (argc > 1)
        return fail("usage: orlop-shim < SPECIFICATION; orlop-node runs it");
    if (read_spec(&text) < 0 || shim_spec_parse(str_get(&text), text.len, &spec, &e) < 0)
        return fail(e.code ? e.msg : "cannot read the specification");
    if (pipe2(report, O_CLOEXEC) < 0)
        return fail("cannot make a pipe");
    pid_t pid = fork();
    if (pid < 0)
        return fail("cannot fork");
    if (pid == 0) {
        close(report[0]);
        detach();
        return shim_run(&spec, report[1]);
    }
    close(report[1]);
    char message[sizeof(e.msg)];
    ssize_t n = read(report[0], message, sizeof(message) - 1);
    message[n > 0 ? n : 0] = '\0';
    /* Closed without a word: it runs. A shim that was killed before it could say so looks alike. */
    return n > 0 ? fail(message) : 0;
}
