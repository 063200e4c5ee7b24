/* SPDX-License-Identifier: MIT */
#include "extract/main-text.h"

#include <stdlib.h>
#include <string.h>

#include "hash/hash.h"

/* Bytes. A text of this size is judged without its neighbours; a smaller one is near it, or
 * short. */
#define GOOD_SIZE 140
#define NEAR_SIZE 60
#define ENOUGH    250 /* bytes of a page's text that need no second attempt */
#define REPEATED  40  /* blocks of at least this many bytes are written once */

enum quality { BAD, SHORT, NEAR, GOOD };

static const unsigned bad_hints = DT_HINT_BOILER | DT_HINT_HIDDEN | DT_HINT_COMMENT;

/* --- quality and sums ------------------------------------------------------------------------- */

static enum quality judge(const struct dt_text_block *b)
{
    if (b->kind == DT_TAG_PRE)
        return b->links * 3 > b->size ? SHORT : GOOD;
    if (b->kind == DT_TAG_HEADING)
        return SHORT;
    bool written = b->size >= 2 * GOOD_SIZE || (b->kind == DT_TAG_PARAGRAPH && b->marks > 0);
    if (b->links * (written ? 2 : 3) > b->size)
        return BAD;
    if (b->marks > 0 && b->size >= GOOD_SIZE && b->links * 3 <= b->size)
        return GOOD;
    if ((b->marks > 0 && b->size >= NEAR_SIZE) || b->size >= GOOD_SIZE)
        return NEAR;
    return SHORT;
}

/* What a block adds to the element that holds it. */
static uint64_t value_of(const struct dt_text_block *b, enum quality quality)
{
    uint64_t own = b->size - b->links;
    return quality == GOOD ? own : quality == NEAR ? own / 2 : 0;
}

static void reserve(struct dt_main_text *m, size_t nodes, size_t blocks)
{
    if (blocks >= m->blocks) {
        m->blocks = 2 * blocks + 16;
        m->kept = dt_realloc(m->kept, m->blocks, sizeof *m->kept);
        m->quality = dt_realloc(m->quality, m->blocks, sizeof *m->quality);
        m->value = dt_realloc(m->value, m->blocks, sizeof *m->value);
    }
    if (nodes >= m->nodes) {
        m->nodes = 2 * nodes + 16;
        m->firsts = dt_realloc(m->firsts, m->nodes, sizeof *m->firsts);
        m->inherited = dt_realloc(m->inherited, m->nodes, sizeof *m->inherited);
    }
}

/* firsts[i] for each node, and for the end of the nodes. */
static void index_blocks(struct dt_main_text *m, const struct dt_tree *t, const struct dt_blocks *b)
{
    size_t next = 0;
    for (size_t i = 0; i <= t->count; i++) {
        while (next < b->count && b->list[next].first < i)
            next++;
        m->firsts[i] = (uint32_t)next;
    }
}

/* Sums of the values; with hints only over blocks without a bad one around them. */
static void sum_values(struct dt_main_text *m, const struct dt_blocks *b, unsigned hints)
{
    m->value[0] = 0;
    for (size_t i = 0; i < b->count; i++) {
        bool counts = hints == 0 || (m->inherited[b->list[i].node] & hints) == 0;
        uint64_t value = counts ? value_of(&b->list[i], (enum quality)m->quality[i]) : 0;
        m->value[i + 1] = m->value[i] + value;
    }
}

static uint64_t value_within(const struct dt_main_text *m, const struct dt_tree *t, uint32_t node)
{
    return m->value[m->firsts[t->nodes[node].end]] - m->value[m->firsts[node]];
}

/* Hints of each node and of those around it. A hint against an element that holds most of the page
 * is wrong. */
static void inherit(struct dt_main_text *m, const struct dt_tree *t, unsigned ignored)
{
    uint64_t total = t->count ? m->value[m->firsts[t->count]] : 0;
    for (uint32_t i = 0; i < t->count; i++) {
        const struct dt_node *n = &t->nodes[i];
        unsigned own = n->hints;
        if (n->tag == DT_TAG_ASIDE)
            own |= DT_HINT_BOILER;
        own &= ~ignored;
        if (own & (DT_HINT_BOILER | DT_HINT_HIDDEN) && 2 * value_within(m, t, i) > total)
            own &= ~(unsigned)(DT_HINT_BOILER | DT_HINT_HIDDEN);
        m->inherited[i] = (uint8_t)(own | (n->parent == UINT32_MAX ? 0 : m->inherited[n->parent]));
    }
}

