/*
 * Authorization: may they.
 */
#pragma once

struct call;

/* Forbidden unless the call's user may do what its path says. */
int apiserver_authorize(struct call *c);
