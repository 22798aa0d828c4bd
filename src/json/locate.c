/*
 * Where a value stands. YAML has its nodes; JSON text is walked again, which costs nothing until
 * somebody asks, and the text is known to be valid by then.
 */
#include "json/document.h"
#include "json/internal.h"
#include "json/pointer.h"

/* The member of a map, in the map itself or in what it merges. */
static const struct json_node *find_key(const struct json_node *map, const char *key, size_t len);

static const struct json_node *find_merged(const struct json_node *value, const char *key,
                                           size_t len)
{
    value = json_node_real(value);
    if (value->kind == JSON_NODE_MAP)
        return find_key(value, key, len);
    for (const struct json_node *item = value->first; item; item = item->next) {
        const struct json_node *found = find_key(json_node_real(item), key, len);
        if (found)
            return found;
    }
    return NULL;
}

static const struct json_node *find_key(const struct json_node *map, const char *key, size_t len)
{
    const struct json_node *merged = NULL;
    for (const struct json_node *k = map->first; k; k = k->next->next) {
        if (!k->merge && k->len == len && memcmp(k->text, key, len) == 0)
            return k;
    }
    for (const struct json_node *k = map->first; k; k = k->next->next) {
        const struct json_node *found = k->merge ? find_merged(k->next, key, len) : NULL;
        merged = found ? found : merged;
    }
    return merged;
}

/* One step down; *ret_key is the key's node, or the item itself. */
static const struct json_node *node_child(const struct json_node *n, const char *token, size_t len,
                                          const struct json_node **ret_key)
{
    n = json_node_real(n);
    if (n->kind == JSON_NODE_MAP) {
        const struct json_node *key = find_key(n, token, len);
        if (!key)
            return NULL;
        *ret_key = key;
        return key->next;
    }
    size_t index;
    if (n->kind != JSON_NODE_SEQUENCE || !json_pointer_index(token, n->count, &index))
        return NULL;
    const struct json_node *item = n->first;
    for (; item && index; index--)
        item = item->next;
    if (item)
        *ret_key = item;
    return item;
}

static size_t skip_blanks(const char *text, size_t len, size_t i)
{
    while (i < len && json_is_one_of(text[i], " \t\r\n,:"))
        i++;
    return i;
}

static bool text_is_container(char c)
{
    return c == '{' || c == '[';
}

/* The offset after the value, or the key, at i. */
static size_t skip_value(const char *text, size_t len, size_t i)
{
    if (i < len && text_is_container(text[i])) {
        struct json_scan scan = {0};
        json_scan(&scan, text + i, len - i);
        return i + scan.at;
    }
    if (i < len && text[i] == '"') {
        for (i++; i < len && text[i] != '"'; i++)
            i += text[i] == '\\';
        return i < len ? i + 1 : len;
    }
    while (i < len && !json_is_one_of(text[i], " \t\r\n,:]}"))
        i++;
    return i;
}

static bool key_is(const char *text, size_t len, const char *token, size_t token_len)
{
    if (!memchr(text, '\\', len))
        return len == token_len + 2 && memcmp(text + 1, token, token_len) == 0;
    json_auto_t *key = json_loadb(text, len, JSON_DECODE_ANY, NULL);
    return key && json_string_length(key) == token_len &&
           memcmp(json_string_value(key), token, token_len) == 0;
}

/* One step down from the container at i; *ret_key is the key's offset, or the element's. */
static bool text_child(const char *text, size_t len, size_t *i, const char *token, size_t token_len,
                       size_t *ret_key)
{
    bool object = text[*i] == '{';
    size_t index = 0;
    if (!object && (text[*i] != '[' || !json_pointer_index(token, JSON_MAX_NODES, &index)))
        return false;
    for (size_t p = skip_blanks(text, len, *i + 1); p < len && text[p] != '}' && text[p] != ']';
         p = skip_blanks(text, len, skip_value(text, len, p))) {
        size_t key = p;
        bool found = object ? false : index-- == 0;
        if (object) {
            size_t end = skip_value(text, len, p);
            found = key_is(text + key, end - key, token, token_len);
            p = skip_blanks(text, len, end);
        }
        if (found) {
            *ret_key = key;
            *i = p;
            return true;
        }
    }
    return false;
}

bool json_doc_locate(const struct json_doc *d, const char *pointer, enum json_doc_part part,
                     struct json_pos *ret_pos)
{
    const struct json_doc_impl *impl = d->impl;
    if (!impl || !d->value || (!impl->is_json && !impl->root))
        return false;

    _cleanup_(str_done) struct str token = {0};
    const struct json_node *node = impl->root, *node_key = node;
    size_t offset = impl->body, offset_key = offset;
    while (json_pointer_next(&pointer, &token, NULL) > 0) {
        if (impl->is_json) {
            if (!text_child(impl->text, impl->len, &offset, str_get(&token), token.len,
                            &offset_key))
                break;
        } else {
            const struct json_node *child = node_child(node, str_get(&token), token.len, &node_key);
            if (!child)
                break;
            node = child;
        }
    }

    bool container = impl->is_json ? text_is_container(impl->text[offset])
                                   : json_node_real(node)->kind != JSON_NODE_SCALAR;
    bool key = part == JSON_DOC_KEY || (part == JSON_DOC_MARK && container);
    struct json_pos pos;
    if (impl->is_json)
        pos = json_pos_at(impl->text, impl->len, key ? offset_key : offset);
    else
        pos = key ? node_key->pos : node->pos;
    *ret_pos = json_pos_add(impl->base, pos);
    return true;
}

const char *json_doc_line(const struct json_doc *d, unsigned line, size_t *ret_len)
{
    const struct json_doc_impl *impl = d->impl;
    if (!impl || line < impl->base.line)
        return NULL;
    const char *p = impl->text, *end = impl->text + impl->len;
    for (unsigned n = impl->base.line; n < line; n++) {
        p = memchr(p, '\n', (size_t)(end - p));
        if (!p)
            return NULL;
        p++;
    }
    bool first = line == impl->base.line;
    if (p == end || (first && impl->blanks != impl->base.column - 1))
        return NULL;
    const char *newline = memchr(p, '\n', (size_t)(end - p));
    p -= first ? impl->blanks : 0;
    *ret_len = (size_t)((newline ? newline : end) - p);
    if (*ret_len && p[*ret_len - 1] == '\r')
        --*ret_len;
    return p;
}
