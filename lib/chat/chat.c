/* SPDX-License-Identifier: MIT */
#include "chat/chat.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/path.h"
#include "formats/model-directory.h"
#include "formats/text-tokens.h"
#include "gguf/gguf-file.h"

#define ANSWER        "The answer is 42." /* that no template changes */
#define MOST_TEMPLATE ((size_t)1 << 24)
#define MARK          "CONTINUE_FINAL_MESSAGE_TAG"
#define BLANKS        " \t\r\n\v\f" /* those of ASCII that Python's strip() removes */

struct dt_chat {
    struct dt_template *template;
    struct json_object *tokens; /* {"bos_token": "<s>", ...} */
    time_t now;
};

const char *const dt_chat_losses[] = {[DT_CHAT_LOSS_ASSISTANT] = "assistant",
                                      [DT_CHAT_LOSS_LAST] = "last",
                                      [DT_CHAT_LOSS_ALL] = "all",
                                      NULL};

/* --- special tokens ---------------------------------------------------------------------------*/

/* "<s>", or {"content": "<s>", ...} */
static void take_token(struct dt_chat *c, const char *name, struct json_object *value)
{
    if (json_object_is_type(value, json_type_object))
        value = json_object_object_get(value, "content");
    if (json_object_is_type(value, json_type_string) &&
        !json_object_object_get_ex(c->tokens, name, NULL))
        dt_json_object_add(c->tokens, name, json_object_get(value));
}

/* The tokens that a JSON file of a directory names; a directory without it is fine. */
static int read_tokens(struct dt_chat *c, const char *directory, const char *name,
                       struct dt_error *err)
{
    static const char *const names[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                        "pad_token", "cls_token", "mask_token"};
    struct json_object *file = NULL;
    char *path = dt_path_join(directory, name);
    int rc = dt_file_probe(path, err);
    rc = rc > 0 ? dt_json_read(path, &file, err) : rc;
    for (size_t i = 0; rc == 0 && i < sizeof names / sizeof *names; i++)
        take_token(c, names[i], json_object_object_get(file, names[i]));
    json_object_put(file);
    free(path);
    return rc;
}

static void take_id(struct dt_chat *c, const char *name, const struct dt_tokenizer *t, uint32_t id)
{
    size_t size;
    if (id >= dt_tokenizer_size(t))
        return;
    const char *bytes = dt_tokenizer_bytes(t, id, &size);
    struct json_object *text = dt_json_new_string_len(bytes, size);
    take_token(c, name, text);
    json_object_put(text);
}

static int set_template(struct dt_chat *c, const char *source, const char *text,
                        struct dt_error *err)
{
    return dt_template_parse(&c->template, text, strlen(text), source, err);
}

/* place: of the model; source: names its template in errors. */
static int read_model(struct dt_chat *c, const char *place, const char *template_path,
                      const struct dt_tokenizer *t, struct dt_error *err)
{
    struct dt_text_tokens tokens;
    int rc = dt_text_tokens_read(&tokens, place, dt_tokenizer_size(t), err);
    if (rc == 0 && !dt_gguf_file_is_named(place)) {
        rc = read_tokens(c, place, DT_TOKENIZER_CONFIG_FILE, err);
        rc = rc == 0 ? read_tokens(c, place, DT_SPECIAL_TOKENS_FILE, err) : rc;
    }
    if (rc == 0) {
        take_id(c, "bos_token", t, tokens.bos);
        take_id(c, "eos_token", t, tokens.end_count ? tokens.ends[0] : dt_tokenizer_eot(t));
    }
    char *source = dt_asprintf("chat template of %s", place);
    if (rc == 0 && template_path == NULL && tokens.chat_template == NULL)
        rc = dt_fail(err, DT_EMISSING, "%s: has no chat template: give one with --template FILE",
                     place);
    else if (rc == 0 && template_path == NULL)
        rc = set_template(c, source, tokens.chat_template, err);
    free(source);
    dt_text_tokens_release(&tokens);
    return rc;
}

static int read_template(struct dt_chat *c, const char *path, struct dt_error *err)
{
    char *text;
    size_t size;
    DT_TRY(dt_file_read(path, MOST_TEMPLATE, &text, &size, err));
    int rc = dt_template_parse(&c->template, text, size, path, err);
    free(text);
    return rc;
}

