#include "api/format.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>

#include "base/mem.h"

/* ASCII only, whatever the locale. */
static bool is_lower_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alnum(char c)
{
    return is_lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

static bool all_digits(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text);
}

/* One DNS label of n characters, however long. */
static bool is_label(const char *text, size_t n)
{
    if (n == 0 || !is_lower_alnum(text[0]) || !is_lower_alnum(text[n - 1]))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!is_lower_alnum(text[i]) && text[i] != '-')
            return false;
    }
    return true;
}

/* As Kubernetes has it: only the whole is limited, its parts may be longer than DNS allows. */
static bool is_subdomain(const char *text, size_t n)
{
    if (n > 253)
        return false;
    const char *end = text + n;
    for (;;) {
        const char *dot = memchr(text, '.', (size_t)(end - text));
        if (!is_label(text, (size_t)((dot ? dot : end) - text)))
            return false;
        if (!dot)
            return true;
        text = dot + 1;
    }
}

/* Letters, digits and - _ . in between: the part of a label key after "/", and label values. */
static bool is_name_part(const char *text, size_t n)
{
    if (n == 0 || n > 63 || !is_alnum(text[0]) || !is_alnum(text[n - 1]))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!is_alnum(text[i]) && !strchr("-_.", text[i]))
            return false;
    }
    return true;
}

static const char *check_dns_label(const char *text)
{
    size_t n = strlen(text);
    if (n <= 63 && is_label(text, n))
        return NULL;
    return "must consist of at most 63 lower case letters, digits and '-', and start and end with "
           "a letter or digit";
}

static const char *check_dns_subdomain(const char *text)
{
    if (is_subdomain(text, strlen(text)))
        return NULL;
    return "must consist of lower case letters, digits, '-' and '.', and each part between dots "
           "must start and end with a letter or digit (for example 'pool-1' or 'a.example.com')";
}

static const char *check_qualified_name(const char *text)
{
    const char *slash = strchr(text, '/');
    const char *name = slash ? slash + 1 : text;
    if (slash && !is_subdomain(text, (size_t)(slash - text)))
        return "the part before '/' must be a DNS name (for example 'example.com/my-name')";
    if (!is_name_part(name, strlen(name)))
        return "must consist of at most 63 letters, digits, '-', '_' and '.', start and end with a "
               "letter or digit, and may have one DNS name and '/' in front (for example "
               "'example.com/my-name')";
    return NULL;
}

/* As Kubernetes does: the DNS name in front may have capitals here. */
static const char *check_annotation_key(const char *text)
{
    _cleanup_free_ char *lower = mem_strdup(text);
    for (char *p = lower; *p; p++)
        *p = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p;
    return check_qualified_name(lower);
}

static const char *check_label_value(const char *text)
{
    if (!*text || is_name_part(text, strlen(text)))
        return NULL;
    return "must be empty or consist of at most 63 letters, digits, '-', '_' and '.', and start "
           "and end with a letter or digit";
}

static const char *check_ip(const char *text)
{
    unsigned char address[16];
    if (inet_pton(AF_INET, text, address) == 1 || inet_pton(AF_INET6, text, address) == 1)
        return NULL;
    return "must be an IP address (for example '10.0.0.7' or 'fd00::7')";
}

static const char *check_port(const char *text)
{
    if (all_digits(text) && strlen(text) <= 5) {
        long port = strtol(text, NULL, 10);
        if (port >= 1 && port <= 65535)
            return NULL;
    }
    return "must be a port number from 1 to 65535 (iSCSI's is '3260')";
}

/* An IPv6 address is in brackets, or its end could not be told from the port. */
static const char *check_portal(const char *text)
{
    const char *why = "must be an IP address, ':' and a port (for example '10.0.0.7:3260' or "
                      "'[fd00::7]:3260')";
    const char *colon = strrchr(text, ':');
    char host[64];
    if (!colon || (size_t)(colon - text) >= sizeof(host) || check_port(colon + 1))
        return why;
    size_t n = (size_t)(colon - text);
    bool brackets = text[0] == '[' && n > 2 && text[n - 1] == ']';
    if (brackets) {
        text++;
        n -= 2;
    }
    memcpy(host, text, n);
    host[n] = '\0';
    unsigned char address[16];
    return inet_pton(brackets ? AF_INET6 : AF_INET, host, address) == 1 ? NULL : why;
}

/* RFC 7143: iqn.YYYY-MM.reversed.domain[:anything], normalised to lower case. */
static const char *check_iqn(const char *text)
{
    const char *why = "must be an iSCSI qualified name in lower case (for example "
                      "'iqn.2016-09.com.openebs.cstor:pvc-1')";
    static const char shape[] = "iqn.dddd-dd.";
    for (size_t i = 0; i < sizeof(shape) - 1; i++) {
        bool digit = i >= 4 && shape[i] == 'd';
        if (digit ? !(text[i] >= '0' && text[i] <= '9') : text[i] != shape[i])
            return why;
    }
    const char *domain = text + sizeof(shape) - 1;
    const char *colon = strchr(domain, ':');
    size_t n = colon ? (size_t)(colon - domain) : strlen(domain);
    if (!is_subdomain(domain, n) || (colon && !colon[1]))
        return why;
    for (const char *p = colon; p && *p; p++) {
        if (!is_lower_alnum(*p) && !strchr("-.:", *p))
            return why;
    }
    return NULL;
}

static const char *check_host_path(const char *text)
{
    if (text[0] != '/')
        return "must be an absolute path";
    for (const char *p = text; (p = strstr(p, "/..")); p += 3) {
        if (p[3] == '/' || p[3] == '\0')
            return "must not contain '..'";
    }
    return NULL;
}

