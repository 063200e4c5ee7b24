/* SPDX-License-Identifier: MIT */
#include "clean/clean.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "clean/attributes.h"
#include "clean/drop-list.h"
#include "clean/paragraphs.h"
#include "document/stream.h"
#include "unicode/utf8.h"
#include "json/json-number.h"
#include "json/json.h"
#include "json/meta.h"

#define BATCH_DOCUMENTS 256
#define BATCH_BYTES     ((size_t)1 << 20)
#define KEPT_BYTES      ((size_t)1 << 16) /* larger buffers are freed after use */

/* The result for one document of a batch. */
struct outcome {
    bool dropped;
    bool listed;            /* in options.drop, with the document that it is like */
    size_t line, line_size; /* in the batch's lines; size 0 if nothing is to be written */
    struct dt_hash128 hash; /* of the text, for deduplication */
    uint64_t text_hash;     /* of the line's text, for a marked stream */
    size_t like;            /* offset of a name in the batch's like, if listed */
};

struct batch {
    struct dt_document documents[BATCH_DOCUMENTS];
    struct outcome outcomes[BATCH_DOCUMENTS];
    int count;
    struct dt_buffer lines; /* of JSON, or as options.to says */
    struct dt_buffer like;  /* names of the originals of listed duplicates, each ended by 0 */
    struct dt_rule_scratch scratch;
    struct dt_clean_statistics statistics; /* of this batch */
    struct batch *next;                    /* in the list of spare batches */
};

struct dt_cleaner {
    struct dt_clean_options options;
    struct dt_rule rules[DT_RULES_MAX];
    int rule_count;
    struct dt_documents *in;
    struct dt_document_writer out, rejects; /* rejects.out is NULL without --rejects */
    struct dt_pool *pool;
    struct batch *spare;
    struct dt_duplicates seen, seen_parts;
    struct dt_clean_statistics statistics;
    struct dt_rule_count *near, *duplicate, *part; /* in statistics; NULL if not wanted */
    uint64_t number;                               /* of documents read */
    bool input_ended;
};

static void repair(struct dt_buffer *bytes, struct dt_buffer *scratch)
{
    if (dt_utf8_valid_prefix(bytes->data, bytes->size) == bytes->size)
        return;
    dt_buffer_clear(scratch);
    dt_utf8_repair(bytes->data, bytes->size, scratch);
    dt_buffer_clear(bytes);
    dt_buffer_append(bytes, scratch->data, scratch->size);
}

/* The index of the rule that dropped the document, or -1. */
static int apply_rules(const struct dt_cleaner *c, struct batch *b, struct dt_document *document,
                       struct dt_finding *finding)
{
    dt_rule_start(&b->scratch);
    for (int i = 0; i < c->rule_count; i++) {
        struct dt_rule_count *count = &b->statistics.rules[i];
        if (!dt_rule_apply(&c->rules[i], document, &b->scratch, finding)) {
            count->dropped++;
            return i;
        }
        count->changed += finding->changes > 0;
        count->changes += finding->changes;
    }
    return -1;
}

static void add_reject(struct dt_buffer *meta, const char *rule, const char *value)
{
    char *reject = dt_asprintf("{\"rule\":\"%s\",\"value\":%s}", rule, value);
    dt_meta_set(meta, "reject", reject);
    free(reject);
}

/* The dropped document with the reason. */
static void write_reject(struct dt_document *document, const char *rule, const char *value,
                         struct dt_buffer *lines)
{
    add_reject(&document->meta, rule, value);
    dt_document_to_json(document, lines);
}

static void reject_by_rule(struct batch *b, struct dt_document *document, const char *rule,
                           double value)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    dt_json_add_number(&text, value);
    write_reject(document, rule, text.data, &b->lines);
    dt_buffer_release(&text);
}

/* A document on the list of near duplicates: no rule looks at it. */
static void reject_listed(const struct dt_cleaner *c, struct batch *b, struct dt_document *document,
                          size_t like)
{
    struct dt_buffer value = DT_BUFFER_EMPTY;
    if (c->rejects.out == NULL)
        return;
    repair(&document->text, &b->scratch.text);
    dt_json_add_string(&value, b->like.data + like, strlen(b->like.data + like));
    repair(&value, &b->scratch.text);
    write_reject(document, c->near->name, value.data, &b->lines);
    dt_buffer_release(&value);
}

