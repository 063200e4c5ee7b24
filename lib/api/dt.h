/* SPDX-License-Identifier: MIT */
/*
 * libdt.so.0: tokenizers, shards, the order of a training run, and cleaning, for programs in any
 * language. See libdt(3).
 *
 *     #include <dt.h>
 *     char error[DT_API_ERROR_TEXT];
 *     struct dt_api_tokenizer *t;
 *     struct dt_api_encoding e;
 *     if (dt_api_tokenizer_open(&t, "tokenizer.json", NULL, error) < 0 ||
 *         dt_api_tokenizer_encode(t, &text, &size, 1, "none", 0, 1, &e, error) < 0)
 *         errx(1, "%s", error);
 *     ... e.ids[0 .. e.ends[0]-1] ...
 *     dt_api_encoding_release(&e);
 *     dt_api_tokenizer_close(t);
 *
 * Errors: a function that can fail returns 0, or a negative enum dt_api_code and one line in
 * `error`, an array of DT_API_ERROR_TEXT bytes: that of the programs, without their name. The
 * library prints nothing and does not end the process, with one exception: where the system has
 * no memory left, it ends the process as the programs do.
 *
 * Threads: any thread may use any handle at any time; calls with one dataset or loader wait for
 * each other, those with one tokenizer or cleaner run at the same time. A handle is closed once,
 * when no call uses it. fork(2): the child may use tokenizers, datasets and cleaners of the
 * parent, but not its loaders, which fail with DT_API_EINVALID.
 *
 * Strings are UTF-8 and end with 0 unless a size is given. Closing and freeing NULL is fine.
 *
 * Versions: within libdt.so.0 functions keep their names and arguments. Structures that the caller
 * fills begin with their size, so that later versions may add members at the end; a member that is
 * 0 has its default.
 */
#ifndef DT_API_DT_H
#define DT_API_DT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DT_API_ERROR_TEXT 512
#define DT_API_NONE       UINT32_MAX  /* no such token */
#define DT_API_NO_LOSS    0x80000000u /* marks an id that is not a target: loss masks, padding */

enum dt_api_code {
    DT_API_OK = 0,
    DT_API_EIO = -1,      /* a system call failed: open, read */
    DT_API_EFORMAT = -2,  /* a file or an id is malformed */
    DT_API_EINVALID = -3, /* an argument or a combination of arguments is impossible */
    DT_API_ENOMEM = -4,
    DT_API_EMISSING = -5 /* something asked for by name does not exist */
};

/* "0.2.0" of a release; "0.2.0+c6ed965" of another commit. */
const char *dt_api_version(void);
/* Frees what a function of this header gave with "free with dt_api_free". */
void dt_api_free(void *memory);

/* --- tokenizers ------------------------------------------------------------------------------- */

/* The functions of token/tokenizer.h, which says more of ids, special tokens and decoding. */
struct dt_api_tokenizer;

/* path: tokenizer.json, tokenizer.model, a file of tiktoken, vocab.txt, or the directory of one:
 * dt-tokenizer(5). pattern: the pre-tokenizer pattern to use instead of the file's ("gpt2",
 * "cl100k", ...), or NULL. */
int dt_api_tokenizer_open(struct dt_api_tokenizer **t, const char *path, const char *pattern,
                          char *error);
void dt_api_tokenizer_close(struct dt_api_tokenizer *t);

uint32_t dt_api_tokenizer_size(const struct dt_api_tokenizer *t); /* highest id + 1 */
/* The token that ends documents, or DT_API_NONE. */
uint32_t dt_api_tokenizer_end(const struct dt_api_tokenizer *t);
/* Shards and models record it. */
uint64_t dt_api_tokenizer_fingerprint(const struct dt_api_tokenizer *t);
/* DT_API_NONE if no token has these bytes. */
uint32_t dt_api_tokenizer_find(const struct dt_api_tokenizer *t, const char *bytes, size_t size);
/* Borrowed from t; *size is 0 if the id is unused. */
const char *dt_api_tokenizer_token(const struct dt_api_tokenizer *t, uint32_t id, size_t *size);
/* 1 or 0. */
int dt_api_tokenizer_is_special(const struct dt_api_tokenizer *t, uint32_t id);

