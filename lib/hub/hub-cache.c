/* SPDX-License-Identifier: MIT */
/* Names, and the layout of the cache. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "hub/hub-internal.h"

/* --- names ------------------------------------------------------------------------------------*/

static bool is_plain(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!isalnum((unsigned char)text[i]) && strchr("-_.", text[i]) == NULL)
            return false;
    return size > 0 && *text != '.' && memmem(text, size, "--", 2) == NULL;
}

/* A branch may have slashes, which a name writes as %2F. */
static char *unescape(const char *text, size_t size)
{
    struct dt_buffer plain = DT_BUFFER_EMPTY;
    for (size_t i = 0; i < size; i++) {
        bool slash = i + 2 < size && strncasecmp(text + i, "%2f", 3) == 0;
        dt_buffer_add_char(&plain, slash ? '/' : text[i]);
        i += slash ? 2 : 0;
    }
    return plain.data;
}

int dt_hub_name_parse(struct dt_hub_name *n, const char *text, struct dt_error *err)
{
    static const char data[] = "datasets/";
    const char *at = text + strlen(DT_OPTIONS_HUB);
    *n = (struct dt_hub_name){.data = strncmp(at, data, sizeof data - 1) == 0};
    at += n->data ? sizeof data - 1 : 0;
    size_t owner = strcspn(at, "/"), name = at[owner] ? strcspn(at + owner + 1, "@/") : 0;
    const char *rest = at[owner] ? at + owner + 1 + name : at + owner;
    size_t revision = *rest == '@' ? strcspn(rest + 1, "/") : 0;
    const char *file = *rest == '@' ? rest + 1 + revision : rest;
    if (!is_plain(at, owner) || at[owner] == '\0' || !is_plain(at + owner + 1, name) ||
        (*rest == '@' && revision == 0) || strstr(rest, ".."))
        return dt_fail(err, DT_EINVALID, "%s: is not hf://[datasets/]OWNER/NAME[@REVISION][/FILE]",
                       text);
    n->repository = dt_strndup(at, owner + 1 + name);
    n->revision = revision ? unescape(rest + 1, revision) : dt_strdup("main");
    if (*file == '/' && file[1]) {
        n->file = dt_strdup(file + 1);
        return dt_path_check_inside(n->file, text, err);
    }
    return 0;
}

void dt_hub_name_release(struct dt_hub_name *n)
{
    free(n->repository);
    free(n->revision);
    free(n->file);
}

bool dt_hub_is_commit(const char *revision)
{
    return strlen(revision) == 40 && revision[strspn(revision, "0123456789abcdef")] == '\0';
}

/* --- paths ------------------------------------------------------------------------------------*/

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

char *dt_hub_home(void)
{
    const char *home = setting("HF_HOME"), *xdg = setting("XDG_CACHE_HOME"),
               *user = setting("HOME");
    if (home)
        return dt_strdup(home);
    return xdg ? dt_asprintf("%s/huggingface", xdg)
               : dt_asprintf("%s/.cache/huggingface", user ? user : ".");
}

static char *cache_root(void)
{
    const char *cache = setting("HF_HUB_CACHE");
    char *home = dt_hub_home(), *root = cache ? dt_strdup(cache) : dt_path_join(home, "hub");
    free(home);
    return root;
}

static char *folder_of(const struct dt_hub_name *n)
{
    const char *slash = strchr(n->repository, '/');
    return dt_asprintf("%s--%.*s--%s", n->data ? "datasets" : "models",
                       (int)(slash - n->repository), n->repository, slash + 1);
}

char *dt_hub_cache_directory(const struct dt_hub_name *n)
{
    char *root = cache_root(), *folder = folder_of(n), *path = dt_path_join(root, folder);
    free(root);
    free(folder);
    return path;
}

char *dt_hub_cache_path(const struct dt_hub_name *n, const char *commit, const char *file)
{
    char *directory = dt_hub_cache_directory(n);
    char *path =
        dt_asprintf("%s/snapshots/%s%s%s", directory, commit, file ? "/" : "", file ? file : "");
    free(directory);
    return path;
}

/* --- commits ----------------------------------------------------------------------------------*/

static char *ref_path(const struct dt_hub_name *n)
{
    char *directory = dt_hub_cache_directory(n);
    char *path = dt_asprintf("%s/refs/%s", directory, n->revision);
    free(directory);
    return path;
}

char *dt_hub_cache_commit(const struct dt_hub_name *n)
{
    struct dt_error ignored;
    char *text = NULL, *path = ref_path(n);
    size_t size;
    if (dt_hub_is_commit(n->revision))
        text = dt_strdup(n->revision);
    else if (dt_file_read(path, 100, &text, &size, &ignored) == 0)
        text[strcspn(text, "\r\n")] = '\0';
    free(path);
    if (text && !dt_hub_is_commit(text)) {
        free(text);
        text = NULL;
    }
    return text;
}

int dt_hub_cache_set_commit(const struct dt_hub_name *n, const char *commit, struct dt_error *err)
{
    char *path = ref_path(n);
    int rc = 0;
    if (!dt_hub_is_commit(n->revision)) {
        rc = dt_file_make_parent(path, err);
        rc = rc < 0 ? rc : dt_file_write(path, commit, strlen(commit), err);
    }
    free(path);
    return rc;
}

/* --- links and locks --------------------------------------------------------------------------*/

int dt_hub_cache_link(const struct dt_hub_name *n, const char *commit, const char *file,
                      const char *etag, struct dt_error *err)
{
    char *path = dt_hub_cache_path(n, commit, file);
    struct dt_buffer target = DT_BUFFER_EMPTY;
    dt_buffer_add_string(&target, "../../");
    for (const char *at = file; (at = strchr(at, '/')) != NULL; at++)
        dt_buffer_add_string(&target, "../");
    dt_buffer_printf(&target, "blobs/%s", etag);
    int rc = dt_file_make_parent(path, err);
    rc = rc < 0 ? rc : dt_file_replace_symlink(target.data, path, err);
    dt_buffer_release(&target);
    free(path);
    return rc;
}

int dt_hub_cache_lock(const struct dt_hub_name *n, const char *etag, struct dt_error *err)
{
    char *root = cache_root(), *folder = folder_of(n);
    char *path = dt_asprintf("%s/.locks/%s/%s.lock", root, folder, etag);
    int rc = dt_file_make_parent(path, err), fd = -1;
    if (rc == 0 && (fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644)) < 0)
        rc = dt_fail_errno(err, "cannot create '%s'", path);
    while (rc == 0 && flock(fd, LOCK_EX) < 0)
        rc = errno == EINTR ? 0 : dt_fail_errno(err, "cannot lock '%s'", path);
    if (rc < 0 && fd >= 0)
        close(fd);
    free(path);
    free(folder);
    free(root);
    return rc < 0 ? rc : fd;
}
