/* SPDX-License-Identifier: MIT */
/* Malformed text files: a good one in which a part is replaced, and the error that this gives. */
#ifndef DT_TESTS_CHANGED_H
#define DT_TESTS_CHANGED_H

#include "scratch.h"

#include <string.h>

#include "base/buffer.h"

struct change {
    const char *from, *to;
    const char *message; /* begins what follows "PATH: " */
};

/* Writes whole with the first `from` replaced by `to`. */
static inline void write_changed(const char *path, const char *whole, const char *from,
                                 const char *to)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    const char *at = strstr(whole, from);
    assert_non_null(at);
    dt_buffer_append(&text, whole, (size_t)(at - whole));
    dt_buffer_add_string(&text, to);
    dt_buffer_add_string(&text, at + strlen(from));
    write_bytes(path, text.data, text.size);
    dt_buffer_release(&text);
}

static inline void assert_message(const struct change *c, const char *path, int rc,
                                  const struct dt_error *err)
{
    size_t n = strlen(path);
    if (rc != DT_EFORMAT || strncmp(err->text, path, n) != 0 ||
        strncmp(err->text + n, ": ", 2) != 0 ||
        strncmp(err->text + n + 2, c->message, strlen(c->message)) != 0)
        fail_msg("'%s' for '%s': %d '%s', not '%s'", c->to, c->from, rc, err->text, c->message);
}

#endif
