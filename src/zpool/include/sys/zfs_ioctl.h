/*
 * libzpool's headers include one of this name that is not installed with them. Of what is in it they
 * need the name of a stream's record alone.
 */
#pragma once

typedef struct dmu_replay_record dmu_replay_record_t;
