#include "pki/authority.h"

#include <inttypes.h>
#include <sys/stat.h>

#include "base/file.h"

enum {
    DAY = 24 * 60 * 60,
    EARLIER = 2 * 24 * 3600, /* certificates begin in the past: clocks are slow, and are set back */
    FILE_LIMIT = 1 << 20,
};

/* What ca.pem holds, and what follows from it. */
struct authorities {
    struct pki_key *key;
    struct str cert;    /* of the authority in use */
    struct str older;   /* authorities that still live */
    struct str bridges; /* from them to the one in use */
    struct str bundle;  /* cert and older */
    int64_t due;
};

struct pki_authority {
    char *where; /* the folder, or another place's name */
    struct pki_files files;
    const struct clock *clock;
    struct authorities is;
};

static void authorities_done(struct authorities *s)
{
    pki_key_free(s->key);
    str_done(&s->cert);
    str_done(&s->older);
    str_done(&s->bridges);
    str_done(&s->bundle);
}

static int64_t now_of(const struct pki_authority *a)
{
    return clock_real_ns(a->clock) / CLOCK_SECOND;
}

/* Files in a folder. */

static int read_in_folder(void *context, const char *name, struct str *ret_text, struct err *e)
{
    const struct pki_authority *a = context;
    _cleanup_free_ char *path = mem_printf("%s/%s", a->where, name);
    return file_read(path, FILE_LIMIT, ret_text, e);
}

static int replace_in_folder(void *context, const char *name, const void *bytes, size_t n,
                             struct err *e)
{
    const struct pki_authority *a = context;
    _cleanup_free_ char *path = mem_printf("%s/%s", a->where, name);
    return file_replace(path, bytes, n, 0600, e);
}

static int read_file(const struct pki_authority *a, const char *name, struct str *ret_text,
                     struct err *e)
{
    return a->files.read(a->files.context, name, ret_text, e);
}

static int replace_file(const struct pki_authority *a, const char *name, const struct str *text,
                        struct err *e)
{
    return a->files.replace(a->files.context, name, text->p, text->len, e);
}

/* When two thirds of a life are over. */
static int64_t due_of(const struct pki_facts *facts)
{
    return facts->until - (facts->until - facts->from) / 3;
}

/* Sets what follows from cert and older. */
static void set_bundle(struct authorities *s)
{
    struct pki_facts facts = {0};
    pki_cert_read(str_get(&s->cert), &facts, NULL);
    s->due = due_of(&facts);
    str_clear(&s->bundle);
    str_append(&s->bundle, str_get(&s->cert));
    str_append(&s->bundle, str_get(&s->older));
}

static int save(const struct pki_authority *a, const struct authorities *s, struct err *e)
{
    _cleanup_(pki_wipe) struct str text = {0};
    pki_key_format(s->key, &text);
    str_append(&text, str_get(&s->bundle));
    str_append(&text, str_get(&s->bridges));
    if (replace_file(a, "ca.pem", &text, e) < 0)
        return -1;
    return replace_file(a, "ca.crt", &s->bundle, e);
}

/* Sorts certificates, that of the authority in use first; those that are over are dropped. */
static int take_certs(struct authorities *s, const char *text, int64_t now, struct err *e)
{
    _cleanup_(str_done) struct str cert = {0};
    for (const char *at = text; pki_cert_next(&at, &cert); str_clear(&cert)) {
        struct pki_facts facts;
        if (pki_cert_read(cert.p, &facts, e) < 0)
            return -1;
        if (!s->cert.len)
            str_append(&s->cert, cert.p);
        else if (facts.until > now)
            str_append(facts.self_signed ? &s->older : &s->bridges, cert.p);
    }
    if (!s->cert.len || !pki_cert_is_for(s->cert.p, s->key))
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidCertificate",
                       "the key and the certificate are not a pair");
    set_bundle(s);
    return 0;
}

/* 1: read; 0: there is none. */
static int load(struct pki_authority *a, struct err *e)
{
    _cleanup_(pki_wipe) struct str text = {0};
    struct err why = {0};
    if (read_file(a, "ca.pem", &text, &why) < 0)
        return why.code == ERR_NOT_FOUND ? 0 : err_set(e, why.code, why.reason, "%s", why.msg);
    if (pki_key_parse(str_get(&text), &a->is.key, &why) < 0 ||
        take_certs(&a->is, str_get(&text), now_of(a), &why) < 0)
        return err_set(
            e, ERR_DATA_LOSS, "DamagedAuthority",
            "%s/ca.pem is damaged (%s): put a copy of it back, or remove it to start with a new "
            "authority, which every client must be told of",
            a->where, why.msg);
    return 1;
}

