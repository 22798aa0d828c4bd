/*
 * An intrusive doubly linked list: the links lie inside the objects, so an object is put on a list
 * and taken off without memory or search. The list owns nothing.
 *
 *     struct job { int n; struct list_link link; };
 *     struct list_link jobs;
 *     list_init(&jobs);
 *     list_push(&jobs, &job->link);
 *     list_for_each(&jobs, it, struct job, link) printf("%d\n", it->n);
 *
 *     .-> jobs <-> job.link <-> job.link <-.
 *     '------------------------------------'      empty: the head points at itself
 *
 * The head and the members have the same type. A link that is on no list points at itself, so
 * list_unlink() may be called twice and list_is_linked() asked at any time after list_init().
 */
#pragma once

#include <stdbool.h>

#include "base/mem.h"

struct list_link {
    struct list_link *next, *prev;
};

static inline void list_init(struct list_link *l)
{
    l->next = l->prev = l;
}

static inline bool list_empty(const struct list_link *head)
{
    return head->next == head;
}

static inline bool list_is_linked(const struct list_link *l)
{
    return l->next != l;
}

/* Puts l, which is on no list, in front of `before`; in front of the head is at the end. */
static inline void list_insert(struct list_link *before, struct list_link *l)
{
    l->next = before;
    l->prev = before->prev;
    before->prev->next = l;
    before->prev = l;
}

static inline void list_push(struct list_link *head, struct list_link *l)
{
    list_insert(head, l);
}

static inline void list_push_front(struct list_link *head, struct list_link *l)
{
    list_insert(head->next, l);
}

static inline void list_unlink(struct list_link *l)
{
    l->next->prev = l->prev;
    l->prev->next = l->next;
    list_init(l);
}

/* Moves everything on `from` to the end of `to`. */
static inline void list_splice(struct list_link *to, struct list_link *from)
{
    if (list_empty(from))
        return;
    from->next->prev = to->prev;
    from->prev->next = to;
    to->prev->next = from->next;
    to->prev = from->prev;
    list_init(from);
}

/* The first link taken off the list, or NULL. */
static inline struct list_link *list_take(struct list_link *head)
{
    struct list_link *l = head->next;
    if (l == head)
        return NULL;
    list_unlink(l);
    return l;
}

/* The first or last object, or NULL. */
#define list_first(head, type, member)                                                             \
    (list_empty(head) ? NULL : container_of((head)->next, type, member))
#define list_last(head, type, member)                                                              \
    (list_empty(head) ? NULL : container_of((head)->prev, type, member))

#define list_for_each(head, it, type, member)                                                      \
    for (type *it = container_of((head)->next, type, member); &it->member != (head);               \
         it = container_of(it->member.next, type, member))

/* The same where the body may unlink or free the object it stands on. */
#define list_for_each_safe(head, it, type, member)                                                 \
    for (type *it = container_of((head)->next, type, member),                                      \
              *it##_next = container_of(it->member.next, type, member);                            \
         &it->member != (head);                                                                    \
         it = it##_next, it##_next = container_of(it->member.next, type, member))
