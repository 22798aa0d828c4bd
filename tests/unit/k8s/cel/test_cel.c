#include <stdio.h>

#include "k8s/cel/cel.h"
#include "unit.h"

static const char object[] =
    "{\"metadata\":{\"name\":\"x\",\"labels\":{\"app\":\"web\",\"a.b/c\":\"d\"},\"n\":null},"
    "\"spec\":{\"replicas\":3,\"half\":2.5,\"list\":[\"a\",\"b\"],\"on\":true,\"text\":\"\xc3\xa4"
    "bc\",\"big\":\"10Gi\",\"port\":8080,\"nums\":[3,1,2]}}";
static const struct cel_variable variables[] = {
    {"object", &cel_decls[CEL_DYN]}, {"old", &cel_decls[CEL_DYN]}, {0}};

static int test(const char *text, bool *ret_result, struct err *e)
{
    _cleanup_(cel_program_freep) struct cel_program *p = cel_compile(text, variables, CEL_DYN, e);
    if (!p)
        return -1;
    json_auto_t *o = json_parse(object, sizeof(object) - 1, NULL, NULL);
    assert_non_null(o);
    return cel_test(p, (const struct cel_input[]){{.json = o}, {0}}, NULL, ret_result, e);
}

/* Expressions that are true. */
static void test_true(void **state)
{
    (void)state;
    static const char *const table[] = {
        "true",
        "!false // a comment",
        "! ! !false",
        "1 == 1 && 1 != 2",
        "-1 < 0 && - 1 == -1 && --1 == 1 && -(1) == -1",
        "9223372036854775807 > -9223372036854775808",
        "0x10 == 16 && -0xf == -15 && 0xFFu == 255u",
        "1.5e3 == 1500.0 && .5 == 0.5 && 1e-3 == 0.001",
        "'a' == \"a\" && 'a\\'b' == \"a'b\" && r'a\\n' == 'a\\\\n' && R\"\\d\" == '\\\\d'",
        "'\\x41\\u00e4\\U0001F600\\101' == 'A\xc3\xa4\xf0\x9f\x98\x80"
        "A'",
        "\"\"\"a\"b\"\"\" == 'a\"b' && \"\"\"a\nb\"\"\" == 'a\\nb' && r\"\"\"\\n\"\"\" == '\\\\n'",
        "b'abc' == bytes('abc') && b'\\xff'.size() == 1 && br'\\n' == b'\\\\n' && "
        "size(b'\xc3\xa4') == 2",
        "dyn('1') != dyn(1)",
        "null == old && null == null",
        "dyn(object) != null",
        "'b' > 'a' && 'a' <= 'a' && 'ab' > 'a' && b'b' > b'a' && true > false",
        "object.metadata.name == 'x' && object.metadata['name'] == 'x'",
        "object.metadata.labels['a.b/c'] == 'd'",
        "'app' in object.metadata.labels && !('nothing' in object.metadata.labels)",
        "3 in [1, 2, 3,] && !(3 in []) && 1.0 in dyn([1, 2]) && 1 in {1: 'a'}",
        "has(object.metadata.labels) && !has(object.metadata.annotations) && "
        "has(object.metadata.n)",
        "has({'a': 1}.a) && !has({'a': 1}.b)",
        "size('\xc3\xa4') == 1 && object.spec.text.size() == 3 && size([1]) == 1 && {1: 2}.size() "
        "== 1",
        "object.spec.list[1] == 'b' && [1, 2][1] == 2 && {'a': {'b': 1}}.a.b == 1 && {1: 'x'}[1] "
        "== 'x'",
        "[1, 2][dyn(1.0)] == 2 && {true: 1}[true] == 1 && {1u: 'x'}[dyn(1)] == 'x'",
        "object.spec.half > 2.0 && object.spec.half > 2 && object.spec.replicas < 3.5 && 1 < 1.5 "
        "&& 1u < 2 && -1 < 0u",
        "9007199254740993 > 9007199254740992.0 && 18446744073709551615u > 1.0",
        "dyn(1) == dyn(1.0) && dyn(1) == dyn(1u) && dyn(1u) != dyn(1.5)",
        "double('NaN') != double('NaN') && !(double('NaN') < 1.0) && 1.0 / 0.0 == double('inf')",
        "object.spec.on ? true : false",
        "false ? false : true ? true : false",
        "(true ? 'a' : 'b') == 'a'",
        "object.spec.list == ['a', 'b'] && {'a': [1]} == {'a': [1]} && {'a': 1, 'b': 2} == {'b': "
        "2, 'a': 1} && [1] != [1, 2]",
        "object.spec.list.exists(x, x == 'b') && !object.spec.list.all(x, x == 'b') && [1, 2, "
        "2].exists_one(x, x == 1)",
        "![1, 2, 2].exists_one(x, x == 2) && [].all(x, false) && ![].exists(x, true)",
        "object.metadata.labels.exists(k, k.startsWith('a.')) && object.metadata.labels.all(k, "
        "object.metadata.labels[k] != '')",
        "[[1], [2]].all(x, x.exists(y, y == 2 || y == 1))",
        "[1].exists(object, object == 1)",
        "[1, 2, 3].map(x, x * 2) == [2, 4, 6] && [1, 2, 3].map(x, x > 1, x * 2) == [4, 6] && {'a': "
        "1}.map(k, k) == ['a']",
        "[1, 2, 3].filter(x, x > 1) == [2, 3] && {'a': 1, 'b': 2}.filter(k, k > 'a') == ['b']",
        "['a', 'b'].all(i, v, i < 2 && v <= 'b') && {'a': 1}.exists(k, v, k == 'a' && v == 1) && "
        "[5].existsOne(i, v, i == 0 && v == 5)",
        "[1, 2].transformList(i, v, i + v) == [1, 3] && {'a': 1}.transformMap(k, v, v + 1) == "
        "{'a': 2}",
        "['bb', 'a'].sortBy(x, size(x)) == ['a', 'bb']",
        "dyn(object.nothing) || true",
        "true || object.nothing",
        "!(object.nothing && false)",
        "!(false && object.nothing)",
        "[1, 2].exists(x, x == 2 || 1 / (x - 1) > 5)",
        "![1, 2].all(x, 1 / (x - 1) > 5)",
        "true || false && false",
        "(true || false) == true",
        "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 7 / 2 == 3 && -7 / 2 == -3 && -7 % 2 == -1 && 7u % "
        "4u == 3u && 1.5 + 1.5 == 3.0",
        "10 - 4 - 3 == 3 && 'a' + 'b' == 'ab' && [1] + [2] == [1, 2] && b'a' + b'b' == b'ab' && "
        "-object.spec.half == -2.5",
        "'abc'.startsWith('ab') && 'abc'.endsWith('bc') && 'abc'.contains('b') && "
        "'abc'.contains('') && !'abc'.contains('x')",
        "'abc'.matches('^a.c$') && !'abc'.matches('x') && matches('abc', 'b') && 'abc'.matches('a' "
        "+ 'b')",
        "'\xc3\x84"
        "b'.lowerAscii() == '\xc3\x84"
        "b' && 'AbC'.lowerAscii() == 'abc' && 'aBc'.upperAscii() == 'ABC'",
        "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'abc'.split('') == ['a', 'b', 'c'] && "
        "''.split(',') == [''] && 'a,b,c'.split(',', 2) == ['a', 'b,c'] && 'a'.split(',', 0) == []",
        "['a', 'b'].join() == 'ab' && ['a', 'b'].join('-') == 'a-b' && dyn([]).join('-') == ''",
        "'hello'.replace('l', 'L') == 'heLLo' && 'hello'.replace('l', 'L', 1) == 'heLlo' && "
        "'ab'.replace('', '-') == '-a-b-'",
        "'tacocat'.substring(4) == 'cat' && 'tacocat'.substring(0, 4) == 'taco' && "
        "'\xc3\xa4\xc3\xb6\xc3\xbc'.substring(1, 2) == '\xc3\xb6' && 'a'.substring(1) == ''",
        "'  \\tx y\\n '.trim() == 'x y' && ' '.trim() == ''",
        "'hell\xc3\xb6 mellow'.indexOf('mello') == 6 && 'abc'.indexOf('') == 0 && "
        "'abab'.indexOf('ab', 1) == 2 && 'abc'.indexOf('x') == -1",
        "'abab\xc3\xa4'.lastIndexOf('ab') == 2 && 'abab'.lastIndexOf('ab', 1) == 0 && "
        "'abc'.lastIndexOf('') == 3 && 'a'.lastIndexOf('abc') == -1",
        "'h\xc3\xa4llo'.charAt(1) == '\xc3\xa4' && 'a'.charAt(1) == ''",
        "'abc 123'.find('[0-9]+') == '123' && 'abc'.find('x') == '' && '123 abc "
        "456'.findAll('[0-9]+') == ['123', '456'] && '1 2 3'.findAll('[0-9]', 2) == ['1', '2'] && "
        "'ab'.findAll('x*').size() == 3",
        "strings.quote('a\"b\\n') == '\"a\\\\\"b\\\\n\"'",
        "'%s is %d, %.2f, %x %X %o %b'.format(['a', 3, 2.5, 255, 255, 8, 5]) == 'a is 3, 2.50, ff "
        "FF 10 101'",
        "'%s %s %s %s %%'.format([[1, 2], {'b': 1, 'a': 2}, true, null]) == '[1, 2] {a: 2, b: 1} "
        "true null %'",
        "'%s %s'.format([duration('90s'), timestamp('2026-01-02T03:04:05Z')]) == '90s "
        "2026-01-02T03:04:05Z'",
        "[1, 2, 2].isSorted() && ![2, 1].isSorted() && ['a', 'b'].isSorted() && [].isSorted() && "
        "[duration('1s'), duration('1m')].isSorted()",
        "[1, 2, 3].sum() == 6 && [1.5, 2.5].sum() == 4.0 && [duration('1m'), duration('1s')].sum() "
        "== duration('61s') && dyn([]).sum() == 0",
        "[3, 1, 2].min() == 1 && [3, 1, 2].max() == 3 && ['b', 'a'].min() == 'a' && "
        "object.spec.nums.max() == 3",
        "[1, 2, 2].indexOf(2) == 1 && [1, 2, 2].lastIndexOf(2) == 2 && ['a'].indexOf('b') == -1",
        "[1, 2, 3, 4].slice(1, 3) == [2, 3] && [[1], [2]].flatten() == [1, 2] && [[[1]], "
        "[[2]]].flatten(2) == [1, 2] && [1, 2, 1].distinct() == [1, 2] && [1, 2].reverse() == [2, "
        "1] && [2, 1].sort() == [1, 2] && lists.range(3) == [0, 1, 2]",
        "sets.contains([1, 2], [2]) && sets.equivalent([1, 2], [2, 1, 1]) && sets.intersects([1], "
        "[1, 2]) && !sets.intersects([1], [])",
        "int('42') == 42 && int(42u) == 42 && int(-2.9) == -2 && int(timestamp(5)) == 5 && "
        "int('-0') == 0",
        "uint('42') == 42u && uint(42) == 42u && uint(2.9) == 2u",
        "double('1.5') == 1.5 && double(2) == 2.0 && double(2u) == 2.0",
        "string(1) == '1' && string(1u) == '1' && string(2.5) == '2.5' && string(1.0) == '1' && "
        "string(1e21) == '1e+21' && string(true) == 'true' && string(b'abc') == 'abc' && "
        "string(0.1) == '0.1' && string(100000.0) == '100000'",
        "bool('true') && !bool('0') && bytes('\xc3\xa4') == b'\xc3\xa4'",
        "string(timestamp('2026-01-02T03:04:05.120Z')) == '2026-01-02T03:04:05.12Z' && "
        "string(duration('1.5s')) == '1.5s' && string(duration('-1h')) == '-3600s'",
        "type(1) == int && type(1u) == uint && type(1.0) == double && type('') == string && "
        "type(b'') == bytes && type(true) == bool && type([]) == list && type({}) == map && "
        "type(null) == null_type && type(int) == type",
        "type(timestamp(0)) == google.protobuf.Timestamp && type(duration('0')) == "
        "google.protobuf.Duration && type(object.spec.port) == int",
        "duration('1h') > duration('59m') && duration('1h') + duration('30m') == duration('90m') "
        "&& duration('1h') - duration('30m') == duration('30m')",
        "duration('1h30m').getMinutes() == 90 && duration('3661s').getHours() == 1 && "
        "duration('1.5s').getSeconds() == 1 && duration('1.5s').getMilliseconds() == 1500",
        "timestamp('2026-01-02T03:04:05Z') < timestamp('2026-01-02T03:04:06Z') && "
        "timestamp('2026-01-02T00:00:00Z') - timestamp('2026-01-01T00:00:00Z') == duration('24h')",
        "timestamp('2026-01-01T00:00:00Z') + duration('24h') == timestamp('2026-01-02T00:00:00Z') "
        "&& duration('1h') + timestamp(0) == timestamp(3600) && timestamp(3600) - duration('1h') "
        "== timestamp(0)",
        "timestamp('2026-03-01T23:04:05.678Z').getFullYear() == 2026 && "
        "timestamp('2026-03-01T23:04:05.678Z').getMonth() == 2 && "
        "timestamp('2026-03-01T23:04:05.678Z').getDate() == 1 && "
        "timestamp('2026-03-01T23:04:05.678Z').getDayOfMonth() == 0",
        "timestamp('2026-03-01T23:04:05.678Z').getDayOfWeek() == 0 && "
        "timestamp('2026-03-01T23:04:05.678Z').getDayOfYear() == 59 && "
        "timestamp('2026-03-01T23:04:05.678Z').getHours() == 23 && "
        "timestamp('2026-03-01T23:04:05.678Z').getMilliseconds() == 678",
        "timestamp('2026-03-01T23:04:05Z').getHours('+02:00') == 1 && "
        "timestamp('2026-03-01T23:04:05Z').getDate('-23:30') == 28 && "
        "timestamp(0).getMinutes('UTC') == 0",
        "quantity('10Gi').isGreaterThan(quantity('5Gi')) && "
        "quantity('1k').compareTo(quantity('1000')) == 0 && "
        "quantity('1').isLessThan(quantity('2')) && quantity(object.spec.big).asInteger() == "
        "10737418240",
        "quantity('50k').add(20) == quantity('50020') && quantity('50k').sub(quantity('20k')) == "
        "quantity('30k') && quantity('50k').add(20).sub(quantity('100k')).sub(-50000) == "
        "quantity('20')",
        "isQuantity('1.3Gi') && !isQuantity('200K') && !isQuantity('Mi') && "
        "quantity('1.5').isInteger() == false && quantity('500m').asApproximateFloat() == 0.5 && "
        "quantity('-1').sign() == -1 && string(quantity('1024Mi')) == '1Gi'",
        "url('https://user@example.com:80/a%20b?k=1&k=2&l#f').getHost() == 'example.com:80' && "
        "url('https://[::1]:80/').getHostname() == '::1' && url('https://h:80/').getPort() == '80' "
        "&& url('/path').getEscapedPath() == '/path'",
        "url('https://h/a?k=1&k=a%20b&l=').getQuery() == {'k': ['1', 'a b'], 'l': ['']} && "
        "url('https://h').getScheme() == 'https' && isURL('https://h/') && !isURL('a b') && "
        "!isURL('../x') && isURL('/absolute')",
        "ip('192.168.0.1').family() == 4 && ip('::1').family() == 6 && isIP('10.0.0.1') && "
        "!isIP('1.2.3') && ip('127.0.0.1').isLoopback() && !isIP('::ffff:1.2.3.4') && "
        "ip('169.254.1.1').isLinkLocalUnicast() && ip('8.8.8.8').isGlobalUnicast() && "
        "ip('0.0.0.0').isUnspecified() && ip.isCanonical('::1') && !ip.isCanonical('0::1')",
        "cidr('192.168.0.0/24').containsIP('192.168.0.5') && "
        "!cidr('192.168.0.0/24').containsIP(ip('192.168.1.5')) && "
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && "
        "!cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8')) && cidr('192.168.1.7/24').masked() "
        "== cidr('192.168.1.0/24') && cidr('::/64').prefixLength() == 64 && isCIDR('::/0') && "
        "!isCIDR('1.2.3.4/33') && cidr('10.0.0.1/8').ip() == ip('10.0.0.1') && "
        "string(cidr('::1/128')) == '::1/128'",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && "
        "semver('1.0.0-rc.1').isLessThan(semver('1.0.0')) && isSemver('1.2.3+b') && "
        "!isSemver('v1.2') && semver('1.2.3').minor() == 2 && "
        "semver('1.0.0-a.2').compareTo(semver('1.0.0-a.10')) == -1",
        "object.?spec.?replicas.orValue(1) == 3 && object.?nothing.more.orValue('d') == 'd' && "
        "object[?'nothing'].hasValue() == false && object.spec.list[?5].orValue('z') == 'z' && "
        "object.spec.list[?0].value() == 'a'",
        "optional.of(1).value() == 1 && !optional.none().hasValue() && "
        "optional.none().or(optional.of(2)).value() == 2 && "
        "optional.ofNonZeroValue('').orValue('x') == 'x' && optional.ofNonZeroValue(1).hasValue()",
        "optional.of(2).optMap(x, x + 1).value() == 3 && !optional.none().optMap(x, x).hasValue() "
        "&& optional.of(2).optFlatMap(x, optional.of(x * 2)).value() == 4 && [1, ?optional.of(2), "
        "?optional.none()] == [1, 2] && {?'a': optional.none(), ?'b': optional.of(1)} == {'b': 1}",
        "optional.of({'a': 1}).a.value() == 1 && has(object.?metadata.labels) && optional.of(1) == "
        "optional.of(1) && optional.of(1) != optional.none()",
        "'a' in ['a'] && 'intern' != 'in' && object.spec.port in [8080]",
        "'\\000'.size() == 1 && '\\000' != ''",
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct err e = {0};
        bool result;
        if (test(table[i], &result, &e) < 0)
            fail_msg("%s: %s", table[i], e.msg);
        if (!result)
            fail_msg("%s is false", table[i]);
    }
}

