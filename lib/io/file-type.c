/* SPDX-License-Identifier: MIT */
#include "io/file-type.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/printable.h"

/* Matches if the bytes at the offset equal the magic, if given, and the test passes, if given. */
struct row {
    struct dt_file_type what;
    size_t offset;
    const char *magic;
    size_t magic_size;
    bool (*test)(const char *head, size_t size);
};

#define MAGIC(bytes)      0, bytes, sizeof bytes - 1
#define AT(offset, bytes) offset, bytes, sizeof bytes - 1
#define ANY               0, NULL, 0

static bool has(const char *head, size_t size, size_t offset, const char *bytes, size_t count)
{
    return size >= offset + count && memcmp(head + offset, bytes, count) == 0;
}

#define HAS(offset, bytes) has(head, size, offset, bytes, sizeof bytes - 1)

static uint64_t little_endian(const char *p, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--)
        value = value << 8 | (unsigned char)p[i];
    return value;
}

/* --- binary files ----------------------------------------------------------------------------- */

/* For magics that text could also begin with. */
static bool has_zero(const char *head, size_t size)
{
    return memchr(head, 0, size) != NULL;
}

static bool is_token_stream(const char *head, size_t size)
{
    return HAS(0, "\x50\x2a\x4d\x18");
}

static bool is_skippable_frame(const char *head, size_t size)
{
    return size >= 4 && ((unsigned char)head[0] & 0xf0) == 0x50;
}

static bool is_bzip2(const char *head, size_t size)
{
    return HAS(4, "1AY&SY") || HAS(4, "\x17\x72\x45\x38\x50\x90");
}

/* The header's checksum is the sum of its bytes, itself taken for spaces (POSIX, pax). */
static bool is_tar(const char *head, size_t size)
{
    enum { HEADER = 512, PLACE = 148, WIDTH = 8 };
    unsigned sum = 0, noted = 0;
    if (size < HEADER || head[0] == '\0')
        return false;
    for (int i = 0; i < HEADER; i++)
        sum += i >= PLACE && i < PLACE + WIDTH ? ' ' : (unsigned char)head[i];
    for (int i = PLACE; i < PLACE + WIDTH; i++)
        if (head[i] >= '0' && head[i] <= '7')
            noted = noted * 8 + (unsigned)(head[i] - '0');
        else if (head[i] != ' ' && head[i] != '\0')
            return false;
    return sum == noted;
}

/* The first entry of a zip file has a name that shows what the archive is for. */
static bool first_entry_ends(const char *head, size_t size, const char *ending)
{
    if (size < 30)
        return false;
    size_t length = little_endian(head + 26, 2), n = strlen(ending);
    return length >= n && size >= 30 + length && memcmp(head + 30 + length - n, ending, n) == 0;
}

static bool is_office(const char *head, size_t size)
{
    return first_entry_ends(head, size, "[Content_Types].xml") ||
           first_entry_ends(head, size, "_rels/.rels");
}

static bool is_book(const char *head, size_t size)
{
    return first_entry_ends(head, size, "mimetype");
}

static bool is_npz(const char *head, size_t size)
{
    return first_entry_ends(head, size, ".npy");
}

static bool is_torch(const char *head, size_t size)
{
    return first_entry_ends(head, size, "/data.pkl") ||
           first_entry_ends(head, size, "/.format_version");
}

static bool is_pickle(const char *head, size_t size)
{
    return size >= 2 && head[1] >= 2 && head[1] <= 5;
}

/* The length of a header in JSON, then the header. */
static bool is_safetensors(const char *head, size_t size)
{
    return size >= 10 && little_endian(head, 8) < (uint64_t)1 << 32 && head[8] == '{' &&
           (head[9] == '"' || head[9] == '}' || isspace((unsigned char)head[9]));
}

/* A length, its checksum, and a protocol buffer whose first member has number 1. */
static bool is_tfrecord(const char *head, size_t size)
{
    return size >= 16 && little_endian(head, 8) > 0 && little_endian(head, 8) < (uint64_t)1 << 31 &&
           (head[12] == 0x0a || head[12] == 0x09);
}

/* --- other encodings -------------------------------------------------------------------------- */

static bool is_text_byte(unsigned char c)
{
    return c >= 0x20 ? c != 0x7f : (c >= '\b' && c <= '\r') || c == 0x1b;
}

