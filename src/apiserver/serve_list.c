/*
 * Lists: pages of a consistent whole. A continue token is the revision of the first page and the
 * last key that was given, so that later pages are as of the first, as long as the history reaches.
 */
#include <inttypes.h>
#include <stdio.h>

#include "apiserver/serve_impl.h"

/* "REVISION:KEY" */
static int parse_continue(struct call *c, struct apiserver_list_options *options)
{
    const char *token = http_request_query(c->http, "continue");
    if (!token || !*token)
        return 0;
    char *end;
    options->revision = strtoull(token, &end, 10);
    if (end == token || *end != ':' || !options->revision)
        return err_set(&c->err, ERR_INVALID_ARGUMENT, "BadRequest",
                       "continue key is not valid: list again without it");
    options->after = end + 1;
    return 0;
}

static int parse_options(struct call *c, struct apiserver_list_options *options)
{
    const char *limit = http_request_query(c->http, "limit");
    const char *revision = http_request_query(c->http, "resourceVersion");
    const char *match = http_request_query(c->http, "resourceVersionMatch");
    options->limit = limit ? strtoul(limit, NULL, 10) : 0;
    if (match && str_eq(match, "Exact"))
        options->revision = revision ? strtoull(revision, NULL, 10) : 0;
    return parse_continue(c, options);
}

/* To go on behind the last object; NULL at the end. To be freed. */
static char *continue_token(const struct apiserver_list *list)
{
    return list->more && list->objects.len
               ? mem_printf("%" PRIu64 ":%s", list->revision, vec_last(&list->objects)->key)
               : NULL;
}

static void append_list(struct call *c, const struct apiserver_list *list, const char *token,
                        struct str *out)
{
    char version[128];
    str_appendf(
        out,
        "{\"kind\":\"%s%s\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":\"%" PRIu64
        "\"",
        c->path.kind->list_kind ? c->path.kind->list_kind : c->path.kind->kind,
        c->path.kind->list_kind ? "" : "List", api_version_text(c->path.gv, version),
        list->revision);
    if (token) {
        json_auto_t *text = json_string(token);
        str_append(out, ",\"continue\":");
        json_format(text, out);
        str_appendf(out, ",\"remainingItemCount\":%zu", list->remaining);
    }
    str_append(out, "},\"items\":[");
    for (size_t i = 0; i < list->objects.len; i++) {
        str_append(out, i ? "," : "");
        call_append_object(c, list->objects.p[i], out);
    }
    str_append(out, "]}\n");
}

/* Keeps what is selected, up to the limit; what was listed is everything behind `after`. */
static void select_objects(const struct selection *selection, size_t limit,
                           struct apiserver_list *list)
{
    size_t kept = 0;
    list->remaining = 0;
    vec_for_each(&list->objects, o) {
        bool wanted = selection_matches(selection, *o);
        if (wanted && (!limit || kept < limit)) {
            list->objects.p[kept++] = *o;
        } else {
            list->remaining += wanted;
            apiserver_object_unref(*o);
        }
    }
    list->objects.len = kept;
    list->more = list->remaining > 0;
}

void call_list(struct call *c)
{
    struct selection selection;
    struct apiserver_list_options options = {0};
    if (parse_options(c, &options) < 0 || call_selection(c, &selection) < 0) {
        call_fail(c);
        return;
    }
    _cleanup_(str_done) struct str collection = {0}, prefix = {0};
    call_collection(c, &collection, &prefix);
    options.prefix = prefix.len ? prefix.p : NULL;
    size_t limit = options.limit;
    if (selection.any)
        options.limit = 0;
    struct apiserver_list list;
    if (apiserver_store_list(c->server->registry.store, str_get(&collection), &options, &list,
                             &c->err) < 0) {
        call_fail(c);
    } else {
        if (selection.any)
            select_objects(&selection, limit, &list);
        _cleanup_free_ char *token = continue_token(&list);
        if (call_wants_table(c)) {
            call_reply_table(c, list.objects.p, list.objects.len, list.revision, token,
                             list.remaining);
        } else {
            struct str text = {0};
            append_list(c, &list, token, &text);
            call_reply_text(c, 200, "application/json", &text);
        }
    }
    apiserver_list_done(&list);
    selection_done(&selection);
}
