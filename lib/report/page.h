/* SPDX-License-Identifier: MIT */
/*
 * A page for readers, as HTML or Markdown. All text is escaped: none of it can become markup, run
 * a script, load a file or reorder what is shown.
 *
 *     struct dt_page page = {.format = DT_PAGE_HTML};
 *     dt_page_begin(&page, "Two runs");
 *     dt_page_heading(&page, "Losses");
 *     dt_page_paragraph(&page, "%d runs of '%s'", 3, name);
 *     DT_TRY(dt_page_figure(&page, "loss", "The loss over steps", &drawing, err));
 *     dt_page_end(&page);
 *     ... page.text ...
 *     dt_page_release(&page);
 */
#ifndef DT_REPORT_PAGE_H
#define DT_REPORT_PAGE_H

#include "base/buffer.h"
#include "experiment/grid.h"
#include "plot/figure.h"

enum dt_page_format {
    DT_PAGE_MARKDOWN, /* figures are text, or files beside the page */
    DT_PAGE_HTML      /* one file of HTML 5, with its figures, without scripts */
};

struct dt_page {
    enum dt_page_format format;
    const char *file;      /* Markdown: "x/a.md" has its figures in "x/a-NAME.svg"; NULL: as text */
    struct dt_buffer text; /* the page */
};

void dt_page_begin(struct dt_page *page, const char *title);
void dt_page_heading(struct dt_page *page, const char *text);
void dt_page_paragraph(struct dt_page *page, const char *fmt, ...) DT_PRINTF(2, 3);
/* The first row of the grid is the heading. */
void dt_page_table(struct dt_page *page, const struct dt_grid *grid);
/* Text as it is, line by line. */
void dt_page_verbatim(struct dt_page *page, const char *text, size_t size);
/* The format in which dt_page_figure expects a drawing. */
enum dt_plot_format dt_page_figure_format(const struct dt_page *page);
/* Writes the file beside a page of Markdown. name: letters, digits and '-'. */
int dt_page_figure(struct dt_page *page, const char *name, const char *caption,
                   const struct dt_buffer *drawing, struct dt_error *err) DT_MUST_CHECK;
void dt_page_end(struct dt_page *page);
void dt_page_release(struct dt_page *page);

#endif
