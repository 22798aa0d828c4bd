#include "k8s/apiserver/kinds.h"

#include <malloc.h>

#include "k8s/apiserver/openapi_v2.h"
#include "k8s/kinds/kinds.h"

/* What is in service when there are no definitions; it is not counted. */
static struct apiserver_kinds tables = {.all = api_kinds, .lock = PTHREAD_MUTEX_INITIALIZER};

void apiserver_kinds_only_kubernetes(void)
{
    tables.all = api_kinds_of_kubernetes();
}

const struct api_kind *const *apiserver_kinds_tables(void)
{
    return tables.all;
}

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
        struct apiserver_document *d = it->value;
        str_done(&d->text);
        free(d);
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
    for (const struct api_kind *const *kind = tables.all; *kind; kind++)
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

/* Takes over the text; the lock is held. Making it took far more memory than it has. */
static const struct apiserver_document *keep(struct apiserver_kinds *k, const char *name,
                                             struct str text)
{
    struct apiserver_document *d = NEW(struct apiserver_document);
    d->text = (struct str){mem_realloc(text.p, text.len + 1), text.len, text.len + 1};
    apiserver_content_hash(d->text.p, d->text.len, d->hash);
    map_set(&k->documents, name, d);
    malloc_trim(0);
    return d;
}

const struct apiserver_document *apiserver_kinds_document(struct apiserver_kinds *k,
                                                          const struct api_group_version *gv)
{
    char name[128] = "";
    if (gv)
        api_version_text(gv, name);
    pthread_mutex_lock(&k->lock);
    const struct apiserver_document *d = map_get(&k->documents, name);
    if (!d) {
        struct str text = {0};
        json_t *made = gv ? apiserver_openapi_document(k->all, gv->group, gv->version)
                          : apiserver_openapi_index(k->all);
        json_format(made, &text);
        json_decref(made);
        d = keep(k, name, text);
    }
    pthread_mutex_unlock(&k->lock);
    return d;
}

const struct apiserver_document *apiserver_kinds_document_v2(struct apiserver_kinds *k,
                                                             bool protobuf)
{
    const char *name = protobuf ? "openapi v2 protobuf" : "openapi v2"; /* no version */
    pthread_mutex_lock(&k->lock);
    const struct apiserver_document *d = map_get(&k->documents, name);
    if (!d) {
        struct str text = {0};
        apiserver_openapi_v2(k->all, protobuf, &text);
        d = keep(k, name, text);
    }
    pthread_mutex_unlock(&k->lock);
    return d;
}
