/* SPDX-License-Identifier: MIT */
/* Records of data sets as conversations. */
#include <stdlib.h>
#include <string.h>

#include "chat/chat.h"

static int fail(const struct dt_conversation *c, struct dt_error *err, const char *what)
{
    return dt_fail(err, DT_EFORMAT, "%s: %s", c->subject, what);
}

static struct json_object *member(const struct dt_conversation *c, const char *name)
{
    return json_object_object_get(c->record, name); /* NULL for null, too */
}

static int get_text(const struct dt_conversation *c, const char *name, const char **text,
                    struct dt_error *err)
{
    struct json_object *value = member(c, name);
    *text = NULL;
    if (value == NULL)
        return 0;
    return dt_json_get_string(c->record, name, c->subject, text, err);
}

static void add_message(struct dt_conversation *c, const char *role, struct json_object *content)
{
    struct json_object *message = dt_json_new_object();
    dt_json_object_add(message, "role", dt_json_new_string(role));
    dt_json_object_add(message, "content", content);
    dt_json_array_add(c->messages, message);
}

static int add_system(struct dt_conversation *c, struct dt_error *err)
{
    const char *text;
    DT_TRY(get_text(c, "system", &text, err));
    if (text && *text)
        add_message(c, "system", dt_json_new_string(text));
    return 0;
}

/* Checks {"role", ...} and adds it. */
static int take_message(struct dt_conversation *c, struct json_object *message,
                        struct dt_error *err)
{
    const char *role;
    if (!json_object_is_type(message, json_type_object))
        return fail(c, err, "a message is not an object");
    DT_TRY(dt_json_get_string(message, "role", c->subject, &role, err));
    dt_json_array_add(c->messages, json_object_get(message));
    return 0;
}

/* {"from": "human", "value": "..."} */
static int take_turn(struct dt_conversation *c, struct json_object *turn, struct dt_error *err)
{
    static const char *const roles[][2] = {
        {"human", "user"},        {"user", "user"},           {"gpt", "assistant"},
        {"chatgpt", "assistant"}, {"assistant", "assistant"}, {"model", "assistant"},
        {"bing", "assistant"},    {"bard", "assistant"},      {"system", "system"},
        {"observation", "tool"},  {"tool", "tool"},           {"function_response", "tool"},
    };
    const char *from, *value;
    if (!json_object_is_type(turn, json_type_object))
        return fail(c, err, "a turn of 'conversations' is not an object");
    if (json_object_object_get(turn, "role"))
        return take_message(c, turn, err);
    DT_TRY(dt_json_get_string(turn, "from", c->subject, &from, err));
    DT_TRY(dt_json_get_string(turn, "value", c->subject, &value, err));
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (strcmp(from, roles[i][0]) == 0) {
            add_message(c, roles[i][1], dt_json_new_string(value));
            return 0;
        }
    return dt_fail(err, DT_EFORMAT,
                   "%s: turns are from human, gpt, system or tool, not from '%s'; use 'messages', "
                   "whose roles are free",
                   c->subject, from);
}

static int take_list(struct dt_conversation *c, const char *name,
                     int (*take)(struct dt_conversation *c, struct json_object *item,
                                 struct dt_error *err),
                     struct dt_error *err)
{
    struct json_object *list;
    DT_TRY(dt_json_get(c->record, name, json_type_array, c->subject, &list, err));
    for (size_t i = 0; i < json_object_array_length(list); i++)
        DT_TRY(take(c, json_object_array_get_idx(list, i), err));
    return 0;
}

static int take_instruction(struct dt_conversation *c, struct dt_error *err)
{
    const char *instruction, *input, *output;
    DT_TRY(dt_json_get_string(c->record, "instruction", c->subject, &instruction, err));
    DT_TRY(dt_json_get_string(c->record, "output", c->subject, &output, err));
    DT_TRY(get_text(c, "input", &input, err));
    DT_TRY(add_system(c, err));
    char *both =
        input && *input ? dt_asprintf("%s\n\n%s", instruction, input) : dt_strdup(instruction);
    add_message(c, "user", dt_json_new_string(both));
    add_message(c, "assistant", dt_json_new_string(output));
    free(both);
    return 0;
}

static bool is_list(const struct dt_conversation *c, const char *name)
{
    return json_object_is_type(member(c, name), json_type_array);
}

/* answer NULL: the prompt alone. */
static int take_completion(struct dt_conversation *c, const char *answer, struct dt_error *err)
{
    if (is_list(c, "prompt")) {
        DT_TRY(take_list(c, "prompt", take_message, err));
        c->given = json_object_array_length(c->messages);
        return answer ? take_list(c, answer, take_message, err) : 0;
    }
    json_object_put(c->messages);
    c->messages = NULL;
    DT_TRY(dt_json_get_string(c->record, "prompt", c->subject, &c->prompt, err));
    return answer ? dt_json_get_string(c->record, answer, c->subject, &c->completion, err) : 0;
}

