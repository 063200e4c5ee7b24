/* SPDX-License-Identifier: MIT */
#include "extract/blocks.h"

#include <stdlib.h>
#include <string.h>

#define INLINE_BOILER 300 /* bytes of an element inside a line, at most, to leave it out */
#define MOST_CELL     500 /* bytes of the longest cell of a table of data */

struct builder {
    struct dt_blocks *out;
    const struct dt_tree *tree;
    bool keep_hints;
    uint32_t open[DT_TREE_DEPTH + 1]; /* nodes around the current one, the innermost last */
    int depth;
    int links, pre;             /* open elements */
    uint32_t table;             /* the table of data around, or UINT32_MAX */
    bool space, item, row;      /* pending: white space, a mark of an item, a separator of cells */
    int breaks;                 /* since the last text */
    uint32_t at;                /* the current node */
    uint32_t link;              /* of which the address is written, or UINT32_MAX; */
    bool bracket;               /* and the bracket before its text was */
    struct dt_text_block block; /* being built; begun when it has text */
    bool begun;
};

/* --- texts ------------------------------------------------------------------------------------ */

static bool is_block(enum dt_tag tag)
{
    return tag >= DT_TAG_BLOCK && tag < DT_TAG_HEAD;
}

/* The innermost element that decides how the text is written. */
static void describe(const struct builder *b, struct dt_text_block *block)
{
    const struct dt_node *nodes = b->tree->nodes;
    block->kind = DT_TAG_BLOCK;
    bool data = b->table != UINT32_MAX;
    for (int i = b->depth - 1; i >= 0; i--) {
        const struct dt_node *n = &nodes[b->open[i]];
        bool plain = n->tag == DT_TAG_BLOCK || !is_block((enum dt_tag)n->tag);
        if (data ? n->tag != DT_TAG_ROW && n->tag != DT_TAG_TABLE : !is_block((enum dt_tag)n->tag))
            continue;
        if (block->node == UINT32_MAX)
            block->node = b->open[i];
        if (plain)
            continue;
        block->kind = n->tag;
        block->level = n->level;
        return;
    }
}

static void begin_block(struct builder *b)
{
    b->block = (struct dt_text_block){
        .node = UINT32_MAX, .first = b->at, .text = (uint32_t)b->out->text.size, .item = b->item};
    describe(b, &b->block);
    if (b->block.node == UINT32_MAX)
        b->block.node = 0;
    b->begun = true;
    b->item = b->space = b->row = false;
    b->breaks = 0;
}

static void append(struct builder *b, const char *text, size_t size)
{
    if (!b->begun)
        begin_block(b);
    if (b->row)
        dt_buffer_append(&b->out->text, " | ", 3);
    else if (b->space && b->out->text.data[b->out->text.size - 1] != '\n')
        dt_buffer_add_char(&b->out->text, ' ');
    if (b->link != UINT32_MAX && !b->bracket) {
        dt_buffer_add_char(&b->out->text, '[');
        b->block.links++;
        b->bracket = true;
    }
    if (b->links > 0)
        b->block.links += (uint32_t)size;
    b->space = b->row = false;
    b->breaks = 0;
    dt_buffer_append(&b->out->text, text, size);
}

/* Numeric references to C1 control characters are those of windows-1252, as in browsers. */
static void append_c1(struct builder *b, unsigned char byte)
{
    static const char *const characters[32] = {
        "€", "",  "‚", "ƒ", "„", "…", "†", "‡", "ˆ", "‰", "Š", "‹", "Œ", "", "Ž", "",
        "",  "‘", "’", "“", "”", "•", "–", "—", "˜", "™", "š", "›", "œ", "", "ž", "Ÿ"};
    const char *text = characters[byte - 0x80];
    if (*text)
        append(b, text, strlen(text));
}

/* Zero-width spaces and joiners, and byte order marks. */
static bool is_zero_width(const unsigned char *p, size_t left)
{
    return left >= 3 && ((p[0] == 0xe2 && p[1] == 0x80 && p[2] >= 0x8b && p[2] <= 0x8d) ||
                         (p[0] == 0xef && p[1] == 0xbb && p[2] == 0xbf));
}

/* Appends text with runs of white space, no-break spaces among them, as one space. What has no
 * width is left out at the beginning of a line, where it joins nothing: editors write it into empty
 * ones. */
