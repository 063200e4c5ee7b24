/* SPDX-License-Identifier: MIT */
/* Reads the model Unigram of tokenizer.json. */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "steps/step.h"
#include "token/unigram.h"
#include "tokenizer-files/load-unigram.h"
#include "tokenizer-files/tokenizer-file.h"
#include "json/json.h"

/* --- scores ------------------------------------------------------------------------------------
 * The JSON parser of `tokenizers`, serde_json, rounds a number twice: its digits to a double, then
 * the quotient by a power of ten. Scores must have its bits, or equal sums would not be equal. */

struct decimal {
    uint64_t digits;
    int exponent;
    bool full; /* further digits are dropped */
};

static void add_digit(struct decimal *d, unsigned digit, bool fraction)
{
    d->full = d->full || d->digits > (UINT64_MAX - digit) / 10;
    if (!d->full)
        d->digits = 10 * d->digits + digit;
    d->exponent += d->full ? !fraction : -(int)fraction;
}

static double power_of_ten(int exponent)
{
    char text[16];
    snprintf(text, sizeof text, "1e%d", exponent);
    return strtod(text, NULL);
}

/* The exponent at the end of a number, limited so that a sum with that of its digits fits. */
static long written_exponent(const char *text)
{
    const long most = 1L << 30;
    long exponent = *text == 'e' || *text == 'E' ? strtol(text + 1, NULL, 10) : 0;
    return exponent < -most ? -most : exponent > most ? most : exponent;
}

/* The value of a JSON number that is finite in double precision. */
static double parse_score(const char *text)
{
    struct decimal d = {0, 0, false};
    bool negative = *text == '-', fraction = false;
    const char *p = text + negative;
    for (; (*p >= '0' && *p <= '9') || *p == '.'; p++)
        if (*p == '.')
            fraction = true;
        else
            add_digit(&d, (unsigned)(*p - '0'), fraction);
    long exponent = d.exponent + written_exponent(p);
    double value = (double)d.digits;
    for (; exponent < -308 && value != 0; exponent += 308)
        value /= 1e308;
    if (value != 0)
        value = exponent < 0 ? value / power_of_ten((int)-exponent)
                             : value * power_of_ten((int)exponent);
    return negative ? -value : value;
}

/* ["piece", score] */
static int get_piece(struct json_object *vocabulary, size_t id, const char *path,
                     struct json_object **piece, double *score, struct dt_error *err)
{
    struct json_object *pair = json_object_array_get_idx(vocabulary, id), *number;
    bool is_pair =
        json_object_is_type(pair, json_type_array) && json_object_array_length(pair) == 2;
    *piece = is_pair ? json_object_array_get_idx(pair, 0) : NULL;
    number = is_pair ? json_object_array_get_idx(pair, 1) : NULL;
    bool is_number =
        json_object_is_type(number, json_type_double) || json_object_is_type(number, json_type_int);
    *score = is_number && isfinite(json_object_get_double(number))
                 ? parse_score(dt_json_text(number))
                 : NAN;
    if (json_object_is_type(*piece, json_type_string) && isfinite(*score))
        return 0;
    return dt_fail(err, DT_EFORMAT, "%s: \"vocab\" element %zu is not [\"piece\", score]", path,
                   id);
}

int dt_unigram_read_vocabulary(struct dt_tokenizer *t, struct json_object *model,
                               struct json_object *added, const char *path, struct dt_error *err)
{
    struct json_object *vocabulary, *piece, *token;
    double score;
    if (t->byte_level)
        return dt_fail(err, DT_EFORMAT,
                       "%s: model Unigram with the pre_tokenizer ByteLevel is not supported", path);
    DT_TRY(dt_json_get(model, "vocab", json_type_array, path, &vocabulary, err));
    for (size_t id = 0; id < json_object_array_length(vocabulary); id++) {
        DT_TRY(get_piece(vocabulary, id, path, &piece, &score, err));
        const char *bytes = dt_json_text(piece);
        size_t size = (size_t)json_object_get_string_len(piece);
        if (dt_tokenizer_find(t, bytes, size) != DT_NO_TOKEN)
            return dt_fail(err, DT_EFORMAT, "%s: piece %zu of \"vocab\" is there twice", path, id);
        if (json_object_object_get_ex(added, bytes, &token) &&
            json_object_get_int64(json_object_object_get(token, "id")) == (int64_t)id)
            continue;
        if (dt_tokenizer_add(t, id, bytes, size, err) < 0)
            return dt_fail_context(err, "%s", path);
    }
    return 0;
}

