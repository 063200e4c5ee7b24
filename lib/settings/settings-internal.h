/* SPDX-License-Identifier: MIT */
/* Private to the settings of a training run (settings.c): what its parts share. */
#ifndef DT_SETTINGS_SETTINGS_INTERNAL_H
#define DT_SETTINGS_SETTINGS_INTERNAL_H

#include "settings/settings.h"

/*
 * Checks settings that need others, whatever the number of ranks (settings-needs.c). DT_EINVALID
 * names the setting, its value and what it needs; path begins the message.
 */
int dt_settings_check_needs(const struct dt_settings *s, const char *path,
                            struct dt_error *err) DT_MUST_CHECK;

#endif
