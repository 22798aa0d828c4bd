#include "base/log.h"
#include "kube/fake.h"
#include "kube/informer.h"
#include "metrics/metrics.h"

enum { MILLISECOND = 1000000 };

#define META(name, uid, version)                                                                   \
    "\"metadata\":{\"name\":\"" name "\",\"namespace\":\"d\",\"uid\":\"" uid                       \
    "\",\"resourceVersion\":\"" version "\"}"
#define MAP(name, uid, version)                                                                    \
    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"," META(name, uid, version) "}"
#define LIST(version, next, items)                                                                 \
    "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":"         \
    "\"" version "\",\"continue\":\"" next "\"},\"items\":[" items "]}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define GONE                "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"message\":\"too old\"}"

#define LISTING(...)                                                                               \
    {                                                                                              \
        "configmaps?limit=", 200, .body = LIST(__VA_ARGS__)                                        \
    }
#define WATCHING(from, ...)                                                                        \
    {                                                                                              \
        "watch=true&allowWatchBookmarks=true&resourceVersion=" from "&timeoutSeconds=", 200,       \
            .stream = true, .body = __VA_ARGS__                                                    \
    }
/* The last step of each script: what it ends with is told to handlers, and nothing comes after it. */
#define LAST(from, version) WATCHING(from, EVENT("ADDED", MAP("z", "z", version)), .end = FAKE_HOLD)
#define A5                  MAP("a", "a", "5")

/* What handlers were told, as text: "+a5 a5-a6 -a6 ". */
struct trace {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct str text;
    bool last; /* z has appeared */
};

static void on_change(void *context, const struct kube_object *old, const struct kube_object *now)
{
    struct trace *t = context;
    pthread_mutex_lock(&t->lock);
    if (now && str_eq(now->name, "z"))
        t->last = true;
    else if (!old)
        str_appendf(&t->text, "+%s%s ", now->name, now->resource_version);
    else if (!now)
        str_appendf(&t->text, "-%s%s ", old->name, old->resource_version);
    else
        str_appendf(&t->text, "%s%s-%s ", old->name, old->resource_version, now->resource_version);
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

static void wait_last(struct trace *t)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += FAKE_SECONDS;
    int r = 0;
    pthread_mutex_lock(&t->lock);
    while (!t->last && r == 0)
        r = pthread_cond_timedwait(&t->changed, &t->lock, &until);
    pthread_mutex_unlock(&t->lock);
    assert_int_equal(r, 0);
}

struct rig {
    struct fake *fake;
    struct kube_client *client;
    struct kube_informer *informer;
    struct metrics *metrics;
    struct trace trace;
};

static void rig_init_of(struct rig *g, const struct fake_step *steps, size_t n,
                        const struct kube_index *indexes, struct kube_resource resource)
{
    *g = (struct rig){
        .trace = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER}};
    struct err e = {0};
    g->metrics = metrics_new();
    g->fake = fake_new(steps, n);
    g->client = fake_client(g->fake, NULL);
    g->informer =
        kube_informer_new(&(struct kube_informer_options){.client = g->client,
                                                          .resource = resource,
                                                          .ns = "d",
                                                          .indexes = indexes,
                                                          .stall_ns = CLOCK_SECOND,
                                                          .backoff_max_ns = 200 * MILLISECOND,
                                                          .metrics = g->metrics},
                          &e);
    assert_non_null(g->informer);
    kube_informer_add_handler(g->informer, (struct kube_handler){on_change, &g->trace});
}

static void rig_init(struct rig *g, const struct fake_step *steps, size_t n,
                     const struct kube_index *indexes)
{
    rig_init_of(g, steps, n, indexes, kube_resource("v1", "ConfigMap"));
}

static void rig_start(struct rig *g)
{
    struct err e = {0};
    if (kube_informer_start(g->informer, &e) < 0)
        fail_msg("%s", e.msg);
}

static void rig_done(struct rig *g)
{
    kube_informer_stop(g->informer);
    kube_informer_free(g->informer);
    kube_client_free(g->client);
    fake_free(g->fake);
    metrics_free(g->metrics);
    str_done(&g->trace.text);
}

