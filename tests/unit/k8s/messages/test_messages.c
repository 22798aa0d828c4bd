/* Tables of kinds and messages: what both say of a field must be the same. */
#include "api/message.h"
#include "unit.h"

enum { DEEPEST = 20, PATH = 500 };

/* What a table has and the message has not, by the end of the path. */
static bool is_excused(const char *path)
{
    static const char *const ends[] = {
        ".lastProbeTime", /* tables have one condition for all kinds */
        ".lastUpdateTime",
        ".observedGeneration",
        ".volumeClaimTemplates.apiVersion", /* a claim is one without being asked */
        ".volumeClaimTemplates.kind",
        "Ref.fieldPath", /* and one reference */
        "Ref.resourceVersion",
        "Ref.uid",
        "Ref.apiVersion",
        "Ref.kind",
        ".dataSource.namespace",    /* which dataSourceRef has */
        ".volumeClaimUpdatePolicy", /* KEP-0661, not in Kubernetes yet */
        ".disruptedPods",           /* a map of times, which messages cannot say */
    };
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        if (str_ends_with(path, ends[i]))
            return true;
    }
    return false;
}

static void compare(const struct api_field *fields, const struct api_message_field *message,
                    const char *at, unsigned depth)
{
    assert_true(depth < DEEPEST);
    for (const struct api_field *f = fields; f && f->name; f++) {
        char path[PATH];
        snprintf(path, sizeof(path), "%s.%s", at, f->name);
        const struct api_message_field *member = api_message_member(message, f->name);
        if (!depth && (str_eq(f->name, "apiVersion") || str_eq(f->name, "kind")))
            continue;
        if (!member) {
            if (!is_excused(path))
                fail_msg("%s is not in the message", path);
            continue;
        }
        struct api_field other = api_message_as_field(member);
        if (other.shape != f->shape || (other.type != f->type && f->type != API_ANY))
            fail_msg("%s has another type in the message", path);
        if (member->fields)
            compare(f->fields, member->fields, path, depth + 1);
    }
}

static void test_tables_agree(void **state)
{
    (void)state;
    unsigned n = 0;
    for (const struct api_kind *const *kind = api_kinds; *kind; kind++) {
        const struct api_message_field *message = api_kind_message(*kind);
        if (message) {
            compare((*kind)->fields, message, (*kind)->kind, 0);
            n++;
        }
        assert_true(!message || (*kind)->flags & API_BUILTIN);
    }
    assert_true(n > 35);
}

/* A name or a number twice would hide a field. */
static void check_once(const struct api_message_field *whole,
                       const struct api_message_field *message, const char *at, unsigned depth)
{
    assert_true(depth < DEEPEST);
    for (const struct api_message_field *m = message; m->number; m++) {
        char path[PATH];
        snprintf(path, sizeof(path), "%s.%s", at, m->name);
        if (m->kind != API_MESSAGE_INLINE && api_message_member(whole, m->name) != m)
            fail_msg("%s is there twice", path);
        for (const struct api_message_field *o = message; o < m; o++) {
            if (o->number == m->number)
                fail_msg("%s has the number of %s", path, o->name);
        }
        if (m->kind == API_MESSAGE_INLINE)
            check_once(whole, m->fields, at, depth + 1);
        else if (m->fields)
            check_once(m->fields, m->fields, path, depth + 1);
    }
}

static void test_once(void **state)
{
    (void)state;
    for (const struct api_kind *const *kind = api_kinds; *kind; kind++) {
        const struct api_message_field *message = api_kind_message(*kind);
        if (message)
            check_once(message, message, (*kind)->kind, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_agree),
        cmocka_unit_test(test_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
