/*
 * The commands of rw.c, verify.c, atomic.c, same.c, unmap.c and copy.c: those that touch the medium.
 */
#pragma once

#include "scsi/impl.h"

void scsi_run_read(struct scsi_task *t);
void scsi_run_write(struct scsi_task *t);
bool scsi_check_atomic(struct scsi_task *t);
void scsi_run_write_atomic(struct scsi_task *t);
void scsi_run_synchronize(struct scsi_task *t);
void scsi_run_prefetch(struct scsi_task *t);

bool scsi_check_verify(struct scsi_task *t);
void scsi_run_verify(struct scsi_task *t);
void scsi_run_write_verify(struct scsi_task *t);

bool scsi_check_compare(struct scsi_task *t);
void scsi_run_compare_and_write(struct scsi_task *t);
void scsi_run_orwrite(struct scsi_task *t);

bool scsi_check_write_same(struct scsi_task *t);
void scsi_run_write_same(struct scsi_task *t);

bool scsi_check_unmap(struct scsi_task *t);
void scsi_run_unmap(struct scsi_task *t);
bool scsi_check_lba_status(struct scsi_task *t);
void scsi_run_lba_status(struct scsi_task *t);

bool scsi_check_sanitize(struct scsi_task *t);
void scsi_run_sanitize(struct scsi_task *t);

bool scsi_check_copy(struct scsi_task *t);
void scsi_run_copy(struct scsi_task *t);
void scsi_run_copy_results(struct scsi_task *t);