enum dt_api_encode {
    DT_API_ENCODE_SPECIAL = 1, /* the text of a special token becomes that token */
    DT_API_ENCODE_SPANS = 2    /* also give the bytes of each id */
};

/* The ids of n documents, one after the other. Free with dt_api_encoding_release. */
struct dt_api_encoding {
    uint32_t *ids;   /* [ends[n-1]] */
    uint64_t *ends;  /* [n]: document i has ids ends[i-1] .. ends[i]-1; the first begins at 0 */
    uint64_t *spans; /* [ends[n-1]][2]: first byte in the document and that after the last; 0, 0
                        of a token of the frame; NULL without DT_API_ENCODE_SPANS */
};
void dt_api_encoding_release(struct dt_api_encoding *e);

/* Encodes texts[i], sizes[i] any bytes, for i < n. frame: tokens around each document: "none",
 * "auto", "eot", "bos", "bos-eot" or "template", as --frame of dt-tokenize(1). flags: of enum
 * dt_api_encode. threads: 0 is one per processor; ids do not depend on it. */
int dt_api_tokenizer_encode(struct dt_api_tokenizer *t, const char *const *texts,
                            const size_t *sizes, size_t n, const char *frame, unsigned flags,
                            int threads, struct dt_api_encoding *e, char *error);
/* *size bytes and a final 0; free with dt_api_free. DT_API_EFORMAT: an id outside the vocabulary.
 */
int dt_api_tokenizer_decode(const struct dt_api_tokenizer *t, const uint32_t *ids, size_t count,
                            char **text, size_t *size, char *error);

/* --- data sets -------------------------------------------------------------------------------- */

struct dt_api_dataset;

/* Totals of a split. */
struct dt_api_dataset_info {
    uint64_t tokens, documents, text_bytes;
    uint64_t targets;   /* ids that carry loss */
    uint64_t tokenizer; /* fingerprint */
    uint64_t hash;      /* of the content */
    uint64_t weights;   /* hash of the weights of a mixture; 0 for other data */
    uint32_t vocab_size;
    uint32_t end;    /* the token that ends documents, or DT_API_NONE */
    uint32_t row;    /* ids per row of padded rows; 0: a list of documents */
    uint32_t masked; /* 1 if there is a loss mask */
};

/* path: a directory of dt-shard(1), a .dts file, or a mixture (dt-shard(5)). split: "train",
 * "val", ... */
int dt_api_dataset_open(struct dt_api_dataset **d, const char *path, const char *split,
                        char *error);
void dt_api_dataset_close(struct dt_api_dataset *d);
/* Fills the first `size` bytes of *info, whose members later versions may continue. */
void dt_api_dataset_describe(const struct dt_api_dataset *d, struct dt_api_dataset_info *info,
                             size_t size);
/* ids[0 .. count-1]: tokens first .. first+count-1 of the split. */
int dt_api_dataset_read(struct dt_api_dataset *d, uint64_t first, uint64_t count, uint32_t *ids,
                        char *error);
/* The first token of document i, and its number of tokens. */
int dt_api_dataset_document(struct dt_api_dataset *d, uint64_t i, uint64_t *first, uint64_t *count,
                            char *error);
/* The samples of length + 1 ids in an epoch; sample k begins at token k * length. */
int dt_api_dataset_samples(struct dt_api_dataset *d, uint32_t length, uint64_t *samples,
                           char *error);

/* --- loaders ---------------------------------------------------------------------------------- */

struct dt_api_loader;

enum dt_api_scope {
    DT_API_SCOPE_ROW,     /* every token attends to its row: begins and ends are NULL */
    DT_API_SCOPE_CONTENT, /* ... but not to padding */
    DT_API_SCOPE_DOCUMENT /* every token attends to its document */
};