/* Since when what ends then is good. What lasts shorter begins less early, or it would be due when it is made. */
static int64_t begin_of(int64_t now, int64_t until)
{
    return now - (until - now < EARLIER ? until - now : EARLIER);
}

/* The authority after `is`, which signs it if it can still vouch for anybody. */
static int make_next(const struct authorities *is, int64_t now, struct authorities *next,
                     struct err *e)
{
    int64_t until = now + (int64_t)PKI_AUTHORITY_DAYS * DAY, from = begin_of(now, until);
    _cleanup_free_ char *name = mem_printf("orlop-ca@%" PRId64, now);
    _cleanup_(str_done) struct str certs = {0};
    struct pki_facts facts = {0};
    if (pki_key_generate(&next->key, e) < 0 ||
        pki_cert_authority(next->key, name, from, until, &certs, e) < 0)
        return -1;
    if (is->key && pki_cert_read(str_get(&is->cert), &facts, NULL) == 0 && facts.until > now) {
        _cleanup_(str_done) struct str bridge = {0};
        if (pki_cert_cross(is->key, is->cert.p, certs.p, from, facts.until, &bridge, e) < 0)
            return -1;
        str_append(&certs, is->cert.p);
        str_append(&certs, str_get(&is->older));
        str_append(&certs, bridge.p);
        str_append(&certs, str_get(&is->bridges));
    }
    return take_certs(next, str_get(&certs), now, e);
}

static int replace(struct pki_authority *a, struct err *e)
{
    struct authorities next = {0};
    if (make_next(&a->is, now_of(a), &next, e) < 0 || save(a, &next, e) < 0) {
        authorities_done(&next);
        return -1;
    }
    authorities_done(&a->is);
    a->is = next;
    return 0;
}

/* Takes over the authority, of which only the place is known. */
static int open_in(struct pki_authority *own, struct pki_authority **ret_authority, struct err *e)
{
    _cleanup_(pki_authority_freep) struct pki_authority *a = own;
    bool changed;
    int r = load(a, e);
    if (r < 0)
        return -1;
    if (r == 0) {
        if (replace(a, e) < 0)
            return -1;
    } else if (save(a, &a->is, e) < 0 || pki_authority_renew(a, &changed, e) < 0) {
        return -1; /* ca.crt may be older than ca.pem after a crash */
    }
    *ret_authority = TAKE_PTR(a);
    return 0;
}

static struct pki_authority *authority_at(const char *where, const struct clock *clock)
{
    struct pki_authority *a = NEW(struct pki_authority);
    a->where = mem_strdup(where);
    a->clock = clock;
    return a;
}

int pki_authority_open(const char *folder, const struct clock *clock,
                       struct pki_authority **ret_authority, struct err *e)
{
    if (file_make_dirs(folder, 0700, e) < 0)
        return -1;
    struct pki_authority *a = authority_at(folder, clock);
    a->files = (struct pki_files){read_in_folder, replace_in_folder, a};
    return open_in(a, ret_authority, e);
}

int pki_authority_open_in(const struct pki_files *files, const char *where,
                          const struct clock *clock, struct pki_authority **ret_authority,
                          struct err *e)
{
    struct pki_authority *a = authority_at(where, clock);
    a->files = *files;
    return open_in(a, ret_authority, e);
}

void pki_authority_free(struct pki_authority *a)
{
    if (!a)
        return;
    authorities_done(&a->is);
    free(a->where);
    free(a);
}

int pki_authority_renew(struct pki_authority *a, bool *ret_changed, struct err *e)
{
    *ret_changed = now_of(a) >= a->is.due;
    return *ret_changed ? replace(a, e) : 0;
}

const char *pki_authority_bundle(const struct pki_authority *a)
{
    return str_get(&a->is.bundle);
}

int64_t pki_authority_due(const struct pki_authority *a)
{
    return a->is.due;
}

void pki_leaf_done(struct pki_leaf *l)
{
    pki_wipe(&l->key);
    str_done(&l->chain);
}

