/* SPDX-License-Identifier: MIT */
/*
 * The facts of a machine that a measurement depends on, as one JSON object:
 *
 *     {"host","cpu","architecture","processors","memory_bytes","kernel","version"}
 *
 * and, of the command measured, the file that is run and the hash of its bytes, which
 * tells two builds apart.
 */
#ifndef DT_EXPERIMENT_MACHINE_H
#define DT_EXPERIMENT_MACHINE_H

#include "json/json.h"

/* command: looked for on PATH, as it will be run. The caller owns the object. */
struct json_object *dt_machine_facts(const char *command);

/* Runnable processes over the last minute; NAN if unknown. */
double dt_machine_load(void);

#endif
