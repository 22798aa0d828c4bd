/*
 * Persistent reservations on disk, for APTPL: a text of lines, replaced as a whole, so that a crash
 * leaves the old state or the new one.
 *
 *     orlop-reservations 1
 *     volume SERIAL
 *     reserved 5 0                       type, and which registration holds it; 0 -1: nothing
 *     key 0123456789abcdef 1 iqn.1993-08.org.debian:01:abc,i,0x00023d000000
 *     ...                                (key, target port, initiator port)
 *     crc32c 89abcdef                    of all above
 *
 * A file that is damaged, or of another volume, is not guessed at: the unit does not start. Who knows
 * that nobody counts on the reservations can remove it.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/crc.h"
#include "base/file.h"
#include "scsi/impl.h"

enum { FILE_MAX = 128 << 10 };

int scsi_pr_save(const struct scsi_reserve *r, const struct scsi_pr *pr, struct err *e)
{
    _cleanup_(str_done) struct str s = {0};
    str_appendf(&s, "orlop-reservations 1\nvolume %s\nreserved %d %d\n", r->volume, (int)pr->type,
                pr->type == PR_NONE ? -1 : pr->holder);
    for (unsigned i = 0; i < pr->count; i++) {
        const struct scsi_registration *g = &pr->registrations[i];
        str_appendf(&s, "key %016llx %u %s\n", (unsigned long long)g->key, g->port.target,
                    g->port.initiator);
    }
    str_appendf(&s, "crc32c %08x\n", crc_32c(s.p, s.len));
    return file_replace(r->path, s.p, s.len, 0600, e);
}

/* The next line, ended with NUL in place of its newline; NULL at the end. */
static char *take_line(char **at)
{
    char *line = *at, *end = strchr(line, '\n');
    if (!end)
        return NULL;
    *end = 0;
    *at = end + 1;
    return line;
}

static bool parse_key(const char *line, struct scsi_registration *g)
{
    unsigned long long key;
    unsigned target;
    int at = 0;
    if (sscanf(line, "key %16llx %5u %n", &key, &target, &at) != 2 || !at)
        return false;
    size_t n = strlen(line + at);
    if (!n || n >= sizeof(g->port.initiator) || target > UINT16_MAX)
        return false;
    g->key = key;
    g->port.target = (uint16_t)target;
    memcpy(g->port.initiator, line + at, n + 1);
    return true;
}

static bool is_type(int type)
{
    return type == PR_NONE || type == PR_WRITE_EXCLUSIVE || type == PR_EXCLUSIVE ||
           (type >= PR_WRITE_EXCLUSIVE_REGISTRANTS && type <= PR_EXCLUSIVE_ALL);
}

/* What is wrong, or NULL. */
static const char *parse(char *text, size_t size, const char *volume, struct scsi_pr *pr)
{
    char *end = size ? memrchr(text, '\n', size - 1) : NULL, *at = text;
    unsigned crc;
    int type, holder;
    if (!end || sscanf(end + 1, "crc32c %8x", &crc) != 1 ||
        crc != crc_32c(text, (size_t)(end + 1 - text)))
        return "its checksum does not match";
    end[1] = 0;
    const char *magic = take_line(&at), *name = take_line(&at), *reserved = take_line(&at);
    if (!magic || !name || !reserved || !str_eq(magic, "orlop-reservations 1"))
        return "it is of another version";
    if (!str_starts_with(name, "volume ") || !str_eq(name + strlen("volume "), volume))
        return "it is of another volume";
    if (sscanf(reserved, "reserved %d %d", &type, &holder) != 2 || !is_type(type))
        return "its reservation is of no known type";
    for (char *line; (line = take_line(&at)); pr->count++) {
        if (pr->count == SCSI_REGISTRATIONS || !parse_key(line, &pr->registrations[pr->count]))
            return "it has a registration that cannot be read";
    }
    pr->type = (enum scsi_pr_type)type;
    pr->holder = holder;
    bool all = scsi_pr_is_all(pr->type);
    if (pr->type != PR_NONE &&
        (!pr->count || (all ? holder != -1 : holder < 0 || (unsigned)holder >= pr->count)))
        return "nobody holds its reservation";
    return NULL;
}

int scsi_pr_load(struct scsi_reserve *r, struct scsi_pr *pr, struct err *e)
{
    _cleanup_(str_done) struct str s = {0};
    struct err why = {0};
    if (file_read(r->path, FILE_MAX, &s, &why) < 0) {
        if (why.code == ERR_NOT_FOUND)
            return 0;
        if (e)
            *e = why;
        return -1;
    }
    const char *wrong = s.len ? parse(s.p, s.len, r->volume, pr) : "it is empty";
    if (wrong)
        return err_set(e, ERR_DATA_LOSS, "InvalidReservations",
                       "%s: %s; remove it if no initiator counts on its reservations any more",
                       r->path, wrong);
    pr->survives = true;
    return 0;
}
