/* SPDX-License-Identifier: MIT */
#include "extract/charset.h"

#include <errno.h>
#include <iconv.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "unicode/utf8.h"

#define EUC_JP      "EUC-JP-MS"
#define ISO_2022_JP "ISO-2022-JP"
#define HEAD        ((size_t)1 << 14) /* bytes that are searched for statements, */
#define DETECTED    ((size_t)1 << 18) /* and for the frequencies of bytes */

/* https://encoding.spec.whatwg.org/#names-and-labels. The decoder of gb18030 also decodes GBK, and
 * pages that state x-user-defined are decoded as windows-1252. */
static const struct dt_charset charsets[] = {
    {"UTF-8", "UTF-8", "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8"},
    {"windows-1252", "CP1252",
     "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 "
     "iso88591 iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252 "
     "x-user-defined"},
    {"windows-1251", "CP1251", "cp1251 windows-1251 x-cp1251"},
    {"GBK", "GB18030",
     "chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk"},
    {"Shift_JIS", "CP932", "csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis"},
    {"EUC-JP", EUC_JP, "cseucpkdfmtjapanese euc-jp x-euc-jp"},
    {"EUC-KR", "CP949",
     "cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 "
     "ksc_5601 windows-949"},
    {"ISO-8859-2", "ISO-8859-2",
     "csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2"},
    {"windows-1250", "CP1250", "cp1250 windows-1250 x-cp1250"},
    {"windows-1254", "CP1254",
     "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 "
     "latin5 windows-1254 x-cp1254"},
    {"windows-1256", "CP1256", "cp1256 windows-1256 x-cp1256"},
    {"Big5", "BIG5-HKSCS", "big5 big5-hkscs cn-big5 csbig5 x-x-big5"},
    {"ISO-8859-15", "ISO-8859-15", "csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9"},
    {"windows-1253", "CP1253", "cp1253 windows-1253 x-cp1253"},
    {"ISO-8859-7", "ISO-8859-7",
     "csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 iso8859-7 iso88597 "
     "iso_8859-7 iso_8859-7:1987 sun_eu_greek"},
    {"windows-1257", "CP1257", "cp1257 windows-1257 x-cp1257"},
    {"windows-1255", "CP1255", "cp1255 windows-1255 x-cp1255"},
    {"windows-1258", "CP1258", "cp1258 windows-1258 x-cp1258"},
    {"windows-874", "WINDOWS-874", "dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874"},
    {"KOI8-R", "KOI8-R", "cskoi8r koi koi8 koi8-r koi8_r"},
    {"KOI8-U", "KOI8-U", "koi8-ru koi8-u"},
    {"gb18030", "GB18030", "gb18030"},
    {"UTF-16LE", "UTF-16LE", "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le"},
    {"UTF-16BE", "UTF-16BE", "unicodefffe utf-16be"},
    {ISO_2022_JP, EUC_JP, "csiso2022jp iso-2022-jp"},
    {"IBM866", "IBM866", "866 cp866 csibm866 ibm866"},
    {"ISO-8859-3", "ISO-8859-3",
     "csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3"},
    {"ISO-8859-4", "ISO-8859-4",
     "csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4"},
    {"ISO-8859-5", "ISO-8859-5",
     "csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595 iso_8859-5 "
     "iso_8859-5:1988"},
    {"ISO-8859-6", "ISO-8859-6",
     "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6 iso-8859-6-e "
     "iso-8859-6-i iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987"},
    {"ISO-8859-8", "ISO-8859-8",
     "csiso88598e csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e iso-ir-138 iso8859-8 iso88598 "
     "iso_8859-8 iso_8859-8:1988 visual"},
    {"ISO-8859-8-I", "ISO-8859-8", "csiso88598i iso-8859-8-i logical"},
    {"ISO-8859-10", "ISO-8859-10",
     "csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6"},
    {"ISO-8859-13", "ISO-8859-13", "iso-8859-13 iso8859-13 iso885913"},
    {"ISO-8859-14", "ISO-8859-14", "iso-8859-14 iso8859-14 iso885914"},
    {"ISO-8859-16", "ISO-8859-16", "iso-8859-16"},
    {"macintosh", "MACINTOSH", "csmacintosh mac macintosh x-mac-roman"},
    {"x-mac-cyrillic", "MAC-CYRILLIC", "x-mac-cyrillic x-mac-ukrainian"},
    {"replacement", NULL,
     "csiso2022kr hz-gb-2312 iso-2022-cn iso-2022-cn-ext iso-2022-kr replacement"},
};

