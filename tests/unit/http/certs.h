/*
 * Authorities and certificates for tests of TLS: ours, which everybody trusts, and theirs.
 */
#pragma once

#include <time.h>

#include "http/server.h"
#include "pki/cert.h"
#include "unit.h"

/* An authority and what it has issued. */
struct ca {
    struct pki_key *key;
    struct str cert;
};

struct pair {
    struct str key, cert;
};

static struct ca ours, theirs;
static struct pair server, admin, stranger, expired;

static void issue(const struct ca *ca, struct pki_request r, struct pair *ret)
{
    static const char *const names[] = {"localhost", "127.0.0.1", NULL};
    struct pki_key *key;
    struct err e = {0};
    if (r.use == PKI_SERVER)
        r.names = names;
    r.from = r.from ? r.from : time(NULL) - 3600;
    r.until = r.until ? r.until : time(NULL) + 3600;
    if (pki_key_generate(&key, &e) < 0 ||
        pki_cert_issue(ca->key, ca->cert.p, key, &r, &ret->cert, &e) < 0)
        fail_msg("%s", e.msg);
    pki_key_format(key, &ret->key);
    pki_key_free(key);
}

static void pair_done(struct pair *p)
{
    pki_wipe(&p->key);
    str_done(&p->cert);
}

static void ca_new(const char *name, struct ca *ret)
{
    struct err e = {0};
    if (pki_key_generate(&ret->key, &e) < 0 ||
        pki_cert_authority(ret->key, name, time(NULL) - 3600, time(NULL) + 36000, &ret->cert, &e) <
            0)
        fail_msg("%s", e.msg);
}

static const char *const groups[] = {"system:masters", "second", NULL};

static int begin(void **state)
{
    (void)state;
    ca_new("ours", &ours);
    ca_new("theirs", &theirs);
    issue(&ours, (struct pki_request){.common_name = "server"}, &server);
    issue(&ours, (struct pki_request){PKI_CLIENT, "admin", groups}, &admin);
    issue(&theirs, (struct pki_request){PKI_CLIENT, "admin", groups}, &stranger);
    issue(&ours,
          (struct pki_request){.use = PKI_CLIENT, .common_name = "late", .until = time(NULL) - 1},
          &expired);
    return 0;
}

static int end(void **state)
{
    (void)state;
    struct ca *cas[] = {&ours, &theirs};
    struct pair *pairs[] = {&server, &admin, &stranger, &expired};
    for (size_t i = 0; i < ARRAY_SIZE(cas); i++) {
        pki_key_free(cas[i]->key);
        str_done(&cas[i]->cert);
    }
    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
        pair_done(pairs[i]);
    return 0;
}

static struct http_tls_options tls_of(const struct pair *p, const struct ca *clients)
{
    return (struct http_tls_options){p->cert.p, p->key.p, clients ? clients->cert.p : NULL};
}
