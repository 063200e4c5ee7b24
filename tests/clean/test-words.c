/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <string.h>

#include "base/buffer.h"
#include "clean/measure.h"
#include "math/rng.h"
#include "unicode/character.h"
#include "unicode/utf8.h"

/* The words of text in a language are those of expected, where they have spaces between them. */
static void assert_words_of(const char *language, const char *text, const char *expected)
{
    struct dt_words words = {.traits = dt_words_traits(language)};
    size_t i = 0;
    dt_words_split(&words, text, strlen(text));
    for (const char *p = expected; *p; i++) {
        size_t n = strcspn(p, " ");
        assert_true(i < words.count);
        assert_int_equal(words.items[i].hash, dt_word_hash(p, n));
        assert_int_equal(words.items[i].chars, dt_utf8_count(p, n));
        p += n + (p[n] == ' ');
    }
    assert_int_equal(words.count, i);
    dt_words_release(&words);
}

static void assert_words(const char *text, const char *expected)
{
    assert_words_of("", text, expected);
}

/* Golden: spacy.blank("en") 3.8 cuts these in the same way, e.g.
 * [t.text for t in spacy.blank("en")("It's (almost) 10km, isn't it?")] */
static void words_are_cut_as_spacy_cuts_them(void **state)
{
    (void)state;
    assert_words("", "");
    assert_words(" \t\n", "");
    assert_words("The quick brown fox.", "The quick brown fox .");
    assert_words("\"Quoted,\" she said; 'yes'!", "\" Quoted , \" she said ; ' yes ' !");
    assert_words("It's (almost) 10km, isn't it?", "It 's ( almost ) 10 km , is n't it ?");
    assert_words("we'll you've I'd they\xe2\x80\x99re", "we 'll you 've I 'd they \xe2\x80\x99re");
    assert_words("e.g. Mr. Smith etc. and the U.S. too", "e.g. Mr. Smith etc . and the U.S. too");
    assert_words("well-known and/or he/she a,b x=y", "well - known and/or he / she a , b x = y");
    assert_words("wait... what\xe2\x80\xa6 no", "wait ... what \xe2\x80\xa6 no");
    assert_words("see https://example.org/a-b?c=d or me@example.org.",
                 "see https://example.org/a-b?c=d or me@example.org .");
    assert_words("$5 50% 3+4 -x +y +1", "$ 5 50 % 3 + 4 -x + y +1");
    assert_words("cannot gonna", "can not gon na");
    assert_words("na\xc3\xafve caf\xc3\xa9\xe2\x80\x94"
                 "bar",
                 "na\xc3\xafve caf\xc3\xa9 \xe2\x80\x94 bar");
    assert_words("(((x)))", "( ( ( x ) ) )");
    assert_words("lower.Upper stays.lower", "lower . Upper stays.lower");
    assert_words("a :P :D 'em 'bout :x (y) in the middle of a text",
                 "a :P :D 'em 'bout : x ( y ) in the middle of a text");
    assert_words("5\u20ac 20.50\u00a3. (3\u00a5) \u20b95 x5\u20bd 5\u00a2 a\u20ac",
                 "5 \u20ac 20.50\u00a3. ( 3 \u00a5 ) \u20b9 5 x5 \u20bd 5\u00a2 a\u20ac");
}

