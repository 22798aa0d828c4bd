/*
 * Addresses of pods out of the node's network. Those that were given back come round last, so that
 * nobody talks to a pod's successor by mistake.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "k8s/kubelet/pod_impl.h"

int pod_addresses_init(struct pod_addresses *a, const char *cidr, struct err *e)
{
    *a = (struct pod_addresses){0};
    if (!cidr || !*cidr)
        return 0;
    char text[64];
    struct in_addr in;
    snprintf(text, sizeof(text), "%s", cidr);
    char *slash = strchr(text, '/'), *end = NULL;
    if (slash)
        *slash = '\0';
    long bits = slash ? strtol(slash + 1, &end, 10) : -1;
    if (inet_pton(AF_INET, text, &in) != 1 || bits < 8 || bits > 29 || *end)
        return err_set(e, ERR_INVALID_ARGUMENT, "Invalid",
                       "\"%.60s\" is no network for pods: write an IPv4 network such as "
                       "127.10.3.0/24, of /8 to /29",
                       cidr);
    uint32_t size = (uint32_t)1 << (32 - bits);
    /* Not the network's own address, the first, which is the node's, and the broadcast address. */
    a->first = (ntohl(in.s_addr) & ~(size - 1)) + 2;
    a->count = size - 3;
    return 0;
}

void pod_addresses_done(struct pod_addresses *a)
{
    map_done(&a->used);
}

void pod_addresses_take(struct pod_addresses *a, const char *ip)
{
    if (*ip)
        map_set(&a->used, ip, a);
}

int pod_addresses_get(struct pod_addresses *a, char ret_ip[16], struct err *e)
{
    for (uint32_t i = 0; i < a->count; i++) {
        struct in_addr in = {htonl(a->first + a->next)};
        char text[INET_ADDRSTRLEN];
        a->next = (a->next + 1) % a->count;
        inet_ntop(AF_INET, &in, text, sizeof(text));
        if (map_has(&a->used, text))
            continue;
        pod_addresses_take(a, text);
        snprintf(ret_ip, 16, "%s", text);
        return 0;
    }
    return err_set(e, ERR_RESOURCE_EXHAUSTED, "NoAddress",
                   "all %u addresses of the node's pod network are taken", a->count);
}

void pod_addresses_put(struct pod_addresses *a, const char *ip)
{
    map_remove(&a->used, ip);
}
