/* SPDX-License-Identifier: MIT */
#include "plot/figure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/program.h"
#include "plot/gnuplot.h"

#define TEMPLATE_LIMIT ((size_t)1 << 20)

static int add_template(struct dt_buffer *script, const char *name, struct dt_error *err)
{
    char *part = dt_asprintf("share/dt/plots/%s.gnuplot", name),
         *path = dt_program_installed_path(part);
    char *text = NULL;
    size_t size;
    int rc = dt_file_read(path, TEMPLATE_LIMIT, &text, &size, err);
    if (rc == 0)
        dt_buffer_append(script, text, size);
    free(text);
    free(path);
    free(part);
    return rc;
}

int dt_figure_draw(const struct dt_figure *figure, const struct dt_buffer *settings,
                   struct dt_buffer *out, struct dt_error *err)
{
    static const char *const formats[] = {"text", "svg", "png", "pdf", "eps"};
    struct dt_buffer script = DT_BUFFER_EMPTY, drawing = DT_BUFFER_EMPTY;
    dt_gnuplot_set_string(&script, "format", formats[figure->format]);
    dt_gnuplot_set_string(&script, "heading", figure->title ? figure->title : "");
    dt_buffer_printf(&script, "panels = %d\n", figure->panels);
    int rc = add_template(&script, "style", err);
    dt_buffer_append(&script, settings->data, settings->size);
    if (rc == 0)
        rc = add_template(&script, figure->template, err);
    if (rc == 0)
        rc = dt_gnuplot_run(&script, &drawing, err);
    if (rc == 0) {
        /* gnuplot's text terminal begins with a form feed and an empty line. */
        size_t skip = figure->format == DT_PLOT_TEXT ? strspn(drawing.data, "\f\n") : 0;
        dt_buffer_append(out, drawing.data + skip, drawing.size - skip);
    }
    dt_buffer_release(&script);
    dt_buffer_release(&drawing);
    return rc;
}

/* Of a validation set: its name is the rest of the member's. */
static char *label_of_set(const char *name)
{
    static const struct {
        const char *prefix, *before, *after;
    } labels[] = {
        {"val_loss_", "validation loss of ", " (nats per token)"},
        {"val_accuracy_", "validation accuracy of ", " (fraction of tokens)"},
    };
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        size_t size = strlen(labels[i].prefix);
        if (strncmp(name, labels[i].prefix, size) == 0)
            return dt_asprintf("%s%s%s", labels[i].before, name + size, labels[i].after);
    }
    return dt_strdup(name);
}

char *dt_figure_label(const char *name)
{
    static const struct {
        const char *name, *label;
    } labels[] = {
        {"loss", "loss (nats per token)"},
        {"val_loss", "validation loss (nats per token)"},
        {"lr", "learning rate"},
        {"grad_norm", "L2 norm of the gradients, before clipping"},
        {"tokens_per_second", "tokens per second"},
        {"samples_per_second", "samples per second"},
        {"ema_val_loss", "validation loss of the average (nats per token)"},
        {"val_accuracy", "validation accuracy (fraction of tokens)"},
        {"epoch", "epochs"},
        {"logit_rms", "root mean square of the logits"},
        {"logit_max", "largest magnitude of the logits"},
        {"gradient_signal", "square of the norm of the true gradient, estimated"},
        {"gradient_noise", "variance of the gradient of one token, estimated"},
        {"reward_margin", "reward margin (nats)"},
        {"reward_accuracy", "reward accuracy (fraction of pairs)"},
        {"reward", "mean reward"},
        {"completion_tokens", "mean tokens of a completion"},
        {"loader_seconds", "time that rank 0 waited for samples (seconds)"},
        {"mfu", "model FLOPs utilization (1: the GEMM peak)"},
        {"resident_memory", "memory of rank 0 (bytes)"},
        {"peak_memory", "peak memory of rank 0 (bytes)"},
        {"peak_bytes", "peak memory of the largest process (bytes)"},
        {"device_memory", "memory of device and host (bytes)"},
        {"bytes_sent", "bytes that rank 0 sent"},
        {"waited_seconds", "time that rank 0 waited for others (seconds)"},
        {"batch_tokens", "tokens per step"},
        {"loss_scale", "loss scale"},
        {"skipped", "skipped updates so far"},
        {"wall_s", "wall time (seconds)"},
        {"cpu_s", "CPU time (seconds)"},
        {"reached_val_loss_step", "steps to the target validation loss"},
        {"reached_val_loss_time", "seconds to the target validation loss"},
    };
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        if (strcmp(name, labels[i].name) == 0)
            return dt_strdup(labels[i].label);
    return label_of_set(name);
}

void dt_figure_set_label(struct dt_buffer *settings, const char *variable, const char *name)
{
    char *label = dt_figure_label(name);
    dt_gnuplot_set_string(settings, variable, label);
    free(label);
}

void dt_figure_add_label(struct dt_buffer *out, const char *text, int width)
{
    int count = 0;
    for (; *text; text++) {
        bool begins = ((unsigned char)*text & 0xC0) != 0x80;
        if (begins && count == width)
            break;
        count += begins;
        dt_buffer_add_char(out, *text);
    }
    for (; count < width; count++)
        dt_buffer_add_char(out, ' ');
}

static void set_element(struct dt_buffer *settings, const char *name, int place, const char *text)
{
    char element[64];
    snprintf(element, sizeof element, "%s[%d]", name, place + 1);
    dt_gnuplot_set_string(settings, element, text);
}

void dt_figure_set_array(struct dt_buffer *settings, const char *name, const char *const *texts,
                         int count)
{
    dt_buffer_printf(settings, "array %s[%d]\n", name, count > 0 ? count : 1);
    for (int i = 0; i < count; i++)
        set_element(settings, name, i, texts[i]);
}

void dt_figure_set_ticks(struct dt_buffer *settings, const char *name, const char *const *texts,
                         int count)
{
    dt_buffer_printf(settings, "array %s[%d]\n", name, count > 0 ? count : 1);
    for (int i = 0; i < count; i++) {
        struct dt_buffer format = DT_BUFFER_EMPTY;
        dt_buffer_add_string(&format, "");
        for (const char *c = texts[i]; *c; c++)
            dt_buffer_append(&format, *c == '%' ? "%%" : c, *c == '%' ? 2 : 1);
        set_element(settings, name, i, format.data);
        dt_buffer_release(&format);
    }
}