/* Golden: likewise, spacy.blank(language); "xx" where it has no tokenizer for it. */
static void words_of_other_languages_are_cut_as_spacy_cuts_them(void **state)
{
    (void)state;
    assert_words_of("en", "im Dec. cannot", "i m Dec. can not");
    assert_words_of("cs", "im Dec. cannot don't it's 12-efgh a.",
                    "im Dec . cannot don't it 's 12-efgh a.");
    assert_words_of("de", "Boot-Parameter im 12. it's 3+4 /abcd/ (ab)",
                    "Boot-Parameter im 12. it's 3+4 /abcd / ( ab )");
    assert_words_of("deu_Latn", "Boot-Parameter", "Boot-Parameter");
    assert_words_of("de", "2011-2012 ab(cd)", "2011 - 2012 ab ( cd )");
    assert_words_of("nl", "2011-2012 abcd/efgh 5%", "2011-2012 abcd/efgh 5%");
    assert_words_of("fr", "l'abcd qu\xe2\x80\x99il 12. un-deux",
                    "l' abcd qu\xe2\x80\x99 il 12 . un - deux");
    assert_words_of("it", "l'abcd it's", "l' abcd it 's");
    assert_words_of("sv", "abcd:efgh abcd-efgh", "abcd:efgh abcd-efgh");
    assert_words_of("pl", "12-efgh it's", "12 - efgh it's");
    assert_words_of("ar", "abcd. AB. (ab). 12. it's \u0628\u0628. \u0628.",
                    "abcd. AB . ( ab). 12. it's \u0628\u0628 . \u0628.");
    assert_words_of("fa", "abcd. \u0628\u0628.", "abcd. \u0628\u0628 .");
}

/* Golden: load_word_tokenizer("cmn_Hani") of datatrove 0.10, which is jieba. */
static void marks_split_in_languages_with_dictionaries(void **state)
{
    (void)state;
    assert_words_of("zh",
                    "apt-get /etc/passwd X.org v12.1 foo_bar (HTTP) e.g. ... -- A/B test.txt, ok.",
                    "apt - get / etc / passwd X . org v12.1 foo _ bar ( HTTP ) e . g . ... -- "
                    "A / B test . txt , ok .");
    assert_words_of("cmn_Hani", "a@b-\u4e2d", "a @ b - \u4e2d");
    assert_words_of("jpn_Jpan", "1,000 a,b", "1,000 a , b");
}

static void scripts_without_blanks_are_cut_into_characters(void **state)
{
    (void)state;
    assert_words("\xe4\xb8\xad\xe6\x96\x87\xe3\x80\x82"
                 "GNU\xe6\x98\xaf",
                 "\xe4\xb8\xad \xe6\x96\x87 \xe3\x80\x82 GNU \xe6\x98\xaf");
    /* Thai: consonants with their vowels and tones; a digit is not of the script */
    assert_words("\xe0\xb8\x97\xe0\xb8\xb5\xe0\xb9\x88\xe0\xb8\x99\xe0\xb9\x91",
                 "\xe0\xb8\x97\xe0\xb8\xb5\xe0\xb9\x88 \xe0\xb8\x99 \xe0\xb9\x91");
    /* kana with a voicing mark; Hangul has blanks */
    assert_words("\xe3\x81\x8b\xe3\x82\x99\xe3\x81\x8d \xea\xb0\x80\xeb\x82\x98",
                 "\xe3\x81\x8b\xe3\x82\x99 \xe3\x81\x8d \xea\xb0\x80\xeb\x82\x98");
}

static void split(struct dt_words *words, const char *language, const char *text)
{
    words->traits = dt_words_traits(language);
    dt_words_split(words, text, strlen(text));
}

