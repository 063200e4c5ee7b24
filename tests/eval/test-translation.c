/* SPDX-License-Identifier: MIT */
/* Scores against those of sacreBLEU 2.6.0:
 *   BLEU(tokenize=...).corpus_score(hypotheses, [references, ...]).score
 *   CHRF(word_order=...).corpus_score(hypotheses, [references, ...]).score */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval/translation-score.h"

#define SEGMENTS 10

static const char *const hypotheses[SEGMENTS] = {
    "The cat sat on the mat.",
    "There is 1,000.50 dollars-worth of 3-4 apples, isn't it?",
    "",
    "&quot;Hello&quot; &amp;lt; <skipped>world (again)!",
    "Ein  Mädchen\u00a0läuft – schnell…",
    "a a a a a b",
    "same same",
    "x",
    "\u3000日本語、です。 100%",
    "don't stop,now...5-6 $4.50 «ja»"};
static const char *const references[2][SEGMENTS] = {
    {"The cat is on the mat.", "There are 1,000.5 dollars-worth of 3-4 apples, isn't there?",
     "nothing here", "\"Hello\" &lt; world (again)?", "Ein Mädchen läuft - schnell...", "a a b b",
     "same same", "", "日本語 です。 100 %", "don't stop , now... 5-6 $ 4.50 \"ja\""},
    {"A cat sat on a mat.", "There is 1,000.50 dollars worth of apples", "", "Hello < world",
     "Das Mädchen läuft schnell", "a b a b", "same", "x y", "日本語です 100%", "don't stop now"}};

static struct dt_ids points_of(const char *text)
{
    struct dt_error err;
    struct dt_ids points = DT_IDS_EMPTY;
    assert_int_equal(dt_code_points(text, strlen(text), &points, &err), 0);
    return points;
}

static void count_segments(const struct dt_translation_metric *metric, int reference_count,
                           struct dt_segment_counts counts[SEGMENTS])
{
    for (int i = 0; i < SEGMENTS; i++) {
        struct dt_ids hypothesis = points_of(hypotheses[i]), theirs[2];
        for (int r = 0; r < 2; r++)
            theirs[r] = points_of(references[r][i]);
        dt_translation_score_counts(metric, &hypothesis, theirs, reference_count, &counts[i]);
        dt_ids_release(&hypothesis);
        dt_ids_release(&theirs[0]);
        dt_ids_release(&theirs[1]);
    }
}

static void scores_are_those_of_sacrebleu(void **state)
{
    (void)state;
    static const struct {
        struct dt_translation_metric metric;
        int references;
        double score;
        const char *signature;
    } golden[] = {
        {{DT_TRANSLATION_METRIC_BLEU, DT_TRANSLATION_WORDS_13A},
         1,
         60.90007817568777,
         "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"},
        {{DT_TRANSLATION_METRIC_BLEU, DT_TRANSLATION_WORDS_CHAR},
         1,
         68.42316220841367,
         "nrefs:1|case:mixed|eff:no|tok:char|smooth:exp|version:2.6.0"},
        {{DT_TRANSLATION_METRIC_BLEU, DT_TRANSLATION_WORDS_INTL},
         1,
         46.05497177948678,
         "nrefs:1|case:mixed|eff:no|tok:intl|smooth:exp|version:2.6.0"},
        {{DT_TRANSLATION_METRIC_BLEU, DT_TRANSLATION_WORDS_NONE},
         1,
         25.43824881509484,
         "nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:2.6.0"},
        {{DT_TRANSLATION_METRIC_CHRF, DT_TRANSLATION_WORDS_13A},
         1,
         67.66904538533664,
         "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0"},
        {{DT_TRANSLATION_METRIC_CHRF_WORDS, DT_TRANSLATION_WORDS_13A},
         1,
         62.46220160362618,
         "nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:2.6.0"},
        {{DT_TRANSLATION_METRIC_BLEU, DT_TRANSLATION_WORDS_13A},
         2,
         70.83873903220048,
         "nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"},
        {{DT_TRANSLATION_METRIC_BLEU, DT_TRANSLATION_WORDS_CHAR},
         2,
         74.09206107870291,
         "nrefs:2|case:mixed|eff:no|tok:char|smooth:exp|version:2.6.0"},
        {{DT_TRANSLATION_METRIC_BLEU, DT_TRANSLATION_WORDS_INTL},
         2,
         51.15728850796461,
         "nrefs:2|case:mixed|eff:no|tok:intl|smooth:exp|version:2.6.0"},
        {{DT_TRANSLATION_METRIC_BLEU, DT_TRANSLATION_WORDS_NONE},
         2,
         35.307166222708155,
         "nrefs:2|case:mixed|eff:no|tok:none|smooth:exp|version:2.6.0"},
        {{DT_TRANSLATION_METRIC_CHRF, DT_TRANSLATION_WORDS_13A},
         2,
         68.42522957886416,
         "nrefs:2|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0"},
        {{DT_TRANSLATION_METRIC_CHRF_WORDS, DT_TRANSLATION_WORDS_13A},
         2,
         62.10592714263103,
         "nrefs:2|case:mixed|eff:yes|nc:6|nw:2|space:no|version:2.6.0"},
    };
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        struct dt_segment_counts counts[SEGMENTS], sum = {{0}};
        struct dt_buffer signature = DT_BUFFER_EMPTY;
        count_segments(&golden[i].metric, golden[i].references, counts);
        for (int s = 0; s < SEGMENTS; s++)
            dt_segment_counts_add(&sum, &counts[s]);
        double score = dt_translation_score(&golden[i].metric, &sum).score;
        if (!(fabs(score - golden[i].score) < 1e-9))
            fail_msg("%s: %.15g, not %.15g", golden[i].signature, score, golden[i].score);
        dt_translation_score_signature(&golden[i].metric, golden[i].references, &signature);
        assert_string_equal(signature.data, golden[i].signature);
        dt_buffer_release(&signature);
    }
}

