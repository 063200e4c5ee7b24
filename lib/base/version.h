/* SPDX-License-Identifier: MIT */
/* The version of dt, for --version, lineage and records of measurements. */
#ifndef DT_BASE_VERSION_H
#define DT_BASE_VERSION_H

/* "0.2.0" of a release; "0.2.0+c6ed965" of another commit, "-dirty" if files differed from it. */
extern const char dt_version[];
/* The commit in full; empty if unknown. */
extern const char dt_version_commit[];

#endif
