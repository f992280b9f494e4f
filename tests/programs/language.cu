// What C++ brings to kernels: templates over functors, structs passed and returned by value,
// recursion, and large switches.

struct Matrix {
    float m[2][2];
    int power;
};

__device__ __noinline__ Matrix multiply(Matrix a, Matrix b)
{
    Matrix c;
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
            c.m[i][j] = a.m[i][0] * b.m[0][j] + a.m[i][1] * b.m[1][j];
    c.power = a.power + b.power;
    return c;
}

__global__ void matrix_powers(float4 *out, int *powers, Matrix base)
{
    Matrix result = {{{1, 0}, {0, 1}}, 0};
    Matrix square = base;
    for (int e = threadIdx.x; e; e >>= 1) {
        if (e & 1)
            result = multiply(result, square);
        square = multiply(square, square);
    }
    out[threadIdx.x] =
        make_float4(result.m[0][0], result.m[0][1], result.m[1][0], result.m[1][1]);
    powers[threadIdx.x] = result.power;
}

struct Add {
    template <typename T>
    __device__ T operator()(T a, T b) const { return a + b; }
};

template <typename T>
struct Clamp {
    T low, high;
    __device__ T operator()(T a, T b) const
    {
        return a * b < low ? low : a * b > high ? high : a * b;
    }
};

template <typename T, typename Operation>
__global__ void zip(T *out, const T *a, const T *b, int n, Operation operation)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = operation(a[i], b[i]);
}

__device__ int ackermann(int m, int n)
{
    if (m == 0)
        return n + 1;
    if (n == 0)
        return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

__device__ int partition(int *data, int low, int high)
{
    int pivot = data[high], place = low;
    for (int i = low; i < high; ++i)
        if (data[i] < pivot) {
            int swap = data[i];
            data[i] = data[place];
            data[place++] = swap;
        }
    data[high] = data[place];
    data[place] = pivot;
    return place;
}

__device__ void quick_sort(int *data, int low, int high)
{
    if (low >= high)
        return;
    int middle = partition(data, low, high);
    quick_sort(data, low, middle - 1);
    quick_sort(data, middle + 1, high);
}

__global__ void recursion(int *values, int *data, int each)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    values[i] = ackermann(i % 3, i % 4);
    quick_sort(data + i * each, 0, each - 1);
}

struct Node {
    int key, left, right;
};

__device__ int count_below(const Node *nodes, int at, int limit)
{
    if (at < 0)
        return 0;
    int left = count_below(nodes, nodes[at].left, limit);
    if (nodes[at].key >= limit)
        return left;
    return left + 1 + count_below(nodes, nodes[at].right, limit);
}

__global__ void search_tree(int *out, const Node *nodes, int root)
{
    out[threadIdx.x] = count_below(nodes, root, threadIdx.x * 3);
}

__global__ void machine(int *out, const unsigned char *code, int length, int steps)
{
    int stack[8], top = 0, at = 0;
    int input = blockIdx.x * blockDim.x + threadIdx.x;
    stack[0] = input;
    for (int step = 0; step < steps && at < length; ++step) {
        unsigned char operation = code[at++];
        switch (operation) {
        case 0: stack[++top] = code[at++]; break;
        case 1: --top; stack[top] += stack[top + 1]; break;
        case 2: --top; stack[top] -= stack[top + 1]; break;
        case 3: --top; stack[top] *= stack[top + 1]; break;
        case 4: stack[top + 1] = stack[top]; ++top; break;
        case 5: { int s = stack[top]; stack[top] = stack[top - 1]; stack[top - 1] = s; break; }
        case 6: if (stack[top--]) at = code[at]; else ++at; break;
        case 7: stack[top] = stack[top] & 1; break;
        case 8: stack[top] >>= 1; break;
        case 9: stack[top] = -stack[top]; break;
        case 10: stack[top] = ~stack[top]; break;
        case 11: --top; break;
        default: at = length;
        }
    }
    out[input] = stack[top];
}

struct Mixed {
    signed char a, b;
    short c;
    int d;
    double e;
};

__device__ __noinline__ Mixed grown(Mixed m, signed char by, int *which)
{
    m.a += by;
    m.d *= 2;
    which[0] += m.b;
    return m;
}

struct Table {
    int values[64];
};

__device__ __noinline__ int smoothed(Table t, int i)
{
    t.values[i] += 3;
    return t.values[i / 2] + t.values[i];
}

__device__ __noinline__ int summed(const Table *t, int n)
{
    int sum = 0;
    for (int i = 0; i < n; ++i)
        sum += t->values[i];
    return sum;
}

__global__ void by_value(double *sums, int *picked, Mixed m, Table t)
{
    int i = threadIdx.x, counted = 0;
    Mixed g = grown(m, (signed char)i, &counted);
    sums[i] = g.a + g.b + g.c + g.d + g.e + counted;
    picked[i] = smoothed(t, i);
}

__global__ void by_reference(int *sums, const __grid_constant__ Table t)
{
    sums[threadIdx.x] = summed(&t, threadIdx.x);
}

typedef int (*Step)(int, int);

__device__ __noinline__ int plus(int a, int b) { return a + b; }
__device__ __noinline__ int minus(int a, int b) { return a - b; }
__device__ __noinline__ int times(int a, int b) { return a * b; }
__device__ __noinline__ int larger(int a, int b) { return a > b ? a : b; }

__device__ Step steps[] = {plus, minus, times, larger};

__global__ void fold(int *out, const int *codes, int length)
{
    int value = threadIdx.x;
    for (int i = 0; i < length; ++i)
        value = steps[codes[(i + threadIdx.x) % length]](value, i);
    out[threadIdx.x] = value;
}