static void assert_words(enum dt_translation_words_kind kind, const char *text, const char *words)
{
    struct dt_ids sentence = points_of(text), expected = points_of(words), found = DT_IDS_EMPTY;
    dt_translation_words(kind, &sentence, &found);
    if (found.count != expected.count ||
        (found.count && memcmp(found.data, expected.data, found.count * sizeof *found.data) != 0))
        fail_msg("'%s' is not cut into '%s'", text, words);
    dt_ids_release(&sentence);
    dt_ids_release(&expected);
    dt_ids_release(&found);
}

static void words_are_tokenized_as_by_sacrebleu(void **state)
{
    (void)state;
    assert_words(DT_TRANSLATION_WORDS_13A, "1.5,a .5 5. 3-x -3 a-b 10,000,x..",
                 "1.5 , a . 5 5 . 3 - x -3 a-b 10,000 , x . .");
    assert_words(DT_TRANSLATION_WORDS_13A, "~!@#$%^&*()_+`{}|[]\\:\";'<>?,./",
                 "~ ! @ # $ % ^ & * ( ) _ + ` { } | [ ] \\ : \" ; ' < > ? , . /");
    assert_words(DT_TRANSLATION_WORDS_13A, "&quot;&amp;lt; <skipped>x\t\v ", "\" < x");
    assert_words(DT_TRANSLATION_WORDS_13A, "", "");
    assert_words(DT_TRANSLATION_WORDS_CHAR, " ab ç\u2003d", "a b ç d");
    assert_words(DT_TRANSLATION_WORDS_NONE, " a,b  c. ", "a,b c.");
}

static void text_that_is_no_utf8_is_refused(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_ids points = DT_IDS_EMPTY;
    const char *bad[] = {"ab\xff", "\xc3", "\xed\xa0\x80", "\xc0\x80"};
    for (int i = 0; i < 4; i++)
        assert_int_equal(dt_code_points(bad[i], strlen(bad[i]), &points, &err), DT_EFORMAT);
    assert_int_equal(dt_code_points("ab\xff", 3, &points, &err), DT_EFORMAT);
    assert_string_equal(err.text, "byte 3: invalid UTF-8");
    dt_ids_release(&points);
}

static void a_system_does_not_differ_from_itself(void **state)
{
    (void)state;
    const struct dt_translation_metric bleu = {DT_TRANSLATION_METRIC_BLEU,
                                               DT_TRANSLATION_WORDS_13A};
    struct dt_segment_counts counts[SEGMENTS], worse[SEGMENTS];
    count_segments(&bleu, 2, counts);
    struct dt_paired_bootstrap same = dt_paired_bootstrap(&bleu, counts, counts, SEGMENTS, 200, 1);
    assert_true(same.p > 0.9);
    for (int i = 0; i < SEGMENTS; i++) {
        worse[i] = counts[i];
        for (int n = 1; n < 4; n++)
            worse[i].of[2 + n] = floor(worse[i].of[2 + n] / 3);
    }
    struct dt_paired_bootstrap other = dt_paired_bootstrap(&bleu, worse, counts, SEGMENTS, 200, 1);
    struct dt_paired_bootstrap again = dt_paired_bootstrap(&bleu, worse, counts, SEGMENTS, 200, 1);
    assert_true(other.p < 0.05);
    assert_true(other.mean > 60 && other.mean < 80 && other.interval > 1);
    assert_memory_equal(&other, &again, sizeof other);
    assert_true(dt_paired_bootstrap(&bleu, worse, counts, 1, 200, 1).p == 1);
    assert_true(dt_paired_bootstrap(&bleu, worse, counts, 2, 200, 1).p >= 0.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_those_of_sacrebleu),
        cmocka_unit_test(words_are_tokenized_as_by_sacrebleu),
        cmocka_unit_test(text_that_is_no_utf8_is_refused),
        cmocka_unit_test(a_system_does_not_differ_from_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