/* --- the element of the text ------------------------------------------------------------------ */

enum tier { TIER_CONTENT, TIER_ARTICLE, TIER_MAIN, TIERS };

static bool is_of_tier(const struct dt_node *n, enum tier tier)
{
    if (n->hints & bad_hints)
        return false;
    if (tier == TIER_CONTENT)
        return n->hints & DT_HINT_CONTENT;
    if (tier == TIER_ARTICLE)
        return n->tag == DT_TAG_ARTICLE;
    return n->tag == DT_TAG_MAIN || n->hints & DT_HINT_BODY;
}

/* Marks the blocks of a node in kept. */
static void take_node(struct dt_main_text *m, const struct dt_tree *t, uint32_t node)
{
    for (size_t i = m->firsts[node]; i < m->firsts[t->nodes[node].end]; i++)
        m->kept[i] = true;
}

/* The best outermost node of the tier, its value, and that of all together. */
static uint32_t best_of_tier(const struct dt_main_text *m, const struct dt_tree *t, enum tier tier,
                             uint64_t *best_value, uint64_t *all)
{
    uint32_t best = UINT32_MAX;
    *best_value = *all = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        if (!is_of_tier(&t->nodes[i], tier) || m->inherited[i] & bad_hints)
            continue;
        uint64_t value = value_within(m, t, i);
        *all += value;
        if (value > *best_value) {
            *best_value = value;
            best = i;
        }
        i = t->nodes[i].end - 1;
    }
    return best;
}

/* The next outermost element of the tier at or after the node; or the end of the nodes. */
static uint32_t next_of_tier(const struct dt_main_text *m, const struct dt_tree *t, enum tier tier,
                             uint32_t i)
{
    while (i < t->count && (!is_of_tier(&t->nodes[i], tier) || m->inherited[i] & bad_hints))
        i++;
    return i;
}

/* Marks the title of one of several texts: the headings before its first block of text, in the
 * largest element around it that has none of the others. */
static void take_title(struct dt_main_text *m, const struct dt_tree *t, const struct dt_blocks *b,
                       uint32_t node, uint32_t before, uint32_t after)
{
    uint32_t around = node, parent;
    while ((parent = t->nodes[around].parent) != UINT32_MAX && t->nodes[parent].end <= after &&
           (before == UINT32_MAX || parent > before))
        around = parent;
    size_t end = m->firsts[t->nodes[node].end];
    for (size_t i = m->firsts[around]; i < end && m->quality[i] < NEAR; i++)
        m->kept[i] |= b->list[i].kind == DT_TAG_HEADING;
}

/* Marks the elements of the tier, or the one that has most of their text. */
static void take_tier(struct dt_main_text *m, const struct dt_tree *t, const struct dt_blocks *b,
                      enum tier tier, uint32_t best, bool alone)
{
    uint32_t i = alone ? best : next_of_tier(m, t, tier, 0), before = UINT32_MAX, after;
    for (; i < t->count; before = i, i = after) {
        after = next_of_tier(m, t, tier, t->nodes[i].end);
        take_node(m, t, i);
        if (alone)
            break;
        take_title(m, t, b, i, before, after);
    }
}

/* Whether the element is a part of a text: a block, or rows or items alone. *run: the end of the
 * last run of blocks of one kind, so that each is looked at once. */
static bool is_part(const struct dt_main_text *m, const struct dt_tree *t,
                    const struct dt_blocks *b, uint32_t node, size_t *run)
{
    size_t i = m->firsts[node], end = m->firsts[t->nodes[node].end];
    if (i == end || b->list[i].node == node)
        return true;
    uint8_t kind = b->list[i].kind;
    if (i >= *run)
        for (*run = i; *run < b->count && b->list[*run].kind == kind;)
            ++*run;
    return end <= *run && (kind == DT_TAG_ITEM || kind == DT_TAG_ROW);
}

