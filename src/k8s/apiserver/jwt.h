/*
 * JSON web tokens with ES256 signatures, and no others: a token does not get to choose how it is
 * checked. What the claims say is the caller's business, their times included.
 */
#pragma once

#include "json/json.h"
#include "pki/key.h"

enum { APISERVER_JWT_MAX = 16 << 10 }; /* bytes of a token */

/* Appends the token. */
int apiserver_jwt_sign(const struct pki_key *key, const json_t *claims, struct str *ret_token,
                       struct err *e);
/* The claims of a token that this key has signed; UNAUTHENTICATED without a word of the token. */
json_t *apiserver_jwt_verify(const struct pki_key *key, const char *token, struct err *e);
