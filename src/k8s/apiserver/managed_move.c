/*
 * How creates and updates move ownership.
 */
#include "k8s/apiserver/managed.h"

/* `value` NULL is null. */
static void set_list(json_t *object, json_t *value)
{
    json_t *metadata = json_object_get(object, "metadata");
    if (!value || json_is_null(value))
        json_object_del(metadata, "managedFields");
    else
        json_object_set(metadata, "managedFields", value);
}

/*
 * The object without what the request cannot change: nobody owns it for having sent it, or for the
 * server having filled it in.
 */
static json_t *own_part(const struct apiserver_request *r, const json_t *object)
{
    if (!(r->kind->flags & API_STATUS) || r->subresource != APISERVER_MAIN)
        return json_incref((json_t *)object);
    json_t *part = json_copy((json_t *)object);
    json_object_del(part, "status");
    return part;
}

int managed_create(const struct apiserver_registry *g, const struct apiserver_request *r,
                   json_t *object, struct err *e)
{
    if (r->managed) {
        set_list(object, r->managed);
        return 0;
    }
    struct arena arena = {0};
    struct managed m = {0};
    struct managed_entry entry = managed_entry_of(&arena, g, r, false);
    json_auto_t *part = own_part(r, object); /* sets borrow from it */
    entry.fields = typed_compare(&arena, r->kind, NULL, part).added;
    if (entry.fields)
        vec_push(&m.entries, entry);
    json_auto_t *list = managed_value(&m, e);
    if (list)
        set_list(object, list);
    managed_done(&m);
    arena_done(&arena);
    return list ? 0 : -1;
}

/* [{}] says that there shall be no owners. */
static bool is_reset(const json_t *list)
{
    return json_array_size(list) == 1 && json_is_object(json_array_get(list, 0)) &&
           !json_object_size(json_array_get(list, 0));
}

/* Whether a client's list can be taken for what it says. */
static bool is_sound(const json_t *list)
{
    struct arena arena = {0};
    struct managed m;
    struct err e;
    bool sound = managed_decode(&arena, list, &m, &e) == 0 && m.entries.len > 0;
    managed_done(&m);
    arena_done(&arena);
    return sound;
}

enum managed_start managed_begin_update(const struct apiserver_request *r, json_t *object,
                                        const char *list)
{
    json_t *metadata = json_object_get(object, "metadata");
    json_t *own = json_object_get(metadata, "managedFields");
    enum managed_start start = MANAGED_STORED;
    if (r->managed) {
        start = MANAGED_DONE;
    } else if (own && r->subresource == APISERVER_MAIN) {
        json_auto_t *before = *list ? json_parse(list, strlen(list), NULL, NULL) : NULL;
        if (is_reset(own))
            start = MANAGED_RESET;
        else if (!(before && json_equal(own, before)) && is_sound(own))
            return MANAGED_CLIENT;
    }
    if (own)
        json_object_del(metadata, "managedFields");
    if (start == MANAGED_RESET && !*list)
        start = MANAGED_STORED;
    return start;
}

/* By all that tells managers apart, which time is not. */
static int compare_managers(const void *a, const void *b)
{
    const struct managed_entry *x = a, *y = b;
    if (x->applied != y->applied)
        return x->applied ? -1 : 1;
    int order = strcmp(x->manager, y->manager);
    if (!order)
        order = strcmp(x->version, y->version);
    return order ? order : strcmp(x->subresource, y->subresource);
}

static void read_sorted(struct arena *a, const char *text, struct managed *ret_managed)
{
    managed_read(a, text, ret_managed);
    if (ret_managed->entries.len)
        qsort(ret_managed->entries.p, ret_managed->entries.len, sizeof(struct managed_entry),
              compare_managers);
}

/* Whether two lists differ only in times. */
static bool is_same(const char *x_text, const char *y_text)
{
    struct arena arena = {0};
    struct managed x, y;
    read_sorted(&arena, x_text, &x);
    read_sorted(&arena, y_text, &y);
    bool same = x.entries.len == y.entries.len;
    for (size_t i = 0; same && i < x.entries.len; i++)
        same = compare_managers(&x.entries.p[i], &y.entries.p[i]) == 0 &&
               fieldset_equal(x.entries.p[i].fields, y.entries.p[i].fields);
    managed_done(&x);
    managed_done(&y);
    arena_done(&arena);
    return same;
}

