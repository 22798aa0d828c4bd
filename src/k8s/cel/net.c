/*
 * IP addresses and networks. As in Kubernetes, IPv4 addresses in IPv6 form and zones are refused.
 */
#include <arpa/inet.h>
#include <stdio.h>

#include "k8s/cel/impl.h"

#define FUNCTION(name)                                                                             \
    static bool name(struct cel_run *r, const struct cel_value *args, size_t n,                    \
                     struct cel_value *ret)

static bool parse_ip(const char *text, struct cel_address *ret)
{
    *ret = (struct cel_address){0};
    if (inet_pton(AF_INET, text, ret->bytes) == 1)
        ret->bits = 32;
    else if (inet_pton(AF_INET6, text, ret->bytes) == 1 && !strchr(text, '.') &&
             !IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)ret->bytes))
        ret->bits = 128;
    ret->prefix = ret->bits;
    return ret->bits;
}

static bool parse_cidr(const char *text, struct cel_address *ret)
{
    const char *slash = strchr(text, '/');
    char address[64];
    if (!slash || (size_t)(slash - text) >= sizeof(address))
        return false;
    snprintf(address, sizeof(address), "%.*s", (int)(slash - text), text);
    size_t digits = strspn(slash + 1, "0123456789");
    if (!digits || digits > 3 || slash[1 + digits] || (slash[1] == '0' && digits > 1) ||
        !parse_ip(address, ret))
        return false;
    ret->prefix = (unsigned)strtoul(slash + 1, NULL, 10);
    return ret->prefix <= ret->bits;
}

void cel_address_format(const struct cel_address *a, bool prefix, struct str *out)
{
    char text[INET6_ADDRSTRLEN];
    inet_ntop(a->bits == 32 ? AF_INET : AF_INET6, a->bytes, text, sizeof(text));
    str_append(out, text);
    if (prefix)
        str_appendf(out, "/%u", a->prefix);
}

bool cel_address_equal(const struct cel_address *a, const struct cel_address *b)
{
    return a->bits == b->bits && a->prefix == b->prefix &&
           memcmp(a->bytes, b->bytes, a->bits / 8) == 0;
}

static bool masked(const struct cel_address *a, unsigned prefix, struct cel_address *ret)
{
    *ret = *a;
    ret->prefix = prefix;
    for (unsigned i = 0; i < a->bits / 8; i++) {
        unsigned kept = prefix > i * 8 ? prefix - i * 8 : 0;
        if (kept < 8)
            ret->bytes[i] &= (unsigned char)(0xff00 >> kept);
    }
    return true;
}

static void make(struct cel_run *r, enum cel_type type, const struct cel_address *a,
                 struct cel_value *ret)
{
    struct cel_address *own = arena_new(&r->arena, struct cel_address);
    *own = *a;
    *ret = (struct cel_value){.type = type, .address = own};
}

FUNCTION(to_ip)
{
    (void)n;
    struct cel_address a;
    if (!parse_ip(args[0].text.p, &a))
        return cel_fail(r, "IP Address '%.100s' parse error during conversion from string",
                        args[0].text.p);
    make(r, CEL_IP, &a, ret);
    return true;
}

FUNCTION(is_ip)
{
    (void)r, (void)n;
    struct cel_address a;
    *ret = cel_make_bool(parse_ip(args[0].text.p, &a));
    return true;
}

FUNCTION(is_canonical)
{
    if (!to_ip(r, args, n, ret))
        return false;
    _cleanup_(str_done) struct str text = {0};
    cel_address_format(ret->address, false, &text);
    *ret = cel_make_bool(str_eq(str_get(&text), args[0].text.p));
    return true;
}

FUNCTION(family)
{
    (void)r, (void)n;
    *ret = cel_make_int(args[0].address->bits == 32 ? 4 : 6);
    return true;
}

/* Whether an address lies in a network. */
static bool is_inside(const struct cel_address *a, const char *network)
{
    struct cel_address net, own;
    return parse_cidr(network, &net) && net.bits == a->bits && masked(a, net.prefix, &own) &&
           cel_address_equal(&own, &net);
}

#define KIND(name, four, six)                                                                      \
    FUNCTION(name)                                                                                 \
    {                                                                                              \
        (void)r, (void)n;                                                                          \
        *ret =                                                                                     \
            cel_make_bool(is_inside(args[0].address, args[0].address->bits == 32 ? four : six));   \
        return true;                                                                               \
    }

