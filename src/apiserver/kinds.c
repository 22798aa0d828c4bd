#include "apiserver/kinds.h"

#include "apiserver/openapi_doc.h"

/* What is in service when there are no definitions; it is not counted. */
static struct apiserver_kinds tables = {.all = api_kinds, .lock = PTHREAD_MUTEX_INITIALIZER};

struct apiserver_kinds *apiserver_kinds_ref(struct apiserver_kinds *k)
{
    if (k != &tables)
        __atomic_add_fetch(&k->refs, 1, __ATOMIC_RELAXED);
    return k;
}

void apiserver_kinds_unref(struct apiserver_kinds *k)
{
    if (!k || k == &tables || __atomic_sub_fetch(&k->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (struct apiserver_definition **d = k->definitions; *d; d++)
        apiserver_definition_unref(*d);
    map_for_each(&k->documents, it) {
        str_done(it->value);
        free(it->value);
    }
    map_done(&k->documents);
    pthread_mutex_destroy(&k->lock);
    free(k->definitions);
    free((void *)k->all);
    free(k);
}

struct apiserver_kinds *apiserver_kinds_get(struct apiserver_registry *g)
{
    pthread_mutex_lock(&g->kinds_lock);
    struct apiserver_kinds *k = apiserver_kinds_ref(g->kinds ? g->kinds : &tables);
    pthread_mutex_unlock(&g->kinds_lock);
    return k;
}

static struct apiserver_kinds *make(struct apiserver_definition *const *added, size_t n)
{
    struct apiserver_kinds *k = NEW(struct apiserver_kinds);
    VEC(const struct api_kind *) all = {0};
    k->refs = 1;
    pthread_mutex_init(&k->lock, NULL);
    k->definitions = mem_realloc_array(NULL, n + 1, sizeof(struct apiserver_definition *));
    for (const struct api_kind *const *kind = api_kinds; *kind; kind++)
        vec_push(&all, *kind);
    for (size_t i = 0; i < n; i++) {
        k->definitions[i] = apiserver_definition_ref(added[i]);
        k->converts |= added[i]->conversion != NULL;
        for (size_t j = 0; j < added[i]->n; j++)
            vec_push(&all, &added[i]->kinds[j]);
    }
    k->definitions[n] = NULL;
    vec_push(&all, NULL);
    k->all = all.p;
    return k;
}

void apiserver_kinds_set(struct apiserver_registry *g, struct apiserver_definition *const *added,
                         size_t n)
{
    struct apiserver_kinds *k = n ? make(added, n) : NULL;
    pthread_mutex_lock(&g->kinds_lock);
    struct apiserver_kinds *before = g->kinds;
    g->kinds = k;
    pthread_mutex_unlock(&g->kinds_lock);
    apiserver_kinds_unref(before);
}

const struct api_kind *apiserver_kinds_find(const struct apiserver_kinds *k,
                                            const struct api_group_version *gv, const char *plural)
{
    for (const struct api_kind *const *kind = k->all; *kind; kind++) {
        for (const struct api_group_version *own = (*kind)->versions; own->group; own++) {
            if (str_eq((*kind)->plural, plural) && str_eq(own->group, gv->group) &&
                str_eq(own->version, gv->version))
                return *kind;
        }
    }
    return NULL;
}

const struct str *apiserver_kinds_document(struct apiserver_kinds *k,
                                           const struct api_group_version *gv)
{
    char name[128] = "";
    if (gv)
        api_version_text(gv, name);
    pthread_mutex_lock(&k->lock);
    struct str *text = map_get(&k->documents, name);
    if (!text) {
        json_auto_t *made = gv ? apiserver_openapi_document(k->all, gv->group, gv->version)
                               : apiserver_openapi_index(k->all);
        text = NEW(struct str);
        json_format(made, text);
        map_set(&k->documents, name, text);
    }
    pthread_mutex_unlock(&k->lock);
    return text;
}