/* Units of `size` bytes, many of which have an ASCII byte at that offset and zeros elsewhere. */
static bool is_wide(const char *head, size_t size, size_t unit, size_t place)
{
    size_t units = size / unit, ascii = 0, zero = 0;
    for (size_t i = 0; i < units; i++) {
        unsigned char c = (unsigned char)head[i * unit + place];
        size_t zeros = 0;
        for (size_t k = 0; k < unit; k++)
            zeros += k != place && head[i * unit + k] == 0;
        ascii += zeros == unit - 1 && c < 0x80 && is_text_byte(c);
        zero += c == 0;
    }
    return units >= 4 && 10 * ascii >= 3 * units && 50 * zero <= units;
}

static bool is_utf16le(const char *head, size_t size)
{
    return is_wide(head, size, 2, 0);
}

static bool is_utf16be(const char *head, size_t size)
{
    return is_wide(head, size, 2, 1);
}

static bool is_utf32le(const char *head, size_t size)
{
    return is_wide(head, size, 4, 0);
}

static bool is_utf32be(const char *head, size_t size)
{
    return is_wide(head, size, 4, 3);
}

/* A quarter of the bytes are neither UTF-8 nor a control character found in text. */
static bool is_not_utf8(const char *head, size_t size)
{
    char spelling[DT_SPELLING];
    size_t wrong = 0;
    size -= dt_printable_unfinished(head, size);
    for (size_t i = 0, n; i < size; i += n) {
        n = dt_printable_next(head + i, size - i, spelling);
        unsigned char c = (unsigned char)head[i];
        wrong += spelling[0] && spelling[1] == 'x' && (c >= 0x7f || !is_text_byte(c));
    }
    return wrong >= 8 && 4 * wrong >= size;
}

/* --- text of another structure ---------------------------------------------------------------- */

static size_t skip_space(const char *head, size_t size, size_t i)
{
    while (i < size && (head[i] == ' ' || head[i] == '\t' || head[i] == '\r' || head[i] == '\n'))
        i++;
    return i;
}

/* Past the byte order mark of UTF-8 and white space. */
static size_t first_character(const char *head, size_t size)
{
    return skip_space(head, size, HAS(0, "\xef\xbb\xbf") ? 3 : 0);
}

/* Also after empty lines. */
static bool is_warc(const char *head, size_t size)
{
    size_t i = 0;
    while (i < size && (head[i] == '\r' || head[i] == '\n'))
        i++;
    return HAS(i, "WARC/");
}

/* Whether a JSON object begins at i; *lines: whether a line end follows its brace. Looks at the
 * start only, so that a damaged first line is an error, not text. */
static bool begins_object(const char *head, size_t size, size_t i, bool *lines)
{
    if (i >= size || head[i] != '{')
        return false;
    size_t next = skip_space(head, size, i + 1);
    *lines = memchr(head + i, '\n', next - i) != NULL;
    return next < size && (head[next] == '"' || head[next] == '}');
}

static bool is_jsonl(const char *head, size_t size)
{
    bool lines;
    return begins_object(head, size, first_character(head, size), &lines) && !lines;
}

static bool is_pretty_json(const char *head, size_t size)
{
    bool lines;
    return begins_object(head, size, first_character(head, size), &lines) && lines;
}

/* The number of a document, 16 hexadecimal digits and NAME:NUMBER, as of clean/drop-list.h. */
static bool is_drop_list(const char *head, size_t size)
{
    const char *end = memchr(head, '\n', size);
    size_t i = 0, hash, last = end ? (size_t)(end - head) : 0, digits = 0;
    while (i < last && isdigit((unsigned char)head[i]))
        i++;
    if (i == 0 || i == last || head[i++] != ' ')
        return false;
    for (hash = i; i < last && isxdigit((unsigned char)head[i]);)
        i++;
    if (i != hash + 16 || i == last || head[i] != ' ')
        return false;
    while (digits < last && isdigit((unsigned char)head[last - 1 - digits]))
        digits++;
    return digits > 0 && head[last - 1 - digits] == ':';
}

/* Of objects or of strings; a text may begin with "[1]" or with "[[". */
static bool is_json_array(const char *head, size_t size)
{
    bool lines;
    size_t i = first_character(head, size);
    if (i >= size || head[i] != '[')
        return false;
    i = skip_space(head, size, i + 1);
    if (begins_object(head, size, i, &lines))
        return true;
    if (i >= size || head[i] != '"')
        return false;
    for (i++; i < size && head[i] != '"'; i++)
        i += head[i] == '\\';
    i = skip_space(head, size, i + 1);
    return i >= size || head[i] == ',' || head[i] == ']';
}

