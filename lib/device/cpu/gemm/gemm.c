/* SPDX-License-Identifier: MIT */
/* Blocks of a product, as of Goto and van de Geijn (2008): a thread packs a block of B, which stays
 * in its L2 cache, and blocks of A, whose panels stream through the L1 cache. Several chunks of K
 * are packed at once; nodes of the sums' trees that later ones need are kept in memory. */
#include "device/cpu/gemm/gemm.h"
#include "device/cpu/panels.h"

#include <omp.h>

#define BLOCK_ROWS  (112 / DT_CPU_GEMM_ROWS * DT_CPU_GEMM_ROWS) /* of a packed block of A */
#define KEPT_ROWS   (12 * BLOCK_ROWS)                           /* whose nodes are kept */
#define BLOCK_OF_B  (1 << 20)                                   /* floats */
#define FEW_PANELS  4 /* of B at once, for few rows, so that they stay in the L1 or L2 cache */
#define A_OF_GROUPS (256 << 10) /* floats of A that are packed once for all blocks of B */

/* Rows a multiple of this many bytes apart share few sets of the L1 cache. */
#define SETS 2048

#define LINE  64                               /* bytes of a cache line */
#define LINES (DT_CPU_GEMM_COLUMNS * 4 / LINE) /* of a row of a panel */

/* What packing an element costs, in multiplications. */
#define COST_OF_ROWS       8
#define COST_OF_TRANSPOSED 16

