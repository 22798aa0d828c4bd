/*
 * Events that many watches send alike are encoded once: the last few are kept, by what they are and
 * the form they have. Objects as they are stored need none of this, their bytes are there already.
 */
#include "k8s/apiserver/serve_impl.h"

static bool same(const struct shared_text *t, const struct form *f, uint64_t revision, bool headers)
{
    return t->revision == revision && t->headers == headers && t->form.what == f->what &&
           t->form.gv == f->gv && t->form.table.kind == f->table.kind &&
           t->form.table.include == f->table.include;
}

struct pieces_text *watch_shared(struct apiserver *a, const struct form *f,
                                 const struct apiserver_object *o, bool headers)
{
    struct shared_text *slot = &a->shared[o->revision % SHARED_TEXTS];
    pthread_mutex_lock(&a->shared_lock);
    if (!slot->text || !same(slot, f, o->revision, headers)) {
        _cleanup_(str_done) struct str text = {0};
        form_append(f, o, headers, &text);
        pieces_text_unref(slot->text);
        slot->text = pieces_text_new(&text);
        slot->form = *f;
        slot->revision = o->revision;
        slot->headers = headers;
    }
    struct pieces_text *text = pieces_text_ref(slot->text);
    pthread_mutex_unlock(&a->shared_lock);
    return text;
}

void watch_shared_trim(struct apiserver *a)
{
    pthread_mutex_lock(&a->shared_lock);
    for (size_t i = 0; i < SHARED_TEXTS; i++) {
        struct shared_text *slot = &a->shared[i];
        if (slot->text && slot->text->size > SHARED_TEXT_BYTES) {
            pieces_text_unref(slot->text);
            *slot = (struct shared_text){0};
        }
    }
    pthread_mutex_unlock(&a->shared_lock);
}