/* "a5 b7 z9", by name. */
static void cached(struct kube_informer *i, struct str *out)
{
    struct kube_objects all = {0};
    kube_informer_list(i, "d", &all);
    for (char name = 'a'; name <= 'z'; name++) {
        vec_for_each(&all, o) {
            if ((*o)->name[0] == name)
                str_appendf(out, "%s%s ", (*o)->name, (*o)->resource_version);
        }
    }
    kube_objects_done(&all);
}

/* Whatever the server does, the cache comes to be what it says at last. */
static void test_follow(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct fake_step steps[8];
        size_t n;
        const char *told, *cached;
    } table[] = {
        {"a list and events",
         {LISTING("5", "", "{" META("a", "a", "5") "}"),
          WATCHING("5",
                   EVENT("ADDED", MAP("b", "b", "6")) EVENT("MODIFIED", MAP("a", "a", "7"))
                       EVENT("DELETED", MAP("b", "b", "8")) EVENT("ADDED", MAP("z", "z", "9")),
                   .end = FAKE_HOLD)},
         2,
         "+a5 +b6 a5-7 -b6 ",
         "a7 z9 "},
        {"byte by byte",
         {LISTING("5", "", "{" META("a", "a", "5") "}"),
          WATCHING("5", EVENT("ADDED", MAP("b", "b", "6")) "\n" EVENT("ADDED", MAP("z", "z", "9")),
                   .bytewise = true, .end = FAKE_HOLD)},
         2,
         "+a5 +b6 ",
         "a5 b6 z9 "},
        {"pages, one of which fails",
         {LISTING("5", "x", "{" META("a", "a", "5") "}"),
          {"continue=x", 500, .body = "x"},
          {"continue=x", 200, .body = LIST("5", "", "{" META("b", "b", "4") "}")},
          LAST("5", "6")},
         4,
         "+a5 +b4 ",
         "a5 b4 z6 "},
        {"a continuation that expires: nothing of it gets in",
         {LISTING("5", "x", "{" META("a", "a", "5") "}"),
          {"continue=x", 410, .body = GONE},
          LISTING("6", "", "{" META("b", "b", "6") "}"),
          LAST("6", "7")},
         4,
         "+b6 ",
         "b6 z7 "},
        {"a list that is cut off, and one that is no JSON",
         {{NULL, 200, .body = LIST("5", "", "{" META("a", "a", "5") "}"), .end = FAKE_CUT},
          {NULL, 200, .body = "{\"kind\":\"ConfigMapList\","},
          LISTING("6", "", ""),
          LAST("6", "7")},
         4,
         "",
         "z7 "},
        {"a list with an object twice, or without a name, or of another namespace",
         {LISTING("5", "", "{" META("a", "a", "5") "},{" META("a", "a", "5") "}"),
          LISTING("5", "", "{" META("a", "a", "5") "},{" META("", "a", "5") "}"),
          LISTING("5", "",
                  "{\"metadata\":{\"name\":\"a\",\"namespace\":\"e\",\"uid\":\"a\","
                  "\"resourceVersion\":\"5\"}}"),
          LISTING("6", "", ""), LAST("6", "7")},
         5,
         "",
         "z7 "},
        {"a watch that ends goes on where it was",
         {LISTING("5", "", ""), WATCHING("5", EVENT("ADDED", MAP("a", "a", "6"))), LAST("6", "7")},
         3,
         "+a6 ",
         "a6 z7 "},
        {"one that breaks in the middle of an object does too",
         {LISTING("5", "", ""),
          WATCHING("5", EVENT("ADDED", MAP("a", "a", "6")) "{\"type\":\"ADDED\",\"obj",
                   .end = FAKE_CUT),
          WATCHING("6", EVENT("MODIFIED", MAP("a", "a", "7")) "{\"type\":\"DELETED\"",
                   .end = FAKE_RESET),
          LAST("7", "8")},
         4,
         "+a6 a6-7 ",
         "a7 z8 "},
        {"half an object at an end in order is no object",
         {LISTING("5", "", ""),
          WATCHING("5", EVENT("ADDED", MAP("a", "a", "6")) "{\"type\":\"DELETED\",\"object\":" MAP(
                            "a", "a", "7") "}"),
          LAST("6", "8")},
         3,
         "+a6 ",
         "a6 z8 "},
        {"one that is silent is taken for dead",
         {LISTING("5", "", ""), WATCHING("5", "", .end = FAKE_HOLD), LAST("5", "6")},
         3,
         "",
         "z6 "},
        {"bookmarks move the version",
         {LISTING("5", "", ""),
          WATCHING("5", EVENT("BOOKMARK", "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
                                          "\"metadata\":{\"resourceVersion\":\"9\"}}")),
          LAST("9", "10")},
         3,
         "",
         "z10 "},
        {"too old, by the answer",
         {LISTING("5", "", "{" META("a", "a", "5") "}"),
          {"watch=true", 410, .body = GONE},
          LISTING("8", "", "{" META("b", "b", "7") "}"),
          LAST("8", "9")},
         4,
         "+a5 -a5 +b7 ",
         "b7 z9 "},
        {"too old, by an event",
         {LISTING("5", "", "{" META("a", "a", "5") "}"), WATCHING("5", EVENT("ERROR", GONE)),
          LISTING("8", "", "{" META("a", "a", "7") "}"), LAST("8", "9")},
         4,
         "+a5 a5-7 ",
         "a7 z9 "},
        {"another error leads to another watch, and several to a list",
         {LISTING("5", "", ""),
          WATCHING("5", EVENT("ERROR", "{\"code\":500}")),
          {"watch=true", 429, .body = "x"},
          WATCHING("5", EVENT("ERROR", "{}")),
          LISTING("6", "", ""),
          LAST("6", "7")},
         6,
         "",
         "z7 "},
        {"an object that another has replaced under its name",
         {LISTING("5", "", "{" META("a", "a", "5") "}"),
          {"watch=true", 410, .body = GONE},
          LISTING("8", "", "{" META("a", "other", "7") "}"),
          LAST("8", "9")},
         4,
         "+a5 -a5 +a7 ",
         "a7 z9 "},
        {"a new list of the same tells nothing",
         {LISTING("5", "", "{" META("a", "a", "5") "}"),
          {"watch=true", 410, .body = GONE},
          LISTING("8", "", "{" META("a", "a", "5") "}"),
          LAST("8", "9")},
         4,
         "+a5 ",
         "a5 z9 "},
        {"an event twice",
         {LISTING("5", "", ""),
          WATCHING("5",
                   EVENT("ADDED", MAP("a", "a", "6")) EVENT("ADDED", MAP("a", "a", "6"))
                       EVENT("DELETED", MAP("b", "b", "7")) EVENT("MODIFIED", MAP("c", "c", "8"))
                           EVENT("ADDED", MAP("z", "z", "9")),
                   .end = FAKE_HOLD)},
         2,
         "+a6 +c8 ",
         "a6 c8 z9 "},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct rig g;
        struct err e = {0};
        _cleanup_(str_done) struct str now = {0};
        rig_init(&g, table[i].steps, table[i].n, NULL);
        rig_start(&g);
        wait_last(&g.trace);
        if (kube_informer_wait(g.informer, FAKE_SECONDS * CLOCK_SECOND, &e) < 0)
            fail_msg("%s: %s", table[i].name, e.msg);
        kube_informer_stop(g.informer);
        cached(g.informer, &now);
        if (!str_eq(str_get(&g.trace.text), table[i].told) ||
            !str_eq(str_get(&now), table[i].cached))
            fail_msg("%s: told '%s', cached '%s'", table[i].name, str_get(&g.trace.text),
                     str_get(&now));
        fake_check(g.fake, table[i].n);
        rig_done(&g);
    }
}