/* Whether a column name is usual in tables of text. */
static bool is_column(const char *name, size_t size)
{
    static const char *const names[] = {"text", "content", "document", "sentence", "id",
                                        "url",  "label",   "title",    "body"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == size && strncasecmp(name, names[i], size) == 0)
            return true;
    return false;
}

/* The first line consists of column names, one of them known. */
static bool has_columns(const char *head, size_t size, char separator)
{
    size_t i = HAS(0, "\xef\xbb\xbf") ? 3 : 0, columns = 0, known = 0;
    while (i < size) {
        bool quoted = head[i] == '"';
        size_t start = i += quoted;
        while (i < size && (isalnum((unsigned char)head[i]) || head[i] == '_'))
            i++;
        known += is_column(head + start, i - start);
        columns++;
        if (i == start || (quoted && (i == size || head[i++] != '"')) || i == size)
            return false;
        if (head[i] != separator)
            break;
        i++;
    }
    i += i < size && head[i] == '\r';
    return i < size && head[i] == '\n' && columns >= 2 && known > 0;
}

static bool is_csv(const char *head, size_t size)
{
    return has_columns(head, size, ',') || has_columns(head, size, ';');
}

static bool is_tsv(const char *head, size_t size)
{
    return has_columns(head, size, '\t');
}

/* --- the table -------------------------------------------------------------------------------- */

#define DECOMPRESS(command) "decompress it", command
#define DUCKDB(function)                                                                           \
    "write it as JSON Lines: duckdb -c \"copy (from " function                                     \
    "('FILE')) to 'FILE.jsonl' (format json)\""
#define PYTHON       "write its texts as JSON Lines with Python"
#define NO_TEXT      "it holds no documents"
#define TO_TEXT      "write it as text first"
#define ICONV(set)   "write it as UTF-8", "iconv -f " set " -t UTF-8"
#define JQ(filter)   "write an object a line", "jq -c " filter
#define OBJECT       "if type == \"object\" then . else {text: .} end"
#define OF_OTHERS    " (of dt-clean, too)"
#define WITH(format) "programs that read documents, as dt-clean, read its rows", NULL
#define AS_JSON      "--from json" OF_OTHERS " reads its values, --from text any bytes", NULL, "json"
#define AS(format)   "--from " format OF_OTHERS " reads its columns, --from text any bytes", NULL

