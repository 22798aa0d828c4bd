/*
 * One object in another form.
 */
#pragma once

#include "api/kind.h"

enum api_form {
    API_FORM_SEED,      /* the canonical version, normal form */
    API_FORM_PUBLISHED, /* the version and names that the peers published */
};

/* An admitted object in the given form, without defaults; report gets warnings. New reference. */
json_t *api_convert(const struct api_kind *kind, const json_t *object, enum api_form form,
                    struct api_report *report);

/*
 * A StoragePoolClaim, what came before CStorPoolCluster, as one. It does not say which device is on
 * which node, so `context` (an array) must hold either its CStorPool objects, which know groups and
 * node, or the BlockDevice objects that it lists. NULL with errors in the report.
 */
json_t *api_convert_spc(const json_t *spc, const json_t *context, struct api_report *report);
bool api_is_spc(const json_t *object);
