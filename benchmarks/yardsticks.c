/* Two-class Gibbs chains in plain C, the references for the speed of the library's sampler.

   gibbs_naive_* is the textbook loop. points[starts[i] .. starts[i + 1]) are the forward and reverse
   neighbours of i; a point that is both is listed twice.

   gibbs_lists uses the algorithm and the tables of the library: slots[i] is the index of the
   threshold of point i for 64 random bits, and a changed label changes the slots of its neighbours. */

#include <math.h>
#include <stdint.h>

static inline uint64_t next_bits(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static inline double next_uniform(uint64_t *state)
{
    return (double)(next_bits(state) >> 11) * 0x1p-53;
}

/* The loop is compiled for two types of labels, because the faster one depends on machine and k. */
#define DEFINE_NAIVE(NAME, LABEL)                                                                  \
    void NAME(int n, double beta, int k, const int *starts, const int *points, LABEL *labels,      \
              int n_sweeps, uint64_t seed)                                                         \
    {                                                                                              \
        for (int sweep = 0; sweep < n_sweeps; sweep++) {                                           \
            for (int i = 0; i < n; i++) {                                                          \
                int ones = 0;                                                                      \
                for (int e = starts[i]; e < starts[i + 1]; e++)                                    \
                    ones += labels[points[e]];                                                     \
                int zeros = starts[i + 1] - starts[i] - ones;                                      \
                double weight0 = exp(beta / k * zeros);                                            \
                double weight1 = exp(beta / k * ones);                                             \
                labels[i] = next_uniform(&seed) * (weight0 + weight1) < weight1;                   \
            }                                                                                      \
        }                                                                                          \
    }

DEFINE_NAIVE(gibbs_naive_bytes, uint8_t)
DEFINE_NAIVE(gibbs_naive_ints, int)

void gibbs_lists(int n, const uint64_t *restrict table, const int *restrict starts,
                 const int *restrict points, uint8_t *restrict labels,
                 uint32_t *restrict slots, int n_sweeps, uint64_t seed)
{
    for (int sweep = 0; sweep < n_sweeps; sweep++) {
        for (int i = 0; i < n; i++) {
            uint8_t label = next_bits(&seed) < table[slots[i]];
            if (label != labels[i]) {
                labels[i] = label;
                uint32_t step = label ? 1 : -1;
                for (int e = starts[i]; e < starts[i + 1]; e++)
                    slots[points[e]] += step;
            }
        }
    }
}
