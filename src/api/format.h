/*
 * The formats that strings of the API have. See struct api_format.
 */
#pragma once

#include "api/field.h"

extern const struct api_format api_dns_subdomain;  /* object names */
extern const struct api_format api_dns_label;      /* namespaces */
extern const struct api_format api_qualified_name; /* label keys, finalizers */
extern const struct api_format api_annotation_key;
extern const struct api_format api_label_value;
extern const struct api_format api_finalizer;
extern const struct api_format api_ip;
extern const struct api_format api_port;   /* a port number as a string */
extern const struct api_format api_portal; /* IP:port */
extern const struct api_format api_iqn;
extern const struct api_format api_host_path; /* absolute, no ".." */
extern const struct api_format api_count;     /* a positive decimal number as a string */
extern const struct api_format api_sequence;  /* an unsigned decimal number as a string */
extern const struct api_format api_replica_id;
extern const struct api_format api_compression;
extern const struct api_format api_lvm_name;
extern const struct api_format api_volume_id; /* in the name of a folder, and an argument */
extern const struct api_format api_zpool_name;
extern const struct api_format api_base64;   /* of a Secret's data */
extern const struct api_format api_data_key; /* a key of a ConfigMap or Secret */
