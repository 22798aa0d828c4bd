#include "lvm/class.h"

#include "base/str.h"
#include "json/doc.h"
#include "lvm/impl.h"

enum { CLASSES_MAX = 100, OPTIONS_MAX = 100, SPARE_GB = 10, STRIPES_MAX = 128, NAME_MAX_ = 63 };
#define GB        ((uint64_t)1 << 30)
#define RATIO_MAX 1000.0

static int bad(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int bad(struct err *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    err_vset(e, ERR_INVALID_ARGUMENT, "BadDeviceClasses", fmt, ap);
    va_end(ap);
    return -1;
}

static void words_free(char **words)
{
    for (char **w = words; w && *w; w++)
        free(*w);
    free(words);
}

void lvm_classes_done(struct lvm_classes *c)
{
    vec_for_each(&c->classes, it) {
        free(it->name);
        free(it->vg);
        free(it->pool);
        free(it->stripe_size);
        words_free(it->options);
    }
    vec_for_each(&c->option_classes, it) {
        free(it->name);
        words_free(it->options);
    }
    vec_done(&c->classes);
    vec_done(&c->option_classes);
}

void lvm_classes_default(struct lvm_classes *ret)
{
    *ret = (struct lvm_classes){0};
    vec_push(&ret->classes, (struct lvm_class){.name = mem_strdup("orlop"),
                                               .vg = mem_strdup("orlop"),
                                               .is_default = true});
}

/* Each of them ends up in a command line, or in the key of an annotation. */
static bool is_name(const char *text)
{
    size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-");
    return n && !text[n] && n <= NAME_MAX_ && text[0] != '-' && text[0] != '.';
}

static int take_name(const json_t *o, const char *key, const char *of, char **ret, struct err *e)
{
    const char *text = json_str(o, key);
    if (!text || !is_name(text))
        return bad(e, "%s: %s must be a name of at most %d letters, digits and ._+-", of, key,
                   NAME_MAX_);
    *ret = mem_strdup(text);
    return 0;
}

static int take_options(const json_t *o, const char *key, const char *of, char ***ret,
                        struct err *e)
{
    const json_t *list = json_object_get(o, key);
    size_t n = json_array_size(list);
    if (list && (!json_is_array(list) || n > OPTIONS_MAX))
        return bad(e, "%s: %s must be a list of words for lvcreate", of, key);
    *ret = mem_zalloc((n + 1) * sizeof(**ret));
    for (size_t i = 0; i < n; i++) {
        const char *word = json_string_value(json_array_get(list, i));
        if (!word || !*word)
            return bad(e, "%s: %s[%zu] must be a text", of, key, i);
        (*ret)[i] = mem_strdup(word);
    }
    return 0;
}

static int take_number(const json_t *o, const char *key, const char *of, uint64_t most,
                       uint64_t *number, struct err *e)
{
    const json_t *value = json_object_get(o, key);
    if (!value)
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t)json_integer_value(value) > most)
        return bad(e, "%s: %s must be a whole number from 0 to %llu", of, key,
                   (unsigned long long)most);
    *number = (uint64_t)json_integer_value(value);
    return 0;
}

static int take_pool(const json_t *o, struct lvm_class *c, struct err *e)
{
    const char *type = json_str(o, "type");
    const json_t *pool = json_object_get(o, "thin-pool");
    const json_t *ratio = json_object_get(pool, "overprovision-ratio");
    if (type && !str_eq(type, "thin") && !str_eq(type, "thick"))
        return bad(e, "%s: type must be thick or thin", c->name);
    if (!type || !str_eq(type, "thin"))
        return pool ? bad(e, "%s: thin-pool needs type: thin", c->name) : 0;
    if (!pool)
        return bad(e, "%s: type thin needs a thin-pool with its name", c->name);
    c->ratio = ratio ? json_number_value(ratio) : 1;
    if ((ratio && !json_is_number(ratio)) || c->ratio < 1 || c->ratio > RATIO_MAX)
        return bad(e, "%s: overprovision-ratio must be a number from 1 to %.0f", c->name,
                   RATIO_MAX);
    return take_name(pool, "name", c->name, &c->pool, e);
}

static int take_class(const json_t *o, struct lvm_class *c, struct err *e)
{
    uint64_t spare = SPARE_GB, stripes = 0;
    const json_t *stripe_size = json_object_get(o, "stripe-size");
    if (!json_is_object(o))
        return bad(e, "a device class must have a name and a volume-group");
    if (take_name(o, "name", "a device class", &c->name, e) < 0 ||
        take_name(o, "volume-group", c->name, &c->vg, e) < 0 || take_pool(o, c, e) < 0 ||
        take_number(o, "spare-gb", c->name, UINT32_MAX, &spare, e) < 0 ||
        take_number(o, "stripe", c->name, STRIPES_MAX, &stripes, e) < 0 ||
        take_options(o, "lvcreate-options", c->name, &c->options, e) < 0)
        return -1;
    if (json_is_integer(stripe_size))
        c->stripe_size = mem_printf("%lld", (long long)json_integer_value(stripe_size));
    else if (stripe_size && take_name(o, "stripe-size", c->name, &c->stripe_size, e) < 0)
        return -1;
    c->spare = spare * GB;
    c->stripes = (unsigned)stripes;
    c->is_default = json_is_true(json_object_get(o, "default"));
    return 0;
}

