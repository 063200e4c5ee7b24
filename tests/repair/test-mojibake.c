/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <string.h>

#include "repair/mojibake-internal.h"
#include "repair/mojibake.h"
#include "unicode/utf8.h"

static void assert_repaired(const char *text, const char *expected, uint64_t times)
{
    struct dt_buffer out = DT_BUFFER_EMPTY;
    assert_int_equal(dt_mojibake_repair(text, strlen(text), &out), times);
    if (times > 0)
        assert_string_equal(out.data, expected);
    dt_buffer_release(&out);
}

/* Golden: ftfy.fix_encoding("CafÃ© donâ€™t") of ftfy 6.3 gives the same. */
static void double_encodings_are_undone(void **state)
{
    (void)state;
    assert_repaired("Caf\xc3\x83\xc2\xa9", "Caf\xc3\xa9", 1);
    assert_repaired("don\xc3\xa2\xe2\x82\xac\xe2\x84\xa2t", "don\xe2\x80\x99t", 1);
    assert_repaired("Caf\xc3\x83\xc6\x92\xc3\x82\xc2\xa9", "Caf\xc3\xa9", 3);
    assert_repaired("\xc3\xb0\xc5\xb8\xcb\x9c\xe2\x82\xac", "\xf0\x9f\x98\x80", 1);
    assert_repaired("\xc3\x90\xc2\xbf\xc3\x91\xe2\x82\xac", "\xd0\xbf\xd1\x80", 2);
}

/* UTF-8 as whoever takes it for Windows-1252 sees it. */
static void mangle(const char *text, struct dt_buffer *out)
{
    static const char *const high[32] = {
        "€", "\xc2\x81", "‚",        "ƒ", "„",        "…",        "†", "‡",        "ˆ", "‰", "Š",
        "‹", "Œ",        "\xc2\x8d", "Ž", "\xc2\x8f", "\xc2\x90", "‘", "’",        "“", "”", "•",
        "–", "—",        "˜",        "™", "š",        "›",        "œ", "\xc2\x9d", "ž", "Ÿ"};
    dt_buffer_clear(out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 0x80)
            dt_buffer_add_char(out, *text);
        else if (c < 0xa0)
            dt_buffer_add_string(out, high[c - 0x80]);
        else
            dt_buffer_append(out, (char[]){(char)(0xc0 | c >> 6), (char)(0x80 | (c & 0x3f))}, 2);
    }
}

/* Sentences with what comes after accented letters in print. */
static const char *const meant[] = {
    "Non, dit Brontë…”",
    "Le café\u00a0», dit-il. «\u00a0Oui, je suis allé\u00a0!\u00a0»",
    "Já está lá´´, disse você…”",
    "A minha irmã…” disse ela. “Não é…”",
    "Už nemáš…” řekl Tomáš”. „Již…“",
    "tabulka je plná\u00a0– čeká se",
    "Sie rief: »Olé…« und „Café“ – ganz groß…“",
    "Han sa: ”på…”, ”å…” och ”nä…”",
    "Se dijo: «¿Y el café»… y se fue «allí»”.",
    "Nestlé™® et Café²",
    "IRMÃ», AÇÃ”, MISUTÂ\u00a0AJIKKO",
    "There are a lot of Ã’s in such text.",
    "On a dit “sí”—and “no sé”—and left.",
    "Ólafur var góð…” og hló„ „fjörð”…”",
    "Việt Nam, số một, ở đó",
    "50 × 20 cm, ±3 °C, § 5, ¶ 2, © 2020, ½ l",
    "Straße, Maß…”, Fluß“”",
    "Привет, «мир»… “да”—нет",
    "日本語の「本」と中国語。",
    /* letters that are single words, or end one, before punctuation */
    "În limba română, litera „Â” se scrie în interiorul cuvintelor, iar „Î” la început.",
    "Literele «Â» și «Î» se citesc la fel.",
    "Lettres «\u00a0Â\u00a0» et ‹Ã›\u00a0: voilà.",
    "A letra «Ã» tem til.",
    "A letra “Ô, a letra ‘Ã’ e a letra Ã…",
    "Horário: MANHÃ–TARDE, SEGUNDA–SEXTA",
    "MANHÃ—TARDE, IRMÃ’S, MAÇÃ…BANANA",
    "FÃ–CLUBE",
    "MANHÃ–TARDE, MANHÃ–NOITE",
    "Nguyên âm Ã… ã",
};