static void clean_document(const struct dt_cleaner *c, struct batch *b, int i)
{
    struct dt_document *document = &b->documents[i];
    struct outcome *outcome = &b->outcomes[i];
    struct dt_finding finding;
    repair(&document->id, &b->scratch.text);
    repair(&document->meta, &b->scratch.text);
    outcome->line = b->lines.size;
    if (c->options.measure_only) {
        dt_attributes_write(c->rules, c->rule_count, document, &b->scratch, &b->lines);
    } else if (outcome->listed) {
        outcome->dropped = true;
        reject_listed(c, b, document, outcome->like);
    } else {
        int rule = apply_rules(c, b, document, &finding);
        outcome->dropped = rule >= 0;
        if (rule >= 0 && c->rejects.out)
            reject_by_rule(b, document, c->rules[rule].name, finding.value);
        if (rule < 0 && c->options.dedup)
            outcome->hash = dt_hash128(document->text.data, document->text.size);
        if (rule < 0 && c->part == NULL)
            dt_document_write(c->options.to, document, &b->lines);
    }
    outcome->line_size = b->lines.size - outcome->line;
    const struct dt_document_writer *to = outcome->dropped ? &c->rejects : &c->out;
    if (to->marked && outcome->line_size > 0)
        outcome->text_hash = dt_hash(document->text.data, document->text.size);
}

static void clean_batch(void *job, void *context)
{
    struct batch *b = job;
    memset(&b->statistics, 0, sizeof b->statistics);
    dt_buffer_clear(&b->lines);
    for (int i = 0; i < b->count; i++) {
        b->statistics.documents_in++;
        b->statistics.bytes_in += b->documents[i].text.size;
        clean_document(context, b, i);
    }
}

static void release_if_large(struct dt_buffer *b)
{
    if (b->capacity > KEPT_BYTES)
        dt_buffer_release(b);
}

/* A few long documents must not enlarge the buffers of every batch. */
static void recycle(struct dt_cleaner *c, struct batch *b)
{
    bool large = b->lines.capacity > 4 * BATCH_BYTES;
    for (int i = 0; i < b->count; i++) {
        large = large || b->documents[i].text.capacity > BATCH_BYTES;
        release_if_large(&b->documents[i].text);
    }
    if (large) {
        dt_buffer_release(&b->lines);
        dt_rule_scratch_release(&b->scratch);
    }
    b->next = c->spare;
    c->spare = b;
}

static struct batch *take_spare(struct dt_cleaner *c)
{
    struct batch *b = c->spare;
    if (b)
        c->spare = b->next;
    else
        b = dt_alloc(1, sizeof *b);
    b->count = 0;
    return b;
}

/* Records whether the document is on the drop list. */
static int look_up(struct dt_cleaner *c, struct batch *b, int i, struct dt_error *err)
{
    struct outcome *outcome = &b->outcomes[i];
    const struct dt_buffer *text = &b->documents[i].text;
    *outcome = (struct outcome){0};
    c->number++;
    if (c->options.drop == NULL)
        return 0;
    DT_TRY(dt_drop_list_ask(c->options.drop, c->number, text->data, text->size, &outcome->listed,
                            &b->scratch.text, err));
    if (!outcome->listed)
        return 0;
    outcome->like = b->like.size;
    dt_buffer_append(&b->like, b->scratch.text.data, b->scratch.text.size + 1);
    return 0;
}

static int fill(struct dt_cleaner *c, struct batch *b, struct dt_error *err)
{
    dt_buffer_clear(&b->like);
    for (size_t bytes = 0; b->count < BATCH_DOCUMENTS && bytes < BATCH_BYTES; b->count++) {
        struct dt_document *document = &b->documents[b->count];
        int rc = dt_documents_next(c->in, document, err);
        if (rc <= 0) {
            c->input_ended = true;
            c->statistics.lines_skipped = dt_documents_losses(c->in).skipped;
            if (rc == 0 && c->options.drop)
                rc = dt_drop_list_end(c->options.drop, c->number, err);
            return rc;
        }
        DT_TRY(look_up(c, b, b->count, err));
        bytes += document->text.size;
    }
    return 0;
}

