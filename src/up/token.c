#include "up/token.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/rfc3339.h"

enum { ID = 6, SECRET = 16 };

/* Letters and digits, each as likely as the others. */
static void draw(char *out, size_t n)
{
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    enum { MANY = sizeof(alphabet) - 1 };
    for (size_t i = 0; i < n;) {
        unsigned char c;
        if (getrandom(&c, 1, 0) != 1)
            abort();
        if (c < 256 / MANY * MANY)
            out[i++] = alphabet[c % MANY];
    }
    out[n] = '\0';
}

int up_token_create(struct kube_client *client, const char *description, unsigned seconds,
                    char ret_token[UP_TOKEN_MAX], struct err *e)
{
    char id[ID + 1], secret[SECRET + 1], name[64], until[RFC3339_MAX];
    draw(id, ID);
    draw(secret, SECRET);
    snprintf(name, sizeof(name), "bootstrap-token-%s", id);
    int64_t end = clock_real_ns(clock_system()) + (int64_t)seconds * CLOCK_SECOND;
    rfc3339_format(rfc3339_from_ns(end), RFC3339_SECONDS, until);
    json_auto_t *object =
        json_pack("{s:s,s:s,s:s,s:{s:s,s:s},s:{s:s,s:s,s:s,s:s,s:s,s:s,s:s}}", "apiVersion", "v1",
                  "kind", "Secret", "type", "bootstrap.kubernetes.io/token", "metadata", "name",
                  name, "namespace", "kube-system", "stringData", "token-id", id, "token-secret",
                  secret, "expiration", until, "description", description,
                  "usage-bootstrap-authentication", "true", "usage-bootstrap-signing", "true",
                  "auth-extra-groups", "system:bootstrappers:kubeadm:default-node-token");
    struct kube_resource secrets = kube_resource("v1", "Secret");
    json_auto_t *made = kube_create(client, &secrets, object, NULL, e);
    if (!made)
        return err_prefix(e, "cannot make a token to join with");
    snprintf(ret_token, UP_TOKEN_MAX, "%s.%s", id, secret);
    return 0;
}
