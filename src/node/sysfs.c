#include "node/sysfs.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

enum { TEXT_LIMIT = 64 * 1024, SHOWN = 512 };

const char *node_sysfs_text(struct arena *a, const char *dir, const char *name)
{
    _cleanup_free_ char *path = mem_printf("%s/%s", dir, name);
    _cleanup_(str_done) struct str s = {0};
    if (file_read(path, TEXT_LIMIT, &s, NULL) < 0)
        return NULL;
    const char *text = str_get(&s);
    text += strspn(text, " \t\n");
    size_t n = strcspn(text, "\n");
    if (n > SHOWN)
        n = SHOWN;
    while (n && (text[n - 1] == ' ' || text[n - 1] == '\t'))
        n--;
    char *copy = arena_strndup(a, text, n);
    for (char *c = copy; *c; c++) {
        if (*c < ' ' || *c == 0x7f)
            *c = '?';
    }
    return copy;
}

uint64_t node_sysfs_number(const char *dir, const char *name, uint64_t fallback)
{
    _cleanup_(arena_done) struct arena a = {0};
    const char *text = node_sysfs_text(&a, dir, name);
    if (!text || !*text || strspn(text, "0123456789") != strlen(text) || strlen(text) > 18)
        return fallback;
    return strtoull(text, NULL, 10);
}

bool node_sysfs_field(const char *text, unsigned field, uint64_t *ret)
{
    text += strspn(text, " ");
    for (; field && *text; field--) {
        text += strcspn(text, " ");
        text += strspn(text, " ");
    }
    char *end;
    *ret = strtoull(text, &end, 10);
    return end != text && (*end == ' ' || *end == '\0');
}

bool node_sysfs_has(const char *dir, const char *name)
{
    _cleanup_free_ char *path = mem_printf("%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

const char *node_sysfs_names(struct arena *a, const char *dir, const char *name)
{
    _cleanup_free_ char *path = mem_printf("%s/%s", dir, name);
    DIR *d = opendir(path);
    if (!d)
        return NULL;
    _cleanup_(str_done) struct str s = {0};
    for (struct dirent *entry; (entry = readdir(d)) && s.len < SHOWN;) {
        if (entry->d_name[0] != '.')
            str_appendf(&s, "%s%s", s.len ? ", " : "", entry->d_name);
    }
    closedir(d);
    return s.len ? arena_strdup(a, str_get(&s)) : NULL;
}