/* Words of letters take a short path, but not after a bracket: it must not make a difference. */
static void a_bracket_before_a_text_does_not_change_its_words(void **state)
{
    (void)state;
    static const char *const parts[] = {"\xc3\xa9",
                                        "\xc3\xb1",
                                        "\xd0\xaf",
                                        "\xd1\x8b",
                                        "\xd9\x88",
                                        "\xcc\x81",
                                        "a",
                                        "s",
                                        "T",
                                        "\xe0\xa4\x95",
                                        "\xe0\xa4\xbf",
                                        "\xea\xb0\x80",
                                        "\xe4\xb8\xad",
                                        "\xe0\xb8\x97",
                                        "1",
                                        ".",
                                        ",",
                                        ";",
                                        "!",
                                        ")",
                                        "'",
                                        "-",
                                        "/",
                                        "\xd8\x8c",
                                        "\xe0\xa5\xa4",
                                        "\xc2\xbb",
                                        "\xe2\x80\x9d",
                                        "\xe2\x80\x99",
                                        "\xe2\x80\xa6",
                                        "\xe2\x98\x83",
                                        "\xe2\x80\x8d",
                                        " ",
                                        "\xe3\x80\x82",
                                        "%",
                                        "\xc2\xb2"};
    static const char *const languages[] = {"en", "de", "fr", "cs", "sv", "pl", "ar", "zh"};
    struct dt_rng rng;
    struct dt_words plain = {0}, bracketed = {0};
    dt_rng_init(&rng, 1);
    for (int run = 0; run < 30000; run++) {
        char text[64] = "(";
        const char *language = languages[dt_rng_below(&rng, 8)];
        strcat(text, parts[dt_rng_below(&rng, 12)]);
        for (uint32_t k = dt_rng_below(&rng, 8); k > 0; k--)
            strcat(text, parts[dt_rng_below(&rng, dt_rng_below(&rng, 2) ? 12 : 35)]);
        split(&plain, language, text + 1);
        split(&bracketed, language, text);
        assert_int_equal(plain.count + 1, bracketed.count);
        for (size_t i = 0; i < plain.count; i++) {
            assert_int_equal(plain.items[i].hash, bracketed.items[i + 1].hash);
            assert_int_equal(plain.items[i].chars, bracketed.items[i + 1].chars);
            assert_int_equal(plain.items[i].kind & ~(unsigned)DT_WORD_STARTS_LINE,
                             bracketed.items[i + 1].kind & ~(unsigned)DT_WORD_STARTS_LINE);
        }
    }
    dt_words_release(&plain);
    dt_words_release(&bracketed);
}

static size_t sentences(const char *text)
{
    struct dt_words words = {.traits = DT_WORD_TRAITS_ENGLISH};
    dt_words_split(&words, text, strlen(text));
    size_t count = dt_words_sentences(&words);
    dt_words_release(&words);
    return count;
}

static void sentences_end_at_stops_and_with_lines(void **state)
{
    (void)state;
    assert_int_equal(sentences(""), 0);
    assert_int_equal(sentences("One"), 1);
    assert_int_equal(sentences("One. Two? Three!"), 3);
    assert_int_equal(sentences("\"One.\" Two... three?! Four"), 3);
    assert_int_equal(sentences("a\nb\n\nc"), 3);
    assert_int_equal(sentences("Mr. Smith. \n He."), 2);
}

/* A slow and plain way to the same numbers: strings are compared. */
static void compare_with_plain_counting(const char *text, const char *const *word, size_t count)
{
    struct dt_measures m = {0};
    dt_measures_start(&m, text, strlen(text));
    for (size_t n = 2; n <= 10; n++) {
        size_t top = 1, top_at = 0;
        uint64_t repeated = 0, top_chars = n - 1;
        char before[64] = {0}; /* places passed, and not skipped */
        for (size_t i = 0; i + n <= count; i++) {
            size_t times = 0;
            for (size_t k = 0; k + n <= count; k++) {
                size_t same = 0;
                while (same < n && strcmp(word[i + same], word[k + same]) == 0)
                    same++;
                times += same == n;
            }
            if (times > top)
                top = times, top_at = i;
        }
        for (size_t i = 0; i + n <= count;) {
            bool seen = false;
            for (size_t k = 0; k < i && !seen; k++) {
                size_t same = 0;
                while (before[k] && same < n && strcmp(word[i + same], word[k + same]) == 0)
                    same++;
                seen = same == n;
            }
            for (size_t k = 0; seen && k < n; k++)
                repeated += strlen(word[i + k]);
            before[i] = !seen;
            i += seen ? n : 1;
        }
        for (size_t k = 0; k < n && top_at + n <= count; k++)
            top_chars += strlen(word[top_at + k]);
        if (n > count)
            continue;
        if (n > DT_SHORT_SEQUENCE) {
            assert_int_equal(dt_measure_sequences(&m, (int)n)->repeated_chars, repeated);
            assert_true(dt_measure_sequences(&m, DT_SHORT_SEQUENCE + 1)->later_chars >= repeated);
            continue;
        }
        assert_int_equal(dt_measure_sequences(&m, (int)n)->top_chars, top * top_chars);
        assert_true(dt_measure_sequence_bounds(&m)->top_chars[n] >= top * top_chars);
    }
    dt_measures_release(&m);
}

