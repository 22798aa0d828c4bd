/*
 * Keys of volumes. A pool may read the Secrets of those volumes alone that have a replica on it, one by one, and may not
 * watch them: a Secret is read when its key is needed first, and again, with a delay that doubles, while the replica has
 * no connection, as it may have been replaced.
 */
#include "base/base64.h"
#include "base/str.h"
#include "pool/cvr_impl.h"

/* Delays: the first, and the longest without a key, and with one that may be the right one. */
static const int64_t SOON_NS = CLOCK_SECOND, WITHOUT_NS = 10 * CLOCK_SECOND,
                     LATE_NS = 300 * CLOCK_SECOND;

static void wipe(struct str *s)
{
    if (s->p)
        explicit_bzero(s->p, s->len);
    str_done(s);
}

void pool_cvr_forget_key(struct pool_cvr *it)
{
    wipe(&it->key);
    free(it->secret_uid);
    free(it->secret_version);
    it->secret_uid = it->secret_version = NULL;
    it->key_again = it->key_delay = 0;
}

static bool is_same(const struct pool_cvr *it, const json_t *secret)
{
    return it->key.len && str_eq(it->secret_uid, kube_uid(secret)) &&
           str_eq(it->secret_version, kube_version(secret));
}

/* Takes the key out of the Secret, whose copy of it is no more then. */
static int take_key(struct pool_cvr *it, json_t *secret, const char *name, struct err *e)
{
    json_t *text = json_object_get(json_object_get(secret, "data"), "key");
    const char *encoded = json_string_value(text);
    struct str key = {0};
    bool fine = encoded && base64_parse(encoded, strlen(encoded), BASE64_STD, &key) && key.len;
    if (encoded)
        explicit_bzero((char *)(uintptr_t)encoded, strlen(encoded));
    if (!fine) {
        wipe(&key);
        return err_set(e, ERR_FAILED_PRECONDITION, "NoKey",
                       "the Secret %s has no key of the volume in its field \"key\"", name);
    }
    wipe(&it->key);
    it->key = key;
    free(it->secret_uid);
    free(it->secret_version);
    it->secret_uid = mem_strdup(kube_uid(secret));
    it->secret_version = mem_strdup(kube_version(secret));
    return 0;
}

static int read_key(struct pool_cvr_run *r, struct err *e)
{
    const struct kube_resource kind = kube_resource("v1", "Secret");
    _cleanup_free_ char *volume = pool_cvr_volume(r->c, r->json),
                        *name = mem_printf("%s-key", volume);
    struct err why = {0};
    json_auto_t *secret = kube_get(r->c->client, &kind, r->c->ns, name, &why);
    if (!secret)
        return err_set(e, why.code, "NoKey", "the volume's key, the Secret %s, cannot be read: %s",
                       name, why.msg);
    return is_same(r->it, secret) ? 0 : take_key(r->it, secret, name, e);
}

void pool_cvr_find_key(struct pool_cvr_run *r)
{
    struct pool_cvr *it = r->it;
    const struct pool_replica_view *v = &r->view;
    int64_t now = clock_mono_ns(r->c->clock);
    bool refused = v->known && v->open && !v->connected && *v->last_end;
    if (v->connected)
        it->key_again = it->key_delay = 0;
    if (it->key.len && !refused)
        return;
    if (it->key.len &&
        !it->key_again) { /* the first time that the connection is gone is no reason yet */
        it->key_delay = SOON_NS;
        it->key_again = now + it->key_delay;
    }
    if (now >= it->key_again) {
        int status = read_key(r, &r->key);
        it->key_delay = it->key_delay ? it->key_delay * 2 : SOON_NS;
        int64_t most = it->key.len ? LATE_NS : WITHOUT_NS;
        it->key_delay = it->key_delay < most ? it->key_delay : most;
        it->key_again = now + it->key_delay;
        if (status < 0 && it->key.len)
            r->key = (struct err){0}; /* the one that it has is tried further */
    } else if (!it->key.len) {
        err_set(&r->key, ERR_UNAVAILABLE, "NoKey", "%s", r->object.status.message);
    }
    pool_cvr_again(r, it->key_again - now);
}
