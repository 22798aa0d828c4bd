/*
 * Reading ahead: one thread reads and parses documents while another works on them, in order.
 *
 *     reader ──full batches──> caller
 *        ^──────empty batches────┘
 *
 * A fixed number of batches goes round, so memory is bounded: a batch ends at BATCH_DOCS documents
 * or when their text passes BATCH_BYTES, and keeps none of an earlier round. A document belongs to
 * the reader while its batch is with the reader and to the caller while it is with the caller, and
 * its memory is used again.
 */
#pragma once

#include <pthread.h>

#include "json/doc.h"

enum { BATCH_DOCS = 32, BATCH_BYTES = 256 * 1024, BATCHES = 4 };

struct batch {
    struct batch *next;
    char *file; /* of the documents; owned */
    size_t count;
    struct ahead_doc {
        struct json_doc doc;
        bool parsed; /* else error says why not */
        struct err error;
    } docs[BATCH_DOCS];
};

struct ahead {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct batch batches[BATCHES];
    struct batch *empty, *full, **full_end; /* lists; full is in order */
    bool ended;                             /* nothing more will be full */
    bool stopped;                           /* the caller wants no more */
    struct err error;                       /* why it ended, if code is set */
    char *const *paths;
    int count;
};

/* Starts reading the files and folders. The paths must live until ahead_done(). */
int ahead_start(struct ahead *a, char *const *paths, int count, struct err *e);
/* The next batch, or NULL at the end: then a->error.code tells whether all was read. */
struct batch *ahead_next(struct ahead *a);
/* Gives a batch back. */
void ahead_return(struct ahead *a, struct batch *b);
/* Stops the reader and frees all. Waits for a read that is under way: a pipe may take its time. */
void ahead_done(struct ahead *a);
