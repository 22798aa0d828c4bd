/*
 * Static tokens. The file is read once, at the start. Of the tokens themselves only digests are kept,
 * and all are compared, whichever matches.
 */
#include "base/file.h"
#include "base/vec.h"
#include "k8s/apiserver/authn.h"

enum { FILE_LIMIT = 1 << 20, FIELDS = 4 };

struct entry {
    uint8_t digest[PKI_DIGEST];
    const struct apiserver_user *user;
};

struct apiserver_token_file {
    VEC(struct entry) entries;
};

void apiserver_token_file_free(struct apiserver_token_file *f)
{
    if (!f)
        return;
    vec_for_each(&f->entries, entry)
        apiserver_user_unref(entry->user);
    vec_done(&f->entries);
    free(f);
}

DEFINE_CLEANUP(struct apiserver_token_file *, apiserver_token_file_free)

/*
 * Takes the next field of a line, which ends at `end`; moves *at behind its comma, or to NULL after
 * the last. A field in quotes may have commas and doubled quotes in it. False for a quote that is
 * not closed.
 */
static bool next_field(const char **at, const char *end, struct str *ret_field)
{
    const char *p = *at;
    bool quoted = p < end && *p == '"';
    str_clear(ret_field);
    for (p += quoted; p < end; p++) {
        if (quoted && *p == '"') {
            if (p + 1 == end || p[1] != '"') {
                quoted = false;
                continue;
            }
            p++;
        } else if (!quoted && *p == ',') {
            break;
        }
        str_append_c(ret_field, *p);
    }
    *at = p < end ? p + 1 : NULL;
    return !quoted;
}

/* The user with the groups in a list with commas. */
static const struct apiserver_user *make_user(const char *name, const char *uid, const char *list)
{
    _cleanup_free_ char *text = mem_strdup(list);
    VEC(const char *) groups = {0};
    char *rest = NULL;
    for (char *g = strtok_r(text, ",", &rest); g; g = strtok_r(NULL, ",", &rest)) {
        g += strspn(g, " ");
        if (*g)
            vec_push(&groups, g);
    }
    vec_push(&groups, "system:authenticated");
    vec_push(&groups, NULL);
    const struct apiserver_user *user = apiserver_user_new(name, *uid ? uid : NULL, groups.p, NULL);
    vec_done(&groups);
    return user;
}

static int take_line(struct apiserver_token_file *f, const char *line, const char *end)
{
    struct str fields[FIELDS] = {0};
    size_t n = 0;
    bool fine = true;
    for (const char *at = line; at && fine && n < FIELDS; n++)
        fine = next_field(&at, end, &fields[n]);
    fine = fine && n >= 3 && fields[0].len && fields[1].len;
    if (fine) {
        struct entry entry = {
            .user = make_user(str_get(&fields[1]), str_get(&fields[2]), str_get(&fields[3]))};
        pki_digest(fields[0].p, fields[0].len, entry.digest);
        vec_push(&f->entries, entry);
    }
    for (size_t i = 0; i < FIELDS; i++)
        pki_wipe(&fields[i]);
    return fine ? 0 : -1;
}

int apiserver_token_file_open(const char *path, struct apiserver_token_file **ret_file,
                              struct err *e)
{
    _cleanup_(apiserver_token_file_freep) struct apiserver_token_file *f =
        NEW(struct apiserver_token_file);
    _cleanup_(pki_wipe) struct str text = {0};
    if (file_read(path, FILE_LIMIT, &text, e) < 0)
        return -1;
    unsigned number = 1;
    for (const char *line = str_get(&text); *line; number++) {
        size_t n = strcspn(line, "\n"), size = n && line[n - 1] == '\r' ? n - 1 : n;
        if (size && *line != '#' && take_line(f, line, line + size) < 0)
            return err_set(e, ERR_INVALID_ARGUMENT, "InvalidTokenFile",
                           "%s: line %u is no token: write token,user,uid,\"group,group\"", path,
                           number);
        line += line[n] ? n + 1 : n;
    }
    *ret_file = TAKE_PTR(f);
    return 0;
}

const struct apiserver_user *apiserver_token_file_find(const struct apiserver_token_file *f,
                                                       const char *token)
{
    uint8_t digest[PKI_DIGEST];
    const struct apiserver_user *found = NULL;
    pki_digest(token, strlen(token), digest);
    vec_for_each(&f->entries, entry) {
        if (pki_digest_equal(entry->digest, digest))
            found = entry->user;
    }
    return apiserver_user_ref(found);
}
