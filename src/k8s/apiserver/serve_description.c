/*
 * What the server says of itself: discovery, version and health.
 */
#include "k8s/apiserver/discovery.h"
#include "k8s/apiserver/serve_impl.h"
#include "metrics/metrics.h"

static const char aggregated_type[] =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/* Answers with the value and frees it; NULL: there is no such thing. */
static void reply_made(struct call *c, const char *type, json_t *value)
{
    struct str text = {0};
    if (value) {
        json_format(value, &text);
        str_append_c(&text, '\n');
        call_reply_text(c, 200, type, &text);
    } else {
        static const char missing[] = "404 page not found\n";
        http_reply(c->http, 404, "text/plain", missing, sizeof(missing) - 1, NULL, NULL);
    }
    json_decref(value);
}

static void reply_versions(struct call *c, bool core)
{
    const char *accept = http_request_header(c->http, "Accept");
    if (accept && strstr(accept, "as=APIGroupDiscoveryList"))
        reply_made(c, aggregated_type, apiserver_aggregated_discovery(c->kinds->all, core));
    else
        reply_made(c, "application/json",
                   core ? apiserver_core_versions(c->kinds->all, NULL)
                        : apiserver_group_list(c->kinds->all));
}

static void reply_metrics(struct call *c)
{
    struct str text = {0};
    apiserver_metrics_format(c->server->metrics, &text);
    call_reply_text(c, 200, METRICS_CONTENT_TYPE, &text);
}

void call_description(struct call *c)
{
    const struct apiserver_path *p = &c->path;
    switch (p->asked) {
    case APISERVER_ASKED_HEALTH:
        call_health(c);
        return;
    case APISERVER_ASKED_METRICS:
        reply_metrics(c);
        return;
    case APISERVER_ASKED_VERSION:
        reply_made(c, "application/json", apiserver_version());
        return;
    case APISERVER_ASKED_CORE:
    case APISERVER_ASKED_GROUPS:
        reply_versions(c, p->asked == APISERVER_ASKED_CORE);
        return;
    case APISERVER_ASKED_GROUP:
        reply_made(c, "application/json", apiserver_group(c->kinds->all, p->group));
        return;
    case APISERVER_ASKED_RESOURCES:
        reply_made(c, "application/json",
                   apiserver_resource_list(c->kinds->all, p->gv->group, p->gv->version));
        return;
    case APISERVER_ASKED_OPENAPI_V2:
        call_openapi_v2(c);
        return;
    case APISERVER_ASKED_OPENAPI_V3:
    case APISERVER_ASKED_OPENAPI_V3_DOCUMENT:
        call_openapi_v3(c, p->asked == APISERVER_ASKED_OPENAPI_V3 ? NULL : p->gv);
        return;
    case APISERVER_ASKED_ROOT:
    case APISERVER_ASKED_OBJECTS:
        reply_made(c, NULL, NULL);
        return;
    }
}
