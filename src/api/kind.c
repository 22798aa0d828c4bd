#include "api/kind.h"

#include <stdio.h>
#include <strings.h>

const char *api_version_text(const struct api_group_version *gv, char buf[128])
{
    snprintf(buf, 128, "%s%s%s", gv->group, *gv->group ? "/" : "", gv->version);
    return buf;
}

/* Whether text is "group/version", or "version" for the core group. */
static bool is_version(const struct api_group_version *gv, const char *text)
{
    size_t n = strlen(gv->group);
    if (n == 0)
        return str_eq(text, gv->version);
    return strncmp(text, gv->group, n) == 0 && text[n] == '/' && str_eq(text + n + 1, gv->version);
}

const struct api_kind *api_kind_find(const char *api_version, const char *kind,
                                     const struct api_kind **ret_other)
{
    const struct api_kind *other = NULL;
    for (const struct api_kind *const *k = api_kinds; *k; k++) {
        if (!str_eq((*k)->kind, kind))
            continue;
        for (const struct api_group_version *gv = (*k)->versions; gv->group; gv++) {
            if (is_version(gv, api_version))
                return *k;
        }
        if (!other)
            other = *k;
    }
    if (ret_other)
        *ret_other = other;
    return NULL;
}

const struct api_kind *api_kind_by_name(const char *name)
{
    for (const struct api_kind *const *k = api_kinds; *k; k++) {
        if (strcasecmp((*k)->kind, name) == 0 || strcasecmp((*k)->plural, name) == 0 ||
            strcasecmp((*k)->singular, name) == 0)
            return *k;
        for (const char *const *s = (*k)->short_names; s && *s; s++) {
            if (strcasecmp(*s, name) == 0)
                return *k;
        }
    }
    return NULL;
}
