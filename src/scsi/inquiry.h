/*
 * The commands that only tell or set something: inquiry.c, vpd.c, mode.c, report.c, ready.c,
 * capacity.c.
 */
#pragma once

#include "scsi/impl.h"

void scsi_run_inquiry(struct scsi_task *t);
/* Answers with a page of vital product data, or refuses. */
void scsi_give_vpd(struct scsi_task *t, uint8_t code);

void scsi_run_mode_sense(struct scsi_task *t);
void scsi_run_mode_select(struct scsi_task *t);

void scsi_run_report_luns(struct scsi_task *t);
void scsi_run_report_opcodes(struct scsi_task *t);
void scsi_run_report_management(struct scsi_task *t);

void scsi_run_test_unit_ready(struct scsi_task *t);
void scsi_run_request_sense(struct scsi_task *t);
bool scsi_check_start_stop(struct scsi_task *t);
void scsi_run_start_stop(struct scsi_task *t);
void scsi_run_prevent_allow(struct scsi_task *t);
void scsi_run_read_defects(struct scsi_task *t);

bool scsi_check_capacity(struct scsi_task *t);
void scsi_run_read_capacity_10(struct scsi_task *t);
void scsi_run_read_capacity_16(struct scsi_task *t);
