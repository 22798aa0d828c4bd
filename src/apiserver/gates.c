#include "apiserver/gates.h"

#include "base/mem.h"
#include "base/str.h"

static int set_feature(const char *text, size_t n, struct apiserver_features *features,
                       struct err *e)
{
    static const char name[] = "StatefulSetVolumeExpansion";
    const char *equals = memchr(text, '=', n);
    size_t before = equals ? (size_t)(equals - text) : n;
    if (before != strlen(name) || strncmp(text, name, before) != 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "UnknownFeature",
                       "there is no feature gate \"%.*s\"; there is %s", (int)before, text, name);
    _cleanup_free_ char *value = equals ? mem_strndup(equals + 1, n - before - 1) : mem_strdup("");
    bool off = str_eq(value, "false");
    if (!off && !str_eq(value, "true"))
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidFeature", "write %s=true or %s=false", name,
                       name);
    features->fixed_claim_templates = off;
    return 0;
}

int apiserver_features_parse(const char *text, struct apiserver_features *features, struct err *e)
{
    while (*text) {
        size_t n = strcspn(text, ",");
        if (set_feature(text, n, features, e) < 0)
            return -1;
        text += n;
        text += *text == ',';
    }
    return 0;
}
