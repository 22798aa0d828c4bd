/*
 * Snapshots of a replicated volume, as JSON and as people see them.
 *
 *     {"name":NAME,"id":ID,"created":TIME,"size":BYTES,"replicas":N,"missingOn":[UUID,...]}
 *
 * replicas is how many members of the volume have it, as they say themselves; who is away is known not to have it, or
 * not known to.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/quantity.h"
#include "base/rfc3339.h"
#include "base/str.h"
#include "json/json.h"
#include "repl/view.h"
#include "target/target.h"

bool target_snapshot_name(const char *name)
{
    size_t n = strlen(name);
    if (!n || n >= REPL_SNAP_NAME || !isalnum((unsigned char)name[0]))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("._-", name[i]))
            return false;
    return true;
}

static json_t *one(const struct repl_snap *snap, const struct repl_status *s)
{
    char created[RFC3339_MAX], id[32];
    json_int_t have = 0;
    json_t *missing = json_array();
    for (int i = 0; i < s->n; i++) {
        char replica[UUID_TEXT_MAX];
        bool has = s->replica[i].link >= 0 && repl_held_has(&s->replica[i].held, snap->id);
        have += has;
        if (!has)
            json_array_append_new(missing,
                                  json_string(uuid_format(&s->replica[i].replica_id, replica)));
    }
    snprintf(id, sizeof(id), "%" PRIu64, snap->id);
    rfc3339_format((struct timespec){.tv_sec = (time_t)snap->created}, RFC3339_SECONDS, created);
    return json_pack("{s:s,s:s,s:s,s:I,s:I,s:o}", "name", snap->name, "id", id, "created", created,
                     "size", (json_int_t)snap->size, "replicas", have, "missingOn", missing);
}

json_t *target_snapshots_brief(const struct target *t)
{
    const struct repl_snaps *all = replio_volume_snaps(t->volume);
    json_t *list = json_array();
    for (int i = 0; i < all->n; i++) {
        char created[RFC3339_MAX];
        rfc3339_format((struct timespec){.tv_sec = (time_t)all->at[i].created}, RFC3339_SECONDS,
                       created);
        json_array_append_new(list,
                              json_pack("{s:s,s:s}", "name", all->at[i].name, "created", created));
    }
    return list;
}

json_t *target_snapshots(const struct target *t)
{
    const struct repl_snaps *all = replio_volume_snaps(t->volume);
    struct repl_status s;
    json_t *list = json_array();
    replio_volume_status(t->volume, &s);
    for (int i = 0; i < all->n; i++)
        json_array_append_new(list, one(&all->at[i], &s));
    return list;
}

static void later(const struct target *t, const char *name, struct str *out)
{
    const struct repl_snaps *all = replio_volume_snaps(t->volume);
    int first = repl_snap_named(all, name) + 1;
    str_appendf(out, "there are snapshots later than %s:", name);
    for (int i = first; i < all->n; i++)
        str_appendf(out, "%s %s", i > first ? "," : "", all->at[i].name);
    str_append(out, "; delete them first");
}

void target_snapshot_why(const struct target *t, const char *name, int error, struct str *out)
{
    switch (error) {
    case EEXIST:
        str_appendf(out, "there is a snapshot called %s: give another name, or delete it first",
                    name);
        break;
    case ENOENT:
        str_appendf(out, "no snapshot is called %s: `snapshots` lists those that there are", name);
        break;
    case ENOSPC:
        str_appendf(out, "there are %d snapshots, as many as a volume can have: delete one first",
                    REPL_SNAPS);
        break;
    case ENOTEMPTY:
        later(t, name, out);
        break;
    default:
        str_append(out, "the volume waits for its replicas, or something else is under way: wait "
                        "until it serves and that has ended");
    }
}

void target_snapshots_print(const json_t *list)
{
    size_t i;
    json_t *it;
    printf("%-32s %-21s %10s %9s\n", "NAME", "CREATED", "SIZE", "REPLICAS");
    json_array_foreach((json_t *)(uintptr_t)list, i, it) {
        char size[QUANTITY_TEXT_MAX];
        struct quantity q =
            quantity_from_int(json_integer_value(json_object_get(it, "size")), QUANTITY_BINARY_SI);
        json_int_t have = json_integer_value(json_object_get(it, "replicas"));
        printf("%-32s %-21s %10s %4" JSON_INTEGER_FORMAT "/%-4" JSON_INTEGER_FORMAT "\n",
               json_str(it, "name"), json_str(it, "created"), quantity_format(&q, size), have,
               have + (json_int_t)json_array_size(json_object_get(it, "missingOn")));
    }
}
