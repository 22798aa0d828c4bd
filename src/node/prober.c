/*
 * Probing in a child with a deadline, and remembering what was found.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "base/spawn.h"
#include "base/str.h"
#include "node/probe.h"

enum { DEADLINE_MS = 15000, OUTPUT_LIMIT = 64 * 1024, REST_MAX = 16 };

struct known {
    char *state;
    unsigned rest, left; /* of one that failed: for how many scans it is left alone */
    struct node_probe probe;
};

static void known_free(struct known *k)
{
    if (!k)
        return;
    free(k->state);
    node_probe_done(&k->probe);
    free(k);
}

void node_prober_done(struct node_prober *p)
{
    map_for_each(&p->known, it)
        known_free(it->value);
    map_done(&p->known);
}

void node_prober_forget(struct node_prober *p, const char *path)
{
    known_free(map_remove(&p->known, path));
}

static int run_child(const char *program, const char *path, struct node_probe *ret, struct err *e)
{
    const char *const argv[] = {program, "probe", path, NULL};
    struct spawn spawn = {.argv = argv, .limit = OUTPUT_LIMIT, .timeout_ms = DEADLINE_MS};
    struct spawn_result result = {0};
    if (spawn_run(&spawn, &result, e) < 0)
        return -1;
    int status = spawn_check(&spawn, &result, e);
    if (status == 0)
        status = node_probe_parse(str_get(&result.out), ret, e);
    spawn_result_done(&result);
    return status;
}

void node_prober_read(struct node_prober *p, const char *path, const char *state,
                      struct node_probe *ret)
{
    struct known *known = map_get(&p->known, path);
    bool same = known && state && str_eq(known->state, state);
    if (same && (!known->probe.failed || known->left)) {
        known->left -= known->left > 0;
        node_probe_copy(&known->probe, ret);
        return;
    }
    /* A disk that hangs keeps the child that reads it: not another every minute. */
    unsigned rest = same && known->rest < REST_MAX ? 2 * known->rest : same ? REST_MAX : 1;
    node_prober_forget(p, path);
    struct err e = {0};
    if (!p->program) {
        node_probe_read(path, ret);
    } else if (run_child(p->program, path, ret, &e) < 0) {
        *ret = (struct node_probe){.failed = true};
        snprintf(ret->error, sizeof(ret->error), "it cannot be probed: %.120s", e.msg);
    }
    if (!state)
        return;
    known = NEW(struct known);
    known->state = mem_strdup(state);
    known->rest = known->left = ret->failed ? rest : 0;
    node_probe_copy(ret, &known->probe);
    map_set(&p->known, path, known);
}
