#include "base/clock.h"
#include "base/mem.h"
#include "kube/event_impl.h"

void event_memory_init(struct event_memory *m)
{
    *m = (struct event_memory){0};
    list_init(&m->order);
}

static void entry_free(struct event_entry *it)
{
    list_unlink(&it->link);
    free(it->key);
    free(it->name);
    free(it);
}

void event_memory_done(struct event_memory *m)
{
    list_for_each_safe(&m->order, it, struct event_entry, link)
        entry_free(it);
    map_done(&m->entries);
}

/* The entry with that key, made if there is none, as the last to be forgotten. Takes the key. */
static struct event_entry *get(struct event_memory *m, char *key, int64_t at)
{
    struct event_entry *it = map_get(&m->entries, key);
    if (it) {
        free(key);
        list_unlink(&it->link);
        list_push(&m->order, &it->link);
        return it;
    }
    if (m->entries.count == EVENT_ENTRIES) {
        struct event_entry *oldest = list_first(&m->order, struct event_entry, link);
        map_remove(&m->entries, oldest->key);
        entry_free(oldest);
    }
    it = NEW(struct event_entry);
    it->key = key;
    it->at = it->first = at;
    it->tokens = EVENT_BURST;
    list_init(&it->link);
    list_push(&m->order, &it->link);
    map_set(&m->entries, key, it);
    return it;
}

/* The message's place among those of the group; false when there are too many. */
static bool is_apart(struct event_entry *group, const char *message, int64_t at)
{
    uint64_t hash = 0xcbf29ce484222325U; /* FNV-1a: who collides is combined, no more */
    for (const char *c = message; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 0x100000001b3U;
    if (at - group->at > EVENT_WINDOW_SECONDS * CLOCK_SECOND)
        group->n_messages = 0;
    group->at = at;
    for (unsigned i = 0; i < group->n_messages; i++) {
        if (group->messages[i] == hash)
            return true;
    }
    if (group->n_messages == EVENT_MESSAGES)
        return false;
    group->messages[group->n_messages++] = hash;
    return true;
}

static bool take_token(struct event_entry *object, int64_t at)
{
    if (at > object->at) { /* the wall clock may have been set back */
        object->tokens += (double)(at - object->at) / (double)CLOCK_SECOND / EVENT_REFILL_SECONDS;
        if (object->tokens > EVENT_BURST)
            object->tokens = EVENT_BURST;
    }
    object->at = at;
    if (object->tokens < 1)
        return false;
    object->tokens -= 1;
    return true;
}

struct event_entry *event_memory_see(struct event_memory *m, const char *object, const char *what,
                                     const char *message, int64_t at, bool *ret_combined)
{
    struct event_entry *group = get(m, mem_printf("%s|%s", object, what), at);
    *ret_combined = !is_apart(group, message, at);
    bool send = take_token(get(m, mem_strdup(object), at), at);
    struct event_entry *event =
        get(m, mem_printf("%s|%s|%s", object, what, *ret_combined ? "" : message), at);
    event->count++;
    event->at = at;
    return send ? event : NULL;
}
