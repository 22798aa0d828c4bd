/*
 * Pods without processes: what happens is told, what the machine wants is written down.
 *
 * A script is lines "WHAT HAPPENS -> WHAT IS DONE; PHASE". What is done is carried out at once: what
 * is started runs.
 */
#include <stdio.h>
#include <stdlib.h>

#include "jsontest.h"
#include "k8s/kubelet/pod_impl.h"
#include "unit.h"

struct sim {
    struct pod_spec spec;
    struct pod_facts facts[8];
    int64_t now, stop_by, deadline;
    bool gone;
    const char *verdict;
    struct str done;
};

static size_t index_of(const struct sim *s, const char *name)
{
    for (size_t i = 0; i < s->spec.containers.len; i++) {
        if (str_eq(s->spec.containers.p[i].name, name))
            return i;
    }
    fail_msg("no container %s", name);
    return 0;
}

static void carry_out(struct sim *s, size_t i, enum pod_verb verb)
{
    static const char *const words[] = {"", "start", "hook", "term", "kill"};
    struct pod_facts *f = &s->facts[i];
    if (verb == POD_KEEP)
        return;
    str_appendf(&s->done, "%s%s %s", s->done.len ? ", " : "", words[verb],
                s->spec.containers.p[i].name);
    if (verb == POD_START) {
        *f = (struct pod_facts){
            .running = POD_RUNNING, .number = f->number + 1, .streak = f->streak};
        return;
    }
    f->stop_ns = f->stop_ns ? f->stop_ns : s->now;
    if (verb == POD_HOOK)
        f->hook = POD_HOOK_RUNS;
    if (verb == POD_TERM)
        f->term_ns = s->now;
    if (verb == POD_KILL)
        f->killed = true;
}

/* Decides until nothing is wanted. */
static void settle(struct sim *s)
{
    static const char *const phases[] = {"Pending", "Running", "Succeeded", "Failed"};
    bool acted = true;
    for (int rounds = 0; acted; rounds++) {
        assert_true(rounds < 10);
        struct pod_situation situation = {
            .spec = &s->spec,
            .facts = s->facts,
            .now_ns = s->now,
            .gone = s->gone,
            .stop_by_ns = s->stop_by,
            .deadline_ns = s->deadline,
            .verdict = s->verdict,
            .backoff_ns = 10 * CLOCK_SECOND,
            .backoff_max_ns = 300 * CLOCK_SECOND,
        };
        struct pod_plan plan;
        pod_decide(&situation, &plan);
        acted = false;
        for (size_t i = 0; i < plan.verbs.len; i++) {
            carry_out(s, i, plan.verbs.p[i]);
            acted |= plan.verbs.p[i] != POD_KEEP;
        }
        if (!acted) {
            str_appendf(&s->done, "; %s%s", phases[plan.phase], plan.over ? " over" : "");
            /* Whoever waits is woken: nothing may be due in the past. */
            assert_true(plan.wake_ns > s->now);
        }
        if (!acted && (plan.phase == POD_SUCCEEDED || plan.phase == POD_FAILED))
            s->verdict = phases[plan.phase];
        pod_plan_done(&plan);
    }
}

static void happen(struct sim *s, const char *line)
{
    char what[16] = "", name[32] = "";
    long n = 0;
    sscanf(line, "%15s %31s %ld", what, name, &n);
    if (str_eq(what, "begin"))
        return;
    if (str_eq(what, "pass")) { /* seconds */
        s->now += atol(name) * CLOCK_SECOND;
        return;
    }
    if (str_eq(what, "delete")) {
        s->gone = true;
        s->stop_by = s->now + atol(name) * CLOCK_SECOND;
        return;
    }
    struct pod_facts *f = &s->facts[index_of(s, name)];
    if (str_eq(what, "exit")) {
        assert_int_equal(f->running, POD_RUNNING);
        f->running = POD_ENDED;
        f->end = (struct pod_end){.exit_code = (int)n};
        f->ended_ns = s->now;
        f->streak++;
    } else if (str_eq(what, "good") || str_eq(what, "bad")) {
        f->verdicts[n] = *what == 'g' ? POD_GOOD : POD_BAD;
    } else if (str_eq(what, "hooked")) {
        f->hook = POD_HOOK_DONE;
    } else if (str_eq(what, "block")) {
        *f = (struct pod_facts){.number = -1, .blocked = "ErrImageNeverPull"};
        f->retry_ns = s->now + n * CLOCK_SECOND;
    } else {
        fail_msg("%s?", what);
    }
}

