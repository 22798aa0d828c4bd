/*
 * An informer that says what it knows. For tests that compare its cache with the server's list.
 *
 * cache_dump KUBECONFIG API_VERSION KIND NAMESPACE|- [STALL_MS [BACKOFF_MAX_MS [WAIT_MS]]]
 *
 * Commands, a line each, on stdin:
 *     wait      until a first list is in: "synced", or "failed: WHY"
 *     dump      every object as a line of JSON, then "end"
 *     chain     "ok", or what handlers were told that makes no sense: each object appears, changes, goes
 *     memory    resident kilobytes
 *     metrics   the text of all metrics, then "end"
 */
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/map.h"
#include "kube/informer.h"
#include "metrics/metrics.h"

enum { WAIT_MS = 60000, MILLISECOND = 1000000 };

/* What handlers were told: key -> version of the object, as they know it. */
struct told {
    struct map versions;
    char wrong[512]; /* "": nothing */
};

static void on_change(void *context, const struct kube_object *old, const struct kube_object *now)
{
    struct told *t = context;
    const char *key = now ? now->key : old->key;
    char *known = map_get(&t->versions, key);
    bool fits = old ? known && str_eq(known, old->resource_version) : !known;
    if (!fits && !*t->wrong)
        snprintf(t->wrong, sizeof(t->wrong), "%s: known %s, told %s -> %s", key,
                 known ? known : "nothing", old ? old->resource_version : "nothing",
                 now ? now->resource_version : "nothing");
    free(now ? map_set(&t->versions, key, mem_strdup(now->resource_version))
             : map_remove(&t->versions, key));
}

static void dump(struct kube_informer *i)
{
    struct kube_objects all = {0};
    kube_informer_list(i, NULL, &all);
    vec_for_each(&all, o)
        puts((*o)->text);
    kube_objects_done(&all);
    puts("end");
}

static void print_memory(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f || fscanf(f, "%*s %ld", &pages) != 1)
        abort();
    fclose(f);
    printf("%ld\n", pages * (sysconf(_SC_PAGESIZE) / 1024));
}

static int64_t argument_ns(char **argv, int argc, int at, int64_t otherwise_ms)
{
    return (argc > at ? atol(argv[at]) : otherwise_ms) * MILLISECOND;
}

static void obey(const char *command, struct kube_informer *i, struct metrics *m, int64_t wait_ns)
{
    struct err e = {0};
    if (str_eq(command, "wait\n")) {
        if (kube_informer_wait(i, wait_ns, &e) < 0)
            printf("failed: %s\n", e.msg);
        else
            puts("synced");
    } else if (str_eq(command, "dump\n")) {
        dump(i);
    } else if (str_eq(command, "memory\n")) {
        print_memory();
    } else if (str_eq(command, "metrics\n")) {
        _cleanup_(str_done) struct str text = {0};
        metrics_format(m, &text);
        printf("%send\n", str_get(&text));
    }
}

static int follow(struct kube_client *client, char **argv, int argc, struct metrics *m)
{
    struct told told = {0};
    struct err e = {0};
    struct kube_informer_options o = {
        .client = client,
        .resource = kube_resource(argv[2], argv[3]),
        .ns = str_eq(argv[4], "-") ? NULL : argv[4],
        .stall_ns = argument_ns(argv, argc, 5, 0),
        .backoff_max_ns = argument_ns(argv, argc, 6, 0),
        .metrics = m,
    };
    struct kube_informer *i = kube_informer_new(&o, &e);
    if (!i || (kube_informer_add_handler(i, (struct kube_handler){on_change, &told}),
               kube_informer_start(i, &e)) < 0) {
        fprintf(stderr, "%s\n", e.msg);
        return 1;
    }
    char command[64];
    while (fgets(command, sizeof(command), stdin)) {
        if (str_eq(command, "chain\n")) {
            /* The thread that writes it is ended first; so this is the last command. */
            kube_informer_stop(i);
            puts(*told.wrong ? told.wrong : "ok");
        } else {
            obey(command, i, m, argument_ns(argv, argc, 7, WAIT_MS));
        }
        fflush(stdout);
    }
    kube_informer_stop(i);
    kube_informer_free(i);
    map_for_each(&told.versions, it)
        free(it->value);
    map_done(&told.versions);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fputs("cache_dump KUBECONFIG API_VERSION KIND NAMESPACE|- "
              "[STALL_MS [BACKOFF_MAX_MS [WAIT_MS]]]\n",
              stderr);
        return 2;
    }
    struct err e = {0};
    struct kube_config config;
    if (kube_config_load(argv[1], NULL, &config, &e) < 0) {
        fprintf(stderr, "%s\n", e.msg);
        return 1;
    }
    _cleanup_(metrics_freep) struct metrics *m = metrics_new();
    _cleanup_(kube_client_freep) struct kube_client *client = kube_client_new(
        &(struct kube_client_options){
            .config = &config, .field_manager = "cache-dump", .metrics = m},
        &e);
    kube_config_done(&config);
    if (!client) {
        fprintf(stderr, "%s\n", e.msg);
        return 1;
    }
    return follow(client, argv, argc, m);
}
