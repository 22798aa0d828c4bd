/*
 * SQLite's journal, the file PATH-wal, kept cheap to write to.
 *
 * Every commit ends with a sync of it. A sync of a file that grows also commits the file system's
 * own journal, and takes about twice as long as one of a file whose blocks are all there. So zeros
 * are written behind what is in the journal when the store is opened, which to SQLite are no frames,
 * and it starts again from the beginning before they are used up.
 *
 *     0          half          full
 *     |───────────|─────────────|          commits append
 *                 ^             ^
 *     a thread begins to copy   the leader copies the rest, which is little: the next
 *     to the database, beside   commit starts at 0 again
 *     the commits
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "k8s/apiserver/store_impl.h"

enum {
    JOURNAL_BYTES = 16 << 20,
    FRAME_BYTES = 8192 + 24,
    FULL = JOURNAL_BYTES / FRAME_BYTES - 100, /* a group that comes then still has room */
    HALF = FULL / 2,
};

struct store_journal {
    sqlite3 *db; /* the thread's own connection */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool wanted, stopping;
};

/* Nobody writes to the journal meanwhile. Without zeros everything works as well, only slower. */
static void fill(const char *journal)
{
    static const char zeros[64 << 10];
    int fd = open(journal, O_WRONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0) {
        for (off_t at = st.st_size; at < JOURNAL_BYTES; at += (off_t)sizeof(zeros)) {
            if (pwrite(fd, zeros, sizeof(zeros), at) != sizeof(zeros))
                break;
        }
    }
    close(fd);
}

static void *copy_on_demand(void *context)
{
    struct store_journal *j = context;
    pthread_mutex_lock(&j->lock);
    while (!j->stopping) {
        if (!j->wanted) {
            pthread_cond_wait(&j->woken, &j->lock);
            continue;
        }
        pthread_mutex_unlock(&j->lock);
        sqlite3_wal_checkpoint_v2(j->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        pthread_mutex_lock(&j->lock);
        j->wanted = false;
    }
    pthread_mutex_unlock(&j->lock);
    return NULL;
}

/* After each commit, on its thread. What cannot be copied now is tried again after the next. */
static int committed(void *context, sqlite3 *db, const char *name, int frames)
{
    struct store_journal *j = context;
    if (frames >= FULL) {
        sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    } else if (frames >= HALF && frames % (HALF / 4) < 4) {
        pthread_mutex_lock(&j->lock);
        j->wanted = true;
        pthread_cond_signal(&j->woken);
        pthread_mutex_unlock(&j->lock);
    }
    return SQLITE_OK;
}

int store_journal_start(struct apiserver_store *s, struct err *e)
{
    struct store_journal *j = NEW(struct store_journal);
    pthread_mutex_init(&j->lock, NULL);
    pthread_cond_init(&j->woken, NULL);
    s->journal = j;
    fill(sqlite3_filename_wal(sqlite3_db_filename(s->db, "main")));
    if (sqlite3_open_v2(sqlite3_db_filename(s->db, "main"), &j->db, SQLITE_OPEN_READWRITE, NULL) !=
            SQLITE_OK ||
        sqlite3_exec(j->db, "PRAGMA cache_size = -64; PRAGMA wal_autocheckpoint = 0;", NULL, NULL,
                     NULL) != SQLITE_OK) {
        int status = err_set(e, ERR_UNAVAILABLE, "StorageError", "cannot open the journal: %s",
                             sqlite3_errmsg(j->db));
        sqlite3_close(j->db);
        j->db = NULL;
        return status;
    }
    sigset_t all, was;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was);
    int errnum = pthread_create(&j->thread, NULL, copy_on_demand, j);
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    if (errnum) {
        sqlite3_close(j->db);
        j->db = NULL;
        return err_errno(e, errnum, "cannot start a thread for the store");
    }
    sqlite3_wal_hook(s->db, committed, j);
    return 0;
}

void store_journal_stop(struct apiserver_store *s)
{
    struct store_journal *j = s->journal;
    if (!j)
        return;
    if (j->db) {
        sqlite3_wal_hook(s->db, NULL, NULL);
        pthread_mutex_lock(&j->lock);
        j->stopping = true;
        pthread_cond_signal(&j->woken);
        pthread_mutex_unlock(&j->lock);
        pthread_join(j->thread, NULL);
        sqlite3_close(j->db);
    }
    pthread_cond_destroy(&j->woken);
    pthread_mutex_destroy(&j->lock);
    free(j);
    s->journal = NULL;
}
