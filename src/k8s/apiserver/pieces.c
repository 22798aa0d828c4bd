#include "k8s/apiserver/pieces.h"

#include <stdlib.h>
#include <string.h>

struct pieces_text *pieces_text_new(const struct str *text)
{
    struct pieces_text *t = mem_alloc(sizeof(*t) + text->len);
    t->refs = 1;
    t->size = text->len;
    if (text->len)
        memcpy(t->bytes, text->p, text->len);
    return t;
}

struct pieces_text *pieces_text_ref(struct pieces_text *t)
{
    __atomic_add_fetch(&t->refs, 1, __ATOMIC_RELAXED);
    return t;
}

void pieces_text_unref(struct pieces_text *t)
{
    if (t && __atomic_sub_fetch(&t->refs, 1, __ATOMIC_ACQ_REL) == 0)
        free(t);
}

static void add(struct pieces *p, struct piece piece)
{
    vec_push(&p->waiting, piece);
    p->bytes += piece.size;
}

void pieces_add_literal(struct pieces *p, const char *literal)
{
    add(p, (struct piece){.bytes = literal, .size = strlen(literal)});
}

void pieces_add_object(struct pieces *p, const struct apiserver_object *o)
{
    struct apiserver_object *held = apiserver_object_ref((struct apiserver_object *)(uintptr_t)o);
    add(p, (struct piece){.bytes = o->bytes, .size = o->size, .object = held});
}

void pieces_add_text(struct pieces *p, struct pieces_text *text)
{
    add(p, (struct piece){.bytes = text->bytes, .size = text->size, .text = text});
}

static void piece_done(struct piece *piece)
{
    pieces_text_unref(piece->text);
    apiserver_object_unref(piece->object);
}

size_t pieces_read(struct pieces *p, char *buf, size_t max)
{
    size_t read = 0;
    while (read < max && p->next < p->waiting.len) {
        struct piece *piece = &p->waiting.p[p->next];
        size_t n = piece->size - p->offset;
        if (n > max - read)
            n = max - read;
        memcpy(buf + read, piece->bytes + p->offset, n);
        read += n;
        p->offset += n;
        if (p->offset < piece->size)
            break;
        piece_done(piece);
        p->offset = 0;
        p->next++;
    }
    p->bytes -= read;
    if (p->next == p->waiting.len)
        pieces_done(p); /* it may be long until there is more */
    return read;
}

void pieces_done(struct pieces *p)
{
    for (size_t i = p->next; i < p->waiting.len; i++)
        piece_done(&p->waiting.p[i]);
    vec_done(&p->waiting);
    *p = (struct pieces){0};
}