static void repeated_sequences_are_those_of_plain_counting(void **state)
{
    (void)state;
    static const char *const pieces[] = {"a", "bb", "ccc"};
    struct dt_rng rng;
    dt_rng_init(&rng, 5);
    for (int trial = 0; trial < 300; trial++) {
        struct dt_buffer text = DT_BUFFER_EMPTY;
        const char *word[60];
        size_t count = 2 + dt_rng_below(&rng, 58);
        uint32_t kinds = 1 + dt_rng_below(&rng, 3);
        for (size_t i = 0; i < count; i++) {
            word[i] = pieces[dt_rng_below(&rng, kinds)];
            dt_buffer_add_string(&text, word[i]);
            dt_buffer_add_char(&text, ' ');
        }
        compare_with_plain_counting(text.data, word, count);
        dt_buffer_release(&text);
    }
}

/* Letters of common scripts are read by blocks, but not where the text ends. */
static void each_character_is_read_alike_in_a_block_and_at_the_end(void **state)
{
    (void)state;
    struct dt_words alone = {0}, before = {0};
    for (uint32_t code = 0x80; code < 0x10000; code += code == 0xd7ff ? 0x801 : 1) {
        char text[64];
        size_t size = dt_utf8_encode(code, text);
        memcpy(text + size, " ab", 3);
        size += 3 + dt_utf8_encode(code, text + size + 3);
        memcpy(text + size, "b. xxxxxxxxxxxxxxxxxxxxxxxxxx", 29);
        dt_words_split(&alone, text, size + 3);
        dt_words_split(&before, text, size + 29);
        assert_int_equal(before.count, alone.count + 1);
        assert_memory_equal(before.items, alone.items, alone.count * sizeof *alone.items);
    }
    dt_words_release(&alone);
    dt_words_release(&before);
}

/* 70,000 words: counts of pairs would not fit their type. */
static void the_bound_of_a_long_text_is_not_exceeded(void **state)
{
    (void)state;
    struct dt_measures m = {0};
    struct dt_buffer text = DT_BUFFER_EMPTY;
    for (int i = 0; i < 70000; i++)
        dt_buffer_add_string(&text, "a ");
    dt_measures_start(&m, text.data, text.size);
    assert_int_equal(dt_measure_sequences(&m, 2)->top_chars, 69999 * 3);
    assert_true(dt_measure_sequence_bounds(&m)->top_chars[2] >= 69999 * 3);
    assert_int_equal(dt_measure_sequences(&m, 10)->repeated_chars, 69990);
    assert_true(dt_measure_sequences(&m, 5)->later_chars >= 69990);
    dt_measures_release(&m);
    dt_buffer_release(&text);
}

/* Words are found up to the next character that starts a cluster, without a segmenter. */
static void words_of_scripts_without_blanks_are_grapheme_clusters(void **state)
{
    static const uint32_t marks[] = {0x0301, 0x0e35, 0x0e48, 0x0e33,
                                     0x102c, 0x17b6, 0x3099, 0xff9e};
    struct dt_segmenter *segmenter = dt_segmenter_new(DT_SEGMENTATION_CHARACTERS);
    struct dt_words words = {0};
    (void)state;
    for (uint32_t code = 0x80; code < 0x33000; code++) {
        char text[16];
        unsigned size = 0;
        const uint32_t *ends;
        if (!(dt_character_kind_of_code(code) & DT_CHARACTER_UNSPACED))
            continue;
        size += dt_utf8_encode(code, text);
        size += dt_utf8_encode(marks[code % 8], text + size);
        size += dt_utf8_encode(code, text + size);
        dt_words_split(&words, text, size);
        assert_int_equal(dt_segmenter_split(segmenter, text, size, &ends), words.count);
        for (size_t i = 0, from = 0; i < words.count; from = ends[i++])
            assert_int_equal(dt_word_hash(text + from, ends[i] - from), words.items[i].hash);
    }
    dt_segmenter_free(segmenter);
    dt_words_release(&words);
}

