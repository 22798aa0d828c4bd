/*
 * Persistent reservations on disk, for APTPL: a text of lines, replaced as a whole, so that a crash
 * leaves the old state or the new one.
 *
 *     orlop-reservations 1
 *     volume SERIAL
 *     reserved 5 0                       type (0: nothing), and which registration holds it, or -
 *     key 0123456789abcdef 1 iqn.1993-08.org.debian:01:abc,i,0x00023d000000
 *     ...                                (key, target port, initiator port)
 *     crc32c 89abcdef                    of all above
 *
 * A file that is damaged, or of another volume, is not guessed at: the unit does not start. Who knows
 * that nobody counts on the reservations can remove it.
 */
#include <errno.h>

#include "base/crc.h"
#include "base/file.h"
#include "scsi/impl.h"

enum { FILE_MAX = 128 << 10 };

int scsi_pr_save(const struct scsi_reserve *r, const struct scsi_pr *pr, struct err *e)
{
    _cleanup_(str_done) struct str s = {0};
    str_appendf(&s, "orlop-reservations 1\nvolume %s\nreserved %d ", r->volume, (int)pr->type);
    if (pr->type == PR_NONE || scsi_pr_is_all(pr->type))
        str_append(&s, "-\n");
    else
        str_appendf(&s, "%d\n", pr->holder);
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

/* Takes a number and the space, or the end, that follows it. */
static bool take_number(char **at, int base, uint64_t most, uint64_t *ret)
{
    char *end;
    errno = 0;
    *ret = strtoull(*at, &end, base);
    if (end == *at || errno || *ret > most || (*end && *end != ' '))
        return false;
    *at = *end ? end + 1 : end;
    return true;
}

/* Takes a word that has to be there. */
static bool take_word(char **at, const char *word)
{
    if (!*at || !str_starts_with(*at, word))
        return false;
    *at += strlen(word);
    return true;
}

static bool parse_key(char *line, struct scsi_registration *g)
{
    uint64_t target;
    if (!take_word(&line, "key ") || !take_number(&line, 16, UINT64_MAX, &g->key) ||
        !take_number(&line, 10, UINT16_MAX, &target))
        return false;
    size_t n = strlen(line);
    if (!n || n >= sizeof(g->port.initiator))
        return false;
    g->port.target = (uint16_t)target;
    memcpy(g->port.initiator, line, n + 1);
    return true;
}

static bool is_type(uint64_t type)
{
    return type == PR_NONE || type == PR_WRITE_EXCLUSIVE || type == PR_EXCLUSIVE ||
           (type >= PR_WRITE_EXCLUSIVE_REGISTRANTS && type <= PR_EXCLUSIVE_ALL);
}

/* "TYPE HOLDER": the holder is a registration, or - where nobody alone holds it. */
static bool parse_reserved(char *line, struct scsi_pr *pr)
{
    uint64_t type, holder;
    if (!take_word(&line, "reserved ") || !take_number(&line, 10, UINT8_MAX, &type) ||
        !is_type(type))
        return false;
    pr->type = (enum scsi_pr_type)type;
    pr->holder = -1;
    if (str_eq(line, "-"))
        return pr->type == PR_NONE || scsi_pr_is_all(pr->type);
    if (!take_number(&line, 10, SCSI_REGISTRATIONS - 1, &holder) || pr->type == PR_NONE)
        return false;
    pr->holder = (int)holder;
    return !scsi_pr_is_all(pr->type);
}

/* Cuts the checksum off; false: it is not that of the rest. */
static bool check_sum(char *text, size_t size)
{
    char *end = size ? memrchr(text, '\n', size - 1) : NULL, *line = end ? end + 1 : NULL;
    uint64_t crc;
    if (!end || text[size - 1] != '\n')
        return false;
    text[size - 1] = 0;
    if (!take_word(&line, "crc32c ") || !take_number(&line, 16, UINT32_MAX, &crc))
        return false;
    bool same = crc == crc_32c(text, (size_t)(end + 1 - text));
    end[1] = 0;
    return same;
}

/* What is wrong, or NULL. */
static const char *parse(char *text, size_t size, const char *volume, struct scsi_pr *pr)
{
    char *at = text;
    if (!check_sum(text, size))
        return "its checksum does not match";
    char *magic = take_line(&at), *name = take_line(&at), *reserved = take_line(&at);
    if (!magic || !name || !reserved || !str_eq(magic, "orlop-reservations 1"))
        return "it is of another version";
    if (!take_word(&name, "volume ") || !str_eq(name, volume))
        return "it is of another volume";
    if (!parse_reserved(reserved, pr))
        return "its reservation is of no known type";
    for (char *line; (line = take_line(&at)); pr->count++) {
        if (pr->count == SCSI_REGISTRATIONS || !parse_key(line, &pr->registrations[pr->count]))
            return "it has a registration that cannot be read";
    }
    if (pr->type != PR_NONE && (!pr->count || pr->holder >= (int)pr->count))
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
