/* Textbook Swendsen-Wang sweep: one random number for every agreeing edge, union-find, new classes.

   neighbors[r * n + i] is the (r + 1)-th nearest neighbour of i. */

#include <math.h>
#include <stdint.h>

static uint64_t next_bits(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static double next_uniform(uint64_t *state)
{
    return (double)(next_bits(state) >> 11) * 0x1p-53;
}

static uint32_t find(uint32_t *roots, uint32_t i)
{
    while (roots[i] != i) {
        roots[i] = roots[roots[i]];
        i = roots[i];
    }
    return i;
}

void swendsen_wang_textbook(int n, int n_classes, double beta, int k, const uint32_t *neighbors,
                            uint8_t *labels, uint32_t *roots, int n_sweeps, uint64_t seed)
{
    double p = -expm1(-beta / k);
    for (int sweep = 0; sweep < n_sweeps; sweep++) {
        for (int i = 0; i < n; i++)
            roots[i] = i;
        for (int r = 0; r < k; r++) {
            for (int i = 0; i < n; i++) {
                uint32_t j = neighbors[(long)r * n + i];
                if (labels[i] == labels[j] && next_uniform(&seed) < p) {
                    uint32_t a = find(roots, i), b = find(roots, j);
                    if (a < b)
                        roots[b] = a;
                    else
                        roots[a] = b;
                }
            }
        }
        for (int i = 0; i < n; i++) {
            uint32_t root = find(roots, i);
            labels[i] = root == (uint32_t)i ? (uint8_t)(next_uniform(&seed) * n_classes)
                                            : labels[root];
        }
    }
}