/* Text that looks like UTF-8 in one of the encodings, or nearly. */
static const char *const misleading[] = {
    "ВІТАЄМО, ВІК",     "ВелосипедЂор", "10 Å— 20",   "2×£5",      "BLÅØYA, ÆØÅ",
    "TRANSFORMATORIŲ®", "NESTLÉ® ™",    "x = √π, ∆°", "(o¬ô) Ō¬o", "┌┬┐ ┤a├ ┼┐a┼┐a",
    "TAXAĂ\u00a0",      "SÃO, SÓ… OÙ™", "frá§ 14",    "Āø Åland",  "J'ai dit «\u00a0à\u00a0»…",
};

static void correct_text_stays(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof meant / sizeof *meant; i++) {
        struct dt_buffer out = DT_BUFFER_EMPTY;
        if (dt_mojibake_repair(meant[i], strlen(meant[i]), &out) != 0)
            fail_msg("%s became %s", meant[i], out.data);
        dt_buffer_release(&out);
    }
    for (size_t i = 0; i < sizeof misleading / sizeof *misleading; i++) {
        struct dt_buffer out = DT_BUFFER_EMPTY;
        if (dt_mojibake_repair(misleading[i], strlen(misleading[i]), &out) != 0)
            fail_msg("%s became %s", misleading[i], out.data);
        dt_buffer_release(&out);
    }
}

/* UTF-8 as whoever takes it for an encoding of the table sees it. */
static void mangle_as(int encoding, const char *text, struct dt_buffer *out)
{
    dt_buffer_clear(out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        char utf8[4];
        uint32_t code = c < 0x80 ? c : dt_mojibake_encodings[encoding][c - 0x80];
        dt_buffer_append(out, utf8, dt_utf8_encode(code, utf8));
    }
}

static void every_encoding_is_undone_once_and_twice(void **state)
{
    static const char *const sentences[] = {
        "Le garçon était à l’hôpital.",
        "Zażółć gęślą jaźń.",
        "Съешь же ещё этих булок.",
        "Ξεσκεπάζω την ψυχοφθόρα.",
        "Việt Nam có nhiều món.",
        "いろはにほへと ちりぬるを",
        "키스의 고유조건은",
        "I ❤ you 😀.",
        "Šiaip įdomu, kaip jūs.",
    };
    struct dt_buffer once = DT_BUFFER_EMPTY, twice = DT_BUFFER_EMPTY, out = DT_BUFFER_EMPTY;
    unsigned missed = 0;
    (void)state;
    for (int e = 0; e < DT_MOJIBAKE_ENCODINGS; e++) {
        for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++) {
            mangle_as(e, sentences[i], &once);
            mangle_as(e, once.data, &twice);
            assert_true(dt_mojibake_repair(once.data, once.size, &out) > 0);
            missed += strcmp(out.data, sentences[i]) != 0;
            assert_true(dt_mojibake_repair(twice.data, twice.size, &out) > 0);
            missed += strcmp(out.data, sentences[i]) != 0;
        }
    }
    assert_in_range(missed, 0, 4); /* of 180: what the encodings cannot tell apart */
    dt_buffer_release(&once);
    dt_buffer_release(&twice);
    dt_buffer_release(&out);
}

/* Bytes that programs lose: a no-break space became a space, an undefined byte U+FFFD or "?", and
 * characters beyond U+FFFF two surrogates. */
static void lost_bytes_are_marked_or_restored(void **state)
{
    (void)state;
    assert_repaired("voilÃ la mÃ©thode", "voilà la méthode", 2);
    assert_repaired("Ã s 7 horas nÃ£o", "às 7 horas não", 2);
    assert_repaired("â€œso isâ€� said", "“so is� said", 2);
    assert_repaired("â€œyesâ€? and â€œnoâ€?", "“yes� and “no�", 4);
    assert_repaired("oh í\u00a0½í¸\xc2\x80", "oh 😀", 1);
    assert_repaired("GÃ\u00a0idhlig", "Gàidhlig", 1);
}

