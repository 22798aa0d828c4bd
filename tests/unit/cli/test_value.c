/* Options: from their texts to the members of a settings struct, and what a row must be. */
#include <stdio.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "unit.h"

struct settings {
    bool yes, flag;
    const char *text, *word, *size_text;
    uint16_t port;
    int health;
    unsigned count, word_at;
    int64_t time;
    uint64_t size;
    struct cli_list list;
};

#define AT(m) CLI_AT(struct settings, m)

enum { FLAG, YES, TEXT, PORT, HEALTH, COUNT, TIME, SECONDS, SIZE, SIZE_TEXT, WORD, WORD_AT };

static const struct cli_option options[] = {
    [FLAG] = {"flag", 'f', NULL, CLI_SWITCH, AT(flag), .doc = "A switch."},
    [YES] = {"yes", 0, NULL, CLI_BOOL, AT(yes), .doc = "A bool."},
    [TEXT] = {"text", 0, "TEXT", CLI_STRING, AT(text), .doc = "A text."},
    [PORT] = {"port", 0, "PORT", CLI_INT, AT(port), .most = UINT16_MAX, .doc = "A port."},
    [HEALTH] = {"health", 0, "PORT", CLI_INT, AT(health), .most = UINT16_MAX, .off = "off",
                .doc = "A port or none."},
    [COUNT] = {"count", 0, "N", CLI_INT, AT(count), .least = 1, .most = 9, .doc = "A number."},
    [TIME] = {"time", 0, "TIME", CLI_DURATION, AT(time), .least = CLOCK_SECOND, .doc = "A time."},
    [SECONDS] = {"seconds", 0, "TIME", CLI_SECONDS, AT(time), .doc = "A time."},
    [SIZE] = {"size", 0, "SIZE", CLI_SIZE, AT(size), .least = 512, .doc = "A size."},
    [SIZE_TEXT] = {"size-text", 0, "SIZE", CLI_SIZE, AT(size_text), .doc = "A size."},
    [WORD] = {"word", 0, "WORD", CLI_ENUM, AT(word), .choices = CLI_WORDS("a", "b"),
              .doc = "A word."},
    [WORD_AT] = {"word-at", 0, "WORD", CLI_ENUM, AT(word_at), .choices = CLI_WORDS("a", "b"),
                 .implied = "b", .doc = "A word."},
    {0},
};

static void test_refused_values_say_what_to_write(void **state)
{
    (void)state;
    static const struct {
        int option;
        const char *text, *message;
    } table[] = {
        {YES, "perhaps", "'perhaps' is not true or false"},
        {PORT, "65536", "'65536' is not a number from 0 to 65535"},
        {PORT, "-1", "'-1' is not a number from 0 to 65535"},
        {PORT, "80x", "'80x' is not a number from 0 to 65535"},
        {PORT, "", "'' is not a number from 0 to 65535"},
        {PORT, "99999999999999999999999",
         "'99999999999999999999999' is not a number from 0 to 65535"},
        {HEALTH, "on", "'on' is not a number from 0 to 65535, or off"},
        {COUNT, "0", "'0' is not a number from 1 to 9"},
        {TIME, "5", "'5' has no unit; write 5s"},
        {TIME, "soon", "'soon' is not a duration; write one like 15s, 1m30s or 500ms"},
        {TIME, "5 s", "'5 s' is not a duration; write one like 15s, 1m30s or 500ms"},
        {TIME, "", "'' is not a duration; write one like 15s, 1m30s or 500ms"},
        {TIME, "500ms", "'500ms' is too short; write at least 1s"},
        {TIME, "9999999999999d",
         "'9999999999999d' is not a duration; write one like 15s, 1m30s or 500ms"},
        {SIZE, "1", "'1' is too small; write at least 512"},
        {SIZE, "-1Gi", "\"-1Gi\" is negative: write a size of zero or more, such as 10Gi"},
        {WORD, "c", "'c' is none of a, b"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct settings s = {0}, before = {0};
        struct err e = {0};
        assert_int_equal(cli_value_set(&options[table[i].option], table[i].text, &s, &e), -1);
        assert_string_equal(e.msg, table[i].message);
        assert_memory_equal(&s, &before, sizeof(s));
    }
}

static void set(int option, const char *text, struct settings *s)
{
    struct err e = {0};
    if (cli_value_set(&options[option], text, s, &e) < 0)
        fail_msg("%s: %s", text, e.msg);
}

static void test_durations(void **state)
{
    (void)state;
    static const struct {
        int option;
        const char *text;
        int64_t ns;
    } table[] = {
        {TIME, "15s", 15 * CLOCK_SECOND},
        {TIME, "1m30s", 90 * CLOCK_SECOND},
        {TIME, "1.5s", 3 * CLOCK_SECOND / 2},
        {TIME, "2h", 7200 * CLOCK_SECOND},
        {TIME, "30d", 30 * 86400 * CLOCK_SECOND},
        {SECONDS, "500ms", CLOCK_SECOND / 2},
        {SECONDS, "60", 60 * CLOCK_SECOND},
        {SECONDS, "0.5", CLOCK_SECOND / 2},
        {SECONDS, "0", 0},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct settings s = {.time = -1};
        set(table[i].option, table[i].text, &s);
        assert_int_equal(s.time, table[i].ns);
    }
}

static void test_values_fill_their_members(void **state)
{
    (void)state;
    struct settings s = {0};
    set(FLAG, NULL, &s);
    set(YES, NULL, &s);
    set(TEXT, "x", &s);
    set(PORT, "6443", &s);
    set(HEALTH, "off", &s);
    set(SIZE, "4Ki", &s);
    set(SIZE_TEXT, "10Gi", &s);
    set(WORD, "b", &s);
    set(WORD_AT, NULL, &s);
    assert_true(s.flag);
    assert_true(s.yes);
    set(YES, "false", &s);
    assert_false(s.yes);
    assert_string_equal(s.text, "x");
    assert_int_equal(s.port, 6443);
    assert_int_equal(s.health, -1);
    assert_int_equal(s.size, 4096);
    assert_string_equal(s.size_text, "10Gi");
    assert_string_equal(s.word, "b");
    assert_int_equal(s.word_at, 1);
}

static void test_lists_keep_their_order_across_options(void **state)
{
    (void)state;
    static const struct cli_option lists[] = {
        {"split", 0, "A,...", CLI_LIST, AT(list), .doc = "Words."},
        {"whole", 0, "A", CLI_ITEMS, AT(list), .doc = "Texts."},
        {0},
    };
    struct settings s = {0};
    struct err e = {0};
    cli_value_set(&lists[0], "a,,b,", &s, &e);
    cli_value_set(&lists[1], "c,d", &s, &e);
    cli_value_set(&lists[0], "e", &s, &e);
    assert_int_equal(s.list.len, 4);
    static const char *const want[][2] = {
        {"split", "a"}, {"split", "b"}, {"whole", "c,d"}, {"split", "e"}};
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(s.list.options[i], want[i][0]);
        assert_string_equal(s.list.p[i], want[i][1]);
    }
    assert_null(s.list.p[4]);
    cli_values_done(lists, &s);
    assert_null(s.list.p);
}

