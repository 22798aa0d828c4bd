#include "base/str.h"

#include <ctype.h>
#include <stdio.h>

#include "base/mem.h"

void str_done(struct str *s)
{
    free(s->p);
    *s = (struct str){0};
}

void str_clear(struct str *s)
{
    str_truncate(s, 0);
}

static void reserve(struct str *s, size_t more)
{
    if (more > SIZE_MAX / 4 - s->len)
        abort(); /* no memory is that large, and the sum must not wrap round */
    size_t need = s->len + more + 1;
    if (need <= s->cap)
        return;
    size_t cap = s->cap ? s->cap : 64;
    while (cap < need)
        cap *= 2;
    s->p = mem_realloc(s->p, cap);
    s->cap = cap;
}

void str_append_n(struct str *s, const void *bytes, size_t n)
{
    reserve(s, n);
    if (n)
        memcpy(s->p + s->len, bytes, n);
    s->len += n;
    s->p[s->len] = '\0';
}

void str_append(struct str *s, const char *text)
{
    str_append_n(s, text, strlen(text));
}

void str_append_c(struct str *s, char c)
{
    str_append_n(s, &c, 1);
}

void str_vappendf(struct str *s, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0)
        return;
    reserve(s, (size_t)n);
    vsnprintf(s->p + s->len, (size_t)n + 1, fmt, ap);
    s->len += (size_t)n;
}

void str_appendf(struct str *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    str_vappendf(s, fmt, ap);
    va_end(ap);
}

void str_truncate(struct str *s, size_t len)
{
    if (!s->p || len > s->len)
        return;
    s->len = len;
    s->p[len] = '\0';
}

const char *str_get(const struct str *s)
{
    return s->p ? s->p : "";
}

char *str_take(struct str *s)
{
    char *p = s->p ? s->p : mem_strdup("");
    *s = (struct str){0};
    return p;
}

bool str_starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends_with(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && strcmp(s + n - m, suffix) == 0;
}

size_t str_cut(const char *s, size_t most)
{
    size_t n = strnlen(s, most + 1);
    if (n <= most)
        return n;
    /* Text that is no UTF-8 has no characters to keep whole: go back three bytes and no further. */
    for (n = most; n > 0 && most - n < 3 && ((unsigned char)s[n] & 0xc0) == 0x80; n--)
        ;
    return ((unsigned char)s[n] & 0xc0) == 0x80 ? most : n;
}

size_t str_utf8(const char *s, size_t n, uint32_t *ret_c)
{
    if (n == 0)
        return 0;
    unsigned char lead = (unsigned char)s[0];
    size_t len = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (lead > 0xf4 || len > n)
        return 0;
    uint32_t c = len < 2 ? lead : lead & (0x7fU >> len);
    for (size_t i = 1; i < len; i++) {
        if (((unsigned char)s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | ((unsigned char)s[i] & 0x3f);
    }
    /* Longer than needed, half a surrogate pair, or past the end of Unicode. */
    if ((len == 3 && (c < 0x800 || (c >= 0xd800 && c < 0xe000))) ||
        (len == 4 && (c < 0x10000 || c > 0x10ffff)))
        return 0;
    *ret_c = c;
    return len;
}

bool str_in(const char *s, const char *const *words)
{
    for (; *words; words++) {
        if (str_eq(s, *words))
            return true;
    }
    return false;
}

/*
 * Levenshtein distance, one row of the table at a time, letter case ignored: a word that differs
 * only in case is at distance 0 and therefore the best suggestion there is.
 */
unsigned str_distance(const char *a, const char *b, unsigned most)
{
    enum { MAX = 64 };
    size_t n = strlen(a), m = strlen(b);
    if (n > MAX || m > MAX || (n > m ? n - m : m - n) > most)
        return most + 1;

    unsigned row[MAX + 1];
    for (size_t j = 0; j <= m; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            unsigned same = tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[j - 1]);
            unsigned best = diagonal + !same;
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[m] > most ? most + 1 : row[m];
}

const char *str_nearest(const char *s, const char *const *words)
{
    unsigned most = (unsigned)(strlen(s) / 3);
    if (most > 4)
        most = 4;
    const char *nearest = NULL;
    for (; *words; words++) {
        unsigned d = str_distance(s, *words, most);
        if (d <= most) {
            nearest = *words;
            if (d == 0)
                break;
            most = d - 1;
        }
    }
    return nearest;
}
