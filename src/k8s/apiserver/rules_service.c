/*
 * Addresses of services: each that wants one gets one of its own, from one range, and keeps it.
 *
 * From the moment an address is chosen until the service that has it is visible (or was not written
 * after all) it has a reservation. Whoever chooses looks, under one lock, at what is stored and what
 * is reserved; so no two services ever have the same. The address of a service that is gone is free
 * again, but those that were never used come first.
 */
#include <arpa/inet.h>
#include <stdio.h>

#include "base/map.h"
#include "k8s/apiserver/registry_impl.h"
#include "k8s/apiserver/rules.h"
#include "k8s/kinds/kinds.h"

#define DEFAULT_RANGE "127.96.0.0/12"

enum { WIDEST = 8, NARROWEST = 30 };

struct rules_address {
    struct list_link link;
    char text[INET_ADDRSTRLEN];
};

int rules_service_range(struct apiserver_rules *rules, const char *text, struct err *e)
{
    struct in_addr in;
    if (!text)
        text = DEFAULT_RANGE;
    const char *slash = strchr(text, '/'), *digits = slash ? slash + 1 : "";
    _cleanup_free_ char *address = mem_strndup(text, slash ? (size_t)(slash - text) : 0);
    size_t n = strspn(digits, "0123456789");
    unsigned bits = n && n <= 2 && !digits[n] ? (unsigned)strtoul(digits, NULL, 10) : 0;
    if (inet_pton(AF_INET, address, &in) != 1 || bits < WIDEST || bits > NARROWEST ||
        ntohl(in.s_addr) & (UINT32_MAX >> bits))
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage",
                       "'%s' is no range of addresses for services: write an IPv4 network with %d "
                       "to %d bits, such as %s",
                       text, WIDEST, NARROWEST, DEFAULT_RANGE);
    rules->addresses.first = ntohl(in.s_addr) + 1; /* neither the network nor the broadcast */
    rules->addresses.last = (ntohl(in.s_addr) | (UINT32_MAX >> bits)) - 1;
    rules->addresses.bits = bits;
    return 0;
}

static void format(uint32_t address, char text[INET_ADDRSTRLEN])
{
    struct in_addr in = {.s_addr = htonl(address)};
    inet_ntop(AF_INET, &in, text, INET_ADDRSTRLEN);
}

/* Everything that somebody has, or is about to have. With the lock. */
static void find_used(struct apiserver_registry *g, struct map *used)
{
    _cleanup_(str_done) struct str collection = {0};
    struct apiserver_list_options all = {0};
    struct apiserver_list list;
    apiserver_collection(&api_service, &collection);
    if (apiserver_store_list(g->store, str_get(&collection), &all, &list, NULL) == 0) {
        vec_for_each(&list.objects, o) {
            json_auto_t *object = json_parse((*o)->bytes, (*o)->size, NULL, NULL);
            const char *address = json_str(json_object_get(object, "spec"), "clusterIP");
            if (address)
                map_set(used, address, g);
        }
    }
    apiserver_list_done(&list);
    list_for_each(&g->rules->addresses.reserved, r, struct rules_address, link)
        map_set(used, r->text, g);
}

/* One that is free, after the one that was chosen last; false when there is none. */
static bool choose(struct apiserver_rules *rules, const struct map *used, char *ret_text)
{
    uint32_t first = rules->addresses.first, n = rules->addresses.last - first + 1;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t offset = (rules->addresses.next + i) % n;
        format(first + offset, ret_text);
        if (!map_has(used, ret_text)) {
            rules->addresses.next = (offset + 1) % n;
            return true;
        }
    }
    return false;
}

static const struct api_path *addresses_path(void)
{
    static const struct api_path spec = {.key = "spec"};
    static const struct api_path addresses = {.parent = &spec, .key = "clusterIPs"};
    return &addresses;
}

static int refuse(struct apiserver_admission *a, const json_t *value, const char *why,
                  struct err *e)
{
    api_problem(a->report, addresses_path(), API_INVALID, value, "%s", why);
    return registry_invalid(a->request, a->object, a->report, e);
}

