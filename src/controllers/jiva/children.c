/*
 * The children of a JivaVolume: made where there is none, mended where they differ, and nobody else's.
 *
 * Caches hold what has the label openebs.io/cas-type=jiva. A child that lost it is not in the cache and
 * is there all the same; so whoever cannot be made, since there is one, is read from the server.
 *
 *     no owner, our labels     ours: somebody took the owner off, and gets it back
 *     our uid                  ours
 *     a volume of our name     of one that was deleted: it is about to go, and is waited for
 *     anybody else             not ours: said, and left alone
 */
#include <errno.h>
#include <sys/random.h>

#include "base/base64.h"
#include "base/uuid.h"
#include "controllers/jiva/jiva.h"

/* Whether live has all of what is wanted; lists have to be of the same length. */
static bool has(const json_t *live, const json_t *wanted)
{
    const char *key;
    json_t *value;
    size_t i;
    if (json_is_object(wanted)) {
        json_object_foreach((json_t *)(uintptr_t)wanted, key, value) {
            if (!has(json_object_get(live, key), value))
                return false;
        }
        return json_is_object(live);
    }
    if (json_is_array(wanted)) {
        if (!json_is_array(live) || json_array_size(live) != json_array_size(wanted))
            return false;
        json_array_foreach((json_t *)(uintptr_t)wanted, i, value) {
            if (!has(json_array_get(live, i), value))
                return false;
        }
        return true;
    }
    return live && json_equal(live, wanted);
}

bool jiva_impose(json_t *live, const json_t *wanted)
{
    const char *key;
    json_t *value;
    bool changed = false;
    json_object_foreach((json_t *)(uintptr_t)wanted, key, value) {
        json_t *there = json_object_get(live, key);
        if (has(there, value))
            continue;
        changed = true;
        if (json_is_object(value) && json_is_object(there))
            jiva_impose(there, value);
        else
            json_object_set(live, key, value);
    }
    return changed;
}

/* Whether the object is the volume's to mend. */
static int check_owner(const struct jiva_work *w, const json_t *live, const char *kind,
                       struct err *e)
{
    const json_t *owner = json_array_get(json_at(live, "metadata", "ownerReferences"), 0);
    const char *uid = json_str(owner, "uid"), *of = json_str(owner, "name"),
               *about = kube_label(live, JIVA_VOLUME_LABEL);
    if (uid ? str_eq(uid, kube_uid(w->volume)) : about && str_eq(about, w->name))
        return 0;
    if (uid && of && str_eq(of, w->name) && about && str_eq(about, w->name))
        return err_set(e, ERR_UNAVAILABLE, "Leftover",
                       "%s \"%s\" is of a volume of this name that was deleted, and not gone yet",
                       kind, kube_name(live));
    return err_set(e, ERR_FAILED_PRECONDITION, "NotOurs",
                   "there is a %s \"%s\" that is not this volume's: delete it, or give the "
                   "volume another name",
                   kind, kube_name(live));
}

/* Makes it; when there is one that the cache does not have, *ret_live is that and NULL is returned. */
static json_t *make(struct jiva_work *w, const struct jiva_children *kind, const json_t *wanted,
                    json_t **ret_live, struct err *e)
{
    struct err why = {0};
    crash_point(kind->r.kind);
    json_t *now = kube_create(w->j->client, &kind->r, wanted, NULL, &why);
    crash_point(kind->r.kind);
    if (now)
        return now;
    if (why.code == ERR_ALREADY_EXISTS) {
        *ret_live = kube_get(w->j->client, &kind->r, w->ns, kube_name(wanted), e);
        return NULL;
    }
    *e = why;
    return NULL;
}

/* What is there becomes what is wanted. */
static json_t *mend(struct jiva_work *w, const struct jiva_children *kind, json_t *live,
                    const json_t *wanted, struct err *e)
{
    if (check_owner(w, live, kind->r.kind, e) < 0)
        return NULL;
    json_auto_t *mended = json_deep_copy(live);
    if (!jiva_impose(mended, wanted))
        return json_incref(live);
    crash_point(kind->r.kind);
    json_t *now = kube_update(w->j->client, &kind->r, mended, NULL, e);
    crash_point(kind->r.kind);
    if (now)
        kube_event_normal(w->j->recorder, w->volume, "Mended", "%s %s was not as it has to be",
                          kind->r.kind, kube_name(wanted));
    return now;
}

