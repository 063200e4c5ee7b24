/* SPDX-License-Identifier: MIT */
/*
 * What Linux has and POSIX has not. For another system, base/system.c is the file to change. Files
 * that only Linux has (/proc/cpuinfo, /proc/locks, /sys/fs/cgroup) are named where they are read,
 * and may be absent.
 */
#ifndef DT_BASE_SYSTEM_H
#define DT_BASE_SYSTEM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

/* Random bytes for keys; false, with errno, if there are none. */
bool dt_system_draw(void *bytes, size_t size);

/* The address of a local socket of that name, which is in no file system; returns its length. */
socklen_t dt_system_name_local(struct sockaddr_un *address, const void *name, size_t bytes);

/* Whether this is a local socket whose other end a process of this user opened. */
bool dt_system_is_own_peer(int socket);

/* A file in memory, closed by exec; -1 with errno. */
int dt_system_memory_file(const char *name);

/* A hint: large pages for memory. */
void dt_system_prefer_huge_pages(void *memory, size_t size);

/* The number of processors that this thread may run on, or -1 if it is not known. Sets may[i] of
 * the first limit processors. */
int dt_system_processors(bool *may, int limit);

/* The name that messages begin with: that of the program's file until one is set (borrowed). */
void dt_system_set_program_name(const char *name);
const char *dt_system_program_name(void);

/* The path of this program's file; as it was started, if its links cannot be followed. */
void dt_system_program_path(char path[PATH_MAX]);

/* Exchanges the names of two files at once; -1 with errno. */
int dt_system_exchange(const char *one, const char *other);

/* A descriptor that becomes readable when the child ends; -1 if there is none. */
int dt_system_watch(pid_t child);

/* Whether a file's device has these numbers, of which /proc names it. */
bool dt_system_is_device(dev_t device, unsigned high, unsigned low);

/* Whether a folder holds the kernel's own data (/proc, /sys), where no file can be created. */
bool dt_system_is_kernel_data(const char *folder);

/* Whether a directory is of a file system in memory (tmpfs). */
bool dt_system_is_in_memory(const char *directory);

/* Whether dt_system_sync_all writes all of the directory's file system to the disk, and tells
 * errors. */
bool dt_system_can_sync_all(int directory);
int dt_system_sync_all(int directory); /* -1 with errno */

#endif
