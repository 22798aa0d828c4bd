/*
 * What JivaVolume and JivaVolumeResize share.
 */
#pragma once

#include "api/kind.h"

/* On a JivaVolume: "true" allows resizing; the name of the resize that holds the lock. */
#define API_JIVA_RESIZE_ENABLED "resize.jiva.openebs.io/enabled"
#define API_JIVA_RESIZE_LOCK    "resize.jiva.openebs.io/name"
/* Who the volume is: its data knows that name. Its uid, unless somebody brought one. */
#define API_JIVA_ID             "jiva.openebs.io/volume-id"
/* The nodes that have a replica each, and those whose folders are to be erased; separated by commas. */
#define API_JIVA_NODES          "jiva.openebs.io/nodes"
#define API_JIVA_STALE          "jiva.openebs.io/stale-nodes"
/* "Delete": data goes with the object. */
#define API_JIVA_RECLAIM        "jiva.openebs.io/reclaim-policy"
/* Label of a JivaVolumeResize: the volume that it is about. */
#define API_JIVA_NAME           "jiva.openebs.io/name"

enum {
    API_JIVA_NAME_MAX = 58, /* with "-ctrl", a label's value */
    API_JIVA_FACTOR = 3,    /* replicas, when nobody says how many */
    API_JIVA_REPLICAS = 7,  /* at most: a view has 8 members, one of which may be on its way in */
};

/* A bare number in spec.capacity counts GiB. */
void api_jiva_capacity(json_t *object, struct api_report *report);
/* How many replicas it is to have. */
unsigned api_jiva_factor(const json_t *volume);
/* How initiators prove who they are: "CHAP", or "None" where that was said. */
const char *api_jiva_authentication(const json_t *volume);
/* A size in bytes; 0 when it is none. */
uint64_t api_jiva_bytes(const char *text);
/*
 * jivaform.c: how to reach the volume, from what either form says, the iSCSI name at least; and the same as
 * spec.iscsiSpec has it. New references.
 */
json_t *api_jiva_iscsi(const json_t *volume);
json_t *api_jiva_iscsi_published(const json_t *iscsi);
