/*
 * Authentication: who asks.
 */
#pragma once

struct call;

/* Sets c->user, which lives as long as the call. Unauthorized for credentials that are not valid. */
int apiserver_authenticate(struct call *c);