static void test_errors(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } table[] = {
        {"object.nothing == 1", "no such key: nothing"},
        {"object.nothing.more == 1", "no such key: nothing"},
        {"has(object.nothing.more)", "no such key: nothing"},
        {"old.metadata.name == 'x'", "no such key: metadata"},
        {"object.metadata.labels['x'] == ''", "no such key: x"},
        {"{1: 2}[3] == 2", "no such key"},
        {"object.spec.list[2] == ''", "index out of bounds: 2"},
        {"object.spec.list[-1] == ''", "index out of bounds: -1"},
        {"[1][dyn(0.5)] == 1", "unsupported index value: 0.5"},
        {"object.metadata.name.more == 1", "no such overload"},
        {"'x'", "no such overload"},
        {"!object.metadata.name", "no such overload"},
        {"object.metadata.name && true", "no such overload"},
        {"object.metadata.name < 1", "no such overload"},
        {"'a' in object.metadata.name", "no such overload"},
        {"size(object.spec.replicas) == 1", "no such overload"},
        {"object.spec.replicas.startsWith('a')", "no such overload"},
        {"object.spec.replicas.all(x, true)", "no such overload"},
        {"object.nothing || false", "no such key: nothing"},
        {"[1, 2].all(x, 1 / 0 > x)", "division by zero"},
        {"1 / 0 == 1", "division by zero"},
        {"1 % 0 == 1", "modulus by zero"},
        {"1u / 0u == 1u", "division by zero"},
        {"9223372036854775807 + 1 == 0", "integer overflow"},
        {"-9223372036854775808 - 1 == 0", "integer overflow"},
        {"-(-9223372036854775808) == 0", "integer overflow"},
        {"9223372036854775807 * 2 == 0", "integer overflow"},
        {"-9223372036854775808 / -1 == 0", "integer overflow"},
        {"0u - 1u == 0u", "unsigned integer overflow"},
        {"18446744073709551615u + 1u == 0u", "unsigned integer overflow"},
        {"int(1e19) == 0", "integer overflow"},
        {"int(18446744073709551615u) == 0", "integer overflow"},
        {"uint(-1) == 0u", "unsigned integer overflow"},
        {"int('x') == 0", "type conversion error from 'string' to 'int'"},
        {"int(' 1') == 0", "type conversion error from 'string' to 'int'"},
        {"double('x') == 0.0", "type conversion error from 'string' to 'double'"},
        {"bool('yes')", "type conversion error from 'string' to 'bool'"},
        {"string(b'\\xff') == ''", "invalid UTF-8 in bytes, cannot convert to string"},
        {"timestamp('x' + 'y') == timestamp(0)",
         "type conversion error from 'string' to 'google.protobuf.Timestamp'"},
        {"duration('x' + 'y') == duration('0')",
         "type conversion error from 'string' to 'google.protobuf.Duration'"},
        {"timestamp(253402300799) + duration('1s') == timestamp(0)", "timestamp overflow"},
        {"duration('2562047h') + duration('2562047h') == duration('0')", "duration overflow"},
        {"timestamp(0).getHours('Europe/Rome') == 1", "unknown time zone Europe/Rome"},
        {"quantity('x').sign() == 1",
         "unable to parse quantity: \"x\" is not a quantity: write a number with at most one "
         "suffix of n u m k M G T P E, Ki Mi Gi Ti Pi Ei or an exponent, such as 100Gi, 1.5Ti, "
         "250m or 1e3"},
        {"quantity('1.5').asInteger() == 1", "cannot convert value to integer"},
        {"'abc'.charAt(4) == ''", "index out of range: 4"},
        {"'abc'.substring(2, 1) == ''", "invalid substring range. start: 2, end: 1"},
        {"'abc'.substring(-1) == ''", "index out of range: -1"},
        {"'abc'.indexOf('a', 9) == 1", "index out of range: 9"},
        {"'a'.matches('(' + '')", "invalid pattern: at byte 2: missing closing parenthesis"},
        {"'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab'.matches('^(a+)+$')",
         "the pattern takes too much work for this string"},
        {"[].min() == 1", "min called on empty list"},
        {"[object.spec.port, object.metadata.name].sum() == 1", "no such overload"},
        {"[1, 2].slice(1, 5) == []", "cannot slice(1, 5), list is length 2"},
        {"optional.none().value() == 1", "optional.none() dereference"},
        {"{'a': 1, 'a': 2} == {}", "Failed with repeated key"},
        {"'%d'.format(['a']) == ''", "error during formatting: %d clause cannot be used on string"},
        {"'%s'.format([]) == ''", "index 0 out of range"},
        {"'%q'.format([1]) == ''",
         "could not parse formatting clause: unrecognized formatting clause \"q\""},
        {"ip('x') == ip('::1')", "IP Address 'x' parse error during conversion from string"},
        {"url('x').getHost() == ''",
         "URL parse error during conversion from string: parse \"x\": invalid URI for request"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct err e = {0};
        bool result;
        if (test(table[i].text, &result, &e) == 0)
            fail_msg("%s is %d", table[i].text, result);
        if (!str_eq(e.msg, table[i].message))
            fail_msg("%s: %s", table[i].text, e.msg);
    }
}

