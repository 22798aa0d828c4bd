/*
 * What changes a chain: one at a time, and each by one replacement of the manifest.
 *
 *     asked for ──> its turn: I/O is held ──nothing under way──> flush ──> files made, manifest replaced, files
 *                                                                          removed (a thread)
 *                   I/O goes on, done() <── the chain in memory follows <──┘
 *
 * A failure changes nothing, unless it left a manifest that is not the old one: then nobody can say which of them a
 * crash would leave, and nothing is called durable any more.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "store/chain.h"

/* The manifest of the chain as it is. */
static void describe(const struct chain *c, struct manifest *m)
{
    *m = (struct manifest){
        .next = c->next, .n = c->n, .revision = c->revision, .identity = c->identity};
    for (unsigned i = 0; i < c->n; i++) {
        const struct layer *l = c->layers[i];
        m->layer[i] = (struct manifest_layer){
            .number = l->number, .snapshot = l->snapshot, .size = l->size, .merged = l->merged};
    }
}

static void drop_above(struct chain_change *ch, unsigned index)
{
    for (unsigned i = index + 1; i < ch->next.n; i++)
        ch->remove[ch->removes++] = ch->next.layer[i].number;
    ch->next.n = index + 1;
}

static int add_head(struct chain_change *ch)
{
    if (ch->next.n == MANIFEST_LAYERS)
        return ENOSPC;
    ch->create = ch->next.next++;
    ch->next.layer[ch->next.n++] = (struct manifest_layer){.number = ch->create};
    return 0;
}

/* The manifest as it is to be; an errno when it cannot. */
static int plan(struct chain_change *ch)
{
    const struct chain *c = ch->chain;
    unsigned i = 0;
    bool found = ch->id && chain_find(c, ch->id, &i);
    describe(c, &ch->next);
    ch->next.revision++;
    ch->create = ch->removes = 0;
    switch (ch->kind) {
    case CHANGE_SNAPSHOT:
        if (found || !ch->id)
            return EEXIST;
        ch->next.layer[c->n - 1].snapshot = ch->id;
        ch->next.layer[c->n - 1].size = c->store.size;
        return add_head(ch);
    case CHANGE_REVERT:
        if (!found)
            return ENOENT;
        drop_above(ch, i);
        return add_head(ch);
    case CHANGE_DROP:
        if (found)
            ch->next.layer[i].snapshot = ch->next.layer[i].size = 0;
        return 0;
    case CHANGE_GROW:
    case CHANGE_MARK:
    case CHANGE_MERGED:
        break;
    }
    for (i = 0; i + 1 < c->n && c->layers[i] != c->merge.lower; i++)
        ;
    if (i + 1 >= c->n || c->layers[i + 1] != c->merge.upper)
        return ECANCELED;
    if (ch->kind == CHANGE_MARK) {
        ch->next.layer[i].merged = c->merge.at;
        return 0;
    }
    /* The lower file takes the place of the upper one. */
    ch->remove[ch->removes++] = ch->next.layer[i + 1].number;
    uint32_t number = ch->next.layer[i].number;
    ch->next.layer[i] = ch->next.layer[i + 1];
    ch->next.layer[i].number = number;
    ch->next.layer[i].merged = 0;
    ch->next.n--;
    memmove(&ch->next.layer[i + 1], &ch->next.layer[i + 2],
            (ch->next.n - i - 1) * sizeof(ch->next.layer[0]));
    return 0;
}

/* An empty file of a size, or a map without bits, durable, but for its name. */
static int make_file(const char *path, uint64_t size, const struct uuid *identity, uint32_t map)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    int status = map ? layer_map_make(fd, identity, map) : 0;
    if (status == 0 && ((size && ftruncate(fd, (off_t)size) < 0) || fsync(fd) < 0))
        status = -errno;
    close(fd);
    return status;
}

static int make_head(const struct chain *c, uint32_t number)
{
    _cleanup_free_ char *file = chain_layer_path(c->path, number, ""),
                        *map = chain_layer_path(c->path, number, ".map"),
                        *sums = chain_layer_path(c->path, number, ".sums");
    const struct sums_header h = {.identity = c->identity, .layer = number, .size = c->store.size};
    int status = make_file(file, c->store.size, &c->identity, 0);
    if (status == 0)
        status = make_file(map, 0, &c->identity, number);
    return status == 0 && c->cache ? sums_make(sums, &h) : status;
}

static void remove_layer(const struct chain *c, uint32_t number)
{
    static const char *const suffixes[] = {"", ".map", ".sums"};
    for (size_t i = 0; number && i < ARRAY_SIZE(suffixes); i++) {
        _cleanup_free_ char *path = chain_layer_path(c->path, number, suffixes[i]);
        unlink(path);
    }
}

/* After a failure: the manifest that is there is the old one. */
static bool is_old(const struct chain *c, const char *path)
{
    _cleanup_(str_done) struct str text = {0};
    struct manifest m;
    struct err e = {0};
    uint8_t bytes[MANIFEST_MAX];
    if (file_read(path, MANIFEST_MAX, &text, &e) < 0)
        return e.code == ERR_NOT_FOUND && c->n == 1;
    describe(c, &m);
    return manifest_encode(&m, bytes) == text.len && memcmp(bytes, text.p, text.len) == 0;
}

