#include "base/base64.h"
#include "base/mem.h"
#include "unit.h"

/* RFC 4648, section 10, and letters in which the two kinds differ. */
static void test_known(void **state)
{
    static const struct {
        const char *bytes, *standard, *url;
    } cases[] = {
        {"", "", ""},
        {"f", "Zg==", "Zg"},
        {"fo", "Zm8=", "Zm8"},
        {"foo", "Zm9v", "Zm9v"},
        {"foob", "Zm9vYg==", "Zm9vYg"},
        {"fooba", "Zm9vYmE=", "Zm9vYmE"},
        {"foobar", "Zm9vYmFy", "Zm9vYmFy"},
        {"\xfb\xff\xbf", "+/+/", "-_-_"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        for (enum base64_kind kind = BASE64_STD; kind <= BASE64_URL; kind++) {
            const char *text = kind == BASE64_STD ? cases[i].standard : cases[i].url;
            _cleanup_(str_done) struct str encoded = {0}, decoded = {0};
            base64_format(cases[i].bytes, strlen(cases[i].bytes), kind, &encoded);
            assert_string_equal(str_get(&encoded), text);
            assert_true(base64_parse(text, strlen(text), kind, &decoded));
            assert_string_equal(str_get(&decoded), cases[i].bytes);
        }
    }
}

static void test_zeros(void **state)
{
    (void)state;
    static const char zeros[5];
    _cleanup_(str_done) struct str encoded = {0}, decoded = {0};
    base64_format(zeros, sizeof(zeros), BASE64_URL, &encoded);
    assert_string_equal(str_get(&encoded), "AAAAAAA");
    assert_true(base64_parse(encoded.p, encoded.len, BASE64_URL, &decoded));
    assert_int_equal(decoded.len, sizeof(zeros));
    assert_memory_equal(decoded.p, zeros, sizeof(zeros));
}

static void test_refused(void **state)
{
    static const struct {
        enum base64_kind kind;
        const char *text;
    } cases[] = {
        {BASE64_STD, "Zg"},        /* no padding */
        {BASE64_STD, "Zg="},       /* half of it */
        {BASE64_STD, "Zg===="},    /* too much */
        {BASE64_STD, "===="},      /* nothing else */
        {BASE64_STD, "Zh=="},      /* bits behind the last byte */
        {BASE64_STD, "Zm9="},      /* likewise */
        {BASE64_STD, "Zg==Zg=="},  /* padding inside */
        {BASE64_STD, "-_-_"},      /* the other alphabet */
        {BASE64_STD, "Zm9v\nZm9"}, /* white space */
        {BASE64_URL, "Zg=="},      {BASE64_URL, "+/+/"}, {BASE64_URL, "Z"},
        {BASE64_URL, "Zm9vZ"},     {BASE64_URL, "Zh"},   {BASE64_URL, "Zm9\x80"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(str_done) struct str s = {0};
        str_append(&s, "before");
        if (base64_parse(cases[i].text, strlen(cases[i].text), cases[i].kind, &s))
            fail_msg("'%s' was taken", cases[i].text);
        assert_string_equal(s.p, "before");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_zeros),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
