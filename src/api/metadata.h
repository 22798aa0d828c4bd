/*
 * The rules of metadata that every kind shares: names, namespaces, labels, annotations.
 */
#pragma once

#include "api/kind.h"

void api_check_metadata(const struct api_kind *kind, const json_t *object,
                        struct api_report *report);
void api_check_metadata_update(const struct api_kind *kind, const json_t *old, const json_t *object,
                               struct api_report *report);
