#include "k8s/apiserver/typed_impl.h"

void typed_walk_done(struct typed_walk *w)
{
    str_done(&w->scratch);
}

struct typed_type typed_root(const struct api_kind *kind)
{
    return (struct typed_type){.fields = kind->fields, .place = TYPED_ROOT};
}

struct typed_type typed_element(const struct typed_type *t)
{
    return (struct typed_type){
        .field = t->field,
        .fields = t->field && t->field->type == API_OBJECT ? t->field->fields : NULL,
        .element = true,
    };
}

const struct api_field *typed_member(const struct typed_type *t, const char *key,
                                     struct typed_type *ret_type)
{
    if (t->field && t->field->shape == API_MAP && !t->element) {
        *ret_type = typed_element(t);
        return NULL;
    }
    const struct api_field *field = api_field_find(t->fields, key);
    *ret_type = (struct typed_type){.field = field};
    if (field && field->shape == API_ONE && field->type == API_OBJECT)
        ret_type->fields = field->fields;
    if (t->place == TYPED_ROOT && str_eq(key, "metadata"))
        ret_type->place = TYPED_METADATA;
    return field;
}

bool typed_is_untracked(const struct typed_type *t, const char *key)
{
    static const char *const of_root[] = {"apiVersion", "kind", NULL};
    static const char *const of_metadata[] = {
        "name",       "namespace",     "uid",      "resourceVersion", "creationTimestamp",
        "generation", "managedFields", "selfLink", "clusterName",     NULL};
    if (t->place == TYPED_ROOT)
        return str_in(key, of_root);
    return t->place == TYPED_METADATA && str_in(key, of_metadata);
}

/* A scalar as JSON; false: it is none. */
static bool append_scalar(const json_t *value, struct str *out)
{
    if (!value || json_is_object(value) || json_is_array(value) || json_is_null(value))
        return false;
    if (json_is_string(value))
        fieldset_quote(json_string_value(value), out);
    else
        json_format(value, out);
    return true;
}

enum { KEYS_MAX = 16 };

/* The keys of a list's elements by their names; how many. */
static size_t keys_of(const struct api_field *field, const char *ret_keys[KEYS_MAX])
{
    size_t n = 0;
    if (!field->map_keys) {
        ret_keys[n++] = field->merge_key;
        return n;
    }
    for (const char *const *key = field->map_keys; *key && n < KEYS_MAX; key++) {
        size_t i = n++;
        for (; i > 0 && strcmp(ret_keys[i - 1], *key) > 0; i--)
            ret_keys[i] = ret_keys[i - 1];
        ret_keys[i] = *key;
    }
    return n;
}

/* Appends {"port":80,"protocol":"TCP"}; NULL, or the key that is missing. */
static const char *append_keys(const struct api_field *field, const char *const *keys, size_t n,
                               const json_t *element, struct str *out)
{
    for (size_t i = 0; i < n; i++) {
        str_append_c(out, i ? ',' : '{');
        fieldset_quote(keys[i], out);
        str_append_c(out, ':');
        if (append_scalar(json_object_get(element, keys[i]), out))
            continue;
        const struct api_field *key = api_field_find(field->fields, keys[i]);
        if (!key || !key->def || json_object_get(element, keys[i]))
            return keys[i];
        str_append(out, key->def);
    }
    str_append_c(out, '}');
    return NULL;
}

static int compare_items(const void *a, const void *b)
{
    const struct typed_item *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

static void sort_items(struct typed_walk *w, struct typed_items *items)
{
    bool sorted = true;
    for (size_t i = 1; i < items->n; i++)
        sorted &= strcmp(items->in_order[i - 1].name, items->in_order[i].name) < 0;
    items->sorted = items->in_order;
    if (sorted)
        return;
    items->sorted = arena_alloc(w->arena, items->n * sizeof(*items->sorted));
    memcpy(items->sorted, items->in_order, items->n * sizeof(*items->sorted));
    qsort(items->sorted, items->n, sizeof(*items->sorted), compare_items);
    for (size_t i = 1; i < items->n; i++)
        items->repeated |= str_eq(items->sorted[i - 1].name, items->sorted[i].name);
}

static void list_items(struct typed_walk *w, const struct api_field *field, const json_t *list,
                       enum typed_shape shape, struct typed_items *ret_items)
{
    const char *keys[KEYS_MAX];
    size_t n_keys = shape == TYPED_LIST_MAP ? keys_of(field, keys) : 0;
    size_t n = json_array_size(list), i;
    json_t *element;
    *ret_items = (struct typed_items){
        .in_order = arena_alloc(w->arena, (n + 1) * sizeof(struct typed_item))};
    json_array_foreach((json_t *)list, i, element) {
        struct str *text = &w->scratch;
        str_clear(text);
        if (shape == TYPED_LIST_MAP)
            ret_items->missing = append_keys(field, keys, n_keys, element, text);
        else if (!append_scalar(element, text))
            ret_items->missing = "";
        ret_items->n = i;
        if (ret_items->missing)
            return;
        ret_items->in_order[i] =
            (struct typed_item){arena_copy(w->arena, text->p, text->len), element, i};
    }
    ret_items->n = n;
    sort_items(w, ret_items);
}

static enum typed_shape shape_of(const struct typed_type *t, const json_t *value, unsigned depth)
{
    const struct api_field *f = t->field;
    unsigned atomic = t->element ? API_ATOMIC_ITEMS : API_ATOMIC;
    if (depth >= FIELDSET_MAX_DEPTH || (f && f->flags & atomic))
        return TYPED_LEAF;
    if (json_is_object(value)) {
        bool members = !f || f->type == API_OBJECT || f->type == API_ANY;
        if (f && !t->element && f->shape != API_ONE)
            members = f->shape == API_MAP;
        return members ? TYPED_OBJECT : TYPED_LEAF;
    }
    if (!json_is_array(value) || !f || t->element || f->shape != API_LIST)
        return TYPED_LEAF;
    if (f->merge_key || f->map_keys)
        return TYPED_LIST_MAP;
    return f->flags & API_SET ? TYPED_SET : TYPED_LEAF;
}

enum typed_shape typed_declared(struct typed_walk *w, const struct typed_type *t,
                                const json_t *value, unsigned depth, struct typed_items *ret_items)
{
    enum typed_shape shape = shape_of(t, value, depth);
    if (shape == TYPED_LIST_MAP || shape == TYPED_SET)
        list_items(w, t->field, value, shape, ret_items);
    return shape;
}

enum typed_shape typed_look(struct typed_walk *w, const struct typed_type *t, const json_t *value,
                            unsigned depth, struct typed_items *ret_items)
{
    enum typed_shape shape = typed_declared(w, t, value, depth, ret_items);
    if ((shape == TYPED_LIST_MAP || shape == TYPED_SET) &&
        (ret_items->missing || ret_items->repeated))
        return TYPED_LEAF;
    return shape;
}

const struct typed_item *typed_find(const struct typed_items *items, const char *name)
{
    size_t low = 0, high = items->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(items->sorted[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < items->n && str_eq(items->sorted[low].name, name) ? &items->sorted[low] : NULL;
}