static int reject_late(struct dt_cleaner *c, struct batch *b, int i, struct dt_rule_count *rule,
                       const char *value, struct dt_error *err)
{
    rule->dropped++;
    if (c->rejects.out == NULL)
        return 0;
    add_reject(&b->documents[i].meta, rule->name, value);
    return dt_document_writer_add(&c->rejects, &b->documents[i], &b->scratch.text, err);
}

static int reject_duplicate(struct dt_cleaner *c, struct batch *b, int i, struct dt_error *err)
{
    char high[DT_HASH_HEX], low[DT_HASH_HEX], value[2 * DT_HASH_HEX + 2];
    snprintf(value, sizeof value, "\"%s%s\"", dt_hash_hex(b->outcomes[i].hash.high, high),
             dt_hash_hex(b->outcomes[i].hash.low, low));
    return reject_late(c, b, i, c->duplicate, value, err);
}

/* Deduplicates the parts of a document; written here, in order, not by a pool thread. */
static int write_new_parts(struct dt_cleaner *c, struct batch *b, int i, struct dt_error *err)
{
    struct dt_document *document = &b->documents[i];
    size_t before = document->text.size;
    uint64_t removed = dt_paragraphs_remove_seen(&c->seen_parts, c->options.seen,
                                                 c->options.dedup_part == DT_DEDUP_PARAGRAPHS,
                                                 document->text.data, &document->text.size);
    if (removed > 0 && document->text.size == 0) {
        char value[24];
        document->text.size = before; /* its bytes are as they were */
        snprintf(value, sizeof value, "%llu", (unsigned long long)removed);
        return reject_late(c, b, i, c->part, value, err);
    }
    if (document->text.data)
        document->text.data[document->text.size] = '\0';
    c->part->changed += removed > 0;
    c->part->changes += removed;
    c->statistics.documents_out++;
    c->statistics.bytes_out += document->text.size;
    return dt_document_writer_add(&c->out, document, &b->scratch.text, err);
}

static int write_document(struct dt_cleaner *c, struct batch *b, int i, struct dt_error *err)
{
    const struct outcome *outcome = &b->outcomes[i];
    if (outcome->listed && c->near)
        c->near->dropped++;
    if (!outcome->dropped && c->duplicate && !dt_duplicates_add(&c->seen, outcome->hash))
        return reject_duplicate(c, b, i, err);
    if (!outcome->dropped && c->part)
        return write_new_parts(c, b, i, err);
    if (!outcome->dropped) {
        c->statistics.documents_out++;
        c->statistics.bytes_out += b->documents[i].text.size;
    }
    if (outcome->line_size == 0)
        return 0;
    return dt_document_writer_add_line(outcome->dropped ? &c->rejects : &c->out,
                                       b->lines.data + outcome->line, outcome->line_size,
                                       outcome->text_hash, err);
}

static void add_statistics(struct dt_cleaner *c, const struct dt_clean_statistics *more)
{
    struct dt_clean_statistics *all = &c->statistics;
    all->documents_in += more->documents_in;
    all->bytes_in += more->bytes_in;
    for (int i = 0; i < c->rule_count; i++) {
        all->rules[i].dropped += more->rules[i].dropped;
        all->rules[i].changed += more->rules[i].changed;
        all->rules[i].changes += more->rules[i].changes;
    }
}

static int emit(struct dt_cleaner *c, struct batch *b, struct dt_error *err)
{
    int rc = 0;
    add_statistics(c, &b->statistics);
    for (int i = 0; i < b->count && rc == 0; i++)
        rc = write_document(c, b, i, err);
    c->statistics.dedup_bytes = dt_duplicates_bytes(&c->seen) + dt_duplicates_bytes(&c->seen_parts);
    recycle(c, b);
    return rc;
}

static struct dt_rule_count *add_count(struct dt_cleaner *c, bool wanted, const char *name)
{
    if (!wanted)
        return NULL;
    struct dt_rule_count *count = &c->statistics.rules[c->statistics.rule_count++];
    count->name = name;
    return count;
}