static int check(const struct lvm_classes *c, struct err *e)
{
    unsigned defaults = 0;
    vec_for_each(&c->classes, it) {
        defaults += it->is_default;
        for (const struct lvm_class *other = c->classes.p; other < it; other++) {
            if (str_eq(other->name, it->name))
                return bad(e, "two device classes are called %s", it->name);
        }
    }
    if (!c->classes.len)
        return bad(e, "there are no device-classes");
    return defaults > 1 ? bad(e, "only one device class can be the default") : 0;
}

static int take_all(const json_t *root, struct lvm_classes *c, struct err *e)
{
    size_t i;
    json_t *it;
    const json_t *classes = json_object_get(root, "device-classes");
    const json_t *options = json_object_get(root, "lvcreate-option-classes");
    if (!json_is_object(root) || json_array_size(classes) > CLASSES_MAX ||
        json_array_size(options) > CLASSES_MAX)
        return bad(e, "write device-classes: a list of at most %d", CLASSES_MAX);
    json_array_foreach((json_t *)classes, i, it) {
        vec_push(&c->classes, (struct lvm_class){0});
        if (take_class(it, &vec_last(&c->classes), e) < 0)
            return -1;
    }
    json_array_foreach((json_t *)options, i, it) {
        vec_push(&c->option_classes, (struct lvm_option_class){0});
        struct lvm_option_class *o = &vec_last(&c->option_classes);
        if (take_name(it, "name", "an lvcreate-option-class", &o->name, e) < 0 ||
            take_options(it, "options", o->name, &o->options, e) < 0)
            return -1;
    }
    return check(c, e);
}

int lvm_classes_parse(const char *text, size_t size, struct lvm_classes *ret, struct err *e)
{
    struct json_stream *stream = json_stream_new_text(text, size);
    struct json_doc doc = {0};
    struct lvm_classes c = {0};
    int got = json_stream_next(stream, &doc, e);
    int status = got == 0  ? bad(e, "the file is empty")
                 : got < 0 ? err_prefix(e, "line %u", doc.start.line)
                           : take_all(doc.value, &c, e);
    json_doc_done(&doc);
    json_stream_free(stream);
    if (status < 0)
        lvm_classes_done(&c);
    else
        *ret = c;
    return status;
}

int lvm_classes_find(const struct lvm_classes *c, const char *name,
                     const struct lvm_class **ret_class, struct err *e)
{
    bool any = !name || !*name;
    _cleanup_(str_done) struct str names = {0};
    for (int by_vg = 0; by_vg < (any ? 1 : 2); by_vg++) {
        vec_for_each(&c->classes, it) {
            if (any ? it->is_default : str_eq(by_vg ? it->vg : it->name, name)) {
                *ret_class = it;
                return 0;
            }
        }
    }
    vec_for_each(&c->classes, it)
        str_appendf(&names, "%s%s", names.len ? ", " : "", it->name);
    if (any)
        return err_set(e, ERR_NOT_FOUND, "NoDeviceClass",
                       "the node has no default device class: name one of %s", str_get(&names));
    return err_set(e, ERR_NOT_FOUND, "NoDeviceClass",
                   "the node has no device class or volume group %s, but %s", name,
                   str_get(&names));
}

char *const *lvm_classes_options(const struct lvm_classes *c, const char *name, struct err *e)
{
    vec_for_each(&c->option_classes, it) {
        if (str_eq(it->name, name))
            return it->options;
    }
    err_set(e, ERR_NOT_FOUND, "NoOptionClass",
            "the node has no lvcreate-option-class %s: add it to its file of device classes", name);
    return NULL;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

void lvm_class_room(const struct lvm_class *c, const struct lvm_view *v, struct lvm_room *ret)
{
    *ret = (struct lvm_room){.vg = lvm_view_vg(v, c->vg)};
    if (!ret->vg)
        return;
    if (!c->pool) {
        ret->there = true;
        ret->size = ret->vg->size;
        ret->free = ret->vg->missing ? 0 : less(ret->vg->free, c->spare);
        return;
    }
    ret->pool = lvm_view_lv(v, c->vg, c->pool);
    if (!ret->pool || !lvm_lv_is_thin_pool(ret->pool))
        return;
    uint64_t promised = 0;
    vec_for_each(&v->lvs, lv) {
        if (str_eq(lv->vg, c->vg) && str_eq(lv->pool, c->pool) && lvm_lv_is_thin(lv))
            promised += lv->size;
    }
    ret->there = true;
    ret->size = ret->pool->size;
    ret->free = less((uint64_t)((double)ret->pool->size * c->ratio), promised);
}
