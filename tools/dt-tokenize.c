/* SPDX-License-Identifier: MIT */
/* dt-tokenize: encodes documents to token ids, and decodes them. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/pool.h"
#include "base/program.h"
#include "base/progress.h"
#include "chat/chat.h"
#include "chat/marks.h"
#include "document/options.h"
#include "document/stream.h"
#include "formats/text-tokens.h"
#include "hash/hash.h"
#include "hub/hub.h"
#include "io/input.h"
#include "io/lineage.h"
#include "options/command-line.h"
#include "options/options.h"
#include "pretokenize/pattern.h"
#include "shard/shard.h"
#include "shard/sources.h"
#include "token/batch-encoder.h"
#include "token/id-lines.h"
#include "token/tokenizer.h"
#include "tokenizer-files/tokenizer-files.h"
#include "warc/reader.h"

enum text_format { TO_TEXT, TO_JSONL };
static const char *const text_formats[] = {[TO_TEXT] = "text", [TO_JSONL] = "jsonl", NULL};

static struct {
    const char *tokenizer, *out, *separator, *template;
    bool ids, offsets, decode, special, allow_empty, quiet, chat, pairs;
    long threads, max_length, stride;
    int from, to, frame, pattern, loss;
    struct dt_reading_options reading;
    struct dt_documents_options documents; /* from these options */
} opt = {.out = "-", .stride = -1, .pattern = -1, .reading = DT_READING_OPTIONS_DEFAULT};

static const struct dt_option options[] = {
    {"tokenizer", 't', DT_OPTION_STRING, &opt.tokenizer, "TOKENIZER",
     "tokenizer.json, another tokenizer file, or a directory", .required = true, .reads = true},
    {"pattern", 0, DT_OPTION_CHOICE, &opt.pattern, "PATTERN",
     "pre-tokenizer pattern, instead of that of TOKENIZER", .choices = dt_pattern_names},
    {"ids", 0, DT_OPTION_FLAG, &opt.ids, NULL, "write ids as text, a line per document"},
    {"offsets", 0, DT_OPTION_FLAG, &opt.offsets, NULL,
     "write ids as text, each with its byte offsets in the document"},
    {"decode", 'd', DT_OPTION_FLAG, &opt.decode, NULL, "decode ids to text"},
    {"to", 0, DT_OPTION_CHOICE, &opt.to, "FORMAT", "with -d, write text or jsonl",
     .choices = text_formats, .with = "decode"},
    {"frame", 0, DT_OPTION_CHOICE, &opt.frame, "FRAME",
     "add auto, none, eot, bos, bos-eot or template around documents (default: auto)",
     .choices = dt_frame_policies},
    {"special", 0, DT_OPTION_FLAG, &opt.special, NULL,
     "encode the text of special tokens as these tokens"},
    {"chat", 0, DT_OPTION_FLAG, &opt.chat, NULL,
     "read conversations, and write them through the chat template", .without = "decode"},
    {"pairs", 0, DT_OPTION_FLAG, &opt.pairs, NULL,
     "with --chat, read preferences, each with a chosen and a rejected answer", .with = "chat"},
    {"template", 0, DT_OPTION_STRING, &opt.template, "FILE",
     "with --chat, the template in FILE instead of the model's", .with = "chat", .reads = true},
    {"loss", 0, DT_OPTION_CHOICE, &opt.loss, "PART",
     "with --chat, tokens that carry loss: assistant (default), last or all",
     .choices = dt_chat_losses, .with = "chat"},
    {"truncate", 0, DT_OPTION_INT, &opt.max_length, "N", "truncate documents to N ids", .min = 1,
     .max = 1e15},
    {"stride", 0, DT_OPTION_INT, &opt.stride, "N",
     "with --truncate, write the rest as documents that overlap by N ids", .min = 0, .max = 1e15,
     .with = "truncate"},
    {"from", 0, DT_OPTION_CHOICE, &opt.from, "FORMAT",
     "input format: auto (default), jsonl, csv, text and others, see dt-documents(5)",
     .choices = dt_document_formats},
    {"separator", 0, DT_OPTION_STRING, &opt.separator, "TEXT",
     "documents end with this line, or with --from split with this text; '' with --from sep: at "
     "empty lines"},
    DT_READING_OPTIONS(opt.reading),
    {"allow-empty", 0, DT_OPTION_FLAG, &opt.allow_empty, NULL,
     "the input may have no documents, as a part of others"},
    {"threads", 'j', DT_OPTION_INT, &opt.threads, "N", "use N threads (default: all processors)",
     .min = 1, .max = 1024},
    {"output", 'o', DT_OPTION_STRING, &opt.out, "FILE", "write to FILE", .writes = ""},
    {"quiet", 'q', DT_OPTION_FLAG, &opt.quiet, NULL, "show no progress"},
    {NULL}};

