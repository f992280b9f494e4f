// The least that a recording of two of the bench's kernels does, on one core: every warp's lanes run
// in step, each access of a warp becomes a row of the trace's columns, its pattern looked up by
// content among those before. Nothing is checked, compressed or written to disk, and the memory for
// rows is there before. All arrays are given in the order of the kernels' arguments.

#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr int LANES = 32, BLOCK = 256;
constexpr int64_t MOST_ROWS = 1 << 20, MOST_PATTERNS = 1 << 18, PLACES = 1 << 20;

struct Pattern {
    uint32_t active;
    int32_t offsets[LANES];
};

struct Recorder {
    std::vector<uint64_t> block, base;
    std::vector<uint32_t> step, pc, pattern;
    std::vector<uint16_t> warp;
    std::vector<uint8_t> part, space;
    std::vector<Pattern> patterns;
    std::vector<int32_t> places;
    int64_t rows = 0, known = 0;

    Recorder() : block(MOST_ROWS), base(MOST_ROWS), step(MOST_ROWS), pc(MOST_ROWS),
                 pattern(MOST_ROWS), warp(MOST_ROWS), part(MOST_ROWS), space(MOST_ROWS),
                 patterns(MOST_PATTERNS), places(PLACES) {}

    void begin_launch()
    {
        rows = known = 0;
        std::memset(places.data(), 0, PLACES * sizeof(int32_t));
    }

    uint32_t find(const Pattern &one)
    {
        uint64_t mixed = one.active * 0x9E3779B97F4A7C15;
        for (int lane = 0; lane < LANES; ++lane)
            mixed ^= uint32_t(one.offsets[lane]) * (0x2545F4914F6CDD1D + 2 * lane);
        int64_t at = (mixed * 0xFF51AFD7ED558CCD >> 29) & (PLACES - 1);
        for (; places[at]; at = (at + 1) & (PLACES - 1))
            if (!std::memcmp(&patterns[places[at] - 1], &one, sizeof one))
                return places[at] - 1;
        patterns[known] = one;
        places[at] = ++known;
        return known - 1;
    }

    // Lanes `active` of a warp of consecutive threads reach 4 bytes each, at these addresses.
    void access(int64_t number, uint32_t instruction, uint32_t active, const int32_t *const *to)
    {
        Pattern one = {active, {}};
        const char *lowest = reinterpret_cast<const char *>(to[__builtin_ctz(active)]);
        for (uint32_t rest = active; rest; rest &= rest - 1) {
            int lane = __builtin_ctz(rest);
            one.offsets[lane] = int32_t(reinterpret_cast<const char *>(to[lane]) - lowest);
        }
        block[rows] = number / (BLOCK / LANES);
        warp[rows] = number % (BLOCK / LANES);
        step[rows] = uint32_t(rows);
        pc[rows] = instruction;
        base[rows] = reinterpret_cast<uint64_t>(lowest);
        pattern[rows++] = find(one);
    }
};

Recorder &recorder()
{
    static Recorder one;
    return one;
}

}  // namespace

extern "C" {

int64_t recorded_sparse_product(int32_t *y, const int32_t *start, const int32_t *column,
                                const int32_t *value, const int32_t *x, int rows)
{
    Recorder &to = recorder();
    to.begin_launch();
    const int32_t *at[LANES] = {};
    for (int first = 0; first < rows; first += LANES) {
        int64_t number = first / LANES;
        int k[LANES], end[LANES];
        float sum[LANES] = {};
        uint32_t all = rows - first < LANES ? (1u << (rows - first)) - 1 : ~0u, active = 0;
        auto each = [&](uint32_t lanes, uint32_t pc, auto address, auto use) {
            for (uint32_t rest = lanes; rest; rest &= rest - 1)
                at[__builtin_ctz(rest)] = address(__builtin_ctz(rest));
            to.access(number, pc, lanes, at);
            for (uint32_t rest = lanes; rest; rest &= rest - 1)
                use(__builtin_ctz(rest));
        };
        each(all, 0, [&](int i) { return start + first + i; }, [&](int i) { k[i] = *at[i]; });
        each(all, 1, [&](int i) { return start + first + i + 1; }, [&](int i) { end[i] = *at[i]; });
        for (int i = 0; i < LANES; ++i)
            active |= (all >> i & 1 && k[i] < end[i]) << i;
        while (active) {
            int place[LANES];
            float factor[LANES];
            each(active, 2, [&](int i) { return column + k[i]; }, [&](int i) { place[i] = *at[i]; });
            each(active, 3, [&](int i) { return value + k[i]; },
                 [&](int i) { std::memcpy(&factor[i], at[i], 4); });
            each(active, 4, [&](int i) { return x + place[i]; }, [&](int i) {
                float other;
                std::memcpy(&other, at[i], 4);
                sum[i] += factor[i] * other;
                active &= ~(uint32_t(++k[i] == end[i]) << i);
            });
        }
        each(all, 5, [&](int i) { return y + first + i; },
             [&](int i) { std::memcpy(y + first + i, &sum[i], 4); });
    }
    return to.rows;
}

int64_t recorded_search(int32_t *levels, const int32_t *start, const int32_t *edges, int nodes,
                        int level)
{
    Recorder &to = recorder();
    to.begin_launch();
    const int32_t *at[LANES] = {};
    for (int first = 0; first < nodes; first += LANES) {
        int64_t number = first / LANES;
        int k[LANES], end[LANES], edge[LANES];
        uint32_t all = nodes - first < LANES ? (1u << (nodes - first)) - 1 : ~0u, active = 0;
        auto each = [&](uint32_t lanes, uint32_t pc, auto address, auto use) {
            if (!lanes)
                return;
            for (uint32_t rest = lanes; rest; rest &= rest - 1)
                at[__builtin_ctz(rest)] = address(__builtin_ctz(rest));
            to.access(number, pc, lanes, at);
            for (uint32_t rest = lanes; rest; rest &= rest - 1)
                use(__builtin_ctz(rest));
        };
        each(all, 0, [&](int i) { return levels + first + i; },
             [&](int i) { active |= uint32_t(*at[i] == level) << i; });
        each(active, 1, [&](int i) { return start + first + i; }, [&](int i) { k[i] = *at[i]; });
        each(active, 2, [&](int i) { return start + first + i + 1; }, [&](int i) {
            end[i] = *at[i];
            active &= ~(uint32_t(k[i] >= end[i]) << i);
        });
        while (active) {
            uint32_t fresh = 0;
            each(active, 3, [&](int i) { return edges + k[i]; }, [&](int i) { edge[i] = *at[i]; });
            each(active, 4, [&](int i) { return levels + edge[i]; },
                 [&](int i) { fresh |= uint32_t(*at[i] < 0) << i; });
            each(fresh, 5, [&](int i) { return edges + k[i]; }, [&](int i) { edge[i] = *at[i]; });
            each(fresh, 6, [&](int i) { return levels + edge[i]; },
                 [&](int i) { levels[edge[i]] = level + 1; });
            for (uint32_t rest = active; rest; rest &= rest - 1) {
                int i = __builtin_ctz(rest);
                active &= ~(uint32_t(++k[i] >= end[i]) << i);
            }
        }
    }
    return to.rows;
}
}
