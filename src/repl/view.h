/*
 * Quorum arithmetic: pure functions of views and lineages.
 */
#pragma once

#include "repl/repl.h"

/* How many of n voters must have a write: the configured number, at least a majority, at most n. */
static inline unsigned repl_cf(unsigned cf, unsigned n)
{
    unsigned majority = n / 2 + 1;
    cf = cf > majority ? cf : majority;
    return cf < n ? cf : n;
}
/* How many meet every set of cf. */
static inline unsigned repl_meet(unsigned cf, unsigned n)
{
    return n ? n - repl_cf(cf, n) + 1 : 0;
}

/* Index in the view, or -1. */
int repl_view_find(const struct repl_view *v, const struct uuid *id);
/* How many members have this flag (REPL_VOTER, REPL_OLD). */
unsigned repl_view_count(const struct repl_view *v, uint8_t flag);
/* A snapshot by its id or name; index or -1. */
int repl_snap_find(const struct repl_snaps *s, uint64_t id);
int repl_snap_named(const struct repl_snaps *s, const char *name);
bool repl_held_has(const struct repl_held *h, uint64_t id);
void repl_held_add(struct repl_held *h, uint64_t id);
void repl_held_drop(struct repl_held *h, uint64_t id);
/* How many of a volume's snapshots are not there. */
unsigned repl_held_lacks(const struct repl_held *h, const struct repl_snaps *s);
/* The largest size that it may have. */
uint64_t repl_view_most(const struct repl_view *v);
/* Structure, as a decoder must check it. */
int repl_view_check(const struct repl_view *v, struct err *e);

/*
 * The last position that a replica at pos with lineage x shares with a history of lineage t, which goes on.
 * 0 when they share none that is known.
 */
uint64_t repl_fork(const struct repl_lineage *x, uint64_t pos, const struct repl_lineage *t);
/* What is left of a mark, which only targets make whose epoch is in every later lineage; 0: nothing. */
uint64_t repl_fork_mark(uint64_t mark, const struct repl_lineage *t);
/* Ends the last epoch at pos and begins another; forgets the oldest when full. */
void repl_lineage_add(struct repl_lineage *l, uint64_t pos, uint32_t epoch, uint64_t owner);
