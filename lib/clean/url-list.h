/* SPDX-License-Identifier: MIT */
/*
 * Lists of host names and URL prefixes, for millions of entries: a set of 64-bit hashes, of 16 to
 * 32 bytes an entry.
 *
 *     struct dt_url_list *list;
 *     DT_TRY(dt_url_list_read(&list, "domains.txt", err));
 *     if (dt_url_list_has(list, url, strlen(url)))
 *         drop();
 *     dt_url_list_free(list);
 *
 * An entry is a host name, "example.org", which stands for all its subdomains, or a prefix of URLs,
 * "example.org/a/b" or "https://example.org/a/b", which ends where a part of the path or the query
 * does. Schemes, user names, ports, "www." and the case of host names do not count.
 */
#ifndef DT_CLEAN_URL_LIST_H
#define DT_CLEAN_URL_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct dt_url_list;

/* Reads a list: an entry on each line, also compressed by gzip or zstd; blank lines and lines that
 * begin with # do not count. DT_EFORMAT names a line that no URL can match. *list is owned by the
 * caller (dt_url_list_free). */
int dt_url_list_read(struct dt_url_list **list, const char *path,
                     struct dt_error *err) DT_MUST_CHECK;
void dt_url_list_free(struct dt_url_list *list); /* NULL is fine */

bool dt_url_list_has(const struct dt_url_list *list, const char *url, size_t size);

#endif