static void play(const char *spec, const char *const *script)
{
    _cleanup_free_ char *text =
        mem_printf("{'metadata':{'name':'p','namespace':'n','uid':'u'},'spec':{%s}}", spec);
    struct sim s = {.now = 1000 * CLOCK_SECOND, .deadline = INT64_MAX};
    struct err e = {0};
    json_auto_t *pod = parse_quoted(text);
    assert_int_equal(pod_spec_parse(pod, &s.spec, &e), 0);
    if (s.spec.deadline_ns >= 0)
        s.deadline = s.now + s.spec.deadline_ns;
    for (size_t i = 0; i < ARRAY_SIZE(s.facts); i++)
        s.facts[i].number = -1;
    for (; *script; script++) {
        const char *arrow = strstr(*script, " -> ");
        assert_non_null(arrow);
        str_clear(&s.done);
        happen(&s, *script);
        settle(&s);
        const char *done = str_get(&s.done);
        if (!str_eq(str_starts_with(done, "; ") ? done + 2 : done, arrow + 4))
            fail_msg("%s: got \"%s\"", *script, done);
    }
    pod_spec_done(&s.spec);
    str_done(&s.done);
}

#define SCRIPT(...) ((const char *const[]){__VA_ARGS__, NULL})
#define ONE         "'containers':[{'name':'a'}]"

static void test_restart_policies(void **state)
{
    (void)state;
    play(ONE, SCRIPT("begin -> start a; Running", "exit a 0 -> start a; Running",
                     "exit a 1 -> Running", "pass 9 -> Running", "pass 1 -> start a; Running",
                     "exit a 1 -> Running", "pass 19 -> Running", "pass 1 -> start a; Running"));
    play(ONE ",'restartPolicy':'OnFailure'",
         SCRIPT("begin -> start a; Running", "exit a 1 -> start a; Running",
                "exit a 0 -> Succeeded over", "pass 1000 -> Succeeded over"));
    play(ONE ",'restartPolicy':'Never'",
         SCRIPT("begin -> start a; Running", "exit a 1 -> Failed over", "pass 99 -> Failed over"));
    play(ONE ",'restartPolicy':'Never'",
         SCRIPT("begin -> start a; Running", "exit a 0 -> Succeeded over"));
}

static void test_several_containers(void **state)
{
    (void)state;
    play("'containers':[{'name':'a'},{'name':'b'}],'restartPolicy':'Never'",
         SCRIPT("begin -> start a, start b; Running", "exit a 0 -> Running",
                "exit b 2 -> Failed over"));
    play("'containers':[{'name':'a'},{'name':'b'}],'restartPolicy':'OnFailure'",
         SCRIPT("begin -> start a, start b; Running", "exit a 0 -> Running",
                "exit b 2 -> start b; Running", "exit b 0 -> Succeeded over"));
    /* One that cannot start keeps the pod Pending and the other running. */
    play("'containers':[{'name':'a'},{'name':'b'}]",
         SCRIPT("block b 60 -> start a; Pending", "pass 59 -> Pending",
                "pass 1 -> start b; Running"));
}

static void test_init_containers(void **state)
{
    (void)state;
    const char *two = "'initContainers':[{'name':'i'},{'name':'j'}]," ONE;
    play(two, SCRIPT("begin -> start i; Pending", "exit i 0 -> start j; Pending",
                     "exit j 1 -> start j; Pending", "exit j 1 -> Pending",
                     "pass 10 -> start j; Pending", "exit j 0 -> start a; Running",
                     "exit a 1 -> start a; Running"));
    _cleanup_free_ char *never = mem_printf("%s,'restartPolicy':'Never'", two);
    play(never, SCRIPT("begin -> start i; Pending", "exit i 0 -> start j; Pending",
                       "exit j 1 -> Failed over"));
}

static void test_sidecars(void **state)
{
    (void)state;
    const char *pod = "'initContainers':[{'name':'s','restartPolicy':'Always','startupProbe':"
                      "{'tcpSocket':{'port':1}}},{'name':'i'}]," ONE ",'restartPolicy':'Never'";
    play(pod, SCRIPT("begin -> start s; Pending", "good s 0 -> start i; Pending",
                     "exit i 0 -> start a; Running", "exit s 1 -> start s; Running",
                     "exit a 0 -> term s; Running", "pass 29 -> Running",
                     "pass 1 -> kill s; Running", "exit s 137 -> Succeeded over"));
    play(pod, SCRIPT("begin -> start s; Pending", "good s 0 -> start i; Pending",
                     "exit i 0 -> start a; Running", "delete 30 -> term a; Running",
                     "exit a 0 -> term s; Running", "exit s 0 -> Succeeded over"));
}

static void test_deletion(void **state)
{
    (void)state;
    play(ONE,
         SCRIPT("begin -> start a; Running", "delete 30 -> term a; Running", "pass 29 -> Running",
                "pass 1 -> kill a; Running", "pass 100 -> Running", "exit a 137 -> Failed over"));
    play(ONE, SCRIPT("begin -> start a; Running", "delete 0 -> kill a; Running",
                     "exit a 137 -> Failed over"));
    /* A second, shorter patience counts. */
    play(ONE, SCRIPT("begin -> start a; Running", "delete 30 -> term a; Running",
                     "delete 0 -> kill a; Running"));
    play(ONE, SCRIPT("delete 30 -> Failed over"));
    play(ONE, SCRIPT("begin -> start a; Running", "exit a 1 -> start a; Running",
                     "exit a 1 -> Running", "delete 30 -> Failed over"));
}

