#include "node/label.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc.h"
#include "base/mem.h"
#include "base/str.h"
#include "node/exclusive.h"

static const char MAGIC[8] = {'O', 'R', 'L', 'O', 'P', 'B', 'D', '1'};
enum { SUM_AT = NODE_LABEL_SIZE - 4, BLOCK = 4096 };

bool node_label_decode(const unsigned char block[NODE_LABEL_SIZE], char ret_name[NODE_LABEL_NAME])
{
    uint32_t sum = crc_32c(block, SUM_AT);
    uint32_t stored = (uint32_t)block[SUM_AT] | (uint32_t)block[SUM_AT + 1] << 8 |
                      (uint32_t)block[SUM_AT + 2] << 16 | (uint32_t)block[SUM_AT + 3] << 24;
    const char *name = (const char *)block + sizeof(MAGIC);
    if (memcmp(block, MAGIC, sizeof(MAGIC)) != 0 || sum != stored || !*name ||
        !memchr(name, '\0', NODE_LABEL_NAME))
        return false;
    if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(name))
        return false;
    memcpy(ret_name, name, NODE_LABEL_NAME);
    return true;
}

void node_label_encode(const char *name, unsigned char ret_block[NODE_LABEL_SIZE])
{
    memset(ret_block, 0, NODE_LABEL_SIZE);
    memcpy(ret_block, MAGIC, sizeof(MAGIC));
    size_t n = strlen(name);
    memcpy(ret_block + sizeof(MAGIC), name, n < NODE_LABEL_NAME ? n : NODE_LABEL_NAME - 1);
    uint32_t sum = crc_32c(ret_block, SUM_AT);
    for (int i = 0; i < 4; i++)
        ret_block[SUM_AT + i] = (unsigned char)(sum >> 8 * i);
}

static void close_fd(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

/* The first 4 KiB are read and written as one: no sector of any disk is larger. */
static int write_block(int fd, const char *path, const char *name, struct err *e)
{
    void *memory;
    if (posix_memalign(&memory, BLOCK, BLOCK) != 0)
        return err_set(e, ERR_RESOURCE_EXHAUSTED, "OutOfMemory", "no memory to read %s", path);
    _cleanup_free_ unsigned char *block = memory;
    if (pread(fd, block, BLOCK, 0) != BLOCK)
        return err_errno(e, errno ? errno : EIO, "cannot read the beginning of %s", path);
    node_label_encode(name, block + NODE_LABEL_OFFSET);
    if (pwrite(fd, block, BLOCK, 0) != BLOCK || fsync(fd) < 0)
        return err_errno(e, errno ? errno : EIO, "cannot write a label to %s", path);
    char found[NODE_LABEL_NAME];
    memset(block, 0, BLOCK);
    if (pread(fd, block, BLOCK, 0) != BLOCK ||
        !node_label_decode(block + NODE_LABEL_OFFSET, found) || !str_eq(found, name))
        return err_set(e, ERR_DATA_LOSS, "LabelLost", "%s does not keep what is written to it",
                       path);
    return 0;
}

int node_label_write(const char *path, const char *name, struct err *e)
{
    _cleanup_(close_fd) int fd = node_open_exclusive(path, O_RDWR, e);
    if (fd < 0)
        return -1;
    errno = 0;
    return write_block(fd, path, name, e);
}