static const struct dt_command command = {
    "dt-tokenize", "encode documents to token ids, and decode them", "[FILE ...]", options};

/* The output. */
struct sink {
    struct dt_output out;
    struct dt_shard_writer *writer;    /* NULL with --ids and -d */
    struct dt_document_writer decoded; /* for -d --to jsonl */
    struct dt_buffer text;
    uint64_t documents;
    struct dt_chat *chat; /* NULL: documents are text */
    struct dt_chat_marks *marks;
    struct dt_buffer conversation; /* its text */
    struct dt_ids ids;             /* of a conversation, with marks */
    uint64_t pair;                 /* hash of the last chosen answer's text */
    uint32_t eot;                  /* that ends documents, or DT_NO_TOKEN */
    struct dt_lineage *lineage;    /* NULL: the output has no place for it */
};

static int write_text(struct sink *sink, struct dt_error *err)
{
    int rc = dt_output_write(&sink->out, sink->text.data, sink->text.size, err);
    dt_buffer_clear(&sink->text);
    return rc;
}

/* The end token that the frame adds is not repeated after one that the template wrote. */
static void mark_loss(struct sink *sink, struct dt_encoded *d)
{
    dt_chat_marks_take(sink->marks, d, &sink->ids);
    size_t n = d->count;
    if (n > 1 && sink->eot != DT_NO_TOKEN && d->ids[n - 1] == sink->eot &&
        d->ids[n - 2] == sink->eot)
        d->count--;
    d->ids = sink->writer ? sink->ids.data : d->ids;
}

static int write_encoded(const struct dt_encoded *encoded, void *context, struct dt_error *err)
{
    struct sink *sink = context;
    struct dt_encoded d = *encoded;
    sink->documents++;
    if (sink->chat)
        mark_loss(sink, &d);
    if (sink->writer) {
        if (opt.pairs && sink->documents % 2 == 0) /* as lib/prefer/pairs.h checks */
            d.hash = sink->pair;
        sink->pair = d.hash;
        struct dt_shard_document document = {d.hash, d.count, d.bytes};
        return dt_shard_write(sink->writer, d.ids, &document, err);
    }
    if (opt.offsets)
        dt_ids_to_span_line(d.ids, d.spans, d.count, &sink->text);
    else
        dt_ids_to_line(d.ids, d.count, &sink->text);
    return write_text(sink, err);
}

/* The token that ends documents. */
static uint32_t end_token(const struct dt_frame *frame)
{
    return frame->after_count ? frame->after[frame->after_count - 1] : DT_NO_TOKEN;
}

/* Refuses a default without an end token: readers could not separate documents. */
static int choose_frame(const struct dt_tokenizer *t, struct dt_frame *frame, struct dt_error *err)
{
    DT_TRY(dt_tokenizer_frame(t, (enum dt_frame_policy)opt.frame, frame, err));
    if (opt.chat) /* the template writes what is at the beginning */
        frame->before_count = 0;
    if (!opt.ids && opt.frame == DT_FRAME_AUTO && frame->after_count == 0)
        return dt_fail(err, DT_EINVALID,
                       "%s: does not define an end-of-text token, so documents would be joined; "
                       "use --frame none to join them",
                       opt.tokenizer);
    return 0;
}

static int open_stream(struct sink *sink, const struct dt_tokenizer *t,
                       const struct dt_frame *frame, struct dt_error *err)
{
    char *provenance = dt_asprintf("%s\n", dt_command_line());
    struct dt_shard_info info = {.vocab_size = dt_tokenizer_size(t),
                                 .eot = end_token(frame),
                                 .tokenizer = dt_tokenizer_fingerprint(t),
                                 .masked = opt.chat,
                                 .provenance = provenance};
    int rc = dt_shard_writer_new(&sink->writer, &sink->out, &info, 0, err);
    free(provenance);
    return rc;
}

static void show_progress(struct dt_progress *progress, const struct dt_documents *documents)
{
    uint64_t taken, total;
    if (!dt_progress_due(progress))
        return;
    dt_documents_position(documents, &taken, &total);
    if (total > 0)
        dt_progress_show(progress, "%.1f of %.1f MB", (double)taken / 1e6, (double)total / 1e6);
    else
        dt_progress_show(progress, "%.1f MB", (double)taken / 1e6);
}

