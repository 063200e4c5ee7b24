/* SPDX-License-Identifier: MIT */
/* Parses regular expressions of Oniguruma's Ruby syntax, or of Python, into a tree. */
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "pretokenize/character.h"
#include "pretokenize/regex-internal.h"
#include "unicode/unicode.h"

#define MAX_DEPTH 50    /* of groups */
#define MAX_NODES 10000 /* of a tree */
#define MAX_SETS  200   /* of 136 KiB each */

static struct node *new_node(struct parser *p, enum dt_regex_node_kind kind)
{
    struct node *n = dt_alloc(1, sizeof *n);
    n->kind = kind;
    DT_GROW(p->owned, p->owned_count, p->owned_capacity);
    p->owned[p->owned_count++] = n;
    return n;
}

/* The caller checks that there are not MAX_SETS. */
static struct dt_character_set *new_set(struct parser *p, uint32_t *index)
{
    struct dt_regex *r = p->regex;
    DT_GROW(r->sets, r->set_count, r->set_capacity);
    *index = (uint32_t)r->set_count;
    return r->sets[r->set_count++] = dt_character_set_new();
}

static bool at(const struct parser *p, const char *text)
{
    size_t length = strlen(text);
    return (size_t)(p->end - p->p) >= length && memcmp(p->p, text, length) == 0;
}

static bool take(struct parser *p, const char *text)
{
    if (!at(p, text))
        return false;
    p->p += strlen(text);
    return true;
}

static int read_character(struct parser *p, uint32_t *code)
{
    if (p->p == p->end)
        return dt_regex_fail(p, "an unexpected end");
    p->p += dt_character((const unsigned char *)p->p, (const unsigned char *)p->end, code);
    return *code == DT_CHAR_INVALID ? dt_regex_fail(p, "invalid UTF-8") : 0;
}

/* --- escapes and classes -----------------------------------------------------------------------
 */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Up to `most` hexadecimal digits. */
static int read_hex(struct parser *p, int most, uint32_t *code)
{
    int digits = 0;
    for (*code = 0; digits < most && p->p < p->end && hex_value(*p->p) >= 0; digits++)
        *code = *code << 4 | (uint32_t)hex_value(*p->p++);
    return digits > 0 && *code < 0x110000 ? 0 : dt_regex_fail(p, "a wrong hexadecimal number");
}

/* After \x or \u. */
static int read_number(struct parser *p, bool is_u, uint32_t *code)
{
    if (is_u) {
        const char *from = p->p;
        DT_TRY(read_hex(p, 4, code));
        return p->p - from == 4 ? 0 : dt_regex_fail(p, "a \\u without four digits");
    }
    if (take(p, "{")) {
        DT_TRY(read_hex(p, 8, code));
        return take(p, "}") ? 0 : dt_regex_fail(p, "a missing }");
    }
    const char *from = p->p;
    DT_TRY(read_hex(p, 2, code));
    if (p->python)
        return p->p - from == 2 ? 0 : dt_regex_fail(p, "a \\x without two digits");
    return *code < 0x80 ? 0 : dt_regex_fail(p, "a byte that is not a character");
}

/* After \p or \P. */
static int add_property(struct parser *p, struct dt_character_set *set, bool negative)
{
    if (!take(p, "{"))
        return dt_regex_fail(p, "a \\p without {");
    const char *close = memchr(p->p, '}', (size_t)(p->end - p->p));
    if (close == NULL)
        return dt_regex_fail(p, "a missing }");
    if (take(p, "^"))
        negative = !negative;
    if (!dt_character_set_add_property(set, p->p, (size_t)(close - p->p), p->in_class))
        return dt_regex_fail(p, "a property that is not known");
    p->p = close + 1;
    if (negative)
        dt_character_set_invert(set);
    return 0;
}

/* Adds the class of \d, \s, \w, \h or their complements to an empty set; false: another letter. */
static bool add_shorthand(const struct parser *p, struct dt_character_set *set, char letter)
{
    if (p->python)
        return dt_character_set_add_python_class(set, letter);
    static const char *const names[][2] = {
        {"d", "nd"}, {"s", "space"}, {"w", "word"}, {"h", "xdigit"}};
    for (size_t i = 0; i < 4; i++) {
        if ((letter | 0x20) != names[i][0][0])
            continue;
        dt_character_set_add_property(set, names[i][1], strlen(names[i][1]), p->in_class);
        if (letter < 'a')
            dt_character_set_invert(set);
        return true;
    }
    return false;
}