/* What the check and the parser refuse, by the first line of the message. */
static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } table[] = {
        {"", "ERROR: <input>:1:1: Syntax error: mismatched input '<EOF>' expecting an expression"},
        {"true &&",
         "ERROR: <input>:1:8: Syntax error: mismatched input '<EOF>' expecting an expression"},
        {"true true", "ERROR: <input>:1:6: Syntax error: mismatched input 't' expecting <EOF>"},
        {"99999999999999999999 == 1", "ERROR: <input>:1:1: Syntax error: invalid int literal"},
        {"1z == 1", "ERROR: <input>:1:1: Syntax error: invalid int literal"},
        {"1e999 > 1.0", "ERROR: <input>:1:1: Syntax error: invalid double literal"},
        {"'abc", "ERROR: <input>:1:1: Syntax error: the string does not end"},
        {"'a\nb' == ''", "ERROR: <input>:1:1: Syntax error: the string does not end"},
        {"'\\q' == ''", "ERROR: <input>:1:2: Syntax error: there is no such escape sequence"},
        {"(true", "ERROR: <input>:1:6: Syntax error: mismatched input '<EOF>' expecting ')'"},
        {"[1, 2",
         "ERROR: <input>:1:6: Syntax error: mismatched input '<EOF>' expecting {']', ','}"},
        {"{1 2}", "ERROR: <input>:1:4: Syntax error: mismatched input '2' expecting ':'"},
        {"object.",
         "ERROR: <input>:1:8: Syntax error: mismatched input '<EOF>' expecting IDENTIFIER"},
        {"object['a'", "ERROR: <input>:1:11: Syntax error: mismatched input '<EOF>' expecting ']'"},
        {"true ? false",
         "ERROR: <input>:1:13: Syntax error: mismatched input '<EOF>' expecting ':'"},
        {"true @", "ERROR: <input>:1:6: Syntax error: mismatched input '@' expecting <EOF>"},
        {"if == 1", "ERROR: <input>:1:1: Syntax error: reserved identifier: if"},
        {"nothing == 1", "ERROR: <input>:1:1: undeclared reference to 'nothing' (in container '')"},
        {"nothing.more == 1",
         "ERROR: <input>:1:1: undeclared reference to 'nothing' (in container '')"},
        {"nothing(1)", "ERROR: <input>:1:8: undeclared reference to 'nothing' (in container '')"},
        {"'a'.nothing()",
         "ERROR: <input>:1:12: undeclared reference to 'nothing' (in container '')"},
        {"1 + 'a' == 2",
         "ERROR: <input>:1:3: found no matching overload for '_+_' applied to '(int, string)'"},
        {"1 == 'a'",
         "ERROR: <input>:1:3: found no matching overload for '_==_' applied to '(int, string)'"},
        {"1 == 1.0",
         "ERROR: <input>:1:3: found no matching overload for '_==_' applied to '(int, double)'"},
        {"'a' == null",
         "ERROR: <input>:1:5: found no matching overload for '_==_' applied to '(string, null)'"},
        {"[1] == ['a']", "ERROR: <input>:1:5: found no matching overload for '_==_' applied to "
                         "'(list(int), list(string))'"},
        {"'a' < 1",
         "ERROR: <input>:1:5: found no matching overload for '_<_' applied to '(string, int)'"},
        {"1 && true",
         "ERROR: <input>:1:3: found no matching overload for '_&&_' applied to '(int, bool)'"},
        {"true || 1",
         "ERROR: <input>:1:6: found no matching overload for '_||_' applied to '(bool, int)'"},
        {"!1", "ERROR: <input>:1:1: found no matching overload for '!_' applied to '(int)'"},
        {"1 ? true : false", "ERROR: <input>:1:3: found no matching overload for '_?_:_' applied "
                             "to '(int, bool, bool)'"},
        {"(true ? 1 : 'a') == 1", "ERROR: <input>:1:7: found no matching overload for '_?_:_' "
                                  "applied to '(bool, int, string)'"},
        {"1 in 'abc'",
         "ERROR: <input>:1:3: found no matching overload for '@in' applied to '(int, string)'"},
        {"'a'.startsWith(1)", "ERROR: <input>:1:15: found no matching overload for 'startsWith' "
                              "applied to 'string.(int)'"},
        {"'a'.startsWith()",
         "ERROR: <input>:1:15: found no matching overload for 'startsWith' applied to 'string.()'"},
        {"size(1) == 1",
         "ERROR: <input>:1:5: found no matching overload for 'size' applied to '(int)'"},
        {"[1, 'a'].size() == 2", "ERROR: <input>:1:5: expected type 'int' but found 'string'"},
        {"{'a': 1, 2: 1}.size() == 2",
         "ERROR: <input>:1:10: expected type 'string' but found 'int'"},
        {"'a'[0] == 'a'",
         "ERROR: <input>:1:4: found no matching overload for '_[_]' applied to '(string, int)'"},
        {"'a'.b == 1", "ERROR: <input>:1:4: type 'string' does not support field selection"},
        {"1.all(x, true)", "ERROR: <input>:1:1: expression of type 'int' cannot be range of a "
                           "comprehension (must be list, map, or dynamic)"},
        {"-1.all(x, true)",
         "ERROR: <input>:1:3: Syntax error: mismatched input '.' expecting an operator"},
        {"(1).all(x, true)", "ERROR: <input>:1:2: expression of type 'int' cannot be range of a "
                             "comprehension (must be list, map, or dynamic)"},
        {"[1].all(x, x)",
         "ERROR: <input>:1:12: found no matching overload for '_&&_' applied to '(bool, int)'"},
        {"[1].all(1, true)", "ERROR: <input>:1:9: argument must be a simple name"},
        {"[1].all(x)", "ERROR: <input>:1:9: argument must be a simple name"},
        {"[1].map(x, 1, 2, 3).size() == 1",
         "ERROR: <input>:1:8: wrong number of arguments for the macro map()"},
        {"[1].all(x, true) && x == 1",
         "ERROR: <input>:1:21: undeclared reference to 'x' (in container '')"},
        {"has(object)", "ERROR: <input>:1:4: invalid argument to has() macro"},
        {"has(object.x == 1)", "ERROR: <input>:1:4: invalid argument to has() macro"},
        {"'a'.matches('(')",
         "ERROR: <input>:1:13: invalid matches argument: at byte 2: missing closing parenthesis"},
        {"'a'.matches('a(?=b)')", "ERROR: <input>:1:13: invalid matches argument: at byte 2: "
                                  "lookaround and other extensions of groups are not supported"},
        {"duration('x') == duration('0')", "ERROR: <input>:1:10: invalid duration argument"},
        {"timestamp('x') == timestamp(0)", "ERROR: <input>:1:11: invalid timestamp argument"},
        {"[?1] == [1]", "ERROR: <input>:1:3: expected type 'optional_type(dyn)' but found 'int'"},
        {"optional.of(1) == 1", "ERROR: <input>:1:16: found no matching overload for '_==_' "
                                "applied to '(optional_type(int), int)'"},
        {"'a'", "must evaluate to bool"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct err e = {0};
        struct cel_program *p = cel_compile(table[i].text, variables, CEL_BOOL, &e);
        if (p)
            fail_msg("%s is taken", table[i].text);
        e.msg[strcspn(e.msg, "\n")] = '\0';
        if (!str_eq(e.msg, table[i].message))
            fail_msg("%s: %s", table[i].text, e.msg);
    }
}