static void test_hooks(void **state)
{
    (void)state;
    const char *pod =
        "'containers':[{'name':'a','lifecycle':{'preStop':{'exec':{'command':['x']}}}}]";
    play(pod, SCRIPT("begin -> start a; Running", "delete 30 -> hook a; Running",
                     "pass 5 -> Running", "hooked a -> term a; Running",
                     "pass 25 -> kill a; Running", "exit a 137 -> Failed over"));
    /* A hook that took all the time leaves two seconds. */
    play(pod, SCRIPT("begin -> start a; Running", "delete 5 -> hook a; Running",
                     "pass 5 -> kill a; Running"));
    play(pod,
         SCRIPT("begin -> start a; Running", "delete 5 -> hook a; Running", "pass 4 -> Running",
                "hooked a -> term a; Running", "pass 1 -> Running", "pass 1 -> kill a; Running"));
}

static void test_probes(void **state)
{
    (void)state;
    const char *pod = "'containers':[{'name':'a','livenessProbe':{'tcpSocket':{'port':1},"
                      "'terminationGracePeriodSeconds':5}}]";
    play(pod, SCRIPT("begin -> start a; Running", "bad a 1 -> term a; Running", "pass 4 -> Running",
                     "pass 1 -> kill a; Running", "exit a 137 -> start a; Running"));
    play("'containers':[{'name':'a','startupProbe':{'tcpSocket':{'port':1}}}],'restartPolicy':'"
         "Never'",
         SCRIPT("begin -> start a; Running", "bad a 0 -> term a; Running",
                "exit a 143 -> Failed over"));
}

static void test_deadline(void **state)
{
    (void)state;
    play(ONE ",'activeDeadlineSeconds':60",
         SCRIPT("begin -> start a; Running", "pass 59 -> Running", "pass 1 -> term a; Running",
                "pass 29 -> Running", "pass 1 -> kill a; Running", "exit a 137 -> Failed over",
                "pass 1000 -> Failed over"));
    /* What has ended before is what it was. */
    play(ONE ",'activeDeadlineSeconds':60,'restartPolicy':'Never'",
         SCRIPT("begin -> start a; Running", "exit a 0 -> Succeeded over",
                "pass 61 -> Succeeded over"));
}

static void test_backoff(void **state)
{
    (void)state;
    const struct {
        unsigned streak;
        int64_t seconds;
    } cases[] = {{0, 0}, {1, 0}, {2, 10}, {3, 20}, {4, 40}, {6, 160}, {7, 300}, {4000000000, 300}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(pod_backoff(cases[i].streak, 10 * CLOCK_SECOND, 300 * CLOCK_SECOND),
                         cases[i].seconds * CLOCK_SECOND);
}

static void test_readiness(void **state)
{
    (void)state;
    struct pod_container plain = {.role = POD_MAIN}, probed = plain, init = {.role = POD_INIT};
    probed.probes[POD_STARTUP].means = POD_TCP;
    probed.probes[POD_READINESS].means = POD_TCP;
    struct pod_facts f = {.running = POD_RUNNING};
    assert_true(pod_is_ready(&plain, &f));
    assert_false(pod_is_ready(&probed, &f));
    f.verdicts[POD_READINESS] = POD_GOOD;
    assert_false(pod_is_ready(&probed, &f));
    f.verdicts[POD_STARTUP] = POD_GOOD;
    assert_true(pod_is_ready(&probed, &f));
    f.stop_ns = 1;
    assert_false(pod_is_ready(&plain, &f));
    struct pod_facts ended = {.running = POD_ENDED};
    assert_true(pod_is_ready(&init, &ended));
    assert_false(pod_is_ready(&plain, &ended));
}

static void test_probe_counts(void **state)
{
    (void)state;
    const struct pod_probe p = {.successes = 2, .failures = 3};
    const struct {
        bool ok, changed;
        enum pod_verdict verdict;
    } cases[] = {
        {true, false, POD_UNDECIDED}, {true, true, POD_GOOD},  {false, false, POD_GOOD},
        {false, false, POD_GOOD},     {true, false, POD_GOOD}, {false, false, POD_GOOD},
        {false, false, POD_GOOD},     {false, true, POD_BAD},  {true, false, POD_BAD},
        {true, true, POD_GOOD},
    };
    struct pod_probe_count n = {0};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(pod_probe_note(&p, &n, cases[i].ok), cases[i].changed);
        assert_int_equal(n.verdict, cases[i].verdict);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_restart_policies), cmocka_unit_test(test_several_containers),
        cmocka_unit_test(test_init_containers),  cmocka_unit_test(test_sidecars),
        cmocka_unit_test(test_deletion),         cmocka_unit_test(test_hooks),
        cmocka_unit_test(test_probes),           cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_backoff),          cmocka_unit_test(test_readiness),
        cmocka_unit_test(test_probe_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
