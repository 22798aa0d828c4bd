/*
 * The follower that gives each namespace its account and its certificates, and keeps the latter
 * fresh.
 */
#pragma once

#include "k8s/apiserver/follow.h"

extern const struct apiserver_follower apiserver_serviceaccounts;