static void test_place(void **state)
{
    (void)state;
    struct err e = {0};
    assert_null(cel_compile("true &&\n\t'\xc3\xa4' == nothing", variables, CEL_BOOL, &e));
    assert_string_equal(e.msg,
                        "ERROR: <input>:2:9: undeclared reference to 'nothing' (in container "
                        "'')\n |  '\xc3\xa4' == nothing\n | ........^");
    assert_null(cel_compile("1", variables, CEL_BOOL, &e));
    assert_string_equal(e.reason, "WrongResult");
    assert_string_equal(e.msg, "must evaluate to bool");
    assert_null(cel_compile("object.x", variables, CEL_BOOL, &e));
    assert_string_equal(e.reason, "WrongResult");
}

static void repeat(struct str *s, const char *text, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        str_append(s, text);
}

static void test_bounds(void **state)
{
    (void)state;
    static const char *const open[] = {"(",     "[",          "object[",    "{1:", "size(",
                                       "true?", "[1].all(x,", "true?true:", "-(",  "!("};
    for (size_t i = 0; i < ARRAY_SIZE(open); i++) {
        _cleanup_(str_done) struct str text = {0};
        repeat(&text, open[i], 1000);
        struct err e = {0};
        assert_null(cel_compile(str_get(&text), variables, CEL_DYN, &e));
    }
    static const char *const more[] = {".a", "[0]", "==true", ".size()", "+1", "*2"};
    for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
        _cleanup_(str_done) struct str text = {0};
        str_append(&text, "object");
        repeat(&text, more[i], 1000);
        struct err e = {0};
        assert_null(cel_compile(str_get(&text), variables, CEL_DYN, &e));
        assert_non_null(strstr(e.msg, "expression recursion limit exceeded: 200"));
    }
    _cleanup_(str_done) struct str not = {0}, or = {0}, long_one = {0};
    bool result;
    struct err e = {0};
    repeat(&not, "!", 10000);
    str_append(&not, "true");
    assert_int_equal(test(str_get(&not ), &result, &e), 0);
    assert_true(result);
    repeat(& or, "false || ", 1000); /* long is not deep */
    str_append(& or, "true");
    assert_int_equal(test(str_get(& or), &result, &e), 0);
    assert_true(result);
    repeat(&long_one, " ", CEL_MAX_BYTES + 1);
    assert_null(cel_compile(str_get(&long_one), variables, CEL_DYN, &e));
}

