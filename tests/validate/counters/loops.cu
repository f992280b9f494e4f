// Loops that lanes leave at different turns and places: where do those that stay meet again?

// cutrace: break_in_one_side<<<4, 128>>>(out:i32[512], in:i32[4096]=random:71, 24)
__global__ void break_in_one_side(int *out, const int *in, int turns)
{
    unsigned state = threadIdx.x + blockIdx.x * blockDim.x;
    int sum = 0;
    for (int turn = 0; turn < turns; turn++) {
        for (int i = 0; i < 8; i++) sum += in[(state + i) & 4095];
        state = state * 1103515245u + 12345u;
        if (state & 0x10000) {
            sum ^= in[state >> 20];
            out[threadIdx.x + blockIdx.x * blockDim.x] = sum;
            if ((state >> 24) < 9) break;
            sum += in[(state >> 18) & 4095];
        } else {
            sum -= in[(state >> 19) & 4095];
        }
    }
    out[threadIdx.x + blockIdx.x * blockDim.x] = sum;
}

// cutrace: break_without_else<<<4, 128>>>(out:i32[512], in:i32[4096]=random:72, 24)
__global__ void break_without_else(int *out, const int *in, int turns)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned state = me * 2654435761u;
    int sum = 0;
    for (int turn = 0; turn < turns; turn++) {
        state = state * 1664525u + 1013904223u;
        int found = in[state >> 20];
        if (found & 1) {
            sum += in[found & 4095];
            if ((found & 60) == 60) break;
            sum ^= in[(found >> 3) & 4095];
        }
        sum += in[(me + turn) & 4095];
        out[me] = sum;
    }
    out[me] = sum + 1;
}

// cutrace: break_in_both_sides<<<4, 128>>>(out:i32[512], in:i32[4096]=random:73, 24)
__global__ void break_in_both_sides(int *out, const int *in, int turns)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned state = me * 747796405u + 7;
    int sum = 0;
    for (int turn = 0; turn < turns; turn++) {
        state = state * 1664525u + 1013904223u;
        if (state >> 31) {
            int a = in[(state >> 11) & 4095];
            if ((a & 31) == 3) { sum += 5; out[me] = a; break; }
            sum += in[a & 4095];
        } else {
            int b = in[(state >> 13) & 4095];
            if ((b & 31) == 4) { sum -= 7; break; }
            sum ^= in[(b >> 2) & 4095];
        }
        sum += in[(me + 3 * turn) & 4095];
    }
    out[me] = sum;
}

// cutrace: continue_or_break<<<4, 128>>>(out:i32[512], in:i32[4096]=random:74, 32)
__global__ void continue_or_break(int *out, const int *in, int turns)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned state = me * 2246822519u;
    int sum = 0, turn = 0;
    while (true) {
        turn++;
        state = state * 1664525u + 1013904223u;
        int value = in[state >> 20];
        if (value & 2) {
            sum += in[value & 4095];
            if (turn > turns) break;
            if (value & 4) continue;
            out[me] = sum;
        } else if (value & 8) {
            sum -= in[(value >> 4) & 4095];
            if ((value & 0x700) == 0x700) break;
        }
        sum ^= in[(me ^ turn) & 4095];
    }
    out[me] = sum;
}

// cutrace: return_inside<<<4, 128>>>(out:i32[512], in:i32[4096]=random:75, 24)
__global__ void return_inside(int *out, const int *in, int turns)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned state = me * 3266489917u;
    int sum = 0;
    for (int turn = 0; turn < turns; turn++) {
        state = state * 1664525u + 1013904223u;
        int value = in[state >> 20];
        if (value & 16) {
            sum += in[value & 4095];
            if ((value & 0xe00) == 0xe00) { out[me] = sum; return; }
            sum ^= in[(value >> 5) & 4095];
        } else {
            sum -= in[(value >> 6) & 4095];
        }
        sum += in[(me + 5 * turn) & 4095];
    }
    out[me] = sum + 3;
}