/* The tokens <0x00> to <0xFF>; NULL if there is none. */
static int find_bytes(const struct dt_tokenizer *t, uint32_t **ids, const char *path,
                      struct dt_error *err)
{
    unsigned found = 0;
    *ids = dt_alloc(256, sizeof **ids);
    for (unsigned byte = 0; byte < 256; byte++) {
        char spelled[8];
        snprintf(spelled, sizeof spelled, "<0x%02X>", byte);
        (*ids)[byte] = dt_tokenizer_find(t, spelled, 6);
        found += (*ids)[byte] != DT_NO_TOKEN;
    }
    if (found > 0 && found < 256)
        return dt_fail(err, DT_EFORMAT,
                       "%s: \"byte_fallback\" with %u of the tokens <0x00> to <0xFF> is not "
                       "supported",
                       path, found);
    if (found == 0) {
        free(*ids);
        *ids = NULL;
    }
    return 0;
}

/* Without special tokens: text encodes to them only if the encoder allows it. */
static size_t collect_pieces(const struct dt_tokenizer *t, uint32_t count,
                             struct dt_trie_piece *pieces)
{
    bool *special = dt_alloc(t->size, sizeof *special);
    size_t kept = 0;
    for (uint32_t i = 0; i < t->added_count; i++)
        special[t->added[i].id] = t->added[i].special;
    for (uint32_t id = 0; id < count; id++) {
        size_t size;
        const char *bytes = dt_tokenizer_bytes(t, id, &size);
        if (!special[id])
            pieces[kept++] = (struct dt_trie_piece){bytes, (uint32_t)size, id};
    }
    free(special);
    return kept;
}

/* Of a vocabulary that dt_unigram_read_vocabulary has read. */
static void read_scores(struct dt_unigram *u, struct json_object *vocabulary)
{
    struct json_object *piece;
    struct dt_error err;
    double least = DBL_MAX;
    u->size = (uint32_t)json_object_array_length(vocabulary);
    u->scores = dt_alloc(u->size, sizeof *u->scores);
    for (uint32_t id = 0; id < u->size; id++) {
        int rc = get_piece(vocabulary, id, "", &piece, &u->scores[id], &err);
        assert(rc == 0);
        (void)rc;
        least = u->scores[id] < least ? u->scores[id] : least;
    }
    u->unknown_score = least - DT_UNIGRAM_UNKNOWN_PENALTY;
}

int dt_unigram_read_json(struct dt_tokenizer *t, struct json_object *model, const char *path,
                         struct dt_error *err)
{
    struct dt_unigram *u = t->unigram = dt_alloc(1, sizeof *u);
    int64_t unknown;
    read_scores(u, json_object_object_get(model, "vocab"));
    DT_TRY(dt_json_get_int(model, "unk_id", path, &unknown, err));
    if (unknown < 0 || unknown >= u->size)
        return dt_fail(err, DT_EFORMAT, "%s: \"unk_id\" %lld is not in the vocabulary", path,
                       (long long)unknown);
    u->unknown = t->unknown = (uint32_t)unknown;
    u->fuse_unknown = true;
    if (dt_step_flag(model, "byte_fallback", false))
        DT_TRY(find_bytes(t, &u->byte_ids, path, err));
    struct dt_trie_piece *pieces = dt_alloc(u->size, sizeof *pieces);
    dt_unigram_build(u, pieces, collect_pieces(t, u->size, pieces));
    free(pieces);
    return 0;
}
