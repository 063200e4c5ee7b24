/* SPDX-License-Identifier: MIT */
#include "options/command-line.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/credentials.h"
#include "base/printable.h"
#include "base/version.h"

static const char *program; /* its name */
static struct dt_buffer command_line;
static const char **arguments; /* of command_line, ended by NULL; each owned */
static int argument_count, argument_capacity;

const char *dt_command_line(void)
{
    return command_line.data ? command_line.data : "";
}

const char *const *dt_command_arguments(void)
{
    static const char *const none[] = {NULL};
    return arguments ? arguments : none;
}

/* Appends a character between single quotes: a control character, or a byte that is not UTF-8, as
 * $'\x0a'. */
static size_t add_character(struct dt_buffer *b, const char *text, size_t size)
{
    char spelling[DT_SPELLING];
    const size_t n = dt_printable_next(text, size, spelling);
    if (*text == '\'')
        dt_buffer_add_string(b, "'\\''");
    else if (n == 1 && *spelling)
        dt_buffer_printf(b, "'$'%s''", spelling);
    else
        dt_buffer_append(b, text, n);
    return n;
}

/* Appends an argument quoted for the shell, on one line. */
static void add_quoted(struct dt_buffer *b, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./=:,+@%";
    dt_buffer_add_char(b, ' ');
    if (*text != '\0' && text[strspn(text, plain)] == '\0') {
        dt_buffer_add_string(b, text);
        return;
    }
    dt_buffer_add_char(b, '\'');
    while (*text)
        text += add_character(b, text, strlen(text));
    dt_buffer_add_char(b, '\'');
}

static void begin_line(void)
{
    dt_buffer_clear(&command_line);
    dt_buffer_printf(&command_line, "%s %s:", program, dt_version);
}

void dt_command_begin(const char *name)
{
    program = name;
    begin_line();
    while (argument_count > 0)
        free((char *)arguments[--argument_count]);
    if (arguments)
        arguments[0] = NULL;
}

void dt_command_add_argument(const char *text)
{
    char *shown = dt_strdup(text);
    dt_credentials_hide(shown);
    add_quoted(&command_line, shown);
    DT_GROW(arguments, argument_count + 1, argument_capacity);
    arguments[argument_count++] = shown;
    arguments[argument_count] = NULL;
}

void dt_command_add_operands(char *const *operands, int count)
{
    for (int i = 0; i < count; i++) {
        if (operands[i][0] == '-' && operands[i][1] != '\0') {
            dt_command_add_argument("--");
            break;
        }
    }
    for (int i = 0; i < count; i++)
        dt_command_add_argument(operands[i]);
}

void dt_command_replace(const char *text, const char *name)
{
    begin_line();
    for (int i = 0; i < argument_count; i++) {
        if (strcmp(arguments[i], text) == 0) {
            free((char *)arguments[i]);
            arguments[i] = dt_strdup(name);
        }
        add_quoted(&command_line, arguments[i]);
    }
}