static void append_collapsed(struct builder *b, const char *text, size_t size)
{
    const unsigned char *p = (const unsigned char *)text;
    for (size_t i = 0, n; i < size; i += n) {
        n = 1;
        if (p[i] <= ' ') {
            b->space |= b->begun;
        } else if ((!b->begun || b->breaks > 0) && is_zero_width(p + i, size - i)) {
            n = 3;
        } else if (p[i] == 0xc2 && i + 1 < size && p[i + 1] <= 0xa0) {
            n = 2;
            if (p[i + 1] == 0xa0)
                b->space |= b->begun;
            else
                append_c1(b, p[i + 1]);
        } else {
            while (i + n < size && p[i + n] > ' ' && p[i + n] != 0xc2)
                n++;
            append(b, text + i, n);
        }
    }
}

/* Of preformatted text only the line end after the start tag is left out. Carriage returns belong
 * to line ends, or are some. */
static void append_verbatim(struct builder *b, const char *text, size_t size)
{
    const char *end = text + size;
    if (!b->begun && size > 0 && (*text == '\n' || *text == '\r'))
        text += size > 1 && memcmp(text, "\r\n", 2) == 0 ? 2 : 1;
    b->space = false;
    for (const char *stop; text < end; text = stop + 1) {
        stop = memchr(text, '\r', (size_t)(end - text));
        stop = stop ? stop : end;
        if (stop > text)
            append(b, text, (size_t)(stop - text));
        if (stop < end && (stop + 1 == end || stop[1] != '\n'))
            append(b, "\n", 1);
    }
}

/* --- blocks ----------------------------------------------------------------------------------- */

static bool ends_sentence(const unsigned char *p, size_t left)
{
    static const char *const marks[] = {"\xe3\x80\x82", "\xef\xbc\x81", "\xef\xbc\x9f",
                                        "\xe0\xa5\xa4", "\xd8\x9f",     "\xdb\x94",
                                        "\xe1\x81\x8b"};
    if (*p == '.' || *p == '!' || *p == '?')
        return left == 1 || p[1] <= ' ' || strchr("\"')", p[1]) || p[1] >= 0x80;
    for (size_t i = 0; *p >= 0x80 && i < sizeof marks / sizeof *marks; i++) {
        size_t n = strlen(marks[i]);
        if (left >= n && memcmp(p, marks[i], n) == 0)
            return true;
    }
    return false;
}

static uint32_t count_marks(const char *text, size_t size)
{
    uint32_t count = 0;
    const unsigned char *p = (const unsigned char *)text;
    for (size_t i = 0; i < size; i++)
        if (p[i] == '.' || p[i] == '!' || p[i] == '?' || p[i] == 0xe3 || p[i] == 0xef ||
            p[i] == 0xe0 || p[i] == 0xd8 || p[i] == 0xdb || p[i] == 0xe1)
            count += ends_sentence(p + i, size - i);
    return count;
}

/* A link that goes on in the next block has its address there, too. */
static void close_bracket(struct builder *b)
{
    const struct dt_tree *t = b->tree;
    if (!b->bracket)
        return;
    struct dt_buffer *text = &b->out->text;
    size_t breaks = 0; /* at its end */
    for (b->bracket = false; text->data[text->size - 1] == '\n'; breaks++)
        text->size--;
    dt_buffer_add_string(text, "](");
    dt_buffer_append(text, t->text.data + t->nodes[b->link].text, t->nodes[b->link].size);
    dt_buffer_add_string(text, ")");
    while (breaks-- > 0)
        dt_buffer_add_char(text, '\n');
}

static void flush(struct builder *b)
{
    struct dt_blocks *out = b->out;
    if (!b->begun)
        return;
    b->begun = b->space = b->row = false;
    b->breaks = 0;
    while (out->text.size > b->block.text && strchr(" \n", out->text.data[out->text.size - 1]))
        out->text.size--;
    close_bracket(b);
    b->block.size = (uint32_t)out->text.size - b->block.text;
    if (b->block.size == 0)
        return;
    b->block.marks = count_marks(out->text.data + b->block.text, b->block.size);
    DT_GROW(out->list, out->count, out->capacity);
    out->list[out->count++] = b->block;
}

/* A table whose cells are short and in several rows and columns, and hold no other table. */
static bool has_data(const struct dt_tree *t, uint32_t table)
{
    unsigned rows = 0, columns = 0, most = 0;
    for (uint32_t i = table + 1; i < t->nodes[table].end; i++) {
        const struct dt_node *n = &t->nodes[i];
        uint32_t text = n->end < t->count ? t->nodes[n->end].text : (uint32_t)t->text.size;
        if (n->tag == DT_TAG_TABLE || (n->tag == DT_TAG_CELL && text - n->text > MOST_CELL))
            return false;
        rows += n->tag == DT_TAG_ROW;
        columns = n->tag == DT_TAG_ROW ? 0 : columns + (n->tag == DT_TAG_CELL);
        most = columns > most ? columns : most;
    }
    return rows > 1 && most > 1;
}