/* The first matching row wins. */
static const struct row rows[] = {
    /* what dt itself reads and writes */
    {{DT_FILE_BINARY, "a dt token stream", "dt-cat --text prints its text"},
     AT(8, "dtsH"),
     is_token_stream},
    {{DT_FILE_BINARY, "a signature file of dt-dedup", NO_TEXT}, MAGIC("dt-sigs\n")},
    {{DT_FILE_BINARY, "a file of pairs of dt-dedup", NO_TEXT}, MAGIC("dt-pairs")},
    {{DT_FILE_BINARY, "a filter of dt-dedup", NO_TEXT}, MAGIC("dt-bloom")},
    {{DT_FILE_BINARY, "a list of dt-dedup", "dt-clean --drop reads it"}, ANY, is_drop_list},
    {{DT_FILE_BINARY, "a file of counts of dt-vocab", "dt-vocab --counts reads it"},
     MAGIC("dt-counts 1 ")},
    {{DT_FILE_COMPRESSED, "gzip data", DECOMPRESS("gzip -dc"), "gzip"}, MAGIC("\x1f\x8b")},
    {{DT_FILE_COMPRESSED, "zstd data", DECOMPRESS("zstd -dc"), "zstd"}, MAGIC("\x28\xb5\x2f\xfd")},
    {{DT_FILE_COMPRESSED, "zstd data", DECOMPRESS("zstd -dc"), "zstd"},
     AT(1, "\x2a\x4d\x18"),
     is_skippable_frame},
    /* compressed files and archives */
    {{DT_FILE_COMPRESSED, "xz data", DECOMPRESS("xz -dc"), "xz"},
     MAGIC("\xfd"
           "7zXZ\0")},
    {{DT_FILE_COMPRESSED, "bzip2 data", DECOMPRESS("bzip2 -dc"), "bzip2"}, MAGIC("BZh"), is_bzip2},
    {{DT_FILE_COMPRESSED, "lz4 data", DECOMPRESS("lz4 -dc"), "lz4"}, MAGIC("\x04\x22\x4d\x18")},
    {{DT_FILE_BINARY, "an lz4 file of the legacy format", DECOMPRESS("lz4 -dc")},
     MAGIC("\x02\x21\x4c\x18")},
    {{DT_FILE_BINARY, "an lzip file", DECOMPRESS("lzip -dc")}, MAGIC("LZIP\1")},
    {{DT_FILE_BINARY, "an lzma file", DECOMPRESS("xz -dc")}, MAGIC("\x5d\0\0")},
    {{DT_FILE_BINARY, "an lzop file", DECOMPRESS("lzop -dc")}, MAGIC("\x89LZO\0")},
    {{DT_FILE_BINARY, "a file of compress", DECOMPRESS("gzip -dc")}, MAGIC("\x1f\x9d")},
    {{DT_FILE_BINARY, "snappy data", DECOMPRESS("snzip -dc")}, MAGIC("\xff\x06\0\0sNaPpY")},
    {{DT_FILE_BINARY, "a 7z archive", "unpack it: 7z x FILE"}, MAGIC("7z\xbc\xaf\x27\x1c")},
    {{DT_FILE_BINARY, "a RAR archive", "unpack it: unrar x FILE"}, MAGIC("Rar!\x1a\x07")},
    {{DT_FILE_BINARY, "an Office document", TO_TEXT}, MAGIC("PK\3\4"), is_office},
    {{DT_FILE_BINARY, "an EPUB or OpenDocument file", TO_TEXT}, MAGIC("PK\3\4"), is_book},
    {{DT_FILE_BINARY, "a NumPy archive (npz)", PYTHON}, MAGIC("PK\3\4"), is_npz},
    {{DT_FILE_BINARY, "a PyTorch file", NO_TEXT}, MAGIC("PK\3\4"), is_torch},
    {{DT_FILE_BINARY, "a zip archive", "unpack it: unzip FILE"}, MAGIC("PK\3\4")},
    {{DT_FILE_BINARY, "an empty zip archive", NO_TEXT}, MAGIC("PK\5\6")},
    {{DT_FILE_BINARY, "a part of a zip archive", "unpack the whole: unzip FILE"}, MAGIC("PK\7\x8")},
    {{DT_FILE_BINARY, "a tar archive", "unpack it: tar -xf FILE"}, ANY, is_tar},
    {{DT_FILE_BINARY, "an ar archive", "unpack it: ar x FILE"}, MAGIC("!<arch>\n")},
    /* tables */
    {{DT_FILE_BINARY, "a Parquet file", WITH("parquet"), "parquet"}, MAGIC("PAR1"), has_zero},
    {{DT_FILE_BINARY, "an encrypted Parquet file", PYTHON}, MAGIC("PARE"), has_zero},
    {{DT_FILE_BINARY, "an Arrow file", WITH("arrow"), "arrow"}, MAGIC("ARROW1\0")},
    {{DT_FILE_BINARY, "an Arrow stream", WITH("arrow"), "arrow"},
     MAGIC("\xff\xff\xff\xff"),
     has_zero},
    {{DT_FILE_BINARY, "a Feather file", PYTHON}, MAGIC("FEA1"), has_zero},
    {{DT_FILE_BINARY, "an ORC file", PYTHON}, MAGIC("ORC"), has_zero},
    {{DT_FILE_BINARY, "an Avro file", DUCKDB("read_avro")}, MAGIC("Obj\1")},
    {{DT_FILE_BINARY, "an HDF5 file", PYTHON}, MAGIC("\x89HDF\r\n\x1a\n")},
    {{DT_FILE_BINARY, "a NetCDF file", PYTHON}, MAGIC("CDF"), has_zero},
    {{DT_FILE_BINARY, "a SQLite database", "write its texts as JSON Lines with sqlite3 and jq"},
     MAGIC("SQLite format 3\0")},
    /* documents of other programs, pictures, sound */
    {{DT_FILE_BINARY, "a PDF file", "extract its text: pdftotext FILE"}, MAGIC("%PDF-")},
    {{DT_FILE_BINARY, "an old Office document", TO_TEXT},
     MAGIC("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")},
    {{DT_FILE_BINARY, "a DjVu file", "extract its text: djvutxt FILE"}, MAGIC("AT&TFORM")},
    {{DT_FILE_BINARY, "a PNG picture", NO_TEXT}, MAGIC("\x89PNG\r\n\x1a\n")},
    {{DT_FILE_BINARY, "a JPEG picture", NO_TEXT}, MAGIC("\xff\xd8\xff")},
    {{DT_FILE_BINARY, "a GIF picture", NO_TEXT}, MAGIC("GIF8"), has_zero},
    {{DT_FILE_BINARY, "a TIFF picture", NO_TEXT}, MAGIC("II*\0")},
    {{DT_FILE_BINARY, "a TIFF picture", NO_TEXT}, MAGIC("MM\0*")},
    {{DT_FILE_BINARY, "a WebP, WAV or AVI file", NO_TEXT}, MAGIC("RIFF"), has_zero},
    {{DT_FILE_BINARY, "an MP3 file", NO_TEXT}, MAGIC("ID3"), has_zero},
    {{DT_FILE_BINARY, "a FLAC file", NO_TEXT}, MAGIC("fLaC\0")},
    {{DT_FILE_BINARY, "an Ogg file", NO_TEXT}, MAGIC("OggS\0")},
    {{DT_FILE_BINARY, "an MP4 file", NO_TEXT}, AT(4, "ftyp"), has_zero},
    {{DT_FILE_BINARY, "a Matroska file", NO_TEXT}, MAGIC("\x1a\x45\xdf\xa3")},
    /* programs */
    {{DT_FILE_BINARY, "an ELF file", NO_TEXT},
     MAGIC("\x7f"
           "ELF")},
    {{DT_FILE_BINARY, "a Windows program", NO_TEXT}, MAGIC("MZ"), has_zero},
    {{DT_FILE_BINARY, "a Mach-O file", NO_TEXT}, MAGIC("\xcf\xfa\xed\xfe")},
    {{DT_FILE_BINARY, "a Java class or a Mach-O file", NO_TEXT}, MAGIC("\xca\xfe\xba\xbe")},
    {{DT_FILE_BINARY, "a WebAssembly file", NO_TEXT}, MAGIC("\0asm")},
    /* tensors, tokens and records */
    {{DT_FILE_BINARY, "a safetensors file", NO_TEXT}, ANY, is_safetensors},
    {{DT_FILE_BINARY, "a GGUF file", NO_TEXT}, MAGIC("GGUF"), has_zero},
    {{DT_FILE_BINARY, "a NumPy file (npy)", PYTHON}, MAGIC("\x93NUMPY")},
    {{DT_FILE_BINARY, "a Python pickle", PYTHON}, MAGIC("\x80"), is_pickle},
    {{DT_FILE_BINARY, "a token file of llm.c", "dt-cat --from llmc --as dts reads it"},
     MAGIC("\x88\xd8\x34\x01")},
    {{DT_FILE_BINARY, "a token file of llm.c", "dt-cat --from llmc --as dts reads it"},
     MAGIC("\xa1\xd9\x34\x01")},
    {{DT_FILE_BINARY, "an index of Megatron", "dt-cat --from megatron --as dts reads it"},
     MAGIC("MMIDIDX\0")},
    {{DT_FILE_BINARY, "a TFRecord file", PYTHON}, AT(4, "\0\0\0\0"), is_tfrecord},
    /* text in other encodings */
    {{DT_FILE_BINARY, "UTF-32 text", ICONV("UTF-32")}, MAGIC("\xff\xfe\0\0")},
    {{DT_FILE_BINARY, "UTF-32 text", ICONV("UTF-32")}, MAGIC("\0\0\xfe\xff")},
    {{DT_FILE_UTF16, "UTF-16 text", ICONV("UTF-16"), "utf-16le"}, MAGIC("\xff\xfe")},
    {{DT_FILE_UTF16, "UTF-16 text", ICONV("UTF-16"), "utf-16be"}, MAGIC("\xfe\xff")},
    /* text of another structure */
    {{DT_FILE_BINARY, "a pointer of Git LFS, not the file", "fetch the file: git lfs pull"},
     MAGIC("version https://git-lfs.github.com/spec/")},
    {{DT_FILE_BINARY, "an ARC file, the format before WARC",
      "convert it: warcio recompress FILE FILE.warc.gz"},
     MAGIC("filedesc://")},
    {{DT_FILE_AMBIGUOUS, "a WARC or WET file", "extract its texts", "dt-extract", .format = "warc"},
     ANY,
     is_warc},
    {{DT_FILE_AMBIGUOUS, "an RTF document", TO_TEXT}, MAGIC("{\\rtf")},
    {{DT_FILE_AMBIGUOUS, "a PostScript file", "extract its text: ps2ascii FILE"}, MAGIC("%!PS")},
    {{DT_FILE_JSONL, "JSON Lines", "dt-clean --to text writes its texts", .format = "jsonl"},
     ANY,
     is_jsonl},
    {{DT_FILE_AMBIGUOUS, "a JSON object over several lines", AS_JSON}, ANY, is_pretty_json},
    {{DT_FILE_AMBIGUOUS, "a JSON array", AS_JSON}, ANY, is_json_array},
    {{DT_FILE_AMBIGUOUS, "a CSV file", AS("csv"), "csv"}, ANY, is_csv},
    {{DT_FILE_AMBIGUOUS, "a TSV file", AS("tsv"), "tsv"}, ANY, is_tsv},
    /* binary data that resembles text */
    {{DT_FILE_AMBIGUOUS, "UTF-16 text", ICONV("UTF-16LE")}, ANY, is_utf16le},
    {{DT_FILE_AMBIGUOUS, "UTF-16 text", ICONV("UTF-16BE")}, ANY, is_utf16be},
    {{DT_FILE_AMBIGUOUS, "UTF-32 text", ICONV("UTF-32LE")}, ANY, is_utf32le},
    {{DT_FILE_AMBIGUOUS, "UTF-32 text", ICONV("UTF-32BE")}, ANY, is_utf32be},
    {{DT_FILE_AMBIGUOUS, "binary data with NUL bytes",
      "--from nul" OF_OTHERS " reads documents that end with NUL bytes, --from text any bytes"},
     ANY,
     has_zero},
    {{DT_FILE_AMBIGUOUS, "binary data, or text in another encoding than UTF-8",
      "write it as UTF-8 with iconv; --from text" OF_OTHERS " reads any bytes"},
     ANY,
     is_not_utf8},
};

