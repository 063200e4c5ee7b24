/* SPDX-License-Identifier: MIT */
/* Where spaCy 3.8 splits words of other languages than English differently; measured by its
 * tokenizers, spacy.blank(LANGUAGE). A language that is not here has no traits, as spaCy's "xx".
 * For Chinese, Japanese and Vietnamese datatrove has dictionaries (jieba, SudachiPy, pyvi), which
 * split at every mark, in words of other scripts, too. */
#include <string.h>

#include "clean/words.h"

#define NORDIC                                                                                     \
    (DT_WORD_TRAIT_HYPHEN | DT_WORD_TRAIT_DASH | DT_WORD_TRAIT_QUOTE | DT_WORD_TRAIT_NO_S |        \
     DT_WORD_TRAIT_NO_OPERATOR)

static const struct {
    char code[4];
    unsigned traits;
} languages[] = {
    {"ar", DT_WORD_TRAIT_FEW_STOPS | DT_WORD_TRAIT_NO_S},
    {"ca",
     DT_WORD_TRAIT_HYPHEN | DT_WORD_TRAIT_DASH | DT_WORD_TRAIT_ELISION | DT_WORD_TRAIT_NO_PERCENT},
    {"da", DT_WORD_TRAIT_NO_RANGE | NORDIC | DT_WORD_TRAIT_ORDINAL},
    {"de", NORDIC | DT_WORD_TRAIT_ORDINAL | DT_WORD_TRAIT_LAST_SLASH},
    {"el",
     DT_WORD_TRAIT_HYPHEN | DT_WORD_TRAIT_ORDINAL | DT_WORD_TRAIT_NO_S | DT_WORD_TRAIT_NO_PERCENT},
    {"es",
     DT_WORD_TRAIT_HYPHEN | DT_WORD_TRAIT_DASH | DT_WORD_TRAIT_NO_S | DT_WORD_TRAIT_NO_PERCENT},
    {"fa", DT_WORD_TRAIT_FEW_STOPS | DT_WORD_TRAIT_NO_S},
    {"fi", DT_WORD_TRAIT_NO_RANGE | DT_WORD_TRAIT_HYPHEN | DT_WORD_TRAIT_QUOTE |
               DT_WORD_TRAIT_NO_S | DT_WORD_TRAIT_NO_OPERATOR | DT_WORD_TRAIT_NO_COLON},
    {"fr", DT_WORD_TRAIT_ELISION | DT_WORD_TRAIT_NO_S},
    {"hu", DT_WORD_TRAIT_NO_RANGE | NORDIC | DT_WORD_TRAIT_ORDINAL | DT_WORD_TRAIT_NO_SLASH |
               DT_WORD_TRAIT_NO_PERCENT},
    {"id", DT_WORD_TRAIT_DIGIT_HYPHEN},
    {"it", DT_WORD_TRAIT_ELISION},
    {"ja", DT_WORD_TRAIT_MARKS},
    {"nb", DT_WORD_TRAIT_NO_RANGE | NORDIC | DT_WORD_TRAIT_ORDINAL},
    {"nl", DT_WORD_TRAIT_NO_RANGE | NORDIC | DT_WORD_TRAIT_NO_SLASH | DT_WORD_TRAIT_NO_PERCENT},
    {"no", DT_WORD_TRAIT_NO_RANGE | NORDIC | DT_WORD_TRAIT_ORDINAL},
    {"pl", DT_WORD_TRAIT_DIGIT_HYPHEN | DT_WORD_TRAIT_QUOTE | DT_WORD_TRAIT_NO_S |
               DT_WORD_TRAIT_NO_OPERATOR},
    {"pt", DT_WORD_TRAIT_NO_RANGE | DT_WORD_TRAIT_HYPHEN},
    {"ro", DT_WORD_TRAIT_NO_RANGE | DT_WORD_TRAIT_HYPHEN | DT_WORD_TRAIT_DASH | DT_WORD_TRAIT_NO_S |
               DT_WORD_TRAIT_NO_SLASH | DT_WORD_TRAIT_NO_PERCENT},
    {"sv", DT_WORD_TRAIT_NO_RANGE | NORDIC | DT_WORD_TRAIT_NO_COLON},
    {"tr", DT_WORD_TRAIT_ORDINAL},
    {"vi", DT_WORD_TRAIT_MARKS},
    {"zh", DT_WORD_TRAIT_MARKS},
};

/* Codes of ISO 639-3 whose first two letters are not those of ISO 639-1. */
static const struct {
    char three[4], two[4];
} others[] = {{"deu", "de"}, {"ell", "el"}, {"spa", "es"}, {"fas", "fa"}, {"pes", "fa"},
              {"ind", "id"}, {"nob", "nb"}, {"nld", "nl"}, {"pol", "pl"}, {"por", "pt"},
              {"ron", "ro"}, {"swe", "sv"}, {"tur", "tr"}, {"dan", "da"}, {"fin", "fi"},
              {"fra", "fr"}, {"hun", "hu"}, {"ita", "it"}, {"cat", "ca"}, {"nor", "no"},
              {"eng", "en"}, {"ara", "ar"}, {"arb", "ar"}, {"jpn", "ja"}, {"vie", "vi"},
              {"zho", "zh"}, {"cmn", "zh"}};

unsigned dt_words_traits(const char *language)
{
    size_t size = strcspn(language, "_-");
    for (size_t i = 0; size == 3 && i < sizeof others / sizeof *others; i++)
        if (strncmp(others[i].three, language, 3) == 0)
            return dt_words_traits(others[i].two);
    if (size == 0 || (size == 2 && strncmp(language, "en", 2) == 0))
        return DT_WORD_TRAITS_ENGLISH;
    for (size_t i = 0; size == 2 && i < sizeof languages / sizeof *languages; i++)
        if (strncmp(languages[i].code, language, 2) == 0)
            return languages[i].traits;
    return 0;
}