/* The usual encoding of pages in a language that state none: the standard's table of locales
 * (https://html.spec.whatwg.org, "determining the character encoding"). */
static const struct {
    const char *language, *label;
} usual[] = {
    {"ar", "windows-1256"}, {"az", "windows-1254"}, {"ba", "windows-1251"},  {"be", "windows-1251"},
    {"bg", "windows-1251"}, {"cs", "windows-1250"}, {"el", "iso-8859-7"},    {"et", "windows-1257"},
    {"fa", "windows-1256"}, {"he", "windows-1255"}, {"hr", "windows-1250"},  {"hu", "iso-8859-2"},
    {"ja", "shift_jis"},    {"kk", "windows-1251"}, {"ko", "euc-kr"},        {"ku", "windows-1254"},
    {"ky", "windows-1251"}, {"lt", "windows-1257"}, {"lv", "windows-1257"},  {"mk", "windows-1251"},
    {"pl", "iso-8859-2"},   {"ru", "windows-1251"}, {"sah", "windows-1251"}, {"sk", "windows-1250"},
    {"sl", "iso-8859-2"},   {"sr", "windows-1251"}, {"tg", "windows-1251"},  {"th", "windows-874"},
    {"tr", "windows-1254"}, {"tt", "windows-1251"}, {"uk", "windows-1251"},  {"vi", "windows-1258"},
    {"zh-hant", "big5"},    {"zh-hk", "big5"},      {"zh-tw", "big5"},       {"zh", "gb18030"},
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

const struct dt_charset *dt_charset_find(const char *label, size_t size)
{
    while (size > 0 && is_space(*label))
        label++, size--;
    while (size > 0 && is_space(label[size - 1]))
        size--;
    for (size_t i = 0; size > 0 && i < sizeof charsets / sizeof *charsets; i++)
        for (const char *l = charsets[i].labels, *end; *l; l = end + strspn(end, " ")) {
            end = l + strcspn(l, " ");
            if ((size_t)(end - l) == size && strncasecmp(l, label, size) == 0)
                return &charsets[i];
        }
    return NULL;
}

/* --- statements of a page --------------------------------------------------------------------- */

/* The part of text after "charset", "=" and a quote, up to its end. */
static const struct dt_charset *charset_in(const char *text, size_t size)
{
    for (size_t i = 0; i + 8 < size; i++) {
        if (strncasecmp(text + i, "charset", 7) != 0)
            continue;
        i += 7;
        while (i < size && is_space(text[i]))
            i++;
        if (i == size || text[i] != '=')
            continue;
        do
            i++;
        while (i < size && (is_space(text[i]) || text[i] == '"' || text[i] == '\''));
        size_t n = 0;
        while (i + n < size && !is_space(text[i + n]) && !strchr("\"';,>/", text[i + n]))
            n++;
        return dt_charset_find(text + i, n);
    }
    return NULL;
}

/* The value of an attribute of the tag that fills text: no other value may contain its name. */
static const char *attribute_in(const char *text, size_t size, const char *name, size_t *value_size)
{
    size_t n = strlen(name);
    for (size_t i = 1; i + n + 1 < size; i++) {
        if (!is_space(text[i - 1]) || strncasecmp(text + i, name, n) != 0 || text[i + n] != '=')
            continue;
        const char *value = text + i + n + 1, *end = text + size;
        char quote = *value == '"' || *value == '\'' ? *value++ : '\0';
        for (*value_size = 0; value + *value_size < end; ++*value_size) {
            char c = value[*value_size];
            if (quote ? c == quote : is_space(c) || c == '>')
                break;
        }
        return value;
    }
    return NULL;
}

static bool begins_tag(const char *text, size_t left, const char *name)
{
    size_t n = strlen(name);
    return left > n && strncasecmp(text, name, n) == 0 && (is_space(text[n]) || text[n] == '/');
}

/* The end of the tag or comment at text. */
static const char *end_of(const char *text, const char *end)
{
    size_t left = (size_t)(end - text);
    if (left > 4 && memcmp(text, "<!--", 4) == 0) {
        const char *close = memmem(text + 4, left - 4, "-->", 3);
        return close ? close + 3 : end;
    }
    const char *close = memchr(text, '>', left);
    return close ? close : end;
}

/* Of the declaration of XML at the start of the page, which XHTML has. */
static const struct dt_charset *declared(const char *page, const char *end)
{
    size_t left = (size_t)(end - page), size;
    if (!begins_tag(page, left, "<?xml"))
        return NULL;
    const char *name = attribute_in(page, (size_t)(end_of(page, end) - page), "encoding", &size);
    return name ? dt_charset_find(name, size) : NULL;
}

struct dt_charset_clues dt_charset_clues(const char *page, size_t size, const char *content_type,
                                         size_t content_type_size)
{
    struct dt_charset_clues clues = {0};
    const char *end = page + (size < HEAD ? size : HEAD), *next;
    if (content_type)
        clues.header = charset_in(content_type, content_type_size);
    for (const char *p = page; p < end && (p = memchr(p, '<', (size_t)(end - p))); p = next) {
        next = end_of(p, end);
        size_t tag = (size_t)(next - p);
        if (begins_tag(p, tag, "<html"))
            clues.language = attribute_in(p, tag, "lang", &clues.language_size);
        else if (clues.meta == NULL && begins_tag(p, tag, "<meta"))
            clues.meta = charset_in(p, tag);
        else if (tag >= 5 && strncasecmp(p, "<body", 5) == 0)
            break;
    }
    clues.meta = clues.meta ? clues.meta : declared(page, end);
    return clues;
}

/* --- detection -------------------------------------------------------------------------------- */

/* Valid, beyond ASCII but for a character that the end of the page cuts. */
static bool is_utf8(const char *page, size_t size)
{
    size_t valid = dt_utf8_valid_prefix(page, size);
    bool cut = size - valid < 4 && (page[valid] & 0xc0) == 0xc0;
    return valid == size || (cut && dt_utf8_ascii_prefix(page, valid) < valid);
}

/* Less than 1 % of the bytes are wrong, and they are fewer than the characters beyond ASCII. */
static bool is_nearly_utf8(const char *page, size_t size)
{
    size_t wrong = 0, beyond_ascii = 0;
    for (size_t i = 0, n; i < size; i += n) {
        uint32_t code;
        n = dt_utf8_next(page + i, size - i, &code);
        wrong += n == 0;
        beyond_ascii += n > 1;
        n += n == 0;
    }
    return 100 * wrong < size && wrong < beyond_ascii;
}

static const struct dt_charset *utf8(void)
{
    return &charsets[0];
}

static const struct dt_charset *by_mark(const char *page, size_t size)
{
    if (size >= 3 && memcmp(page, "\xef\xbb\xbf", 3) == 0)
        return utf8();
    if (size >= 2 && memcmp(page, "\xff\xfe", 2) == 0)
        return dt_charset_find("utf-16le", 8);
    if (size >= 2 && memcmp(page, "\xfe\xff", 2) == 0)
        return dt_charset_find("utf-16be", 8);
    return NULL;
}

/* The usual encoding of a language; NULL for those of windows-1252, and for none. */
static const struct dt_charset *by_language(const struct dt_charset_clues *clues)
{
    for (size_t i = 0; clues->language && i < sizeof usual / sizeof *usual; i++) {
        size_t n = strlen(usual[i].language);
        if (clues->language_size >= n && strncasecmp(clues->language, usual[i].language, n) == 0 &&
            (clues->language_size == n || strchr("-_", clues->language[n])))
            return dt_charset_find(usual[i].label, strlen(usual[i].label));
    }
    return NULL;
}

/* Of these the detector is sure; its other answers are mostly windows-1252 with few accents. */
static bool is_detectable(const struct dt_charset *charset)
{
    static const char more[] = "euc-jp gb18030 iso-8859-5 iso-8859-6 koi8-r ibm866 iso-2022-jp";
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (dt_charset_find(usual[i].label, strlen(usual[i].label)) == charset)
            return true;
    for (const char *p = more, *end; *p; p = end + strspn(end, " ")) {
        end = p + strcspn(p, " ");
        if (dt_charset_find(p, (size_t)(end - p)) == charset)
            return true;
    }
    return false;
}

/* By the frequencies of bytes outside tags; NULL if they decide nothing. */
static const struct dt_charset *by_frequencies(const struct dt_charset_detector *detector,
                                               const char *page, size_t size)
{
    char name[DT_CHARSET_DETECTOR_NAME];
    void *state = detector->start();
    const char *stop = page + (size < DETECTED ? size : DETECTED);
    for (const char *p = page, *end; p < stop; p = end) {
        end = memchr(p, '<', (size_t)(stop - p));
        end = end ? end : stop;
        detector->add(state, p, (size_t)(end - p));
        if (end < stop)
            end = end_of(end, stop);
    }
    detector->finish(state, name);
    /* as iconv calls what the standard calls EUC-KR */
    const char *label = strcmp(name, "UHC") == 0 ? "euc-kr" : name;
    const struct dt_charset *charset = dt_charset_find(label, strlen(label));
    return charset && is_detectable(charset) ? charset : NULL;
}

/* Of a page that states no encoding, and is not UTF-8. */
static const struct dt_charset *guess(const char *page, size_t size,
                                      const struct dt_charset_clues *clues)
{
    const struct dt_charset *usual_one = by_language(clues), *found = NULL;
    if (clues->detector && (usual_one || clues->language == NULL))
        found = by_frequencies(clues->detector, page, size);
    found = found ? found : usual_one;
    return found ? found : dt_charset_find("windows-1252", 12);
}

const struct dt_charset *dt_charset_detect(const char *page, size_t size,
                                           const struct dt_charset_clues *clues)
{
    const struct dt_charset *mark = by_mark(page, size);
    if (mark)
        return mark;
    bool valid = is_utf8(page, size), nearly = valid;
    bool ascii = dt_utf8_ascii_prefix(page, size) == size;
    const struct dt_charset *stated[] = {clues->header, clues->meta};
    for (int i = 0; i < 2; i++) {
        /* a meta element that could be read is in no encoding of 16 bits */
        if (i == 1 && stated[i] && strncmp(stated[i]->name, "UTF-16", 6) == 0)
            stated[i] = utf8();
        if (stated[i] == utf8() && !valid)
            nearly = is_nearly_utf8(page, size);
        if (stated[i] && (stated[i] == utf8() ? nearly : !valid || ascii))
            return stated[i];
    }
    return valid ? utf8() : guess(page, size, clues);
}

/* --- decoding --------------------------------------------------------------------------------- */

static int64_t decode_utf8(const char *page, size_t size, struct dt_buffer *text)
{
    if (dt_utf8_valid_prefix(page, size) < size)
        return (int64_t)dt_utf8_repair(page, size, text);
    dt_buffer_append(text, page, size);
    return 0;
}

/* Where glibc differs from the standard: bytes that it does not decode (theirs is 0), and
 * characters that it takes for others. Of Big5 those of Taiwan, for which glibc has no encoding
 * with the characters of Hong Kong. */
static const struct difference {
    const char *iconv, *bytes;
    uint16_t theirs, ours;
} differences[] = {
    {"GB18030", "\x80", 0, 0x20ac},        {"GB18030", "", 0xe5e5, 0x3000},
    {"BIG5-HKSCS", "\xa1\x5a", 0, 0x2574}, {"BIG5-HKSCS", "\xa1\xc3", 0, 0xffe3},
    {"BIG5-HKSCS", "\xa1\xc5", 0, 0x02cd}, {"BIG5-HKSCS", "\xa1\xfe", 0, 0xff0f},
    {"BIG5-HKSCS", "\xa2\x40", 0, 0xff3c}, {"BIG5-HKSCS", "\xa2\xcc", 0, 0x5341},
    {"BIG5-HKSCS", "\xa2\xce", 0, 0x5345}, {"BIG5-HKSCS", "\xa3\xe1", 0, 0x20ac},
    {"BIG5-HKSCS", "", 0x2022, 0x2027},    {"BIG5-HKSCS", "", 0xff64, 0xfe51},
    {"BIG5-HKSCS", "", 0x203e, 0x00af},    {"BIG5-HKSCS", "", 0x223c, 0xff5e},
    {"BIG5-HKSCS", "", 0x2641, 0x2295},    {"BIG5-HKSCS", "", 0x2609, 0x2299},
    {"BIG5-HKSCS", "", 0xff0f, 0x2215},    {"BIG5-HKSCS", "", 0xff3c, 0xfe68},
    {"BIG5-HKSCS", "", 0x00a5, 0xffe5},    {"BIG5-HKSCS", "", 0x00a2, 0xffe0},
    {"BIG5-HKSCS", "", 0x00a3, 0xffe1},    {"KOI8-U", "", 0x255d, 0x045e},
    {"KOI8-U", "", 0x256c, 0x040e},        {"MACINTOSH", "", 0x0394, 0x2206},
    {"MACINTOSH", "", 0xe01e, 0xf8ff},     {"MAC-CYRILLIC", "", 0x00a4, 0x20ac},
};
#define DIFFERENCES (sizeof differences / sizeof *differences)

/* Rows 89 to 92 of EUC-JP, which browsers read as NEC's selection of IBM's characters, are private
 * ones for glibc; in Shift_JIS it knows them. */
#define NEC_FIRST 0xe178
#define NEC_LAST  0xe2ef

static uint32_t of_nec(uint32_t code)
{
    uint32_t row = (code - NEC_FIRST) / 94, cell = (code - NEC_FIRST) % 94;
    uint32_t trail = row % 2 ? 0x9f + cell : 0x40 + cell + (cell >= 63);
    char bytes[2] = {(char)(0xed + row / 2), (char)trail}, text[8] = "", *from = bytes, *to = text;
    size_t size = sizeof bytes, room = sizeof text;
    iconv_t cd = iconv_open("UTF-8", "CP932");
    if (cd == (iconv_t)-1)
        return code;
    bool known = iconv(cd, &from, &size, &to, &room) == 0;
    iconv_close(cd);
    return known ? dt_utf8_decode(text) : 0xfffd;
}

static bool differs(const char *name)
{
    if (strcmp(name, EUC_JP) == 0)
        return true;
    for (size_t i = 0; i < DIFFERENCES; i++)
        if (differences[i].theirs && strcmp(differences[i].iconv, name) == 0)
            return true;
    return false;
}

static uint32_t as_standard(const char *name, uint32_t code)
{
    if (code < 0x80)
        return code;
    if (code >= NEC_FIRST && code <= NEC_LAST && strcmp(name, EUC_JP) == 0)
        return of_nec(code);
    for (size_t i = 0; i < DIFFERENCES; i++)
        if (differences[i].theirs == code && strcmp(differences[i].iconv, name) == 0)
            return differences[i].ours;
    return code;
}

/* Replaces characters of the text from a place on by those of the standard. */
static void correct(const char *name, size_t from, struct dt_buffer *text)
{
    struct dt_buffer part = DT_BUFFER_EMPTY;
    char bytes[4];
    dt_buffer_append(&part, text->data + from, text->size - from);
    text->size = from;
    for (size_t i = 0; i < part.size; i += dt_utf8_length(part.data[i])) {
        uint32_t code = as_standard(name, dt_utf8_decode(part.data + i));
        dt_buffer_append(text, bytes, dt_utf8_encode(code, bytes));
    }
    dt_buffer_release(&part);
}

/* What iconv cannot decode at *from: a character that it does not have, a byte, or half of a
 * surrogate pair, or an incomplete character at the end. Returns 1 if U+FFFD is put in its place.
 */
static int replace(const char *name, int reason, const char **from, size_t *left,
                   struct dt_buffer *text)
{
    size_t unit = strncmp(name, "UTF-16", 6) == 0 ? 2 : 1;
    size_t skip = reason == EINVAL || *left < unit ? *left : unit;
    uint32_t code = 0xfffd;
    char bytes[4];
    for (size_t i = 0; reason == EILSEQ && i < DIFFERENCES; i++) {
        const struct difference *d = &differences[i];
        size_t n = strlen(d->bytes);
        if (n == 0 || n > *left || memcmp(*from, d->bytes, n) != 0 || strcmp(d->iconv, name) != 0)
            continue;
        skip = n;
        code = d->ours;
    }
    dt_buffer_append(text, bytes, dt_utf8_encode(code, bytes));
    *from += skip;
    *left -= skip;
    return code == 0xfffd;
}

/* The letter that iconv keeps until it knows whether a mark follows it, as in Vietnamese. */
static void take_last(iconv_t cd, struct dt_buffer *text)
{
    dt_buffer_reserve(text, text->size + 16);
    char *to = text->data + text->size;
    size_t room = text->capacity - text->size - 1;
    (void)iconv(cd, NULL, NULL, &to, &room);
    text->size = (size_t)(to - text->data);
}

/* name: of the encoding. */
static int64_t decode_by_iconv(iconv_t cd, const char *name, const char *page, size_t size,
                               struct dt_buffer *text)
{
    bool corrected = differs(name);
    int64_t replaced = 0;
    while (size > 0) {
        dt_buffer_reserve(text, text->size + size + size / 2 + 16);
        char *to = text->data + text->size, *from = (char *)page;
        size_t room = text->capacity - text->size - 1, before = text->size;
        size_t rc = iconv(cd, &from, &size, &to, &room);
        const int reason = rc == (size_t)-1 ? errno : 0;
        text->size = (size_t)(to - text->data);
        page = from;
        if ((reason && reason != E2BIG) || size == 0)
            take_last(cd, text);
        if (corrected)
            correct(name, before, text);
        if (reason && reason != E2BIG)
            replaced += replace(name, reason, &page, &size, text);
    }
    dt_buffer_append(text, "", 0);
    return replaced;
}

/* The state after the escape sequence at p; STATES if there is none. */
enum state { ASCII, ROMAN, KATAKANA, KANJI, STATES };

static enum state escape_at(const char *p, size_t left)
{
    static const struct {
        const char *text;
        enum state state;
    } escapes[] = {{"(B", ASCII}, {"(J", ROMAN}, {"(I", KATAKANA}, {"$B", KANJI}, {"$@", KANJI}};
    for (size_t i = 0; *p == '\x1b' && left >= 3 && i < sizeof escapes / sizeof *escapes; i++)
        if (memcmp(p + 1, escapes[i].text, 2) == 0)
            return escapes[i].state;
    return STATES;
}

/* Appends the next character of ISO-2022-JP as EUC-JP, 0xff if it is none; its bytes. */
static size_t add_euc(enum state state, const char *p, size_t left, struct dt_buffer *euc)
{
    bool graphic = *p > ' ' && *p < 0x7f;
    bool pair = left > 1 && p[1] > ' ' && p[1] < 0x7f;
    if (state == KATAKANA && graphic)
        dt_buffer_add_char(euc, '\x8e');
    if (state >= KATAKANA && graphic && (state == KATAKANA || pair))
        dt_buffer_add_char(euc, (char)(*p | 0x80));
    else
        dt_buffer_add_char(euc,
                           *p & 0x80 || *p == '\x1b' || (state == KANJI && graphic) ? '\xff' : *p);
    if (state == KANJI && graphic && pair)
        dt_buffer_add_char(euc, (char)(p[1] | 0x80));
    return state == KANJI && graphic && pair ? 2 : 1;
}

/* Through EUC-JP, for which glibc has the characters of NEC and IBM, too. */
static int64_t decode_iso_2022_jp(iconv_t cd, const char *page, size_t size, struct dt_buffer *text)
{
    struct dt_buffer euc = DT_BUFFER_EMPTY;
    enum state state = ASCII, next;
    int64_t replaced = 0;
    for (size_t i = 0; i < size;) {
        const char *p = page + i;
        next = escape_at(p, size - i);
        if (next != STATES) {
            state = next;
            i += 3;
        } else if (state == ROMAN && (*p == '\\' || *p == '~')) {
            replaced += decode_by_iconv(cd, EUC_JP, euc.data, euc.size, text);
            dt_buffer_clear(&euc);
            dt_buffer_add_string(text, *p == '~' ? "\u203e" : "\u00a5");
            i++;
        } else {
            i += add_euc(state, p, size - i, &euc);
        }
    }
    replaced += decode_by_iconv(cd, EUC_JP, euc.data, euc.size, text);
    dt_buffer_release(&euc);
    return replaced;
}

int64_t dt_charset_decode(const struct dt_charset *charset, const char *page, size_t size,
                          struct dt_buffer *text)
{
    const struct dt_charset *mark = by_mark(page, size);
    size_t skip = mark && mark == charset ? (mark == utf8() ? 3 : 2) : 0;
    dt_buffer_clear(text);
    page += skip;
    size -= skip;
    if (charset == utf8())
        return decode_utf8(page, size, text);
    if (charset->iconv == NULL)
        return -1;
    iconv_t cd = iconv_open("UTF-8", charset->iconv);
    if (cd == (iconv_t)-1 && errno == ENOMEM)
        dt_out_of_memory();
    if (cd == (iconv_t)-1)
        return -1;
    int64_t replaced = strcmp(charset->name, ISO_2022_JP) == 0
                           ? decode_iso_2022_jp(cd, page, size, text)
                           : decode_by_iconv(cd, charset->iconv, page, size, text);
    iconv_close(cd);
    return replaced;
}