/* Descends while one child has most of the text, to elements that hold more than a part, and whose
 * text does not begin before that child. */
static uint32_t densest(const struct dt_main_text *m, const struct dt_tree *t,
                        const struct dt_blocks *b)
{
    uint64_t total = m->value[m->firsts[t->count]];
    uint32_t node = UINT32_MAX, i = 0, end = (uint32_t)t->count;
    size_t run = 0;
    while (i < end) {
        uint64_t value = value_within(m, t, i);
        if (t->nodes[i].tag == DT_TAG_PARAGRAPH && value >= GOOD_SIZE)
            return node;
        if (t->nodes[i].tag != DT_TAG_TEXT && 5 * value >= 4 * total && t->nodes[i].end > i + 1 &&
            !is_part(m, t, b, i, &run)) {
            node = i;
            end = t->nodes[i].end;
            i++;
        } else {
            i = t->nodes[i].end;
        }
    }
    return node;
}

/* Marks the blocks of the elements that hold the text. Returns how their names say so: TIERS if
 * they do not. */
static enum tier find_container(struct dt_main_text *m, const struct dt_tree *t,
                                const struct dt_blocks *b)
{
    uint64_t total = m->value[m->firsts[t->count]];
    for (int tier = 0; tier < TIERS && total > 0; tier++) {
        uint64_t value, all;
        uint32_t best = best_of_tier(m, t, (enum tier)tier, &value, &all);
        if (best == UINT32_MAX || 10 * all < 4 * total)
            continue;
        take_tier(m, t, b, (enum tier)tier, best, 10 * value >= 6 * all);
        return (enum tier)tier;
    }
    uint32_t node = densest(m, t, b);
    if (node != UINT32_MAX)
        take_node(m, t, node);
    else
        memset(m->kept, true, m->firsts[t->count]);
    return TIERS;
}

/* --- blocks ----------------------------------------------------------------------------------- */

static bool is_semantic(const struct dt_text_block *b)
{
    return b->kind == DT_TAG_PARAGRAPH || b->kind == DT_TAG_ITEM || b->kind == DT_TAG_ROW ||
           b->kind == DT_TAG_QUOTE || b->kind == DT_TAG_PRE || b->kind == DT_TAG_CELL ||
           b->kind == DT_TAG_TERM;
}

/* The blocks that are judged without neighbours; of the others kept remains as it is. */
static void drop_bad(struct dt_main_text *m, const struct dt_blocks *b)
{
    for (size_t i = 0; i < b->count; i++)
        if (m->inherited[b->list[i].node] & bad_hints || m->quality[i] == BAD ||
            b->list[i].kind == DT_TAG_CAPTION)
            m->kept[i] = false;
}

/* Items also where they begin with a paragraph. */
static uint8_t kind_of(const struct dt_text_block *block)
{
    return block->item && block->kind == DT_TAG_PARAGRAPH ? DT_TAG_ITEM : block->kind;
}

/* Rows of a table, and items of a list, stay together: none is bad if less than half of all bytes
 * are in links, of rows three quarters, as data have addresses. */
static void join_runs(struct dt_main_text *m, const struct dt_blocks *b)
{
    for (size_t i = 0, end; i < b->count; i = end) {
        uint8_t kind = kind_of(&b->list[i]);
        size_t size = 0, links = 0;
        for (end = i; end < b->count && kind_of(&b->list[end]) == kind; end++) {
            size += b->list[end].size;
            links += b->list[end].links;
        }
        if ((kind == DT_TAG_ITEM && 2 * links < size) ||
            (kind == DT_TAG_ROW && 4 * links < 3 * size))
            for (size_t k = i; k < end; k++)
                m->quality[k] = m->quality[k] == BAD ? SHORT : m->quality[k];
    }
}

/* Items of a list, and rows of a table, are text together if few of their bytes are in links. */
static void judge_runs(struct dt_main_text *m, const struct dt_blocks *b)
{
    for (size_t i = 0, end; i < b->count; i = end) {
        uint8_t kind = kind_of(&b->list[i]);
        size_t size = 0, links = 0;
        for (end = i; end < b->count && kind_of(&b->list[end]) == kind && m->kept[end]; end++) {
            size += b->list[end].size;
            links += b->list[end].links;
        }
        if ((kind == DT_TAG_ITEM || kind == DT_TAG_ROW) && size >= NEAR_SIZE && 4 * links < size)
            memset(m->quality + i, NEAR, end - i);
        end += end == i;
    }
}