// cutrace: break_of_inner_loop<<<4, 128>>>(out:i32[512], in:i32[4096]=random:76, 6, 12)
__global__ void break_of_inner_loop(int *out, const int *in, int outer, int inner)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned state = me * 668265263u;
    int sum = 0;
    for (int i = 0; i < outer; i++) {
        for (int j = 0; j < inner; j++) {
            state = state * 1664525u + 1013904223u;
            int value = in[state >> 20];
            if (value & 1) {
                sum += in[value & 4095];
                if ((value & 6) == 6) break;
                sum ^= in[(value >> 7) & 4095];
            } else {
                sum -= in[(value >> 4) & 4095];
            }
            sum += in[(me + j) & 4095];
        }
        out[me] = sum;
        sum += in[(me + i * 7) & 4095];
    }
    out[me] = sum;
}

// cutrace: return_of_two_loops<<<4, 128>>>(out:i32[512], in:i32[4096]=random:77, 6, 12)
__global__ void return_of_two_loops(int *out, const int *in, int outer, int inner)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned state = me * 374761393u;
    int sum = 0;
    for (int i = 0; i < outer; i++) {
        for (int j = 0; j < inner; j++) {
            state = state * 1664525u + 1013904223u;
            int value = in[state >> 20];
            if (value & 1) {
                sum += in[value & 4095];
                if ((value & 0x1f0) == 0x1f0) { out[me] = -sum; return; }
                sum ^= in[(value >> 7) & 4095];
            } else {
                sum -= in[(value >> 4) & 4095];
            }
            sum += in[(me + j) & 4095];
        }
        sum += in[(me + i * 7) & 4095];
    }
    out[me] = sum;
}

// cutrace: both_loops_break<<<4, 128>>>(out:i32[512], in:i32[4096]=random:78, 8, 10)
__global__ void both_loops_break(int *out, const int *in, int outer, int inner)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned state = me * 2654435761u + 99;
    int sum = 0;
    for (int i = 0; i < outer; i++) {
        state = state * 1664525u + 1013904223u;
        if (state >> 31) {
            for (int j = 0; j < inner; j++) {
                int value = in[(state >> 17) + j & 4095];
                if (value & 1) {
                    sum += in[value & 4095];
                    if ((value & 6) == 6) break;
                    state += value;
                } else {
                    sum -= in[(value >> 4) & 4095];
                }
                sum += in[(me + j) & 4095];
            }
            if ((state & 0x700) == 0x300) break;
            sum += in[(me + 11 * i) & 4095];
        } else {
            sum ^= in[(state >> 9) & 4095];
        }
        sum += in[(me + i * 7) & 4095];
    }
    out[me] = sum;
}

// cutrace: jump_out_of_two<<<4, 128>>>(out:i32[512], in:i32[4096]=random:79, 8, 10)
__global__ void jump_out_of_two(int *out, const int *in, int outer, int inner)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned state = me * 2654435761u + 3;
    int sum = 0;
    for (int i = 0; i < outer; i++) {
        for (int j = 0; j < inner; j++) {
            state = state * 1664525u + 1013904223u;
            int value = in[state >> 20];
            if (value & 1) {
                sum += in[value & 4095];
                if ((value & 0x70) == 0x70) goto done;
                if ((value & 0x600) == 0x600) break;
                sum ^= in[(value >> 7) & 4095];
            } else {
                sum -= in[(value >> 4) & 4095];
            }
            sum += in[(me + j) & 4095];
        }
        sum += in[(me + i * 7) & 4095];
    }
    sum += in[me];
done:
    out[me] = sum;
}

// cutrace: switch_in_loop<<<4, 128>>>(out:i32[512], in:i32[4096]=random:80, 32)
__global__ void switch_in_loop(int *out, const int *in, int turns)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x, sum = 0;
    unsigned state = me * 2654435761u;
    bool on = true;
    for (int turn = 0; turn < turns && on; turn++) {
        state = state * 1664525u + 1013904223u;
        switch (state >> 29) {
        case 0: sum += in[(state >> 3) & 4095]; break;
        case 1: sum -= in[(state >> 4) & 4095]; out[me] = sum; break;
        case 2: sum ^= in[(state >> 5) & 4095]; on = sum & 3; break;
        case 3: sum += 2 * in[(state >> 6) & 4095]; break;
        case 4: sum ^= 3 * in[(state >> 7) & 4095]; break;
        default: sum += in[(state >> 8) & 4095] - 1;
        }
        sum += in[(me + turn) & 4095];
    }
    out[me] = sum;
}

