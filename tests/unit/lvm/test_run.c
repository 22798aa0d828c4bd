/*
 * What lvm's words mean: as LVM 2.03 writes them.
 */
#include "lvm/impl.h"
#include "unit.h"

#define WARNING "  WARNING: Activation disabled. No device-mapper interaction will be attempted.\n"

static void test_meanings(void **state)
{
    (void)state;
    static const struct {
        enum lvm_intent intent;
        int status;
        const char *text;
        enum err_code code;
        const char *reason, *message; /* part of it */
    } table[] = {
        {LVM_TO_CREATE, 5,
         WARNING "  Logical Volume \"v\" already exists in volume group \"orlop\"\n", ERR_OK},
        {LVM_TO_CREATE, 5,
         WARNING "  Volume group \"orlop\" has insufficient free space (486 extents): 25600 "
                 "required.\n",
         ERR_RESOURCE_EXHAUSTED, "NoSpace", "486 extents"},
        {LVM_TO_CREATE, 5,
         "  Insufficient suitable allocatable extents for logical volume v: 10 more required\n",
         ERR_RESOURCE_EXHAUSTED, "NoSpace", "10 more required"},
        {LVM_TO_GROW, 5,
         WARNING "  Insufficient free space: 25575 extents needed, but only 486 available\n",
         ERR_OUT_OF_RANGE, "NoSpace", "25575 extents"},
        {LVM_TO_GROW, 5, WARNING "  New size (25 extents) matches existing size (25 extents).\n",
         ERR_OK},
        {LVM_TO_GROW, 5,
         "  Rounding size to boundary between physical extents: 52.00 MiB.\n"
         "  New size given (13 extents) not larger than existing size (25 extents)\n",
         ERR_OK},
        {LVM_TO_GROW, 5, "  Logical volume nope not found in volume group orlop.\n", ERR_NOT_FOUND,
         "NoLogicalVolume"},
        {LVM_TO_GROW, 5, "  Volume group \"nope\" not found\n  Cannot process volume group nope\n",
         ERR_NOT_FOUND, "NoVolumeGroup", "\"nope\" not found; Cannot process"},
        {LVM_TO_REMOVE, 5, "  Failed to find logical volume \"orlop/nope\"\n", ERR_OK},
        {LVM_TO_REMOVE, 5, "  Logical volume orlop/v contains a filesystem in use.\n",
         ERR_UNAVAILABLE, "InUse"},
        {LVM_TO_REMOVE, 5, "  Logical volume orlop/v is used by another device.\n", ERR_UNAVAILABLE,
         "InUse"},
        {LVM_TO_CREATE, 5, "  Can't create raid1 without using device-mapper kernel driver.\n",
         ERR_FAILED_PRECONDITION, "NoDeviceMapper"},
        {LVM_TO_CREATE, 5, "  Cannot change VG orlop while PVs are missing.\n", ERR_UNAVAILABLE,
         "DiskMissing"},
        {LVM_TO_CREATE, 3, "  Run `lvcreate --help' for more information.\n", ERR_INVALID_ARGUMENT,
         "BadOptions"},
        {LVM_TO_CREATE, 5, "  The moon is in the wrong place\n", ERR_INTERNAL, "CommandFailed",
         "lvm ended with 5: The moon"},
        {LVM_TO_CREATE, 5, WARNING, ERR_INTERNAL, "CommandFailed", "it did not say why"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct err e = {0};
        int status = lvm_classify(table[i].intent, table[i].status, table[i].text, &e);
        if ((status == 0) != (table[i].code == ERR_OK) || e.code != table[i].code ||
            (table[i].reason && !str_eq(e.reason, table[i].reason)) ||
            (table[i].message && !strstr(e.msg, table[i].message)) || strstr(e.msg, "WARNING"))
            fail_msg("row %zu: %d %s: %s", i, (int)e.code, e.reason ? e.reason : "", e.msg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_meanings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
