#include "http/options.h"

#include "base/net.h"

enum {
    DEFAULT_THREADS = 2,
    DEFAULT_DEFERRED_THREADS = 64,
    DEFAULT_BODY = 3 << 20,
    DEFAULT_HEADER = 64 << 10,
    LEAST_HEADER = 1024,
    DEFAULT_CONNECTIONS = 1024,
    DEFAULT_STRANGERS_PER_IP = 128,
    DEFAULT_IDLE_SECONDS = 120,
    MOST_THREADS = 256,
};

static int check(const struct http_server_options *o, struct err *e)
{
    if (!o->tls && !net_is_loopback(o->address))
        return err_set(e, ERR_INVALID_ARGUMENT, "PlainHTTPRefused",
                       "plain HTTP is not served on '%s', where others could read and change what "
                       "is sent: use TLS, or a loopback address such as 127.0.0.1",
                       o->address);
    if (o->threads > MOST_THREADS)
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidOption",
                       "an HTTP server cannot have %u threads: write at most %d", o->threads,
                       MOST_THREADS);
    if (o->connections < o->threads)
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidOption",
                       "an HTTP server of %u threads cannot be limited to %u connections: write at "
                       "least one for each thread",
                       o->threads, o->connections);
    if (o->header_bytes < LEAST_HEADER)
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidOption",
                       "an HTTP server cannot live with %zu bytes of headers: write at least %d",
                       o->header_bytes, LEAST_HEADER);
    return 0;
}

int http_options_take(const struct http_server_options *o, struct http_server_options *ret_options,
                      struct err *e)
{
    *ret_options = *o;
    ret_options->address = o->address ? o->address : "127.0.0.1";
    ret_options->threads = o->threads ? o->threads : DEFAULT_THREADS;
    ret_options->deferred_threads =
        o->deferred_threads ? o->deferred_threads : DEFAULT_DEFERRED_THREADS;
    ret_options->body_bytes = o->body_bytes ? o->body_bytes : DEFAULT_BODY;
    ret_options->header_bytes = o->header_bytes ? o->header_bytes : DEFAULT_HEADER;
    ret_options->connections = o->connections ? o->connections : DEFAULT_CONNECTIONS;
    ret_options->strangers_per_ip =
        o->strangers_per_ip ? o->strangers_per_ip : DEFAULT_STRANGERS_PER_IP;
    ret_options->idle_seconds = o->idle_seconds ? o->idle_seconds : DEFAULT_IDLE_SECONDS;
    return check(ret_options, e);
}
