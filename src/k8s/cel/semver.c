/*
 * Versions as semver.org has them: 1.2.3-rc.1+build.
 */
#include <ctype.h>

#include "k8s/cel/impl.h"

#define FUNCTION(name)                                                                             \
    static bool name(struct cel_run *r, const struct cel_value *args, size_t n,                    \
                     struct cel_value *ret)

struct cel_semver {
    int64_t numbers[3];
    const char *before; /* what comes before the release: "rc.1"; "" for a release */
};

static bool take_number(const char **at, size_t n, int64_t *ret)
{
    if (!n || n > 18 || (**at == '0' && n > 1))
        return false;
    for (*ret = 0; n--; (*at)++)
        *ret = *ret * 10 + (**at - '0');
    return true;
}

/* Parts between dots, none empty, and no number with a zero in front. */
static bool check_parts(const char *at, size_t size, bool numbers)
{
    for (size_t i = 0, n; i <= size; i += n + 1) {
        n = strcspn(at + i, ".");
        if (i + n > size)
            n = size - i;
        if (!n || (numbers && n > 1 && at[i] == '0' && strspn(at + i, "0123456789") >= n))
            return false;
        for (size_t j = 0; j < n; j++) {
            if (!isalnum((unsigned char)at[i + j]) && at[i + j] != '-')
                return false;
        }
    }
    return true;
}

static bool parse(struct cel_run *r, const char *at, struct cel_semver *ret)
{
    *ret = (struct cel_semver){.before = ""};
    for (int i = 0; i < 3; i++) {
        if ((i && *at++ != '.') || !take_number(&at, strspn(at, "0123456789"), &ret->numbers[i]))
            return false;
    }
    if (*at == '-') {
        size_t n = strcspn(++at, "+");
        if (!check_parts(at, n, true))
            return false;
        ret->before = arena_strndup(&r->arena, at, n);
        at += n;
    }
    return !*at || (*at == '+' && check_parts(at + 1, strlen(at + 1), false));
}

static int compare_part(const char *a, size_t na, const char *b, size_t nb)
{
    bool number_a = strspn(a, "0123456789") >= na, number_b = strspn(b, "0123456789") >= nb;
    if (number_a != number_b)
        return number_a ? -1 : 1;
    if (number_a && na != nb)
        return na < nb ? -1 : 1;
    int order = memcmp(a, b, na < nb ? na : nb);
    if (order == 0)
        order = (na > nb) - (na < nb);
    return (order > 0) - (order < 0);
}

int cel_semver_compare(const struct cel_semver *a, const struct cel_semver *b)
{
    for (int i = 0; i < 3; i++) {
        if (a->numbers[i] != b->numbers[i])
            return a->numbers[i] < b->numbers[i] ? -1 : 1;
    }
    const char *x = a->before, *y = b->before;
    if (!*x || !*y)
        return (*y != '\0') - (*x != '\0');
    for (;;) {
        size_t nx = strcspn(x, "."), ny = strcspn(y, ".");
        int order = compare_part(x, nx, y, ny);
        if (order)
            return order;
        x += nx, y += ny;
        if (!*x || !*y)
            return (*x != '\0') - (*y != '\0');
        x++, y++;
    }
}

FUNCTION(to_semver)
{
    (void)n;
    struct cel_semver *v = arena_new(&r->arena, struct cel_semver);
    if (!parse(r, args[0].text.p, v))
        return cel_fail(r, "'%.100s' is no semantic version", args[0].text.p);
    *ret = (struct cel_value){.type = CEL_SEMVER, .semver = v};
    return true;
}

FUNCTION(is_semver)
{
    (void)n;
    struct cel_semver v;
    *ret = cel_make_bool(parse(r, args[0].text.p, &v));
    return true;
}

FUNCTION(major_of)
{
    (void)r, (void)n;
    *ret = cel_make_int(args[0].semver->numbers[0]);
    return true;
}

FUNCTION(minor_of)
{
    (void)r, (void)n;
    *ret = cel_make_int(args[0].semver->numbers[1]);
    return true;
}

FUNCTION(patch_of)
{
    (void)r, (void)n;
    *ret = cel_make_int(args[0].semver->numbers[2]);
    return true;
}

/* Comparing is in quantity.c, with the methods of the same names. */
const struct cel_function cel_semver_functions[] = {
    {"semver", "Vs", to_semver},     {"isSemver", "bs", is_semver},
    {"major", "iV", major_of, true}, {"minor", "iV", minor_of, true},
    {"patch", "iV", patch_of, true}, {0},
};