/* Events that cannot be right: none gets in, nor what follows it, and a list settles the matter. */
static void test_doubts(void **state)
{
    (void)state;
    static const struct {
        const char *bad, *reason;
    } table[] = {
        {"not JSON\n", "InvalidEvent"},
        {"{\"type\":\"ADDED\"}\n", "InvalidEvent"},
        {"{\"type\":1,\"object\":{}}\n", "InvalidEvent"},
        {"[]\n", "InvalidEvent"},
        {"{\"type\":\"ADDED\",\"object\":" MAP("b", "b", "7") "} x\n", "InvalidEvent"},
        {EVENT("CHANGED", MAP("b", "b", "7")), "UnknownEvent"},
        {EVENT("added", MAP("b", "b", "7")), "UnknownEvent"},
        {EVENT("ADDED", MAP("b", "b", "4")), "OutOfOrder"},
        {EVENT("DELETED", MAP("a", "a", "4")), "OutOfOrder"},
        {EVENT("MODIFIED", MAP("b", "b", "10")) EVENT("MODIFIED", MAP("b", "b", "9")),
         "OutOfOrder"},
        {EVENT("MODIFIED", MAP("a", "another", "5")), "OutOfOrder"},
        {EVENT("BOOKMARK", MAP("", "", "4")), "OutOfOrder"},
        {EVENT("BOOKMARK", "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"}"), "OutOfOrder"},
        {EVENT("BOOKMARK", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}"), "OtherKind"},
        {EVENT("ADDED", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\"," META("b", "b", "7") "}"),
         "OtherKind"},
        {EVENT("ADDED", "{\"apiVersion\":\"v2\",\"kind\":\"ConfigMap\"," META("b", "b", "7") "}"),
         "OtherKind"},
        {EVENT("ADDED", "{" META("b", "b", "7") "}"), "OtherKind"},
        {EVENT("ADDED",
               "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"b\","
               "\"namespace\":\"e\",\"uid\":\"b\",\"resourceVersion\":\"7\"}}"),
         "OtherNamespace"},
        {EVENT("ADDED",
               "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"b\","
               "\"uid\":\"b\",\"resourceVersion\":\"7\"}}"),
         "OtherNamespace"},
        {EVENT("ADDED", MAP("", "b", "7")), "InvalidObject"},
        {EVENT("ADDED", MAP("b", "", "7")), "InvalidObject"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        _cleanup_free_ char *body =
            mem_printf("%s%s", table[i].bad, EVENT("ADDED", MAP("c", "c", "99")));
        const struct fake_step steps[] = {
            LISTING("5", "", A5), WATCHING("5", body, .end = FAKE_HOLD),
            LISTING("8", "", "{" META("a", "a", "6") "}"), LAST("8", "9")};
        struct rig g;
        _cleanup_(str_done) struct str now = {0}, text = {0};
        rig_init(&g, steps, ARRAY_SIZE(steps), NULL);
        rig_start(&g);
        wait_last(&g.trace);
        kube_informer_stop(g.informer);
        cached(g.informer, &now);
        assert_string_equal(str_get(&now), "a6 z9 ");
        assert_null(strstr(str_get(&g.trace.text), "c99"));
        fake_check(g.fake, ARRAY_SIZE(steps));
        _cleanup_free_ char *line = mem_printf(
            "reflector_failures_total{resource=\"configmaps\",reason=\"%s\"} 1\n", table[i].reason);
        metrics_format(g.metrics, &text);
        if (!strstr(text.p, line))
            fail_msg("%zu: %s is not in %s", i, line, text.p);
        rig_done(&g);
    }
}

/* A line without an end, and an event above the limit. */
static void test_endless(void **state)
{
    (void)state;
    static const struct fake_step steps[] = {
        LISTING("5", "", A5),
        WATCHING("5", "{\"type\":\"ADDED\",\"object\":{\"x\":\"", .filler = 6 << 20,
                 .end = FAKE_HOLD),
        LISTING("8", "", "{" META("a", "a", "6") "}"),
        LAST("8", "9"),
    };
    struct rig g;
    _cleanup_(str_done) struct str now = {0}, text = {0};
    rig_init(&g, steps, ARRAY_SIZE(steps), NULL);
    rig_start(&g);
    wait_last(&g.trace);
    kube_informer_stop(g.informer);
    cached(g.informer, &now);
    assert_string_equal(str_get(&now), "a6 z9 ");
    metrics_format(g.metrics, &text);
    assert_non_null(strstr(text.p, "reason=\"LineTooLong\"} 1\n"));
    assert_non_null(strstr(text.p, "informer_objects{resource=\"configmaps\"} 2\n"));
    rig_done(&g);
}

/* A server that ends each watch as soon as it has begun is not asked without a pause. */
static void test_no_flood(void **state)
{
    (void)state;
    struct fake_step steps[] = {LISTING("5", "", ""),
                                WATCHING("5", EVENT("BOOKMARK", MAP("", "", "5")), .repeat = 2),
                                LAST("5", "6")};
    struct rig g;
    rig_init(&g, steps, ARRAY_SIZE(steps), NULL);
    int64_t begin = clock_mono_ns(clock_system());
    rig_start(&g);
    wait_last(&g.trace);
    assert_true(clock_mono_ns(clock_system()) - begin >= 300 * MILLISECOND);
    fake_check(g.fake, 5);
    rig_done(&g);
}

static void by_first_letter(const json_t *object, struct kube_index_values *out)
{
    kube_index_add(out, (const char[]){kube_name(object)[0], '\0'});
}

static void by_versions(const json_t *object, struct kube_index_values *out)
{
    kube_index_add(out, kube_version(object));
    kube_index_add(out, "all");
    kube_index_add(out, "all");
}

static size_t found(struct kube_informer *i, const char *index, const char *value)
{
    struct kube_objects list = {0};
    kube_informer_find(i, index, value, &list);
    size_t n = list.len;
    kube_objects_done(&list);
    return n;
}

static void test_indexes(void **state)
{
    (void)state;
    static const struct kube_index indexes[] = {
        {"letter", by_first_letter}, {"version", by_versions}, {0}};
    static const struct fake_step steps[] = {
        LISTING("5", "",
                "{" META("a1", "1", "3") "},{" META("a2", "2", "4") "},{" META("b", "3", "5") "}"),
        WATCHING("5", EVENT("MODIFIED", MAP("a1", "1", "6")) EVENT("DELETED", MAP("b", "3", "7"))),
        {"watch=true", 410, .body = GONE},
        LISTING("8", "", "{" META("a1", "1", "6") "},{" META("c", "4", "8") "}"),
        LAST("8", "9"),
    };
    struct rig g;
    struct err e = {0};
    rig_init(&g, steps, ARRAY_SIZE(steps), indexes);
    assert_int_equal(kube_informer_add_index(g.informer, &indexes[0]), -1);
    rig_start(&g);
    wait_last(&g.trace);
    static const struct {
        const char *index, *value;
        size_t n;
    } table[] = {
        {"letter", "a", 1},  {"letter", "b", 0},  {"letter", "c", 1},    {"letter", "", 0},
        {"version", "3", 0}, {"version", "6", 1}, {"version", "all", 3}, {"none", "a", 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        assert_int_equal(found(g.informer, table[i].index, table[i].value), table[i].n);

    _cleanup_(kube_object_unrefp) struct kube_object *a = kube_informer_get(g.informer, "d", "a1");
    _cleanup_(kube_object_unrefp) struct kube_object *same =
        kube_informer_get_key(g.informer, "d/a1");
    assert_non_null(a);
    assert_ptr_equal(a, same);
    assert_null(kube_informer_get(g.informer, "d", "a2"));
    assert_null(kube_informer_get(g.informer, NULL, "a1"));
    json_auto_t *tree = kube_informer_json(g.informer, "d", "a1", &e);
    assert_string_equal(kube_version(tree), "6");
    assert_null(kube_informer_json(g.informer, "d", "a2", &e));
    assert_int_equal(e.code, ERR_NOT_FOUND);
    rig_done(&g);
}

/* Objects outlive the cache. */
static void test_references(void **state)
{
    (void)state;
    static const struct fake_step steps[] = {LISTING("5", "", A5), LAST("5", "9")};
    struct rig g;
    rig_init(&g, steps, ARRAY_SIZE(steps), NULL);
    rig_start(&g);
    wait_last(&g.trace);
    _cleanup_(kube_object_unrefp) struct kube_object *a = kube_informer_get(g.informer, "d", "a");
    rig_done(&g);
    assert_string_equal(a->text, A5);
}

static void test_wait(void **state)
{
    (void)state;
    static const struct fake_step steps[] = {
        {NULL, 403,
         .body = "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"you may not\"}",
         .repeat = 1000}};
    struct rig g;
    struct err e = {0};
    rig_init(&g, steps, 1, NULL);
    rig_start(&g);
    fake_wait_for(g.fake, 2);
    assert_int_equal(kube_informer_wait(g.informer, 1, &e), -1);
    assert_int_equal(e.code, ERR_DEADLINE_EXCEEDED);
    assert_non_null(strstr(e.msg, "you may not"));
    assert_false(kube_informer_synced(g.informer));
    kube_client_stop(g.client);
    assert_int_equal(kube_informer_wait(g.informer, FAKE_SECONDS * CLOCK_SECOND, &e), -1);
    assert_int_equal(e.code, ERR_CANCELLED);
    rig_done(&g);
}

/* A kind that the server lacks, or that nobody may read who cannot have it, is none of it until it comes. */
static void test_optional(void **state)
{
    (void)state;
    struct kube_resource resource = kube_resource("v1", "ConfigMap");
    resource.optional = true;
    static const struct fake_step steps[] = {
        {"configmaps?limit=", 404},          {"configmaps?limit=", 403}, {"GET /api/v1 ", 404},
        {"configmaps?limit=", 403}, /* it is there, and we may not */
        {"GET /api/v1 ", 200, .body = "{}"}, LISTING("9", "", A5),       LAST("9", "10"),
    };
    struct rig g;
    struct err e = {0};
    rig_init_of(&g, steps, ARRAY_SIZE(steps), NULL, resource);
    assert_false(kube_informer_served(g.informer));
    rig_start(&g);
    assert_int_equal(kube_informer_wait(g.informer, FAKE_SECONDS * CLOCK_SECOND, &e), 0);
    wait_last(&g.trace);
    assert_true(kube_informer_served(g.informer));
    assert_string_equal(str_get(&g.trace.text), "+a5 ");
    rig_done(&g);
}

static void test_stop_before_start(void **state)
{
    (void)state;
    struct rig g;
    rig_init(&g, NULL, 0, NULL);
    rig_done(&g);
}

/* Readers beside a writer that changes everything all the time. */
static void *read_all(void *context)
{
    struct rig *g = context;
    for (;;) {
        struct kube_objects all = {0};
        kube_informer_list(g->informer, NULL, &all);
        vec_for_each(&all, o)
            assert_non_null(strstr((*o)->text, (*o)->resource_version));
        kube_objects_done(&all);
        kube_object_unref(kube_informer_get(g->informer, "d", "a"));
        found(g->informer, "version", "all");
        struct kube_object *z = kube_informer_get(g->informer, "d", "z");
        kube_object_unref(z);
        if (z)
            return NULL;
    }
}

static void test_readers(void **state)
{
    (void)state;
    static const struct kube_index indexes[] = {{"version", by_versions}, {0}};
    enum { EVENTS = 2000, READERS = 3 };
    _cleanup_(str_done) struct str body = {0};
    for (int n = 0; n < EVENTS; n++)
        str_appendf(&body,
                    "{\"type\":\"%s\",\"object\":{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
                    "\"metadata\":{\"name\":\"%c\",\"namespace\":\"d\",\"uid\":\"u\","
                    "\"resourceVersion\":\"%d\"}}}\n",
                    n % 7 == 6 ? "DELETED" : "MODIFIED", 'a' + n % 5, 10 + n);
    str_append(&body, EVENT("ADDED", MAP("z", "z", "99999")));
    const struct fake_step steps[] = {LISTING("5", "", A5),
                                      WATCHING("5", body.p, .end = FAKE_HOLD)};
    struct rig g;
    pthread_t threads[READERS];
    rig_init(&g, steps, ARRAY_SIZE(steps), indexes);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_all, &g), 0);
    rig_start(&g);
    wait_last(&g.trace);
    for (int i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    rig_done(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follow),  cmocka_unit_test(test_doubts),
        cmocka_unit_test(test_endless), cmocka_unit_test(test_no_flood),
        cmocka_unit_test(test_indexes), cmocka_unit_test(test_references),
        cmocka_unit_test(test_wait),    cmocka_unit_test(test_optional),
        cmocka_unit_test(test_readers), cmocka_unit_test(test_stop_before_start),
    };
    log_set_level(LOG_LEVEL_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