/* Makes it, or mends it; *ret_live, if given, is what there is then. */
static int ensure(struct jiva_work *w, const struct jiva_children *kind, json_t *wanted,
                  json_t **ret_live, struct err *e)
{
    json_auto_t *want = wanted;
    json_t *live = kube_informer_json(kind->informer, w->ns, kube_name(want), NULL);
    json_t *now = live ? NULL : make(w, kind, want, &live, e);
    if (live)
        now = mend(w, kind, live, want, e);
    json_decref(live);
    if (!now)
        return e->code == ERR_FAILED_PRECONDITION
                   ? -1
                   : err_prefix(e, "%s %s", kind->r.kind, kube_name(want));
    if (ret_live)
        *ret_live = now;
    else
        json_decref(now);
    return 0;
}

/*
 * A Secret of the volume: made once, and never looked into again. Before one is made the server is asked, not
 * the cache: with another one those who know the first would be strangers. Takes over what is wanted.
 */
static int ensure_secret(struct jiva_work *w, json_t *wanted, const char *member,
                         json_t **ret_secret, struct err *e)
{
    struct err why = {0};
    json_auto_t *live = kube_informer_json(w->j->secrets.informer, w->ns, kube_name(wanted), NULL);
    if (!live)
        live = kube_get(w->j->client, &w->j->secrets.r, w->ns, kube_name(wanted), &why);
    if (!live && why.code != ERR_NOT_FOUND) {
        json_decref(wanted);
        *e = why;
        return -1;
    }
    const char *has = json_str(json_object_get(live, "data"), member);
    if (has && *has)
        json_object_del(wanted, "stringData");
    return ensure(w, &w->j->secrets, wanted, ret_secret, e);
}

static int ensure_key(struct jiva_work *w, json_t **ret_secret, struct err *e)
{
    _cleanup_(str_done) struct str key = {0};
    for (int i = 0; i < 2; i++) {
        const struct uuid random = uuid_random();
        base64_format(random.bytes, sizeof(random.bytes), BASE64_STD, &key);
    }
    return ensure_secret(w, jiva_secret(w->volume, str_get(&key)), "key", ret_secret, e);
}

/* What every initiator takes, and every URL as it is: 16 letters and digits, of 95 bits. */
static int make_password(char ret[17], struct err *e)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    enum { LETTERS = sizeof(letters) - 1 };
    for (size_t n = 0; n < 16;) {
        unsigned char byte;
        if (getrandom(&byte, 1, 0) != 1)
            return err_errno(e, errno, "no random numbers");
        if (byte < 256 / LETTERS * LETTERS)
            ret[n++] = letters[byte % LETTERS];
    }
    ret[16] = '\0';
    return 0;
}

/* Without CHAP there is none; one that was there goes, so that nobody takes it for valid. */
static int ensure_chap(struct jiva_work *w, json_t **ret_secret, struct err *e)
{
    char password[17], target_password[17];
    if (!jiva_has_chap(w->volume)) {
        _cleanup_free_ char *name = mem_printf("%s-chap", w->name);
        json_auto_t *live = kube_informer_json(w->j->secrets.informer, w->ns, name, NULL);
        *ret_secret = NULL;
        return live && check_owner(w, live, "Secret", NULL) == 0
                   ? jiva_delete(w->j, &w->j->secrets.r, live, false, e)
                   : 0;
    }
    if (make_password(password, e) < 0 || make_password(target_password, e) < 0)
        return -1;
    int status = ensure_secret(w, jiva_chap(w->volume, password, target_password),
                               "node.session.auth.password", ret_secret, e);
    explicit_bzero(password, sizeof(password));
    explicit_bzero(target_password, sizeof(target_password));
    return status;
}

