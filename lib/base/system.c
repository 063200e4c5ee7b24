/* SPDX-License-Identifier: MIT */
#include "base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

bool dt_system_draw(void *bytes, size_t size)
{
    return getrandom(bytes, size, 0) == (ssize_t)size;
}

socklen_t dt_system_name_local(struct sockaddr_un *address, const void *name, size_t bytes)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path + 1, name, bytes); /* after a 0: an abstract name */
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + bytes);
}

#define UNMAPPED 65534 /* what users of other namespaces are shown as */

bool dt_system_is_own_peer(int socket)
{
    struct ucred peer;
    int domain = 0;
    socklen_t size = sizeof peer, domain_size = sizeof domain;
    return getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &domain_size) == 0 &&
           domain == AF_UNIX && getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           peer.uid == geteuid() && peer.uid != UNMAPPED;
}

int dt_system_memory_file(const char *name)
{
    return memfd_create(name, MFD_CLOEXEC);
}

void dt_system_prefer_huge_pages(void *memory, size_t size)
{
    madvise(memory, size, MADV_HUGEPAGE);
}

int dt_system_processors(bool *may, int limit)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) < 0)
        return -1;
    for (int i = 0; i < limit; i++)
        may[i] = i < CPU_SETSIZE && CPU_ISSET((size_t)i, &set);
    return CPU_COUNT(&set);
}

void dt_system_set_program_name(const char *name)
{
    program_invocation_short_name = (char *)name;
}

const char *dt_system_program_name(void)
{
    return program_invocation_short_name;
}

void dt_system_program_path(char path[PATH_MAX])
{
    const char *started_as = (const char *)getauxval(AT_EXECFN);
    if (realpath("/proc/self/exe", path) == NULL && /* /proc is not mounted */
        realpath(started_as, path) == NULL)         /* its directory cannot be read */
        snprintf(path, PATH_MAX, "%s", started_as);
}

int dt_system_exchange(const char *one, const char *other)
{
#ifdef RENAME_EXCHANGE
    return renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE);
#else /* musl before 1.2.6 */
    return (int)syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, 2 /* RENAME_EXCHANGE */);
#endif
}

int dt_system_watch(pid_t child)
{
    return (int)syscall(SYS_pidfd_open, child, 0);
}

bool dt_system_is_device(dev_t device, unsigned high, unsigned low)
{
    return high == major(device) && low == minor(device);
}

bool dt_system_is_kernel_data(const char *folder)
{
    struct statfs fs;
    return statfs(folder, &fs) == 0 && (fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC);
}

bool dt_system_is_in_memory(const char *directory)
{
    struct statfs system;
    return statfs(directory, &system) == 0 && system.f_type == TMPFS_MAGIC;
}

/* Before Linux 5.8 syncfs does not report errors, and a network file system may not pass it on. */
bool dt_system_can_sync_all(int directory)
{
    static const unsigned long types[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
                                          TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC};
    struct utsname system;
    struct statfs fs;
    int major = 0, minor = 0;
    if (uname(&system) < 0 || sscanf(system.release, "%d.%d", &major, &minor) != 2 ||
        major * 100 + minor < 508 || fstatfs(directory, &fs) < 0)
        return false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if ((unsigned long)fs.f_type == types[i])
            return true;
    return false;
}

int dt_system_sync_all(int directory)
{
    return syncfs(directory);
}
