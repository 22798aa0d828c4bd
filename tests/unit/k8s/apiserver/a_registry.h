/*
 * A registry on a store in a scratch folder, at a time that stands still. It has no rules, rights or
 * webhooks unless the test gives it some.
 */
#pragma once

#include "jsontest.h"
#include "k8s/apiserver/registry.h"
#include "scratch.h"

static struct clock_manual time_now;
static struct apiserver_registry registry;

static inline int registry_begin(void **state)
{
    scratch_begin(state);
    _cleanup_free_ char *path = mem_printf("%s/db", folder);
    clock_manual_init(&time_now, 1767323045 * CLOCK_SECOND); /* 2026-01-02T03:04:05Z */
    registry.clock = &time_now.clock;
    return apiserver_store_open(path, NULL, &registry.store, NULL);
}

static inline int registry_end(void **state)
{
    apiserver_store_close(registry.store);
    return scratch_end(state);
}

typedef struct apiserver_object *change_fn(struct apiserver_registry *,
                                           const struct apiserver_request *, json_t *,
                                           struct api_report *, struct err *);

/* The stored object, or NULL; then *e says why. */
static inline json_t *change(change_fn *fn, struct apiserver_request r, const char *text,
                             struct err *e)
{
    json_auto_t *object = parse_quoted(text);
    struct api_report report = {0};
    struct apiserver_object *o = fn(&registry, &r, object, &report, e);
    api_report_done(&report);
    json_t *stored = o ? parse_json(o->bytes) : NULL;
    apiserver_object_unref(o);
    return stored;
}

static inline json_t *must(change_fn *fn, struct apiserver_request r, const char *text)
{
    struct err e = {0};
    json_t *stored = change(fn, r, text, &e);
    if (!stored)
        fail_msg("%s: %s", text, e.msg);
    return stored;
}

static inline void assert_member(const json_t *object, const char *a, const char *b,
                                 const char *expected)
{
    const json_t *value = json_at(object, a, b);
    _cleanup_(str_done) struct str text = {0};
    if (value)
        json_format(value, &text);
    assert_string_equal(str_get(&text), expected);
}
