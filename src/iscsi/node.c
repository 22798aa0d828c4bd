/*
 * The node: targets and limits.
 */
#include <assert.h>

#include "base/log.h"
#include "iscsi/impl.h"

const struct iscsi_limits iscsi_default_limits = {
    .sessions = 256,
    .window = 128,
    .session_in = 2 << 20,
    .session_out = 4 << 20,
    .login_ns = 15 * CLOCK_SECOND,
    .idle_ns = 15 * CLOCK_SECOND,
    .answer_ns = 15 * CLOCK_SECOND,
};

struct iscsi_node *iscsi_node_new(struct io_pool *pool, const struct clock *clock,
                                  const struct iscsi_limits *limits)
{
    struct iscsi_node *node = NEW(struct iscsi_node);
    node->pool = pool;
    node->clock = clock;
    node->limits = limits ? *limits : iscsi_default_limits;
    list_init(&node->targets);
    list_init(&node->sessions);
    list_init(&node->managing);
    list_init(&node->free_tasks);
    return node;
}

static void free_target(struct iscsi_target *t)
{
    vec_for_each(&t->initiators, it)
        free(*it);
    vec_done(&t->initiators);
    for (size_t i = 0; i < ARRAY_SIZE(t->texts); i++) {
        if (t->texts[i])
            explicit_bzero(t->texts[i], strlen(t->texts[i]));
        free(t->texts[i]);
    }
    free(t->name);
    free(t->alias);
    free(t);
}

void iscsi_node_free(struct iscsi_node *node)
{
    assert(list_empty(&node->sessions));
    list_for_each_safe(&node->targets, t, struct iscsi_target, link)
        free_target(t);
    list_for_each_safe(&node->free_tasks, t, struct iscsi_task, link)
        free(t);
    free(node);
}

static int check_auth(const struct iscsi_auth *a, struct err *e)
{
    if (!a->user != !a->secret || !a->target_user != !a->target_secret)
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidAuth", "CHAP needs a user and a secret");
    if (a->target_user && !a->user)
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidAuth",
                       "mutual CHAP needs CHAP of the initiator too");
    const char *secrets[] = {a->secret, a->target_secret};
    for (size_t i = 0; i < 2; i++) {
        size_t n = secrets[i] ? strlen(secrets[i]) : ISCSI_SECRET_MIN;
        if (n < ISCSI_SECRET_MIN || n > ISCSI_SECRET_MAX)
            return err_set(e, ERR_INVALID_ARGUMENT, "InvalidAuth",
                           "a CHAP secret has %d to %d characters", ISCSI_SECRET_MIN,
                           ISCSI_SECRET_MAX);
    }
    if (a->target_secret && str_eq(a->secret, a->target_secret))
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidAuth",
                       "the secrets of both directions must differ");
    return 0;
}

static const char *keep(struct iscsi_target *t, size_t i, const char *text)
{
    return t->texts[i] = text ? mem_strdup(text) : NULL;
}

struct iscsi_target *iscsi_target_new(struct iscsi_node *node,
                                      const struct iscsi_target_config *config, struct err *e)
{
    if (!iscsi_name_valid(config->name)) {
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidName",
                "'%s' is no iSCSI name: write one like iqn.2026-01.io.orlop:volume", config->name);
        return NULL;
    }
    if (check_auth(&config->auth, e) < 0)
        return NULL;
    struct iscsi_target *t = NEW(struct iscsi_target);
    t->node = node;
    t->name = mem_strdup(config->name);
    t->alias = config->alias ? mem_strdup(config->alias) : NULL;
    t->unit = config->unit;
    t->auth = (struct iscsi_auth){
        .user = keep(t, 0, config->auth.user),
        .secret = keep(t, 1, config->auth.secret),
        .target_user = keep(t, 2, config->auth.target_user),
        .target_secret = keep(t, 3, config->auth.target_secret),
    };
    t->any_initiator = !config->initiators;
    for (size_t i = 0; config->initiators && config->initiators[i]; i++)
        vec_push(&t->initiators, mem_strdup(config->initiators[i]));
    list_push(&node->targets, &t->link);
    return t;
}

void iscsi_node_drain(struct iscsi_node *node, unsigned seconds)
{
    node->draining = true;
    list_for_each(&node->sessions, s, struct iscsi_session, link) {
        struct iscsi_conn *c = s->conn;
        if (!c || c->closing || c->phase != PHASE_FULL)
            continue;
        uint8_t *h = iscsi_pdu_begin(c, ISCSI_ASYNC, ISCSI_FINAL, 0);
        be_put32(h + 16, ISCSI_NO_TAG);
        iscsi_pdu_status(c, h, true);
        h[36] = ISCSI_ASYNC_LOGOUT;
        be_put16(h + 42, (uint16_t)seconds);
        iscsi_pdu_seal(c, h);
    }
}

unsigned iscsi_node_sessions(const struct iscsi_node *node)
{
    return (unsigned)atomic_load(&node->stats.sessions);
}

unsigned iscsi_node_commands(const struct iscsi_node *node)
{
    return (unsigned)atomic_load(&node->stats.commands);
}

const struct iscsi_stats *iscsi_node_stats(const struct iscsi_node *node)
{
    return &node->stats;
}

void iscsi_node_each_session(const struct iscsi_node *node,
                             void (*fn)(void *context, const struct iscsi_session_info *info),
                             void *context)
{
    list_for_each(&node->sessions, s, struct iscsi_session, link) {
        const struct iscsi_session_info info = {
            .initiator = s->initiator,
            .address = s->address,
            .target = s->target ? s->target->name : NULL,
            .tsih = s->tsih,
            .commands = s->commands,
            .since_ns = s->since,
            .stats = &s->stats,
        };
        fn(context, &info);
    }
}

bool iscsi_node_draining(const struct iscsi_node *node)
{
    return node->draining;
}
