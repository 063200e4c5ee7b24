/* SPDX-License-Identifier: MIT */
/*
 * conformance-table.h from NVIDIA's own description of the instructions: CuTe's layouts (CUTLASS),
 * on the processor. Nothing of dt but the table is used, so that the emulator and its kernels
 * cannot share a mistake with this. Prints how many words agree; exit status 0 if all do.
 */
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include <cute/atom/copy_traits_sm75.hpp>
#include <cute/atom/mma_traits_sm80.hpp>
#include <cute/atom/mma_traits_sm90_gmma.hpp>
#include <cute/tensor.hpp>

#include "cuda/conformance-table.h"

using namespace cute;

namespace
{
constexpr int lanes = 32, threads = 128, side = 64; /* of a matrix in shared memory */

float number(int n)
{
    return (float)(n * n * 5 % 17 - 8 + n % 3 % 2);
}

template <class To> uint32_t bits_of(float x)
{
    To rounded(x);
    return rounded.raw();
}

template <class To> uint32_t pair_of(float lower, float upper)
{
    return bits_of<To>(lower) | bits_of<To>(upper) << 16;
}

uint32_t word_of(float x)
{
    uint32_t word;
    memcpy(&word, &x, sizeof word);
    return word;
}

uint32_t fold(uint32_t so_far, uint32_t word)
{
    return (so_far << 5 | so_far >> 27) + word;
}

std::vector<uint32_t> table; /* as it should be */

/* --- sm_80 ------------------------------------------------------------------------------------ */
/* Rows of 128 bits that lanes address, of which each gets registers of 32. */
template <class Traits> void load_matrices(bool backwards)
{
    typename Traits::DstLayout of{};
    for (int lane = 0; lane < lanes; lane++)
        for (int i = 0; i < 4; i++) {
            uint32_t word = 0;
            for (int half = 0; half < 2; half++) {
                int bit = (int)of(lane, 32 * i + 16 * half), row = bit / 128;
                int element = (backwards ? 31 - row : row) * 8 + bit % 128 / 16;
                word |= (uint32_t)element << 16 * half;
            }
            table.push_back(word);
        }
}

template <class Instruction> void multiply()
{
    typedef MMA_Traits<Instruction> traits;
    typename traits::ALayout a_of{};
    typename traits::BLayout b_of{};
    typename traits::CLayout c_of{};
    float a[16][16], b[8][16], c[16][8];
    for (int lane = 0; lane < lanes; lane++) {
        for (int v = 0; v < 8; v++)
            a[(int)a_of(lane, v) % 16][(int)a_of(lane, v) / 16] = number(8 * lane + v);
        for (int v = 0; v < 4; v++) {
            b[(int)b_of(lane, v) % 8][(int)b_of(lane, v) / 8] = number(300 + 4 * lane + v);
            c[(int)c_of(lane, v) % 16][(int)c_of(lane, v) / 16] = (float)(4 * lane + v) / 4;
        }
    }
    for (int lane = 0; lane < lanes; lane++)
        for (int v = 0; v < 4; v++) {
            int m = (int)c_of(lane, v) % 16, n = (int)c_of(lane, v) / 16;
            float sum = c[m][n];
            for (int k = 0; k < 16; k++)
                sum += a[m][k] * b[n][k];
            table.push_back(word_of(sum));
        }
}

/* cp.async: the first bytes are copied, those up to 16 are 0. */
void copy_words()
{
    for (int lane = 0; lane < lanes; lane++) {
        unsigned char bytes[16] = {};
        uint32_t source[4];
        for (int i = 0; i < 4; i++)
            source[i] = 0x01020304u * (uint32_t)((lane % 2 * 4 * lanes + 4 * lane + i) % 63 + 1);
        memcpy(bytes, source, lane % 4 ? 16 : (size_t)lane / 4);
        for (int i = 0; i < 4; i++) {
            uint32_t word;
            memcpy(&word, bytes + 4 * i, sizeof word);
            table.push_back(word);
        }
    }
}

void convert()
{
    for (int lane = 0; lane < lanes; lane++) {
        float x = (1.0f + (float)lane / 4096) * (lane % 2 ? -1.0f : 1.0f);
        float tiny = (float)(lane + 1) * 1.4901161193847656e-8f;
        table.push_back(pair_of<bfloat16_t>(x, 1.0f + (float)lane / 512));
        table.push_back(pair_of<half_t>(x, 1.0f + (float)lane / 8192));
        table.push_back(pair_of<half_t>(tiny, 65488.0f + 2.0f * (float)lane));
        table.push_back(pair_of<bfloat16_t>(std::exp2(-INFINITY), std::exp2(0.0f)));
    }
}

/* --- sm_90a ----------------------------------------------------------------------------------- */
/* The tensor that boxes are of: 72 channels, 2 heads, 100 rows, 2 sequences; 0 outside. */
float in_tensor(int channel, int head, int row, int sequence)
{
    return channel >= 72 || row >= 100
               ? 0.0f
               : number((((sequence * 100 + row) * 2 + head) * 72 + channel) % 9973);
}

/* A matrix of 64 x 64: values by row and column. */
struct matrix {
    float at[side][side];
};

matrix box_of(int channel, int head, int row, int sequence)
{
    matrix m;
    for (int r = 0; r < side; r++)
        for (int c = 0; c < side; c++)
            m.at[r][c] = in_tensor(channel + c, head, row + r, sequence);
    return m;
}

matrix numbers_from(int first)
{
    matrix m;
    for (int i = 0; i < side * side; i++)
        m.at[i / side][i % side] = number(first + i);
    return m;
}

/* Elements as they are in shared memory: rows of 128 bytes, swizzled. */
std::vector<uint16_t> stored(const matrix &m)
{
    auto place = as_position_independent_swizzle_layout(
        tile_to_shape(SM90::GMMA::Layout_K_SW128_Atom<uint16_t>{}, Shape<Int<side>, Int<side>>{}));
    std::vector<uint16_t> memory(side * side);
    for (int r = 0; r < side; r++)
        for (int c = 0; c < side; c++)
            memory[(size_t)place(r, c)] = (uint16_t)bits_of<bfloat16_t>(m.at[r][c]);
    return memory;
}

/* What wgmma finds in memory where the right operand has its columns in rows: of column n of 64 and
 * row k. */
matrix transposed(const matrix &m)
{
    auto place = as_position_independent_swizzle_layout(
        tile_to_shape(SM90::GMMA::Layout_MN_SW128_Atom<uint16_t>{}, Shape<Int<side>, Int<side>>{}));
    const std::vector<uint16_t> memory = stored(m);
    matrix found;
    for (int n = 0; n < side; n++)
        for (int k = 0; k < side; k++)
            found.at[n][k] = (float)bfloat16_t::bitcast(memory[(size_t)place(n, k)]);
    return found;
}

void fold_memory(const std::vector<uint16_t> &memory)
{
    for (int t = 0; t < threads; t++) {
        uint32_t folded = 0;
        for (size_t i = (size_t)t; i < memory.size() / 2; i += threads)
            folded = fold(folded, memory[2 * i] | (uint32_t)memory[2 * i + 1] << 16);
        table.push_back(folded);
    }
}

/* By thread: its sums of a product of 64 rows, whose element m, n is product(m, n), folded. */
template <class Layout, class Product>
std::vector<uint32_t> fold_product(Layout of, int values, Product product)
{
    std::vector<uint32_t> folded;
    for (int t = 0; t < threads; t++) {
        uint32_t word = 0;
        for (int v = 0; v < values; v++)
            word = fold(word, word_of(product((int)of(t, v) % 64, (int)of(t, v) / 64, t, v)));
        folded.push_back(word);
    }
    return folded;
}

void add_words(const std::vector<uint32_t> &words)
{
    table.insert(table.end(), words.begin(), words.end());
}

/* Rows m of left times rows n of right. */
float dot(const matrix &left, int m, const matrix &right, int n)
{
    float sum = 0;
    for (int k = 0; k < side; k++)
        sum += left.at[m][k] * right.at[n][k];
    return sum;
}

/* The left operand in registers: values of thread t from number(16 t + first) on. */
std::vector<float> held(int first)
{
    SM90::GMMA::ALayout_64x16 of{};
    std::vector<float> a(64 * 16);
    for (int t = 0; t < threads; t++)
        for (int v = 0; v < 8; v++)
            a[(size_t)of(t, v)] = number(16 * t + first + v);
    return a;
}

float dot_held(const std::vector<float> &a, int m, const matrix &columns, int n, int first_k)
{
    float sum = 0;
    for (int k = 0; k < 16; k++)
        sum += a[(size_t)(m + 64 * k)] * columns.at[n][first_k + k];
    return sum;
}

void judge_wgmma()
{
    const matrix boxes[4] = {box_of(0, 0, 3, 0), box_of(0, 1, 20, 1), box_of(0, 1, 84, 1),
                             box_of(64, 0, 0, 1)};
    const matrix numbers[2] = {numbers_from(0), numbers_from(side * side)};
    const matrix columns[2] = {transposed(numbers[0]), transposed(numbers[1])};
    const std::vector<float> a[2] = {held(0), held(8)};
    SM90::GMMA::CLayout_64x128 wide{};
    SM90::GMMA::CLayout_64x64 narrow{};
    std::vector<uint16_t> memory, plain;
    for (const matrix &box : boxes) {
        const std::vector<uint16_t> one = stored(box);
        memory.insert(memory.end(), one.begin(), one.end());
    }
    fold_memory(memory);
    add_words(fold_product(wide, 64, [&](int m, int n, int, int) {
        return dot(boxes[0], m, boxes[1 + n / side], n % side);
    }));
    add_words(fold_product(wide, 64, [&](int m, int n, int t, int v) {
        return (float)(v + 64 * t % 1024) + dot_held(a[0], m, columns[n / side], n % side, 0) +
               dot_held(a[1], m, columns[n / side], n % side, 16);
    }));
    for (int r = 0; r < side; r++)
        for (int c = 0; c < 16; c++)
            plain.push_back((uint16_t)bits_of<bfloat16_t>(in_tensor(64 + c, 1, 5 + r, 0)));
    fold_memory(plain);
    add_words(fold_product(narrow, 32,
                           [&](int m, int n, int, int) { return dot(boxes[0], m, boxes[1], n); }));
    add_words(fold_product(
        narrow, 32, [&](int m, int n, int, int) { return dot(numbers[0], m, numbers[1], n); }));
    add_words(fold_product(
        narrow, 32, [&](int m, int n, int, int) { return dot_held(a[0], m, columns[0], n, 0); }));
    fold_memory(stored(box_of(0, 1, 40, 1)));
    std::vector<uint32_t> both = fold_product(wide, 64, [&](int m, int n, int, int) {
        return dot(numbers[0], m, numbers[n / side], n % side);
    });
    const std::vector<uint32_t> other = fold_product(wide, 64, [&](int m, int n, int, int) {
        return dot(numbers[1], m, numbers[n / side], n % side);
    });
    for (size_t t = 0; t < both.size(); t++) {
        both[t] ^= other[t];
        both[t] = fold(both[t], both[t]);
    }
    add_words(both);
}
} // namespace

int main()
{
    const size_t count = sizeof conformance_table / sizeof *conformance_table;
    size_t agree = 0;
    load_matrices<Copy_Traits<SM75_U32x4_LDSM_N>>(false);
    load_matrices<Copy_Traits<SM75_U16x8_LDSM_T>>(true);
    multiply<SM80_16x8x16_F32BF16BF16F32_TN>();
    multiply<SM80_16x8x16_F32F16F16F32_TN>();
    copy_words();
    convert();
    judge_wgmma();
    if (table.size() != count) {
        printf("CuTe makes %zu words, the table has %zu\n", table.size(), count);
        return 1;
    }
    for (size_t i = 0; i < count; i++) {
        agree += table[i] == conformance_table[i];
        if (table[i] != conformance_table[i] && agree == i)
            printf("word %zu of section %zu: 0x%08x, not 0x%08x\n", i % 128, i / 128, table[i],
                   conformance_table[i]);
    }
    printf("CuTe: %zu of %zu words agree\n", agree, count);
    return agree < count;
}