int dt_chat_open(struct dt_chat **chat, const char *path, const char *template_path,
                 const struct dt_tokenizer *t, struct dt_error *err)
{
    struct dt_chat *c = *chat = dt_alloc(1, sizeof *c);
    bool whole = dt_file_is_directory(path) || dt_gguf_file_is_named(path);
    size_t above = (size_t)(dt_path_base(path) - path);
    char *place = whole ? dt_strdup(path) : above ? dt_strndup(path, above) : dt_strdup(".");
    c->tokens = dt_json_new_object();
    c->now = time(NULL);
    int rc = read_model(c, place, template_path, t, err);
    if (rc == 0 && template_path)
        rc = read_template(c, template_path, err);
    free(place);
    if (rc < 0) {
        dt_chat_free(c);
        *chat = NULL;
    }
    return rc;
}

void dt_chat_free(struct dt_chat *c)
{
    if (c == NULL)
        return;
    dt_template_free(c->template);
    json_object_put(c->tokens);
    free(c);
}

/* --- text -------------------------------------------------------------------------------------*/

static void add_members(struct json_object *to, struct json_object *from)
{
    if (!json_object_is_type(from, json_type_object))
        return;
    json_object_object_foreach(from, name, value)
    {
        dt_json_object_add(to, name, json_object_get(value));
    }
}

/* Renders the first `count` messages; `begins`: and the beginning of an answer. */
static int render(const struct dt_chat *chat, const struct dt_conversation *c, size_t count,
                  bool begins, struct dt_buffer *text, struct dt_template_spans *spans,
                  struct dt_error *err)
{
    struct json_object *context = dt_json_new_object(), *messages = dt_json_new_array();
    for (size_t i = 0; i < count; i++)
        dt_json_array_add(messages, json_object_get(json_object_array_get_idx(c->messages, i)));
    add_members(context, chat->tokens);
    dt_json_object_add(context, "messages", messages);
    dt_json_object_add(context, "tools", json_object_get(c->tools));
    dt_json_object_add(context, "documents",
                       json_object_get(json_object_object_get(c->record, "documents")));
    dt_json_object_add(context, "add_generation_prompt", dt_json_new_boolean(begins));
    add_members(context, json_object_object_get(c->record, "chat_template_kwargs"));
    int rc = dt_template_render(chat->template, context, chat->now, text, spans, err);
    json_object_put(context);
    return rc < 0 ? dt_fail_context(err, "%s", c->subject) : 0;
}

static bool is_answer(const struct dt_conversation *c, size_t i)
{
    struct json_object *message = json_object_array_get_idx(c->messages, i);
    return strcmp(dt_json_text(json_object_object_get(message, "role")), "assistant") == 0;
}

/* Whether the last message is the beginning of an answer, which the model continues. */
static bool has_begun(const struct dt_conversation *c)
{
    size_t count = json_object_array_length(c->messages);
    struct json_object *last = json_object_array_get_idx(c->messages, count - 1);
    struct json_object *content = json_object_object_get(last, "content");
    return is_answer(c, count - 1) && json_object_is_type(content, json_type_string) &&
           *dt_json_text(content);
}

/* The messages with a mark after the last one's text. Owned by the caller. */
static struct json_object *mark_end(const struct dt_conversation *c)
{
    size_t count = json_object_array_length(c->messages);
    struct json_object *marked = dt_json_new_array(), *last = dt_json_new_object();
    struct json_object *from = json_object_array_get_idx(c->messages, count - 1);
    for (size_t i = 0; i + 1 < count; i++)
        dt_json_array_add(marked, json_object_get(json_object_array_get_idx(c->messages, i)));
    add_members(last, from);
    char *text = dt_asprintf("%s" MARK " ", dt_json_text(json_object_object_get(from, "content")));
    dt_json_object_add(last, "content", dt_json_new_string(text));
    free(text);
    dt_json_array_add(marked, last);
    return marked;
}

/* As transformers' continue_final_message: up to the end of the last message's text. A template
 * that removes the blank after the mark removes those before it. */
