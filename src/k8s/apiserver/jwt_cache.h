/*
 * Claims of tokens whose signature was found good, so that it is checked once and not with every
 * request. Nothing else is taken for granted: whether the token is in time, and whether what it is
 * bound to is still there, is asked every time, of the claims.
 *
 * Tokens are known by their digest and not kept. There is one place for each of a few hundred values
 * of it; whoever comes takes the place of who was there. Only good tokens get in, so nobody can push
 * others out with what they made up. Zeroed is empty and ready; any thread.
 */
#pragma once

#include <pthread.h>

#include "k8s/apiserver/jwt.h"

enum { APISERVER_JWT_CACHE = 512 };

struct apiserver_jwt_cache {
    pthread_mutex_t lock;
    struct {
        const struct pki_key *key; /* by which it is good; NULL: nobody is here */
        uint8_t digest[PKI_DIGEST];
        json_t *claims;
    } places[APISERVER_JWT_CACHE];
};

void apiserver_jwt_cache_done(struct apiserver_jwt_cache *c);
/* As apiserver_jwt_verify(). The claims are shared: not to be changed. */
json_t *apiserver_jwt_cache_verify(struct apiserver_jwt_cache *c, const struct pki_key *key,
                                   const char *token, struct err *e);
