#include "jsontest.h"
#include "kube/template.h"

static json_t *values(void)
{
    return parse_quoted(
        "{'name':'v','n':3,'yes':true,'no':false,'list':[1,{'a':2}],'map':{'k':'v'},"
        "'evil':'x: [1]\\n- y','quote':'\\u0022}','none':null,'nothing':[]}");
}

/* What a template becomes. */
static void test_fill(void **state)
{
    static const struct {
        const char *template, *becomes;
    } cases[] = {
        {"a: plain\nb: 1\nc: [x, null]\n", "{'a':'plain','b':1,'c':['x',null]}"},
        {"a: ${name}-svc\n", "{'a':'v-svc'}"},
        {"a: ${name}:${n}/${name}\n", "{'a':'v:3/v'}"},
        {"a: ${n}\nb: ${yes}\nc: ${map}\n", "{'a':3,'b':true,'c':{'k':'v'}}"},
        {"a: ${none}\n", "{'a':null}"},
        {"a: $(POD_IP)\nb: $name\n", "{'a':'$(POD_IP)','b':'$name'}"},
        /* left out */
        {"a: ${missing?}\nb: ${name?}\n", "{'b':'v'}"},
        {"a:\n- x\n- ${missing?}\n- ${name?}\n", "{'a':['x','v']}"},
        /* lists */
        {"a:\n- x\n- ${list...}\n- ${missing...}\n- w\n", "{'a':['x',1,{'a':2},'w']}"},
        {"a:\n- ${nothing...}\n", "{'a':[]}"},
        {"a:\n- $when: yes\n  $items: [\"${name}\", z]\n- $when: no\n  $items: [u]\n", NULL},
        {"a:\n- $when: \"yes\"\n  $items: [\"${name}\", z]\n- $when: \"no\"\n  $items: [u]\n"
         "- $when: missing\n  $items: [\"${nowhere}\"]\n",
         "{'a':['v','z']}"},
        /* a value is a value, whatever it looks like */
        {"a: ${evil}\nb: -${evil}\n", "{'a':'x: [1]\\n- y','b':'-x: [1]\\n- y'}"},
        {"a: {b: \"${quote}\"}\n", "{'a':{'b':'\\u0022}'}}"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct kube_template t = {"x.yaml", cases[i].template};
        struct err e = {0};
        json_auto_t *given = values(), *got = kube_template_fill(&t, given, &e);
        if (!cases[i].becomes) { /* YAML's own yes is no name */
            assert_null(got);
            continue;
        }
        if (!got)
            fail_msg("%s: %s", cases[i].template, e.msg);
        json_auto_t *expected = parse_quoted(cases[i].becomes);
        assert_json(got, expected, cases[i].template);
    }
}

/* A mistake in a template or in its values says the file and the line. */
static void test_mistakes(void **state)
{
    static const struct {
        const char *template, *message;
    } cases[] = {
        {"a: 1\nb: ${missing}\n", "x.yaml, line 2: no value is given for it: ${missing}"},
        {"a: 1\nb:\n  c:\n  - d\n  - e-${missing}\n",
         "x.yaml, line 5: no value is given for it: ${missing}"},
        {"a: ${}\n", "x.yaml, line 1: write a name of letters and digits: ${}"},
        {"a: ${name\n", "x.yaml, line 1: write a name of letters and digits: ${name}"},
        {"a: x${na me}\n", "x.yaml, line 1: write a name of letters and digits: ${na me}"},
        {"a: x${name?}\n", "x.yaml, line 1: within a text every value is needed: ${name}"},
        {"a: x${map}\n", "x.yaml, line 1: within a text a string or an integer is needed: ${map}"},
        {"a: ${list...}\n", "x.yaml, line 1: \"...\" stands in lists only: ${list}"},
        {"a:\n- ${name...}\n", "x.yaml, line 2: a list is needed: ${name}"},
        {"a:\n- $when: name\n", "x.yaml, line 2: an item has $when with a name"},
        {"$when: name\n", "x.yaml, line 1: $when stands in lists only"},
        {"- a\n", "x.yaml: holds no object"},
        {"", "x.yaml: holds no object"},
        {"a: [\n", "x.yaml: "},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct kube_template t = {"x.yaml", cases[i].template};
        struct err e = {0};
        json_auto_t *given = values(), *got = kube_template_fill(&t, given, &e);
        assert_null(got);
        if (!strstr(e.msg, cases[i].message))
            fail_msg("%s: %s", cases[i].template, e.msg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fill),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests_name("template", tests, NULL, NULL);
}
