/*
 * volume show --login: what a person, or a program, needs to log in to a volume by hand.
 */
#include "base/base64.h"
#include "ctl/volume.h"

/* A member of the Secret; "" when it is not there. */
static void read_member(const json_t *secret, const char *word, struct str *out)
{
    _cleanup_free_ char *key = mem_printf("node.session.auth.%s", word);
    const char *text = json_str(json_object_get(secret, "data"), key);
    if (text && !base64_parse(text, strlen(text), BASE64_STD, out))
        str_clear(out);
}

/*
 * As libiscsi reads it, and qemu by it. It knows no escapes: what the controller makes needs none, and for what
 * others wrote there is no URL (NULL).
 */
static char *format_url(const json_t *o)
{
    static const char *const members[] = {"user", "password", "targetUser", "targetPassword"};
    const char *text[ARRAY_SIZE(members)];
    struct str url = {0};
    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        text[i] = json_str(o, members[i]);
        if (text[i] && strspn(text[i], "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                       "0123456789-._~") != strlen(text[i]))
            return NULL;
    }
    str_append(&url, "iscsi://");
    if (text[0])
        str_appendf(&url, "%s%%%s@", text[0], text[1]);
    str_appendf(&url, "%s/%s/%lld", json_str(o, "portal"), json_str(o, "target"),
                (long long)json_integer_value(json_object_get(o, "lun")));
    if (text[2])
        str_appendf(&url, "?target_user=%s&target_password=%s", text[2], text[3]);
    return str_take(&url);
}

static int add_secret(const struct ctl_volume *v, const json_t *volume, json_t *o, struct err *e)
{
    static const char *const members[][2] = {{"user", "username"},
                                             {"password", "password"},
                                             {"targetUser", "username_in"},
                                             {"targetPassword", "password_in"}};
    const struct kube_resource secrets = kube_resource("v1", "Secret");
    _cleanup_free_ char *name = mem_printf("%s-chap", kube_name(volume));
    json_auto_t *secret = kube_get(v->client, &secrets, v->ns, name, e);
    if (!secret)
        return err_prefix(e, "the Secret %s, which has what is needed to log in", name);
    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        _cleanup_(str_done) struct str text = {0};
        read_member(secret, members[i][1], &text);
        if (!text.len)
            return err_set(e, ERR_FAILED_PRECONDITION, "Incomplete",
                           "the Secret %s has no node.session.auth.%s: delete it, and it is made "
                           "anew",
                           name, members[i][1]);
        json_object_set_new(o, members[i][0], json_string(str_get(&text)));
    }
    return 0;
}

static void print_text(const json_t *o)
{
    static const char *const rows[][2] = {{"portal", "portal"},
                                          {"target", "target"},
                                          {"user", "user"},
                                          {"password", "password"},
                                          {"target's user", "targetUser"},
                                          {"target's password", "targetPassword"},
                                          {"URL", "url"}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const char *text = json_str(o, rows[i][1]);
        if (text)
            printf("%-18s %s\n", rows[i][0], text);
        if (i == 1)
            printf("%-18s %lld\n", "unit",
                   (long long)json_integer_value(json_object_get(o, "lun")));
    }
}

int ctl_volume_print_login(const struct ctl_volume *v, const json_t *volume)
{
    const struct jiva_volume jv = jiva_volume_of(volume, NULL);
    const char *output = ctl_settings(v->args)->output;
    struct err e = {0};
    if (!*jv.iscsi.portal)
        return cli_fail(v->args, "volume %s has no portal yet: try again when it is Ready",
                        kube_name(volume));
    json_auto_t *o = json_pack("{s:s,s:s,s:I}", "portal", jv.iscsi.portal, "target", jv.iscsi.iqn,
                               "lun", (json_int_t)jv.spec.lun);
    if (jiva_volume_is_authenticated(&jv) && add_secret(v, volume, o, &e) < 0)
        return cli_fail(v->args, "%s", e.msg);
    _cleanup_free_ char *url = format_url(o);
    if (url)
        json_object_set_new(o, "url", json_string(url));
    if (output && str_eq(output, "url") && !url)
        return cli_fail(v->args, "the Secret %s-chap has characters that a URL cannot have",
                        kube_name(volume));
    if (output && str_eq(output, "url"))
        printf("%s\n", url);
    else if (output && !str_eq(output, "text"))
        ctl_print(o, output);
    else
        print_text(o);
    return cli_finish(v->args);
}