const struct dt_file_type *dt_file_type_recognize(const char *head, size_t size)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *r = &rows[i];
        if (has(head, size, r->offset, r->magic ? r->magic : "", r->magic_size) &&
            (r->test == NULL || r->test(head, size)))
            return &r->what;
    }
    return NULL;
}

/* --- text that may be meant as JSON Lines ----------------------------------------------------- */

static bool has_member(const char *line, size_t size, const char *quoted)
{
    size_t n = strlen(quoted);
    for (const char *p = line; (p = memmem(p, size - (size_t)(p - line), quoted, n)) != NULL;) {
        p += n;
        size_t i = skip_space(line, size, (size_t)(p - line));
        if (i < size && line[i] == ':')
            return true;
    }
    return false;
}

/* An object with a text, also as an element of an array or of a JSON text sequence (RFC 7464). A
 * truncated line lacks the end. */
static bool is_document(const char *line, size_t size, bool cut)
{
    bool lines;
    size_t from = 0;
    while (from < size && (line[from] == ',' || line[from] == '\x1e'))
        from++;
    if (!begins_object(line, size, from, &lines))
        return false;
    while (!cut && strchr(" \t\r,]", line[size - 1]))
        size--;
    return (cut || line[size - 1] == '}') && has_member(line, size, "\"text\"");
}

