/*
 * What JivaVolume and JivaVolumeResize share.
 */
#pragma once

#include "api/kind.h"

/* On a JivaVolume: "true" allows resizing; the name of the resize that holds the lock. */
#define API_JIVA_RESIZE_ENABLED "resize.jiva.openebs.io/enabled"
#define API_JIVA_RESIZE_LOCK    "resize.jiva.openebs.io/name"
/* Label of a JivaVolumeResize: the volume that it is about. */
#define API_JIVA_NAME           "jiva.openebs.io/name"

/* A bare number in spec.capacity counts GiB. */
void api_jiva_capacity(json_t *object, struct api_report *report);
