/* SPDX-License-Identifier: MIT */
#include "shard/listing.h"

#include <inttypes.h>
#include <string.h>

#include "hash/hash.h"
#include "json/json.h"

/* The properties that the rows below share. */
static void add_heading(struct dt_buffer *b, int width, const struct dt_shard_info *info)
{
    char hex[DT_HASH_HEX];
    dt_buffer_printf(b, "tokenizer %s, vocabulary %u, ", dt_hash_hex(info->tokenizer, hex),
                     info->vocab_size);
    if (info->eot == UINT32_MAX)
        dt_buffer_add_string(b, "no end-of-text");
    else
        dt_buffer_printf(b, "end-of-text %u", info->eot);
    dt_buffer_printf(b, ", ids of %u bytes\n", info->token_bytes);
    if (info->row)
        dt_buffer_printf(b, "rows of %u + 1 ids, padding %u\n", info->row - 1, info->padding_id);
    else if (info->masked)
        dt_buffer_add_string(b, "a list with a loss mask\n");
    dt_buffer_printf(b, "%-*s%12s%16s%15s%14s\n", width, "file", "documents", "tokens",
                     "text bytes", "file bytes");
}

static void add_row(struct dt_buffer *b, int width, const char *path,
                    const struct dt_shard_info *info, uint64_t size)
{
    int n = (int)strlen(path);
    if (n > width) /* keep the end */
        dt_buffer_printf(b, "...%s", path + n - width + 3);
    else
        dt_buffer_printf(b, "%-*s", width, path);
    dt_buffer_printf(b, "%12" PRIu64 "%16" PRIu64 "%15" PRIu64 "%14" PRIu64 "\n", info->documents,
                     info->tokens, info->text_bytes, size);
}

static void add_to_total(struct dt_shard_info *total, const struct dt_shard_info *info)
{
    total->documents += info->documents;
    total->tokens += info->tokens;
    total->text_bytes += info->text_bytes;
    total->padding += info->padding;
    total->targets += info->targets;
}

/* Whether both fit below one heading. */
static bool same_kind(const struct dt_shard_info *a, const struct dt_shard_info *b)
{
    return a->tokenizer == b->tokenizer && a->vocab_size == b->vocab_size && a->eot == b->eot &&
           a->row == b->row && a->padding_id == b->padding_id && a->masked == b->masked;
}

void dt_listing_add(struct dt_listing *l, const char *path, const struct dt_shard_info *info,
                    uint64_t file_bytes, struct dt_buffer *text)
{
    if (l->count == 0 || !same_kind(info, &l->last))
        add_heading(text, l->width, info);
    add_row(text, l->width, path, info, file_bytes);
    add_to_total(&l->total, info);
    l->file_bytes += file_bytes;
    l->last = *info;
    l->count++;
}

void dt_listing_finish(const struct dt_listing *l, struct dt_buffer *text)
{
    const struct dt_shard_info *total = &l->total;
    double tokens = (double)total->tokens, own = (double)(total->tokens - total->padding);
    if (l->count > 1)
        add_row(text, l->width, "total", total, l->file_bytes);
    if (total->documents > 0 && total->tokens > 0)
        dt_buffer_printf(text, "%.1f tokens a document, %.3f text bytes a token\n",
                         own / (double)total->documents, (double)total->text_bytes / own);
    if (total->targets < total->tokens)
        dt_buffer_printf(text, "%.2f%% padding, %.2f%% of the tokens carry loss\n",
                         100 * (double)total->padding / tokens,
                         100 * (double)total->targets / tokens);
}

void dt_listing_json(const char *path, const struct dt_shard_info *info, struct dt_buffer *b)
{
    char hex[DT_HASH_HEX];
    dt_buffer_add_string(b, "{\"file\":");
    dt_json_add_string(b, path, strlen(path));
    dt_buffer_printf(b, ",\"tokenizer\":\"%s\",\"vocab_size\":%u,\"eot\":",
                     dt_hash_hex(info->tokenizer, hex), info->vocab_size);
    if (info->eot == UINT32_MAX)
        dt_buffer_add_string(b, "null");
    else
        dt_buffer_printf(b, "%u", info->eot);
    dt_buffer_printf(b, ",\"token_bytes\":%u,\"layout\":\"%s\"", info->token_bytes,
                     info->row ? "padded" : "list");
    if (info->row)
        dt_buffer_printf(b, ",\"length\":%u,\"padding_id\":%u,\"padding\":%" PRIu64, info->row - 1,
                         info->padding_id, info->padding);
    if (info->masked)
        dt_buffer_printf(b, ",\"targets\":%" PRIu64, info->targets);
    dt_buffer_printf(b,
                     ",\"documents\":%" PRIu64 ",\"tokens\":%" PRIu64 ",\"bytes\":%" PRIu64
                     ",\"hash\":\"%s\"}\n",
                     info->documents, info->tokens, info->text_bytes, dt_hash_hex(info->hash, hex));
}