/* On a thread where it may wait; I/O is held, so the chain does not change meanwhile. */
static int carry_out(void *context)
{
    const struct chain_change *ch = context;
    struct chain *c = ch->chain;
    uint8_t bytes[MANIFEST_MAX];
    size_t size = manifest_encode(&ch->next, bytes);
    _cleanup_free_ char *path = mem_printf("%s.chain", c->path);
    int status = ch->create ? make_head(c, ch->create) : 0;
    if (status == 0 && file_replace(path, bytes, size, 0600, NULL) < 0) {
        status = errno ? -errno : -EIO;
        if (!is_old(c, path))
            c->broken = EIO;
    }
    if (status < 0) {
        remove_layer(c, ch->create);
        return status;
    }
    /* An older manifest is found from now on. */
    struct sums_file *sums = checked_sums(c->layers[0]->file);
    status = sums ? sums_set_revision(sums, ch->next.revision) : 0;
    if (status < 0) {
        c->broken = EIO;
        return status;
    }
    for (unsigned i = 0; i < ch->removes; i++)
        remove_layer(c, ch->remove[i]);
    return 0;
}

static struct layer *take_number(struct layer *from[], unsigned n, uint32_t number)
{
    for (unsigned k = 0; k < n; k++) {
        struct layer *l = from[k];
        if (!l || l->number != number)
            continue;
        from[k] = NULL;
        return l;
    }
    return NULL;
}

/* Memory follows what is on disk now. */
static int follow(struct chain_change *ch)
{
    struct chain *c = ch->chain;
    struct layer *was[MANIFEST_LAYERS], *head = NULL;
    unsigned had = c->n;
    struct err e = {0};
    if (ch->create) {
        head = chain_layer_open(c, &ch->next.layer[ch->next.n - 1], 0, true, &e);
        if (!head)
            return EIO;
    }
    memcpy(was, c->layers, sizeof(was));
    for (unsigned i = 0; i < ch->next.n; i++) {
        const struct manifest_layer *m = &ch->next.layer[i];
        struct layer *old = take_number(was, had, m->number), *l = old ? old : head;
        if (!l)
            return EIO; /* plan() names only what there is */
        l->snapshot = m->snapshot;
        l->size = m->size;
        l->merged = m->merged;
        c->layers[i] = l;
    }
    c->n = ch->next.n;
    c->next = ch->next.next;
    c->revision = ch->next.revision;
    for (unsigned k = 0; k < had; k++)
        chain_layer_close(was[k]);
    return 0;
}

/* Nothing is under way yet: a merge of the head can begin only now. */
static void finish(struct chain_change *ch, int error)
{
    struct chain *c = ch->chain;
    c->change = NULL;
    c->changing = false;
    if (ch->kind >= CHANGE_MERGED && !c->closing)
        c->merge.copying = c->merge.flushed = false;
    chain_merge_check(c);
    chain_change_go(c);
    if (!c->change) {
        chain_merge_kick(c);
        chain_release(c);
    }
    ch->done(ch->context, error);
    if (ch->kind < CHANGE_MERGED)
        free(ch);
}

static void carried_out(struct io_request *request, int64_t result)
{
    struct chain_change *ch = container_of(request, struct chain_change, request);
    int error = result < 0 ? (int)-result : follow(ch);
    if (!result && error)
        ch->chain->broken = error; /* the disk has a head that cannot be opened */
    finish(ch, error);
}

static void flushed(struct store_io *io, int error)
{
    struct chain_change *ch = container_of(io, struct chain_change, flush);
    bool grows = ch->kind == CHANGE_GROW;
    if (!error)
        error = grows ? chain_grow_now(ch->chain, ch->id) : plan(ch);
    if (error || grows) {
        finish(ch, error);
        return;
    }
    ch->request =
        (struct io_request){.op = IO_CALL, .call = carry_out, .context = ch, .done = carried_out};
    io_submit(ch->chain->loop, &ch->request);
}

void chain_change_go(struct chain *c)
{
    if (!c->change && !list_empty(&c->changes))
        c->change = container_of(list_take(&c->changes), struct chain_change, link);
    if (!c->change || c->changing || c->inflight)
        return;
    c->changing = true;
    c->change->flush = (struct store_io){.op = STORE_FLUSH, .sums = true, .done = flushed};
    c->merge.flushed |= c->change->kind >= CHANGE_MERGED;
    chain_flush(c, &c->change->flush);
}

void chain_change_add(struct chain *c, struct chain_change *change)
{
    change->chain = c;
    list_init(&change->link);
    list_push(&c->changes, &change->link);
    chain_change_go(c);
}

void chain_change_ask(struct store *s, int kind, uint64_t id,
                      void (*done)(void *context, int error), void *context)
{
    struct chain_change *ch = NEW(struct chain_change);
    ch->kind = kind;
    ch->id = id;
    ch->done = done;
    ch->context = context;
    chain_change_add(chain_of(s), ch);
}

void chain_snapshot(struct store *s, uint64_t id, void (*done)(void *context, int error),
                    void *context)
{
    chain_change_ask(s, CHANGE_SNAPSHOT, id, done, context);
}

void chain_snapshot_drop(struct store *s, uint64_t id, void (*done)(void *context, int error),
                         void *context)
{
    if (chain_find(chain_of(s), id, NULL))
        chain_change_ask(s, CHANGE_DROP, id, done, context);
    else
        done(context, 0);
}

void chain_revert(struct store *s, uint64_t id, void (*done)(void *context, int error),
                  void *context)
{
    chain_change_ask(s, CHANGE_REVERT, id, done, context);
}

static uint64_t blocks(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

unsigned chain_snapshots(struct store *s, struct store_snapshot *out, unsigned most)
{
    const struct chain *c = chain_of(s);
    unsigned n = 0;
    for (unsigned i = 0; i < c->n && n < most; i++) {
        const struct layer *l = c->layers[i];
        if (!l->snapshot)
            continue;
        _cleanup_free_ char *path = chain_layer_path(c->path, l->number, "");
        out[n++] =
            (struct store_snapshot){.id = l->snapshot, .size = l->size, .used = blocks(path)};
    }
    return n;
}
