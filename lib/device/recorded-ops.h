/* SPDX-License-Identifier: MIT */
/* Ops that record a span each (base/time-spans.h), with their operations and bytes. */
#ifndef DT_DEVICE_RECORDED_OPS_H
#define DT_DEVICE_RECORDED_OPS_H

#include "device/device.h"

/* From now on the device's ops record spans on threads that have a list; each op of a device with
 * separate memory then waits for its result. One engine of a process at a time. */
void dt_device_record_ops(struct dt_device *dev);
void dt_device_end_recording(struct dt_device *dev); /* the engine's ops again */

#endif
