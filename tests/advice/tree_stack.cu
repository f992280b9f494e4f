// Visits in a tree. Bad: each thread has a stack. Good: it needs none.
// expect: local_array on gtx580 gtx980 h200
// cutrace: stack<<<4, 64>>>(out:i32[256], left:i32[64]=arange)
// cutrace: stackless<<<4, 64>>>(out, left)

__global__ void stack(int *out, const int *left)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, st[16], top = 0, visits = 0;
    st[top++] = 0;
    while (top) {
        int n = st[--top];
        ++visits;
        if (2 * n + 2 < 31 && ((i + left[n]) & 1)) {
            st[top++] = 2 * n + 1;
            st[top++] = 2 * n + 2;
        } else if (2 * n + 1 < 31)
            st[top++] = 2 * n + 1;
    }
    out[i] = visits;
}

__global__ void stackless(int *out, const int *left)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, visits = 0;
    for (int n = 0; n < 31; n = 2 * n + 1 + ((i + left[n]) & 1))
        ++visits;
    out[i] = visits;
}
