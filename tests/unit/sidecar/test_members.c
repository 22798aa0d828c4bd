#include "jsontest.h"
#include "sidecar/sidecar.h"

/*
 * What a target shows, in a line: members as letter and name, H healthy, O offline, R rebuilding, L a learner;
 * guests after a "+". "!" first: it does not serve.
 */
static struct sidecar_shown shown_from(const char *text, const char *operation)
{
    json_t *replicas = json_array(), *guests = json_array();
    bool serving = *text != '!';
    _cleanup_free_ char *copy = mem_strdup(text + !serving);
    char *save = NULL;
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        const char *mode = *word == 'H'   ? "Healthy"
                           : *word == 'O' ? "Offline"
                           : *word == 'R' ? "Rebuilding"
                                          : "NewReplicaDegraded";
        if (*word == '+')
            json_array_append_new(guests, json_pack("{s:s}", "replicaId", word + 1));
        else
            json_array_append_new(replicas, json_pack("{s:s,s:s,s:b}", "replicaId", word + 1,
                                                      "mode", mode, "voter", *word != 'L'));
    }
    struct sidecar_shown shown;
    sidecar_shown_read(json_pack("{s:s,s:[{s:o,s:o,s:b}]}", "operation", operation, "volumeStatus",
                                 "replicaStatus", replicas, "guests", guests, "serving", serving),
                       &shown);
    return shown;
}

static void test_next(void **state)
{
    static const struct {
        const char *name, *shown;
        unsigned wanted;
        const char *next;
    } cases[] = {
        {"nothing to do", "Ha Hb Hc", 3, NULL},
        {"one is away, and nobody is there for it", "Ha Hb Oc", 3, NULL},
        {"somebody is", "Ha Hb Oc +d", 3, "{'command':'add','replica':'d','instead':'c'}"},
        {"one more is wanted and not there", "Ha Hb Hc", 4, NULL},
        {"and is", "Ha Hb Hc +d", 4, "{'command':'add','replica':'d'}"},
        {"more are wanted, and one is away", "Ha Hb Oc +d", 4, "{'command':'add','replica':'d'}"},
        {"a guest that nobody wants", "Ha Hb Hc +d", 3, NULL},
        {"an addition that was interrupted", "Ha Hb Hc Ld", 4, "{'command':'add','replica':'d'}"},
        {"and a replacement", "Ha Hb Oc Ld", 3, "{'command':'add','replica':'d','instead':'c'}"},
        {"one too many: the last", "Ha Hb Hc", 2, "{'command':'remove','replica':'c'}"},
        {"one too many: who is away", "Ha Ob Hc", 2, "{'command':'remove','replica':'b'}"},
        {"one too many, but two are ill", "Ha Ob Rc", 2, NULL},
        {"without a quorum nothing is changed", "!Ha Ob Oc +d", 3, NULL},
        {"there was a volume: it is not made anew", "!+a +b +c", 3, NULL},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(sidecar_shown_done) struct sidecar_shown shown = shown_from(cases[i].shown, "");
        json_auto_t *expected = cases[i].next ? parse_quoted(cases[i].next) : json_null();
        const struct sidecar_wanted wanted = {.replicas = cases[i].wanted, .size = 4096};
        json_t *next = sidecar_next_request(&shown, &wanted);
        json_auto_t *got = next ? next : json_null();
        assert_json(got, expected, cases[i].name);
    }
}

/* An id whose first half is a name of one letter, and whose second half another. */
#define ID(name, data) "00000000-0000-00" name "-0000-0000000000" data

