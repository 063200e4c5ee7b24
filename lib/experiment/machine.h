/* SPDX-License-Identifier: MIT */
/*
 * The facts of a machine that a measurement depends on, as one JSON object:
 *
 *     {"host","cpu","architecture","processors","memory_bytes","kernel","version"}
 *
 * and, of the measured command, its file and the hash of its contents, which identifies a build.
 */
#ifndef DT_EXPERIMENT_MACHINE_H
#define DT_EXPERIMENT_MACHINE_H

#include "json/json.h"

/* command: searched on PATH, as by execvp. The caller owns the object. */
struct json_object *dt_machine_facts(const char *command);

/* Load average of the last minute; NAN if unknown. */
double dt_machine_load(void);

#endif