/* A Service that is made again asks for the address that initiators and replicas know. */
static int ensure_service(struct jiva_work *w, json_t **ret_service, struct err *e)
{
    json_t *wanted = jiva_service(w->volume);
    const char *portal = jiva_text(w->volume, "iscsi", "targetPortal"),
               *colon = strrchr(portal, ':');
    json_auto_t *live = kube_informer_json(w->j->services.informer, w->ns, kube_name(wanted), NULL);
    if (!live && colon && *portal != '[') {
        json_t *with = json_deep_copy(wanted);
        json_object_set_new(json_object_get(with, "spec"), "clusterIP",
                            json_stringn(portal, (size_t)(colon - portal)));
        struct err why = {0};
        int r = ensure(w, &w->j->services, with, ret_service, &why);
        if (r == 0 || why.code != ERR_INVALID_ARGUMENT) { /* else: somebody else has it now */
            json_decref(wanted);
            *e = r == 0 ? *e : why;
            return r;
        }
    }
    return ensure(w, &w->j->services, wanted, ret_service, e);
}

static int64_t replicas_of(const json_t *deployment)
{
    return json_integer_value(json_at(deployment, "spec", "replicas"));
}

static int ensure_deployments(struct jiva_work *w, const char *address,
                              const struct jiva_uids *uids, struct err *e)
{
    _cleanup_free_ char *name = mem_printf("%s-rep", w->name);
    json_auto_t *live = kube_informer_json(w->j->deployments.informer, w->ns, name, NULL);
    unsigned now = live ? (unsigned)replicas_of(live) : 0;
    unsigned count = jiva_replica_count(w->volume, now);
    if (live && count < now) {
        int said = jiva_choose_leaver(w, e);
        if (said < 0)
            return -1;
        count = said ? count : now;
    }
    if (ensure(w, &w->j->deployments, jiva_target_deployment(w->volume, address, uids), NULL, e) <
        0)
        return -1;
    return ensure(w, &w->j->deployments,
                  jiva_replica_deployment(w->volume, address, uids->key, count), NULL, e);
}

static int ensure_portal(struct jiva_work *w, const char *address, struct err *e)
{
    bool v6 = strchr(address, ':');
    _cleanup_free_ char *portal = mem_printf(v6 ? "[%s]:%d" : "%s:%d", address, JIVA_ISCSI_PORT);
    json_auto_t *iscsi = api_jiva_iscsi(w->volume), *patch = json_object();
    json_object_set_new(iscsi, "targetPortal", json_string(portal));
    jiva_patch_iscsi(w->volume, iscsi, patch);
    return json_object_size(patch) ? jiva_patch_volume(w, patch, "portal", e) : 0;
}

int jiva_ensure_children(struct jiva_work *w, struct err *e)
{
    json_t *secret = NULL, *service = NULL, *made = NULL, *login = NULL;
    if (ensure_key(w, &secret, e) < 0)
        return -1;
    json_auto_t *key = secret;
    if (ensure_chap(w, &login, e) < 0)
        return -1;
    json_auto_t *chap = login;
    if (ensure(w, &w->j->accounts, jiva_account(w->volume), &made, e) < 0)
        return -1;
    json_auto_t *account = made;
    if (ensure(w, &w->j->roles, jiva_role(w->volume), NULL, e) < 0 ||
        ensure(w, &w->j->bindings, jiva_role_binding(w->volume), NULL, e) < 0 ||
        ensure_service(w, &service, e) < 0)
        return -1;
    json_auto_t *svc = service;
    const char *address = jiva_text(svc, "spec", "clusterIP");
    if (!*address)
        return err_set(e, ERR_UNAVAILABLE, "NoAddress", "Service %s has no address yet",
                       kube_name(svc));
    const struct jiva_uids uids = {kube_uid(key), chap ? kube_uid(chap) : "", kube_uid(account)};
    if (ensure_deployments(w, address, &uids, e) < 0)
        return -1;
    return ensure_portal(w, address, e);
}
