/*
 * Objects from YAML templates, which are files that tools/embed.py compiles into the program.
 *
 *     name: ${name}-svc        a text with values in it: strings and integers
 *     replicas: ${count}       the whole scalar is one placeholder: any JSON value takes its place
 *     affinity: ${affinity?}   the member, or the item of a list, is left out when there is no value
 *     - ${tolerations...}      in a list: the items of an array; none when there is no value
 *     - $when: chap            in a list: the items stand there when the value of that name is given and
 *       $items: [...]          not false
 *
 * The template is parsed first and its values are put into the tree, so no value can change the structure
 * around it, whatever characters it has. "$(VAR)" is Kubernetes' own and is left alone.
 */
#pragma once

#include "json/json.h"

struct kube_template {
    const char *name; /* of the file, for messages */
    const char *text;
};

/*
 * The object that the template becomes with the values, an object by name. INTERNAL, with the file and the
 * line, when a placeholder has no value, has one that does not fit, or is none.
 */
json_t *kube_template_fill(const struct kube_template *t, const json_t *values, struct err *e);
