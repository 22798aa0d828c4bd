#include "k8s/apiserver/jwt_cache.h"

void apiserver_jwt_cache_done(struct apiserver_jwt_cache *c)
{
    for (size_t i = 0; i < APISERVER_JWT_CACHE; i++)
        json_decref(c->places[i].claims);
}

static size_t place_of(const uint8_t digest[PKI_DIGEST])
{
    uint32_t n;
    memcpy(&n, digest, sizeof(n));
    return n % APISERVER_JWT_CACHE;
}

static json_t *find(struct apiserver_jwt_cache *c, const struct pki_key *key,
                    const uint8_t digest[PKI_DIGEST])
{
    size_t i = place_of(digest);
    pthread_mutex_lock(&c->lock);
    bool here = c->places[i].key == key && pki_digest_equal(c->places[i].digest, digest);
    json_t *claims =
        here ? json_deep_copy(c->places[i].claims) : NULL; /* no thread's but its own */
    pthread_mutex_unlock(&c->lock);
    return claims;
}

static void keep(struct apiserver_jwt_cache *c, const struct pki_key *key,
                 const uint8_t digest[PKI_DIGEST], const json_t *claims)
{
    size_t i = place_of(digest);
    json_t *own = json_deep_copy(claims);
    pthread_mutex_lock(&c->lock);
    json_t *last = c->places[i].claims;
    c->places[i].key = key;
    memcpy(c->places[i].digest, digest, PKI_DIGEST);
    c->places[i].claims = own;
    pthread_mutex_unlock(&c->lock);
    json_decref(last);
}

json_t *apiserver_jwt_cache_verify(struct apiserver_jwt_cache *c, const struct pki_key *key,
                                   const char *token, struct err *e)
{
    uint8_t digest[PKI_DIGEST];
    if (strlen(token) > APISERVER_JWT_MAX)
        return apiserver_jwt_verify(key, token, e); /* which says so */
    pki_digest(token, strlen(token), digest);
    json_t *claims = find(c, key, digest);
    if (claims)
        return claims;
    claims = apiserver_jwt_verify(key, token, e);
    if (claims)
        keep(c, key, digest, claims);
    return claims;
}
