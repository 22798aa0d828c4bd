/*
 * Units and nexuses: how they are made, what they are told, how they end.
 */
#include "base/crc.h"
#include "scsi/impl.h"

void scsi_attention_all(struct scsi_unit *u, const struct scsi_nexus *but, enum scsi_attention a)
{
    list_for_each(&u->nexuses, it, struct scsi_nexus, link) {
        if (!but || it != but)
            it->attentions |= 1U << a;
    }
}

enum scsi_sense scsi_attention_take(struct scsi_nexus *n)
{
    static const enum scsi_sense codes[ATTENTIONS] = {
        [ATTENTION_POWER_ON] = SENSE_POWER_ON,
        [ATTENTION_RESET] = SENSE_RESET,
        [ATTENTION_MEDIUM] = SENSE_MEDIUM_CHANGED,
        [ATTENTION_CAPACITY] = SENSE_CAPACITY_CHANGED,
        [ATTENTION_MODE] = SENSE_MODE_CHANGED,
        [ATTENTION_PREEMPTED] = SENSE_RESERVATIONS_PREEMPTED,
        [ATTENTION_REGISTRATIONS] = SENSE_REGISTRATIONS_PREEMPTED,
        [ATTENTION_RELEASED] = SENSE_RESERVATIONS_RELEASED,
        [ATTENTION_CLEARED] = SENSE_COMMANDS_CLEARED,
    };
    int first = __builtin_ctz(n->attentions);
    n->attentions &= ~(1U << first);
    return codes[first];
}

bool scsi_is_protected(const struct scsi_unit *u)
{
    return u->read_only || u->mode.write_protect;
}

void scsi_unit_review(struct scsi_unit *u)
{
    u->special = u->ejected || u->sanitize.going || u->sanitize.failed || scsi_is_protected(u) ||
                 scsi_reserve_any(&u->reserve);
}

void scsi_unit_resized(struct scsi_unit *u)
{
    u->blocks = u->store->size >> u->shift;
    scsi_attention_all(u, NULL, ATTENTION_CAPACITY);
}

void scsi_unit_changed(struct scsi_unit *u)
{
    scsi_attention_all(u, NULL, ATTENTION_MEDIUM);
}

void scsi_nexus_cleared(struct scsi_nexus *n)
{
    n->attentions |= 1U << ATTENTION_CLEARED;
}

/* Only what INQUIRY may say: printable ASCII. */
static void put_name(char *to, size_t size, const char *from)
{
    size_t n = 0;
    for (; from && from[n] && n + 1 < size; n++)
        to[n] = from[n] >= ' ' && from[n] <= '~' ? from[n] : '?';
    to[n] = 0;
}

/* NAA 3h, locally assigned: 60 bits that follow from the serial number. */
static void make_naa(uint8_t naa[8], const char *serial)
{
    size_t n = strlen(serial);
    uint64_t hash = (uint64_t)crc_32c(serial, n) << 32 | crc_32c_more(0x6f726c6f, serial, n);
    be_put64(naa, hash);
    naa[0] = (uint8_t)(0x30 | (naa[0] & 0x0f));
}

static int check_config(const struct scsi_unit_config *c, struct err *e)
{
    uint32_t b = c->block_size;
    if (b != 512 && b != 4096)
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidBlockSize",
                       "a block size of %u bytes is not possible; it is 512 or 4096", b);
    if (!c->store->block_size || b % c->store->block_size)
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidBlockSize",
                       "a block size of %u bytes is not possible on a store of blocks of %u", b,
                       c->store->block_size);
    if (c->store->size < b)
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidSize",
                       "a store of %llu bytes is too small for a block of %u",
                       (unsigned long long)c->store->size, b);
    if (!c->serial || !*c->serial)
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidSerial", "a unit needs a serial number");
    return 0;
}

struct scsi_unit *scsi_unit_new(const struct scsi_unit_config *c, struct err *e)
{
    if (check_config(c, e) < 0)
        return NULL;
    struct scsi_unit *u = NEW(struct scsi_unit);
    if (scsi_reserve_init(&u->reserve, c->state_dir, c->serial, e) < 0) {
        free(u);
        return NULL;
    }
    u->store = c->store;
    u->block_size = c->block_size;
    u->shift = (uint8_t)__builtin_ctz(c->block_size);
    u->blocks = c->store->size >> u->shift;
    u->lun = c->lun;
    u->read_only = c->read_only || c->store->read_only;
    u->thin = c->thin;
    u->removable = c->removable;
    u->atomic_blocks =
        (c->store->atomic < SCSI_TRANSFER_MAX ? c->store->atomic : SCSI_TRANSFER_MAX) >> u->shift;
    if (u->atomic_blocks > UINT16_MAX)
        u->atomic_blocks = UINT16_MAX; /* as the CDB can say */
    list_init(&u->running);
    list_init(&u->waiting);
    list_init(&u->nexuses);
    u->serial = mem_strndup(c->serial, 128);
    put_name(u->serial, strlen(u->serial) + 1, u->serial);
    put_name(u->vendor, sizeof(u->vendor), c->vendor);
    put_name(u->product, sizeof(u->product), c->product);
    put_name(u->revision, sizeof(u->revision), c->revision);
    make_naa(u->naa, c->serial);
    scsi_mode_reset(u);
    scsi_sanitize_init(u, c->state_dir);
    scsi_unit_review(u);
    return u;
}

/* Peripheral or flat addressing. */
bool scsi_unit_is(const struct scsi_unit *u, uint64_t lun)
{
    return lun == (uint64_t)u->lun << 48 || lun == (uint64_t)(0x4000 | u->lun) << 48;
}

void scsi_unit_free(struct scsi_unit *u)
{
    if (!u)
        return;
    scsi_reserve_done(&u->reserve);
    free(u->sanitize.pattern);
    free(u->sanitize.path);
    free(u->serial);
    free(u);
}

/* The same for all ports of an initiator, and after every restart (FNV-1a of its name); never 0. */
static uint64_t client_of(const char *initiator_port)
{
    uint64_t hash = 0xcbf29ce484222325U;
    for (size_t n = strcspn(initiator_port, ","), i = 0; i < n; i++)
        hash = (hash ^ (uint8_t)initiator_port[i]) * 0x100000001b3U;
    return hash ? hash : 1;
}

static bool has_other_port(const struct scsi_nexus *n)
{
    list_for_each(&n->unit->nexuses, it, struct scsi_nexus, link)
        if (it != n && it->client == n->client)
            return true;
    return false;
}

struct scsi_nexus *scsi_nexus_new(struct scsi_unit *u, const char *initiator_port,
                                  const char *target_port, uint16_t target_port_id)
{
    struct scsi_nexus *n = NEW(struct scsi_nexus);
    n->unit = u;
    put_name(n->port.initiator, sizeof(n->port.initiator), initiator_port);
    n->port.target = target_port_id;
    n->target_port = mem_strndup(target_port, 250);
    n->attentions = 1U << ATTENTION_POWER_ON;
    n->copied.state = 0xff;
    n->client = client_of(initiator_port);
    list_push(&u->nexuses, &n->link);
    store_client(u->store, n->client, false);
    return n;
}

void scsi_nexus_free(struct scsi_nexus *n)
{
    if (!n)
        return;
    scsi_reserve_nexus_lost(n->unit, n);
    if (!has_other_port(n))
        store_client(n->unit->store, n->client, true);
    list_unlink(&n->link);
    free(n->target_port);
    free(n);
}
