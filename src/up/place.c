#include "up/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"

enum { STATE_MAX = 1 << 20 };

static char *default_folder(void)
{
    const char *own = getenv("ORLOP_DATA"), *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (own && *own)
        return mem_strdup(own);
    if (geteuid() == 0)
        return mem_strdup("/var/lib/orlop");
    if (xdg && *xdg)
        return mem_printf("%s/orlop", xdg);
    return home && *home ? mem_printf("%s/.local/share/orlop", home) : NULL;
}

int up_place_open(const char *folder, struct up_place *ret_place, struct err *e)
{
    _cleanup_free_ char *named = folder ? mem_strdup(folder) : default_folder();
    if (!named || !*named)
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage",
                       "there is no home folder: say with --data where to keep everything");
    char here[PATH_MAX];
    *ret_place = (struct up_place){.lock_fd = -1};
    if (*named == '/')
        ret_place->folder = TAKE_PTR(named);
    else if (getcwd(here, sizeof(here)))
        ret_place->folder = mem_printf("%s/%s", here, named);
    else
        return err_errno(e, errno, "the current folder");
    return 0;
}

void up_place_done(struct up_place *p)
{
    if (p->lock_fd >= 0)
        close(p->lock_fd);
    free(p->folder);
    *p = (struct up_place){.lock_fd = -1};
}

char *up_place_path(const struct up_place *p, const char *name)
{
    return mem_printf("%s/%s", p->folder, name);
}

/* The lock file, opened and, if it is free, locked; -1 with errno EWOULDBLOCK when it is not. */
static int try_lock(const struct up_place *p, int flags)
{
    _cleanup_free_ char *path = up_place_path(p, "up.lock");
    int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    int errnum = errno;
    close(fd);
    errno = errnum;
    return -1;
}

int up_place_lock(struct up_place *p, struct err *e)
{
    if (file_make_dirs(p->folder, 0700, e) < 0)
        return -1;
    p->lock_fd = try_lock(p, O_RDWR | O_CREAT);
    if (p->lock_fd >= 0)
        return 0;
    if (errno != EWOULDBLOCK)
        return err_errno(e, errno, "%s/up.lock", p->folder);
    json_auto_t *state = up_place_read(p, NULL);
    json_int_t pid = json_integer_value(json_object_get(state, "pid"));
    return err_set(e, ERR_FAILED_PRECONDITION, "InUse",
                   "an orlop up (process %lld) has %s already; `orlop status` shows it, `orlop "
                   "down` ends it, and another --data is another system",
                   (long long)pid, p->folder);
}

bool up_place_in_use(const struct up_place *p)
{
    int fd = try_lock(p, O_RDWR);
    if (fd < 0)
        return errno == EWOULDBLOCK;
    close(fd);
    return false;
}

int up_place_write(const struct up_place *p, const json_t *state, struct err *e)
{
    _cleanup_free_ char *path = up_place_path(p, "up.json");
    _cleanup_(str_done) struct str text = {0};
    json_format_pretty(state, &text);
    str_append_c(&text, '\n');
    return file_replace(path, text.p, text.len, 0600, e);
}

json_t *up_place_read(const struct up_place *p, struct err *e)
{
    _cleanup_free_ char *path = up_place_path(p, "up.json");
    _cleanup_(str_done) struct str text = {0};
    if (file_read(path, STATE_MAX, &text, e) < 0)
        return NULL;
    return json_parse(str_get(&text), text.len, NULL, e);
}