/* Encodes the text of a conversation, or with an answer that of a preference. */
static int encode_conversation(struct sink *sink, struct dt_batch_encoder *encoder,
                               const struct dt_document *document, const char *answer,
                               struct dt_error *err)
{
    struct dt_conversation c;
    const char *record = document->meta.size ? document->meta.data : "{}";
    size_t size = document->meta.size ? document->meta.size : 2;
    int rc = answer ? dt_conversation_parse_answer(&c, record, size, document->id.data, answer, err)
                    : dt_conversation_parse(&c, record, size, document->id.data, err);
    dt_buffer_clear(&sink->conversation);
    if (rc == 0)
        rc = dt_chat_training_text(sink->chat, &c, (enum dt_chat_loss)opt.loss, &sink->conversation,
                                   dt_chat_marks_add(sink->marks), err);
    dt_conversation_release(&c);
    return rc < 0 ? rc
                  : dt_batch_encoder_add(encoder, sink->conversation.data, sink->conversation.size,
                                         err);
}

static int encode_document(struct sink *sink, struct dt_batch_encoder *encoder,
                           const struct dt_document *document, struct dt_error *err)
{
    if (sink->chat == NULL)
        return dt_batch_encoder_add(encoder, document->text.data, document->text.size, err);
    if (!opt.pairs)
        return encode_conversation(sink, encoder, document, NULL, err);
    DT_TRY(encode_conversation(sink, encoder, document, "chosen", err));
    return encode_conversation(sink, encoder, document, "rejected", err);
}

static int encode_all(struct sink *sink, struct dt_batch_encoder *encoder,
                      struct dt_documents *documents, struct dt_error *err)
{
    struct dt_document document = DT_DOCUMENT_EMPTY;
    struct dt_progress progress;
    dt_progress_init(&progress, opt.quiet || dt_output_is_terminal(opt.out));
    int rc;
    while ((rc = dt_documents_next(documents, &document, err)) > 0) {
        rc = encode_document(sink, encoder, &document, err);
        if (rc < 0)
            break;
        show_progress(&progress, documents);
    }
    if (rc == 0)
        rc = dt_batch_encoder_finish(encoder, err);
    dt_progress_clear(&progress);
    dt_document_release(&document);
    return rc;
}

static int encode(struct sink *sink, const struct dt_tokenizer *t, char **files, int count,
                  struct dt_error *err)
{
    struct dt_batch_encoder_options how = {.allow_special = opt.special || opt.chat,
                                           .keep_spans = opt.offsets || opt.chat,
                                           .max_length = (size_t)opt.max_length,
                                           .stride = opt.stride > 0 ? (size_t)opt.stride : 0,
                                           .overlap = opt.stride >= 0};
    struct dt_documents *documents;
    DT_TRY(choose_frame(t, &how.frame, err));
    size_t frame = how.frame.before_count + how.frame.after_count;
    if (how.max_length > 0 && how.max_length <= frame + how.stride)
        return dt_fail(err, DT_EINVALID,
                       "--truncate %ld must exceed the %zu ids of the frame and %zu of the stride",
                       opt.max_length, frame, how.stride);
    sink->eot = end_token(&how.frame);
    opt.documents.lineage = sink->lineage;
    DT_TRY(dt_documents_open(&documents, files, count, &opt.documents, err));
    how.threads = dt_documents_threads(documents);
    dt_lineage_watch(sink->lineage, &sink->out, (int)opt.threads);
    struct dt_batch_encoder *encoder = dt_batch_encoder_new(t, &how, write_encoded, sink);
    int rc = opt.ids ? 0 : open_stream(sink, t, &how.frame, err);
    if (rc == 0 && sink->writer)
        dt_shard_writer_use_threads(sink->writer, how.threads);
    if (rc == 0)
        rc = encode_all(sink, encoder, documents, err);
    if (rc == 0 && sink->documents == 0 && !opt.allow_empty)
        rc = dt_fail(err, DT_EFORMAT, "the input contains no documents");
    if (rc == 0 && sink->writer)
        rc = dt_shard_writer_finish_with(sink->writer,
                                         dt_output_is_pipe(&sink->out) ? sink->lineage : NULL, err);
    dt_reading_options_report(documents);
    dt_batch_encoder_free(encoder);
    dt_shard_writer_free(sink->writer);
    sink->writer = NULL;
    dt_documents_close(documents);
    return rc;
}