/* Whatever an expression does, it ends, and what it costs is said. */
static void test_cost(void **state)
{
    (void)state;
    static const char *const costly[] = {
        "lists.range(1000).all(a, lists.range(1000).all(b, a >= b || a < b))",
        "lists.range(1000000000).size() == 0",
        "lists.range(100000).exists(a, lists.range(100000).map(x, 1 / 0).size() > 0)",
        "['aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'].map(a, a + a).map(a, a + a + "
        "a + "
        "a + a + a + a + a).map(a, a + a + a + a + a + a + a + a).map(a, a + a + a + a + a + a + a "
        "+ a)"
        ".map(a, a + a + a + a + a + a + a + a).map(a, a + a + a + a + a + a + a + a).map(a, a + a "
        "+ a "
        "+ a + a + a + a + a).map(a, a + a + a + a + a + a + a + a).size() == 1",
        "lists.range(1000).exists(a, lists.range(1000).exists(b, a + b < 0)) || true",
    };
    for (size_t i = 0; i < ARRAY_SIZE(costly); i++) {
        struct err e = {0};
        bool result;
        if (test(costly[i], &result, &e) == 0)
            fail_msg("%s is %d", costly[i], result);
        assert_int_equal(e.code, ERR_RESOURCE_EXHAUSTED);
        assert_string_equal(e.reason, "TooExpensive");
        assert_string_equal(e.msg, "operation cancelled: actual cost limit exceeded");
    }
    struct err e = {0};
    _cleanup_(cel_program_freep) struct cel_program *p =
        cel_compile("lists.range(100).all(x, x >= 0)", variables, CEL_BOOL, &e);
    long budget = 1000;
    bool result;
    const struct cel_input inputs[2] = {{0}};
    assert_int_equal(cel_test(p, inputs, &budget, &result, &e), 0);
    assert_in_range(budget, 100, 900);
    budget = 100;
    assert_int_equal(cel_test(p, inputs, &budget, &result, &e), -1);
    assert_string_equal(e.reason, "OutOfBudget");
    assert_true(budget < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_true),  cmocka_unit_test(test_errors), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_place), cmocka_unit_test(test_bounds), cmocka_unit_test(test_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