/* Reads what follows a backslash: a class into set, which is empty, or a character. */
static int read_escape(struct parser *p, struct dt_character_set *set, uint32_t *code,
                       bool *is_class)
{
    static const char letters[] = "ntrfvae", values[] = "\n\t\r\f\v\a\x1b";
    if (p->p == p->end)
        return dt_regex_fail(p, "a backslash");
    char letter = *p->p;
    *is_class = add_shorthand(p, set, letter);
    if (*is_class)
        return p->p++, 0;
    if (!p->python && (letter == 'p' || letter == 'P')) {
        p->p++;
        *is_class = true;
        return add_property(p, set, letter == 'P');
    }
    if (letter == 'x' || letter == 'u') {
        p->p++;
        return read_number(p, letter == 'u', code);
    }
    const char *known = letter && !(p->python && letter == 'e') ? strchr(letters, letter) : NULL;
    if (known)
        return p->p++, *code = (uint32_t)values[known - letters], 0;
    bool is_word =
        (letter >= '0' && letter <= '9') || ((letter | 0x20) >= 'a' && (letter | 0x20) <= 'z');
    if (is_word)
        return dt_regex_fail(p, "an escape that is not supported");
    return read_character(p, code);
}

/* Python's i also equals the dotless one, and the capital one with a dot. */
static bool fold(const struct parser *p, struct dt_character_set *set)
{
    bool has_i = dt_character_set_has(set, 'i') || dt_character_set_has(set, 'I');
    bool folded = dt_character_set_fold(set);
    if (folded && has_i && p->python)
        dt_character_set_add(set, 0x130, 0x131);
    return folded;
}

static int read_class(struct parser *p, struct dt_character_set *result);

/* Reads an element of a class: a character, perhaps the start of a range, or a class into item. */
static int read_element(struct parser *p, struct dt_character_set *item, uint32_t *code,
                        bool *is_class)
{
    *is_class = false;
    if (p->python && !at(p, "\\"))
        return read_character(p, code);
    if (at(p, "[:"))
        return dt_regex_fail(p, "a POSIX class, which is not supported,");
    if (take(p, "["))
        return *is_class = true, read_class(p, item);
    if (take(p, "\\"))
        return read_escape(p, item, code, is_class);
    return read_character(p, code);
}

/* Adds an element, or a range that starts with it, to set. */
static int add_element(struct parser *p, struct dt_character_set *set,
                       struct dt_character_set *item)
{
    uint32_t first = 0, last;
    bool is_class;
    memset(item, 0, sizeof *item);
    DT_TRY(read_element(p, item, &first, &is_class));
    bool is_range = at(p, "-") && !at(p, "-]");
    if (is_class) {
        dt_character_set_unite(set, item);
        return is_range ? dt_regex_fail(p, "a range that starts with a class") : 0;
    }
    last = first;
    if (is_range) {
        p->p++;
        DT_TRY(read_element(p, item, &last, &is_class));
        if (is_class || last < first)
            return dt_regex_fail(p, "a wrong range");
    }
    dt_character_set_add(set, first, last);
    return 0;
}

static int read_elements(struct parser *p, struct dt_character_set *set,
                         struct dt_character_set *item, struct dt_character_set *both)
{
    bool intersects = false;
    for (bool first = true; !at(p, "]") || (p->python && first); first = false) {
        if (p->p == p->end)
            return dt_regex_fail(p, "a missing ]");
        if (p->python || !take(p, "&&")) {
            DT_TRY(add_element(p, set, item));
            continue;
        }
        if (first)
            return dt_regex_fail(p, "an empty side of &&");
        if (intersects)
            dt_character_set_intersect(both, set);
        else
            *both = *set;
        intersects = true;
        memset(set, 0, sizeof *set);
    }
    p->p++;
    if (intersects)
        dt_character_set_intersect(set, both);
    return 0;
}

/* After [: replaces result by the class. */
static int read_class(struct parser *p, struct dt_character_set *result)
{
    bool negative = take(p, "^"), outer = p->in_class;
    if (at(p, "]") && !p->python)
        return dt_regex_fail(p, "an empty class");
    if (++p->depth > MAX_DEPTH)
        return dt_regex_fail(p, "a group or class too deep");
    struct dt_character_set *item = dt_character_set_new(), *both = dt_character_set_new();
    memset(result, 0, sizeof *result);
    p->in_class = true;
    int rc = read_elements(p, result, item, both);
    p->in_class = outer;
    free(item);
    free(both);
    p->depth--;
    DT_TRY(rc);
    if (p->ignore_case && !fold(p, result))
        return dt_regex_fail(p, "a class with characters beyond ASCII that ignores case");
    if (negative)
        dt_character_set_invert(result);
    return 0;
}