KIND(is_unspecified, "0.0.0.0/32", "::/128")
KIND(is_loopback, "127.0.0.0/8", "::1/128")
KIND(is_link_local_multicast, "224.0.0.0/24", "ff02::/16")
KIND(is_link_local_unicast, "169.254.0.0/16", "fe80::/10")

FUNCTION(is_global_unicast)
{
    (void)r, (void)n;
    const struct cel_address *a = args[0].address;
    static const char *const others[] = {"0.0.0.0/32",  "255.255.255.255/32", "127.0.0.0/8",
                                         "224.0.0.0/4", "169.254.0.0/16",     "::/128",
                                         "::1/128",     "ff00::/8",           "fe80::/10"};
    bool other = false;
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        other |= is_inside(a, others[i]);
    *ret = cel_make_bool(!other);
    return true;
}

FUNCTION(to_cidr)
{
    (void)n;
    struct cel_address a;
    if (!parse_cidr(args[0].text.p, &a))
        return cel_fail(r, "network address parse error during conversion from string: '%.100s'",
                        args[0].text.p);
    make(r, CEL_CIDR, &a, ret);
    return true;
}

FUNCTION(is_cidr)
{
    (void)r, (void)n;
    struct cel_address a;
    *ret = cel_make_bool(parse_cidr(args[0].text.p, &a));
    return true;
}

FUNCTION(contains_ip)
{
    (void)n;
    struct cel_address a, net, own;
    if (args[1].type == CEL_IP)
        a = *args[1].address;
    else if (!parse_ip(args[1].text.p, &a))
        return cel_fail(r, "IP Address '%.100s' parse error during conversion from string",
                        args[1].text.p);
    masked(args[0].address, args[0].address->prefix, &net);
    masked(&a, net.prefix, &own);
    *ret = cel_make_bool(a.bits == net.bits && cel_address_equal(&own, &net));
    return true;
}

FUNCTION(contains_cidr)
{
    (void)n;
    struct cel_address inner, net, own;
    if (args[1].type == CEL_CIDR)
        inner = *args[1].address;
    else if (!parse_cidr(args[1].text.p, &inner))
        return cel_fail(r, "network address parse error during conversion from string: '%.100s'",
                        args[1].text.p);
    masked(args[0].address, args[0].address->prefix, &net);
    masked(&inner, net.prefix <= inner.bits ? net.prefix : 0, &own);
    *ret = cel_make_bool(inner.bits == net.bits && inner.prefix >= net.prefix &&
                         cel_address_equal(&own, &net));
    return true;
}

FUNCTION(ip_of)
{
    (void)n;
    struct cel_address a = *args[0].address;
    a.prefix = a.bits;
    make(r, CEL_IP, &a, ret);
    return true;
}

FUNCTION(mask)
{
    (void)n;
    struct cel_address a;
    masked(args[0].address, args[0].address->prefix, &a);
    make(r, CEL_CIDR, &a, ret);
    return true;
}

FUNCTION(prefix_length)
{
    (void)r, (void)n;
    *ret = cel_make_int(args[0].address->prefix);
    return true;
}

const struct cel_function cel_net_functions[] = {
    {"ip", "As", to_ip},
    {"isIP", "bs", is_ip},
    {"ip.isCanonical", "bs", is_canonical},
    {"family", "iA", family, true},
    {"isUnspecified", "bA", is_unspecified, true},
    {"isLoopback", "bA", is_loopback, true},
    {"isLinkLocalMulticast", "bA", is_link_local_multicast, true},
    {"isLinkLocalUnicast", "bA", is_link_local_unicast, true},
    {"isGlobalUnicast", "bA", is_global_unicast, true},
    {"cidr", "Cs", to_cidr},
    {"isCIDR", "bs", is_cidr},
    {"containsIP", "bCs", contains_ip, true},
    {"containsIP", "bCA", contains_ip, true},
    {"containsCIDR", "bCs", contains_cidr, true},
    {"containsCIDR", "bCC", contains_cidr, true},
    {"ip", "AC", ip_of, true},
    {"masked", "CC", mask, true},
    {"prefixLength", "iC", prefix_length, true},
    {0},
};
