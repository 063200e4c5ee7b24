/* SPDX-License-Identifier: MIT */
#include "pretokenize/regex.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "pretokenize/character.h"
#include "pretokenize/regex-internal.h"

static int new_regex(struct dt_regex **r, const char *expression, bool python, const char *location,
                     struct dt_error *err)
{
    *r = dt_alloc(1, sizeof **r);
    if (dt_regex_parse(*r, expression, python, err) == 0)
        return 0;
    dt_regex_free(*r);
    *r = NULL;
    return dt_fail_context(err, "%s", location);
}

int dt_regex_new(struct dt_regex **r, const char *expression, const char *location,
                 struct dt_error *err)
{
    return new_regex(r, expression, false, location, err);
}

int dt_regex_new_python(struct dt_regex **r, const char *expression, const char *location,
                        struct dt_error *err)
{
    return new_regex(r, expression, true, location, err);
}

void dt_regex_free(struct dt_regex *r)
{
    if (r == NULL)
        return;
    for (size_t i = 0; i < r->set_count; i++)
        free(r->sets[i]);
    free(r->sets);
    free(r->word);
    free(r->program);
    free(r);
}

/* --- the machine -------------------------------------------------------------------------------
 */

#define RESTORE 0x80000000u

/* Where to go on if the current alternative fails: at instruction `next` and offset `to`, and then,
 * a character less each time, down to `from`. Or RESTORE | slot: the slot was `to` before. */
struct alternative {
    uint32_t next;
    size_t from, to;
};

#define FIRST_STACK 32 /* alternatives without allocation */

struct machine {
    const struct dt_regex *regex;
    const unsigned char *text;
    size_t size;
    struct alternative *stack; /* first, or allocated */
    size_t *slots;             /* of groups, or NULL */
    bool advance;              /* the match is not empty */
    size_t count, capacity;
    struct alternative first[FIRST_STACK];
};

/* A run of a program or body from `at` on. States that failed are remembered once there were many.
 */
struct run {
    size_t at;
    size_t base; /* of its alternatives in the stack */
    size_t steps;
    uint8_t *failed; /* a bit per instruction and offset from `at` on; NULL: not yet */
};

#define REMEMBER_STEPS 20000

/* The character at an offset; an invalid byte counts as an unassigned character. */
static unsigned character(const struct machine *m, size_t at, uint32_t *code)
{
    unsigned length = dt_character(m->text + at, m->text + m->size, code);
    if (*code == DT_CHAR_INVALID)
        *code = 0x10ffff;
    return length;
}

/* The offset of the character before at, which is not 0. */
static size_t before(const struct machine *m, size_t at)
{
    for (size_t length = 2; length <= 4 && length <= at; length++) {
        uint32_t code;
        const unsigned char *p = m->text + at - length;
        if ((p[0] & 0xc0) == 0xc0 && dt_character(p, m->text + at, &code) == length)
            return at - length;
    }
    return at - 1;
}

static bool is_word(const struct machine *m, size_t at)
{
    uint32_t code;
    character(m, at, &code);
    return dt_character_set_has(m->regex->word, code);
}

static bool holds(const struct machine *m, const struct dt_regex_instruction *i, size_t at)
{
    bool left, right;
    switch (i->operation) {
    case DT_REGEX_LINE_START:
        return at == 0 || (m->text[at - 1] == '\n' && at < m->size);
    case DT_REGEX_LINE_END:
        return at == m->size || m->text[at] == '\n';
    case DT_REGEX_TEXT_START:
        return at == 0;
    case DT_REGEX_TEXT_END:
        return at == m->size;
    case DT_REGEX_LAST_LINE:
        return at == m->size || (at + 1 == m->size && m->text[at] == '\n');
    default: /* DT_REGEX_BOUNDARY */
        left = at > 0 && is_word(m, before(m, at));
        right = at < m->size && is_word(m, at);
        return (left != right) != i->a;
    }
}

static void push(struct machine *m, uint32_t next, size_t from, size_t to)
{
    if (m->count == m->capacity) {
        bool was_first = m->stack == m->first;
        m->capacity *= 2;
        m->stack = dt_realloc(was_first ? NULL : m->stack, m->capacity, sizeof *m->stack);
        if (was_first)
            memcpy(m->stack, m->first, sizeof m->first);
    }
    m->stack[m->count++] = (struct alternative){next, from, to};
}

/* Whether the state failed before; remembers that it is tried now. */
static bool failed_before(const struct machine *m, struct run *run, uint32_t next, size_t at)
{
    if (++run->steps < REMEMBER_STEPS || at < run->at)
        return false;
    size_t width = m->size - run->at + 1;
    if (run->failed == NULL)
        run->failed = dt_alloc((m->regex->count * width + 7) / 8, 1);
    size_t bit = next * width + (at - run->at);
    bool found = run->failed[bit >> 3] >> (bit & 7) & 1;
    run->failed[bit >> 3] |= (uint8_t)(1 << (bit & 7));
    return found;
}

