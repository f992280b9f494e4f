// Strings and digests: every position at once, Knuth, Morris and Pratt's search with its table in
// constant memory, CRC-32 by tables, SHA-256, and a parser of numbers that throws out bad lines.

__global__ void naive_search(int *hits, const char *text, int length, const char *pattern, int m)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > length - m)
        return;
    int k = 0;
    while (k < m && text[i + k] == pattern[k])
        ++k;
    hits[i] = k == m;
}

__constant__ int failure[32];
__constant__ char needle[32];

__global__ void knuth_morris_pratt(int *counts, const char *text, int length, int m, int piece)
{
    int start = (blockIdx.x * blockDim.x + threadIdx.x) * piece;
    int end = min(start + piece + m - 1, length);
    int matched = 0, count = 0;
    for (int i = start; i < end; ++i) {
        while (matched > 0 && needle[matched] != text[i])
            matched = failure[matched - 1];
        if (needle[matched] == text[i])
            ++matched;
        if (matched == m) {
            ++count;
            matched = failure[matched - 1];
        }
    }
    counts[blockIdx.x * blockDim.x + threadIdx.x] = count;
}

__global__ void crc32(unsigned *out, const unsigned char *data, int each)
{
    __shared__ unsigned table[256];
    for (unsigned byte = threadIdx.x; byte < 256; byte += blockDim.x) {
        unsigned value = byte;
        for (int bit = 0; bit < 8; ++bit)
            value = value & 1 ? 0xedb88320u ^ value >> 1 : value >> 1;
        table[byte] = value;
    }
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned crc = 0xffffffffu;
    for (int k = 0; k < each; ++k)
        crc = table[(crc ^ data[i * each + k]) & 255] ^ crc >> 8;
    out[i] = ~crc;
}

__constant__ unsigned round_constants[64];

__device__ __forceinline__ unsigned rotate(unsigned x, int n) { return __funnelshift_r(x, x, n); }

__global__ void sha256(unsigned *digests, const unsigned *messages)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned w[64];
    for (int k = 0; k < 8; ++k)
        w[k] = __byte_perm(messages[i * 8 + k], 0, 0x0123);
    w[8] = 0x80000000u;
    for (int k = 9; k < 15; ++k)
        w[k] = 0;
    w[15] = 256;
    for (int k = 16; k < 64; ++k) {
        unsigned a = w[k - 15], b = w[k - 2];
        unsigned s0 = rotate(a, 7) ^ rotate(a, 18) ^ a >> 3;
        unsigned s1 = rotate(b, 17) ^ rotate(b, 19) ^ b >> 10;
        w[k] = w[k - 16] + s0 + w[k - 7] + s1;
    }
    unsigned start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    unsigned s[8];
    for (int k = 0; k < 8; ++k)
        s[k] = start[k];
    for (int k = 0; k < 64; ++k) {
        unsigned e = s[4], a = s[0];
        unsigned t1 = s[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25))
            + ((e & s[5]) ^ (~e & s[6])) + round_constants[k] + w[k];
        unsigned t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22))
            + ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
        for (int m = 7; m > 0; --m)
            s[m] = s[m - 1];
        s[4] += t1;
        s[0] = t1 + t2;
    }
    for (int k = 0; k < 8; ++k)
        digests[i * 8 + k] = s[k] + start[k];
}

__global__ void read_numbers(long long *values, const char *text, const int *starts, int lines)
{
    int line = blockIdx.x * blockDim.x + threadIdx.x;
    if (line >= lines)
        return;
    long long value = 0;
    bool negative = false, good = false;
    for (int at = starts[line];; ++at) {
        char c = text[at];
        if (c == '\n')
            break;
        if (c == '-' && !good && !negative) {
            negative = true;
            continue;
        }
        if (c < '0' || c > '9') {
            good = false;
            break;
        }
        value = value * 10 + (c - '0');
        good = true;
    }
    values[line] = good ? (negative ? -value : value) : -1;
}