/* Whether that one can be had; else what stands in the way, to be freed. */
static char *check_wanted(const struct apiserver_rules *rules, const struct map *used,
                          const char *text)
{
    struct in_addr in;
    char first[INET_ADDRSTRLEN];
    if (inet_pton(AF_INET, text, &in) != 1)
        return mem_strdup("must be empty, 'None', or a valid IP address");
    uint32_t address = ntohl(in.s_addr);
    if (address < rules->addresses.first || address > rules->addresses.last) {
        format(rules->addresses.first - 1, first);
        return mem_printf("failed to allocate IP %s: the provided IP (%s) is not in the valid "
                          "range. The range of valid IPs is %s/%u",
                          text, text, first, rules->addresses.bits);
    }
    return map_has(used, text)
               ? mem_printf("failed to allocate IP %s: provided IP is already allocated", text)
               : NULL;
}

/* An address for the service, reserved; the one that is wanted, or with NULL any. */
static int take(struct apiserver_admission *a, const char *wanted, struct err *e)
{
    struct apiserver_rules *rules = a->registry->rules;
    struct map used = {0};
    struct rules_address *r = NEW(struct rules_address);
    _cleanup_free_ char *why = NULL;
    pthread_mutex_lock(&rules->addresses.lock);
    find_used(a->registry, &used);
    if (wanted)
        why = check_wanted(rules, &used, wanted);
    else if (!choose(rules, &used, r->text))
        why = mem_strdup("failed to allocate a serviceIP: range is full");
    if (!why) {
        if (wanted)
            snprintf(r->text, sizeof(r->text), "%s", wanted);
        list_push(&rules->addresses.reserved, &r->link);
        a->address = r;
    }
    pthread_mutex_unlock(&rules->addresses.lock);
    map_done(&used);
    if (!why)
        return 0;
    free(r);
    json_auto_t *value = wanted ? json_pack("[s]", wanted) : NULL;
    return refuse(a, value, why, e);
}

void rules_service_release(struct apiserver_admission *a)
{
    if (!a->address)
        return;
    pthread_mutex_lock(&a->registry->rules->addresses.lock);
    list_unlink(&a->address->link);
    pthread_mutex_unlock(&a->registry->rules->addresses.lock);
    free(a->address);
    a->address = NULL;
}

static bool is_external(const json_t *spec)
{
    return str_eq(json_text(spec, "type"), "ExternalName");
}

static const char *address_of(const json_t *spec)
{
    const char *text = json_str(spec, "clusterIP");
    if (!text || !*text)
        text = json_string_value(json_array_get(json_object_get(spec, "clusterIPs"), 0));
    return text ? text : "";
}

static void set_missing(json_t *spec, const char *key, json_t *value)
{
    if (json_object_get(spec, key))
        json_decref(value);
    else
        json_object_set_new(spec, key, value);
}

/* One that stands for a name outside has no address, and gives up the one that it had. */
static void drop_address(json_t *spec, const json_t *old)
{
    static const char *const keys[] = {
        "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy", NULL};
    for (const char *const *key = keys; *key; key++) {
        json_t *is = json_object_get(spec, *key);
        if (is && json_equal(is, json_object_get(old, *key)))
            json_object_del(spec, *key);
    }
}

int rules_service_fill(struct apiserver_admission *a, struct err *e)
{
    json_t *spec = json_object_get(a->object, "spec");
    if (!a->registry->rules || !rules_concern(a, &api_service) || !json_is_object(spec))
        return 0;
    const json_t *old = json_object_get(a->old, "spec");
    if (is_external(spec)) {
        drop_address(spec, old);
        return 0;
    }
    const char *was = is_external(old) ? "" : address_of(old), *wanted = address_of(spec);
    if (!*wanted && *was)
        wanted = was; /* whoever does not mention it does not mean to change it */
    bool new = !*was && !str_eq(wanted, "None");
    if (new &&take(a, *wanted ? wanted : NULL, e) < 0)
        return -1;
    if (new)
        wanted = a->address->text;
    if (*was && !str_eq(was, wanted)) {
        json_auto_t *value = json_pack("[s]", wanted);
        return refuse(a, value, "may not change once set", e);
    }
    _cleanup_free_ char *own = mem_strdup(wanted);
    json_object_set_new(spec, "clusterIP", json_string(own));
    set_missing(spec, "clusterIPs", json_pack("[s]", own));
    set_missing(spec, "internalTrafficPolicy", json_string("Cluster"));
    set_missing(spec, "ipFamilies", json_pack("[s]", "IPv4"));
    set_missing(spec, "ipFamilyPolicy", json_string("SingleStack"));
    return 0;
}
