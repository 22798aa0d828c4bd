#include "k8s/apiserver/gates.h"

#include <stddef.h>

#include "base/mem.h"
#include "base/str.h"

/* Each is on by default; the member says that it is off. */
static const struct {
    const char *name;
    size_t off;
} gates[] = {
    {"OrlopAdmission", offsetof(struct apiserver_features, no_rules)},
    {"StatefulSetVolumeExpansion", offsetof(struct apiserver_features, fixed_claim_templates)},
};

static int unknown_gate(const char *name, struct err *e)
{
    _cleanup_(str_done) struct str names = {0};
    for (size_t i = 0; i < ARRAY_SIZE(gates); i++)
        str_appendf(&names, "%s%s", i ? ", " : "", gates[i].name);
    return err_set(e, ERR_INVALID_ARGUMENT, "UnknownFeature",
                   "there is no feature gate \"%s\"; there is %s", name, str_get(&names));
}

static int set_feature(const char *text, size_t n, struct apiserver_features *features,
                       struct err *e)
{
    _cleanup_free_ char *name = mem_strndup(text, n);
    char *value = name + strcspn(name, "=");
    if (*value)
        *value++ = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(gates); i++) {
        if (!str_eq(gates[i].name, name))
            continue;
        bool off = str_eq(value, "false");
        if (!off && !str_eq(value, "true"))
            return err_set(e, ERR_INVALID_ARGUMENT, "InvalidFeature", "write %s=true or %s=false",
                           name, name);
        *(bool *)((char *)features + gates[i].off) = off;
        return 0;
    }
    return unknown_gate(name, e);
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
