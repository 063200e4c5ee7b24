/* SPDX-License-Identifier: MIT */
#include "unicode/character-map.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "unicode/utf8.h"

#define IS_VALUE  (1u << 31)
#define HAS_VALUE (1u << 8)

struct dt_character_map {
    struct dt_buffer bytes; /* of the file */
    uint32_t *units;        /* [count] */
    uint32_t count;
    const char *texts; /* in bytes */
    size_t text_size;
    bool keeps[128];
    bool has_space, joins_lines;
};

static uint32_t offset_of(uint32_t unit)
{
    return (unit & ~IS_VALUE) >> 10 << ((unit & 1u << 9) >> 6);
}

static uint32_t read_unit(const char *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes;
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* Follows one byte from the node with these children. Returns whether the node exists. */
static bool follow(const struct dt_character_map *m, uint32_t *children, unsigned char byte,
                   const uint32_t **value)
{
    uint32_t at = *children ^ byte;
    if (at >= m->count || (m->units[at] & (IS_VALUE | 0xff)) != byte)
        return false;
    *children = at ^ offset_of(m->units[at]);
    *value = m->units[at] & HAS_VALUE ? &m->units[*children] : NULL;
    return true;
}

static size_t find(const struct dt_character_map *m, const char *text, size_t size, bool shortest,
                   struct dt_character_map_text *to)
{
    uint32_t children = offset_of(m->units[0]);
    const uint32_t *value, *found = NULL;
    size_t length = 0;
    for (size_t i = 0; i < size && !(shortest && text[i] == 0) &&
                       follow(m, &children, (unsigned char)text[i], &value);
         i++) {
        if (value == NULL)
            continue;
        found = value;
        length = i + 1;
        if (shortest)
            break;
    }
    if (found) {
        to->data = m->texts + (*found & ~IS_VALUE);
        to->size = strlen(to->data);
    }
    return length;
}

size_t dt_character_map_longest(const struct dt_character_map *map, const char *text, size_t size,
                                struct dt_character_map_text *to)
{
    return find(map, text, size, false, to);
}

size_t dt_character_map_shortest(const struct dt_character_map *map, const char *text, size_t size,
                                 struct dt_character_map_text *to)
{
    return find(map, text, size, true, to);
}

bool dt_character_map_keeps(const struct dt_character_map *map, unsigned char byte)
{
    return byte < 128 && map->keeps[byte];
}

const char *dt_character_map_bytes(const struct dt_character_map *map, size_t *size)
{
    *size = map->bytes.size;
    return map->bytes.data;
}

/* Values must be offsets of whole characters, and each unit that has a value lead to one. Units
 * that only damaged text could reach are checked too. */
static int check_units(const struct dt_character_map *m, struct dt_error *err)
{
    for (uint32_t i = 0; i < m->count; i++) {
        uint32_t unit = m->units[i], value = unit & ~IS_VALUE;
        if (unit & IS_VALUE) {
            if (value >= m->text_size || (m->texts[value] & 0xc0) == 0x80)
                return dt_fail(err, DT_EFORMAT,
                               "character map: unit %u leads to byte %u of %zu bytes of text", i,
                               value, m->text_size);
        } else if (unit & HAS_VALUE) {
            uint32_t at = i ^ offset_of(unit);
            if (at >= m->count || !(m->units[at] & IS_VALUE))
                return dt_fail(err, DT_EFORMAT, "character map: unit %u has no value", i);
        }
    }
    return 0;
}

static void find_kept(struct dt_character_map *m)
{
    for (unsigned byte = 0; byte < 128; byte++) {
        uint32_t children = offset_of(m->units[0]);
        const uint32_t *value = NULL;
        m->keeps[byte] = true;
        if (!follow(m, &children, (unsigned char)byte, &value))
            continue;
        m->keeps[byte] = value == NULL;
        for (unsigned next = 0; next < 128; next++) {
            uint32_t deeper = children;
            if (follow(m, &deeper, (unsigned char)next, &value))
                m->keeps[byte] = false;
        }
    }
}

static bool has_children(const struct dt_character_map *m, uint32_t children)
{
    const uint32_t *value;
    for (unsigned byte = 0; byte < 256; byte++) {
        uint32_t at = children;
        if (follow(m, &at, (unsigned char)byte, &value))
            return true;
    }
    return false;
}

/* Finds the bytes of sequences of several, in the nodes below the root. Damaged units may form
 * cycles. */
static void find_inner(const struct dt_character_map *m, bool inner[256])
{
    bool *seen = dt_alloc(m->count, sizeof *seen);
    uint32_t *nodes = dt_alloc(m->count, sizeof *nodes), count = 0; /* their children's offsets */
    const uint32_t *value;
    nodes[count++] = offset_of(m->units[0]);
    for (bool root = true; count > 0; root = false) {
        uint32_t node = nodes[--count];
        for (unsigned byte = 0; byte < 256; byte++) {
            uint32_t children = node, unit = node ^ byte;
            if (!follow(m, &children, (unsigned char)byte, &value))
                continue;
            inner[byte] = inner[byte] || !root || has_children(m, children);
            if (seen[unit])
                continue;
            seen[unit] = true;
            nodes[count++] = children;
        }
    }
    free(seen);
    free(nodes);
}

static void find_spaces(struct dt_character_map *m)
{
    bool inner[256] = {false};
    struct dt_character_map_text to;
    find_inner(m, inner);
    m->has_space = inner[' '] || find(m, " ", 1, false, &to) > 0;
    m->joins_lines = !inner['\n'] && find(m, "\n", 1, false, &to) > 0 && strcmp(to.data, " ") == 0;
}

bool dt_character_map_has_space(const struct dt_character_map *map)
{
    return map->has_space;
}

bool dt_character_map_joins_lines(const struct dt_character_map *map)
{
    return map->joins_lines;
}

static int read_map(struct dt_character_map *m, struct dt_error *err)
{
    size_t size = m->bytes.size, trie = size < 4 ? 0 : read_unit(m->bytes.data);
    if (trie == 0 || trie % 4 != 0 || trie > size - 4)
        return dt_fail(err, DT_EFORMAT,
                       "character map: expected a trie of whole units within %zu bytes, found one "
                       "of %zu bytes",
                       size, trie);
    m->texts = m->bytes.data + 4 + trie;
    m->text_size = size - 4 - trie;
    if (m->text_size == 0 || m->texts[m->text_size - 1] != 0)
        return dt_fail(err, DT_EFORMAT, "character map: the last text is not ended by 0");
    if (dt_utf8_valid_prefix(m->texts, m->text_size) < m->text_size)
        return dt_fail(err, DT_EFORMAT, "character map: the texts are not UTF-8");
    m->count = (uint32_t)(trie / 4);
    m->units = dt_alloc(m->count, sizeof *m->units);
    for (uint32_t i = 0; i < m->count; i++)
        m->units[i] = read_unit(m->bytes.data + 4 + 4 * (size_t)i);
    DT_TRY(check_units(m, err));
    find_kept(m);
    find_spaces(m);
    return 0;
}

int dt_character_map_new(struct dt_character_map **map, const char *bytes, size_t size,
                         struct dt_error *err)
{
    struct dt_character_map *m = dt_alloc(1, sizeof *m);
    dt_buffer_append(&m->bytes, bytes, size);
    int rc = read_map(m, err);
    if (rc < 0) {
        dt_character_map_free(m);
        m = NULL;
    }
    *map = m;
    return rc;
}

void dt_character_map_free(struct dt_character_map *map)
{
    if (map == NULL)
        return;
    dt_buffer_release(&map->bytes);
    free(map->units);
    free(map);
}
