/*
 * The control socket: how commands on the same machine reach a running server, whatever its
 * addresses and users are. It lies in the data folder, FOLDER/control.sock, and takes only whoever
 * could read the store anyway: the server's own user, and root.
 *
 *     client:  backup\n
 *     server:  copying PAGES OF\n          as often as it has something to say
 *              size BYTES REVISION\n       then so many bytes, the copy
 *     or:      error MESSAGE\n            at any line
 *
 * One command at a time; others wait.
 */
#pragma once

#include "k8s/apiserver/store.h"

struct apiserver_control;

/* The store must stay open as long as it runs. */
int apiserver_control_start(const char *folder, struct apiserver_store *store,
                            struct apiserver_control **ret_control, struct err *e);
/* Gives up a command that is under way. NULL is fine. */
void apiserver_control_stop(struct apiserver_control *c);

enum apiserver_backup_step { APISERVER_BACKUP_COPYING, APISERVER_BACKUP_RECEIVING };

struct apiserver_backup_progress {
    void (*fn)(void *context, enum apiserver_backup_step step, uint64_t done, uint64_t total);
    void *context;
};

/*
 * Has the server of that folder make a copy and writes it to fd. NOT_FOUND ("NotRunning") when there
 * is no server; the store is then for whoever locks it.
 */
int apiserver_control_backup(const char *folder, int fd,
                             const struct apiserver_backup_progress *progress,
                             uint64_t *ret_revision, struct err *e);
