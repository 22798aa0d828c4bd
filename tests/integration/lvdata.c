/*
 * Reads and writes a logical volume by its segments, and renames it, for tests:
 *
 *     lvdata FOLDER read VG/LV OFFSET SIZE > bytes
 *     lvdata FOLDER write VG/LV OFFSET SIZE < bytes
 *     lvdata FOLDER rename VG LV NEW
 *
 * FOLDER is a node's LVM folder, with its devices in FOLDER/dev.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "lvm/data.h"

enum { MOST = 64 << 20 };

static int move(struct lvm *l, char **words, struct err *e)
{
    _cleanup_(lvm_view_unrefp) struct lvm_view *v = NULL;
    char *slash = strchr(words[1], '/');
    uint64_t from = strtoull(words[2], NULL, 10), size = strtoull(words[3], NULL, 10);
    if (!slash || size > MOST)
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage", "VG/LV OFFSET SIZE");
    *slash = '\0';
    _cleanup_free_ char *bytes = mem_zalloc(size + 1);
    if (lvm_look(l, &v, e) < 0)
        return -1;
    if (str_eq(words[0], "read")) {
        if (lvm_data_read(v, words[1], slash + 1, from, bytes, size, e) < 0)
            return -1;
        return fwrite(bytes, 1, size, stdout) == size ? 0 : -1;
    }
    if (fread(bytes, 1, size, stdin) != size)
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage", "too little to write");
    return lvm_data_write(v, words[1], slash + 1, from, bytes, size, e);
}

int main(int argc, char **argv)
{
    struct err e = {0};
    if (argc != 6)
        return 2;
    bool rename = str_eq(argv[2], "rename");
    _cleanup_(lvm_closep) struct lvm *l = NULL;
    _cleanup_free_ char *devices = mem_printf("%s/dev", argv[1]);
    const struct lvm_options o = {.folder = argv[1], .device_dir = devices};
    if (lvm_open(&o, &l, &e) == 0 &&
        (rename ? lvm_rename(l, argv[3], argv[4], argv[5], &e) : move(l, argv + 2, &e)) == 0)
        return 0;
    fprintf(stderr, "lvdata: %s\n", e.msg);
    return 1;
}
