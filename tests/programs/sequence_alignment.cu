// Dynamic programs over anti-diagonals: Needleman and Wunsch's alignment by tiles, and the longest
// common subsequence of two strings in one block.

#define TILE 16

__global__ void align_tiles(int *scores, const int *similar, int columns, int penalty,
                            int diagonal, int first)
{
    __shared__ int tile[TILE + 1][TILE + 1];
    __shared__ int match[TILE][TILE];
    int t = threadIdx.x;
    int tile_x = first + blockIdx.x, tile_y = diagonal - tile_x;
    int corner = columns * TILE * tile_y + TILE * tile_x;
    for (int row = 0; row < TILE; ++row)
        match[row][t] = similar[corner + columns * (row + 1) + t + 1];
    tile[t + 1][0] = scores[corner + columns * (t + 1)];
    tile[0][t + 1] = scores[corner + t + 1];
    if (t == 0)
        tile[0][0] = scores[corner];
    __syncthreads();
    for (int step = 0; step < 2 * TILE - 1; ++step) {
        int x = step < TILE ? t : t + step - TILE + 1;
        int y = step - x;
        if (x < TILE && y >= 0 && y < TILE) {
            int best = max(tile[y][x + 1], tile[y + 1][x]) - penalty;
            tile[y + 1][x + 1] = max(best, tile[y][x] + match[y][x]);
        }
        __syncthreads();
    }
    for (int row = 0; row < TILE; ++row)
        scores[corner + columns * (row + 1) + t + 1] = tile[row + 1][t + 1];
}

__global__ void common_subsequence(int *length, const char *a, const char *b, int n)
{
    extern __shared__ short rows[];
    short *before = rows, *last = rows + n + 1, *now = rows + 2 * (n + 1);
    int t = threadIdx.x;
    for (int i = t; i < 3 * (n + 1); i += blockDim.x)
        rows[i] = 0;
    __syncthreads();
    for (int diagonal = 2; diagonal <= 2 * n; ++diagonal) {
        for (int i = t + 1; i <= n; i += blockDim.x) {
            int j = diagonal - i;
            if (j >= 1 && j <= n)
                now[i] = a[i - 1] == b[j - 1] ? before[i - 1] + 1 : max(last[i - 1], last[i]);
            else
                now[i] = 0;
        }
        __syncthreads();
        short *spare = before;
        before = last;
        last = now;
        now = spare;
    }
    if (t == 0)
        *length = last[n];
}
