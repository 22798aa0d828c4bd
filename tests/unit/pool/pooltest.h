/*
 * Wishes and pools in a few words, for tests: "mirror a b; spare s" are groups of devices, whose paths are
 * /d/NAME and whose GUIDs are their first letters.
 */
#pragma once

#include "pool/impl.h"
#include "unit.h"

enum { DEVICES = 32 };

struct test_wish {
    struct pool_wish wish;
    struct pool_group groups[DEVICES];
    struct pool_device devices[DEVICES], others[DEVICES];
    char text[256], paths[2 * DEVICES][16];
    size_t n_paths;
};

static inline struct pool_device test_device(struct test_wish *t, const char *name)
{
    char *path = t->paths[t->n_paths++];
    snprintf(path, sizeof(t->paths[0]), "/d/%s", name);
    return (struct pool_device){.name = name, .path = path, .predecessor = ""};
}

/* A device is "name", or "name<old" when it takes the place of another. */
static inline struct pool_wish *test_wish(struct test_wish *t, const char *text)
{
    static const struct {
        const char *word;
        enum zpool_group_type type;
        enum zpool_role role;
    } words[] = {
        {"stripe", ZPOOL_STRIPE, ZPOOL_ROLE_DATA}, {"mirror", ZPOOL_MIRROR, ZPOOL_ROLE_DATA},
        {"raidz", ZPOOL_RAIDZ, ZPOOL_ROLE_DATA},   {"log", ZPOOL_STRIPE, ZPOOL_ROLE_LOG},
        {"cache", ZPOOL_STRIPE, ZPOOL_ROLE_CACHE}, {"spare", ZPOOL_STRIPE, ZPOOL_ROLE_SPARE},
    };
    *t = (struct test_wish){0};
    struct pool_wish *w = &t->wish;
    *w = (struct pool_wish){.name = "cstor-uid",
                            .groups = t->groups,
                            .devices = t->devices,
                            .others = t->others,
                            .guarded = true,
                            .cluster_name = "",
                            .request = {"", ""},
                            .answered = {"", ""},
                            .compression = "off"};
    snprintf(t->text, sizeof(t->text), "%s", text);
    char *save = NULL;
    struct pool_group *g = NULL;
    for (char *it = strtok_r(t->text, " ;", &save); it; it = strtok_r(NULL, " ;", &save)) {
        bool word = false;
        for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
            if (strcmp(it, words[i].word) != 0)
                continue;
            word = true;
            g = &t->groups[w->n_groups++];
            *g = (struct pool_group){words[i].type, words[i].role, &t->devices[w->n_devices], 0};
        }
        if (word)
            continue;
        char *old = strchr(it, '<');
        if (old)
            *old++ = '\0';
        t->devices[w->n_devices] = test_device(t, it);
        if (old) {
            t->devices[w->n_devices].predecessor = old;
            t->others[w->n_others++] = test_device(t, old);
        }
        t->devices[w->n_devices].role = g->role;
        t->devices[w->n_devices].announced = true;
        w->n_devices++;
        g->n_devices++;
    }
    return w;
}
