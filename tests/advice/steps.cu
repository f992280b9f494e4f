// Add numbers to a state. Bad: a launch for each, which takes hardly longer than an empty one. Good:
// one launch for all of them.
// expect: tiny_launches on h100 h200
// cutrace: badStep<<<1, 32>>>(state:i32[32]=zeros, 1)
// cutrace: goodSteps<<<1, 32>>>(state, 17)
// cutrace: badStep<<<1, 32>>>(state, 2)
// cutrace: badStep<<<1, 32>>>(state, 3)
// cutrace: badStep<<<1, 32>>>(state, 4)
// cutrace: badStep<<<1, 32>>>(state, 5)
// cutrace: badStep<<<1, 32>>>(state, 6)
// cutrace: badStep<<<1, 32>>>(state, 7)
// cutrace: badStep<<<1, 32>>>(state, 8)
// cutrace: badStep<<<1, 32>>>(state, 9)
// cutrace: badStep<<<1, 32>>>(state, 10)
// cutrace: badStep<<<1, 32>>>(state, 11)
// cutrace: badStep<<<1, 32>>>(state, 12)
// cutrace: badStep<<<1, 32>>>(state, 13)
// cutrace: badStep<<<1, 32>>>(state, 14)
// cutrace: badStep<<<1, 32>>>(state, 15)
// cutrace: badStep<<<1, 32>>>(state, 16)
// cutrace: badStep<<<1, 32>>>(state, 17)

__global__ void badStep(int *state, int number) { state[threadIdx.x] += number; }

__global__ void goodSteps(int *state, int last)
{
    int sum = state[threadIdx.x];
    for (int number = 1; number <= last; number++)
        sum += number;
    state[threadIdx.x] = sum;
}