static void mangled_text_is_mended_wherever_its_letters_are(void **state)
{
    (void)state;
    static const char *const more[] = {"Čeština, Lietuvių, Rīga, İstanbul: Hırsızı",
                                       "DOS AÑOS, RUF MICH ZURÜCK, HÔTEL, CÙIS",
                                       "Gàidhlig, Série F, Hôtel de Police",
                                       "Él está aquí: ¿qué? ¡Olé!",
                                       "på vej til Ærø",
                                       "русский язык и в, с, к",
                                       "ελληνικά και η α",
                                       "हिन्दी, தமிழ், ไทย",
                                       "한국어와 日本語 😀",
                                       "“It’s” – 5 € – don’t…",
                                       "Tiếng Việt: số một, ở đó"};
    struct dt_buffer text = DT_BUFFER_EMPTY, out = DT_BUFFER_EMPTY;
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        mangle(more[i], &text);
        assert_true(dt_mojibake_repair(text.data, text.size, &out) > 0);
        assert_string_equal(out.data, more[i]);
    }
    dt_buffer_release(&text);
    dt_buffer_release(&out);
}

/* In correct text only unambiguous sequences are repaired. */
static void sequences_beside_correct_text_are_mended(void **state)
{
    (void)state;
    assert_repaired("– fÃ¤hrt, nÃ£o", "– fährt, não", 2);
    assert_repaired("« LietuviÅ³ »", "« Lietuvių »", 1);
    assert_repaired("DÃ©jÃ\u00a0 vu – AÃ‘OS", "Déjà vu – AÑOS", 3);
    assert_repaired("Bremer – DrÃ¥ber", "", 0); /* alone, as Mac OS Roman has it too */
    assert_repaired("– DrÃ¥ber fÃ¸r", "– Dråber før", 2);
    assert_repaired("DrÃ¥ber", "Dråber", 1);
    assert_repaired("ã†â€™ ã¢â‚¬â„¢", "", 0); /* parts are lost */
    assert_repaired("« Ã…rhus »", "« Århus »", 1);
    assert_repaired("« Ende.Â\u00a0 Dann 5Â\u00a0km »", "« Ende.\u00a0 Dann 5\u00a0km »", 2);
}

/* Letters with punctuation after them count where another sequence convinces. */
static void ambiguous_pairs_are_mended_beside_other_evidence(void **state)
{
    (void)state;
    assert_repaired("– KÃ–LN, fÃ¼r", "– KÖLN, für", 2);
    assert_repaired("« Â« CafÃ© Â» »", "« « Café » »", 3);
    assert_repaired("« Â« Hotel Â» »", "", 0);
    assert_repaired("word Â\u00a0 word", "word \u00a0 word", 1);
    assert_repaired("MISUTÂ\u00a0AJIKKO", "", 0);
}

static void controls_of_windows_1252_become_its_characters(void **state)
{
    (void)state;
    assert_repaired("\xc2\x93"
                    "quote\xc2\x94"
                    " and don\xc2\x92"
                    "t\xc2\x85",
                    "“quote” and don’t…", 4);
    assert_repaired("\xc2\x80"
                    " 5 \xc2\x96"
                    " caf\u00e9 \xc2\x9c",
                    "€ 5 – café œ", 3);
    assert_repaired("\xc2\x81"
                    " \xc2\x8d"
                    " \xc2\x9d",
                    " ", 0); /* it has nothing there */
    assert_repaired("\u00e2\xc2\x80"
                    "\xc2\x99"
                    " \xc2\x93",
                    "’ “", 2);
}

static void what_may_be_meant_stays(void **state)
{
    (void)state;
    assert_repaired("Caf\xc3\xa9 \xe2\x80\x9cna\xc3\xafve\xe2\x80\x9d", " ", 0);
    assert_repaired("IRM\xc3\x83\xc2\xbb", " ", 0); /* a capital before it */
    assert_repaired("CAF\xc3\x89\xc2\xbb", " ", 0); /* U+00C9 and a quotation mark */
    assert_repaired("\xd0\x9f\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82", " ", 0);
    assert_repaired("\xc3\x83", " ", 0);
    assert_repaired(" ", " ", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(double_encodings_are_undone),
        cmocka_unit_test(what_may_be_meant_stays),
        cmocka_unit_test(correct_text_stays),
        cmocka_unit_test(every_encoding_is_undone_once_and_twice),
        cmocka_unit_test(lost_bytes_are_marked_or_restored),
        cmocka_unit_test(mangled_text_is_mended_wherever_its_letters_are),
        cmocka_unit_test(sequences_beside_correct_text_are_mended),
        cmocka_unit_test(ambiguous_pairs_are_mended_beside_other_evidence),
        cmocka_unit_test(controls_of_windows_1252_become_its_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