static void test_named(void **state)
{
    static const struct {
        const char *name, *shown;
        unsigned wanted;
        uint64_t leaving; /* 0: nobody is */
        const char *next;
    } cases[] = {
        {"nothing to do", "H" ID("aa", "01") " H" ID("bb", "01"), 2, 0, NULL},
        {"one is away, and another waits",
         "H" ID("aa", "01") " O" ID("bb", "01") " +" ID("cc", "01"), 2, 0, NULL},
        {"its data was lost", "H" ID("aa", "01") " O" ID("bb", "01") " +" ID("bb", "02"), 2, 0,
         "{'command':'add','replica':'" ID("bb", "02") "','instead':'" ID("bb", "01") "'}"},
        {"a twin of one that is there", "H" ID("aa", "01") " H" ID("bb", "01") " +" ID("bb", "02"),
         2, 0, NULL},
        {"one more", "H" ID("aa", "01") " H" ID("bb", "01") " +" ID("cc", "01"), 3, 0,
         "{'command':'add','replica':'" ID("cc", "01") "'}"},
        {"one in the place of another that is well",
         "H" ID("aa", "01") " H" ID("bb", "01") " +" ID("cc", "01"), 2, 0xbb,
         "{'command':'add','replica':'" ID("cc", "01") "'}"},
        {"which goes then", "H" ID("aa", "01") " H" ID("bb", "01") " H" ID("cc", "01"), 2, 0xbb,
         "{'command':'remove','replica':'" ID("bb", "01") "'}"},
        {"and not before", "H" ID("aa", "01") " H" ID("bb", "01") " R" ID("cc", "01"), 2, 0xbb,
         NULL},
        {"in the place of one that is lost",
         "H" ID("aa", "01") " O" ID("bb", "01") " +" ID("cc", "01"), 2, 0xbb,
         "{'command':'add','replica':'" ID("cc", "01") "','instead':'" ID("bb", "01") "'}"},
        {"that was interrupted", "H" ID("aa", "01") " O" ID("bb", "01") " L" ID("cc", "01"), 2,
         0xbb, "{'command':'add','replica':'" ID("cc", "01") "','instead':'" ID("bb", "01") "'}"},
        {"who has left waits in vain", "H" ID("aa", "01") " H" ID("cc", "01") " +" ID("bb", "01"),
         3, 0xbb, NULL},
        {"fewer, and the last that leaves is lost", "H" ID("aa", "01") " O" ID("bb", "01"), 1, 0xbb,
         "{'command':'remove','replica':'" ID("bb", "01") "'}"},
        {"fewer, while one that stays is ill", "R" ID("aa", "01") " H" ID("bb", "01"), 1, 0xbb,
         NULL},
        {"who was coming in is to leave", "H" ID("aa", "01") " L" ID("bb", "01"), 1, 0xbb,
         "{'command':'remove','replica':'" ID("bb", "01") "'}"},
        {"nobody says who: nobody goes", "H" ID("aa", "01") " H" ID("bb", "01"), 1, 0, NULL},
        {"without a quorum nothing is changed",
         "!H" ID("aa", "01") " O" ID("bb", "01") " +" ID("cc", "01"), 2, 0xbb, NULL},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(sidecar_shown_done) struct sidecar_shown shown = shown_from(cases[i].shown, "");
        json_auto_t *expected = cases[i].next ? parse_quoted(cases[i].next) : json_null();
        const struct sidecar_wanted wanted = {.named = true,
                                              .replicas = cases[i].wanted,
                                              .leaving = {cases[i].leaving},
                                              .leaving_n = cases[i].leaving != 0};
        json_t *next = sidecar_next_request(&shown, &wanted);
        json_auto_t *got = next ? next : json_null();
        assert_json(got, expected, cases[i].name);
    }
}

static void test_create_and_wait(void **state)
{
    (void)state;
    _cleanup_(sidecar_shown_done) struct sidecar_shown shown = shown_from("!+a", ""),
                                                       busy = shown_from("Ha Hb Oc +d", "Scrub");
    const struct sidecar_wanted wanted = {.create = true, .replicas = 3, .size = 8192};
    json_auto_t *expected = parse_quoted("{'command':'create','size':8192,'replicas':3}");
    json_auto_t *got = sidecar_next_request(&shown, &wanted);
    assert_json(got, expected, "a volume that never was is made");
    assert_null(sidecar_next_request(&busy, &wanted));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_next),
        cmocka_unit_test(test_named),
        cmocka_unit_test(test_create_and_wait),
    };
    return cmocka_run_group_tests_name("members", tests, NULL, NULL);
}