bool managed_is_stored(const struct apiserver_request *r, enum managed_start start,
                       const char *list)
{
    if (start != MANAGED_DONE)
        return start == MANAGED_STORED;
    const char *text = json_is_null(r->managed) ? "" : json_string_value(r->managed);
    return str_eq(text, list) || is_same(text, list);
}

void managed_keep(json_t *object, const char *list)
{
    json_auto_t *text = *list ? json_string_nocheck(list) : NULL;
    set_list(object, text);
}

static const char ancient[] = "ancient-changes";

static int compare_ages(const void *a, const void *b)
{
    const struct managed_entry *x = a, *y = b;
    if (x->applied != y->applied) /* updates first */
        return x->applied ? 1 : -1;
    bool first = str_eq(x->manager, ancient), second = str_eq(y->manager, ancient);
    if (first != second)
        return first ? -1 : 1;
    int order = strcmp(x->time, y->time);
    return order ? order : strcmp(x->manager, y->manager);
}

/* Too many updaters: the oldest become one. All are of one version, unless a client said else. */
static void cap_updaters(struct arena *a, struct managed *m)
{
    size_t updaters = 0;
    vec_for_each(&m->entries, entry)
        updaters += !entry->applied;
    if (updaters <= MANAGED_MAX_UPDATERS)
        return;
    qsort(m->entries.p, m->entries.len, sizeof(*m->entries.p), compare_ages);
    struct managed_entry *bucket = &m->entries.p[0];
    for (size_t i = 1; i <= updaters - MANAGED_MAX_UPDATERS; i++) {
        struct managed_entry *entry = &m->entries.p[i];
        bucket->fields = fieldset_union(a, bucket->fields, entry->fields);
        bucket->time = entry->time;
        entry->fields = NULL;
    }
    bucket->manager = ancient;
    bucket->subresource = "";
    managed_drop_empty(m);
}

static void move_ownership(struct arena *a, const struct apiserver_registry *g,
                           const struct apiserver_request *r, const struct typed_changes *changes,
                           struct managed *m)
{
    const struct fieldset *taken = fieldset_union(a, changes->added, changes->modified);
    const struct fieldset *lost = fieldset_union(a, taken, changes->removed);
    vec_for_each(&m->entries, entry)
        entry->fields = fieldset_difference(a, entry->fields, lost);
    if (taken) {
        struct managed_entry mine = managed_entry_of(a, g, r, false);
        struct managed_entry *before = managed_find(m, r, false);
        mine.fields = fieldset_union(a, before ? before->fields : NULL, taken);
        if (before)
            *before = mine;
        else
            vec_push(&m->entries, mine);
    }
    managed_drop_empty(m);
    cap_updaters(a, m);
}

int managed_update(const struct apiserver_registry *g, const struct apiserver_request *r,
                   json_t *object, const json_t *stored, enum managed_start start, const char *list,
                   struct err *e)
{
    json_t *metadata = json_object_get(object, "metadata");
    struct arena arena = {0};
    struct managed m = {0};
    struct err unreadable;
    if (start == MANAGED_DONE) {
        set_list(object, r->managed);
        return 0;
    }
    if (start == MANAGED_STORED)
        managed_read(&arena, list, &m);
    else if (start == MANAGED_CLIENT)
        managed_decode(&arena, json_object_get(metadata, "managedFields"), &m, &unreadable);
    json_auto_t *was = own_part(r, stored), *is = own_part(r, object); /* sets borrow from them */
    if (m.entries.len) {
        struct typed_changes changes = typed_compare(&arena, r->kind, was, is);
        move_ownership(&arena, g, r, &changes, &m);
    }
    json_auto_t *moved = managed_value(&m, e);
    managed_done(&m); /* it borrows from what is replaced now */
    arena_done(&arena);
    if (moved)
        set_list(object, moved);
    return moved ? 0 : -1;
}