/* The number of messages with which both answers begin. */
static size_t count_shared(const struct dt_conversation *c)
{
    struct json_object *chosen = member(c, "chosen"), *rejected = member(c, "rejected");
    size_t least = json_object_array_length(chosen), n = 0;
    if (json_object_array_length(rejected) < least)
        least = json_object_array_length(rejected);
    while (n < least && json_object_equal(json_object_array_get_idx(chosen, n),
                                          json_object_array_get_idx(rejected, n)))
        n++;
    return n;
}

/* chosen and rejected without a prompt. */
static int take_answer(struct dt_conversation *c, const char *answer, struct dt_error *err)
{
    const char *chosen, *rejected;
    if (is_list(c, "chosen") && is_list(c, "rejected")) {
        c->given = count_shared(c);
        return take_list(c, answer, take_message, err);
    }
    DT_TRY(dt_json_get_string(c->record, "chosen", c->subject, &chosen, err));
    DT_TRY(dt_json_get_string(c->record, "rejected", c->subject, &rejected, err));
    size_t n = 0;
    while (chosen[n] && chosen[n] == rejected[n])
        n++;
    while (n > 0 && (((unsigned char)chosen[n] & 0xC0) == 0x80 ||
                     ((unsigned char)rejected[n] & 0xC0) == 0x80))
        n--; /* to the beginning of a character */
    n -= n > 0 && chosen[n - 1] == ' ';
    c->shared = dt_strdup(chosen);
    c->shared[n] = '\0';
    c->prompt = c->shared;
    c->completion = (*answer == 'c' ? chosen : rejected) + n;
    json_object_put(c->messages);
    c->messages = NULL;
    return 0;
}

static int take(struct dt_conversation *c, struct dt_error *err)
{
    if (member(c, "messages"))
        return take_list(c, "messages", take_message, err);
    if (member(c, "conversations")) {
        DT_TRY(add_system(c, err));
        return take_list(c, "conversations", take_turn, err);
    }
    if (member(c, "instruction"))
        return take_instruction(c, err);
    if (member(c, "prompt"))
        return take_completion(c, "completion", err);
    return fail(c, err,
                "a conversation has 'messages', 'conversations', 'instruction' and 'output', or "
                "'prompt' and 'completion'");
}

/* Data sets often have the list as a text of JSON, since a column of lists has one type for all;
 * TRL reads it, too. */
static int take_tools(struct dt_conversation *c, struct dt_error *err)
{
    struct json_object *tools = member(c, "tools");
    struct dt_error why;
    if (!json_object_is_type(tools, json_type_string)) {
        c->tools = json_object_get(tools);
        return 0;
    }
    const char *text = dt_json_text(tools);
    if (dt_json_parse(text, strlen(text), "'tools'", &c->tools, &why) < 0)
        return fail(c, err, why.text);
    return 0;
}

static int begin(struct dt_conversation *c, const char *record, size_t size, const char *subject,
                 struct dt_error *err)
{
    *c = (struct dt_conversation){.subject = dt_strdup(subject), .messages = dt_json_new_array()};
    DT_TRY(dt_json_parse(record, size, subject, &c->record, err));
    if (!json_object_is_type(c->record, json_type_object))
        return fail(c, err, "a conversation is a JSON object");
    return take_tools(c, err);
}

static int check_messages(const struct dt_conversation *c, struct dt_error *err)
{
    if (c->messages && json_object_array_length(c->messages) == 0)
        return fail(c, err, "the conversation has no messages");
    return 0;
}

int dt_conversation_parse(struct dt_conversation *c, const char *record, size_t size,
                          const char *subject, struct dt_error *err)
{
    DT_TRY(begin(c, record, size, subject, err));
    DT_TRY(take(c, err));
    return check_messages(c, err);
}

int dt_conversation_parse_answer(struct dt_conversation *c, const char *record, size_t size,
                                 const char *subject, const char *answer, struct dt_error *err)
{
    DT_TRY(begin(c, record, size, subject, err));
    if (answer && member(c, "chosen") == NULL)
        return fail(c, err, "a preference has 'chosen' and 'rejected', and perhaps 'prompt'");
    if (answer == NULL || member(c, "prompt"))
        DT_TRY(take_completion(c, answer, err));
    else
        DT_TRY(take_answer(c, answer, err));
    return check_messages(c, err);
}

void dt_conversation_release(struct dt_conversation *c)
{
    json_object_put(c->messages);
    json_object_put(c->record);
    json_object_put(c->tools);
    free(c->subject);
    free(c->shared);
    *c = (struct dt_conversation){0};
}