/* As where rules drop lines: the words of the others need not be found again. */
static void words_of_lines_that_stay_are_those_of_the_text_without_the_others(void **state)
{
    static const char *const lines[] = {"The end.", "", "  it's so ", "\xe4\xb8\xad x", "a-b (c)"};
    struct dt_measures kept = {0}, fresh = {0};
    struct dt_rng rng;
    (void)state;
    dt_rng_init(&rng, 3);
    for (int trial = 0; trial < 300; trial++) {
        struct dt_buffer old = DT_BUFFER_EMPTY, new = DT_BUFFER_EMPTY;
        bool stays[6];
        for (int i = 0; i < 6; i++) {
            const char *line = lines[dt_rng_below(&rng, 5)];
            stays[i] = dt_rng_below(&rng, 2);
            dt_buffer_add_string(&old, line);
            dt_buffer_add_char(&old, '\n');
            if (stays[i])
                dt_buffer_add_string(&new, line);
            dt_buffer_add_char(&new, '\n');
        }
        dt_measures_start(&kept, old.data, old.size);
        (void)dt_measure_words(&kept);
        dt_measures_keep_start(&kept);
        for (size_t i = 0, line = 0, size; line < 6; line++, i += size + 1) {
            size = strcspn(old.data + i, "\n");
            if (size > 0)
                dt_measures_keep_line(&kept, stays[line]);
        }
        dt_measures_restart(&kept, new.data, new.size);
        dt_measures_start(&fresh, new.data, new.size);
        const struct dt_word_counts *a = dt_measure_words(&kept), *b = dt_measure_words(&fresh);
        assert_int_equal(a->count, b->count);
        assert_int_equal(a->proper_chars, b->proper_chars);
        if (b->count > 0)
            assert_memory_equal(a->items, b->items, b->count * sizeof *b->items);
        dt_buffer_release(&old);
        dt_buffer_release(&new);
    }
    dt_measures_release(&kept);
    dt_measures_release(&fresh);
}

static void any_valid_text_can_be_split(void **state)
{
    (void)state;
    struct dt_rng rng;
    struct dt_words words = {.traits = DT_WORD_TRAITS_ENGLISH};
    dt_rng_init(&rng, 9);
    for (int trial = 0; trial < 3000; trial++) {
        struct dt_buffer raw = DT_BUFFER_EMPTY, text = DT_BUFFER_EMPTY;
        for (uint32_t n = dt_rng_below(&rng, 60); n > 0; n--) {
            static const char marks[] = " .,'()-/:@\"\n+1aZs\xe2\x80\xa6\xc3\xa9";
            dt_buffer_add_char(&raw, dt_rng_below(&rng, 4)
                                         ? marks[dt_rng_below(&rng, sizeof marks - 1)]
                                         : (char)dt_rng_below(&rng, 256));
        }
        dt_utf8_repair(raw.data, raw.size, &text);
        dt_words_split(&words, text.data, text.size);
        uint64_t chars = 0;
        for (size_t i = 0; i < words.count; i++)
            chars += words.items[i].chars;
        assert_true(chars <= dt_utf8_count(text.data, text.size));
        dt_buffer_release(&raw);
        dt_buffer_release(&text);
    }
    dt_words_release(&words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_cut_as_spacy_cuts_them),
        cmocka_unit_test(words_of_other_languages_are_cut_as_spacy_cuts_them),
        cmocka_unit_test(marks_split_in_languages_with_dictionaries),
        cmocka_unit_test(scripts_without_blanks_are_cut_into_characters),
        cmocka_unit_test(a_bracket_before_a_text_does_not_change_its_words),
        cmocka_unit_test(sentences_end_at_stops_and_with_lines),
        cmocka_unit_test(repeated_sequences_are_those_of_plain_counting),
        cmocka_unit_test(each_character_is_read_alike_in_a_block_and_at_the_end),
        cmocka_unit_test(the_bound_of_a_long_text_is_not_exceeded),
        cmocka_unit_test(words_of_scripts_without_blanks_are_grapheme_clusters),
        cmocka_unit_test(words_of_lines_that_stay_are_those_of_the_text_without_the_others),
        cmocka_unit_test(any_valid_text_can_be_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