/* The leaf from its file, if it is good for the request. */
static bool load_leaf(const struct pki_authority *a, const char *file,
                      const struct pki_request *request, struct pki_leaf *ret_leaf)
{
    _cleanup_(pki_wipe) struct str text = {0};
    _cleanup_(pki_key_freep) struct pki_key *key = NULL;
    _cleanup_(str_done) struct str cert = {0};
    struct pki_facts facts;
    if (read_file(a, file, &text, NULL) < 0 || pki_key_parse(str_get(&text), &key, NULL) < 0)
        return false;
    const char *at = text.p;
    if (!pki_cert_next(&at, &cert) || pki_cert_read(cert.p, &facts, NULL) < 0 ||
        !pki_cert_is_for(cert.p, key) || !pki_cert_is_by(cert.p, str_get(&a->is.cert)) ||
        !pki_cert_has_names(cert.p, request->names))
        return false;
    int64_t now = now_of(a);
    if (now < facts.from || now >= due_of(&facts))
        return false;
    pki_key_format(key, &ret_leaf->key);
    str_append(&ret_leaf->chain, cert.p);
    ret_leaf->due = due_of(&facts);
    return true;
}

static int make_leaf(const struct pki_authority *a, const char *file,
                     const struct pki_request *request, struct pki_leaf *ret_leaf, struct err *e)
{
    struct pki_request r = *request;
    struct pki_facts ca = {0};
    pki_cert_read(str_get(&a->is.cert), &ca, NULL);
    int64_t now = now_of(a);
    r.until = now + (request->seconds ? request->seconds : (int64_t)PKI_LEAF_DAYS * DAY);
    if (r.until > ca.until)
        r.until = ca.until;
    r.from = begin_of(now, r.until);
    _cleanup_(pki_key_freep) struct pki_key *key = NULL;
    if (pki_key_generate(&key, e) < 0 ||
        pki_cert_issue(a->is.key, str_get(&a->is.cert), key, &r, &ret_leaf->chain, e) < 0)
        return -1;
    pki_key_format(key, &ret_leaf->key);
    _cleanup_(pki_wipe) struct str text = {0};
    str_append(&text, str_get(&ret_leaf->key));
    str_append(&text, str_get(&ret_leaf->chain));
    ret_leaf->due = due_of(&(struct pki_facts){.from = r.from, .until = r.until});
    return replace_file(a, file, &text, e);
}

int pki_authority_leaf(struct pki_authority *a, const char *name, const struct pki_request *request,
                       struct pki_leaf *leaf, bool *ret_changed, struct err *e)
{
    _cleanup_free_ char *file = mem_printf("%s.pem", name);
    struct pki_leaf found = {0};
    *ret_changed = !load_leaf(a, file, request, &found);
    if (*ret_changed && make_leaf(a, file, request, &found, e) < 0) {
        pki_leaf_done(&found);
        return -1;
    }
    str_append(&found.chain, str_get(&a->is.bridges));
    pki_leaf_done(leaf);
    *leaf = found;
    return 0;
}

int pki_authority_sign(const struct pki_authority *a, const struct pki_csr *csr, int64_t seconds,
                       struct str *ret_chain, struct err *e)
{
    const int64_t longest = (int64_t)PKI_LEAF_DAYS * DAY;
    struct pki_facts ca = {0};
    int64_t now = now_of(a);
    pki_cert_read(str_get(&a->is.cert), &ca, NULL);
    if (seconds <= 0 || seconds > longest)
        seconds = longest;
    int64_t until = now + seconds < ca.until ? now + seconds : ca.until;
    if (pki_csr_issue(a->is.key, str_get(&a->is.cert), csr, begin_of(now, until), until, ret_chain,
                      e) < 0)
        return -1;
    str_append(ret_chain, str_get(&a->is.bridges));
    return 0;
}

int pki_authority_key(struct pki_authority *a, const char *name, struct pki_key **ret_key,
                      struct err *e)
{
    _cleanup_free_ char *file = mem_printf("%s.pem", name);
    _cleanup_(pki_wipe) struct str text = {0};
    struct err why = {0};
    if (read_file(a, file, &text, &why) == 0) {
        if (pki_key_parse(str_get(&text), ret_key, e) < 0)
            return err_prefix(e, "%s/%s", a->where, file);
        return 0;
    }
    if (why.code != ERR_NOT_FOUND)
        return err_set(e, why.code, why.reason, "%s", why.msg);
    _cleanup_(pki_key_freep) struct pki_key *key = NULL;
    if (pki_key_generate(&key, e) < 0)
        return -1;
    pki_key_format(key, &text);
    if (replace_file(a, file, &text, e) < 0)
        return -1;
    *ret_key = TAKE_PTR(key);
    return 0;
}
