/*
 * Bootstrap tokens, with which a new machine first speaks to the server: "id.secret", kept as the
 * Secret bootstrap-token-ID in kube-system.
 */
#include "base/base64.h"
#include "base/rfc3339.h"
#include "base/vec.h"
#include "k8s/apiserver/authn.h"
#include "k8s/apiserver/serve_impl.h"

enum { ID = 6, SECRET = 16, GROUP_MAX = 256 };

static bool take_word(const char *text, size_t n, char *ret_word)
{
    for (size_t i = 0; i < n; i++) {
        if (!((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= '0' && text[i] <= '9')))
            return false;
    }
    memcpy(ret_word, text, n);
    ret_word[n] = '\0';
    return true;
}

bool apiserver_bootstrap_parse(const char *token, char ret_id[7], char ret_secret[17])
{
    return strlen(token) == ID + 1 + SECRET && token[ID] == '.' && take_word(token, ID, ret_id) &&
           take_word(token + ID + 1, SECRET, ret_secret);
}

/* The value of a key of the Secret, decoded; empty when there is none. */
static void read_value(const json_t *secret, const char *key, struct str *ret_value)
{
    const char *text = json_str(json_object_get(secret, "data"), key);
    if (text)
        base64_parse(text, strlen(text), BASE64_STD, ret_value);
}

static bool is_true(const json_t *secret, const char *key)
{
    _cleanup_(str_done) struct str value = {0};
    read_value(secret, key, &value);
    return str_eq(str_get(&value), "true");
}

static bool is_over(const struct apiserver *a, const json_t *secret)
{
    _cleanup_(str_done) struct str value = {0};
    struct timespec until;
    read_value(secret, "expiration", &value);
    if (!value.len)
        return false; /* it has no end */
    return rfc3339_parse(value.p, &until, NULL) < 0 ||
           rfc3339_to_ns(until) <= clock_real_ns(a->registry.clock);
}

/* "system:bootstrappers:...": a Secret cannot make its bearer a member of anything else. */
static bool is_group(const char *group)
{
    static const char prefix[] = "system:bootstrappers:";
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789:-";
    if (!str_starts_with(group, prefix))
        return false;
    const char *rest = group + sizeof(prefix) - 1;
    size_t n = strlen(rest);
    return n && n <= GROUP_MAX && strspn(rest, letters) == n && !strchr(":-", rest[n - 1]);
}

static const struct apiserver_user *make_user(const char *id, const json_t *secret)
{
    _cleanup_(str_done) struct str list = {0};
    _cleanup_free_ char *name = mem_printf("system:bootstrap:%s", id);
    VEC(const char *) groups = {0};
    bool fine = true;
    char *rest = NULL;
    vec_push(&groups, "system:bootstrappers");
    read_value(secret, "auth-extra-groups", &list);
    for (char *g = list.p ? strtok_r(list.p, ",", &rest) : NULL; g;
         g = strtok_r(NULL, ",", &rest)) {
        fine = fine && is_group(g);
        vec_push(&groups, g);
    }
    vec_push(&groups, "system:authenticated");
    vec_push(&groups, NULL);
    const struct apiserver_user *user =
        fine ? apiserver_user_new(name, NULL, groups.p, NULL) : NULL;
    vec_done(&groups);
    return user;
}

static bool is_token(const json_t *object)
{
    return str_eq(json_text(object, "type"), "bootstrap.kubernetes.io/token") &&
           !json_at(object, "metadata", "deletionTimestamp");
}

bool apiserver_bootstrap_is_over(const struct apiserver *a, const json_t *secret)
{
    return is_token(secret) && is_over(a, secret);
}

bool apiserver_bootstrap_is(const struct apiserver *a, const json_t *secret, const char *use,
                            char ret_id[7], char ret_secret[17])
{
    _cleanup_(pki_wipe) struct str id = {0}, own = {0};
    _cleanup_free_ char *key = mem_printf("usage-bootstrap-%s", use);
    read_value(secret, "token-id", &id);
    read_value(secret, "token-secret", &own);
    return is_token(secret) && id.len == ID && own.len == SECRET && take_word(id.p, ID, ret_id) &&
           take_word(own.p, SECRET, ret_secret) && is_true(secret, key) && !is_over(a, secret);
}

const struct apiserver_user *apiserver_bootstrap_find(struct apiserver *a, const char *token)
{
    char id[ID + 1], secret[SECRET + 1], own_id[ID + 1], own_secret[SECRET + 1];
    if (!apiserver_bootstrap_parse(token, id, secret))
        return NULL;
    _cleanup_free_ char *name = mem_printf("bootstrap-token-%s", id);
    json_auto_t *object = apiserver_core_object(a, "Secret", "kube-system", name);
    if (!apiserver_bootstrap_is(a, object, "authentication", own_id, own_secret) ||
        !str_eq(own_id, id) || !pki_equal(own_secret, secret))
        return NULL;
    return make_user(id, object);
}