/* ICU if any rule file wants it. */
static const char *words_of(const struct dt_cleaner *c)
{
    enum dt_segmentation segmentation = DT_SEGMENTATION_CHARACTERS;
    for (int i = 0; i < c->rule_count; i++)
        if (c->rules[i].languages &&
            c->rules[i].languages->segmentation != DT_SEGMENTATION_CHARACTERS)
            segmentation = c->rules[i].languages->segmentation;
    return dt_segmentation_describe(segmentation);
}

int dt_cleaner_new(struct dt_cleaner **result, const struct dt_clean_options *options,
                   struct dt_documents *in, struct dt_output *out, struct dt_output *rejects,
                   struct dt_error *err)
{
    struct dt_cleaner *c = dt_alloc(1, sizeof *c);
    int rc = dt_rule_select(options, c->rules, &c->rule_count, err);
    *result = NULL;
    if (rc < 0) {
        dt_rule_release(c->rules, c->rule_count);
        free(c);
        return rc;
    }
    c->options = *options;
    c->in = in;
    /* attribute lines are not documents: no marks */
    c->out =
        dt_document_writer_to(out, options->measure_only ? DT_DOCUMENT_OUTPUT_TEXT : options->to);
    c->out.lineage = options->lineage;
    c->out.may_be_empty = options->may_be_empty;
    if (rejects)
        c->rejects = dt_document_writer_to(rejects, DT_DOCUMENT_OUTPUT_JSONL);
    c->rejects.may_be_empty = true;
    for (int i = 0; i < c->rule_count; i++)
        add_count(c, true, c->rules[i].name);
    c->near = add_count(c, options->drop != NULL, "near-duplicate");
    c->duplicate = add_count(c, options->dedup, "duplicate");
    c->part = add_count(c, options->dedup_part != DT_DEDUP_NO_PART,
                        options->dedup_part == DT_DEDUP_LINES ? "duplicate-lines"
                                                              : "duplicate-paragraphs");
    c->statistics.words = words_of(c);
    c->statistics.only_empty = options->min_chars == 1;
    c->statistics.identifier = options->identifier ? dt_classifier_hash(options->identifier) : 0;
    c->pool = dt_pool_on(dt_documents_threads(in), clean_batch, c);
    *result = c;
    return 0;
}

static int end_outputs(struct dt_cleaner *c, struct dt_error *err)
{
    DT_TRY(dt_document_writer_end(&c->rejects, err));
    return dt_document_writer_end(&c->out, err);
}

int dt_cleaner_step(struct dt_cleaner *c, struct dt_error *err)
{
    if (c->input_ended) {
        struct batch *b = dt_pool_next(c->pool);
        if (b == NULL)
            return end_outputs(c, err);
        DT_TRY(emit(c, b, err));
        return 1;
    }
    if (dt_pool_full(c->pool))
        DT_TRY(emit(c, dt_pool_next(c->pool), err));
    struct batch *b = take_spare(c);
    int rc = fill(c, b, err);
    if (rc < 0)
        recycle(c, b);
    else
        dt_pool_submit(c->pool, b);
    return rc < 0 ? rc : 1;
}

const struct dt_clean_statistics *dt_cleaner_statistics(const struct dt_cleaner *c)
{
    return &c->statistics;
}

static void free_batch(struct batch *b)
{
    for (int i = 0; i < BATCH_DOCUMENTS; i++)
        dt_document_release(&b->documents[i]);
    dt_buffer_release(&b->lines);
    dt_buffer_release(&b->like);
    dt_rule_scratch_release(&b->scratch);
    free(b);
}

void dt_cleaner_free(struct dt_cleaner *c)
{
    if (c == NULL)
        return;
    for (struct batch *b; (b = dt_pool_next(c->pool)) != NULL;)
        recycle(c, b);
    dt_pool_free(c->pool);
    for (struct batch *b = c->spare, *next; b; b = next) {
        next = b->next;
        free_batch(b);
    }
    dt_duplicates_release(&c->seen);
    dt_duplicates_release(&c->seen_parts);
    dt_rule_release(c->rules, c->rule_count);
    dt_document_writer_release(&c->out);
    dt_document_writer_release(&c->rejects);
    free(c);
}