/* Removes the EOT and the tokens that --frame auto adds before a document. */
static void strip_frame(const struct dt_tokenizer *t, uint32_t eot, const uint32_t **ids,
                        size_t *count)
{
    struct dt_frame frame;
    struct dt_error none;
    if (*count > 0 && (*ids)[*count - 1] == eot)
        --*count;
    if (dt_tokenizer_frame(t, DT_FRAME_AUTO, &frame, &none) == 0 && frame.before_count > 0 &&
        *count >= frame.before_count &&
        memcmp(*ids, frame.before, frame.before_count * sizeof **ids) == 0) {
        *ids += frame.before_count;
        *count -= frame.before_count;
    }
}

/* Writes one document as text, without its frame; name: input file; shared: by another one. */
static int decode_document(struct sink *sink, const struct dt_tokenizer *t,
                           const struct dt_ids *framed, uint32_t eot, const char *name, bool shared,
                           uint64_t number, struct dt_error *err)
{
    const uint32_t *ids = framed->data;
    size_t count = framed->count;
    strip_frame(t, eot, &ids, &count);
    struct dt_document document = DT_DOCUMENT_EMPTY;
    if (dt_tokenizer_decode(t, ids, count, &document.text, err) < 0) {
        dt_document_release(&document);
        return dt_fail_context(err, "%s: document %llu", name, (unsigned long long)number);
    }
    sink->documents++;
    int rc;
    if (opt.to == TO_JSONL) {
        dt_document_number(name, shared, number, &document.id);
        rc = dt_document_writer_add(&sink->decoded, &document, &sink->text, err);
    } else {
        rc = dt_output_write(&sink->out, document.text.data, document.text.size, err);
    }
    dt_document_release(&document);
    return rc;
}

static int decode_stream(struct sink *sink, const struct dt_tokenizer *t, const char *path,
                         bool shared, struct dt_error *err)
{
    const char *name = strcmp(path, "-") == 0 ? "stdin" : path;
    struct dt_shard_reader *reader;
    struct dt_shard_document document;
    struct dt_ids ids = DT_IDS_EMPTY;
    DT_TRY(dt_shard_reader_open_for(&reader, path, sink->lineage, err));
    const struct dt_shard_info *info = dt_shard_reader_info(reader);
    int rc = dt_shard_check_tokenizer(info, name, dt_tokenizer_fingerprint(t), opt.tokenizer, err);
    for (uint64_t number = 1; rc == 0; number++) {
        rc = dt_shard_read(reader, &ids, &document, err);
        if (rc <= 0)
            break;
        rc = decode_document(sink, t, &ids, info->eot, name, shared, number, err);
    }
    dt_ids_release(&ids);
    dt_shard_reader_close(reader);
    return rc;
}

static int decode_lines(struct sink *sink, const struct dt_tokenizer *t, const char *path,
                        bool shared, struct dt_error *err)
{
    struct dt_input *in;
    struct dt_buffer line = DT_BUFFER_EMPTY;
    struct dt_ids ids = DT_IDS_EMPTY;
    bool found = true;
    DT_TRY(dt_input_open(&in, path, err));
    int rc = 0;
    for (uint64_t number = 1; rc == 0 && found; number++) {
        rc = dt_input_read_until(in, '\n', &line, &found, err);
        if (rc < 0 || (!found && line.size == 0))
            break;
        char *location = dt_asprintf("%s:%llu", dt_input_name(in), (unsigned long long)number);
        rc = dt_ids_from_line(line.data, line.size, location, &ids, err);
        free(location);
        if (rc == 0)
            rc = decode_document(sink, t, &ids, dt_tokenizer_eot(t), dt_input_name(in), shared,
                                 number, err);
    }
    dt_ids_release(&ids);
    dt_buffer_release(&line);
    dt_input_close(in);
    return rc;
}

/* Refuses shards that their index.json does not list, before decoding. */
static int check_listed(char **files, int count, struct dt_error *err)
{
    struct dt_shard_sources sources = {0};
    int rc = 0;
    for (int i = 0; rc == 0 && i < count; i++)
        rc = dt_file_is_directory(files[i]) ? 0 : dt_shard_sources_add(&sources, files[i], err);
    dt_shard_sources_release(&sources);
    return rc;
}

static int decode(struct sink *sink, const struct dt_tokenizer *t, char **files, int count,
                  struct dt_error *err)
{
    DT_TRY(opt.ids ? 0 : check_listed(files, count, err));
    sink->decoded = dt_document_writer_to(&sink->out, DT_DOCUMENT_OUTPUT_JSONL);
    sink->decoded.lineage = sink->lineage;
    sink->decoded.may_be_empty = opt.allow_empty;
    bool *shared = dt_document_shared_names(files, count);
    int rc = 0;
    for (int i = 0; rc == 0 && i < (count ? count : 1); i++) {
        const char *path = count ? files[i] : "-";
        bool also = count && shared[i];
        rc = opt.ids ? decode_lines(sink, t, path, also, err)
                     : decode_stream(sink, t, path, also, err);
    }
    free(shared);
    DT_TRY(rc);
    if (sink->documents == 0 && !opt.allow_empty)
        return dt_fail(err, DT_EFORMAT, "the input contains no documents");
    return dt_document_writer_end(&sink->decoded, err);
}

