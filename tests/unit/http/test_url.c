#include "base/mem.h"
#include "http/url.h"
#include "unit.h"

static void test_urls(void **state)
{
    (void)state;
    static const struct {
        const char *text, *host, *target; /* host NULL: refused */
        unsigned port;
        bool tls;
    } table[] = {
        {"http://a", "a", "", 80, false},
        {"HTTPS://a.b-c_d", "a.b-c_d", "", 443, true},
        {"https://a:6443/x/y?z=%20#there", "a", "/x/y?z=%20", 6443, true},
        {"http://a?q", "a", "?q", 80, false},
        {"http://a#f", "a", "", 80, false},
        {"http://127.0.0.1:1/", "127.0.0.1", "/", 1, false},
        {"https://[::1]:65535/", "::1", "/", 65535, true},
        {"https://[2001:db8::1]", "2001:db8::1", "", 443, true},
        {""},
        {"a"},
        {"/a"},
        {"ftp://a/"},
        {"http:/a"},
        {"http://"},
        {"http:///a"},
        {"http://:80/"},
        {"http://a:/"},
        {"http://a:0/"},
        {"http://a:65536/"},
        {"http://a:999999999/"},
        {"http://a:8x/"},
        {"http://a:-1/"},
        {"http://user@a/"},
        {"http://user:secret@a/"},
        {"http://a b/"},
        {"http://a/b c"},
        {"http://a/\r\nHost: b"},
        {"http://a\r\n/"},
        {"http://[::1"},
        {"http://[1.2.3.4]/"},
        {"http://[x]/"},
        {"http://[]/"},
        {"http://::1/"},
        {"http://a%41/"},
        {"http://a\\b/"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct http_url u;
        struct err e = {0};
        int status = http_url_parse(table[i].text, &u, &e);
        if ((status == 0) != (table[i].host != NULL))
            fail_msg("%s: %d %s", table[i].text, status, e.msg);
        if (status < 0) {
            assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
            continue;
        }
        assert_string_equal(u.host, table[i].host);
        assert_int_equal(u.port, table[i].port);
        assert_int_equal(u.tls, table[i].tls);
        assert_int_equal(u.target_size, strlen(table[i].target));
        assert_memory_equal(u.target, table[i].target, u.target_size);
    }
}

static void test_longest_host(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        char text[300] = "http://";
        struct http_url u;
        memset(text + 7, 'a', sizeof(u.host) - 1 + (size_t)more);
        assert_int_equal(http_url_parse(text, &u, NULL), more ? -1 : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_urls),
        cmocka_unit_test(test_longest_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
