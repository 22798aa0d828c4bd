/*
 * Lists: pages of a consistent whole. A continue token is the revision of the first page and the
 * last key that was given, so that later pages are as of the first, as long as the history reaches.
 *
 * A long list is never in memory as text: what is, are references to its objects, and the part that
 * is on its way to the client.
 */
#include <inttypes.h>

#include "k8s/apiserver/conversion.h"
#include "k8s/apiserver/serve_impl.h"
#include "k8s/apiserver/status.h"

enum { PART_BYTES = 64 << 10 };

struct listing {
    struct apiserver_kinds *kinds; /* the form points into them */
    struct form form;
    struct apiserver_list list;
    size_t next; /* object */
    struct str part;
    size_t sent; /* of it */
    size_t at;   /* of stored bytes: how much of the next object and its comma was sent */
    bool ended;
};

static void listing_done(void *context)
{
    struct listing *l = context;
    apiserver_list_done(&l->list);
    apiserver_kinds_unref(l->kinds);
    str_done(&l->part);
    free(l);
}

/* The next part behind what is there, about so long; false when that was the last. */
static bool append_part(struct listing *l)
{
    while (l->part.len < PART_BYTES && l->next < l->list.objects.len) {
        str_append(&l->part, l->next ? "," : "");
        form_append_item(&l->form, l->list.objects.p[l->next], &l->part);
        l->next++;
    }
    if (l->next < l->list.objects.len)
        return true;
    form_append_end(&l->form, &l->part);
    l->ended = true;
    return false;
}

static size_t copy(char *buf, size_t max, const char *bytes, size_t n)
{
    n = n < max ? n : max;
    memcpy(buf, bytes, n);
    return n;
}

/* Objects in another form, made as they are asked for. */
static ssize_t read_made(void *context, char *buf, size_t max)
{
    struct listing *l = context;
    size_t n = 0;
    while (n < max) {
        if (l->sent == l->part.len) {
            if (l->ended)
                break;
            str_clear(&l->part);
            l->sent = 0;
            append_part(l);
        }
        size_t some = copy(buf + n, max - n, l->part.p + l->sent, l->part.len - l->sent);
        l->sent += some;
        n += some;
    }
    return n ? (ssize_t)n : -1;
}

/* Objects as they are stored: begin, the objects straight from where they are, end. */
static ssize_t read_stored(void *context, char *buf, size_t max)
{
    struct listing *l = context;
    size_t n = 0;
    while (n < max) {
        if (l->sent < l->part.len) {
            size_t some = copy(buf + n, max - n, l->part.p + l->sent, l->part.len - l->sent);
            l->sent += some;
            n += some;
        } else if (l->next == l->list.objects.len) {
            if (l->ended)
                break;
            str_clear(&l->part);
            l->sent = 0;
            append_part(l); /* the end */
        } else {
            const struct apiserver_object *o = l->list.objects.p[l->next];
            bool last = l->next + 1 == l->list.objects.len;
            if (l->at < o->size) {
                size_t some = copy(buf + n, max - n, o->bytes + l->at, o->size - l->at);
                l->at += some;
                n += some;
                continue;
            }
            if (!last)
                buf[n++] = ',';
            l->at = 0;
            l->next++;
        }
    }
    return n ? (ssize_t)n : -1;
}

/* The list of objects that are stored in the form that is asked for; false when it is short, or not
 * all are. */
static bool reply_stored(struct call *c, struct listing *l)
{
    static const struct http_stream_ops ops = {read_stored, listing_done};
    uint64_t size = l->part.len;
    vec_for_each(&l->list.objects, o) {
        if (!form_is_stored(&l->form, *o))
            return false;
        size += (*o)->size + 1;
    }
    if (size <= PART_BYTES)
        return false;
    _cleanup_(str_done) struct str end = {0};
    form_append_end(&l->form, &end);
    call_headers(c);
    if (size > CALL_GZIP_BYTES && http_request_accepts_gzip(c->http))
        http_reply_gzip_stream(c->http, 200, "application/json", &ops, l);
    else
        http_reply_parts(c->http, 200, "application/json", size - 1 + end.len, &ops, l);
    return true;
}

