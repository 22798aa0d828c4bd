/*
 * Events that many watches send alike are encoded once: the last few are kept, by what they are and
 * the form they have. Objects as they are stored need none of this, their bytes are there already.
 */
#include "apiserver/serve_impl.h"

static bool same(const struct shared_text *t, const struct form *f, uint64_t revision, bool headers)
{
    return t->revision == revision && t->headers == headers && t->form.what == f->what &&
           t->form.gv == f->gv && t->form.table.kind == f->table.kind &&
           t->form.table.include == f->table.include;
}

void watch_append_shared(struct apiserver *a, const struct form *f,
                         const struct apiserver_object *o, bool headers, struct str *out)
{
    struct shared_text *slot = &a->shared[o->revision % SHARED_TEXTS];
    pthread_mutex_lock(&a->shared_lock);
    if (!same(slot, f, o->revision, headers)) {
        str_clear(&slot->text);
        form_append(f, o, headers, &slot->text);
        slot->form = *f;
        slot->revision = o->revision;
        slot->headers = headers;
    }
    str_append_n(out, slot->text.p, slot->text.len);
    if (slot->text.cap > SHARED_TEXT_BYTES) { /* not worth the memory */
        str_done(&slot->text);
        slot->revision = 0;
    }
    pthread_mutex_unlock(&a->shared_lock);
}
