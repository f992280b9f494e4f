// Branches some lanes of which go another way: return, continue, goto, conditions of several parts.

// cutrace: return_in_one_side<<<4, 128>>>(out:i32[512], in:i32[4096]=random:101)
__global__ void return_in_one_side(int *out, const int *in)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x, sum = 0;
    int v = in[me];
    if (v & 1) {
        sum += in[v & 4095];
        if (sum & 2) {
            out[me] = 1;
            return;
        }
        sum ^= in[(v >> 3) & 4095];
    } else {
        sum -= in[(v >> 5) & 4095];
    }
    out[sum & 511] = in[(v >> 7) & 4095];
}

// cutrace: both_or_else<<<4, 128>>>(out:i32[512], in:i32[4096]=random:102)
__global__ void both_or_else(int *out, const int *in)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x, sum = 0;
    int v = in[me];
    if ((v & 1) && (in[v & 4095] & 2)) {
        sum += in[(v >> 4) & 4095];
        out[(v >> 3) & 511] = sum;
    } else {
        sum -= in[(v >> 5) & 4095];
        out[(v >> 2) & 511] = sum + 1;
    }
    out[sum & 511] = in[(v >> 7) & 4095];
}

// cutrace: either_or_else<<<4, 128>>>(out:i32[512], in:i32[4096]=random:103)
__global__ void either_or_else(int *out, const int *in)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x, sum = 0;
    int v = in[me];
    if ((v & 1) || (in[v & 4095] & 2)) {
        sum += in[(v >> 4) & 4095];
        out[(v >> 3) & 511] = sum;
    } else {
        sum -= in[(v >> 5) & 4095];
        out[(v >> 2) & 511] = sum + 1;
    }
    out[sum & 511] = in[(v >> 7) & 4095];
}

// cutrace: both_without_else<<<4, 128>>>(out:i32[512], in:i32[4096]=random:104)
__global__ void both_without_else(int *out, const int *in)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x, sum = 0;
    int v = in[me];
    if ((v & 1) && (in[v & 4095] & 2)) {
        sum += in[(v >> 4) & 4095];
        out[(v >> 3) & 511] = sum;
    }
    out[sum & 511] = in[(v >> 7) & 4095];
}

// cutrace: jump_past_the_tail<<<4, 128>>>(out:i32[512], in:i32[4096]=random:105)
__global__ void jump_past_the_tail(int *out, const int *in)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x, sum = 0;
    int v = in[me];
    if (v & 1) {
        sum += in[v & 4095];
        if (sum & 2) goto l2;
        sum ^= in[(v >> 3) & 4095];
    } else {
        sum -= in[(v >> 5) & 4095];
    }
    sum += in[(sum >> 2) & 4095];
    out[sum & 511] = sum;
l2:
    out[sum & 511] = in[(v >> 7) & 4095];
}

// cutrace: two_jumps<<<4, 128>>>(out:i32[512], in:i32[4096]=random:106)
__global__ void two_jumps(int *out, const int *in)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x, sum = 0;
    int v = in[me];
    if (v & 1) {
        sum += in[v & 4095];
        if (sum & 2) goto l2;
        sum ^= in[(v >> 3) & 4095];
        if (sum & 4) goto l3;
        sum += in[(v >> 6) & 4095];
    } else {
        sum -= in[(v >> 5) & 4095];
    }
    sum += in[(sum >> 2) & 4095];
    out[sum & 511] = sum;
l2:
    sum += in[(sum >> 3) & 4095];
    out[sum & 511] = sum;
l3:
    out[sum & 511] = in[(v >> 7) & 4095];
}

// cutrace: continue_before_else_if<<<4, 128>>>(out:i32[512], in:i32[4096]=random:107, 16)
__global__ void continue_before_else_if(int *out, const int *in, int n)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x, sum = 0;
    for (int i = 0; i < n; i++) {
        int v = in[(me + i) & 4095];
        if (v & 1) {
            sum += in[v & 4095];
            if (sum & 2) continue;
            sum ^= in[(v >> 3) & 4095];
        } else if (v & 4) {
            sum -= in[(v >> 5) & 4095];
        }
        sum += in[(sum >> 2) & 4095];
        out[sum & 511] = sum;
    }
    out[me] = sum;
}

// cutrace: continue_in_one_side<<<4, 128>>>(out:i32[512], in:i32[4096]=random:108, 16)
__global__ void continue_in_one_side(int *out, const int *in, int n)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x, sum = 0;
    for (int i = 0; i < n; i++) {
        int v = in[(me + i) & 4095];
        if (v & 1) {
            sum += in[v & 4095];
            if (sum & 2) continue;
            sum ^= in[(v >> 3) & 4095];
        } else {
            sum -= in[(v >> 5) & 4095];
        }
        sum += in[(sum >> 2) & 4095];
        out[sum & 511] = sum;
    }
    out[me] = sum;
}

