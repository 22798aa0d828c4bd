#include "ctl/ahead.h"

#include <errno.h>
#include <fts.h>
#include <sys/stat.h>

/* An empty batch for the reader; NULL when the caller wants no more. */
static struct batch *take_empty(struct ahead *a)
{
    pthread_mutex_lock(&a->lock);
    while (!a->empty && !a->stopped)
        pthread_cond_wait(&a->changed, &a->lock);
    struct batch *b = a->stopped ? NULL : a->empty;
    if (b)
        a->empty = b->next;
    pthread_mutex_unlock(&a->lock);
    return b;
}

static void give_full(struct ahead *a, struct batch *b)
{
    pthread_mutex_lock(&a->lock);
    b->next = NULL;
    *a->full_end = b;
    a->full_end = &b->next;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

/* Fills a batch from the stream; false at its end. */
static bool fill(struct batch *b, struct json_stream *stream)
{
    size_t bytes = 0;
    for (b->count = 0; b->count < BATCH_DOCS && bytes < BATCH_BYTES; b->count++) {
        struct ahead_doc *d = &b->docs[b->count];
        size_t before = json_stream_position(stream);
        int found = json_stream_next(stream, &d->doc, &d->error);
        if (found == 0)
            return false;
        d->parsed = found > 0;
        bytes += json_stream_position(stream) - before;
    }
    return true;
}

/* -1: the caller wants no more. */
static int read_stream(struct ahead *a, FILE *f, const char *name)
{
    _cleanup_(json_stream_freep) struct json_stream *stream = json_stream_new(f);
    for (bool more = true; more;) {
        struct batch *b = take_empty(a);
        if (!b)
            return -1;
        more = fill(b, stream);
        for (size_t i = b->count; i < BATCH_DOCS; i++)
            json_doc_done(&b->docs[i].doc); /* of an earlier round: it could be a large one */
        free(b->file);
        b->file = mem_strdup(name);
        give_full(a, b);
    }
    return 0;
}

static int read_file(struct ahead *a, const char *path)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return err_errno(&a->error, errno, "%s", path);
    int status = read_stream(a, f, path);
    fclose(f);
    return status;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static bool is_manifest(const char *name)
{
    return str_ends_with(name, ".yaml") || str_ends_with(name, ".yml") ||
           str_ends_with(name, ".json");
}

/*
 * A file, or a link to one, as a mounted ConfigMap has them; a link that leads nowhere is found out
 * when it is read. Links to folders are not followed: they could lead in circles.
 */
static bool is_file(const FTSENT *entry)
{
    struct stat st;
    return entry->fts_info == FTS_F ||
           (entry->fts_info == FTS_SL && (stat(entry->fts_path, &st) < 0 || S_ISREG(st.st_mode)));
}

static int read_folder(struct ahead *a, char *path)
{
    int how = FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR;
    FTS *tree = fts_open((char *const[]){path, NULL}, how, by_name);
    if (!tree)
        return err_errno(&a->error, errno, "%s", path);
    int status = 0;
    const FTSENT *entry;
    while (status == 0 && (entry = fts_read(tree))) {
        if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR)
            status = err_errno(&a->error, entry->fts_errno, "%s", entry->fts_path);
        else if (is_file(entry) && is_manifest(entry->fts_name))
            status = read_file(a, entry->fts_path);
    }
    fts_close(tree);
    return status;
}

static int read_path(struct ahead *a, char *path)
{
    struct stat st;
    if (str_eq(path, "-"))
        return read_stream(a, stdin, "<stdin>");
    if (stat(path, &st) < 0)
        return err_errno(&a->error, errno, "%s", path);
    return S_ISDIR(st.st_mode) ? read_folder(a, path) : read_file(a, path);
}

static void *read_all(void *context)
{
    struct ahead *a = context;
    for (int i = 0; i < a->count; i++) {
        if (read_path(a, a->paths[i]) < 0)
            break;
    }
    pthread_mutex_lock(&a->lock);
    a->ended = true;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

int ahead_start(struct ahead *a, char *const *paths, int count, struct err *e)
{
    *a = (struct ahead){.paths = paths, .count = count};
    a->full_end = &a->full;
    for (size_t i = 0; i < BATCHES; i++) {
        a->batches[i].next = a->empty;
        a->empty = &a->batches[i];
    }
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    int errnum = pthread_create(&a->thread, NULL, read_all, a);
    return errnum ? err_errno(e, errnum, "cannot start a thread") : 0;
}

struct batch *ahead_next(struct ahead *a)
{
    pthread_mutex_lock(&a->lock);
    while (!a->full && !a->ended)
        pthread_cond_wait(&a->changed, &a->lock);
    struct batch *b = a->full;
    if (b) {
        a->full = b->next;
        if (!a->full)
            a->full_end = &a->full;
    }
    pthread_mutex_unlock(&a->lock);
    return b;
}

void ahead_return(struct ahead *a, struct batch *b)
{
    pthread_mutex_lock(&a->lock);
    b->next = a->empty;
    a->empty = b;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

void ahead_done(struct ahead *a)
{
    pthread_mutex_lock(&a->lock);
    a->stopped = true;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    for (size_t i = 0; i < BATCHES; i++) {
        for (size_t j = 0; j < BATCH_DOCS; j++)
            json_doc_done(&a->batches[i].docs[j].doc);
        free(a->batches[i].file);
    }
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
}
