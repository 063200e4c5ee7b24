/* SPDX-License-Identifier: MIT */
#include "pretokenize/pattern.h"

#include <pthread.h>
#include <string.h>

#include "pretokenize/character.h"
#include "pretokenize/scanners.h"

/* clang-format off */
#define NEWLINES "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define CONTRACTION   "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define WORD     "[^\\r\\n\\p{L}\\p{N}]?"
#define UPPER  "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
/* clang-format on */

static const char gpt2_regex[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
static const char llama3_regex[] =
    CONTRACTION "|" WORD "\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" NEWLINES;
/* \z and {1,3} replace tiktoken's $ and {1,3}+: in the regular expressions of tokenizer.json
 * those mean the end of a line, and three digits repeated. */
static const char cl100k_regex[] =
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}|"
    " ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++\\z|\\s*[\\r\\n]|\\s+(?!\\S)|\\s";
static const char qwen_regex[] =
    CONTRACTION "|" WORD "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" NEWLINES;
static const char qwen35_regex[] =
    CONTRACTION "|" WORD "[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" NEWLINES;
static const char o200k_regex[] =
    WORD UPPER "*" LOWER "+" CONTRACTION "?|" WORD UPPER "+" LOWER "*" CONTRACTION "?|\\p{N}{1,3}|"
               " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" NEWLINES;
static const char tekken_regex[] = WORD UPPER "*" LOWER "+|" WORD UPPER "+" LOWER "*|\\p{N}|"
                                              " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" NEWLINES;

#define NAME_ROW(enumerator, name) [enumerator] = #name,
const char *const dt_pattern_names[] = {DT_SCANNER_ROWS(NAME_ROW)[DT_SCANNER_COUNT] = NULL};

#define PATTERN_ROW(enumerator, name) [enumerator] = {#name, name##_regex, NULL},
static struct dt_pattern patterns[DT_SCANNER_COUNT] = {DT_SCANNER_ROWS(PATTERN_ROW)};

/* Equivalent expressions of published files. */
static const struct {
    const char *regex;
    enum dt_scanner scanner;
} spellings[] = {
    {"'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
     DT_SCANNER_GPT2},
    {"'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}|"
     " ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
     DT_SCANNER_LLAMA3},
};

static void use_fastest(void)
{
    const struct dt_scanner_set *set = &dt_scanners_generic;
    dt_character_table_init();
#ifdef __x86_64__
    __builtin_cpu_init();
    if (dt_scanners_avx512.split[0] && __builtin_cpu_supports("avx512bw"))
        set = &dt_scanners_avx512;
    else if (dt_scanners_avx2.split[0] && __builtin_cpu_supports("avx2"))
        set = &dt_scanners_avx2;
#endif
    for (int i = 0; i < DT_SCANNER_COUNT; i++)
        patterns[i].split = set->split[i];
}

static void init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, use_fastest);
}

const struct dt_pattern *dt_pattern_find(const char *name)
{
    init();
    for (int i = 0; i < DT_SCANNER_COUNT; i++)
        if (strcmp(patterns[i].name, name) == 0)
            return &patterns[i];
    return NULL;
}

const struct dt_pattern *dt_pattern_find_regex(const char *regex)
{
    init();
    for (int i = 0; i < DT_SCANNER_COUNT; i++)
        if (strcmp(patterns[i].regex, regex) == 0)
            return &patterns[i];
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
        if (strcmp(spellings[i].regex, regex) == 0)
            return &patterns[spellings[i].scanner];
    return NULL;
}

static int is_ascii_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

size_t dt_pattern_safe_cut(const char *text, size_t size, size_t min)
{
    for (size_t i = min > 0 ? min : 1; i < size; i++)
        if ((text[i] == ' ' || text[i] == '\n') && is_ascii_letter(text[i - 1]))
            return i;
    return size;
}
