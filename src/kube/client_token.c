/*
 * Tokens that change: Kubernetes puts a new one into the file long before the old one expires. The
 * file is read again once a minute, and when the server refuses what we have. A file that is gone or
 * no token for a moment leaves the one we have.
 */
#include "base/log.h"
#include "kube/client_impl.h"
#include "kube/config_impl.h"

enum { READ_AGAIN_SECONDS = 60 };

static char *header_of(const char *token)
{
    return mem_printf("Authorization: Bearer %s", token);
}

static void erase(char *header)
{
    if (header)
        explicit_bzero(header, strlen(header));
    free(header);
}

void kube_token_init(struct kube_token *t, const struct kube_config *config, int64_t now)
{
    pthread_mutex_init(&t->lock, NULL);
    t->path = config->token_file ? mem_strdup(config->token_file) : NULL;
    t->header = config->token ? header_of(config->token) : NULL;
    t->read_ns = config->token ? now : now - READ_AGAIN_SECONDS * CLOCK_SECOND;
}

void kube_token_done(struct kube_token *t)
{
    free(t->path);
    erase(t->header);
    pthread_mutex_destroy(&t->lock);
}

/* Reads the file. The caller holds the lock. */
static void read_again(struct kube_token *t, int64_t now)
{
    struct err e = {0};
    char *token = config_read(t->path, CONFIG_TOKEN_MAX, &e);
    t->read_ns = now;
    if (!token || config_check_token(token, &e) < 0) {
        log_warn("cannot read the token of the API again", LOG_S("file", t->path), LOG_ERR(&e));
    } else {
        erase(t->header);
        t->header = header_of(token);
    }
    erase(token);
}

char *kube_token_get(struct kube_token *t, int64_t now)
{
    pthread_mutex_lock(&t->lock);
    if (t->path && now - t->read_ns >= READ_AGAIN_SECONDS * CLOCK_SECOND)
        read_again(t, now);
    char *header = t->header ? mem_strdup(t->header) : NULL;
    pthread_mutex_unlock(&t->lock);
    return header;
}

bool kube_token_refused(struct kube_token *t, const char *sent, int64_t now)
{
    if (!t->path)
        return false;
    pthread_mutex_lock(&t->lock);
    if (!sent || !t->header || str_eq(sent, t->header))
        read_again(t, now);
    bool other = t->header && (!sent || !str_eq(sent, t->header));
    pthread_mutex_unlock(&t->lock);
    return other;
}