static int render_begun(const struct dt_chat *chat, const struct dt_conversation *c,
                        struct dt_buffer *text, struct dt_error *err)
{
    struct dt_conversation marked = *c;
    size_t begin = text->size, size = strlen(MARK);
    marked.messages = mark_end(c);
    int rc = render(chat, &marked, json_object_array_length(c->messages), false, text, NULL, err);
    json_object_put(marked.messages);
    DT_TRY(rc);
    size_t at = text->size;
    while (at > begin && (text->size - at < size || memcmp(text->data + at, MARK, size) != 0))
        at--;
    if (text->size - at < size || memcmp(text->data + at, MARK, size) != 0)
        return dt_fail(err, DT_EFORMAT,
                       "%s: the template does not write the last message, an answer to continue",
                       c->subject);
    bool trims = text->data[at + size] != ' ';
    while (trims && at > begin && strchr(BLANKS, text->data[at - 1]))
        at--;
    text->size = at;
    text->data[at] = '\0';
    return 0;
}

int dt_chat_prompt(const struct dt_chat *chat, const struct dt_conversation *c,
                   struct dt_buffer *text, struct dt_error *err)
{
    if (c->messages == NULL) {
        dt_buffer_add_string(text, c->prompt);
        return 0;
    }
    return has_begun(c)
               ? render_begun(chat, c, text, err)
               : render(chat, c, json_object_array_length(c->messages), true, text, NULL, err);
}

/* The text after an answer begins with its end. */
uint32_t dt_chat_end(const struct dt_chat *chat, const struct dt_tokenizer *t)
{
    static const char record[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},"
                                 "{\"role\":\"assistant\",\"content\":\"" ANSWER "\"}]}";
    struct dt_conversation c;
    struct dt_buffer text = DT_BUFFER_EMPTY;
    struct dt_error none;
    uint32_t end = DT_NO_TOKEN;
    int rc = dt_conversation_parse(&c, record, sizeof record - 1, "", &none);
    rc = rc == 0 ? render(chat, &c, 2, false, &text, NULL, &none) : rc;
    const char *after = rc == 0 && text.size > 0 ? strstr(text.data, ANSWER) : NULL;
    if (after) {
        struct dt_encoder *e = dt_encoder_new(t);
        struct dt_ids ids = DT_IDS_EMPTY;
        after += strlen(ANSWER);
        dt_encoder_allow_special(e, true);
        dt_encoder_encode(e, after, strlen(after), &ids);
        if (ids.count > 0 && dt_tokenizer_is_special(t, ids.data[0]))
            end = ids.data[0];
        dt_ids_release(&ids);
        dt_encoder_free(e);
    }
    dt_conversation_release(&c);
    dt_buffer_release(&text);
    return end;
}

static void add_span(struct dt_template_spans *spans, size_t begin, size_t end)
{
    DT_GROW(spans->items, spans->count, spans->capacity);
    spans->items[spans->count++] = (struct dt_template_span){begin, end};
}

/* Sets *at to the size of the text of the first `count` messages, with which the whole begins. */
static int find_prefix(const struct dt_chat *chat, const struct dt_conversation *c, size_t count,
                       bool begins, const char *whole, size_t size, size_t *at,
                       struct dt_error *err)
{
    struct dt_buffer part = DT_BUFFER_EMPTY;
    int rc = render(chat, c, count, begins, &part, NULL, err);
    *at = part.size;
    if (rc == 0 && part.size > 0 && (part.size > size || memcmp(part.data, whole, part.size) != 0))
        rc = dt_fail(err, DT_EFORMAT,
                     "%s: the template writes message %zu otherwise when others follow it, so that "
                     "the bytes of the answers are not known: use --loss last, or a template with "
                     "{%% generation %%}",
                     c->subject, count);
    dt_buffer_release(&part);
    return rc;
}

/* The answers of a template without {% generation %}. */
static int find_answers(const struct dt_chat *chat, const struct dt_conversation *c, size_t from,
                        const char *whole, size_t size, struct dt_template_spans *spans,
                        struct dt_error *err)
{
    size_t count = json_object_array_length(c->messages), begin, end = size;
    for (size_t i = from; i < count; i++) {
        if (!is_answer(c, i))
            continue;
        DT_TRY(find_prefix(chat, c, i, true, whole, size, &begin, err));
        if (i + 1 < count)
            DT_TRY(find_prefix(chat, c, i + 1, false, whole, size, &end, err));
        else
            end = size;
        add_span(spans, begin, end);
    }
    return 0;
}

