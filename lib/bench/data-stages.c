/* SPDX-License-Identifier: MIT */
/* Encoding text, writing shards, and loading samples. */
#include "bench/bench.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/progress.h"
#include "bench/encode-bench.h"
#include "bench/load-bench.h"
#include "bench/write-bench.h"
#include "io/file-type.h"
#include "tokenizer-files/tokenizer-files.h"
#include "train/sample-order.h"
#include "train/text-samples.h"
#include "json/json-number.h"

#define TEXT_LIMIT ((size_t)1 << 32)

static int print_encoding(struct dt_bench *b, const struct dt_tokenizer *t, const char *text,
                          size_t size, struct dt_error *err)
{
    struct dt_encode_speed s;
    int threads = b->threads > 0 ? (int)b->threads : 1;
    DT_TRY(dt_encode_bench(t, text, size, threads, b->seconds, &s, err));
    double megabytes = (double)s.bytes * 1e-6;
    if (s.tokens == 0)
        return dt_fail(err, DT_EFORMAT, "the text has no token: it cannot be measured");
    if (b->json) {
        dt_buffer_printf(&b->object, "{\"threads\":%d,\"bytes\":%llu,\"tokens\":%llu", threads,
                         (unsigned long long)s.bytes, (unsigned long long)s.tokens);
        dt_json_add_fixed(&b->object, "mb_per_second", megabytes / s.seconds, 1);
        dt_json_add_fixed(&b->object, "mb_per_core_second", megabytes / s.processor_seconds, 1);
        dt_json_add_fixed(&b->object, "first_mb_per_second", megabytes / s.first_seconds, 1);
        dt_json_add_fixed(&b->object, "first_mb_per_core_second",
                          megabytes / s.first_processor_seconds, 1);
        dt_buffer_add_string(&b->object, "}\n");
    } else
        b->print(
            "tokenize          %.1f MB/s on %d thread%s, %.1f MB per second of processor time, "
            "%.2f bytes per token\n",
            megabytes / s.seconds, threads, dt_plural((uint64_t)threads),
            megabytes / s.processor_seconds, (double)s.bytes / (double)s.tokens);
    return 0;
}

/* Refuses files other than text, whose speed would not be that of text. */
static int need_text(const char *path, const char *text, size_t size, struct dt_error *err)
{
    size_t head = size < DT_FILE_TYPE_HEAD ? size : DT_FILE_TYPE_HEAD;
    const struct dt_file_type *what = dt_file_type_recognize(text, head);
    if (size == 0)
        return dt_fail(err, DT_EFORMAT, "%s: contains no text", path);
    bool is_text = what == NULL || what->kind == DT_FILE_JSONL || what->kind == DT_FILE_AMBIGUOUS;
    return is_text ? 0 : dt_file_type_refuse(what, path, NULL, err);
}

int dt_bench_tokenize(struct dt_bench *b, const char *path, struct dt_error *err)
{
    struct dt_tokenizer *t;
    char *text;
    size_t size;
    DT_TRY(dt_tokenizer_load_with(&t, b->tokenizer, b->pattern, err));
    int rc = dt_file_read(path, TEXT_LIMIT, &text, &size, err);
    if (rc == 0) {
        rc = need_text(path, text, size, err);
        rc = rc < 0 ? rc : print_encoding(b, t, text, size, err);
        free(text);
    }
    dt_tokenizer_free(t);
    return rc;
}

static void print_writing(struct dt_bench *b, const struct dt_write_speed *s, int threads)
{
    double tokens = (double)s->tokens, megabytes = (double)s->text_bytes * 1e-6;
    if (b->json) {
        dt_buffer_printf(
            &b->object,
            "{\"threads\":%d,\"level\":%ld,\"tokens\":%llu,\"bytes\":%llu,\"shard_bytes\":%llu",
            threads, b->level, (unsigned long long)s->tokens, (unsigned long long)s->text_bytes,
            (unsigned long long)s->shard_bytes);
        dt_json_add_fixed(&b->object, "tokens_per_second", tokens / s->seconds, 1);
        dt_json_add_fixed(&b->object, "tokens_per_core_second", tokens / s->processor_seconds, 1);
        dt_json_add_fixed(&b->object, "mb_per_second", megabytes / s->seconds, 1);
        dt_buffer_add_string(&b->object, "}\n");
    } else
        b->print(
            "shard             %.1f M tokens/s on %d thread%s at level %ld, %.1f M per second of "
            "processor time, %.1f MB/s of text, %.2f bytes per token\n",
            tokens / s->seconds * 1e-6, threads, dt_plural((uint64_t)threads), b->level,
            tokens / s->processor_seconds * 1e-6, megabytes / s->seconds,
            (double)s->shard_bytes / tokens);
}