static int open_chat(struct sink *sink, const struct dt_tokenizer *t, struct dt_error *err)
{
    sink->marks = dt_chat_marks_new();
    DT_TRY(dt_chat_open(&sink->chat, opt.tokenizer, opt.template, t, err));
    return opt.template ? dt_lineage_add_path(sink->lineage, opt.template, err) : 0;
}

static int run(struct sink *sink, char **files, int count, struct dt_error *err)
{
    struct dt_tokenizer *t;
    DT_TRY(dt_tokenizer_load_with(&t, opt.tokenizer,
                                  opt.pattern < 0 ? NULL : dt_pattern_names[opt.pattern], err));
    sink->lineage = dt_lineage_for(opt.out);
    int rc = dt_output_open(&sink->out, opt.out, err);
    if (rc == 0)
        rc = opt.chat ? dt_text_tokens_add_inputs(opt.tokenizer, sink->lineage, err)
                      : dt_lineage_add_path(sink->lineage, opt.tokenizer, err);
    if (rc == 0 && opt.chat)
        rc = open_chat(sink, t, err);
    if (rc == 0)
        rc = opt.decode ? decode(sink, t, files, count, err) : encode(sink, t, files, count, err);
    if (rc == 0)
        rc = dt_lineage_commit(sink->lineage, &sink->out, err);
    dt_lineage_free(sink->lineage);
    dt_shard_writer_free(sink->writer);
    dt_document_writer_release(&sink->decoded);
    dt_chat_free(sink->chat);
    dt_chat_marks_free(sink->marks);
    dt_buffer_release(&sink->conversation);
    dt_ids_release(&sink->ids);
    dt_output_abandon(&sink->out);
    dt_buffer_release(&sink->text);
    dt_tokenizer_free(t);
    return rc;
}

static void check_options(void)
{
    const char *problem = dt_documents_check(opt.from, opt.separator);
    if (problem)
        dt_program_usage("%s", problem);
    opt.documents = (struct dt_documents_options){.format = (enum dt_document_format)opt.from,
                                                  .separator = opt.separator,
                                                  .allow_special = opt.special,
                                                  .threads = (int)opt.threads};
    dt_reading_options_check(&opt.reading, &opt.documents);
    opt.documents.field = opt.chat ? DT_DOCUMENT_RECORD : NULL;
    if (opt.chat && opt.stride >= 0)
        dt_program_usage("--chat excludes --stride");
    if (opt.chat && opt.frame > DT_FRAME_EOT)
        dt_program_usage("--chat excludes --frame bos, bos-eot and template: the template writes "
                         "what is before the messages");
    if (opt.decode && (opt.frame || opt.special || opt.from != DT_DOCUMENT_FORMAT_AUTO ||
                       opt.separator || opt.offsets || opt.max_length))
        dt_program_usage(
            "-d excludes --frame, --special, --offsets, --truncate, --from and --separator");
    if (opt.decode && (opt.reading.on_error || opt.reading.partial || opt.reading.max_document ||
                       opt.reading.part || opt.reading.files_from))
        dt_program_usage("-d excludes --on-error, --max-errors, --partial, --max-document, --part "
                         "and --files-from");
    opt.allow_empty |= opt.reading.part != NULL;
    opt.ids |= opt.offsets;
    if (!opt.ids && !opt.decode && dt_output_is_terminal(opt.out))
        dt_program_usage(
            "a token stream cannot go to a terminal: redirect it, name a file with -o, or use "
            "--ids");
}

int main(int argc, char **argv)
{
    opt.threads = dt_pool_processors();
    dt_document_reader_register(&dt_warc_reader_texts);
    dt_options_set_fetch(dt_hub_fetch);
    int first = dt_options_parse(&command, argc, argv);
    check_options();
    struct dt_error err;
    struct sink sink = {.out = {.fd = -1}};
    char **files = argv + first;
    int count = argc - first;
    if (!opt.decode)
        dt_reading_options_files(&opt.reading, &command, &files, &count);
    return run(&sink, files, count, &err) < 0 ? dt_program_report(&err) : 0;
}