/* The work of a thread, and its memory. */
struct worker {
    const struct dt_cpu_product *p;
    struct dt_cpu_area area;
    int64_t groups, columns, kept_rows; /* columns of a block of B */
    int64_t b_panel, a_block;           /* floats */
    bool packs_once;                    /* A of each group has its place */
    bool narrow;                        /* C has one vector of columns, or less */
    bool reads_rows;                    /* of A in place: with few columns, packing costs as much */
    float *a, *b, *own, *kept, *sums, *row, *wide;
    int64_t kept_step;
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t panels(int64_t n, int64_t size)
{
    return (n + size - 1) / size;
}

static struct dt_cpu_group group_at(const struct dt_cpu_product *p, int64_t number, int kept)
{
    struct dt_cpu_group g = {p->chunks + number * p->group, 0, 0, kept};
    g.count = least(p->group, p->count - number * p->group);
    for (int64_t i = 0; i < g.count; i++)
        g.depth += g.chunks[i].length;
    return g;
}

static int kept_after(const struct dt_cpu_group *g)
{
    int kept = g->kept;
    for (int64_t i = 0; i < g->count; i++)
        kept += (g->chunks[i].to == DT_CPU_NODE_KEPT) - g->chunks[i].adds_kept;
    return kept;
}

static bool in_place(const struct dt_cpu_product *p)
{
    return p->c->dtype == DT_DTYPE_F32;
}

/* Takes size floats from memory; with NULL, only counts. */
static float *take(float *memory, size_t *used, int64_t size)
{
    float *result = memory ? memory + *used : NULL;
    *used += (size_t)(size + 15) / 16 * 16;
    return result;
}

/* Returns the floats of memory needed. */
static size_t divide_memory(struct worker *w, float *memory)
{
    int64_t blocks = panels(least(w->kept_rows, w->area.rows), DT_CPU_GEMM_ROWS);
    size_t used = 0;
    w->kept_step = blocks * panels(w->columns, DT_CPU_GEMM_COLUMNS) * DT_CPU_GEMM_TILE;
    w->own = take(memory, &used, (DT_CPU_GEMM_GROUP + 1) * DT_CPU_GEMM_TILE);
    w->wide = take(memory, &used, DT_CPU_VECTOR * DT_CPU_CHUNK);
    w->row = take(memory, &used, w->columns + 16);
    w->a = take(memory, &used, w->packs_once ? w->groups * w->a_block : w->a_block);
    w->b = take(memory, &used, panels(w->columns, DT_CPU_GEMM_COLUMNS) * w->b_panel);
    w->sums = take(memory, &used, in_place(w->p) ? 0 : BLOCK_ROWS * w->columns);
    w->kept = take(memory, &used, w->p->kept * w->kept_step);
    return used;
}

static bool lies_well(const struct dt_cpu_product *p)
{
    const struct dt_tensor *a = p->first.a;
    return p->how->more_count == 0 && a->dtype == DT_DTYPE_F32 &&
           a->stride * (int64_t)sizeof(float) % SETS != 0;
}

static struct worker plan(const struct dt_cpu_product *p, const struct dt_cpu_area *area)
{
    struct worker w = {.p = p, .area = *area, .groups = panels(p->count, p->group)};
    int64_t depth = 0;
    for (int64_t i = 0; i < w.groups; i++) {
        int64_t next = group_at(p, i, 0).depth;
        depth = next > depth ? next : depth;
    }
    w.b_panel = depth * DT_CPU_GEMM_COLUMNS + 16;
    w.a_block = panels(least(area->rows, BLOCK_ROWS), DT_CPU_GEMM_ROWS) * DT_CPU_GEMM_A_PANEL;
    w.narrow = area->columns <= DT_CPU_VECTOR && !p->how->transpose_a && !p->first.b->panels;
    w.reads_rows = w.narrow && lies_well(p);
    w.packs_once = area->rows <= BLOCK_ROWS && w.groups * w.a_block <= A_OF_GROUPS;
    int64_t most = !w.packs_once ? BLOCK_OF_B / w.b_panel : p->how->transpose_b ? 1 : FEW_PANELS;
    w.columns = least(most, panels(area->columns, DT_CPU_GEMM_COLUMNS)) * DT_CPU_GEMM_COLUMNS;
    w.kept_rows = w.groups == 1 ? area->rows : KEPT_ROWS;
    return w;
}

/* A tile at the right edge: its columns of C are fewer than the kernel's. */
static void multiply_edge(const struct worker *w, const struct dt_cpu_group *g,
                          const struct dt_cpu_gemm_tile *whole, int rows, int64_t columns)
{
    struct dt_cpu_gemm_tile t = *whole;
    t.c = w->own + DT_CPU_GEMM_GROUP * DT_CPU_GEMM_TILE;
    t.stride = DT_CPU_GEMM_COLUMNS;
    t.accumulate = false;
    dt_cpu_gemm_tile(g, &t, rows, w->p->how->transpose_a);
    if (g->chunks[g->count - 1].to != DT_CPU_NODE_RESULT)
        return;
    for (int i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            float *c = whole->c + i * whole->stride + j, sum = t.c[i * t.stride + j];
            *c = whole->accumulate ? *c + sum : sum;
        }
}

/* Row of A, of which the block at packed is the i-th. */
static void locate_a(const struct worker *w, const struct dt_cpu_group *g, const float *packed,
                     int64_t row, int64_t i, struct dt_cpu_gemm_tile *t)
{
    const struct dt_tensor *a = w->p->first.a;
    t->a = w->reads_rows ? dt_cpu_at(a, row, g->chunks[0].k) : packed + i * DT_CPU_GEMM_A_STRIDE;
    t->a_step = w->reads_rows ? a->stride : w->narrow ? DT_CPU_GEMM_A_STRIDE : 0;
}

/* Panel j of B of a block. */
static void locate_b(const struct worker *w, const struct dt_cpu_group *g,
                     const struct dt_cpu_area *block, int64_t j, struct dt_cpu_gemm_tile *t)
{
    int64_t column = block->column + j * DT_CPU_GEMM_COLUMNS;
    const float *packed = w->b + j * w->b_panel;
    bool reads_in_place = dt_cpu_reads_in_place(w->p, column);
    t->b_step = DT_CPU_GEMM_COLUMNS;
    for (int64_t i = 0; i < g->count; packed += g->chunks[i++].length * DT_CPU_GEMM_COLUMNS) {
        t->b[i] = packed;
        if (reads_in_place) {
            struct dt_cpu_panel panel =
                dt_cpu_panel_of(dt_cpu_pair(w->p, g->chunks[i].pair).b, column);
            t->b_step = panel.height;
            t->b[i] = (const float *)panel.data + g->chunks[i].k * panel.height + column % DT_PANEL;
        }
    }
}

/* The last tiles of each panel of B prefetch a row each of A that the next block packs. Rows of a
 * transposed A are long, and the processor prefetches them. */
static int64_t count_next_rows(const struct worker *w, const struct dt_cpu_area *block)
{
    bool last = block->row + block->rows >= w->area.row + w->area.rows;
    int64_t across = panels(block->columns, DT_CPU_GEMM_COLUMNS);
    int64_t tiles = panels(block->rows, DT_CPU_GEMM_ROWS);
    return last || w->p->how->transpose_a ? 0 : least(panels(block->rows, across), tiles / 2);
}

/* The i-th of a number of tiles prefetches its share of panel j of B: where memory is slow, a tile
 * that did so for the others would wait for it. */
static void prefetch_b(const struct worker *w, const struct dt_cpu_group *g,
                       const struct dt_cpu_area *block, int64_t j, int64_t i, int64_t tiles,
                       struct dt_cpu_gemm_tile *t)
{
    const int64_t row = DT_CPU_GEMM_COLUMNS * (int64_t)sizeof(float);
    struct dt_cpu_gemm_tile next;
    locate_b(w, g, block, j, &next);
    if (next.b_step == DT_CPU_GEMM_COLUMNS) {
        t->next = (const char *)next.b[0] + i * (g->depth * row / tiles);
        t->next_step = panels(row, tiles);
    } else if (i < LINES) {
        t->next = (const char *)next.b[0] + i * LINE;
        t->next_step = next.b_step * (int64_t)sizeof(float);
    }
}

/* What a tile prefetches, the i-th one of panel j of B. */
static void prefetch(const struct worker *w, const struct dt_cpu_group *g,
                     const struct dt_cpu_area *block, int64_t i, int64_t j,
                     struct dt_cpu_gemm_tile *t)
{
    const struct dt_tensor *a = dt_cpu_pair(w->p, g->chunks[0].pair).a;
    int64_t rows = count_next_rows(w, block);
    int64_t tiles = panels(block->rows, DT_CPU_GEMM_ROWS) - rows;
    int64_t row = block->row + block->rows + j * rows + i - tiles;
    t->next = (const char *)t->b[0];
    t->next_step = 0;
    if (i >= tiles && row < w->area.row + w->area.rows) {
        t->next = dt_cpu_at(a, row, g->chunks[0].k);
        t->next_step = (int64_t)dt_dtype_size(a->dtype);
    } else if (i < tiles && (j + 1) * DT_CPU_GEMM_COLUMNS < block->columns) {
        prefetch_b(w, g, block, j + 1, i, tiles, t);
    }
}

/* The products of packed blocks, block: of C; first: the first row whose nodes are kept. */
static void multiply_block(const struct worker *w, const struct dt_cpu_group *g, const float *a,
                           const struct dt_cpu_area *block, int64_t first, float *sums,
                           int64_t stride)
{
    int64_t across = panels(block->columns, DT_CPU_GEMM_COLUMNS);
    struct dt_cpu_gemm_tile t = {.own = w->own,
                                 .kept_step = w->kept_step,
                                 .stride = stride,
                                 .accumulate = w->p->how->accumulate};
    for (int64_t j = 0; j < across; j++) {
        locate_b(w, g, block, j, &t);
        for (int64_t i = 0; i < block->rows; i += DT_CPU_GEMM_ROWS) {
            int64_t tile = (block->row - first + i) / DT_CPU_GEMM_ROWS * across + j;
            int64_t columns = block->columns - j * DT_CPU_GEMM_COLUMNS;
            int rows = (int)least(block->rows - i, DT_CPU_GEMM_ROWS);
            locate_a(w, g, a, block->row + i, i, &t);
            t.kept = w->kept + tile * DT_CPU_GEMM_TILE;
            t.c = sums + i * stride + j * DT_CPU_GEMM_COLUMNS;
            prefetch(w, g, block, i / DT_CPU_GEMM_ROWS, j, &t);
            if (columns < DT_CPU_GEMM_COLUMNS)
                multiply_edge(w, g, &t, rows, columns);
            else
                dt_cpu_gemm_tile(g, &t, rows, w->p->how->transpose_a);
        }
    }
}

/* A group's part of a block of C; after the last group, the block is finished. */
static void add_group(const struct worker *w, const struct dt_cpu_group *g, const float *a,
                      const struct dt_cpu_area *block, int64_t first)
{
    const struct dt_cpu_product *p = w->p;
    bool last = g->chunks[g->count - 1].to == DT_CPU_NODE_RESULT;
    int64_t stride = in_place(p) ? p->c->stride : block->columns;
    float *sums = in_place(p) ? dt_cpu_at(p->c, block->row, block->column) : w->sums;
    if (last && !in_place(p) && p->how->accumulate)
        dt_cpu_widen_block(p->c, block->row, block->rows, block->column, block->columns, sums);
    multiply_block(w, g, a, block, first, sums, stride);
    if (last)
        dt_cpu_finish(p, block, sums, stride, w->row);
}

/* Columns of one block of B, and rows whose nodes are kept. */
static void multiply_columns(const struct worker *w, const struct dt_cpu_area *area)
{
    int kept = 0;
    for (int64_t number = 0; number < w->groups; number++) {
        struct dt_cpu_group g = group_at(w->p, number, kept);
        kept = kept_after(&g);
        dt_cpu_pack_b(w->p, &g, area->column, area->columns, w->b, w->b_panel, w->wide);
        for (int64_t i = 0; i < area->rows; i += BLOCK_ROWS) {
            struct dt_cpu_area block = *area;
            float *a = w->packs_once ? w->a + number * w->a_block : w->a;
            block.row += i;
            block.rows = least(area->rows - i, BLOCK_ROWS);
            if (!w->reads_rows && (!w->packs_once || area->column == w->area.column))
                dt_cpu_pack_a(w->p, &g, block.row, block.rows, a);
            add_group(w, &g, a, &block, area->row);
        }
    }
}

static void work(struct dt_device *dev, const struct dt_cpu_product *p,
                 const struct dt_cpu_area *area)
{
    struct worker w = plan(p, area);
    divide_memory(&w, dt_cpu_scratch(dev, omp_get_thread_num(), divide_memory(&w, NULL)));
    for (int64_t j = 0; j < area->columns; j += w.columns)
        for (int64_t i = 0; i < area->rows; i += w.kept_rows) {
            struct dt_cpu_area part = {area->row + i, least(area->rows - i, w.kept_rows),
                                       area->column + j, least(area->columns - j, w.columns)};
            multiply_columns(&w, &part);
        }
}

/* The number of parts of the rows of C, so that the threads pack least; the other factor of threads
 * is that of the columns. */
static int64_t parts_of_rows(const struct dt_cpu_product *p, int64_t threads)
{
    double best_cost = 0, a = p->how->transpose_a ? COST_OF_TRANSPOSED : COST_OF_ROWS;
    double b = p->how->transpose_b ? COST_OF_TRANSPOSED : COST_OF_ROWS;
    int64_t best = 0;
    for (int64_t parts = 1; parts <= threads; parts++) {
        if (threads % parts)
            continue;
        int64_t rows = panels(panels(p->c->rows, DT_CPU_GEMM_ROWS), parts) * DT_CPU_GEMM_ROWS;
        int64_t columns = panels(panels(p->c->columns, DT_CPU_GEMM_COLUMNS), threads / parts) *
                          DT_CPU_GEMM_COLUMNS;
        double cost = (double)rows * (double)columns + a * (double)rows + b * (double)columns;
        if (best == 0 || cost < best_cost)
            best = parts, best_cost = cost;
    }
    return best;
}

void dt_cpu_gemm(struct dt_device *dev, const struct dt_cpu_product *p)
{
    bool small =
        p->c->rows * p->c->columns * (p->chunks[0].length + 1) * p->count < DT_CPU_SMALL_WORK;
#pragma omp parallel num_threads(dev->threads) if (!small)
    {
        int64_t threads = omp_get_num_threads(), number = omp_get_thread_num();
        int64_t down = parts_of_rows(p, threads), across = threads / down;
        struct dt_cpu_area area;
        int64_t row_end, column_end;
        dt_cpu_share(p->c->rows, DT_CPU_GEMM_ROWS, number / across, down, &area.row, &row_end);
        dt_cpu_share(p->c->columns, DT_CPU_GEMM_COLUMNS, number % across, across, &area.column,
                     &column_end);
        area.rows = row_end - area.row;
        area.columns = column_end - area.column;
        if (area.rows > 0 && area.columns > 0)
            work(dev, p, &area);
    }
}
