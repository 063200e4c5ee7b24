/* SPDX-License-Identifier: MIT */
/*
 * TensorBoard's event files: records of protocol buffers.
 *
 *     u64 length | u32 masked CRC-32C of it | bytes | u32 masked CRC-32C of these
 *
 * The file is its own memory: opened again, it is read, a record that was cut off is
 * removed, and points that it has already are left out.
 *
 *     DT_TRY(dt_event_file_open(&f, "run/tensorboard", start, err));
 *     DT_TRY(dt_event_file_add(f, &point, err));
 *     DT_TRY(dt_event_file_close(f, err));
 *
 * Messages: tensorflow/core/util/event.proto, framework/summary.proto, and the plug-ins
 * "hparams" and "text" of TensorBoard.
 */
#ifndef DT_TRACK_EVENT_FILE_H
#define DT_TRACK_EVENT_FILE_H

#include "base/error.h"
#include "track/points.h"

struct dt_event_file;

/* Opens the file of this run in a directory, or makes both. start: seconds since 1970
 * when the run began; the name has it, and points are that much later. A file that dt-track
 * made there before is taken, whatever its start. */
int dt_event_file_open(struct dt_event_file **file, const char *directory, double start,
                       struct dt_error *err) DT_MUST_CHECK;
/* Adds a scalar, unless its step is old. */
int dt_event_file_add(struct dt_event_file *file, const struct dt_point *point,
                      struct dt_error *err) DT_MUST_CHECK;
/* Adds what the run was told, name: text, for the tab of hyperparameters; once. */
int dt_event_file_add_settings(struct dt_event_file *file, struct json_object *settings,
                               struct dt_error *err) DT_MUST_CHECK;
/* Adds a text for the tab of that name, unless its step is old. */
int dt_event_file_add_text(struct dt_event_file *file, const char *tag, int64_t step,
                           const char *text, size_t size, struct dt_error *err) DT_MUST_CHECK;
/* How the run ended; once for each end. */
int dt_event_file_add_end(struct dt_event_file *file, bool success,
                          struct dt_error *err) DT_MUST_CHECK;
/* Hands what was added to the system. */
int dt_event_file_flush(struct dt_event_file *file, struct dt_error *err) DT_MUST_CHECK;
const char *dt_event_file_path(const struct dt_event_file *file);
int dt_event_file_close(struct dt_event_file *file, struct dt_error *err) DT_MUST_CHECK;

#endif