static int run_nothing(const struct cli_args *args)
{
    (void)args;
    return 0;
}

static void test_a_wrong_row_is_found(void **state)
{
    (void)state;
    static const struct {
        struct cli_option option;
        const char *message;
    } table[] = {
        {{"a", 0, "N", CLI_INT, AT(text), .most = 1, .doc = "X."},
         "test --a: the member does not fit the type"},
        {{"a", 0, "N", CLI_INT, AT(port), .most = 65536, .doc = "X."},
         "test --a: the member does not fit the type"},
        {{"a", 0, "N", CLI_INT, AT(health), .doc = "X."},
         "test --a: the member does not fit the type"},
        {{"a", 0, "T", CLI_DURATION, AT(count), .doc = "X."},
         "test --a: the member does not fit the type"},
        {{"a", 0, "W", CLI_ENUM, AT(word), .doc = "X."},
         "test --a: the member does not fit the type"},
        {{"a", 0, NULL, CLI_STRING, AT(text), .doc = "X."}, "test --a: the value has no name"},
        {{"a", 0, NULL, CLI_SWITCH, AT(flag), .doc = "X"}, "test --a: the doc is no sentence"},
        {{"a", 0, "N", CLI_INT, AT(count), .most = 9, .def = "10", .doc = "X."},
         "test --a: '10' is not a number from 0 to 9"},
        {{"a", 0, "N", CLI_INT, AT(count), .most = 9, .def = "9", .doc = "X."}, NULL},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        const struct cli_option row[] = {table[i].option, {0}};
        const struct cli_command command = {.name = "test",
                                            .summary = "Test",
                                            .doc = "Tests.",
                                            .settings = sizeof(struct settings),
                                            .options = row,
                                            .run = run_nothing};
        struct err e = {0};
        assert_int_equal(cli_check(&command, &e), table[i].message ? -1 : 0);
        if (table[i].message)
            assert_string_equal(e.msg, table[i].message);
    }
    const struct cli_command all = {.name = "test",
                                    .summary = "Test",
                                    .doc = "Tests.",
                                    .settings = sizeof(struct settings),
                                    .options = options,
                                    .run = run_nothing};
    struct err e = {0};
    assert_int_equal(cli_check(&all, &e), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_values_say_what_to_write),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_values_fill_their_members),
        cmocka_unit_test(test_lists_keep_their_order_across_options),
        cmocka_unit_test(test_a_wrong_row_is_found),
    };
    return cmocka_run_group_tests_name("cli/value", tests, NULL, NULL);
}
