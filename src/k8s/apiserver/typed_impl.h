/*
 * What the walks over typed objects share.
 */
#pragma once

#include "k8s/apiserver/typed.h"

struct typed_walk {
    struct arena *arena;
    const struct api_kind *kind;
    bool every; /* sets have also what only leads to fields */
    struct str scratch;
};

void typed_walk_done(struct typed_walk *w);

/* What is known of a value. */
struct typed_type {
    const struct api_field *field;  /* NULL: nothing; the root has none either */
    const struct api_field *fields; /* the table of its members; NULL: none */
    bool element;                   /* it is one element of the field */
    bool fresh;                     /* it lies in something that need not be there */
    enum { TYPED_INSIDE, TYPED_ROOT, TYPED_METADATA } place;
};

struct typed_type typed_root(const struct api_kind *kind);
/* The type of a member; the result is its field when a table names it. */
const struct api_field *typed_member(const struct typed_type *t, const char *key,
                                     struct typed_type *ret_type);
struct typed_type typed_element(const struct typed_type *t);
/* Whether a member is nobody's. */
bool typed_is_untracked(const struct typed_type *t, const char *key);

enum typed_shape {
    TYPED_LEAF,
    TYPED_OBJECT,
    TYPED_LIST_MAP,
    TYPED_SET,
};

struct typed_item {
    const char *name; /* as a set has it */
    json_t *value;
    size_t place;
};

/* The elements of a list that is seen by element. */
struct typed_items {
    struct typed_item *in_order, *sorted; /* by place, by name */
    size_t n;
    bool repeated; /* two have one name */
    const char
        *missing; /* the key that one does not have; n is its place, and nothing else holds */
};

/*
 * How a value is seen, by its type alone; of a list by element *ret_items are the elements, also
 * when they are not clear.
 */
enum typed_shape typed_declared(struct typed_walk *w, const struct typed_type *t,
                                const json_t *value, unsigned depth, struct typed_items *ret_items);
/* The same, but a list whose elements are not clear is a leaf. */
enum typed_shape typed_look(struct typed_walk *w, const struct typed_type *t, const json_t *value,
                            unsigned depth, struct typed_items *ret_items);
/* The element of that name; NULL. */
const struct typed_item *typed_find(const struct typed_items *items, const char *name);

static inline enum fieldset_step typed_step(enum typed_shape shape)
{
    return shape == TYPED_SET ? FIELDSET_VALUE : FIELDSET_KEY;
}