/* --- atoms -------------------------------------------------------------------------------------
 */

/* Refuses characters whose case folding is several, and pairs that are such a folding ("ss" is that
 * of U+00DF): Oniguruma matches them with each other. */
static int check_folding(struct parser *p, uint32_t code)
{
    uint32_t parts[DT_UNICODE_FOLD_MAX], own[DT_UNICODE_FOLD_MAX];
    if (!p->ignore_case || p->python)
        return p->folded = 0, 0;
    if (dt_unicode_fold(code, own) > 1)
        return dt_regex_fail(p, "a character with a case folding of several");
    for (uint32_t other = 0xdf; p->folded && other < 0xfb18; other++)
        if (dt_unicode_record(other)->long_fold && dt_unicode_fold(other, parts) > 1 &&
            parts[0] == p->folded && parts[1] == own[0])
            return dt_regex_fail(p, "a pair of characters that is the case folding of one");
    p->folded = own[0];
    return 0;
}

static int add_literal(struct parser *p, uint32_t code, struct node *n)
{
    DT_TRY(check_folding(p, code));
    n->set = DT_REGEX_LITERAL | code;
    if (!p->ignore_case)
        return 0;
    struct dt_character_set *set = new_set(p, &n->set);
    dt_character_set_add(set, code, code);
    return fold(p, set) ? 0 : dt_regex_fail(p, "a character beyond ASCII that ignores case");
}

static struct node *new_assertion(struct parser *p, enum dt_regex_operation operation,
                                  bool negative)
{
    struct node *n = new_node(p, ASSERTION);
    n->operation = operation;
    n->negative = negative;
    return n;
}

static int read_escaped_atom(struct parser *p, struct node **n)
{
    static const struct {
        char letter;
        enum dt_regex_operation operation;
        bool negative;
    } assertions[] = {{'A', DT_REGEX_TEXT_START, false},
                      {'z', DT_REGEX_TEXT_END, false},
                      {'Z', DT_REGEX_LAST_LINE, false},
                      {'b', DT_REGEX_BOUNDARY, false},
                      {'B', DT_REGEX_BOUNDARY, true}};
    uint32_t code = 0;
    bool is_class = false;
    for (size_t i = 0; i < sizeof assertions / sizeof *assertions; i++)
        if (p->p < p->end && *p->p == assertions[i].letter) {
            if (p->python && *p->p == 'z')
                return dt_regex_fail(p, "an escape that is not supported");
            p->p++;
            *n = new_assertion(p, assertions[i].operation, assertions[i].negative);
            if (p->python && (*n)->operation == DT_REGEX_LAST_LINE)
                (*n)->operation = DT_REGEX_TEXT_END; /* Python's \Z is the end */
            return 0;
        }
    *n = new_node(p, SET);
    struct dt_character_set *set = new_set(p, &(*n)->set);
    DT_TRY(read_escape(p, set, &code, &is_class));
    if (!is_class) {
        free(p->regex->sets[--p->regex->set_count]);
        return add_literal(p, code, *n);
    }
    return p->ignore_case && !p->python ? dt_regex_fail(p, "a class that ignores case") : 0;
}

static int read_choice(struct parser *p, struct node **n);

/* The options of (?i), (?m-i:...); *isolated: without a colon, to the end of the group. */
static int read_options(struct parser *p, bool *isolated)
{
    bool on = true;
    for (; p->p < p->end && *p->p != ')' && *p->p != ':'; p->p++) {
        if (*p->p == '-')
            on = false;
        else if (*p->p == 'i')
            p->ignore_case = on;
        else if (*p->p == (p->python ? 's' : 'm'))
            p->dot_all = on;
        else
            return dt_regex_fail(p, "a group or option that is not supported");
    }
    *isolated = at(p, ")");
    bool first = strncmp(p->start, "(?", 2) == 0 && p->p == p->start + strcspn(p->start, ")");
    if (*isolated && p->python && !(first && p->depth == 1))
        return dt_regex_fail(p, "options that are not at the start");
    return p->p++ < p->end ? 0 : dt_regex_fail(p, "a missing )");
}