static const char *check_count(const char *text)
{
    if (all_digits(text) && text[0] != '0' && strlen(text) <= 9)
        return NULL;
    return "must be a positive whole number in quotes (for example \"6\")";
}

static const char *check_sequence(const char *text)
{
    if (all_digits(text) && strlen(text) <= 20)
        return NULL;
    return "must be a whole number in quotes (for example \"4711\")";
}

static const char *check_replica_id(const char *text)
{
    for (const char *p = text; *p; p++) {
        if (!isxdigit((unsigned char)*p))
            return "must consist of hexadecimal digits";
    }
    return NULL;
}

static const char *check_compression(const char *text)
{
    static const char *const words[] = {"on", "off", "lz4", "lzjb", "zle", "gzip", "zstd", NULL};
    if (str_in(text, words))
        return NULL;
    if (str_starts_with(text, "gzip-") && text[5] >= '1' && text[5] <= '9' && !text[6])
        return NULL;
    return "must be one of on, off, lz4, lzjb, zle, gzip, gzip-1 to gzip-9, zstd (lz means lz4)";
}

/* A part of a path and an argument: neither more folders nor an option can be made of it. */
static const char *check_volume_id(const char *text)
{
    if (is_name_part(text, strlen(text)) && !strstr(text, ".."))
        return NULL;
    return "must consist of at most 63 letters, digits, '-', '_' and single '.', and start and end "
           "with a letter or digit (such as the uid of a volume)";
}

static const char *check_zpool_name(const char *text)
{
    if (is_alnum(text[0]) && !(text[0] >= '0' && text[0] <= '9') && strlen(text) <= 255) {
        const char *p = text;
        while (is_alnum(*p) || (*p && strchr("-_.:", *p)))
            p++;
        if (!*p)
            return NULL;
    }
    return "must be the name of a ZFS pool: a letter, then letters, digits, '-', '_', '.' and ':'";
}

static const char *check_lvm_name(const char *text)
{
    const char *why = "must consist of letters, digits and + _ . -, must not start with '-' and "
                      "must not be '.' or '..'";
    if (text[0] == '-' || str_eq(text, ".") || str_eq(text, ".."))
        return why;
    for (const char *p = text; *p; p++) {
        if (!is_alnum(*p) && !strchr("+_.-", *p))
            return why;
    }
    return NULL;
}

static const char *check_base64(const char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = 0, pad = 0;
    for (const char *p = text; *p; p++) {
        if (*p == '\n' || *p == '\r')
            continue; /* decoders skip line ends */
        if (*p == '=')
            pad++;
        else if (pad || !strchr(digits, *p))
            return "must be base64; plain text belongs in stringData of a Secret or data of a "
                   "ConfigMap";
        n++;
    }
    return n % 4 == 0 && pad <= 2 ? NULL : "must be base64, padded with '=' to a multiple of four";
}

static const char *check_data_key(const char *text)
{
    size_t n = strlen(text);
    bool plain = n > 0 && n <= 253 && !str_eq(text, ".") && !str_starts_with(text, "..");
    for (const char *p = text; *p && plain; p++)
        plain = is_alnum(*p) || strchr("-_.", *p);
    return plain ? NULL
                 : "must consist of at most 253 letters, digits, '-', '_' and '.', and must not be "
                   "'.' or start with '..'";
}

#define LABEL "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
#define NAME  "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"

const struct api_format api_dns_subdomain = {"DNS name", "^" LABEL "(\\." LABEL ")*$", 253,
                                             check_dns_subdomain};
const struct api_format api_dns_label = {"DNS label", "^" LABEL "$", 63, check_dns_label};
const struct api_format api_qualified_name = {
    "qualified name", "^(" LABEL "(\\." LABEL ")*/)?" NAME "$", 317, check_qualified_name};
const struct api_format api_annotation_key = {"annotation key", NULL, 317, check_annotation_key};
const struct api_format api_finalizer = {"finalizer", NULL, 317, check_qualified_name};
const struct api_format api_label_value = {"label value", "^(" NAME ")?$", 63, check_label_value};
const struct api_format api_ip = {"IP address", NULL, 45, check_ip};
const struct api_format api_port = {"port", "^[1-9][0-9]{0,4}$", 5, check_port};
const struct api_format api_portal = {"iSCSI portal", "^.+:[1-9][0-9]{0,4}$", 64, check_portal};
const struct api_format api_iqn = {"iSCSI qualified name",
                                   "^iqn\\.[0-9]{4}-[0-9]{2}\\.[a-z0-9.-]+(:[a-z0-9.:-]+)?$", 223,
                                   check_iqn};
const struct api_format api_host_path = {"absolute path", "^/", 4096, check_host_path};
const struct api_format api_count = {"count", "^[1-9][0-9]{0,8}$", 9, check_count};
const struct api_format api_sequence = {"sequence number", "^[0-9]+$", 20, check_sequence};
const struct api_format api_replica_id = {"replica id", "^[0-9A-Fa-f]*$", 64, check_replica_id};
const struct api_format api_compression = {
    "compression", "^(on|off|lz|lz4|lzjb|zle|zstd|gzip(-[1-9])?)$", 8, check_compression};
const struct api_format api_lvm_name = {"LVM name", "^[A-Za-z0-9+_.][A-Za-z0-9+_.-]*$", 127,
                                        check_lvm_name};
const struct api_format api_volume_id = {"volume id", NULL, 63, check_volume_id};
const struct api_format api_zpool_name = {"ZFS pool name", NULL, 255, check_zpool_name};
const struct api_format api_base64 = {"base64", NULL, 0, check_base64};
const struct api_format api_data_key = {"data key", "^[-._a-zA-Z0-9]+$", 253, check_data_key};
