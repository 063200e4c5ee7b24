/* SPDX-License-Identifier: MIT */
/*
 * TensorBoard's event files: records of protocol buffers.
 *
 *     u64 length | u32 masked CRC-32C of it | bytes | u32 masked CRC-32C of these
 *
 * The file records which points were written: on reopening it is read, an incomplete last record is
 * removed, and points that it contains are skipped.
 *
 *     DT_TRY(dt_event_file_open(&f, "run/tensorboard", start, mark, err));
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

/* Opens or creates the run's event file in a directory. start: Unix time of the run's start; wall
 * times are start plus the points' seconds. mark: a hash of the run, or "" if it has none yet. Both
 * are parts of the file's name. An existing file of dt-track with the same start or the same mark
 * is continued. */
int dt_event_file_open(struct dt_event_file **file, const char *directory, double start,
                       const char *mark, struct dt_error *err) DT_MUST_CHECK;
/* Adds a scalar, unless its step is not above the last one of its name. */
int dt_event_file_add(struct dt_event_file *file, const struct dt_point *point,
                      struct dt_error *err) DT_MUST_CHECK;
/* Adds the settings {name: text} for the HPARAMS tab, once. */
int dt_event_file_add_settings(struct dt_event_file *file, struct json_object *settings,
                               struct dt_error *err) DT_MUST_CHECK;
/* Adds a text for the TEXT tab, unless its step is not above the last one of its tag. */
int dt_event_file_add_text(struct dt_event_file *file, const char *tag, int64_t step,
                           const char *text, size_t size, struct dt_error *err) DT_MUST_CHECK;
/* Adds the run's final status for HPARAMS, once: readers keep the first. */
int dt_event_file_add_end(struct dt_event_file *file, bool success,
                          struct dt_error *err) DT_MUST_CHECK;
/* Flushes to the kernel. */
int dt_event_file_flush(struct dt_event_file *file, struct dt_error *err) DT_MUST_CHECK;
const char *dt_event_file_path(const struct dt_event_file *file);
int dt_event_file_close(struct dt_event_file *file, struct dt_error *err) DT_MUST_CHECK;

#endif
