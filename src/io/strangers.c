#include "io/strangers.h"

#include <string.h>
#include <sys/random.h>

#include "base/net.h"

static void dismiss(struct io_strangers *of, struct io_stranger *s, const char *why)
{
    list_unlink(&s->link);
    of->dismiss(s, why);
}

static void expire(struct io_timer *timer)
{
    struct io_strangers *of = container_of(timer, struct io_strangers, timer);
    list_for_each_safe(&of->all, s, struct io_stranger, link) {
        if (io_loop_now(of->loop) < s->since + of->patience) {
            io_timer_start(of->loop, timer, s->since + of->patience);
            return;
        }
        dismiss(of, s, "it did not show in time who it is");
    }
}

void io_strangers_init(struct io_strangers *of)
{
    list_init(&of->all);
    of->timer = (struct io_timer){.fn = expire};
}

void io_strangers_done(struct io_strangers *of)
{
    io_timer_stop(of->loop, &of->timer);
}

static bool is_from(const struct io_stranger *s, const char *address)
{
    return !address || strcmp(s->address, address) == 0;
}

/* One of them goes if there are so many already; address NULL: from anywhere. */
static void make_room(struct io_strangers *of, const char *address, unsigned most)
{
    unsigned n = 0, chance = 0;
    list_for_each(&of->all, s, struct io_stranger, link)
        n += is_from(s, address);
    if (!n || n < most)
        return;
    if (getrandom(&chance, sizeof(chance), GRND_NONBLOCK) != sizeof(chance))
        chance = (unsigned)io_loop_now(of->loop);
    chance %= n;
    list_for_each_safe(&of->all, s, struct io_stranger, link) {
        if (is_from(s, address) && chance-- == 0) {
            dismiss(of, s, "too many that did not show who they are");
            return;
        }
    }
}

void io_strangers_add(struct io_strangers *of, struct io_stranger *s, const struct sockaddr *peer)
{
    list_init(&s->link);
    s->since = io_loop_now(of->loop);
    net_address_text(peer, s->address, sizeof(s->address));
    make_room(of, s->address, of->most_per_address);
    make_room(of, NULL, of->most);
    if (list_empty(&of->all))
        io_timer_start(of->loop, &of->timer, s->since + of->patience);
    list_push(&of->all, &s->link);
}

void io_strangers_leave(struct io_stranger *s)
{
    list_unlink(&s->link);
}
