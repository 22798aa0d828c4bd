/*
 * The children of a volume: applied in this order, each when those before it are there
 * (kube/child.h).
 *
 *     Secrets ─> account, Role, binding ─> Service with the address ─> Deployments ─> portal
 *
 * Caches hold what has the label openebs.io/cas-type of the engine.
 */
#include <errno.h>
#include <sys/random.h>

#include "base/base64.h"
#include "base/uuid.h"
#include "controllers/volume/volume.h"

int volume_apply_child(struct volume_work *w, const struct kube_children *of, json_t *wanted,
                       const struct kube_birth *birth, json_t **ret_live, struct err *e)
{
    json_auto_t *want = wanted;
    const struct kube_child child = {.of = of, .owner = w->volume, .wanted = want, .birth = birth};
    enum kube_applied applied;
    json_auto_t *now = want ? kube_apply_child(w->c->client, &child, &applied, e) : NULL;
    if (!now)
        return !want || e->code == ERR_FAILED_PRECONDITION
                   ? -1
                   : err_prefix(e, "%s %s", of->r.kind, kube_name(want));
    if (applied == KUBE_CHILD_REPAIRED)
        kube_event_normal(w->c->recorder, w->volume, "Repaired",
                          "%s %s had been changed and was put back", of->r.kind, kube_name(want));
    if (ret_live)
        *ret_live = json_incref(now);
    return 0;
}

/* The key that target and replicas share. */
static json_t *make_key(const json_t *volume, struct err *e)
{
    (void)volume, (void)e;
    _cleanup_(str_done) struct str key = {0};
    for (int i = 0; i < 2; i++) {
        const struct uuid random = uuid_random();
        base64_format(random.bytes, sizeof(random.bytes), BASE64_STD, &key);
    }
    return json_pack("{s:s}", "key", str_get(&key));
}

/* What every initiator takes, and every URL as it is: 16 letters and digits, of 95 bits. */
static int make_password(char ret[17], struct err *e)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    enum { LETTERS = sizeof(letters) - 1 };
    for (size_t n = 0; n < 16;) {
        unsigned char bytes[32];
        if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
            return err_errno(e, errno, "no random numbers");
        for (size_t i = 0; i < sizeof(bytes) && n < 16; i++) {
            if (bytes[i] < 256 / LETTERS * LETTERS)
                ret[n++] = letters[bytes[i] % LETTERS];
        }
        explicit_bzero(bytes, sizeof(bytes));
    }
    ret[16] = '\0';
    return 0;
}

static json_t *make_chap(const json_t *volume, struct err *e)
{
    char password[17], target_password[17];
    if (make_password(password, e) < 0 || make_password(target_password, e) < 0)
        return NULL;
    json_t *data = volume_chap_data(volume, password, target_password);
    explicit_bzero(password, sizeof(password));
    explicit_bzero(target_password, sizeof(target_password));
    return data;
}

static int apply_secret(struct volume_work *w, enum volume_child which,
                        const struct kube_birth *birth, json_t **ret_secret, struct err *e)
{
    return volume_apply_child(w, &w->c->secrets, volume_child(w->c->engine, w->volume, which, e),
                              birth, ret_secret, e);
}

/*
 * Without CHAP there is no Secret for it; one that was there goes, so that nobody takes it for
 * valid.
 */
static int apply_secrets(struct volume_work *w, json_t **ret_key, json_t **ret_chap, struct err *e)
{
    static const char *const keys[] = {"key", NULL};
    static const struct kube_birth key_birth = {keys, make_key},
                                   chap_birth = {volume_chap_keys, make_chap};
    bool chap = volume_look(w).authenticated;
    _cleanup_free_ char *key_name = mem_printf("%s-key", w->name);
    _cleanup_free_ char *chap_name = mem_printf("%s-chap", w->name);
    const char *const names[] = {key_name, chap ? chap_name : NULL, NULL};
    if (apply_secret(w, VOLUME_KEY, &key_birth, ret_key, e) < 0 ||
        (chap && apply_secret(w, VOLUME_CHAP, &chap_birth, ret_chap, e) < 0))
        return -1;
    return kube_prune_children(w->c->client, &w->c->secrets, w->volume, names, e);
}

/* A Service that is made again asks for the address that initiators and replicas know. */
static int apply_service(struct volume_work *w, json_t **ret_service, struct err *e)
{
    const char *portal = volume_look(w).portal, *colon = strrchr(portal, ':');
    _cleanup_free_ char *name = mem_printf("%s%s", w->name, w->c->engine->service_suffix);
    json_auto_t *live = kube_informer_json(w->c->services.informer, w->ns, name, NULL);
    if (!live && colon && *portal != '[') {
        _cleanup_free_ char *address = mem_strndup(portal, (size_t)(colon - portal));
        struct err why = {0};
        int r = volume_apply_child(w, &w->c->services,
                                   volume_service(w->c->engine, w->volume, address, &why), NULL,
                                   ret_service, &why);
        if (r == 0 || why.code != ERR_INVALID_ARGUMENT) { /* else: somebody else has it now */
            *e = r == 0 ? *e : why;
            return r;
        }
    }
    return volume_apply_child(w, &w->c->services, volume_service(w->c->engine, w->volume, NULL, e),
                              NULL, ret_service, e);
}

static int ensure_portal(struct volume_work *w, const char *address, struct err *e)
{
    bool v6 = strchr(address, ':');
    _cleanup_free_ char *portal = mem_printf(v6 ? "[%s]:%d" : "%s:%d", address, VOLUME_ISCSI_PORT);
    if (str_eq(volume_look(w).portal, portal))
        return 0;
    json_auto_t *patch = w->c->engine->portal(w->volume, portal);
    return volume_patch(w, patch, "portal", e);
}

int volume_ensure_children(struct volume_work *w, struct err *e)
{
    json_t *secrets[2] = {0}, *made = NULL, *service = NULL;
    int status = apply_secrets(w, &secrets[0], &secrets[1], e);
    json_auto_t *key = secrets[0], *chap = secrets[1];
    if (status < 0 || volume_apply_child(w, &w->c->accounts,
                                         volume_child(w->c->engine, w->volume, VOLUME_ACCOUNT, e),
                                         NULL, &made, e) < 0)
        return -1;
    json_auto_t *account = made;
    if (volume_apply_child(w, &w->c->roles, volume_child(w->c->engine, w->volume, VOLUME_ROLE, e),
                           NULL, NULL, e) < 0 ||
        volume_apply_child(w, &w->c->bindings,
                           volume_child(w->c->engine, w->volume, VOLUME_ROLE_BINDING, e), NULL,
                           NULL, e) < 0 ||
        apply_service(w, &service, e) < 0)
        return -1;
    json_auto_t *svc = service;
    const char *address = volume_text(svc, "spec", "clusterIP");
    if (!*address)
        return err_set(e, ERR_UNAVAILABLE, "NoAddress", "Service %s has no address yet",
                       kube_name(svc));
    const struct volume_uids uids = {kube_uid(key), chap ? kube_uid(chap) : "", kube_uid(account)};
    if (volume_apply_child(w, &w->c->deployments,
                           volume_target(w->c->engine, w->volume, address, &uids, e), NULL, NULL,
                           e) < 0 ||
        w->c->engine->apply_replicas(w, address, &uids, e) < 0)
        return -1;
    return ensure_portal(w, address, e);
}
