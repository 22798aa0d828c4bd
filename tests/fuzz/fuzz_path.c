/*
 * Requests: a method, a space, a path. What is accepted has names that are safe to use as they are
 * and belongs to the tables; what is refused makes a Status that can be sent.
 */
#include "base/mem.h"
#include "fuzz.h"
#include "k8s/apiserver/path.h"
#include "k8s/apiserver/status.h"

static void check_name(const char *name)
{
    json_auto_t *text = json_string(name);
    CHECK(text && strlen(name) <= APISERVER_NAME_MAX);
    CHECK(!strpbrk(name, "/%\r\n") && !str_eq(name, ".") && !str_eq(name, ".."));
}

static void check_objects(const struct apiserver_path *p)
{
    bool cluster = p->kind->flags & API_CLUSTER_SCOPED;
    CHECK(p->gv >= p->kind->versions && p->gv->group);
    CHECK(!cluster || (!*p->namespace && !p->all_namespaces));
    CHECK(cluster || p->all_namespaces == !*p->namespace);
    CHECK(!p->all_namespaces || !*p->name);
    CHECK(p->subresource == APISERVER_MAIN || *p->name);
    CHECK(apiserver_allows(p->kind, p->subresource, p->verb));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *space = size ? memchr(data, ' ', size) : NULL;
    if (!space)
        return 0;
    size_t n = (size_t)(space - data);
    _cleanup_free_ char *method = mem_strndup((const char *)data, n);
    struct apiserver_path p;
    struct err e = {0};
    if (apiserver_path_parse(api_kinds, method, (const char *)space + 1, size - n - 1, size % 2, &p,
                             &e) < 0) {
        unsigned code;
        struct apiserver_about about = {p.kind, p.gv, *p.name ? p.name : NULL, p.namespace};
        json_auto_t *status = apiserver_status(&e, NULL, &about, &code);
        CHECK(code == 400 || code == 404 || code == 405);
        CHECK(json_str(status, "message") && json_str(status, "reason"));
        return 0;
    }
    check_name(p.namespace);
    check_name(p.name);
    check_name(p.check);
    CHECK((p.asked == APISERVER_ASKED_OBJECTS) == (p.kind != NULL));
    if (p.kind)
        check_objects(&p);
    return 0;
}