static bool is_text(const struct dt_main_text *m, size_t i)
{
    return m->kept[i] && m->quality[i] >= NEAR;
}

/* A sentence in a paragraph beside those of the text, with few links. */
static bool is_beside(const struct dt_tree *t, const struct dt_text_block *block,
                      const struct dt_text_block *text)
{
    return block->kind == DT_TAG_PARAGRAPH && block->marks > 0 && 4 * block->links <= block->size &&
           t->nodes[block->node].parent == t->nodes[text->node].parent;
}

/* The first and the last block of text; and of those that are paragraphs outside of lists. A first
 * one is SIZE_MAX if it is missing. */
struct ends {
    size_t first, last, first_paragraph, last_paragraph;
};

static struct ends find_ends(const struct dt_main_text *m, const struct dt_blocks *b)
{
    struct ends e = {SIZE_MAX, 0, SIZE_MAX, 0};
    for (size_t i = 0; i < b->count; i++) {
        if (!is_text(m, i))
            continue;
        e.first = i < e.first ? i : e.first;
        e.last = i;
        if (kind_of(&b->list[i]) != DT_TAG_PARAGRAPH)
            continue;
        e.first_paragraph = i < e.first_paragraph ? i : e.first_paragraph;
        e.last_paragraph = i;
    }
    return e;
}

/* Short blocks are kept between blocks of text, and one that leads to the first; elsewhere only
 * what is written as text is, within an element of main text, and sentences before the first block
 * of text and after the last. */
static void judge_short(struct dt_main_text *m, const struct dt_tree *t, const struct dt_blocks *b,
                        bool lenient)
{
    const struct ends e = find_ends(m, b);
    for (size_t i = 0; i < b->count; i++) {
        const struct dt_text_block *block = &b->list[i];
        if (!m->kept[i] || m->quality[i] >= NEAR || block->kind == DT_TAG_HEADING)
            continue;
        bool semantic = is_semantic(block), inside = i > e.first && i < e.last;
        bool sentence = block->marks > 0 && 4 * block->links <= block->size;
        size_t paragraph = i < e.first ? e.first_paragraph : e.last_paragraph;
        if (inside || i + 1 == e.first)
            m->kept[i] = semantic || sentence || (inside && lenient);
        else
            m->kept[i] = (lenient && semantic && block->marks > 0) ||
                         (e.first_paragraph < SIZE_MAX && is_beside(t, block, &b->list[paragraph]));
    }
}

/* A heading is kept if text follows before the next heading of its level or above; also one that is
 * a link. */
static void judge_headings(struct dt_main_text *m, const struct dt_blocks *b)
{
    bool follows[7] = {false};
    for (size_t i = b->count; i-- > 0;) {
        const struct dt_text_block *block = &b->list[i];
        if (block->kind != DT_TAG_HEADING) {
            for (int level = 1; m->kept[i] && level <= 6; level++)
                follows[level] = true;
            continue;
        }
        int level = block->level >= 1 && block->level <= 6 ? block->level : 6;
        m->kept[i] = m->kept[i] && follows[level];
        for (int deeper = level; deeper <= 6; deeper++)
            follows[deeper] = false;
    }
}

static size_t kept_size(const struct dt_main_text *m, const struct dt_blocks *b)
{
    size_t size = 0;
    for (size_t i = 0; i < b->count; i++)
        size += m->kept[i] && b->list[i].kind != DT_TAG_HEADING ? b->list[i].size : 0;
    return size;
}

