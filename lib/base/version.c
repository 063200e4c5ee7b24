/* SPDX-License-Identifier: MIT */
#include "base/version.h"

#include <dt-version.h> /* made by the Makefile of what share/setup/version prints */

const char dt_version[] = DT_VERSION;
const char dt_version_commit[] = DT_COMMIT;