// cutrace: return_in_both_sides<<<4, 128>>>(out:i32[512], in:i32[4096]=random:109)
__global__ void return_in_both_sides(int *out, const int *in)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x, sum = 0;
    int v = in[me];
    if (v & 1) {
        sum += in[v & 4095];
        if (sum & 2) return;
        sum ^= in[(v >> 3) & 4095];
    } else {
        sum -= in[(v >> 5) & 4095];
        if (sum & 4) {
            out[me] = 9;
            return;
        }
        sum += in[(v >> 9) & 4095];
    }
    out[sum & 511] = in[(v >> 7) & 4095];
}

// cutrace: break_of_a_chain<<<4, 128>>>(out:i32[512], in:i32[4096]=random:110)
__global__ void break_of_a_chain(int *out, const int *in)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x, sum = 0;
    int v = in[me];
    do {
        if (v & 1) {
            sum += in[v & 4095];
            if (sum & 2) break;
            sum += in[(v >> 2) & 4095];
        } else
            sum ^= in[(v >> 3) & 4095];
        if (v & 8) {
            sum += in[(v >> 4) & 4095];
            if (sum & 2) break;
            sum += in[(v >> 5) & 4095];
        } else
            sum ^= in[(v >> 6) & 4095];
        if (v & 64) {
            sum += in[(v >> 7) & 4095];
            if (sum & 2) break;
            sum += in[(v >> 8) & 4095];
        } else
            sum ^= in[(v >> 9) & 4095];
    } while (0);
    out[sum & 511] = in[(v >> 7) & 4095];
}

// cutrace: fall_through<<<4, 128>>>(out:i32[512], in:i32[4096]=random:111)
__global__ void fall_through(int *out, const int *in)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x, sum = 0;
    int v = in[me];
    switch (v & 7) {
    case 0: sum += in[(v >> 2) & 4095];
    case 1: sum ^= in[(v >> 3) & 4095];
    case 2: sum -= in[(v >> 4) & 4095]; break;
    case 3: sum += in[(v >> 5) & 4095];
    case 4: sum *= in[(v >> 6) & 4095]; break;
    default: sum = 3;
    }
    out[sum & 511] = in[(v >> 7) & 4095];
}

// cutrace: two_ways_out<<<4, 128>>>(out:i32[512], in:i32[4096]=random:112, 16)
__global__ void two_ways_out(int *out, const int *in, int n)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x, sum = 0;
    unsigned s = me * 2654435761u;
    int i = me & 7;
    while (true) {
        int v = in[(i + s) & 4095];
        s = s * 1664525u + v;
        if ((v & 7) == 1) {
            sum += in[s >> 20];
            out[sum & 511] = 5;
            sum ^= in[sum & 4095];
            break;
        }
        i++;
        if (i > n + (v & 15)) {
            sum -= in[s >> 21];
            out[sum & 511] = 6;
            sum += in[(sum >> 2) & 4095];
            break;
        }
        out[i & 511] = v;
    }
    out[sum & 511] = in[(sum >> 20) & 4095];
}

// cutrace: return_of_a_search<<<4, 128>>>(out:i32[512], in:i32[4096]=random:113, 16)
__global__ void return_of_a_search(int *out, const int *in, int n)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x, sum = 0;
    unsigned s = me * 2654435761u;
    for (int i = me & 7; i < n + (s & 15); i++) {
        int v = in[(i + s) & 4095];
        s = s * 1664525u + v;
        if ((v & 7) == 1) {
            sum += in[s >> 20];
            out[sum & 511] = 5;
            sum ^= in[sum & 4095];
            out[(sum >> 3) & 511] = sum;
            return;
        }
        out[i & 511] = v;
    }
    out[sum & 511] = in[(sum + s) >> 20];
}

// cutrace: search_in_one_side<<<4, 128>>>(out:i32[512], in:i32[4096]=random:114, 16)
__global__ void search_in_one_side(int *out, const int *in, int n)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x, sum = 0;
    unsigned s = me * 2654435761u;
    int v = in[me];
    if (v & 1) {
        for (int i = me & 7; i < n + (s & 15); i++) {
            int v = in[(i + s) & 4095];
            s = s * 1664525u + v;
            if ((v & 7) == 1) return;
            out[i & 511] = v;
        }
        sum += in[(v >> 4) & 4095];
    } else
        sum -= in[(v >> 5) & 4095];
    out[sum & 511] = in[(sum + s) >> 20];
}

