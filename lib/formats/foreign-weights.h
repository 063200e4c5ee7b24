/* SPDX-License-Identifier: MIT */
/* Models as other programs store them, which dt does not read: how to convert them. */
#ifndef DT_FORMATS_FOREIGN_WEIGHTS_H
#define DT_FORMATS_FOREIGN_WEIGHTS_H

#include "base/error.h"

/* DT_EFORMAT, with a command that converts, if path is a directory with weights in another format
 * (PyTorch, TensorFlow, Flax) or an adapter, or such a file; otherwise 0. */
int dt_foreign_weights_refuse(const char *path, struct dt_error *err) DT_MUST_CHECK;

#endif