/* After (? and, for look-back, <. */
static int read_group_kind(struct parser *p, struct node **n, bool *isolated)
{
    static const struct {
        const char *text;
        enum dt_regex_node_kind kind;
        bool back, negative;
    } kinds[] = {{":", EMPTY, false, false}, {">", ATOMIC, false, false}, {"=", LOOK, false, false},
                 {"!", LOOK, false, true},   {"<=", LOOK, true, false},   {"<!", LOOK, true, true}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!take(p, kinds[i].text))
            continue;
        if (kinds[i].kind == EMPTY)
            return 0;
        *n = new_node(p, kinds[i].kind);
        (*n)->back = kinds[i].back;
        (*n)->negative = kinds[i].negative;
        return 0;
    }
    return read_options(p, isolated);
}

/* A capturing group of Python; NULL for other groups. After (. */
static int begin_capture(struct parser *p, struct node **group)
{
    if (!p->python || (at(p, "?") && !at(p, "?P<")))
        return 0;
    if (take(p, "?P<")) {
        const char *close = memchr(p->p, '>', (size_t)(p->end - p->p));
        if (close == NULL)
            return dt_regex_fail(p, "a group's name without >");
        p->p = close + 1;
    }
    if (p->regex->groups + 1 == DT_REGEX_GROUPS)
        return dt_regex_fail(p, "too many groups");
    *group = new_node(p, GROUP);
    (*group)->set = ++p->regex->groups;
    return 0;
}

/* After (. */
static int read_group(struct parser *p, struct node **n)
{
    bool ignore_case = p->ignore_case, dot_all = p->dot_all, isolated = false;
    struct node *outer = NULL;
    if (++p->depth > MAX_DEPTH)
        return dt_regex_fail(p, "a group or class too deep");
    DT_TRY(begin_capture(p, &outer));
    if (outer == NULL && take(p, "?"))
        DT_TRY(read_group_kind(p, &outer, &isolated));
    DT_TRY(read_choice(p, n));
    if (outer) {
        outer->child = *n;
        *n = outer;
    }
    p->depth--;
    p->ignore_case = ignore_case;
    p->dot_all = dot_all;
    p->folded = 0;
    return isolated || take(p, ")") ? 0 : dt_regex_fail(p, "a missing )");
}

static int read_set_atom(struct parser *p, struct node **n)
{
    *n = new_node(p, SET);
    struct dt_character_set *set = new_set(p, &(*n)->set);
    if (take(p, "["))
        return read_class(p, set);
    p->p++; /* . */
    dt_character_set_add(set, '\n', '\n');
    if (p->dot_all)
        memset(set, 0, sizeof *set);
    dt_character_set_invert(set);
    return 0;
}

static int read_atom(struct parser *p, struct node **n)
{
    uint32_t code, before = p->folded;
    p->folded = 0;
    if (take(p, "("))
        return read_group(p, n);
    if (at(p, "[") || at(p, "."))
        return read_set_atom(p, n);
    if (take(p, "^") || take(p, "$")) {
        bool start = p->p[-1] == '^';
        *n = new_assertion(p, start ? DT_REGEX_LINE_START : DT_REGEX_LINE_END, false);
        if (p->python)
            (*n)->operation = start ? DT_REGEX_TEXT_START : DT_REGEX_LAST_LINE;
        return 0;
    }
    if (strchr("*+?", *p->p))
        return dt_regex_fail(p, "a quantifier of nothing");
    p->folded = before;
    if (take(p, "\\"))
        return read_escaped_atom(p, n);
    *n = new_node(p, SET);
    DT_TRY(read_character(p, &code));
    return add_literal(p, code, *n);
}

/* --- quantifiers -------------------------------------------------------------------------------
 */

/* {n}, {n,}, {,m} or {n,m}; false and nothing is taken if it is none: then { is a character. */
static bool take_interval(struct parser *p, uint32_t *min, uint32_t *max)
{
    const char *q = p->p + 1;
    uint32_t numbers[2] = {0, DT_REGEX_NO_LIMIT};
    bool given[2] = {false, false}, comma = false;
    for (int i = 0; i < 2; i++) {
        for (; q < p->end && *q >= '0' && *q <= '9'; q++) {
            numbers[i] = (given[i] ? 10 * numbers[i] : 0) + (uint32_t)(*q - '0');
            given[i] = true;
            if (numbers[i] > 100 * DT_REGEX_MAX_REPEAT)
                return false;
        }
        if (i == 0 && q < p->end && *q == ',')
            comma = true, q++;
        else
            break;
    }
    if (q >= p->end || *q != '}' || (!given[0] && !given[1]))
        return false;
    *min = numbers[0];
    *max = comma ? numbers[1] : numbers[0];
    p->p = q + 1;
    return true;
}