static bool is_string(const char *line, size_t size, bool cut)
{
    size_t i = 1;
    if (line[0] != '"')
        return false;
    while (i < size && line[i] != '"')
        i += line[i] == '\\' ? 2 : 1;
    return i + 1 == size || (cut && i >= size);
}

static bool is_array(const char *line, size_t size, bool cut)
{
    return line[0] == '[' && (cut || line[size - 1] == ']');
}

/* The number of matching lines and of non-blank lines; the last may be truncated. */
struct line_count {
    size_t lines, documents, strings, arrays;
};

static struct line_count count_lines(const char *text, size_t size)
{
    struct line_count count = {0};
    for (size_t i = 0, n; i < size && count.documents == 0; i += n + 1) {
        const char *line = text + i, *end = memchr(line, '\n', size - i);
        bool cut = end == NULL;
        size_t length = n = cut ? size - i : (size_t)(end - line);
        length -= length > 0 && !cut && line[length - 1] == '\r';
        if (length == 0)
            continue;
        count.lines++;
        count.documents += is_document(line, length, cut);
        count.strings += is_string(line, length, cut);
        count.arrays += is_array(line, length, cut);
    }
    return count;
}

const struct dt_file_type *dt_file_type_suspect(const char *text, size_t size)
{
    static const struct dt_file_type
        documents = {DT_FILE_AMBIGUOUS, "JSON Lines after a line that is not JSON",
                     "--from jsonl --on-error skip passes over that line, --from text reads one "
                     "document"},
        strings = {DT_FILE_AMBIGUOUS, "JSON strings, one a line", JQ("'{text: .}'")},
        arrays = {DT_FILE_AMBIGUOUS, "JSON arrays, one a line", JQ("'.[] | " OBJECT "'")};
    size_t mark = first_character(text, size);
    const struct line_count count = count_lines(text + mark, size - mark);
    if (count.documents > 0 || has_member(text, size, "\"dt_stream\""))
        return &documents;
    if (count.lines > 0 && count.strings == count.lines)
        return &strings;
    return count.lines > 1 && count.arrays == count.lines ? &arrays : NULL;
}