/* One attempt, which does not look at the hints in `ignored`. */
static size_t attempt(struct dt_main_text *m, const struct dt_tree *t, const struct dt_blocks *b,
                      unsigned ignored)
{
    for (size_t i = 0; i < b->count; i++)
        m->quality[i] = (uint8_t)judge(&b->list[i]);
    sum_values(m, b, 0);
    inherit(m, t, ignored);
    sum_values(m, b, bad_hints);
    memset(m->kept, false, b->count);
    enum tier tier = find_container(m, t, b);
    join_runs(m, b);
    drop_bad(m, b);
    judge_runs(m, b);
    judge_short(m, t, b, tier < TIER_MAIN);
    judge_headings(m, b);
    return kept_size(m, b);
}

/* All paragraphs without many links. */
static void take_paragraphs(struct dt_main_text *m, const struct dt_blocks *b)
{
    for (size_t i = 0; i < b->count; i++)
        m->kept[i] =
            m->quality[i] != BAD && (b->list[i].kind == DT_TAG_PARAGRAPH || m->quality[i] >= NEAR);
}

/* Sentences in headings, if they are as much as a text. */
static void take_headings(struct dt_main_text *m, const struct dt_blocks *b)
{
    size_t size = 0;
    for (size_t i = 0; i < b->count; i++) {
        m->kept[i] = 2 * b->list[i].links <= b->list[i].size && b->list[i].kind == DT_TAG_HEADING &&
                     b->list[i].marks > 0;
        size += m->kept[i] ? b->list[i].size : 0;
    }
    if (size < ENOUGH)
        memset(m->kept, false, b->count);
}

void dt_main_text_find(struct dt_main_text *m, const struct dt_tree *t, const struct dt_blocks *b)
{
    reserve(m, t->count, b->count);
    if (t->count == 0)
        return;
    index_blocks(m, t, b);
    size_t size = attempt(m, t, b, 0);
    if (size < ENOUGH && attempt(m, t, b, DT_HINT_COMMENT) < 2 * size + 1)
        size = attempt(m, t, b, bad_hints);
    if (kept_size(m, b) == 0)
        take_paragraphs(m, b);
    if (kept_size(m, b) == 0)
        take_headings(m, b);
}

void dt_main_text_all(struct dt_main_text *m, const struct dt_tree *t, const struct dt_blocks *b)
{
    reserve(m, t->count, b->count);
    for (uint32_t i = 0; i < t->count; i++) {
        const struct dt_node *n = &t->nodes[i];
        m->inherited[i] =
            (uint8_t)(n->hints | (n->parent == UINT32_MAX ? 0 : m->inherited[n->parent]));
    }
    for (size_t i = 0; i < b->count; i++)
        m->kept[i] = (m->inherited[b->list[i].node] & DT_HINT_HIDDEN) == 0;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void write_block(const struct dt_text_block *block, const char *text, struct dt_buffer *out)
{
    if (out->size > 0)
        dt_buffer_add_char(out, '\n');
    if (block->item)
        dt_buffer_add_string(out, "- ");
    dt_buffer_append(out, text + block->text, block->size);
}

/* Adds a hash to a table of `slots`, a power of two; false if it is there. */
static bool add_hash(uint64_t *table, size_t slots, uint64_t hash)
{
    hash |= 1; /* 0 is an empty slot */
    for (size_t i = hash >> 1 & (slots - 1);; i = (i + 1) & (slots - 1)) {
        if (table[i] == hash)
            return false;
        if (table[i] == 0) {
            table[i] = hash;
            return true;
        }
    }
}

void dt_main_text_write(const struct dt_main_text *m, const struct dt_blocks *b, bool repeats,
                        struct dt_buffer *text)
{
    size_t slots = 64;
    while (slots < 2 * b->count)
        slots *= 2;
    uint64_t *seen = repeats ? NULL : dt_alloc(slots, sizeof *seen);
    for (size_t i = 0; i < b->count; i++) {
        const struct dt_text_block *block = &b->list[i];
        if (!m->kept[i])
            continue;
        bool checked = seen && block->size >= REPEATED && block->kind != DT_TAG_PRE;
        if (checked && !add_hash(seen, slots, dt_hash(b->text.data + block->text, block->size)))
            continue;
        write_block(block, b->text.data, text);
    }
    free(seen);
}

void dt_main_text_release(struct dt_main_text *m)
{
    free(m->kept);
    free(m->quality);
    free(m->value);
    free(m->firsts);
    free(m->inherited);
    *m = (struct dt_main_text){0};
}