// cutrace: jump_to_the_next_turn<<<4, 128>>>(out:i32[512], in:i32[4096]=random:115, 16)
__global__ void jump_to_the_next_turn(int *out, const int *in, int n)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x, sum = 0;
    unsigned s = me * 2654435761u;
    for (int j = 0; j < n; j++) {
        int k = in[(me + j) & 4095];
        if (k & 1) {
            for (int i = me & 7; i < n + (s & 15); i++) {
                int v = in[(i + s) & 4095];
                s = s * 1664525u + v;
                if ((v & 7) == 1) goto next;
                out[i & 511] = v;
            }
            sum += in[(s >> 4) & 4095];
            if (sum & 1) break;
            sum ^= in[(s >> 7) & 4095];
        } else
            sum -= in[(s >> 5) & 4095];
        out[sum & 511] = in[(sum + s) >> 20];
    next:
        sum += in[(s >> 9) & 4095];
    }
    out[sum & 511] = 1;
}

// cutrace: two_jumps_and_an_if<<<4, 128>>>(out:i32[512], in:i32[4096]=random:116)
__global__ void two_jumps_and_an_if(int *out, const int *in)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x, sum = 0;
    int v = in[me];
    if (v & 1) {
        sum += in[v & 4095];
        if (sum & 2) goto l2;
        sum ^= in[(v >> 3) & 4095];
        if (sum & 4) goto l3;
        sum += in[(v >> 6) & 4095];
    } else {
        sum -= in[(v >> 5) & 4095];
        if (sum & 8) {
            sum += in[(sum >> 5) & 4095];
            out[v & 255] = sum;
        }
    }
    sum += in[(sum >> 2) & 4095];
    out[sum & 511] = sum;
l2:
    sum += in[(sum >> 3) & 4095];
    out[sum & 511] = sum;
l3:
    out[sum & 511] = in[(v >> 7) & 4095];
}

// cutrace: two_jumps_and_an_else_if<<<4, 128>>>(out:i32[512], in:i32[4096]=random:117)
__global__ void two_jumps_and_an_else_if(int *out, const int *in)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x, sum = 0;
    int v = in[me];
    if (v & 1) {
        sum += in[v & 4095];
        if (sum & 2) goto l2;
        sum ^= in[(v >> 3) & 4095];
        if (sum & 4) goto l3;
        sum += in[(v >> 6) & 4095];
    } else if (v & 8) {
        sum += in[(v >> 5) & 4095];
        out[v & 255] = sum;
    } else {
        sum -= in[(v >> 8) & 4095];
        out[v & 127] = 1;
    }
    sum += in[(sum >> 2) & 4095];
    out[sum & 511] = sum;
l2:
    sum += in[(sum >> 3) & 4095];
    out[sum & 511] = sum;
l3:
    out[sum & 511] = in[(v >> 7) & 4095];
}

// cutrace: continue_break_else_if<<<4, 128>>>(out:i32[512], in:i32[4096]=random:118, 16)
__global__ void continue_break_else_if(int *out, const int *in, int turns)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x, sum = 0;
    unsigned s = me * 2654435761u;
    int turn = 0;
    while (true) {
        turn++;
        s = s * 1664525u + 1013904223u;
        int value = in[s >> 20];
        if (value & 2) {
            sum += in[value & 4095];
            if (turn > turns) break;
            if (value & 4) continue;
            out[me] = sum;
        } else if (value & 8) {
            sum -= in[(value >> 4) & 4095];
            out[sum & 255] = value;
        }
        sum ^= in[(me ^ turn) & 4095];
    }
    out[me] = sum;
}

// cutrace: all_three_or_else<<<4, 128>>>(out:i32[512], in:i32[4096]=random:119)
__global__ void all_three_or_else(int *out, const int *in)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x, sum = 0;
    int v = in[me];
    if ((v & 1) && (in[v & 4095] & 2) && (in[(v >> 1) & 4095] & 4)) {
        sum += in[(v >> 4) & 4095];
        out[(v >> 3) & 511] = sum;
    } else {
        sum -= in[(v >> 5) & 4095];
        out[(v >> 2) & 511] = sum + 1;
    }
    out[sum & 511] = in[(v >> 7) & 4095];
}

// cutrace: two_or_the_third<<<4, 128>>>(out:i32[512], in:i32[4096]=random:120)
__global__ void two_or_the_third(int *out, const int *in)
{
    int me = threadIdx.x + blockIdx.x * blockDim.x, sum = 0;
    int v = in[me];
    if (((v & 1) && (in[v & 4095] & 2)) || (in[(v >> 1) & 4095] & 4)) {
        sum += in[(v >> 4) & 4095];
        out[(v >> 3) & 511] = sum;
    } else {
        sum -= in[(v >> 5) & 4095];
        out[(v >> 2) & 511] = sum + 1;
    }
    out[sum & 511] = in[(v >> 7) & 4095];
}