// cutrace: switch_that_returns<<<4, 128>>>(out:i32[512], in:i32[4096]=random:81, 32)
__global__ void switch_that_returns(int *out, const int *in, int turns)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x, sum = 0;
    unsigned state = me * 2654435761u + 1;
    for (int turn = 0; turn < turns; turn++) {
        state = state * 1664525u + 1013904223u;
        switch (state >> 28) {
        case 0: sum += in[(state >> 3) & 4095]; break;
        case 1: sum -= in[(state >> 4) & 4095]; out[me] = sum; break;
        case 2: sum ^= in[(state >> 5) & 4095]; if (sum & 16) { out[me] = sum; return; } break;
        case 3: sum += 2 * in[(state >> 6) & 4095]; break;
        case 4: sum ^= 3 * in[(state >> 7) & 4095]; break;
        case 5: sum ^= 7 * in[(state >> 2) & 4095]; break;
        default: sum += in[(state >> 8) & 4095] - 1;
        }
        sum += in[(me + turn) & 4095];
    }
    out[me] = sum;
}

// cutrace: walk_of_a_tree<<<4, 128>>>(out:i32[512], key:i32[4096]=random:82, left:i32[4096]=random:83, 40)
__global__ void walk_of_a_tree(int *out, const int *key, const int *left, int most)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x, at = (me * 37) & 4095, steps = 0;
    int wanted = (me * 2654435761u) >> 8;
    while (steps < most) {
        int here = key[at] & 0xffffff;
        if (here > wanted) {
            int next = left[at] & 4095;
            if (next < 200) { out[me] = at; break; }
            at = (next + here) & 4095;
        } else {
            at = (at * 5 + left[(at + 1) & 4095]) & 4095;
            steps += (key[at] & 4) ? 1 : 2;
        }
        steps++;
    }
    out[me] = at + steps;
}

__device__ int probe(const int *in, unsigned &state, int most)
{
    int sum = 0;
    for (int i = 0; i < most; i++) {
        state = state * 1664525u + 1013904223u;
        int value = in[state >> 20];
        if (value & 32) {
            sum += in[value & 4095];
            if ((value & 0xc0) == 0xc0) return sum;
            sum ^= in[(value >> 8) & 4095];
        } else {
            sum -= in[(value >> 5) & 4095];
        }
    }
    return -sum;
}

// cutrace: search_by_function<<<4, 128>>>(out:i32[512], in:i32[4096]=random:84, 6)
__global__ void search_by_function(int *out, const int *in, int turns)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x, sum = 0;
    unsigned state = me * 2654435761u + 17;
    for (int turn = 0; turn < turns; turn++) {
        if ((state >> 8) & 1) sum += probe(in, state, 12);
        else { sum ^= in[(me + turn) & 4095]; state = state * 7 + 1; }
        sum += in[(me + 3 * turn) & 4095];
    }
    out[me] = sum;
}

// cutrace: leave_at_the_end<<<4, 128>>>(out:i32[512], in:i32[4096]=random:85)
__global__ void leave_at_the_end(int *out, const int *in)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x, sum = 0, value;
    unsigned state = me * 2654435761u + 29;
    do {
        state = state * 1664525u + 1013904223u;
        value = in[state >> 20];
        if (value & 1) {
            sum += in[value & 4095];
            if (sum & 64) { sum++; continue; }
            sum ^= in[(value >> 8) & 4095];
        } else {
            sum -= in[(value >> 5) & 4095];
            if ((sum & 0xf00) == 0xf00) break;
            out[me] = sum;
        }
        sum += in[me & 4095];
    } while ((value & 0x7000) != 0x7000);
    out[me] = sum;
}