/* Takes over the list. */
static void reply(struct call *c, const struct form *form, struct apiserver_list *list,
                  const char *token)
{
    static const struct http_stream_ops ops = {read_made, listing_done};
    struct listing *l = NEW(struct listing);
    l->kinds = apiserver_kinds_ref(c->kinds);
    l->form = *form;
    l->list = *list;
    form_append_begin(form, list, token, &l->part);
    if (reply_stored(c, l))
        return;
    if (append_part(l)) {
        call_headers(c);
        if (http_request_accepts_gzip(c->http)) /* nobody knows how long it will be */
            http_reply_gzip_stream(c->http, 200, "application/json", &ops, l);
        else
            http_stream_unref(http_reply_stream(c->http, 200, "application/json", &ops, l));
        return;
    }
    call_reply_text(c, 200, "application/json", &l->part);
    listing_done(l);
}

/* Keeps what is selected, up to the limit; what was listed is everything behind `after`. */
static void select_objects(const struct selection *selection, size_t limit,
                           struct apiserver_list *list)
{
    size_t kept = 0;
    list->more = false;
    list->remaining = 0; /* nobody says how many more would be selected */
    vec_for_each(&list->objects, o) {
        bool wanted = !list->more && selection_matches(selection, *o);
        if (wanted && (!limit || kept < limit)) {
            list->objects.p[kept++] = *o;
        } else {
            list->more |= wanted;
            apiserver_object_unref(*o);
        }
    }
    list->objects.len = kept;
}

/* As of which revision: 0 is now. */
static int revision_of(struct call *c, const struct list_options *o, uint64_t *ret_revision)
{
    uint64_t now = apiserver_store_revision(c->server->registry.store);
    *ret_revision = o->continued ? o->token.revision : 0;
    if (o->revision > now)
        return err_set(&c->err, ERR_DEADLINE_EXCEEDED, "Timeout",
                       "Too large resource version: %" PRIu64 ", current: %" PRIu64, o->revision,
                       now);
    if (o->match == MATCH_EXACT || (!o->match && o->limit && o->revision))
        *ret_revision = o->revision;
    return 0;
}

/* The history no longer reaches back to the first page, or to the revision that was asked for. */
static void reply_expired(struct call *c, const struct list_options *o)
{
    if (!o->continued) {
        err_set(&c->err, ERR_OUT_OF_RANGE, "Expired",
                "The resourceVersion for the provided list is too old.");
        call_fail(c);
        return;
    }
    err_set(&c->err, ERR_OUT_OF_RANGE, "Expired",
            "The provided continue parameter is too old to display a consistent list result. You "
            "can start a new list without the continue parameter, or use the continue token in "
            "this response to retrieve the remainder of the results. Continuing with the provided "
            "token results in an inconsistent list - objects that were created, modified, or "
            "deleted between the time the first chunk was returned and now may show up in the "
            "list.");
    unsigned code;
    _cleanup_(str_done) struct str token = {0};
    json_auto_t *status = apiserver_status(&c->err, NULL, NULL, &code);
    apiserver_token_format(0, str_get(&o->token.after), &token);
    json_object_set_new(json_object_get(status, "metadata"), "continue",
                        json_string(str_get(&token)));
    call_reply_json(c, code, status);
}

static void list_selected(struct call *c, const struct list_options *o,
                          const struct selection *selection, const struct form *form)
{
    _cleanup_(str_done) struct str collection = {0}, prefix = {0}, token = {0};
    struct apiserver_list_options options = {
        .after = o->continued ? str_get(&o->token.after) : NULL,
        .limit = selection->any ? 0 : o->limit,
    };
    struct apiserver_list list;
    call_collection(c, &collection, &prefix);
    options.prefix = prefix.len ? prefix.p : NULL;
    if (revision_of(c, o, &options.revision) < 0) {
        call_fail(c);
        return;
    }
    if (apiserver_store_list(c->server->registry.store, str_get(&collection), &options, &list,
                             &c->err) < 0) {
        reply_expired(c, o);
        return;
    }
    if (apiserver_convert(c->path.kind, list.objects.p, list.objects.len, &c->err) < 0) {
        apiserver_list_done(&list);
        call_fail(c);
        return;
    }
    if (selection->any)
        select_objects(selection, o->limit, &list);
    if (list.more && list.objects.len)
        apiserver_token_format(list.revision, vec_last(&list.objects)->key, &token);
    reply(c, form, &list, token.len ? token.p : NULL);
}

void call_list(struct call *c)
{
    struct selection selection = {0};
    struct list_options options = {0};
    struct form form;
    if (call_list_options(c, false, &options) < 0 || call_selection(c, &selection) < 0 ||
        call_form(c, &form) < 0)
        call_fail(c);
    else
        list_selected(c, &options, &selection, &form);
    selection_done(&selection);
    str_done(&options.token.after);
}