struct dt_api_loader_options {
    size_t size;            /* sizeof(struct dt_api_loader_options) */
    uint64_t seed;          /* of the order; training.seed of dt-train(1) */
    uint64_t first;         /* samples consumed before: the state to resume from */
    uint32_t length, batch; /* tokens of a sequence; sequences of a batch, over all ranks */
    uint32_t ranks, rank;   /* data-parallel ranks (0: one), and this one */
    int32_t shuffle;        /* 0: in the order of the shards */
    int32_t workers;        /* threads that read ahead; 0: dt_api_loader_next reads */
    int32_t scope;          /* of enum dt_api_scope */
    uint64_t memory;        /* bytes of the cache of decoded tokens; 0: 1 GiB */
    uint64_t shuffle_block, shuffle_window; /* as data.shuffle_block and data.shuffle_window (0:
                                               64) of dt-config(5) */
};

/* rows of a rank: sequences B * rank / ranks .. B * (rank + 1) / ranks - 1 of a batch of B. */
struct dt_api_batch {
    uint32_t *ids; /* [rows][length + 1]: inputs are the first length, targets the last; a target
                      with DT_API_NO_LOSS carries none. Free with dt_api_free */
    int32_t *begins, *ends; /* [rows][length]: the tokens of the row to which each attends,
                               begins .. ends-1; or NULL. Free with dt_api_free */
    uint64_t position;      /* samples of all ranks before this batch */
    uint64_t targets;       /* of rows * length, those that carry loss */
    uint32_t rows, length;
};

/* The batches of dt-train(1) with the same data, seed, length and batch, in its order, without
 * end: an epoch follows the other. The contents do not depend on ranks and workers. d may be
 * closed before the loader. DT_API_ENOMEM if batches exceed the memory that is left. */
int dt_api_loader_open(struct dt_api_loader **l, const struct dt_api_dataset *d,
                       const struct dt_api_loader_options *options, char *error);
/* The next batch, which the caller owns. No copy is made of it. To resume after it, open with
 * .first = position + batch. */
int dt_api_loader_next(struct dt_api_loader *l, struct dt_api_batch *batch, char *error);
void dt_api_loader_close(struct dt_api_loader *l);

/* --- cleaning --------------------------------------------------------------------------------- */

struct dt_api_cleaner;

/* Options of dt-clean(1) of the same names; all 0: its defaults, except min_chars. */
struct dt_api_cleaner_options {
    size_t size;              /* sizeof(struct dt_api_cleaner_options) */
    const char *const *rules; /* [rule_count]: names of sets (gopher, c4, fineweb, fineweb2, dolma)
                                 or paths of rule files */
    size_t rule_count;
    const char *rule_text;         /* more rules, as the text of a rule file; or NULL */
    const char *normalize;         /* "none", "nfc", "nfkc" */
    const char *space;             /* "keep", "trim", "squeeze" */
    const char *mask;              /* "email,ipv4", ..., "all" */
    const char *languages;         /* "en,de" */
    const char *identifier;        /* a model that identifies languages; "": dt's own; NULL: none */
    double language_score;         /* 0 to 1 */
    uint64_t min_chars, max_chars; /* code points; max_chars 0: unlimited */
    int32_t reject_invalid;        /* --invalid reject */
    int32_t mojibake, invisible, casefold;
    int32_t keep_line_ends; /* --line-ends keep */
};

/* What became of a document. Free with dt_api_cleaned_release. */
struct dt_api_cleaned {
    char *text; /* text_size bytes and a 0; of a dropped document, as far as it was changed */
    char *meta; /* a JSON object, with what rules added; meta_size bytes and a 0 */
    size_t text_size, meta_size;
    const char *rule; /* NULL: kept; else the rule that dropped it; borrowed from the cleaner */
    double value;     /* what that rule measured */
};
void dt_api_cleaned_release(struct dt_api_cleaned *cleaned);

int dt_api_cleaner_open(struct dt_api_cleaner **c, const struct dt_api_cleaner_options *options,
                        char *error);
/* id: the document's, which rules of URLs look at; meta: a JSON object; NULL: none. */
int dt_api_cleaner_apply(struct dt_api_cleaner *c, const char *text, size_t size, const char *id,
                         const char *meta, struct dt_api_cleaned *cleaned, char *error);
void dt_api_cleaner_close(struct dt_api_cleaner *c);

#ifdef __cplusplus
}
#endif
#endif
