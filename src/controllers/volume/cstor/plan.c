/*
 * Which replicas come, leave and go, from what the volume has and what is wanted.
 *
 *     stays ──> too many, or unwanted where it is ──> leaves ──> the target says so ──> goes
 *       ^                                               │
 *       └──────── more are wanted, and it has not left ─┘
 *
 * - A replica that leaves is replaced first: the target lets it go when the others are as many as
 *   are wanted, and well. So all that is decided here is who.
 * - Of too many, those go first that have not all data; then the last by name.
 * - Before there is data nobody has to be asked: a replica that is unwanted goes at once.
 * - A volume has at most CSTOR_MEMBERS replicas with those that leave, so of many that are unwanted
 *   some wait for their turn.
 */
#include "controllers/volume/cstor/cstor.h"

static bool stays(const struct cstor_replica *r, const struct cstor_plan *p, size_t i)
{
    return !r[i].deleting && !p->remove[i] && ((!r[i].leaving && !p->leave[i]) || p->stay[i]);
}

static unsigned count_staying(const struct cstor_replica *r, size_t n, const struct cstor_plan *p)
{
    unsigned count = 0;
    for (size_t i = 0; i < n; i++)
        count += stays(r, p, i);
    return count;
}

/* Of those that stay, who can be spared best; n: there is none. */
static size_t find_spare(const struct cstor_replica *r, size_t n, const struct cstor_plan *p)
{
    size_t worst = n;
    for (size_t i = 0; i < n; i++) {
        if (!stays(r, p, i))
            continue;
        if (worst == n || r[i].healthy < r[worst].healthy ||
            (r[i].healthy == r[worst].healthy && strcmp(r[i].pool, r[worst].pool) > 0))
            worst = i;
    }
    return worst;
}

static void send_away(const struct cstor_replica *r, struct cstor_plan *p, size_t i, bool made)
{
    p->stay[i] = false;
    p->leave[i] = made && !r[i].leaving;
    p->remove[i] = !made;
}

void cstor_plan(const struct cstor_replica *r, size_t n, unsigned wanted, bool made,
                struct cstor_plan *p)
{
    *p = (struct cstor_plan){0};
    unsigned all = 0;
    for (size_t i = 0; i < n; i++) {
        p->remove[i] = r[i].leaving && !r[i].deleting && (r[i].removed || !made);
        all += !r[i].deleting && !p->remove[i];
    }
    /* Each that is unwanted needs a place beside it for its successor. */
    for (size_t i = 0; i < n; i++) {
        if (!r[i].unwanted || !stays(r, p, i) || (made && all >= CSTOR_MEMBERS))
            continue;
        send_away(r, p, i, made);
        all += made;
    }
    unsigned staying = count_staying(r, n, p);
    for (size_t i = 0; i < n && staying < wanted; i++) {
        if (r[i].leaving && !r[i].deleting && !p->remove[i] && !r[i].unwanted) {
            p->stay[i] = true;
            staying++;
        }
    }
    for (; staying > wanted; staying--)
        send_away(r, p, find_spare(r, n, p), made);
    p->add = wanted - staying;
}
