/*
 * `orlop-apiserver backup` and `orlop-apiserver restore`: what `orlop backup` and `orlop restore`
 * run. Exit status as in cli/cli.h.
 */
#pragma once

int backup_main(int argc, char **argv);
int restore_main(int argc, char **argv);