/* Takes the next alternative of the run; false if there is none. */
static bool backtrack(struct machine *m, struct run *run, uint32_t *next, size_t *at)
{
    while (m->count > run->base) {
        struct alternative *a = &m->stack[m->count - 1];
        if (a->next & RESTORE) {
            m->slots[a->next & ~RESTORE] = a->to;
            m->count--;
            continue;
        }
        *next = a->next;
        *at = a->to;
        if (a->to > a->from)
            a->to = before(m, a->to);
        else
            m->count--;
        if (!failed_before(m, run, *next, *at))
            return true;
    }
    return false;
}

/* Matches a to b characters of set c; false if there are fewer. */
static bool repeat(struct machine *m, const struct dt_regex_instruction *i, uint32_t next,
                   size_t *at)
{
    size_t from = *at, end = *at;
    uint32_t count = 0, code;
    while (count < i->b && end < m->size) {
        unsigned length = character(m, end, &code);
        if (!dt_regex_has(m->regex, i->c, code))
            break;
        end += length;
        if (++count == i->a)
            from = end;
    }
    if (count < i->a)
        return false;
    if (end > from)
        push(m, next, from, before(m, end));
    *at = end;
    return true;
}

static bool run_body(struct machine *m, uint32_t start, size_t at, size_t must_end, size_t *end);

/* Whether the body matches one of the texts that end at `at`. */
static bool match_back(struct machine *m, const struct dt_regex_instruction *i, uint32_t body,
                       size_t at)
{
    size_t end, from = at;
    for (uint32_t n = 0; n <= (i->c & 0xffff); n++) {
        if (n >= i->c >> 16 && run_body(m, body, from, at, &end))
            return true;
        if (from == 0)
            return false;
        from = before(m, from);
    }
    return false;
}

/* Runs the instruction at *next; false if it fails. */
static bool step(struct machine *m, uint32_t *next, size_t *at)
{
    const struct dt_regex_instruction *i = &m->regex->program[*next];
    uint32_t code, here = (*next)++;
    size_t end;
    switch (i->operation) {
    case DT_REGEX_SET:
        if (*at == m->size)
            return false;
        *at += character(m, *at, &code);
        return dt_regex_has(m->regex, i->a, code);
    case DT_REGEX_REPEAT:
        return repeat(m, i, *next, at);
    case DT_REGEX_SPLIT:
        push(m, i->b, *at, *at);
        *next = i->a;
        return true;
    case DT_REGEX_JUMP:
        *next = i->a;
        return true;
    case DT_REGEX_AHEAD:
        *next = i->a;
        return run_body(m, here + 1, *at, SIZE_MAX, &end) != (i->b != 0);
    case DT_REGEX_BACK:
        *next = i->a;
        return match_back(m, i, here + 1, *at) != (i->b != 0);
    case DT_REGEX_ATOMIC:
        *next = i->a;
        if (!run_body(m, here + 1, *at, SIZE_MAX, &end))
            return false;
        *at = end;
        return true;
    case DT_REGEX_SAVE:
        if (m->slots == NULL)
            return true;
        push(m, RESTORE | i->a, m->slots[i->a], m->slots[i->a]);
        m->slots[i->a] = *at;
        return true;
    default:
        return holds(m, i, *at);
    }
}

static bool run_body(struct machine *m, uint32_t start, size_t at, size_t must_end, size_t *end)
{
    struct run run = {.at = at, .base = m->count};
    uint32_t next = start;
    bool matched = false, alive = true;
    while (alive && !matched) {
        if (m->regex->program[next].operation != DT_REGEX_MATCH)
            alive = step(m, &next, &at) || backtrack(m, &run, &next, &at);
        else if ((must_end == SIZE_MAX || at == must_end) &&
                 !(m->advance && start == 0 && at == run.at))
            matched = true;
        else
            alive = backtrack(m, &run, &next, &at);
    }
    m->count = run.base;
    free(run.failed);
    *end = at;
    return matched;
}

bool dt_regex_search(const struct dt_regex *r, const char *text, size_t size, size_t from,
                     bool advance, size_t *slots)
{
    struct machine m;
    m.regex = r;
    m.text = (const unsigned char *)text;
    m.size = size;
    m.stack = m.first;
    m.count = 0;
    m.capacity = FIRST_STACK;
    m.slots = r->groups > 0 ? slots : NULL;
    m.advance = advance;
    bool found = false;
    uint32_t code;
    for (size_t at = from; !found && at <= size;) {
        while (!r->empty && at < size && !r->first[m.text[at]])
            at++;
        if (at == size && !r->empty)
            break;
        slots[0] = at;
        for (size_t i = 2; i < 2 * ((size_t)r->groups + 1); i++)
            slots[i] = SIZE_MAX;
        found = run_body(&m, 0, at, SIZE_MAX, &slots[1]);
        at += at < size ? character(&m, at, &code) : 1;
        m.advance = false;
    }
    if (m.stack != m.first)
        free(m.stack);
    return found;
}

bool dt_regex_find(const struct dt_regex *r, const char *text, size_t size, size_t from,
                   size_t *start, size_t *end)
{
    size_t slots[2 * DT_REGEX_GROUPS];
    bool found = dt_regex_search(r, text, size, from, false, slots);
    *start = slots[0];
    *end = slots[1];
    return found;
}
