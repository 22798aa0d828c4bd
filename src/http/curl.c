#include "http/curl.h"

#include <dlfcn.h>
#include <pthread.h>

#include "base/mem.h"

#define LIBRARY "libcurl-gnutls.so.4"

static struct http_curl functions;
static bool loaded;
static char problem[256];

static void load(void)
{
    static const struct {
        const char *name;
        void *place;
    } symbols[] = {
        {"curl_global_init", &functions.global_init},
        {"curl_easy_init", &functions.easy_init},
        {"curl_easy_cleanup", &functions.easy_cleanup},
        {"curl_easy_reset", &functions.easy_reset},
        {"curl_easy_setopt", &functions.easy_setopt},
        {"curl_easy_getinfo", &functions.easy_getinfo},
        {"curl_easy_strerror", &functions.easy_strerror},
        {"curl_multi_init", &functions.multi_init},
        {"curl_multi_cleanup", &functions.multi_cleanup},
        {"curl_multi_add_handle", &functions.multi_add_handle},
        {"curl_multi_remove_handle", &functions.multi_remove_handle},
        {"curl_multi_perform", &functions.multi_perform},
        {"curl_multi_poll", &functions.multi_poll},
        {"curl_multi_wakeup", &functions.multi_wakeup},
        {"curl_multi_info_read", &functions.multi_info_read},
        {"curl_slist_append", &functions.slist_append},
        {"curl_slist_free_all", &functions.slist_free_all},
    };
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL); /* for as long as the process lives */
    for (size_t i = 0; library && i < ARRAY_SIZE(symbols); i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol)
            library = NULL;
        else
            memcpy(symbols[i].place, &symbol, sizeof(symbol)); /* no cast from data to function */
    }
    if (library)
        loaded = functions.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    const char *text = library ? "it does not start" : dlerror();
    for (size_t i = 0; !loaded && text && text[i] && i < sizeof(problem) - 1; i++)
        problem[i] = text[i];
}

const struct http_curl *http_curl_load(struct err *e)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (loaded)
        return &functions;
    err_set(e, ERR_UNAVAILABLE, "LibraryMissing",
            "cannot load " LIBRARY ": %s; install libcurl3-gnutls", problem);
    return NULL;
}