/* --- elements --------------------------------------------------------------------------------- */

static void line_break(struct builder *b)
{
    if (!b->begun)
        return;
    if (b->table != UINT32_MAX) {
        b->space = true;
    } else if (++b->breaks > 1 && b->pre == 0) {
        flush(b);
    } else {
        b->space = false;
        dt_buffer_add_char(&b->out->text, '\n');
    }
}

static void open_block(struct builder *b, uint32_t i)
{
    const struct dt_node *n = &b->tree->nodes[i];
    if (b->table != UINT32_MAX && n->tag != DT_TAG_ROW) {
        bool next = n->tag == DT_TAG_CELL && b->begun;
        b->row |= next;
        b->space |= b->begun;
        return;
    }
    flush(b);
    if (n->tag == DT_TAG_TABLE && has_data(b->tree, i))
        b->table = i;
    if (n->tag == DT_TAG_ITEM)
        b->item = true;
    b->pre += n->tag == DT_TAG_PRE;
}

static void close_node(struct builder *b, uint32_t i)
{
    const struct dt_node *n = &b->tree->nodes[i];
    if (n->tag == DT_TAG_LINK) {
        b->links--;
        close_bracket(b);
        b->link = UINT32_MAX;
        return;
    }
    if (!is_block((enum dt_tag)n->tag))
        return;
    if (b->table != UINT32_MAX && b->table != i && n->tag != DT_TAG_ROW) {
        b->space |= b->begun;
        return;
    }
    flush(b);
    if (b->table == i)
        b->table = UINT32_MAX;
    if (n->tag == DT_TAG_ITEM)
        b->item = false;
    b->pre -= n->tag == DT_TAG_PRE;
}

/* Whether the node is a small part of a line that readers do not take as text. A comment in a table
 * of data is not one of readers. */
static bool left_out(const struct builder *b, const struct dt_node *n)
{
    const struct dt_tree *t = b->tree;
    unsigned bad = DT_HINT_HIDDEN | (b->keep_hints ? 0U : DT_HINT_BOILER | DT_HINT_COMMENT);
    if (b->table != UINT32_MAX)
        bad &= ~(unsigned)DT_HINT_COMMENT;
    uint32_t text = n->end < t->count ? t->nodes[n->end].text : (uint32_t)t->text.size;
    return n->hints & bad && text - n->text < INLINE_BOILER;
}

/* Returns the index of the next node. */
static uint32_t open_node(struct builder *b, uint32_t i)
{
    const struct dt_node *n = &b->tree->nodes[i];
    const char *text = b->tree->text.data + n->text;
    if (n->tag == DT_TAG_TEXT) {
        if (b->pre > 0)
            append_verbatim(b, text, n->size);
        else
            append_collapsed(b, text, n->size);
        return i + 1;
    }
    if (n->tag == DT_TAG_BREAK)
        line_break(b);
    else if (is_block((enum dt_tag)n->tag))
        open_block(b, i);
    else if (left_out(b, n))
        return n->end;
    if (n->tag == DT_TAG_LINK) {
        b->links++;
        close_bracket(b);
        b->link = n->size > 0 ? i : UINT32_MAX;
    }
    b->open[b->depth++] = i;
    return i + 1;
}

void dt_blocks_build(struct dt_blocks *blocks, const struct dt_tree *tree, bool keep_hints)
{
    struct builder b = {.out = blocks,
                        .tree = tree,
                        .keep_hints = keep_hints,
                        .table = UINT32_MAX,
                        .link = UINT32_MAX};
    blocks->count = 0;
    dt_buffer_clear(&blocks->text);
    for (uint32_t i = 0; i < tree->count;) {
        while (b.depth > 0 && tree->nodes[b.open[b.depth - 1]].end <= i)
            close_node(&b, b.open[--b.depth]);
        b.at = i;
        i = open_node(&b, i);
    }
    while (b.depth > 0)
        close_node(&b, b.open[--b.depth]);
    flush(&b);
}

void dt_blocks_release(struct dt_blocks *blocks)
{
    free(blocks->list);
    dt_buffer_release(&blocks->text);
    *blocks = (struct dt_blocks){0};
}