static int read_suffix(struct parser *p, struct node *n, bool interval)
{
    if (at(p, "?") && interval && n->min == n->max && !p->python)
        return dt_regex_fail(p, "{n}?, which is not supported,");
    if (take(p, "?"))
        n->lazy = true;
    else if ((!interval || p->python) && take(p, "+"))
        n->possessive = true;
    if (n->child->kind == ASSERTION || n->child->kind == LOOK)
        return dt_regex_fail(p, "a quantifier of an assertion");
    if (n->max == DT_REGEX_NO_LIMIT && dt_regex_minimum(n->child) == 0)
        return dt_regex_fail(p, "an unlimited quantifier of what may be empty");
    return 0;
}

/* Wraps *n in the quantifiers that follow it. In this syntax the + of {n,m}+ repeats the whole. */
static int read_quantifiers(struct parser *p, struct node **n)
{
    for (int count = 0; p->p < p->end; count++) {
        uint32_t min = 0, max = DT_REGEX_NO_LIMIT;
        bool interval = at(p, "{") && take_interval(p, &min, &max);
        if (!interval && !at(p, "*") && !at(p, "+") && !at(p, "?"))
            return 0;
        if (count > 0 && (p->python || !(count == 1 && at(p, "+") && !interval)))
            return dt_regex_fail(p, "a quantifier of a quantifier");
        if (!interval) {
            min = *p->p == '+';
            max = *p->p == '?' ? 1 : DT_REGEX_NO_LIMIT;
            p->p++;
        }
        if (min > max || min > DT_REGEX_MAX_REPEAT ||
            (max > DT_REGEX_MAX_REPEAT && max != DT_REGEX_NO_LIMIT))
            return dt_regex_fail(p, "a wrong or too large interval");
        struct node *repeat = new_node(p, REPEAT);
        repeat->child = *n;
        repeat->min = min;
        repeat->max = max;
        DT_TRY(read_suffix(p, repeat, interval));
        *n = repeat;
        p->folded = 0;
        if (!interval)
            count++; /* only an interval may be repeated */
    }
    return 0;
}

/* --- sequences and choices ---------------------------------------------------------------------
 */

static int read_sequence(struct parser *p, struct node **result)
{
    struct node *sequence = new_node(p, SEQUENCE), **last = &sequence->child;
    p->folded = 0;
    while (p->p < p->end && *p->p != '|' && *p->p != ')') {
        DT_TRY(read_atom(p, last));
        DT_TRY(read_quantifiers(p, last));
        if (++p->nodes > MAX_NODES || p->regex->set_count > MAX_SETS)
            return dt_regex_fail(p, "too many parts");
        last = &(*last)->next;
    }
    *result = sequence;
    return 0;
}

static int read_choice(struct parser *p, struct node **result)
{
    struct node *choice = new_node(p, CHOICE), **last = &choice->child;
    do {
        DT_TRY(read_sequence(p, last));
        last = &(*last)->next;
    } while (take(p, "|"));
    *result = choice;
    return 0;
}

static int parse(struct parser *p)
{
    struct node *root;
    DT_TRY(read_choice(p, &root));
    if (p->p < p->end)
        return dt_regex_fail(p, "a ) without (");
    return dt_regex_compile(p, root);
}

static bool has_boundary(const struct dt_regex *r)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->program[i].operation == DT_REGEX_BOUNDARY)
            return true;
    return false;
}

static void add_word(struct dt_regex *r, bool python)
{
    r->word = dt_character_set_new();
    if (python)
        dt_character_set_add_python_class(r->word, 'w');
    else
        dt_character_set_add_property(r->word, "word", 4, false);
}

int dt_regex_parse(struct dt_regex *r, const char *expression, bool python, struct dt_error *err)
{
    struct parser p = {.regex = r,
                       .start = expression,
                       .p = expression,
                       .end = expression + strlen(expression),
                       .python = python,
                       .err = err};
    int rc = parse(&p);
    if (has_boundary(r))
        add_word(r, python);
    for (size_t i = 0; i < p.owned_count; i++)
        free(p.owned[i]);
    free(p.owned);
    return rc;
}
