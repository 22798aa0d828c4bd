/*
 * An authority and a key beside it, for tests of what is signed.
 */
#pragma once

#include "pki/cert.h"
#include "unit.h"

enum { FROM = 1700000000, UNTIL = 1800000000 };

static struct pki_key *ca_key, *key;
static struct str ca;

static int begin(void **state)
{
    (void)state;
    if (pki_key_generate(&ca_key, NULL) < 0 || pki_key_generate(&key, NULL) < 0)
        return -1;
    return pki_cert_authority(ca_key, "orlop-ca", FROM, UNTIL, &ca, NULL);
}

static int end(void **state)
{
    (void)state;
    pki_key_free(ca_key);
    pki_key_free(key);
    str_done(&ca);
    return 0;
}