static bool begins_word(const char *text, size_t size, size_t at, const char *word)
{
    size_t n = strlen(word);
    return at + n < size && strncasecmp(text + at, word, n) == 0 &&
           !isalnum((unsigned char)text[at + n]);
}

bool dt_file_type_is_html(const char *text, size_t size)
{
    size_t i = first_character(text, size);
    const char *end = begins_word(text, size, i, "<?xml") ? memchr(text + i, '>', size - i) : NULL;
    if (end)
        i = skip_space(text, size, (size_t)(end - text) + 1);
    return begins_word(text, size, i, "<!doctype html") || begins_word(text, size, i, "<html");
}

/* --- names ------------------------------------------------------------------------------------ */

/* Types that are recognized by file name only. */
static const struct {
    const char *ending;
    struct dt_file_type what;
} names[] = {
    {".jsonl",
     {DT_FILE_JSONL, "JSON Lines", "dt-clean --to text writes its texts", .format = "jsonl"}},
    {".ndjson",
     {DT_FILE_JSONL, "JSON Lines", "dt-clean --to text writes its texts", .format = "jsonl"}},
    {".json", {DT_FILE_AMBIGUOUS, "a JSON file by its name", AS_JSON}},
    {".csv", {DT_FILE_AMBIGUOUS, "a CSV file by its name", AS("csv"), "csv"}},
    {".tsv", {DT_FILE_AMBIGUOUS, "a TSV file by its name", AS("tsv"), "tsv"}},
    {".warc",
     {DT_FILE_AMBIGUOUS, "a WARC file by its name", "extract its texts", "dt-extract", "warc"}},
};

static bool ends_with(const char *path, size_t size, const char *ending)
{
    size_t n = strlen(ending);
    return size > n && strncasecmp(path + size - n, ending, n) == 0;
}

static const struct {
    const char *ending, *codec;
} codecs[] = {{".gz", "gzip"}, {".zst", "zstd"}, {".xz", "xz"}, {".bz2", "bzip2"}, {".lz4", "lz4"}};

/* Of the ending that names a codec; NULL: none. */
static const char *find_codec(const char *path, size_t *length)
{
    *length = 0;
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++)
        if (ends_with(path, strlen(path), codecs[i].ending)) {
            *length = strlen(codecs[i].ending);
            return codecs[i].codec;
        }
    return NULL;
}

const char *dt_file_type_codec(const char *path)
{
    size_t length;
    return find_codec(path, &length);
}

const struct dt_file_type *dt_file_type_named(const char *path)
{
    size_t size = strlen(path), length;
    find_codec(path, &length);
    size -= length;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (ends_with(path, size, names[i].ending))
            return &names[i].what;
    return NULL;
}

int dt_file_type_refuse(const struct dt_file_type *what, const char *path, const char *decompress,
                        struct dt_error *err)
{
    const char *other = strncmp(what->name, "UTF-", 4) == 0 ? "UTF-8" : "plain text";
    if (what->filter && decompress)
        return dt_fail(err, DT_EFORMAT, "%s: is %s, not %s; %s: %s FILE | %s", path, what->name,
                       other, what->advice, decompress, what->filter);
    return dt_fail(err, DT_EFORMAT, "%s: is %s, not %s; %s%s%s%s", path, what->name, other,
                   what->advice, what->filter ? ": " : "", what->filter ? what->filter : "",
                   what->filter ? " FILE" : "");
}