static size_t last_answer(const struct dt_conversation *c)
{
    size_t i = json_object_array_length(c->messages);
    while (i > 0 && !is_answer(c, i - 1))
        i--;
    return i > 0 ? i - 1 : 0;
}

static size_t count_answers(const struct dt_conversation *c, size_t from)
{
    size_t answers = 0;
    for (size_t i = from; i < json_object_array_length(c->messages); i++)
        answers += is_answer(c, i);
    return answers;
}

/* Sets *count to the number of spans, of text from begin on, that the messages before `from` write
 * alone, too. */
static int count_earlier(const struct dt_chat *chat, const struct dt_conversation *c, size_t from,
                         const struct dt_template_span *spans, size_t size, size_t begin,
                         size_t *count, struct dt_error *err)
{
    struct dt_buffer part = DT_BUFFER_EMPTY;
    struct dt_template_spans earlier = {0};
    size_t n = 0;
    int rc = from > 0 ? render(chat, c, from, false, &part, &earlier, err) : 0;
    while (n < size && n < earlier.count && spans[n].begin == earlier.items[n].begin + begin &&
           spans[n].end == earlier.items[n].end + begin)
        n++;
    *count = n;
    free(earlier.items);
    dt_buffer_release(&part);
    return rc;
}

/* Keeps those of the spans, which {% generation %} blocks wrote, that are of the messages from
 * `from` on. An answer usually has one, so that they are counted from the end, where earlier
 * answers may be written otherwise; of several blocks an answer has several. */
static int keep_later(const struct dt_chat *chat, const struct dt_conversation *c, size_t from,
                      struct dt_template_spans *spans, size_t first, size_t begin,
                      struct dt_error *err)
{
    size_t all = spans->count - first, dropped = all - count_answers(c, from);
    if (all != count_answers(c, 0))
        DT_TRY(count_earlier(chat, c, from, spans->items + first, all, begin, &dropped, err));
    spans->count -= dropped;
    memmove(spans->items + first, spans->items + first + dropped,
            (all - dropped) * sizeof *spans->items);
    return 0;
}

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), length = strlen(end);
    return size >= length && strcmp(text + size - length, end) == 0;
}

static int plain_text(const struct dt_chat *chat, const struct dt_conversation *c, bool all,
                      struct dt_buffer *text, struct dt_template_spans *spans)
{
    struct json_object *end = json_object_object_get(chat->tokens, "eos_token");
    size_t begin = text->size;
    dt_buffer_add_string(text, c->prompt);
    begin = all ? begin : text->size;
    dt_buffer_add_string(text, c->completion);
    if (end && !ends_with(c->completion, dt_json_text(end)))
        dt_buffer_add_string(text, dt_json_text(end));
    add_span(spans, begin, text->size);
    return 0;
}

int dt_chat_training_text(const struct dt_chat *chat, const struct dt_conversation *c,
                          enum dt_chat_loss loss, struct dt_buffer *text,
                          struct dt_template_spans *spans, struct dt_error *err)
{
    size_t begin = text->size, first = spans->count;
    if (c->messages == NULL)
        return plain_text(chat, c, loss == DT_CHAT_LOSS_ALL, text, spans);
    size_t count = json_object_array_length(c->messages);
    size_t from = loss == DT_CHAT_LOSS_LAST ? last_answer(c) : c->given;
    if (count_answers(c, from) == 0)
        return dt_fail(err, DT_EFORMAT, "%s: no message of the role 'assistant' to learn",
                       c->subject);
    DT_TRY(render(chat, c, count, false, text, spans, err));
    if (loss == DT_CHAT_LOSS_ALL) {
        spans->count = first;
        add_span(spans, begin, text->size);
        return 0;
    }
    if (dt_template_marks_generation(chat->template))
        return keep_later(chat, c, from, spans, first, begin, err);
    size_t added = spans->count;
    DT_TRY(find_answers(chat, c, from, text->data + begin, text->size - begin, spans, err));
    for (size_t i = added; i < spans->count; i++) {
        spans->items[i].begin += begin;
        spans->items[i].end += begin;
    }
    return 0;
}