int dt_bench_shard(struct dt_bench *b, const char *path, struct dt_error *err)
{
    struct dt_write_speed speed;
    int threads = b->threads > 0 ? (int)b->threads : 1;
    DT_TRY(dt_write_bench(path, (int)b->level, threads, b->seconds, &speed, err));
    print_writing(b, &speed, threads);
    return 0;
}

/* dt-shard determines the layout of shards. Closes the dataset on error. */
static int check_layout(struct dt_dataset *dataset, const char *data,
                        const struct dt_settings *settings, struct dt_error *err)
{
    if (settings->data.layout != DT_TEXT_LAYOUT_PADDED || dt_dataset_info(dataset)->row > 0)
        return 0;
    dt_dataset_close(dataset);
    return dt_fail(err, DT_EINVALID,
                   "data.layout is padded, but the shards of '%s' are not: remove that setting",
                   data);
}

static int open_dataset(const struct dt_bench *b, struct dt_dataset **dataset, const char *data,
                        const struct dt_settings *settings, struct dt_error *err)
{
    if (!dt_text_samples_has_name(data)) {
        DT_TRY(dt_dataset_open(dataset, data, settings->data.train_split, err));
        return check_layout(*dataset, data, settings, err);
    }
    return dt_text_samples_open(
        dataset, data,
        &(struct dt_text_samples_options){.tokenizer_path = b->tokenizer,
                                          .layout = (enum dt_text_layout)settings->data.layout,
                                          .length = (uint32_t)settings->training.sequence_length,
                                          .seed = (uint64_t)settings->training.seed,
                                          .shuffle = settings->data.shuffle},
        err);
}

static int print_load(struct dt_bench *b, const char *name, const char *data,
                      const struct dt_settings *settings, struct dt_error *err)
{
    struct dt_load_speed s;
    const struct dt_loader_options o = {.length = (uint32_t)settings->training.sequence_length,
                                        .batch = (uint32_t)settings->training.batch_size,
                                        .order = dt_sample_order_get(settings),
                                        .workers = (int)b->threads,
                                        .memory = (size_t)b->memory};
    struct dt_dataset *dataset;
    DT_TRY(open_dataset(b, &dataset, data, settings, err));
    int rc = dt_load_bench(dataset, &o, b->seconds, &s, err);
    dt_dataset_close(dataset);
    DT_TRY(rc);
    double tokens = (double)s.tokens;
    if (b->json) {
        dt_buffer_printf(&b->object, "%s\"%s\":{", settings->data.shuffle ? "," : "{", name);
        dt_json_add_fixed(&b->object, "tokens_per_second", tokens / s.seconds, 1);
        dt_json_add_fixed(&b->object, "tokens_per_core_second", tokens / s.processor_seconds, 1);
        dt_json_add_fixed(&b->object, "targets_per_second", (double)s.targets / s.seconds, 1);
        dt_buffer_printf(&b->object, ",\"bytes\":%zu}", s.memory);
    } else
        b->print(
            "%-17s %.1f M tokens/s, %.1f M per second of processor time, %.1f%% of them targets, "
            "memory up to %s\n",
            name, tokens / s.seconds * 1e-6, tokens / s.processor_seconds * 1e-6,
            100 * (double)s.targets / tokens,
            dt_progress_bytes((double)s.memory, (char[DT_PROGRESS_BYTES]){""}));
    return 0;
}

int dt_bench_load(struct dt_bench *b, const char *data, struct dt_error *err)
{
    struct dt_settings settings;
    DT_TRY(dt_settings_read(&settings, NULL, b->config, b->set.items, b->set.count, err));
    DT_TRY(dt_bench_check_settings("load", &settings, true, err));
    if (settings.training.sequence_length == 0)
        settings.training.sequence_length = settings.model.max_seq_len;
    long block = settings.data.shuffle_block;
    settings.data.shuffle = false;
    settings.data.shuffle_block = 0;
    DT_TRY(print_load(b, "sequential", data, &settings, err));
    settings.data.shuffle = true;
    DT_TRY(print_load(b, "shuffled", data, &settings, err));
    settings.data.shuffle_block = block;
    if (block > 0)
        DT_TRY(print_load(b, "blocks", data, &settings, err));
    if (b->json)
        dt_buffer_add_string(&b->object, "}\n");
    return 0;
}
