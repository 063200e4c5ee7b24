/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <string.h>

#include "report/page.h"

static const char hostile[] =
    "<script>alert('&')</script> \"x\" `id` [a](b) *b* \x1b[31m \xff \xe2\x80\xae";

static struct dt_page page_of(enum dt_page_format format)
{
    struct dt_page page = {.format = format};
    struct dt_grid grid = {.columns = 2};
    struct dt_buffer drawing = DT_BUFFER_EMPTY;
    struct dt_error err;
    dt_page_begin(&page, hostile);
    dt_page_heading(&page, hostile);
    dt_page_paragraph(&page, "of '%s'", hostile);
    dt_grid_add(&grid, hostile);
    dt_grid_add(&grid, "count");
    dt_grid_add(&grid, hostile);
    dt_grid_add(&grid, "12");
    dt_page_table(&page, &grid);
    dt_page_verbatim(&page, hostile, strlen(hostile));
    dt_buffer_add_string(&drawing, "<svg/>");
    assert_int_equal(dt_page_figure(&page, "loss", hostile, &drawing, &err), 0);
    dt_page_end(&page);
    dt_grid_release(&grid);
    dt_buffer_release(&drawing);
    return page;
}

static void assert_absent(const struct dt_page *page, const char *text)
{
    if (strstr(page->text.data, text))
        fail_msg("'%s' in: %s", text, page->text.data);
}

static void assert_there(const struct dt_page *page, const char *text)
{
    if (strstr(page->text.data, text) == NULL)
        fail_msg("no '%s' in: %s", text, page->text.data);
}

static void html_has_no_markup_of_its_texts(void **state)
{
    (void)state;
    struct dt_page page = page_of(DT_PAGE_HTML);
    assert_absent(&page, "<script");
    assert_absent(&page, "\x1b");
    assert_absent(&page, "\xff");
    assert_absent(&page, "\xe2\x80\xae"); /* turns the direction of text around */
    assert_there(&page, "<title>&lt;script&gt;alert('&amp;')&lt;/script&gt; &quot;x&quot;");
    assert_there(&page, "<h2>&lt;script&gt;");
    assert_there(&page, "<p>of '&lt;script&gt;");
    assert_there(&page, "<th class=\"n\">count</th>");
    assert_there(&page, "<td class=\"n\">12</td>");
    assert_there(&page, "<pre>\n&lt;script&gt;");
    assert_there(&page, "\\x1b[31m \\xff \\u202e");
    assert_there(&page, "src=\"data:image/svg+xml;base64,PHN2Zy8+\"");
    assert_there(&page, "default-src 'none'");
    dt_page_release(&page);
}

static void markdown_has_no_markup_of_its_texts(void **state)
{
    (void)state;
    struct dt_page page = page_of(DT_PAGE_MARKDOWN);
    assert_there(&page, "# &lt;script&gt;alert('&amp;')&lt;/script&gt; \"x\" \\`id\\` "
                        "\\[a\\](b) \\*b\\* \\\\x1b\\[31m");
    assert_there(&page, "\n    <script>"); /* a block of code is text */
    assert_there(&page, "\n    <svg/>\n");
    assert_absent(&page, "\n<script");
    assert_absent(&page, "| <script");
    dt_page_release(&page);
}

static void emphasis_of_markdown_is_escaped(void **state)
{
    (void)state;
    struct dt_page page = {.format = DT_PAGE_MARKDOWN};
    dt_page_heading(&page, "_a_ ~~b~~ c_d ~ e ~f~");
    assert_string_equal(page.text.data, "\n## \\_a\\_ \\~\\~b\\~~ c_d ~ e \\~f~\n");
    dt_page_release(&page);
}

/* As the names of files that begin a sentence. */
static void a_paragraph_begins_no_heading_or_list(void **state)
{
    static const char *const texts[][2] = {
        {"# a", "\\# a"},   {"- a", "\\- a"},        {"+ a", "\\+ a"}, {"12. a", "12\\. a"},
        {"1) a", "1\\) a"}, {"    a", "&#32;    a"}, {"12 a", "12 a"}, {"a", "a"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct dt_page page = {.format = DT_PAGE_MARKDOWN};
        char *expected = dt_asprintf("\n%s\n", texts[i][1]);
        dt_page_paragraph(&page, "%s", texts[i][0]);
        assert_string_equal(page.text.data, expected);
        dt_page_release(&page);
        free(expected);
    }
}

static void verbatim_lines_stay_in_their_block(void **state)
{
    (void)state;
    struct dt_page page = {.format = DT_PAGE_MARKDOWN};
    dt_page_verbatim(&page, "a\n\n# b\n", 7);
    assert_string_equal(page.text.data, "\n    a\n    \n    # b\n");
    dt_page_release(&page);
    dt_page_verbatim(&page, "", 0);
    assert_string_equal(page.text.data, "\n");
    dt_page_release(&page);
}

static void figures_of_markdown_are_files_beside_it(void **state)
{
    (void)state;
    struct dt_page page = {.format = DT_PAGE_MARKDOWN, .file = "a b.md"};
    struct dt_buffer drawing = DT_BUFFER_EMPTY;
    struct dt_error err;
    char *data;
    size_t size;
    dt_buffer_add_string(&drawing, "<svg/>");
    assert_int_equal(dt_page_figure_format(&page), DT_PLOT_SVG);
    assert_int_equal(dt_page_figure(&page, "loss", "Loss", &drawing, &err), 0);
    assert_string_equal(page.text.data, "\n![Loss](a%20b-loss.svg)\n\nLoss\n");
    assert_int_equal(dt_file_read("a b-loss.svg", 100, &data, &size, &err), 0);
    assert_string_equal(data, "<svg/>");
    page.file = "none/a.md";
    assert_int_equal(dt_page_figure(&page, "loss", "Loss", &drawing, &err), DT_EIO);
    free(data);
    dt_buffer_release(&drawing);
    dt_page_release(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(html_has_no_markup_of_its_texts),
        cmocka_unit_test(markdown_has_no_markup_of_its_texts),
        cmocka_unit_test(emphasis_of_markdown_is_escaped),
        cmocka_unit_test(a_paragraph_begins_no_heading_or_list),
        cmocka_unit_test(verbatim_lines_stay_in_their_block),
        cmocka_unit_test_setup_teardown(figures_of_markdown_are_files_beside_it, enter_scratch,
                                        remove_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
